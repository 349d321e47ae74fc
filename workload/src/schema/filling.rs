//! Writes the samples as live metrics arrive, and measures the rate as the data grow.

use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf};
use seekscope_run::Disk;
use seekscope_server::{Server, number};

use super::lab::LabOptions;
use super::lab_server::LabServer;
use super::samples::Samples;
use super::statement::{Batch, inserts};
use super::variant::Variant;
use crate::{Progress, WorkloadError};

/// Number of parts of the load for which rates are given.
pub(super) const PARTS: u64 = 10;
/// Interval at which the page cache is emptied to emulate data larger than memory: only the server's own
/// cache then holds any.
const EVICTION_INTERVAL: Duration = Duration::from_secs(1);

/// The result of filling.
#[derive(Debug, Clone, Default)]
pub(super) struct Filled {
    pub(super) samples: u64,
    /// Pairs of (samples so far, per second), for each disk in the server's order.
    pub(super) insert_per_s: Vec<Vec<(u64, f64)>>,
}

/// A filling in progress.
#[derive(Debug)]
pub(super) struct Filling<'a> {
    pub(super) lab_server: &'a mut LabServer,
    pub(super) server: &'a Server,
    pub(super) variant: &'a Variant,
    pub(super) samples: &'a Samples,
    pub(super) options: &'a LabOptions,
    /// When the page cache was last emptied.
    pub(super) evicted: Option<Instant>,
}

/// Samples written on one disk, and the time their commands took. The time in which we generate the data or
/// empty the page cache is excluded.
#[derive(Debug, Default)]
struct Stretch {
    samples: u64,
    busy: Duration,
}

impl Stretch {
    fn per_s(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.samples as f64 / self.busy.as_secs_f64().max(1e-9))
    }
}

