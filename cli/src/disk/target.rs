//! Where a disk is measured: checks before anything is written, the file, and its surroundings.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use seekscope_disk::{
    Contents, DiskError, FillOptions, Job, RateLimits, TestFile, probe_direct, safety,
};
use seekscope_run::units::{format_bytes, format_ns, nanoseconds};
use seekscope_run::{
    DeviceFacts, Disk, DiskMeasurement, EngineKind, HostFacts, IoPressure, Limitation, Surroundings,
};
use seekscope_server::{CgroupTree, SlowDisk, SlowDiskSpec, Workspace};

use crate::args::{DiskTargetArgs, EmulatedDisk};
use crate::environment::Environment;
use crate::exit::Unreadable;
use crate::progress::Progress;
use crate::session::Session;

/// Limits beside a database: never more than this, and only while the host does not suffer.
pub const LIMITS_BESIDE_DATABASE: RateLimits = RateLimits {
    requests_per_s: 200.0,
    bytes_per_s: 20e6,
    pressure_max: 0.6,
};
pub const FILL_BYTES_PER_S_BESIDE_DATABASE: u64 = 20_000_000;
const FILE_BYTES: u64 = 4 << 30;
const FILE_BYTES_BESIDE_DATABASE: u64 = 256 << 20;
/// Smaller files fit into the caches of disks and controllers.
const FILE_BYTES_MIN: u64 = 64 << 20;

/// What was asked for and what was found out before anything was written.
#[derive(Debug)]
pub struct DiskTarget {
    directory: PathBuf,
    existing: Option<TestFile>,
    file_bytes: u64,
    beside_database: bool,
    seed: u64,
    device: DeviceFacts,
    /// The job does no I/O, so nothing needs to be written.
    without_contents: bool,
}

impl DiskTarget {
    /// Refuses what cannot or should not be measured. Nothing has been created yet. `extra_bytes` are needed in
    /// addition to the file.
    pub fn check(directory: &Path, args: &DiskTargetArgs, extra_bytes: u64) -> Result<Self> {
        let existing = match &args.read_existing {
            Some(path) => Some(TestFile::open_existing(path)?),
            None => None,
        };
        let asked = args.read_existing.as_deref().unwrap_or(directory);
        let path = asked.canonicalize().map_err(Unreadable::at(asked))?;
        let folder = match &existing {
            Some(_) => path.parent().unwrap_or(Path::new("/")).to_path_buf(),
            None => path.clone(),
        };
        if existing.is_none() && !folder.is_dir() {
            return Err(DiskError::NotADirectory(path).into());
        }
        if !args.next_to_database {
            safety::check_no_database(&folder, Path::new("/proc"))?;
        }
        let file_bytes = match &existing {
            Some(file) => file.bytes(),
            None => file_bytes(&folder, args, extra_bytes)?,
        };
        let device = DeviceFacts::of_path(Path::new("/"), &path)
            .with_context(|| format!("cannot look at {}", path.display()))?;
        Ok(Self {
            directory: folder,
            existing,
            file_bytes,
            beside_database: args.next_to_database,
            seed: args.seed,
            device,
            without_contents: false,
        })
    }

    /// Returns the file's size, as far as it is known before filling.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the limits that no job may exceed.
    pub fn limits(&self) -> Option<RateLimits> {
        self.beside_database.then_some(LIMITS_BESIDE_DATABASE)
    }

    /// Refuses a job that cannot run here, before anything is written.
    pub fn check_job(&mut self, job: &Job) -> Result<()> {
        self.without_contents = job.facts.engine == EngineKind::Null;
        if let Some(file) = &self.existing {
            job.check_on(file)?;
        }
        Ok(job.check(self.file_bytes)?)
    }

    /// Records in the run what is known of the target.
    pub fn describe(&self, session: &mut Session) {
        let host = HostFacts::read(Path::new("/"));
        let root = Path::new("/");
        let measurement = DiskMeasurement {
            existing_file: self
                .existing
                .as_ref()
                .map(|f| f.path().display().to_string()),
            file_bytes: self.file_bytes,
            surroundings: Surroundings::read(root, &self.directory, &self.device, &host),
            clock_read_ns: seekscope_disk::clock_read_ns(),
            ..DiskMeasurement::default()
        };
        if self.beside_database && IoPressure::read(root).is_none() {
            session.limit(Limitation {
                what: "whether the host suffered was not watched; only the rate was limited".into(),
                why: "the kernel offers no pressure stall information (/proc/pressure/io)".into(),
                remedy: "boot with psi=1".into(),
            });
        }
        session.document.host = Some(host);
        session.document.device = Some(self.device.clone());
        session.document.disk = Some(measurement);
    }

