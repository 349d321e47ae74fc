//! Reads this host's kernel counters: for the server's process, for ours, for the disk, and for all tasks.

use std::fs;

use rustix::time::{ClockId, clock_gettime};
use seekscope_run::pressure_totals;

use super::Rows;
use super::cgroup::GroupCounters;
use super::run_delay::RunDelay;
use crate::process::{ProcFs, ProcessIdentity, ticks_to_ns};

/// `/proc/diskstats` counts sectors of this size, whatever the disk's own sector size.
const SECTOR_BYTES: u64 = 512;
/// Fields after the disk's name (Documentation/admin-guide/iostats.rst), and the factor of each to our unit.
const DISK_FIELDS: [(usize, &str, u64); 13] = [
    (0, "reads", 1),
    (1, "reads_merged", 1),
    (2, "read_bytes", SECTOR_BYTES),
    (3, "read_ms", 1),
    (4, "writes", 1),
    (5, "writes_merged", 1),
    (6, "write_bytes", SECTOR_BYTES),
    (7, "write_ms", 1),
    (8, "in_flight", 1),
    (9, "busy_ms", 1),
    (10, "queue_ms", 1),
    (15, "flushes", 1),
    (16, "flush_ms", 1),
];

/// Fields of the line `cpu` of `/proc/stat`, ticks of all CPUs together (proc_stat(5)). The time of guests is
/// included in `user` and `nice`.
const CPU_BUSY: [usize; 5] = [0, 1, 2, 5, 6];
const CPU_STOLEN: usize = 7;

/// Time of all CPUs of this host together since it started; `None` if the kernel does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Time used by all processes and the kernel.
    pub busy_ns: Option<u64>,
    /// Time withheld by the hypervisor.
    pub stolen_ns: Option<u64>,
}

impl CpuTimes {
    pub fn read(proc_fs: &ProcFs) -> Self {
        let text = fs::read_to_string(proc_fs.root.join("stat")).unwrap_or_default();
        let fields = text.lines().find_map(|line| line.strip_prefix("cpu "));
        let ticks: Vec<u64> = fields
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let busy = CPU_BUSY.iter().map(|&at| ticks.get(at));
        let busy: Option<u64> = busy.map(Option::<&u64>::copied).sum();
        Self {
            busy_ns: busy.map(ticks_to_ns),
            stolen_ns: ticks.get(CPU_STOLEN).copied().map(ticks_to_ns),
        }
    }

    /// Returns the time that was used or withheld since `earlier`, ns.
    pub fn taken_since(&self, earlier: &Self) -> Option<u64> {
        let stolen = self.stolen_ns.unwrap_or(0);
        let stolen = stolen.saturating_sub(earlier.stolen_ns.unwrap_or(0));
        let busy = self.busy_ns?.saturating_sub(earlier.busy_ns?);
        Some(busy.saturating_add(stolen))
    }
}

/// The readers of this host's counters, with what they need to find the server's process and disk.
#[derive(Debug)]
pub(super) struct HostCounters {
    proc_fs: ProcFs,
    process: Option<ProcessIdentity>,
    device: Option<String>,
    group: GroupCounters,
    run_delay: RunDelay,
}

impl HostCounters {
    pub(super) fn new(proc_fs: &ProcFs, pid: Option<u32>, device: Option<&str>) -> Self {
        Self {
            process: pid.and_then(|pid| proc_fs.identity(pid).ok()),
            device: device.map(String::from),
            group: GroupCounters::find(proc_fs, pid),
            run_delay: RunDelay::default(),
            proc_fs: proc_fs.clone(),
        }
    }

    pub(super) fn read(&mut self, rows: &mut Rows) {
        // Another process may have been given the number of one that ended.
        let process = self.process.as_ref();
        let alive = process.and_then(|p| Some((p.pid, self.proc_fs.cpu_ns_of(p)?)));
        if let Some((pid, cpu_ns)) = alive {
            self.read_process(pid, cpu_ns, rows);
            self.group.read(self.device.as_deref(), rows);
        }
        self.group.read_oom_kills(rows);
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let own_cpu_ns = own.tv_sec as f64 * 1e9 + own.tv_nsec as f64;
        rows.push("client", "cpu_ns", own_cpu_ns);
        let own_rss = self.proc_fs.rss_bytes(std::process::id());
        rows.count("client", "rss_bytes", own_rss);
        if let Some(device) = &self.device {
            self.read_disk(device, rows);
        }
        self.read_cpus(rows);
        for resource in ["cpu", "io", "memory"] {
            let path = self.proc_fs.root.join("pressure").join(resource);
            let text = fs::read_to_string(path).unwrap_or_default();
            for (kind, total_us) in pressure_totals(&text) {
                if ["some", "full"].contains(&kind) {
                    let name = format!("{resource}.{kind}_us");
                    rows.push("pressure", name, total_us as f64);
                }
            }
        }
    }

