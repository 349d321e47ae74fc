//! `seekscope trace --aggregate`: totals per file, fetched from the kernel periodically.

use anyhow::Result;
use seekscope_run::directory::{IoWriter, TotalsWriter};
use seekscope_run::{FileTotals, TraceFacts, monotonic_ns};
use seekscope_trace::{EventSource, LiveSource};

use super::record::{Ended, by_signal, until_over};
use super::traced::Traced;
use crate::args::RecordArgs;
use crate::interruption::Interruption;
use crate::session::Session;

/// The trace and where its totals are stored.
struct Counting {
    source: LiveSource,
    files: IoWriter,
    rows: TotalsWriter,
    /// When the current interval began.
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
                signal = interruption.first() => break Err(signal),
                ended = &mut over => break Ok(ended),
                () = tokio::time::sleep(args.mode.interval) => counting.end_interval()?,
            }
        }
    };
    let ended = ended.unwrap_or_else(|signal| by_signal(args, traced, signal));
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
        for counted in self.source.take_totals(&mut self.files)? {
            let totals = counted.totals;
            self.rows.totals(&FileTotals {
                t_ns: self.since_ns,
                duration_ns: now_ns - self.since_ns,
                file_id: counted.file_id,
                op: counted.op,
                calls: totals.calls,
                errors: totals.errors,
                bytes: totals.bytes,
                device_read_bytes: totals.device_read_bytes,
                hits: totals.hits,
                misses: totals.misses,
                waited_for_others: totals.waited_for_others,
                direct: totals.direct,
                latency_sum_ns: totals.latency_ns,
                latency_counts: totals.latency_buckets.to_vec(),
            })?;
        }
        self.since_ns = now_ns;
        Ok(())
    }
}
