//! `seekscope trace --aggregate`: totals per file, fetched from the kernel periodically.

use std::collections::HashMap;

use anyhow::Result;
use seekscope_run::directory::{IoWriter, TotalsWriter};
use seekscope_run::{FileTotals, IoOp, TraceFacts, monotonic_ns};
use seekscope_trace::{EventSource, LiveSource, RawTotals};

use super::record::{Ended, by_signal, until_over};
use super::traced::Traced;
use crate::args::RecordArgs;
use crate::interruption::Interruption;
use crate::session::Session;

/// The totals of the intervals so far.
struct Counting {
    source: LiveSource,
    files: IoWriter,
    rows: TotalsWriter,
    /// Totals at the end of the last interval, when the current one began (`since_ns`).
    before: HashMap<(u32, IoOp), RawTotals>,
    since_ns: u64,
}

/// Counts until something ends it.
pub async fn count(
    args: &RecordArgs,
    session: &mut Session,
    interruption: &Interruption,
    traced: &mut Traced,
    source: LiveSource,
) -> Result<(Ended, TraceFacts)> {
    let mut counting = Counting {
        source,
        files: session.directory.io_writer()?,
        rows: session.directory.totals_writer()?,
        before: HashMap::new(),
        since_ns: monotonic_ns(),
    };
    if let Some(command) = &traced.command {
        command.go_on()?;
    }
    let ended = {
        let over = until_over(args, session, traced, || false);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                signal = interruption.first() => break by_signal(args, signal),
                ended = &mut over => break ended,
                () = tokio::time::sleep(args.mode.interval) => counting.end_interval()?,
            }
        }
    };
    counting.source.stop();
    counting.end_interval()?;
    let facts = counting.source.finish(&mut counting.files)?;
    Ok((ended, facts))
}

impl Counting {
    /// Records what was counted since the last time.
    fn end_interval(&mut self) -> Result<()> {
        // This picks up processes that join a group and the names of files.
        self.source.drain(&mut self.files)?;
        let now_ns = monotonic_ns();
        for counted in self.source.totals(&mut self.files)? {
            let key = (counted.file_id, counted.op);
            let before = self.before.insert(key, counted.totals);
            let row = difference(&counted.totals, before.as_ref());
            if row.calls > 0 {
                self.rows.totals(&FileTotals {
                    t_ns: self.since_ns,
                    duration_ns: now_ns - self.since_ns,
                    file_id: counted.file_id,
                    op: counted.op,
                    ..row
                })?;
            }
        }
        self.since_ns = now_ns;
        Ok(())
    }
}

/// Returns what was added since `before`.
fn difference(now: &RawTotals, before: Option<&RawTotals>) -> FileTotals {
    let since =
        |figure: fn(&RawTotals) -> u64| figure(now).saturating_sub(before.map_or(0, figure));
    let counts = now.latency_buckets.iter().enumerate().map(|(i, count)| {
        count.saturating_sub(before.map_or(0, |before| before.latency_buckets[i]))
    });
    FileTotals {
        t_ns: 0,
        duration_ns: 0,
        file_id: 0,
        op: IoOp::Read,
        calls: since(|t| t.calls),
        errors: since(|t| t.errors),
        bytes: since(|t| t.bytes),
        device_read_bytes: since(|t| t.device_read_bytes),
        hits: since(|t| t.hits),
        misses: since(|t| t.misses),
        waited_for_others: since(|t| t.waited_for_others),
        direct: since(|t| t.direct),
        latency_sum_ns: since(|t| t.latency_ns),
        latency_counts: counts.collect(),
    }
}
