//! The second pass: assigns events to users and checkpoints, and finds what happened during those.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use seekscope_run::{CacheOutcome, FileRole, IoEvent, IoFlags, IoKind, IoLayer};

use super::slots::Slots;
use super::{Checkpoint, DeviceUse, FileUse, PAUSE_NS};
use crate::trace::hash::NumberMap;
use crate::trace::sketch::Sketch;
use crate::{ThreadRole, TraceAnalysis};

/// The most latencies of one user that are kept exactly; with more, they are within 3 %.
const USER_EXACT_MAX: usize = 64;
/// The most checkpoints with figures of their own; later ones are left out.
const CHECKPOINTS_MAX: usize = 16_384;
/// The most files counted per checkpoint.
const CHECKPOINT_FILES_MAX: usize = 65_536;

/// Takes the events of a trace in the order in which a run keeps them, which is that of completion.
/// Memory is bounded by the number of files that the first pass kept separate.
pub struct DeviceUseFinder {
    roles: NumberMap<u32, ThreadRole>,
    files: NumberMap<u32, FileRole>,
    users: HashMap<(u32, ThreadRole, bool), User>,
    checkpoints: Vec<Checkpoint>,
    /// Files written by the present checkpoint.
    files_written: HashSet<u32>,
    journal: Slots,
    reads: Slots,
}

struct User {
    calls: u64,
    bytes: u64,
    device_read_bytes: u64,
    waiting_ns: u64,
    waited_calls: u64,
    latency_ns: Sketch<4>,
}

impl DeviceUseFinder {
    /// Returns a finder for the trace that the first pass analysed.
    pub fn new(trace: &TraceAnalysis) -> Self {
        let roles = trace.threads.iter().map(|t| (t.thread.tid, t.role));
        let files = trace.files.iter().map(|f| (f.file.file_id, f.file.role));
        Self {
            roles: roles.collect(),
            files: files.collect(),
            users: HashMap::new(),
            checkpoints: Vec::new(),
            files_written: HashSet::new(),
            journal: Slots::new(trace.started_ns),
            reads: Slots::new(trace.started_ns),
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: &IoEvent) {
        let known = self.files.get(&event.file_id).copied();
        let Some(file) = known.filter(|_| event.op.layer() == IoLayer::File) else {
            return;
        };
        let role = self.roles.get(&event.tid).copied();
        let role = role.unwrap_or(ThreadRole::Background);
        let kind = event.op.kind();
        let key = (event.file_id, role, kind != IoKind::Read);
        self.users.entry(key).or_insert_with(User::new).add(event);
        match kind {
            IoKind::Read if role == ThreadRole::Application => {
                self.reads.add(event.t_ns, event.latency_ns);
            }
            IoKind::Write | IoKind::Sync if role == ThreadRole::Checkpoint => {
                self.checkpoint(event);
            }
            IoKind::Sync if file == FileRole::Journal => {
                self.journal.add(event.t_ns, event.latency_ns);
            }
            _ => {}
        }
    }

    /// Returns what was found.
    pub fn finish(mut self) -> DeviceUse {
        for checkpoint in &mut self.checkpoints {
            checkpoint.longest_journal_sync_ns = self.journal.longest_during(checkpoint);
            checkpoint.longest_read_ns = self.reads.longest_during(checkpoint);
        }
        let (journal_during_ns, journal_otherwise_ns) = self.journal.split(&self.checkpoints);
        let (reads_during_ns, reads_otherwise_ns) = self.reads.split(&self.checkpoints);
        let mut users: Vec<FileUse> = self
            .users
            .iter()
            .map(|(&(file_id, role, writes), user)| user.finish(file_id, role, writes))
            .collect();
        users.sort_by_key(|u| (Reverse(u.waiting_ns), u.file_id, u.role, u.writes));
        DeviceUse {
            users,
            checkpoints: self.checkpoints,
            journal_during_ns,
            journal_otherwise_ns,
            reads_during_ns,
            reads_otherwise_ns,
        }
    }

    /// Counts a write or sync by a thread that makes checkpoints.
    fn checkpoint(&mut self, event: &IoEvent) {
        let ended_ns = event.t_ns.saturating_add(event.latency_ns);
        // Events come in order of completion, so only how early this one began matters.
        let goes_on = |last: &Checkpoint| event.t_ns <= last.ended_ns.saturating_add(PAUSE_NS);
        if !self.checkpoints.last().is_some_and(goes_on) {
            if self.checkpoints.len() == CHECKPOINTS_MAX {
                return;
            }
            self.files_written.clear();
            self.checkpoints.push(Checkpoint {
                started_ns: event.t_ns,
                ended_ns,
                ..Checkpoint::default()
            });
        }
        let Some(current) = self.checkpoints.last_mut() else {
            return;
        };
        current.started_ns = current.started_ns.min(event.t_ns);
        current.ended_ns = current.ended_ns.max(ended_ns);
        current.is_cut_off |= event.is_cut_off();
        if event.op.kind() == IoKind::Sync {
            current.syncs = current.syncs.saturating_add(1);
            current.sync_ns = current.sync_ns.saturating_add(event.latency_ns);
            current.longest_sync_ns = current.longest_sync_ns.max(event.latency_ns);
        } else {
            current.written_bytes += event.bytes();
        }
        if self.files_written.len() < CHECKPOINT_FILES_MAX
            && self.files_written.insert(event.file_id)
        {
            current.files += 1;
        }
    }
}

impl User {
    fn new() -> Self {
        Self {
            calls: 0,
            bytes: 0,
            device_read_bytes: 0,
            waiting_ns: 0,
            waited_calls: 0,
            latency_ns: Sketch::new(USER_EXACT_MAX),
        }
    }

