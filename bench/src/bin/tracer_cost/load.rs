//! The traced process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use seekscope_stats::SplitMix64;

use crate::role::{Role, serve as serve_role};

pub(crate) const FILE_BYTES: u64 = 64 << 20;
const READ_BYTES: usize = 4096;
/// Paced reads come in bursts of this length: shorter sleeps are not kept.
const BURST: Duration = Duration::from_millis(1);

/// One run of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// CPU time of the reading thread per call, ns.
    pub(crate) cpu_ns: f64,
    /// Time on the clock per call, ns.
    pub(crate) wall_ns: f64,
}

/// Makes the file that is read.
pub(crate) fn make_file(path: &Path) -> Result<()> {
    let bytes = usize::try_from(FILE_BYTES)?;
    std::fs::write(path, vec![1; bytes]).context("the file to be read")
}

/// A process that reads `calls` times whenever it is told to.
pub(crate) fn start(file: &Path, calls: u64) -> Result<Role> {
    Role::start(&["load".into(), file.display().to_string(), calls.to_string()])
}

/// Makes the process read once; returns what that took.
pub(crate) fn sample(load: &mut Role) -> Result<Sample> {
    let said = load.go()?;
    let (cpu_ns, wall_ns) = said.split_once(' ').context("no figures")?;
    Ok(Sample {
        cpu_ns: cpu_ns.parse()?,
        wall_ns: wall_ns.parse()?,
    })
}

/// Runs in that process: reads whenever it is told to.
pub(crate) fn serve(file: &Path, calls: u64) -> Result<()> {
    let mut reader = Reader::open(file, 1)?;
    reader.warm_up()?;
    serve_role(|| {
        let (cpu, start) = (thread_cpu_ns()?, Instant::now());
        reader.read(calls)?;
        let wall_ns = start.elapsed().as_nanos() as f64 / calls as f64;
        let cpu_ns = (thread_cpu_ns()? - cpu) as f64 / calls as f64;
        Ok(format!("{cpu_ns} {wall_ns}"))
    })
}

/// Like [`serve`], at a rate, on several threads; says how many calls it made in how many seconds.
pub(crate) fn serve_paced(file: &Path, calls_per_s: u64, seconds: u64, threads: u64) -> Result<()> {
    let readers = || (0..threads).map(|seed| Reader::open(file, seed));
    for reader in readers() {
        reader?.warm_up()?;
    }
    serve_role(|| {
        let start = Instant::now();
        let (rate, time) = (calls_per_s / threads, Duration::from_secs(seconds));
        let readers = readers().collect::<Result<Vec<_>>>()?;
        let calls: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = readers
                .into_iter()
                .map(|mut reader| scope.spawn(move || reader.read_paced(rate, time)))
                .collect();
            let joined = threads.into_iter().map(|thread| {
                let calls = thread.join();
                calls.unwrap_or_else(|_| anyhow::bail!("a reading thread panicked"))
            });
            joined.sum::<Result<u64>>()
        })?;
        Ok(format!("{calls} {}", start.elapsed().as_secs_f64()))
    })
}

struct Reader {
    file: File,
    random: SplitMix64,
    buffer: [u8; READ_BYTES],
}

impl Reader {
    fn open(file: &Path, seed: u64) -> Result<Self> {
        Ok(Self {
            file: File::open(file)?,
            random: SplitMix64::new(seed),
            buffer: [0; READ_BYTES],
        })
    }

    /// The file into the page cache, and this code into the processor's.
    fn warm_up(&mut self) -> Result<()> {
        std::io::copy(&mut &self.file, &mut std::io::sink())?;
        self.read(10_000)
    }

    fn read(&mut self, calls: u64) -> Result<()> {
        for _ in 0..calls {
            let offset = self.random.below(FILE_BYTES / 4096) * 4096;
            self.file.read_exact_at(&mut self.buffer, offset)?;
        }
        Ok(())
    }

    fn read_paced(&mut self, calls_per_s: u64, time: Duration) -> Result<u64> {
        let start = Instant::now();
        let mut made = 0;
        while start.elapsed() < time {
            let due = (start.elapsed().as_secs_f64() * calls_per_s as f64).floor();
            // Never more than a burst of ten: time slept away is not made up for in a flood.
            let most = calls_per_s / 100;
            #[expect(clippy::cast_possible_truncation, reason = "bounded by the line after")]
            let due = (due.max(0.0) as u64).saturating_sub(made).min(most);
            self.read(due)?;
            made += due;
            std::thread::sleep(BURST);
        }
        Ok(made)
    }
}

fn thread_cpu_ns() -> Result<u64> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Ok(u64::try_from(time.tv_sec)? * 1_000_000_000 + u64::try_from(time.tv_nsec)?)
}
