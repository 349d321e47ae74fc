//! The target of a replay: examined before anything is written, then created.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_disk::replay::{Caching, Plan};
use seekscope_disk::{Contents, CopyKind, DiskError, FillOptions, TestFile, probe_direct, safety};
use seekscope_run::units::format_bytes;
use seekscope_run::{DeviceFacts, DirectFacts, HostFacts, Surroundings, page_cache};
use serde::{Deserialize, Serialize};

use crate::args::ReplayArgs;
use crate::disk::FILL_BYTES_PER_S_BESIDE_DATABASE;
use crate::exit::{Unreadable, Usage};
use crate::progress::Progress;
use crate::session::Session;

/// Alignment for direct I/O if the filesystem does not report one.
const ALIGNMENT_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A file that existed already and is only read.
    File,
    Copy,
    Created,
}

/// What is known of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    pub kind: TargetKind,
    /// The file that existed or was copied; the directory of one that was created.
    pub path: String,
    /// Directory of the file that is played on.
    pub directory: String,
    pub bytes: u64,
    /// Whether it is a copy that shared its blocks with the original at first (reflink).
    pub shared_blocks: bool,
    /// Whether nothing was evicted from the page cache before the replay began.
    pub warm: bool,
    /// Bytes of it that were in the page cache when the replay began; null if unknown.
    pub resident_bytes: Option<u64>,
    /// Whether direct I/O is real here; null if none was requested.
    pub direct: Option<DirectFacts>,
    pub surroundings: Surroundings,
}

/// The file that a recording is played on.
#[derive(Debug)]
pub struct Target {
    kind: TargetKind,
    path: PathBuf,
    directory: PathBuf,
    /// The existing file that is played on or copied.
    existing: Option<TestFile>,
    bytes: u64,
    device: DeviceFacts,
    seed: u64,
    warm: bool,
    beside_database: bool,
}

impl Target {
    /// Refuses what cannot or should not be played on. Nothing has been created yet. `recorded_bytes` is the
    /// size that a created file must have.
    pub fn check(args: &ReplayArgs, recorded_bytes: u64) -> Result<Self> {
        let asked = &args.target;
        let existing = asked.file.as_deref().or(asked.copy_of.as_deref());
        let existing = existing.map(TestFile::open_existing).transpose()?;
        let (kind, path) = match (&asked.file, &asked.copy_of, &asked.create) {
            (Some(path), ..) => (TargetKind::File, path),
            (_, Some(path), _) => (TargetKind::Copy, path),
            (.., Some(path)) => (TargetKind::Created, path),
            _ => unreachable!("the command line demands one of them"),
        };
        let path = resolved(path)?;
        let directory = match (&asked.create, &existing) {
            (Some(directory), _) => resolved(directory)?,
            (None, _) => path.parent().unwrap_or(Path::new("/")).to_path_buf(),
        };
        if !directory.is_dir() {
            let why = format!("--create {} is not a directory", directory.display());
            return Err(Usage(why).into());
        }
        if !args.next_to_database {
            for folder in [&directory, path.parent().unwrap_or(&directory)] {
                safety::check_no_database(folder, Path::new("/proc"))?;
            }
        }
        let bytes = match &existing {
            Some(file) => file.bytes(),
            None => asked.size.unwrap_or(recorded_bytes),
        };
        if kind == TargetKind::Created {
            if bytes == 0 {
                let why = "a file of 0 bytes cannot be used; choose a larger --size";
                return Err(DiskError::InvalidJob(why.into()).into());
            }
            safety::check_space(&directory, bytes)?;
        }
        let lies_at = if kind == TargetKind::File {
            &path
        } else {
            &directory
        };
        let device = DeviceFacts::of_path(Path::new("/"), lies_at)
            .with_context(|| format!("cannot examine {}", lies_at.display()))?;
        Ok(Self {
            kind,
            path,
            directory,
            existing,
            bytes,
            device,
            seed: args.seed,
            warm: args.warm,
            beside_database: args.next_to_database,
        })
    }

    /// Returns the size of the file that is played on.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the file is ours and may be written.
    pub fn may_be_written(&self) -> bool {
        self.kind != TargetKind::File
    }

    /// Refuses direct I/O if it is unavailable, before anything is written.
    pub fn check_direct(&self, caching: Caching, plan: &Plan) -> Result<()> {
        if asks_for_direct(caching, plan) {
            match (&self.existing, self.kind) {
                (Some(file), TargetKind::File) => file.open(true)?,
                _ => TestFile::create_empty(&self.directory)?.open(true)?,
            };
        }
        Ok(())
    }