    fn add(&mut self, event: &IoEvent) {
        self.waiting_ns = self.waiting_ns.saturating_add(event.latency_ns);
        if event.op.kind() == IoKind::Sync {
            return;
        }
        self.calls += 1;
        self.bytes += event.bytes();
        self.device_read_bytes += u64::from(event.device_read_bytes);
        self.latency_ns.add(event.latency_ns);
        self.waited_calls += u64::from(match event.cache_outcome() {
            Some(outcome) => outcome != CacheOutcome::Hit,
            None => event.flags.has(IoFlags::WAITED) || event.flags.has(IoFlags::DIRECT),
        });
    }

    fn finish(&self, file_id: u32, role: ThreadRole, writes: bool) -> FileUse {
        FileUse {
            file_id,
            role,
            writes,
            calls: self.calls,
            bytes: self.bytes,
            device_read_bytes: self.device_read_bytes,
            waiting_ns: self.waiting_ns,
            latency_ns: self.latency_ns.quantiles(),
            waited_calls: self.waited_calls,
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRecord, IoOp, PathState, ThreadRecord};

    use super::*;
    use crate::trace::testing::read;
    use crate::{AnalysisOptions, TraceAnalyser};

    const MS: u64 = 1_000_000;
    const APPLICATION: u32 = 11;
    const CHECKPOINT: u32 = 12;
    const JOURNAL: u32 = 13;
    const TABLE: u32 = 1;
    const LOG: u32 = 2;

    fn file(file_id: u32, role: FileRole) -> FileRecord {
        FileRecord {
            file_id,
            path: format!("/db/{file_id}"),
            path_state: PathState::Known,
            device_major: 0,
            device_minor: 0,
            inode: 0,
            size_bytes: 0,
            role,
            namespace: None,
            member: None,
        }
    }

    fn event(tid: u32, op: IoOp, file_id: u32, at_ms: u64, took_ms: u64) -> IoEvent {
        IoEvent {
            tid,
            op,
            latency_ns: took_ms * MS,
            ..read(at_ms * MS, file_id, 0, 4096)
        }
    }

    fn find(events: &mut [IoEvent]) -> DeviceUse {
        events.sort_by_key(|e| e.t_ns + e.latency_ns);
        let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
        events.iter().for_each(|e| analyser.push(e));
        let threads = [
            (APPLICATION, "conn7"),
            (CHECKPOINT, "WTCheck.tThread"),
            (JOURNAL, "WTJourn.Flusher"),
        ];
        let threads = threads.map(|(tid, name)| ThreadRecord {
            tid,
            pid: 1,
            name: name.into(),
        });
        let files = [
            file(TABLE, FileRole::Collection),
            file(LOG, FileRole::Journal),
        ];
        let mut finder = DeviceUseFinder::new(&analyser.finish(&files, &threads));
        events.iter().for_each(|e| finder.push(e));
        finder.finish()
    }

    /// Two checkpoints; the second ends in one long sync that covers what others suffer.
    fn recorded() -> Vec<IoEvent> {
        let mut events = vec![
            event(CHECKPOINT, IoOp::Pwrite, TABLE, 1000, 2),
            event(CHECKPOINT, IoOp::Pwrite, LOG, 1800, 2),
            event(CHECKPOINT, IoOp::Fdatasync, TABLE, 1900, 100),
            event(CHECKPOINT, IoOp::Pwrite, TABLE, 10_000, 2),
            event(CHECKPOINT, IoOp::Fdatasync, TABLE, 10_100, 4900),
            event(JOURNAL, IoOp::Fdatasync, LOG, 12_000, 700),
            event(APPLICATION, IoOp::Pread, TABLE, 13_000, 300),
            event(APPLICATION, IoOp::BlockRead, TABLE, 13_000, 299),
        ];
        for second in 3..9 {
            events.push(event(JOURNAL, IoOp::Fdatasync, LOG, second * 1000, 5));
            events.push(event(APPLICATION, IoOp::Pread, TABLE, second * 1000, 1));
        }
        events
    }

    #[test]
    fn checkpoints_and_what_suffers_from_them() {
        let found = find(&mut recorded());
        let [first, second] = found.checkpoints[..] else {
            panic!("{:?}", found.checkpoints)
        };
        assert_eq!((first.started_ns, first.ended_ns), (1000 * MS, 2000 * MS));
        assert_eq!(
            (first.written_bytes, first.files, first.syncs),
            (8192, 2, 1)
        );
        assert_eq!(
            (second.started_ns, second.ended_ns),
            (10_000 * MS, 15_000 * MS)
        );
        assert_eq!(
            (second.sync_ns, second.longest_sync_ns),
            (4900 * MS, 4900 * MS)
        );
        assert_eq!(second.longest_journal_sync_ns, 700 * MS);
        assert_eq!(second.longest_read_ns, 300 * MS);
        assert_eq!(
            (first.longest_journal_sync_ns, first.longest_read_ns),
            (0, 0)
        );
        let (during, otherwise) = (found.journal_during_ns, found.journal_otherwise_ns);
        assert_eq!((during.count, during.max), (1, 700 * MS));
        assert_eq!((otherwise.count, otherwise.max), (6, 5 * MS));
        let (during, otherwise) = (found.reads_during_ns, found.reads_otherwise_ns);
        assert_eq!((during.count, otherwise.count), (1, 6));
    }

    #[test]
    fn users_by_waiting() {
        let found = find(&mut recorded());
        let user = found.users[0];
        assert_eq!(
            (user.file_id, user.role, user.writes),
            (TABLE, ThreadRole::Checkpoint, true)
        );
        assert_eq!((user.calls, user.bytes), (2, 8192));
        assert_eq!(user.waiting_ns, 5004 * MS);
        assert_eq!(user.latency_ns.max, 2 * MS, "syncs are no calls");
        let reads = found.users.iter().find(|u| !u.writes).unwrap();
        assert_eq!((reads.calls, reads.waiting_ns), (7, 306 * MS));
        assert_eq!(reads.waited_calls, 0);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(find(&mut []), DeviceUse::default());
    }
}
