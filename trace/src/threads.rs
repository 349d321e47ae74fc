//! Which process a thread belongs to, and what it is called.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use seekscope_run::ThreadRecord;

/// The threads that made events.
#[derive(Debug)]
pub(crate) struct ThreadTable {
    proc_root: PathBuf,
    /// False in a container, where /proc numbers threads differently from the kernel programs.
    numbers_agree: bool,
    /// The process of threads about which nothing can be found out.
    fallback_pid: u32,
    threads: HashMap<u32, ThreadRecord>,
    /// Threads not yet handed over.
    news: Vec<u32>,
}

impl ThreadTable {
    pub(crate) fn new(proc_root: &Path, numbers_agree: bool, fallback_pid: u32) -> Self {
        Self {
            proc_root: proc_root.into(),
            numbers_agree,
            fallback_pid,
            threads: HashMap::new(),
            news: Vec::new(),
        }
    }

    /// Notes a thread that the kernel programs announced. Its number may have belonged to another
    /// before.
    pub(crate) fn announced(&mut self, thread: ThreadRecord) {
        if self.threads.get(&thread.tid) != Some(&thread) {
            self.news.push(thread.tid);
            self.threads.insert(thread.tid, thread);
        }
    }

    /// Returns the process of a thread. A thread that was never announced (the ring was full, or it
    /// is the kernel's own) is looked up.
    pub(crate) fn process_of(&mut self, tid: u32) -> u32 {
        if let Some(thread) = self.threads.get(&tid) {
            return thread.pid;
        }
        let thread = self.look_up(tid).unwrap_or(ThreadRecord {
            tid,
            pid: self.fallback_pid,
            name: String::new(),
        });
        let pid = thread.pid;
        self.announced(thread);
        pid
    }

    fn look_up(&self, tid: u32) -> Option<ThreadRecord> {
        if !self.numbers_agree {
            return None;
        }
        let status = fs::read(self.proc_root.join(tid.to_string()).join("status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        Some(ThreadRecord {
            tid,
            pid: field("Tgid:")?.trim().parse().ok()?,
            name: field("Name:")?.trim().into(),
        })
    }

    /// Returns threads that are new, or better known, since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<ThreadRecord> {
        let news = std::mem::take(&mut self.news);
        news.iter()
            .filter_map(|tid| self.threads.get(tid).cloned())
            .collect()
    }

    /// Reads the names of living threads once more: many are named after they have started.
    pub(crate) fn refresh(&mut self) {
        let tids: Vec<u32> = self.threads.keys().copied().collect();
        for tid in tids {
            let now = self.look_up(tid);
            if let Some(now) = now.filter(|now| self.threads[&tid].pid == now.pid) {
                self.announced(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, pid: u32, name: &str) -> ThreadRecord {
        let name = name.into();
        ThreadRecord { tid, pid, name }
    }

    #[test]
    fn announced_threads_are_news_once() {
        let mut table = ThreadTable::new(Path::new("/nowhere"), true, 1);
        table.announced(thread(5, 4, "a"));
        table.announced(thread(5, 4, "a"));
        assert_eq!(table.take_news(), [thread(5, 4, "a")]);
        assert!(table.take_news().is_empty());
        assert_eq!(table.process_of(5), 4);
    }

    #[test]
    fn others_are_looked_up_or_taken_for_the_targets() {
        let proc_root = tempfile::tempdir().unwrap();
        fs::create_dir(proc_root.path().join("9")).unwrap();
        fs::write(
            proc_root.path().join("9/status"),
            "Name:\tkworker/0:1\nTgid:\t9\n",
        )
        .unwrap();
        let mut table = ThreadTable::new(proc_root.path(), true, 1);
        assert_eq!((table.process_of(9), table.process_of(10)), (9, 1));
        assert_eq!(table.take_news()[0], thread(9, 9, "kworker/0:1"));
        let mut inside = ThreadTable::new(proc_root.path(), false, 1);
        assert_eq!(inside.process_of(9), 1, "numbers mean something else here");
    }

    #[test]
    fn a_name_given_later_is_learnt_but_not_from_a_successor() {
        let proc_root = tempfile::tempdir().unwrap();
        for (tid, tgid) in [(9, 8), (7, 7)] {
            fs::create_dir(proc_root.path().join(tid.to_string())).unwrap();
            let status = format!("Name:\tlate\nTgid:\t{tgid}\n");
            fs::write(proc_root.path().join(format!("{tid}/status")), status).unwrap();
        }
        let mut table = ThreadTable::new(proc_root.path(), true, 1);
        table.announced(thread(9, 8, "early"));
        table.announced(thread(7, 6, "early"));
        table.take_news();
        table.refresh();
        assert_eq!(table.take_news(), [thread(9, 8, "late")]);
    }
}
