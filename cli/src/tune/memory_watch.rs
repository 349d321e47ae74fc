//! Prevents trials from getting the server killed: watches the memory of its groups and its host while it is
//! under load or its data is being loaded.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::units::format_bytes;
use seekscope_server::{GroupMemory, ProcFs};

use super::arena::{Fit, Unfit};
use crate::bench::{Repeatable, Stage, Target, Watch};
use crate::exit::Interrupted;

/// Short compared with the time in which a server fills what is left.
const LOOK: Duration = Duration::from_millis(50);
/// What is left of a limit when a run is ended: a sixteenth, but at most `LEFT_BYTES_MAX`.
const LEFT_SHARE: u64 = 16;
const LEFT_BYTES_MAX: u64 = 1 << 30;

/// Watches the memory of a server while trials run.
#[derive(Debug)]
pub struct MemoryWatch {
    watched: Vec<Watched>,
}

/// Memory with a limit.
#[derive(Debug)]
struct Watched {
    whose: Whose,
    limit_bytes: u64,
    /// Use at which the run is ended.
    full_bytes: u64,
}

#[derive(Debug)]
enum Whose {
    Group(GroupMemory),
    Host(ProcFs),
}

impl MemoryWatch {
    /// Watches the server's host and all groups of its process that have a limit; nothing if they cannot be
    /// observed.
    pub fn of(proc_fs: &ProcFs, pid: Option<u32>) -> Self {
        let groups = pid.and_then(|pid| GroupMemory::all_of(proc_fs, pid));
        let groups = groups.unwrap_or_default().into_iter().map(Whose::Group);
        let host = pid.map(|_| Whose::Host(proc_fs.clone()));
        Self {
            watched: host
                .into_iter()
                .chain(groups)
                .filter_map(Watched::of)
                .collect(),
        }
    }

    /// Loads the workload's data, unless the memory is nearly full before that is done.
    pub async fn load(
        &self,
        workload: &Repeatable,
        stage: &mut Stage,
        target: &Target,
        name: &str,
    ) -> Fit<()> {
        let abandonment = Watch::default().abandonment;
        stage.abandonment = abandonment.clone();
        let work = workload.load(stage, target, name);
        let loaded = self.over(work, || abandonment.decide()).await;
        stage.abandonment = Watch::default().abandonment;
        loaded
    }

    /// Returns the result of the work, or why it was given up.
    async fn over<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        give_up: impl FnOnce(),
    ) -> Fit<T> {
        tokio::pin!(work);
        let reason = tokio::select! {
            biased;
            worked = &mut work => return worked.map(Ok),
            reason = self.until_nearly_full() => reason,
        };
        give_up();
        match work.await {
            Err(error) if error.is::<Interrupted>() => Err(error),
            _ => Ok(Err(Unfit(reason))),
        }
    }

    /// Completes with the reason when any watched memory is nearly full; never if nothing is watched.
    pub async fn until_nearly_full(&self) -> String {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(reason) = self.nearly_full() {
                return reason;
            }
        }
    }

    fn nearly_full(&self) -> Option<String> {
        self.watched.iter().find_map(Watched::nearly_full)
    }
}

impl Watched {
    fn of(whose: Whose) -> Option<Self> {
        let limit_bytes = whose.limit_bytes()?;
        let held_bytes = whose.held_bytes()?.min(limit_bytes);
        let left_bytes = (limit_bytes / LEFT_SHARE).min(LEFT_BYTES_MAX);
        // A group that is nearly full at the start may take half of what is left.
        let half_bytes = held_bytes + (limit_bytes - held_bytes) / 2;
        Some(Self {
            full_bytes: half_bytes.max(limit_bytes - left_bytes),
            whose,
            limit_bytes,
        })
    }

    fn nearly_full(&self) -> Option<String> {
        let held_bytes = self.whose.held_bytes()?;
        let (held, limit) = (format_bytes(held_bytes), format_bytes(self.limit_bytes));
        (held_bytes > self.full_bytes).then(|| match &self.whose {
            Whose::Group(group) => format!(
                "ended before the server's memory group was full, in which it would have been killed: {held} \
                 of the {limit} that {} allows were taken, caches of files not counted",
                group.folder().display()
            ),
            Whose::Host(_) => format!(
                "ended before the host's memory was full, where the server might have been killed: {held} of \
                 {limit} were taken, caches of files not counted"
            ),
        })
    }
}

