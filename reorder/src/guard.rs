//! Makes the copy yield to others: it pauses while small reads take too long, or the host's tasks wait for
//! its disks.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use bson::{Document, RawDocumentBuf, doc};
use mongodb::Collection;
use seekscope_run::pressure_totals;
use seekscope_server::{ProcFs, Server};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::site::Site;
use crate::{GuardLimits, PauseReason, Progress};

const PROBE_INTERVAL: Duration = Duration::from_millis(200);
/// Number of probes for the median: 3 s.
const WINDOW: usize = 15;
const BASELINE_PROBES: usize = 15;
/// Longest pause: the cursor of the copy must be read now and then, or the server closes it after half an
/// hour.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Watches until dropped.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    watching: Option<(watch::Receiver<Option<PauseReason>>, JoinHandle<()>)>,
    pub(crate) pauses: u32,
    pub(crate) paused: Duration,
}

impl Guard {
    /// Measures how long small reads take now, and watches from then on.
    pub(crate) async fn start(site: &Site, limits: Option<GuardLimits>) -> Self {
        let Some(limits) = limits else {
            return Self::default();
        };
        let probe = Probe::new(site).await;
        let mut baseline = Vec::new();
        for _ in 0..BASELINE_PROBES {
            baseline.extend(probe.latency().await);
        }
        let limit = median(baseline).mul_f64(limits.latency_ratio.max(1.0));
        let limit = limit.max(limits.latency_floor);
        let here = is_here(&site.server).await;
        let io_pressure = limits.io_pressure.filter(|_| here);
        let (sender, receiver) = watch::channel(None);
        let task = tokio::spawn(watch_over(probe, limit, io_pressure, sender));
        Self {
            watching: Some((receiver, task)),
            ..Self::default()
        }
    }

    /// Returns when the copy may continue.
    pub(crate) async fn wait(&mut self, progress: &dyn Progress) {
        let Some((receiver, _)) = &mut self.watching else {
            return;
        };
        let reason = *receiver.borrow();
        if reason.is_none() {
            return;
        }
        let began = Instant::now();
        progress.paused(reason);
        // Neither a pause that timed out nor an ended task is an error.
        let calm = receiver.wait_for(Option::is_none);
        let _ = tokio::time::timeout(PAUSE_MAX, calm).await;
        progress.paused(None);
        self.pauses += 1;
        self.paused += began.elapsed();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.watching {
            task.abort();
        }
    }
}

/// A small read, as a client would do it.
#[derive(Debug)]
struct Probe {
    collection: Collection<RawDocumentBuf>,
    filter: Document,
}

impl Probe {
    async fn new(site: &Site) -> Self {
        let collection = site.target();
        let first = collection
            .find_one(doc! {})
            .projection(doc! { "_id": 1 })
            .await;
        let first = first.ok().flatten().and_then(|d| d.try_into().ok());
        Self {
            collection,
            filter: first.unwrap_or_default(),
        }
    }

    /// Returns the latency; `None` if the read failed, which the copy will notice itself.
    async fn latency(&self) -> Option<Duration> {
        let began = Instant::now();
        let read = self.collection.find_one(self.filter.clone());
        read.projection(doc! { "_id": 1 }).await.ok()?;
        Some(began.elapsed())
    }
}

async fn watch_over(
    probe: Probe,
    limit: Duration,
    io_pressure: Option<f64>,
    sender: watch::Sender<Option<PauseReason>>,
) {
    let mut readings = Readings::default();
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        readings.add(probe.latency().await);
        if sender.send(readings.reason(limit, io_pressure)).is_err() {
            return;
        }
    }
}

/// The last probes.
#[derive(Debug, Default)]
struct Readings {
    latencies: VecDeque<Duration>,
    pressure: VecDeque<(Instant, Option<u64>)>,
}

impl Readings {
    /// Adds a probe. One that failed ends a pause: there may be no server any more that could be spared, and the copy
    /// finds that out.
    fn add(&mut self, latency: Option<Duration>) {
        let Some(latency) = latency else {
            self.latencies.clear();
            self.pressure.clear();
            return;
        };
        push(&mut self.latencies, latency);
        push(&mut self.pressure, (Instant::now(), waited_us()));
    }

    fn reason(&self, limit: Duration, io_pressure: Option<f64>) -> Option<PauseReason> {
        let enough = self.latencies.len() == WINDOW;
        too_slow(&self.latencies, limit)
            .or_else(|| too_pressed(&self.pressure, io_pressure?))
            .filter(|_| enough)
    }
}

fn push<T>(window: &mut VecDeque<T>, value: T) {
    if window.len() == WINDOW {
        window.pop_front();
    }
    window.push_back(value);
}

fn too_slow(window: &VecDeque<Duration>, limit: Duration) -> Option<PauseReason> {
    let median = median(window.iter().copied().collect());
    (median > limit).then_some(PauseReason::Latency {
        median_ms: median.as_secs_f64() * 1e3,
        limit_ms: limit.as_secs_f64() * 1e3,
    })
}

fn too_pressed(readings: &VecDeque<(Instant, Option<u64>)>, limit: f64) -> Option<PauseReason> {
    let ((from, before), (to, after)) = (readings.front()?, readings.back()?);
    let span_us = to.duration_since(*from).as_secs_f64() * 1e6;
    let share = (*after)?.saturating_sub((*before)?) as f64 / span_us.max(1.0);
    (share > limit).then_some(PauseReason::IoPressure { share, limit })
}

fn median(mut values: Vec<Duration>) -> Duration {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the time since boot in which all tasks of the host waited for I/O, µs.
fn waited_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/io").ok()?;
    pressure_totals(&text)
        .find(|(kind, _)| *kind == "full")
        .map(|(_, us)| us)
}

async fn is_here(server: &Server) -> bool {
    server
        .facts(&ProcFs::at(Path::new("/proc")))
        .await
        .target
        .pid
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_gone_is_not_waited_for() {
        let (slow, limit) = (Duration::from_millis(500), Duration::from_millis(20));
        let mut readings = Readings::default();
        (0..WINDOW).for_each(|_| readings.add(Some(slow)));
        assert!(readings.reason(limit, None).is_some());
        readings.add(None);
        assert_eq!(readings.reason(limit, None), None);
        (0..WINDOW).for_each(|_| readings.add(Some(slow)));
        assert!(readings.reason(limit, None).is_some(), "it is back");
    }

    #[test]
    fn the_median_decides() {
        let ms = Duration::from_millis;
        let window: VecDeque<_> = [ms(1), ms(500), ms(2), ms(30), ms(3)].into();
        assert_eq!(too_slow(&window, ms(20)), None);
        let window: VecDeque<_> = [ms(1), ms(500), ms(21), ms(30), ms(3)].into();
        assert!(matches!(
            too_slow(&window, ms(20)),
            Some(PauseReason::Latency { median_ms, .. }) if median_ms == 21.0
        ));
    }

    #[test]
    fn pressure_is_a_share_of_the_window() {
        let began = Instant::now();
        let later = began + Duration::from_secs(2);
        let readings: VecDeque<_> = [(began, Some(100)), (later, Some(1_000_100))].into();
        assert!(too_pressed(&readings, 0.4).is_some());
        assert_eq!(too_pressed(&readings, 0.6), None);
        let unknown: VecDeque<_> = [(began, None), (later, Some(5))].into();
        assert_eq!(too_pressed(&unknown, 0.0), None);
        assert_eq!(too_pressed(&VecDeque::new(), 0.0), None);
    }
}
