//! Makes the bundle itself: the records of a run, without what can be derived from them, packed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{Limitation, RunDirectory, RunDocument, RunKind};
use zstd::stream::write::Encoder;

use super::FIGURES;
use super::names::names;
use super::redaction::Redaction;
use super::salt::Salt;
use super::stopping::{Stoppable, go_on};
use super::stripping;
use crate::doctor::open_member;
use crate::exit::Usage;
use crate::session::limit;

/// A moderate level: most of the bytes are already compressed.
const ZSTD_LEVEL: i32 = 9;
/// Number of attempts to meet the size limit.
const TRIES: usize = 4;
/// Compressed sizes are not exactly proportional to rows.
const SAFETY: f64 = 0.9;
const EVENTS: &str = "io.parquet";
const THREADS: &str = "threads.parquet";
const LEAVES: &str = "layout.parquet";

/// The compression of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Zstd,
    Gzip,
}

impl Packing {
    /// Chooses the packing by the file's name. An existing file is not replaced.
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

/// The bundle to be made.
pub struct Bundle {
    pub out: PathBuf,
    pub packing: Packing,
    pub max_bytes: u64,
    /// Salt for hashing names; `None`: names are kept.
    pub salt: Option<Salt>,
}

/// The size and contents of the bundle made.
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
    /// Share (0 to 1) of each run's events kept, from the first.
    share: f64,
    leaves: bool,
}

impl Kept {
    /// Returns how many of a run's events are kept.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count, at most 1"
    )]
    fn events(self, of: u64) -> u64 {
        (of as f64 * self.share) as u64
    }
}

/// A run in the bundle: the one that was named or, of a deployment, a member's.
struct Part {
    /// Folder of a member's run in that of its deployment; empty for the run that was named.
    folder: String,
    directory: Arc<RunDirectory>,
    document: RunDocument,
    events: u64,
    leaves: u64,
}

impl Bundle {
    /// Makes the bundle, which gets its name once it is complete. When asked to stop, leaves nothing behind.
    pub fn make(
        &self,
        directory: &Arc<RunDirectory>,
        document: RunDocument,
        stop: &AtomicBool,
    ) -> Result<Made> {
        let mut parts = parts(directory, document, stop)?;
        let redaction = &self.redaction(&mut parts)?;
        let events = parts.iter().map(|part| part.events).sum();
        let leaves = parts.iter().map(|part| part.leaves).sum();
        let parent = match self.out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut kept = Kept {
            share: 1.0,
            leaves: true,
        };
        for _ in 0..TRIES {
            // Removed before the next try: each one is as large as the run.
            let work = tempfile::tempdir_in(parent)
                .with_context(|| format!("cannot write in {}", parent.display()))?;
            let folder = work.path().join("run");
            for part in &parts {
                let records = Records {
                    part,
                    redaction,
                    kept,
                    stop,
                };
                records.write(&folder.join(&part.folder))?;
            }
            let packed = work.path().join("bundle");
            self.pack(&folder, &packed, stop)?;
            let bytes = fs::metadata(&packed)?.len();
            if bytes <= self.max_bytes {
                put_in_place(&packed, &self.out)?;
                return Ok(Made {
                    bytes,
                    events,
                    events_kept: parts.iter().map(|part| kept.events(part.events)).sum(),
                    leaves,
                    leaves_kept: if kept.leaves { leaves } else { 0 },
                });
            }
            let events_files = parts
                .iter()
                .map(|part| folder.join(&part.folder).join(EVENTS));
            let events_bytes = events_files.map(|file| fs::metadata(file).map_or(0, |m| m.len()));
            kept = less(kept, bytes, self.max_bytes, events_bytes.sum());
        }
        Err(Usage(format!(
            "even without events and leaves the bundle is larger than --max-size {}",
            format_bytes(self.max_bytes)
        ))
        .into())
    }

    /// Returns what replaces the names, and strips from the documents what cannot be replaced.
    fn redaction(&self, parts: &mut [Part]) -> Result<Redaction> {
        let Some(salt) = &self.salt else {
            return Ok(Redaction::none());
        };
        let mut all = BTreeSet::new();
        for part in parts.iter() {
            stripping::check(&part.document)?;
            all.extend(names(&part.document, &part.directory.files()?));
        }
        let documents = parts.iter_mut().map(|part| &mut part.document);
        documents.for_each(stripping::strip);
        Ok(Redaction::hashing(all, salt))
    }

    fn pack(&self, folder: &Path, packed: &Path, stop: &AtomicBool) -> Result<()> {
        let file = File::create_new(packed)?;
        let file = match self.packing {
            Packing::Zstd => tar_of(folder, Encoder::new(file, ZSTD_LEVEL)?, stop)?.finish()?,
            Packing::Gzip => {
                tar_of(folder, GzEncoder::new(file, Compression::default()), stop)?.finish()?
            }
        };
        Ok(file.sync_all()?)
    }
}

