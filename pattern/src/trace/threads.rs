//! The threads that do the I/O, and their roles.

use std::cmp::Reverse;
use std::collections::HashMap;

use seekscope_run::{FileRecord, FileRole, IoEvent, ThreadRecord};

use super::calls::CallCounter;
use super::hash::NumberMap;
use super::result::{RoleTrace, ThreadTrace};
use super::roles::{Behaviour, ThreadRole};

/// The most threads with figures of their own; the calls of later ones are left out of threads and
/// roles.
const THREADS_MAX: usize = 65_536;

/// The most written files that are remembered per thread.
const FILES_WRITTEN_MAX: usize = 4;
/// The most different files that are remembered of a thread's reads.
const FILES_READ_MAX: usize = 8;

/// The counters of all threads while the trace is read.
pub(crate) struct Threads {
    exact_max: usize,
    by_id: NumberMap<u32, ThreadCounter>,
}

struct ThreadCounter {
    pid: u32,
    calls: CallCounter,
    /// The first few different files written or synced.
    files_written: Vec<u32>,
    /// The first few different files read, with the number of reads.
    files_read: Vec<(u32, u64)>,
}

impl Threads {
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            exact_max,
            by_id: NumberMap::default(),
        }
    }

    /// Counts an event of the file layer.
    pub(crate) fn add(&mut self, event: &IoEvent) {
        if self.by_id.len() >= THREADS_MAX && !self.by_id.contains_key(&event.tid) {
            return;
        }
        let exact_max = self.exact_max;
        let thread = self
            .by_id
            .entry(event.tid)
            .or_insert_with(|| ThreadCounter {
                pid: event.pid,
                calls: CallCounter::new(exact_max),
                files_written: Vec::new(),
                files_read: Vec::new(),
            });
        thread.calls.add(event);
        let written = &mut thread.files_written;
        if !event.op.is_read()
            && written.len() < FILES_WRITTEN_MAX
            && !written.contains(&event.file_id)
        {
            written.push(event.file_id);
        }
        if event.op.is_read() {
            let read = &mut thread.files_read;
            let known = read
                .iter()
                .position(|(file_id, _)| *file_id == event.file_id);
            match known {
                Some(at) => read[at].1 += 1,
                None if read.len() < FILES_READ_MAX => read.push((event.file_id, 1)),
                None => {}
            }
        }
    }

    /// Returns the threads, those with the most bytes first, and the roles.
    pub(crate) fn finish(
        self,
        files: &HashMap<u32, &FileRecord>,
        names: &[ThreadRecord],
    ) -> (Vec<ThreadTrace>, Vec<RoleTrace>) {
        let names: HashMap<u32, &ThreadRecord> = names.iter().map(|t| (t.tid, t)).collect();
        let mut roles: Vec<(u64, CallCounter)> = ThreadRole::ALL
            .iter()
            .map(|_| (0, CallCounter::new(self.exact_max)))
            .collect();
        let mut threads: Vec<ThreadTrace> = Vec::with_capacity(self.by_id.len());
        for (tid, counter) in self.by_id {
            let thread = counter.finish(tid, files, names.get(&tid).copied());
            let role = &mut roles[thread.role as usize];
            role.0 += 1;
            role.1.merge(&counter.calls);
            threads.push(thread);
        }
        threads.sort_by_key(|t| (Reverse(t.reads.bytes + t.writes.bytes), t.thread.tid));
        let roles = ThreadRole::ALL
            .iter()
            .copied()
            .zip(roles)
            .filter(|(_, (threads, _))| *threads > 0)
            .map(|(role, (threads, calls))| RoleTrace {
                role,
                threads,
                reads: calls.reads.transfers(),
                writes: calls.writes.transfers(),
                syncs: calls.syncs.sync_calls(),
            })
            .collect();
        (threads, roles)
    }
}

impl ThreadCounter {
    fn finish(
        &self,
        tid: u32,
        files: &HashMap<u32, &FileRecord>,
        known: Option<&ThreadRecord>,
    ) -> ThreadTrace {
        let named = known.and_then(|record| ThreadRole::from_name(&record.name));
        let unnamed = || ThreadRecord {
            tid,
            pid: self.pid,
            name: String::new(),
        };
        ThreadTrace {
            thread: known.cloned().unwrap_or_else(unnamed),
            role: named.unwrap_or_else(|| ThreadRole::from_behaviour(&self.behaviour(files))),
            role_from_name: named.is_some(),
            reads: self.calls.reads.transfers(),
            writes: self.calls.writes.transfers(),
            syncs: self.calls.syncs.sync_calls(),
        }
    }

    fn behaviour(&self, files: &HashMap<u32, &FileRecord>) -> Behaviour {
        let first = self.files_written.first();
        let role_of = |id: &u32| files.get(id).map(|file| file.role);
        let role = first.and_then(role_of);
        // Whoever makes room in the cache looks up there what a page may drop.
        let history = self
            .files_read
            .iter()
            .filter(|(id, _)| role_of(id) == Some(FileRole::HistoryStore));
        let of_history: u64 = history.map(|(_, count)| count).sum();
        Behaviour {
            reads: self.calls.reads.calls().saturating_sub(of_history),
            writes: self.calls.writes.calls(),
            syncs: self.calls.syncs.calls(),
            files_written: self.files_written.len(),
            writes_journal: role == Some(FileRole::Journal),
            writes_tables: matches!(
                role,
                Some(FileRole::Collection | FileRole::Index | FileRole::HistoryStore)
            ),
        }
    }
}