impl Filling<'_> {
    /// Writes the zero-filled documents, one series after the other. Returns the time it took.
    pub(super) async fn preallocate(&mut self) -> Result<Duration, WorkloadError> {
        let start = Instant::now();
        let mut batch = Batch::new(self.variant, true);
        for series in 0..self.samples.series() {
            let mut slot = 0;
            while slot < self.samples.slots() {
                let next = batch.zeros(self.variant, self.samples, series, slot);
                let values = u64::from(batch.count()) * (next - slot);
                slot = next;
                if values >= u64::from(self.options.batch_samples) {
                    self.send(&mut batch, true).await?;
                }
            }
        }
        self.send(&mut batch, true).await?;
        Ok(start.elapsed())
    }

    /// Writes all samples in the order of their arrival. If a disk is emulated, the first stretch of each
    /// tenth runs on it, of at most half the tenth and [`LabOptions::slow_stretch`].
    pub(super) async fn fill(&mut self, progress: Progress<'_>) -> Result<Filled, WorkloadError> {
        let disks = self.lab_server.disks();
        let mut filled = Filled {
            insert_per_s: vec![Vec::new(); disks.len()],
            ..Filled::default()
        };
        let slots = self.samples.arrival_slots();
        for part in 0..PARTS {
            let (from, to) = (slots * part / PARTS, slots * (part + 1) / PARTS);
            let middle = if disks.len() > 1 {
                from.midpoint(to)
            } else {
                from
            };
            let reached = match disks.get(1) {
                Some(slow) => {
                    self.stretch(slow, 1, from..middle, &mut filled, progress)
                        .await?
                }
                None => from,
            };
            self.stretch(&Disk::Plain, 0, reached..to, &mut filled, progress)
                .await?;
        }
        Ok(filled)
    }

    /// Writes what arrives in these slots, and returns the first slot that it omitted because the time was
    /// over.
    async fn stretch(
        &mut self,
        disk: &Disk,
        number: usize,
        slots: std::ops::Range<u64>,
        filled: &mut Filled,
        progress: Progress<'_>,
    ) -> Result<u64, WorkloadError> {
        let samples = *self.samples;
        let mut stretch = Stretch::default();
        let mut batch = Batch::new(self.variant, inserts(self.variant));
        self.keep_memory_small()?;
        self.lab_server.slow_down(disk.is_emulated())?;
        let start = Instant::now();
        let mut reached = slots.start;
        for now in slots {
            let is_over = start.elapsed() >= self.options.slow_stretch;
            if disk.is_emulated() && is_over && stretch.samples > 0 {
                break;
            }
            for (at, value) in samples.arrivals(now) {
                batch.sample(self.variant, &samples, at, value);
                if batch.count() >= self.options.batch_samples {
                    stretch.samples += u64::from(batch.count());
                    stretch.busy += self.send(&mut batch, false).await?;
                    progress(filled.samples + stretch.samples);
                    self.keep_memory_small()?;
                }
            }
            reached = now + 1;
        }
        stretch.samples += u64::from(batch.count());
        stretch.busy += self.send(&mut batch, false).await?;
        self.lab_server.slow_down(false)?;
        filled.samples += stretch.samples;
        if let (Some(rates), Some(per_s)) = (filled.insert_per_s.get_mut(number), stretch.per_s()) {
            rates.push((filled.samples, per_s));
        }
        progress(filled.samples);
        Ok(reached)
    }

    fn keep_memory_small(&mut self) -> Result<(), WorkloadError> {
        if self
            .evicted
            .is_none_or(|at| at.elapsed() >= EVICTION_INTERVAL)
        {
            self.lab_server.evict()?;
            self.evicted = Some(Instant::now());
        }
        Ok(())
    }

    /// Sends the batch, if it is not empty, begins the next and returns the time it took.
    async fn send(&self, batch: &mut Batch, insert: bool) -> Result<Duration, WorkloadError> {
        let next = Batch::new(self.variant, insert || inserts(self.variant));
        let sent = u64::from(batch.count());
        let Some(command) = std::mem::replace(batch, next).finish() else {
            return Ok(Duration::ZERO);
        };
        let start = Instant::now();
        self.run(command, sent).await?;
        Ok(start.elapsed())
    }

    async fn run(&self, command: RawDocumentBuf, sent: u64) -> Result<(), WorkloadError> {
        let database = self.server.database(&self.options.database);
        let reply = database.run_raw_command(command).await;
        let reply = reply.map_err(|error| self.server.error("insert or update", &error))?;
        match refusal(&reply, sent) {
            None => Ok(()),
            Some(why) => Err(WorkloadError::BatchRefused {
                collection: self.variant.collection(),
                why,
            }),
        }
    }
}

/// Returns why not everything of a batch was done.
fn refusal(reply: &Document, sent: u64) -> Option<String> {
    let first = reply
        .get_array("writeErrors")
        .ok()
        .and_then(|errors| errors.first());
    if let Some(first) = first {
        let message = first.as_document().and_then(|e| e.get_str("errmsg").ok());
        return Some(message.unwrap_or("a write error without a message").into());
    }
    match reply.get("n").and_then(number) {
        Some(done) if done == sent => None,
        done => Some(format!("of {sent} writes the server says it did {done:?}")),
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    #[test]
    fn a_batch_must_be_done_whole() {
        assert_eq!(refusal(&doc! { "n": 3, "ok": 1.0 }, 3), None);
        assert_eq!(refusal(&doc! { "n": 3_i64 }, 3), None);
        assert_eq!(refusal(&doc! { "n": 3.0 }, 3), None);
        assert!(refusal(&doc! { "n": 2 }, 3).is_some());
        assert!(refusal(&doc! { "n": "3" }, 3).is_some());
        let errors = vec![doc! { "index": 0, "errmsg": "no room" }];
        assert_eq!(
            refusal(&doc! { "n": 2, "writeErrors": errors }, 3).unwrap(),
            "no room"
        );
    }

    #[test]
    fn nothing_written_has_no_rate() {
        assert_eq!(Stretch::default().per_s(), None);
        let stretch = Stretch {
            samples: 10,
            busy: Duration::from_millis(500),
        };
        assert_eq!(stretch.per_s(), Some(20.0));
    }
}
