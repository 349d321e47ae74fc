//! The bundle itself: the records of a run without what can be derived from them, packed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{Limitation, RunDirectory, RunDocument};
use zstd::stream::write::Encoder;

use super::redaction::Redaction;
use crate::exit::Usage;
use crate::session::limit;

/// Good enough: most of the bytes are compressed already.
const ZSTD_LEVEL: i32 = 9;
/// What is tried before giving up on the size.
const TRIES: usize = 4;
/// Compressed sizes are not exactly proportional to rows.
const SAFETY: f64 = 0.9;
const EVENTS: &str = "io.parquet";

/// How it is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Zstd,
    Gzip,
}

impl Packing {
    /// By the file's name. A file that exists is not replaced.
    pub fn of(out: &Path) -> Result<Self, Usage> {
        let name = out.to_string_lossy();
        if out.exists() {
            return Err(Usage(format!("{name} exists; name a new file")));
        }
        match () {
            () if name.ends_with(".tar.zst") => Ok(Self::Zstd),
            () if name.ends_with(".tar.gz") || name.ends_with(".tgz") => Ok(Self::Gzip),
            () => Err(Usage(format!("--out {name}: name it .tar.zst or .tar.gz"))),
        }
    }
}

/// What is to be made.
pub struct Bundle<'a> {
    pub out: &'a Path,
    pub packing: Packing,
    pub max_bytes: u64,
    pub hash_names: bool,
}

/// What was made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Made {
    pub bytes: u64,
    pub events: u64,
    pub events_kept: u64,
    pub leaves: u64,
    pub leaves_kept: u64,
}

/// How much of the records that grow with time is kept.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The first so many.
    events: u64,
    leaves: bool,
}

impl Bundle<'_> {
    /// Makes it. It has its name once it is whole.
    pub fn make(&self, directory: &RunDirectory, mut document: RunDocument) -> Result<Made> {
        // Derived anew by whoever opens it.
        document.findings.clear();
        document.summary = serde_json::Value::Null;
        let redaction = match self.hash_names {
            true => Redaction::hashing(&document, &directory.files()?)?,
            false => Redaction::none(),
        };
        let parent = match self.out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let work = tempfile::tempdir_in(parent)
            .with_context(|| format!("cannot write in {}", parent.display()))?;
        let (events, leaves) = counts(directory)?;
        let mut kept = Kept {
            events,
            leaves: true,
        };
        for attempt in 0..TRIES {
            let folder = work.path().join(format!("run{attempt}"));
            write_run(&folder, directory, &document, &redaction, kept, events)?;
            let packed = work.path().join(format!("bundle{attempt}"));
            self.pack(&folder, &packed)?;
            let bytes = fs::metadata(&packed)?.len();
            if bytes <= self.max_bytes {
                put_in_place(&packed, self.out)?;
                return Ok(Made {
                    bytes,
                    events,
                    events_kept: kept.events,
                    leaves,
                    leaves_kept: if kept.leaves { leaves } else { 0 },
                });
            }
            kept = less(kept, bytes, self.max_bytes, &folder.join(EVENTS));
        }
        Err(Usage(format!(
            "even without events and leaves the bundle is larger than --max-size {}",
            format_bytes(self.max_bytes)
        ))
        .into())
    }

    fn pack(&self, folder: &Path, packed: &Path) -> Result<()> {
        let file = File::create_new(packed)?;
        let file = match self.packing {
            Packing::Zstd => tar_of(folder, Encoder::new(file, ZSTD_LEVEL)?)?.finish()?,
            Packing::Gzip => {
                tar_of(folder, GzEncoder::new(file, Compression::default()))?.finish()?
            }
        };
        Ok(file.sync_all()?)
    }
}

fn tar_of<W: Write>(folder: &Path, into: W) -> Result<W> {
    let mut tar = tar::Builder::new(into);
    tar.mode(tar::HeaderMode::Deterministic);
    let mut names: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    // The document first: whoever lists the bundle sees at once what it is.
    names.sort_by_key(|path| (!path.ends_with("run.json"), path.clone()));
    for path in names {
        if let Some(name) = path.file_name() {
            tar.append_path_with_name(&path, name)?;
        }
    }
    Ok(tar.into_inner()?)
}

