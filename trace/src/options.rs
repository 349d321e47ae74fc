//! What to trace.

use std::path::PathBuf;
use std::time::Duration;

use seekscope_run::IoKind;

use crate::groups::Group;

/// Which way into the kernel to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// The backend that costs the traced calls least, if it loads, else the other.
    #[default]
    Auto,
    /// The backend that costs all other system calls of the host least, if it loads, else the other: for a server
    /// that makes several calls on sockets for each on a file, and that is watched for long.
    Sparing,
    /// Typed tracepoints or nothing.
    TpBtf,
    /// Classic tracepoints or nothing.
    Tracepoint,
}

/// The processes to trace. Ids are those of the caller's PID namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// One process, without its children: the cheapest, as only a constant is compared.
    Process(u32),
    /// These processes and, with `children`, those that they or their children start later.
    Processes { pids: Vec<u32>, children: bool },
    /// The processes of a control group and the groups below it (a folder below /sys/fs/cgroup),
    /// including those that start or move there later; moves are noticed within a second.
    Cgroup(PathBuf),
}

/// What the kernel programs let pass. Everything else is neither recorded nor counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only these files, and files below these folders; empty: all. At most 256. A file is
    /// recognised by its inode, so it must exist when tracing begins.
    pub paths: Vec<PathBuf>,
    /// Only files on the filesystems that hold these paths; empty: all. At most 8.
    pub devices_of: Vec<PathBuf>,
    /// Only calls that took at least this long.
    pub latency_min: Duration,
}

/// Keeps some regions of each file and drops the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One region in this many is kept. At least 1.
    pub one_in: u32,
    /// Bytes per region, a power of two.
    pub region_bytes: u64,
}

/// Which requests of a disk are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestScope {
    /// Requests for files that a traced process has opened, whoever sends them: kernel threads send
    /// off written data. All others are only counted, by what they are for.
    #[default]
    TracedFiles,
    /// All requests, whoever causes them.
    WholeDisk,
}

/// What to trace, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    pub followed: Followed,
    /// Kinds of system calls; [`IoKind::Discard`] has none.
    pub kinds: Vec<IoKind>,
    pub filter: Filter,
    pub sampling: Option<Sampling>,
    /// Whether to only count, per file and operation, without events. See [`crate::FileTotals`].
    pub only_totals: bool,
    /// Room for records not yet drained, bytes, 64 each. Rounded up to a power of two and to the
    /// page size; at most 1 GiB. At 300,000 events per second, 16 MiB last a second.
    pub ring_bytes: u32,
    /// The way into the kernel.
    pub backend: BackendChoice,
    /// Kinds of I/O besides the plain calls, which are always followed. Those that the kernel does
    /// not allow are named in the trailer. Filters also apply to these groups, except requests of
    /// disks, which are chosen by disk and file.
    pub groups: Vec<Group>,
    /// Whole disks, `(major, minor)`, whose requests to follow with [`Group::Block`], at most 16.
    /// Empty: the disks that hold the processes' open files.
    pub disks: Vec<(u32, u32)>,
    /// The requests of these disks to record.
    pub requests: RequestScope,
}

impl TraceOptions {
    /// Returns options for the reads and writes of one process: all of them, 16 MiB of ring, the
    /// best backend.
    pub fn new(pid: u32) -> Self {
        Self::of(Followed::Process(pid))
    }

    /// Returns the same options for several processes.
    pub fn of(followed: Followed) -> Self {
        Self {
            followed,
            kinds: vec![IoKind::Read, IoKind::Write],
            filter: Filter::default(),
            sampling: None,
            only_totals: false,
            ring_bytes: 16 << 20,
            backend: BackendChoice::Auto,
            groups: vec![Group::Calls],
            disks: Vec::new(),
            requests: RequestScope::default(),
        }
    }

    /// Returns options that count the calls of a database server, for as long as one likes.
    pub fn totals_of_server(pid: u32) -> Self {
        Self {
            kinds: vec![IoKind::Read, IoKind::Write, IoKind::Sync],
            groups: Group::OF_DATABASES.to_vec(),
            backend: BackendChoice::Sparing,
            only_totals: true,
            // Only the names of files that are opened go through it.
            ring_bytes: 1 << 20,
            ..Self::new(pid)
        }
    }

    /// Returns whether some or all reads of the files that are followed are left out.
    pub(crate) fn leaves_out_reads(&self) -> bool {
        let is_some = !self.filter.latency_min.is_zero() || self.sampling.is_some();
        is_some || !self.kinds.contains(&IoKind::Read)
    }

    /// Returns whether some files are followed, and others not.
    pub(crate) fn chooses_files(&self) -> bool {
        !self.filter.paths.is_empty() || !self.filter.devices_of.is_empty()
    }

    /// Returns texts on what is left out; empty if nothing is.
    pub(crate) fn describe_filters(&self) -> Vec<String> {
        let mut all = Vec::new();
        let names = |paths: &[PathBuf]| -> String {
            let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            names.join(", ")
        };
        if self.kinds.len() < 3 {
            let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
            all.push(format!("only {} calls", kinds.join(" and ")));
        }
        if !self.filter.paths.is_empty() {
            all.push(format!(
                "only files at or below {}",
                names(&self.filter.paths)
            ));
        }
        if !self.filter.devices_of.is_empty() {
            let paths = names(&self.filter.devices_of);
            all.push(format!("only files on the filesystems of {paths}"));
        }
        if !self.filter.latency_min.is_zero() {
            let least = self.filter.latency_min;
            all.push(format!("only calls that took {least:?} or longer"));
        }
        if let Some(Sampling {
            one_in,
            region_bytes,
        }) = self.sampling
        {
            all.push(format!(
                "one in {one_in} regions of {region_bytes} bytes of each file, and all calls that \
                 belong to no region, such as syncs"
            ));
        }
        all
    }
}