    /// Reads the process's counters. Anyone may read CPU time; only the process's user and root may read I/O.
    fn read_process(&mut self, pid: u32, cpu_ns: u64, rows: &mut Rows) {
        rows.push("process", "cpu_ns", cpu_ns as f64);
        rows.count("process", "rss_bytes", self.proc_fs.rss_bytes(pid));
        if let Some(ns) = self.run_delay.read(&self.proc_fs, pid) {
            rows.push("process", "run_delay_ns", ns as f64);
        }
        if let Ok(io) = self.proc_fs.io_and(pid, cpu_ns) {
            for (name, value) in [
                ("read_calls", io.read_calls),
                ("write_calls", io.write_calls),
                ("read_bytes", io.device_read_bytes),
                ("write_bytes", io.device_write_bytes),
            ] {
                rows.push("process", name, value as f64);
            }
        }
    }

    /// Reads the CPU time used by all processes together, and the time withheld by the hypervisor.
    fn read_cpus(&self, rows: &mut Rows) {
        let used = CpuTimes::read(&self.proc_fs);
        for (name, ns) in [("busy_ns", used.busy_ns), ("stolen_ns", used.stolen_ns)] {
            if let Some(ns) = ns {
                rows.push("cpu", name, ns as f64);
            }
        }
    }

    fn read_disk(&self, device: &str, rows: &mut Rows) {
        let text = fs::read_to_string(self.proc_fs.root.join("diskstats")).unwrap_or_default();
        let fields = text.lines().find_map(|line| fields_of(line, device));
        for (at, name, unit) in DISK_FIELDS {
            let value = fields.as_ref().and_then(|f| f.get(at)?.parse::<u64>().ok());
            if let Some(value) = value {
                rows.push("diskstats", name, value.saturating_mul(unit) as f64);
            }
        }
    }
}

/// Returns the fields after the name, if the line is the device's.
fn fields_of<'a>(line: &'a str, device: &str) -> Option<Vec<&'a str>> {
    let mut fields = line.split_ascii_whitespace();
    let (major, minor) = (fields.next()?, fields.next()?);
    let _name = fields.next()?;
    (device.split_once(':') == Some((major, minor))).then(|| fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(rows: &Rows, source: &str, name: &str) -> Option<f64> {
        let mut samples = rows.samples.iter();
        let sample = samples.find(|s| s.source == source && s.name == name)?;
        Some(sample.value)
    }

    #[test]
    fn counters_of_a_made_up_host() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let stat = |start: u32| {
            format!("7 (mongod) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 12 0 {start} 1 2 3\n")
        };
        write("7/stat", &stat(99));
        write(
            "7/status",
            "Name:\tmongod\nVmHWM:\t  9000 kB\nVmRSS:\t    2048 kB\n",
        );
        write("7/task/7/schedstat", "900 40 3\n");
        write(
            "diskstats",
            "8 1 sda1 9 9 9\n 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n x\n254\n",
        );
        write(
            "pressure/io",
            "some avg10=1.0 total=5\nfull avg10=0.0 total=3\nodd total=1\n",
        );
        write("pressure/cpu", "some total=x\n");
        write(
            "stat",
            "cpu  100 20 30 4000 50 6 7 8 90 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
        );
        let read = |device: &str| {
            let mut host = HostCounters::new(&ProcFs::at(root.path()), Some(7), Some(device));
            let mut rows = Rows::now();
            host.read(&mut rows);
            (rows, host)
        };
        let (rows, mut host) = read("254:0");
        assert_eq!(value(&rows, "process", "rss_bytes"), Some(2048.0 * 1024.0));
        assert_eq!(value(&rows, "process", "cpu_ns"), Some(2e9));
        assert_eq!(value(&rows, "process", "run_delay_ns"), Some(0.0));
        assert_eq!(
            value(&rows, "process", "read_bytes"),
            None,
            "no permission, no row"
        );
        assert_eq!(value(&rows, "diskstats", "read_bytes"), Some(3.0 * 512.0));
        assert_eq!(value(&rows, "diskstats", "flush_ms"), Some(17.0));
        assert_eq!(value(&rows, "pressure", "io.full_us"), Some(3.0));
        assert_eq!(value(&rows, "pressure", "cpu.some_us"), None);
        assert!(value(&rows, "client", "cpu_ns").unwrap() > 0.0);

        assert_eq!(value(&rows, "cpu", "busy_ns"), Some(1.63e9));
        assert_eq!(value(&rows, "cpu", "stolen_ns"), Some(8e7));

        let (rows, _) = read("8:1");
        assert_eq!(value(&rows, "diskstats", "reads"), Some(9.0));
        assert_eq!(
            value(&rows, "diskstats", "in_flight"),
            None,
            "an older kernel's line"
        );
        let (rows, _) = read("8:10");
        assert_eq!(value(&rows, "diskstats", "reads"), None);

        // The number now belongs to another process.
        write("7/stat", &stat(100));
        let mut rows = Rows::now();
        host.read(&mut rows);
        assert_eq!(value(&rows, "process", "cpu_ns"), None);
    }
}