/// Returns the run and, of a deployment, those of its members.
fn parts(
    directory: &Arc<RunDirectory>,
    document: RunDocument,
    stop: &AtomicBool,
) -> Result<Vec<Part>> {
    let examination = document.examination.as_ref();
    let members = examination.map_or_else(Vec::new, |e| e.member_runs.clone());
    let mut parts = vec![part(String::new(), Arc::clone(directory), document, stop)?];
    for run in members {
        let member = open_member(directory, &run)?;
        parts.push(part(run.folder, member.directory, member.document, stop)?);
    }
    Ok(parts)
}

fn part(
    folder: String,
    directory: Arc<RunDirectory>,
    mut document: RunDocument,
    stop: &AtomicBool,
) -> Result<Part> {
    if let Some(RunKind::Doctor | RunKind::Layout | RunKind::Trace) = document.kind() {
        // Whoever opens the bundle derives these again.
        document.findings.clear();
        document.summary = serde_json::Value::Null;
    }
    let (events, leaves) = counts(&directory, stop)?;
    Ok(Part {
        folder,
        directory,
        document,
        events,
        leaves,
    })
}

fn tar_of<W: Write>(folder: &Path, into: W, stop: &AtomicBool) -> Result<W> {
    let mut tar = tar::Builder::new(Stoppable::new(into, stop));
    tar.mode(tar::HeaderMode::Deterministic);
    for path in files_in(folder)? {
        tar.append_path_with_name(&path, path.strip_prefix(folder)?)?;
    }
    Ok(tar.into_inner()?.into_inner())
}

/// Returns the files of a run, and after these those of its members' runs. A document comes before its records, so that
/// a listing of the bundle shows at once what it is.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort_by_key(|path| (!path.ends_with("run.json"), path.clone()));
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| path.is_dir());
    for member in folders {
        files.extend(files_in(&member)?);
    }
    Ok(files)
}

/// Keeps fewer events in proportion to the excess; once none are left, drops the leaves.
fn less(kept: Kept, bytes: u64, max_bytes: u64, events_bytes: u64) -> Kept {
    let others = bytes.saturating_sub(events_bytes);
    let room = max_bytes.saturating_sub(others) as f64 * SAFETY;
    let share = kept.share * (room / events_bytes.max(1) as f64).clamp(0.0, SAFETY);
    Kept {
        share,
        leaves: kept.leaves && kept.share > 0.0 && share > 0.0,
    }
}

fn counts(directory: &RunDirectory, stop: &AtomicBool) -> Result<(u64, u64)> {
    let (mut events, mut leaves) = (0, 0);
    directory.for_events_while(|some| {
        events += some.len() as u64;
        go_on(stop).is_ok()
    })?;
    go_on(stop)?;
    directory.for_each_leaf(|_| true, |_| leaves += 1)?;
    go_on(stop)?;
    Ok((events, leaves))
}

/// The records of a run, to be written into a bundle.
struct Records<'a> {
    part: &'a Part,
    redaction: &'a Redaction,
    kept: Kept,
    stop: &'a AtomicBool,
}

impl Records<'_> {
    /// Writes a run directory with what is kept into `folder`.
    fn write(&self, folder: &Path) -> Result<()> {
        let redaction = self.redaction;
        let Part {
            directory: from,
            events,
            ..
        } = self.part;
        let mut document = self.part.document.clone();
        let to = RunDirectory::create(folder, &document)?;
        let kept = self.kept.events(*events);
        if kept < *events {
            let last_ns = self.write_events(&to, kept)?;
            shorten(&mut document, last_ns, kept, *events);
        } else {
            // They contain no names, and all of them are kept.
            self.copy(EVENTS, folder)?;
            self.copy(THREADS, folder)?;
        }
        for name in FIGURES {
            self.copy(name, folder)?;
        }
        if self.kept.leaves {
            self.copy(LEAVES, folder)?;
        }
        let mut counters = from.counters()?;
        counters
            .iter_mut()
            .for_each(|sample| redaction.counter(sample));
        to.counter_writer()?.write(&counters)?;
        go_on(self.stop)?;
        to.finish_records()?;
        let mut files = from.files()?;
        files.iter_mut().for_each(|file| redaction.file(file));
        to.save_files(&files)?;
        redaction.document(&mut document)?;
        to.save(&document)?;
        Ok(go_on(self.stop)?)
    }

    fn copy(&self, name: &str, folder: &Path) -> Result<()> {
        let from = self.part.directory.path().join(name);
        if from.exists() {
            let to = File::create_new(folder.join(name))?;
            io::copy(&mut File::open(from)?, &mut Stoppable::new(to, self.stop))?;
        }
        Ok(())
    }

    /// Writes this many events, the first in the order in which they were recorded; returns when the last of them
    /// began, ns.
    fn write_events(&self, to: &RunDirectory, kept: u64) -> Result<u64> {
        let from = &self.part.directory;
        let mut writer = to.io_writer()?;
        for thread in from.threads()? {
            writer.thread(&thread)?;
        }
        let (mut left, mut last_ns, mut failure) = (kept, 0, None);
        from.for_events_while(|events| {
            for event in events {
                if left > 0 && failure.is_none() {
                    left -= 1;
                    last_ns = last_ns.max(event.t_ns);
                    failure = writer.event(event).err();
                }
            }
            left > 0 && failure.is_none() && go_on(self.stop).is_ok()
        })?;
        failure.map_or(Ok(()), Err)?;
        go_on(self.stop)?;
        writer.flush()?;
        Ok(last_ns)
    }
}