    /// Returns an announcement of what will be done.
    pub fn announcement(&self) -> String {
        let size = format_bytes(self.bytes);
        match self.kind {
            TargetKind::File => format!(
                "Replaying reads on {} ({size}); nothing is written to it.",
                self.path.display()
            ),
            TargetKind::Copy => format!(
                "Copying {} ({size}) to an unnamed file in {} and replaying on that file; it is \
                 removed afterwards in any case.",
                self.path.display(),
                self.directory.display()
            ),
            TargetKind::Created => format!(
                "Writing {size} to an unnamed file in {} and replaying on that file; it is removed \
                 afterwards in any case.",
                self.directory.display()
            ),
        }
    }

    /// Records host and disk in the run.
    pub fn describe(&self, session: &mut Session) {
        session.document.host = Some(HostFacts::read(Path::new("/")));
        session.document.device = Some(self.device.clone());
    }

    /// Creates the file if it is ours, decides which operations use direct I/O, and evicts its pages.
    pub fn prepare(
        self,
        caching: Caching,
        plan: &mut Plan,
        progress: Progress,
        cancel: &AtomicBool,
    ) -> Result<(TestFile, TargetFacts)> {
        let root = Path::new("/");
        let host = HostFacts::read(root);
        let mut facts = TargetFacts {
            kind: self.kind,
            path: self.path.display().to_string(),
            directory: self.directory.display().to_string(),
            bytes: self.bytes,
            shared_blocks: false,
            warm: self.warm,
            resident_bytes: None,
            direct: None,
            surroundings: Surroundings::read(root, &self.directory, &self.device, &host),
        };
        let warm = self.warm;
        let (file, kind) = self.made(progress, cancel)?;
        facts.shared_blocks = kind == Some(CopyKind::SharedBlocks);
        let mut alignment_bytes = ALIGNMENT_BYTES;
        if asks_for_direct(caching, plan) {
            let direct = probe_direct(&file)?;
            if direct.alignment_bytes > 0 {
                alignment_bytes = direct.alignment_bytes;
            }
            facts.direct = Some(direct);
        }
        plan.settle_direct(caching, alignment_bytes);
        facts.resident_bytes = cooled(&file, warm)?;
        Ok((file, facts))
    }

    fn made(self, progress: Progress, cancel: &AtomicBool) -> Result<(TestFile, Option<CopyKind>)> {
        let total = self.bytes >> 20;
        let size = format_bytes(self.bytes);
        let rate = self
            .beside_database
            .then_some(FILL_BYTES_PER_S_BESIDE_DATABASE);
        match (self.existing, self.kind) {
            (Some(file), TargetKind::File) => Ok((file, None)),
            (Some(source), _) => {
                let step = progress.counted(format!("copying {size}, MiB"), total);
                let mut copied = |bytes: u64| step.at(bytes >> 20);
                let (file, kind) =
                    TestFile::copy_of(&source, &self.directory, rate, &mut copied, cancel)?;
                Ok((file, Some(kind)))
            }
            (None, _) => {
                let text = format!("filling {size} with incompressible data, MiB");
                let step = progress.counted(text, total);
                let mut fill = FillOptions::new(Contents::Random { seed: self.seed });
                fill.bytes_per_s = rate;
                let mut written = |bytes: u64| step.at(bytes >> 20);
                let file =
                    TestFile::create(&self.directory, self.bytes, fill, &mut written, cancel)?;
                Ok((file, None))
            }
        }
    }
}

fn asks_for_direct(caching: Caching, plan: &Plan) -> bool {
    match caching {
        Caching::AsRecorded => plan.is_direct(),
        Caching::Direct => true,
        Caching::Buffered => false,
    }
}

fn resolved(path: &Path) -> Result<PathBuf> {
    let resolved = path.canonicalize();
    Ok(resolved.map_err(Unreadable::at(path))?)
}

/// Evicts the file's pages unless `warm`. Returns how many bytes are cached afterwards, if that can be known.
fn cooled(file: &TestFile, warm: bool) -> Result<Option<u64>> {
    let resident = || {
        let known = may_look(file);
        known.then(|| page_cache::resident_bytes(file, 0, file.bytes()).ok())?
    };
    if !warm {
        file.evict_all(resident)?;
    }
    Ok(resident())
}

/// Returns whether this process may see cached pages: the kernel reports them correctly to those who own the
/// file or may write it (mincore(2)).
fn may_look(file: &TestFile) -> bool {
    let user = rustix::process::geteuid();
    let owned = || {
        file.path()
            .metadata()
            .is_ok_and(|m| m.uid() == user.as_raw())
    };
    let writable = || rustix::fs::access(file.path(), rustix::fs::Access::WRITE_OK).is_ok();
    file.is_own() || user.is_root() || owned() || writable()
}
