//! What recording and reading back costs: bytes of `io.parquet` per event, and events per second of
//! the spool, of its conversion to Parquet, and of reading. One thread each.
//!
//! Events come from a recorded run, repeated with shifted times, or are made up to resemble a
//! server: 16 threads, uneven files, scans between random accesses, three quarters cache hits.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use seekscope_run::{
    FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState, RunDirectory, RunDocument,
};
use seekscope_stats::SplitMix64;

#[derive(Debug, Parser)]
struct Arguments {
    /// Run whose events are used [default: synthetic events]
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// Events to write and read
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    events: u64,
    /// Folder to write into; a folder is made in it and removed
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = tempfile::tempdir_in(&arguments.dir)?;
    let path = folder.path().join("run");
    let document = RunDocument::begin("trace", Vec::new());
    let directory = RunDirectory::create(&path, &document)?;
    let mut source = Source::of(arguments.run.as_deref())?;
    println!("{} events, {}", arguments.events, source.about());

    let mut writer = directory.io_writer()?;
    writer.file(&file_record())?;
    let generation = measure(|| {
        for i in 0..arguments.events {
            std::hint::black_box(source.event(i));
        }
        Ok(())
    })?;
    source.restart();
    let spool = measure(|| {
        for i in 0..arguments.events {
            writer.event(&source.event(i))?;
        }
        Ok(writer.flush()?)
    })?;
    // What is asked of the source is not the spool's cost.
    report("spool", arguments.events, spool.without(generation));
    drop(writer);
    let parquet = measure(|| Ok(directory.finish_records()?))?;
    report("spool to Parquet", arguments.events, parquet);
    let bytes = std::fs::metadata(path.join("io.parquet"))?.len();
    println!(
        "  io.parquet: {bytes} bytes, {:.2} bytes/event",
        bytes as f64 / arguments.events as f64
    );
    let (mut events, mut sum) = (0u64, 0u64);
    let read = measure(|| {
        Ok(directory.for_each_event(|event| {
            events += 1;
            sum = sum.wrapping_add(event.t_ns ^ event.offset.unwrap_or(0));
        })?)
    })?;
    ensure!(events == arguments.events, "{events} events came back");
    std::hint::black_box(sum);
    report("reading", arguments.events, read);
    Ok(())
}

/// Time something took.
#[derive(Clone, Copy)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
}

impl Cost {
    fn without(self, other: Self) -> Self {
        Self {
            wall_s: self.wall_s - other.wall_s,
            cpu_s: self.cpu_s - other.cpu_s,
        }
    }
}

fn measure(work: impl FnOnce() -> Result<()>) -> Result<Cost> {
    let cpu_s = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let (wall, cpu) = (Instant::now(), cpu_s());
    work()?;
    Ok(Cost {
        wall_s: wall.elapsed().as_secs_f64(),
        cpu_s: cpu_s() - cpu,
    })
}

fn report(what: &str, events: u64, cost: Cost) {
    println!(
        "  {what}: {:.2} s, CPU {:.2} s; {:.0} events/s, CPU {:.0} ns/event",
        cost.wall_s,
        cost.cpu_s,
        events as f64 / cost.wall_s,
        cost.cpu_s * 1e9 / events as f64
    );
}

fn file_record() -> FileRecord {
    FileRecord {
        file_id: 0,
        path: "/data/collection-0.wt".into(),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 0,
        inode: 1,
        size_bytes: 0,
        role: FileRole::Other,
        namespace: None,
        member: None,
    }
}

enum Source {
    Recorded { events: Vec<IoEvent>, span_ns: u64 },
    Synthetic(Box<Synthetic>),
}

impl Source {
    fn of(run: Option<&Path>) -> Result<Self> {
        let Some(run) = run else {
            return Ok(Self::Synthetic(Box::new(Synthetic::new())));
        };
        let (directory, _) = RunDirectory::open(run)?;
        let mut events = Vec::new();
        directory.for_each_event(|event| events.push(*event))?;
        let first = events.iter().map(|e| e.t_ns).min().context("no events")?;
        let last = events.iter().map(|e| e.t_ns).max().context("no events")?;
        Ok(Self::Recorded {
            events,
            span_ns: last - first + 1,
        })
    }

    fn about(&self) -> String {
        match self {
            Self::Recorded { events, .. } => format!("{} recorded ones repeated", events.len()),
            Self::Synthetic(_) => "synthetic".into(),
        }
    }

    fn restart(&mut self) {
        if let Self::Synthetic(synthetic) = self {
            **synthetic = Synthetic::new();
        }
    }

    fn event(&mut self, i: u64) -> IoEvent {
        match self {
            Self::Recorded { events, span_ns } => {
                let count = events.len() as u64;
                let event = events[usize::try_from(i % count).unwrap_or(0)];
                IoEvent {
                    t_ns: event.t_ns + i / count * *span_ns,
                    ..event
                }
            }
            Self::Synthetic(synthetic) => synthetic.event(),
        }
    }
}

const THREADS: usize = 16;
const BLOCK: u64 = 4096;

/// A server made up.
struct Synthetic {
    random: SplitMix64,
    t_ns: u64,
    /// Where each thread's scan stands.
    positions: [u64; THREADS],
}

impl Synthetic {
    fn new() -> Self {
        Self {
            random: SplitMix64::new(1),
            t_ns: 1_000_000_000_000,
            positions: [0; THREADS],
        }
    }

    fn event(&mut self) -> IoEvent {
        let mut below = |n| self.random.below(n);
        self.t_ns += 500 + below(6_000);
        let thread = usize::try_from(below(THREADS as u64)).unwrap_or(0);
        // The smaller of two: few files get most accesses.
        let file_id = below(40).min(below(40));
        let pages = [1, 1, 2, 7, 8][usize::try_from(below(5)).unwrap_or(0)];
        let scans = thread % 2 == 0;
        let offset = if scans {
            self.positions[thread]
        } else {
            below(1 << 20) * BLOCK
        };
        self.positions[thread] = offset + pages * BLOCK;
        let hit = below(4) > 0;
        let write = below(8) == 0;
        let bytes = u32::try_from(pages * BLOCK).unwrap_or(u32::MAX);
        let waited = IoFlags::WAITED | IoFlags::DEVICE_READ;
        IoEvent {
            t_ns: self.t_ns,
            pid: 4242,
            tid: 4242 + u32::try_from(thread).unwrap_or(0),
            file_id: u32::try_from(file_id).unwrap_or(0),
            op: if write { IoOp::Pwrite } else { IoOp::Pread },
            flags: IoFlags(if hit || write { 0 } else { waited }),
            offset: Some(offset),
            length: bytes,
            latency_ns: if hit {
                900 + below(4_000)
            } else {
                60_000 + below(200_000)
            },
            result: bytes.cast_signed(),
            device_read_bytes: if hit || write { 0 } else { bytes },
            request: None,
        }
    }
}