    /// Returns a description of what will be written, for printing beforehand.
    pub fn announcement(&self, writes_more: &str) -> String {
        match &self.existing {
            Some(file) => format!(
                "Reads {} ({}); nothing is written to it.",
                file.path().display(),
                format_bytes(self.file_bytes)
            ),
            None if self.without_contents => "No I/O is made.".into(),
            None => format!(
                "Writes {} into a file without a name in {}{writes_more}; it is gone afterwards, however this ends.",
                format_bytes(self.file_bytes),
                self.directory.display()
            ),
        }
    }

    /// Returns the file, created and filled if it is ours, and records what is known of it in the run. `until`
    /// limits the time for filling; `direct` says that direct I/O will be used.
    pub fn file(
        self,
        session: &mut Session,
        until: Option<Instant>,
        direct: bool,
        progress: Progress,
        cancel: &AtomicBool,
    ) -> Result<TestFile> {
        let without_contents = self.without_contents;
        let file = match self.existing {
            Some(file) => file,
            None if without_contents => TestFile::create_sparse(&self.directory, self.file_bytes)?,
            None => self.filled(until, direct, progress, cancel)?,
        };
        if let Some(measurement) = &mut session.document.disk {
            measurement.file_bytes = file.bytes();
            if !without_contents {
                measurement.direct = probe_direct(&file)?;
            }
        }
        session.save()?;
        Ok(file)
    }

    fn filled(
        &self,
        until: Option<Instant>,
        direct: bool,
        progress: Progress,
        cancel: &AtomicBool,
    ) -> Result<TestFile> {
        if direct {
            // Detect that direct I/O is refused before anything is written.
            TestFile::create_empty(&self.directory)?.open(true)?;
        }
        let size = format_bytes(self.file_bytes);
        let step = progress.counted(
            format!("filling {size} with incompressible data, MiB"),
            self.file_bytes >> 20,
        );
        let mut fill = FillOptions::new(Contents::Random { seed: self.seed });
        fill.until = until;
        if self.beside_database {
            fill.bytes_per_s = Some(FILL_BYTES_PER_S_BESIDE_DATABASE);
        }
        let started = Instant::now();
        let mut written = |bytes: u64| step.at(bytes >> 20);
        let file = TestFile::create(&self.directory, self.file_bytes, fill, &mut written, cancel)?;
        note_short_fill(progress, &file, self.file_bytes, started.elapsed());
        Ok(file)
    }
}

fn note_short_fill(progress: Progress, file: &TestFile, wanted_bytes: u64, took: Duration) {
    if file.bytes() < wanted_bytes {
        let took_ns = nanoseconds(took);
        progress.say(format!(
            "  the file is {} instead of {}: this disk took {} for that much",
            format_bytes(file.bytes()),
            format_bytes(wanted_bytes),
            format_ns(took_ns)
        ));
    }
}

fn file_bytes(directory: &Path, args: &DiskTargetArgs, extra_bytes: u64) -> Result<u64> {
    if let Some(bytes) = args.size {
        let least = 1 << 20;
        if bytes < least {
            let why = format!(
                "--size {bytes} is too small to measure a disk with; at least 1 MiB is needed"
            );
            return Err(DiskError::InvalidJob(why).into());
        }
        safety::check_space(directory, bytes.saturating_add(extra_bytes))?;
        return Ok(bytes);
    }
    let wanted = match args.next_to_database {
        true => FILE_BYTES_BESIDE_DATABASE,
        false => FILE_BYTES,
    };
    // Half of what may be used: the journal steps and others write too.
    let bytes = wanted.min(safety::spare_bytes(directory)? / 2);
    let bytes = bytes / FILE_BYTES_MIN * FILE_BYTES_MIN;
    safety::check_space(directory, bytes.max(FILE_BYTES_MIN) + extra_bytes)?;
    Ok(bytes.max(FILE_BYTES_MIN))
}

/// Keeps this process on an emulated slow disk while it exists.
pub struct Emulation {
    slow_disk: SlowDisk,
    /// Holds the lease by which leftovers of a killed run are removed.
    _workspace: Workspace,
}

impl Emulation {
    /// Slows this process down if asked to.
    pub fn begin(
        args: &DiskTargetArgs,
        target: &DiskTarget,
        session: &mut Session,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        if args.emulate_disk != Some(EmulatedDisk::Hdd) {
            return Ok(None);
        }
        let tree = CgroupTree::discover(Path::new("/proc"));
        let mut workspace = Workspace::create(session.directory.path(), &environment.lease_folder)?;
        let mut slow_disk = SlowDisk::create(
            &tree,
            &SlowDiskSpec::hdd(),
            &target.device,
            workspace.unique_name(),
        )?;
        workspace.record_cgroup(Some(slow_disk.group()))?;
        slow_disk.add_process(std::process::id())?;
        if let Some(measurement) = &mut session.document.disk {
            measurement.disk = slow_disk.disk();
        }
        Ok(Some(Self {
            slow_disk,
            _workspace: workspace,
        }))
    }

    /// Returns the emulated disk.
    pub fn disk(&self) -> Disk {
        self.slow_disk.disk()
    }
}