impl Whose {
    fn limit_bytes(&self) -> Option<u64> {
        match self {
            Self::Group(group) => group.limit_bytes(),
            Self::Host(proc_fs) => Some(proc_fs.host_memory_bytes()?.0),
        }
    }

    fn held_bytes(&self) -> Option<u64> {
        match self {
            Self::Group(group) => group.held_bytes(),
            Self::Host(proc_fs) => {
                let (all_bytes, available_bytes) = proc_fs.host_memory_bytes()?;
                Some(all_bytes.saturating_sub(available_bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A group of version 2 with a limit of 640 MiB, with `/proc` beside it.
    fn host(root: &Path) -> ProcFs {
        let top = root.join("groups");
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mount = format!("32 23 0:29 / {} rw - cgroup2 cgroup2 rw\n", top.display());
        write("self/mountinfo", &mount);
        write("7/cgroup", "0::/pod/db\n");
        write("groups/pod/memory.max", &(640 * MIB).to_string());
        write("groups/pod/db/memory.max", "max\n");
        let stat = format!("anon 1\ninactive_file {}\nactive_file 0\n", 400 * MIB);
        write("groups/pod/memory.stat", &stat);
        hold(root, 100);
        ProcFs::at(root)
    }

    /// Sets the memory in use, in addition to 400 MiB of caches.
    fn hold(root: &Path, mib: u64) {
        let usage = (400 + mib) * MIB;
        fs::write(root.join("groups/pod/memory.current"), usage.to_string()).unwrap();
    }

    #[test]
    fn a_run_is_ended_before_an_enclosing_group_is_full() {
        let root = tempfile::tempdir().unwrap();
        let watch = MemoryWatch::of(&host(root.path()), Some(7));
        hold(root.path(), 600);
        assert_eq!(watch.nearly_full(), None);
        hold(root.path(), 601);
        let reason = watch.nearly_full().unwrap();
        assert!(
            reason.contains("601")
                && reason.contains("640")
                && reason.contains("groups/pod allows"),
            "{reason}"
        );
    }

    #[test]
    fn a_group_that_is_nearly_full_at_the_beginning_may_take_half_of_what_is_left() {
        let root = tempfile::tempdir().unwrap();
        let proc_fs = host(root.path());
        hold(root.path(), 620);
        let watch = MemoryWatch::of(&proc_fs, Some(7));
        hold(root.path(), 630);
        assert_eq!(watch.nearly_full(), None);
        hold(root.path(), 631);
        assert!(watch.nearly_full().is_some());
    }

    #[test]
    fn a_run_is_ended_before_the_host_is_full() {
        let root = tempfile::tempdir().unwrap();
        let proc_fs = host(root.path());
        let available = |mib: u64| {
            let text = format!("MemTotal:  8192 kB\nMemAvailable: {} kB\n", mib);
            fs::write(root.path().join("meminfo"), text).unwrap();
        };
        available(4096);
        let watch = MemoryWatch::of(&proc_fs, Some(7));
        available(512);
        assert_eq!(watch.nearly_full(), None);
        available(511);
        let reason = watch.nearly_full().unwrap();
        assert!(reason.contains("the host's memory"), "{reason}");
    }

    #[tokio::test]
    async fn what_fills_the_memory_is_given_up() {
        let root = tempfile::tempdir().unwrap();
        let watch = MemoryWatch::of(&host(root.path()), Some(7));
        let fits = watch.over(async { Ok(3) }, || panic!("it fits")).await;
        assert_eq!(fits.unwrap(), Ok(3));
        hold(root.path(), 630);
        let given_up = tokio::sync::Notify::new();
        let filling = async {
            given_up.notified().await;
            anyhow::bail!("given up")
        };
        let filled: Fit<()> = watch.over(filling, || given_up.notify_one()).await;
        let Unfit(reason) = filled.unwrap().unwrap_err();
        assert!(reason.contains("memory group was full"), "{reason}");
    }

    #[test]
    fn nothing_is_watched_where_groups_cannot_be_seen() {
        let root = tempfile::tempdir().unwrap();
        let proc_fs = host(root.path());
        for pid in [None, Some(8)] {
            assert!(MemoryWatch::of(&proc_fs, pid).watched.is_empty());
        }
    }
}
