//! Joins the checkpoints that the server counted with what the trace saw of each.
//!
//! The server's figure for a checkpoint's duration is used: its clock also runs while trees are walked and
//! nothing is written, and no lost or truncated event changes it. The trace adds what was written and synced,
//! and when exactly that ended, which the counters show only to within a step.

use seekscope_pattern::Checkpoint;

use super::counted::Counted;
use super::seconds;
use crate::wording::duration;

/// Both sources have to differ by this much, relatively and in s, before that is reported.
const DIFFERS: f64 = 0.05;
const DIFFERS_MIN_S: f64 = 0.2;

/// Joins the two lists in order of time, without overlaps.
pub(super) fn join(counted: &[Counted], traced: &[Checkpoint]) -> Vec<Checkpoint> {
    let mut found: Vec<Checkpoint> = Vec::new();
    for one in counted {
        let ended = traced.iter().map(|piece| piece.ended_ns).rev();
        let in_step =
            |ended_ns: &u64| (one.ended_after_ns + 1..=one.ended_by_ns).contains(ended_ns);
        let ended_ns = ended.into_iter().find(in_step).unwrap_or(one.ended_by_ns);
        let free_from_ns = found.last().map_or(0, |last| last.ended_ns);
        let mut joined = Checkpoint {
            started_ns: ended_ns.saturating_sub(one.took_ns).max(free_from_ns),
            ended_ns,
            ..Checkpoint::default()
        };
        let during = |piece: &&Checkpoint| {
            piece.started_ns < joined.ended_ns && piece.ended_ns > joined.started_ns
        };
        let pieces: Vec<&Checkpoint> = traced.iter().filter(during).collect();
        pieces.into_iter().for_each(|piece| add(&mut joined, piece));
        found.push(joined);
    }
    found
}

fn add(joined: &mut Checkpoint, piece: &Checkpoint) {
    joined.written_bytes = joined.written_bytes.saturating_add(piece.written_bytes);
    // A file in two pieces counts twice; the trace does not say which files they were.
    joined.files = joined.files.saturating_add(piece.files);
    joined.syncs = joined.syncs.saturating_add(piece.syncs);
    joined.sync_ns = joined.sync_ns.saturating_add(piece.sync_ns);
    joined.longest_sync_ns = joined.longest_sync_ns.max(piece.longest_sync_ns);
    joined.longest_journal_sync_ns = joined
        .longest_journal_sync_ns
        .max(piece.longest_journal_sync_ns);
    joined.longest_read_ns = joined.longest_read_ns.max(piece.longest_read_ns);
}

/// Returns a message where the longest checkpoint of the trace is not that of the server's counters.
pub(super) fn disagreement(counted: &[Checkpoint], traced: &[Checkpoint]) -> Option<String> {
    let longest_s = |of: &[Checkpoint]| of.iter().map(seconds).reduce(f64::max);
    let (counted_s, traced_s) = (longest_s(counted)?, longest_s(traced)?);
    let apart_s = (counted_s - traced_s).abs();
    (apart_s > DIFFERS_MIN_S && apart_s > DIFFERS * counted_s).then(|| {
        format!(
            "The server's own counter says {} for the longest, the trace of its writes and syncs {}; the \
             counter is believed.",
            duration(counted_s),
            duration(traced_s)
        )
    })
}