/// Ends the observed time with the last event that is kept, so that what is said of a second remains true.
fn shorten(document: &mut RunDocument, last_ns: u64, kept: u64, of: u64) {
    if let Some(phase) = document.phases.first_mut() {
        phase.ended_ns = phase
            .ended_ns
            .min(last_ns.saturating_add(1))
            .max(phase.started_ns);
    }
    let what = format!(
        "the bundle holds the first {} of {} I/O events, and the observed time ends with them",
        format_count(kept),
        format_count(of)
    );
    let examination = document.examination.as_mut();
    if let Some(cost) = examination.and_then(|examination| examination.cost.as_mut()) {
        // Rates of a moment differ from those of the whole time, which whoever opens the bundle has to know first.
        cost.ended_early.get_or_insert_with(|| what.clone());
    }
    let limitation = Limitation {
        what,
        why: "all of them were larger than --max-size".into(),
        remedy: "collect again with a larger --max-size".into(),
    };
    limit(document, limitation);
}

/// Moves the bundle into place; never replaces an existing file.
fn put_in_place(packed: &Path, out: &Path) -> Result<()> {
    let here = rustix::fs::CWD;
    fs::hard_link(packed, out)
        .or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            // For filesystems without hard links.
            _ => Ok(rustix::fs::renameat_with(
                here,
                packed,
                here,
                out,
                rustix::fs::RenameFlags::NOREPLACE,
            )?),
        })
        .with_context(|| format!("cannot write {}", out.display()))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{IoEvent, IoFlags, IoOp, PrefetchRecord};

    use super::*;

    const EVENTS_OF_RUN: u64 = 20_000;

    fn run(folder: &Path) -> (Arc<RunDirectory>, RunDocument) {
        let document = RunDocument::begin("doctor", vec!["doctor".into(), "acme".into()]);
        let directory = RunDirectory::create(&folder.join("run"), &document).unwrap();
        let mut writer = directory.io_writer().unwrap();
        for t_ns in 0..EVENTS_OF_RUN {
            let event = IoEvent {
                t_ns,
                pid: 1,
                tid: 1,
                file_id: 1,
                op: IoOp::Read,
                flags: IoFlags(0),
                // Values that are hard to compress.
                offset: Some(t_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20),
                length: 4096,
                latency_ns: t_ns,
                result: 4096,
                device_read_bytes: 0,
                request: None,
            };
            writer.event(&event).unwrap();
        }
        drop(writer);
        directory.finish_records().unwrap();
        (Arc::new(directory), document)
    }

    fn bundle(out: &Path, salt: Option<Salt>) -> Bundle {
        Bundle {
            out: out.to_path_buf(),
            packing: Packing::Zstd,
            max_bytes: 1 << 30,
            salt,
        }
    }

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn asked_to_stop_it_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, document) = run(folder.path());
        let out = folder.path().join("b.tar.zst");
        let stop = AtomicBool::new(true);
        assert!(
            bundle(&out, None)
                .make(&directory, document, &stop)
                .is_err()
        );
        assert_eq!(names_in(folder.path()), ["run"]);
    }

    #[test]
    fn whole_or_shortened_it_stands_alone_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, document) = run(folder.path());
        let stop = AtomicBool::new(false);
        let (whole, small) = (folder.path().join("a.tar.zst"), folder.path().join("b.tgz"));
        let made = bundle(&whole, None)
            .make(&directory, document.clone(), &stop)
            .unwrap();
        assert_eq!(
            (made.events, made.events_kept),
            (EVENTS_OF_RUN, EVENTS_OF_RUN)
        );
        let smaller = Bundle {
            max_bytes: made.bytes / 2,
            ..bundle(&small, None)
        };
        let made = smaller.make(&directory, document.clone(), &stop).unwrap();
        assert!(made.events_kept > 0 && made.events_kept < EVENTS_OF_RUN);
        assert_eq!(names_in(folder.path()), ["a.tar.zst", "b.tgz", "run"]);
        let replacing = bundle(&whole, None).make(&directory, document, &stop);
        assert!(replacing.is_err(), "what exists is not replaced");
    }

    #[test]
    fn records_that_cannot_be_hashed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut document) = run(folder.path());
        let stop = AtomicBool::new(false);
        let out = folder.path().join("b.tar.zst");
        document.command = "prefetch".into();
        document.prefetch = Some(PrefetchRecord::default());
        let refused = bundle(&out, Some([1; 16])).make(&directory, document.clone(), &stop);
        assert!(refused.unwrap_err().is::<Usage>());
        assert!(bundle(&out, None).make(&directory, document, &stop).is_ok());
    }
}