/// Fewer events in proportion to what is too much; without any left, no leaves.
fn less(kept: Kept, bytes: u64, max_bytes: u64, events_file: &Path) -> Kept {
    let events_bytes = fs::metadata(events_file).map_or(0, |m| m.len());
    let others = bytes.saturating_sub(events_bytes);
    let room = max_bytes.saturating_sub(others) as f64 * SAFETY;
    let share = room / events_bytes.max(1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share below 1 of a count"
    )]
    let events = (kept.events as f64 * share.clamp(0.0, SAFETY)) as u64;
    Kept {
        events,
        leaves: kept.leaves && kept.events > 0 && events > 0,
    }
}

fn counts(directory: &RunDirectory) -> Result<(u64, u64)> {
    let (mut events, mut leaves) = (0, 0);
    directory.for_each_event(|_| events += 1)?;
    directory.for_each_leaf(|_| true, |_| leaves += 1)?;
    Ok((events, leaves))
}

/// A run directory in `folder` with what is kept.
fn write_run(
    folder: &Path,
    from: &RunDirectory,
    document: &RunDocument,
    redaction: &Redaction,
    kept: Kept,
    events: u64,
) -> Result<()> {
    let mut document = document.clone();
    let to = RunDirectory::create(folder, &document)?;
    let last_ns = write_events(from, &to, kept.events)?;
    if kept.events < events {
        shorten(&mut document, last_ns, kept.events, events);
    }
    if kept.leaves {
        write_leaves(from, &to)?;
    }
    let mut counters = from.counters()?;
    counters
        .iter_mut()
        .for_each(|sample| redaction.counter(sample));
    to.counter_writer()?.write(&counters)?;
    to.finish_records()?;
    let mut files = from.files()?;
    files.iter_mut().for_each(|file| redaction.file(file));
    to.save_files(&files)?;
    redaction.document(&mut document)?;
    Ok(to.save(&document)?)
}

/// The first `count` events in the order in which they were recorded; when the last of them began.
fn write_events(from: &RunDirectory, to: &RunDirectory, count: u64) -> Result<u64> {
    let mut writer = to.io_writer()?;
    for thread in from.threads()? {
        writer.thread(&thread)?;
    }
    let (mut written, mut last_ns, mut failure) = (0, 0, None);
    from.for_each_event(|event| {
        if written < count && failure.is_none() {
            written += 1;
            last_ns = last_ns.max(event.t_ns);
            failure = writer.event(event).err();
        }
    })?;
    failure.map_or(Ok(()), Err)?;
    writer.flush()?;
    Ok(last_ns)
}

fn write_leaves(from: &RunDirectory, to: &RunDirectory) -> Result<()> {
    let mut writer = None;
    let mut failure: Option<anyhow::Error> = None;
    from.for_each_leaf(
        |_| true,
        |leaf| {
            if failure.is_some() {
                return;
            }
            let mut write = || {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(to.leaf_writer()?),
                };
                anyhow::Ok(writer.leaf(*leaf)?)
            };
            failure = write().err();
        },
    )?;
    failure.map_or(Ok(()), Err)?;
    if let Some(writer) = writer {
        writer.finish()?;
    }
    Ok(())
}

/// The observed stretch ends with the last event that is kept, so that what is said of a second stays
/// true.
fn shorten(document: &mut RunDocument, last_ns: u64, kept: u64, of: u64) {
    if let Some(phase) = document.phases.first_mut() {
        phase.ended_ns = phase
            .ended_ns
            .min(last_ns.saturating_add(1))
            .max(phase.started_ns);
    }
    let limitation = Limitation {
        what: format!(
            "the bundle holds the first {} of {} I/O events, and the observed time ends with them",
            format_count(kept),
            format_count(of)
        ),
        why: "all of them were larger than --max-size".into(),
        remedy: "collect again with a larger --max-size".into(),
    };
    limit(document, limitation);
}

/// Never replaces what exists.
fn put_in_place(packed: &Path, out: &Path) -> Result<()> {
    fs::hard_link(packed, out)
        .or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            // Filesystems without hard links.
            _ => fs::copy(packed, out).map(drop),
        })
        .with_context(|| format!("cannot write {}", out.display()))
}
