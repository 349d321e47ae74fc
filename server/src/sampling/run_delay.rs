//! Adds up how long the threads of a server that serve operations waited for a CPU although they had something to do. The
//! kernel counts that for each thread (`/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst), and forgets it when the
//! thread ends.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use crate::process::ProcFs;

/// Threads are read no more often than this, and so that it takes a hundredth of the time at most: a server has one
/// for each connection.
const PERIOD: Duration = Duration::from_secs(2);
const IDLE_PER_READING: u32 = 100;

/// MongoDB's threads that serve connections begin so. Where there is none, all threads of the process count.
const SERVES: &str = "conn";

/// The waits of a server's threads since the first reading.
#[derive(Debug, Default)]
pub(super) struct RunDelay {
    /// What each thread had waited at the last reading, ns, by its number; `None` before the first.
    last_ns: Option<HashMap<u32, u64>>,
    total_ns: u64,
    next: Option<Instant>,
}

impl RunDelay {
    /// Reads the threads, if it is time for that. Returns what they have waited since the first reading, ns; `None`
    /// too where the kernel does not count it.
    pub(super) fn read(&mut self, proc_fs: &ProcFs, pid: u32) -> Option<u64> {
        let begun = Instant::now();
        if self.next.is_some_and(|next| begun < next) {
            return None;
        }
        let now_ns = of_threads(proc_fs, pid);
        self.next = Some(begun + PERIOD.max(begun.elapsed() * IDLE_PER_READING));
        if now_ns.is_empty() {
            return None;
        }
        self.add(now_ns);
        Some(self.total_ns)
    }

    fn add(&mut self, now_ns: HashMap<u32, u64>) {
        if let Some(last_ns) = &self.last_ns {
            let waited = now_ns.iter().map(|(tid, now_ns)| {
                // A new thread, or one with the number of another that ended, has waited since it began.
                let before_ns = last_ns.get(tid).filter(|before_ns| *before_ns <= now_ns);
                now_ns - before_ns.unwrap_or(&0)
            });
            self.total_ns = self.total_ns.saturating_add(waited.sum());
        }
        self.last_ns = Some(now_ns);
    }
}

/// Returns what each thread that serves operations has waited since it began, ns, by its number.
fn of_threads(proc_fs: &ProcFs, pid: u32) -> HashMap<u32, u64> {
    let folder = proc_fs.path(pid, "task");
    let threads = fs::read_dir(folder).into_iter().flatten().flatten();
    let waited = threads.filter_map(|thread| {
        let tid = thread.file_name().to_str()?.parse().ok()?;
        let text = |name| fs::read_to_string(thread.path().join(name));
        let schedstat = text("schedstat").ok()?;
        // Time on a CPU, time in the queue for one, turns on one.
        let queued_ns = schedstat.split_ascii_whitespace().nth(1)?.parse().ok()?;
        let serves = text("comm").is_ok_and(|name| name.starts_with(SERVES));
        Some((serves, (tid, queued_ns)))
    });
    let (serving, others): (Vec<_>, Vec<_>) = waited.partition(|(serves, _)| *serves);
    let counted = match serving.is_empty() {
        true => others,
        false => serving,
    };
    counted.into_iter().map(|(_, waited)| waited).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_begin_and_end_count_for_what_they_waited() {
        let mut delay = RunDelay::default();
        let mut total_after = |threads: &[(u32, u64)]| {
            delay.add(threads.iter().copied().collect());
            delay.total_ns
        };
        assert_eq!(total_after(&[(1, 500), (2, 100)]), 0, "before the watch");
        assert_eq!(total_after(&[(1, 530), (2, 100), (3, 7)]), 37);
        assert_eq!(total_after(&[(1, 530)]), 37, "two have ended");
        assert_eq!(total_after(&[(1, 540), (3, 2)]), 49, "another thread 3");
    }

    #[test]
    fn a_made_up_process_is_read_no_more_often_than_it_should() {
        let root = tempfile::tempdir().unwrap();
        let write = |tid: u32, text: &str| {
            let folder = root.path().join(format!("7/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), text).unwrap();
        };
        let proc_fs = ProcFs::at(root.path());
        let mut delay = RunDelay::default();
        assert_eq!(delay.read(&proc_fs, 7), None, "no such process");
        delay.next = None;
        write(7, "900 40 3\n");
        write(8, "x\n");
        assert_eq!(delay.read(&proc_fs, 7), Some(0));
        write(7, "990 70 4\n");
        assert_eq!(delay.read(&proc_fs, 7), None, "too early");
        delay.next = None;
        assert_eq!(delay.read(&proc_fs, 7), Some(30), "of all, for none serves");
        write(9, "5 200 1\n");
        fs::write(root.path().join("7/task/9/comm"), "conn12\n").unwrap();
        write(7, "990 100 4\n");
        delay.next = None;
        assert_eq!(
            delay.read(&proc_fs, 7),
            Some(230),
            "of the new one that serves"
        );
    }
}
