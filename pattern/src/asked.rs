//! Tells for which files a trace has all that was asked of them, so that this can be set against what the disk read.

use seekscope_run::TraceFacts;

use crate::FileTrace;

/// Tells whether reads are missing that went to the disk all the same: filters in the kernel are for calls, and leave the
/// requests of disks alone.
#[derive(Debug, Clone, Copy)]
pub struct ReadsRecorded<'a> {
    trace: Option<&'a TraceFacts>,
}

impl<'a> ReadsRecorded<'a> {
    /// Takes the trace's trailer; without one nothing is known to be missing.
    pub fn of(trace: Option<&'a TraceFacts>) -> Self {
        Self { trace }
    }

    /// Returns whether no read of the file was left out on purpose, and none because what read it ended and was started
    /// again.
    pub fn are_all_of(&self, file: &FileTrace) -> bool {
        let Some(trace) = self.trace else {
            return true;
        };
        let label = file.file.member.as_deref().unwrap_or_default();
        let has_ended = trace.ended_early.iter().any(|ended| ended == label);
        // Where files were chosen, one without calls may be one that was not.
        let was_chosen = !trace.files_chosen || has_calls(file);
        was_chosen && !has_ended && !trace.reads_left_out
    }
}

fn has_calls(file: &FileTrace) -> bool {
    file.reads.transfers.calls + file.writes.transfers.calls + file.syncs.calls > 0
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRecord, FileRole, IoEvent, IoOp, PathState};

    use super::*;
    use crate::trace::testing::read;
    use crate::{AnalysisOptions, TraceAnalyser};

    /// A file with one call.
    fn file(event: &IoEvent, member: Option<&str>) -> FileTrace {
        let record = FileRecord {
            file_id: 1,
            path: "/data/collection-7.wt".into(),
            path_state: PathState::Known,
            device_major: 8,
            device_minor: 0,
            inode: 1,
            size_bytes: 0,
            role: FileRole::Collection,
            namespace: None,
            member: member.map(String::from),
        };
        let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
        analyser.push(event);
        let mut analysis = analyser.finish(&[record], &[]);
        analysis.files.remove(0)
    }

    #[test]
    fn reads_that_were_left_out_are_missing() {
        let called = file(&read(1_000, 1, 0, 4096), None);
        let all = |reads_left_out, files_chosen| {
            let trace = TraceFacts {
                reads_left_out,
                files_chosen,
                ..TraceFacts::default()
            };
            ReadsRecorded::of(Some(&trace)).are_all_of(&called)
        };
        assert!(ReadsRecorded::of(None).are_all_of(&called));
        assert!(all(false, false) && all(false, true));
        assert!(!all(true, false));
    }

    #[test]
    fn a_file_of_which_only_requests_are_known_may_be_one_that_was_not_chosen() {
        let mut request = read(1_000, 1, 0, 4096);
        request.op = IoOp::BlockRead;
        let requested = file(&request, None);
        let of = |files_chosen| {
            let trace = TraceFacts {
                files_chosen,
                ..TraceFacts::default()
            };
            ReadsRecorded::of(Some(&trace)).are_all_of(&requested)
        };
        assert!(of(false));
        assert!(!of(true));
    }

    #[test]
    fn what_a_member_read_after_it_was_started_again_is_missing() {
        let trace = TraceFacts {
            ended_early: vec!["shard0".into()],
            ..TraceFacts::default()
        };
        let reads = ReadsRecorded::of(Some(&trace));
        let of_member = |member| file(&read(1_000, 1, 0, 4096), member);
        assert!(!reads.are_all_of(&of_member(Some("shard0"))));
        assert!(reads.are_all_of(&of_member(Some("shard1"))));
        assert!(reads.are_all_of(&of_member(None)));
        let nameless = TraceFacts {
            ended_early: vec![String::new()],
            ..TraceFacts::default()
        };
        let reads = ReadsRecorded::of(Some(&nameless));
        assert!(!reads.are_all_of(&of_member(None)), "-p names no member");
    }
}
