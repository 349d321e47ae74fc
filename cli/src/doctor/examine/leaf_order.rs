//! Reads the order of the leaves in the largest files, gently, while the server is watched.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Result;
use seekscope_layout::{DataDirectory, LayoutError};
use seekscope_run::{FileRecord, LayoutMeasurement, Limitation, RunDirectory};
use seekscope_server::FileMap;

use super::Asked;
use super::disk_ability::scan_disk;
use super::subject::Subject;
use crate::exit::message_of;
use crate::layout::{Recorder, ScanDisks, file_record, gentle, named_file, write_leaves};
use crate::session::Session;

/// Far from the ids of traced files, which start at zero.
const FIRST_FILE_ID: u32 = 1 << 24;

/// A walk running on a separate thread. Dropping it stops it.
#[derive(Debug)]
pub struct LeafWalk {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Walked>>,
    /// Why it was stopped early.
    harm: Option<String>,
}

/// The results of a walk.
#[derive(Debug, Default)]
pub struct Walked {
    layout: Option<LayoutMeasurement>,
    files: Vec<FileRecord>,
    limitations: Vec<Limitation>,
    /// What was not read because the walk was stopped.
    unread: Option<Limitation>,
}

/// What the thread works with.
struct Work {
    path: PathBuf,
    names: FileMap,
    wanted: Vec<String>,
    recorder: Recorder,
    directory: Arc<RunDirectory>,
    /// Walks that go on at once and share the disk.
    at_once: usize,
}

impl LeafWalk {
    /// Starts the walk; `None` if there is no data directory to read.
    pub fn begin(session: &Session, subject: &Subject, asked: &Asked) -> Option<Self> {
        let path = subject.data.clone()?;
        let host = session.document.host.as_ref();
        let work = Work {
            names: session.file_map.clone().unwrap_or_default(),
            wanted: asked.namespaces.iter().map(ToString::to_string).collect(),
            recorder: Recorder {
                disks: ScanDisks::one(scan_disk(session)?),
                memory_bytes: host.map_or(0, |host| host.memory_bytes),
                updates_per_hour: None,
                since: None,
            },
            directory: Arc::clone(&session.directory),
            at_once: asked.at_once,
            path,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("leaf-order".into());
        let thread = thread.spawn(move || work.walk(&flag)).ok();
        Some(Self {
            stop,
            thread,
            harm: None,
        })
    }

    /// Returns whether the walk is still reading.
    pub fn is_under_way(&self) -> bool {
        let works = |thread: &JoinHandle<_>| !thread.is_finished();
        !self.stop.load(Ordering::Relaxed) && self.thread.as_ref().is_some_and(works)
    }

    /// Ends the walk at the next page because it harms the server.
    pub fn stop_for(&mut self, harm: String) {
        self.stop();
        self.harm = Some(harm);
    }

    /// Ends the walk at the next page.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops the walk and returns its results.
    pub fn finish(mut self) -> Walked {
        self.stop();
        let thread = self.thread.take();
        let walked = thread.and_then(|thread| thread.join().ok());
        let mut walked = walked.unwrap_or_default();
        if let Some(mut unread) = walked.unread.take() {
            if let Some(harm) = self.harm.take() {
                unread.why = harm;
            }
            walked.limitations.push(unread);
        }
        walked
    }
}

impl Drop for LeafWalk {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // Whoever drops it does not need the results.
            let _ = thread.join();
        }
    }
}

/// Stores the results in the session.
pub fn keep(session: &mut Session, walked: Walked) {
    walked
        .limitations
        .into_iter()
        .for_each(|l| session.limit(l));
    session.document.layout = walked.layout;
    session.more_files.extend(walked.files);
}

impl Work {
    fn walk(&self, stop: &AtomicBool) -> Walked {
        let mut walked = Walked::default();
        if let Err(error) = self.try_walk(stop, &mut walked) {
            walked.limitations.push(Limitation {
                what: "how the data files lie on the disk was not read".into(),
                why: message_of(&error),
                remedy: "run as root or as the server's user, or give --dbpath".into(),
            });
        }
        walked
    }

    fn try_walk(&self, stop: &AtomicBool, walked: &mut Walked) -> Result<()> {
        let directory = match DataDirectory::open(&self.path, stop) {
            Err(LayoutError::Interrupted) => {
                walked.unread = Some(self.unread(0));
                return Ok(());
            }
            opened => opened?,
        };
        let layout = gentle::measurement(&directory, &self.recorder.disks);
        let layout = walked.layout.insert(layout);
        let tables = gentle::largest_files(&directory, &self.names, &self.wanted);
        let mut writer = self.directory.leaf_writer()?;
        for (file_id, (at, table)) in (FIRST_FILE_ID..).zip(tables.iter().enumerate()) {
            let mut file = named_file(file_id, table, &directory, &self.names);
            let path = directory.path().join(&table.file);
            let options = gentle::walk_options(self.reads_per_s(), stop);
            match directory.walk(table, &options) {
                Ok(found) => {
                    self.recorder.fill(&mut file, &found, &path);
                    write_leaves(&mut writer, file_id, &found.tree.leaves)?;
                }
                Err(LayoutError::Interrupted) => {
                    walked.unread = Some(self.unread(tables.len() - at));
                    break;
                }
                Err(error) => {
                    file.file_bytes = gentle::bytes_of(&directory, table);
                    file.not_measured = Some(error.to_string());
                }
            }
            walked.files.push(file_record(&file, &path));
            layout.files.push(file);
        }
        writer.finish()?;
        Ok(())
    }

    fn reads_per_s(&self) -> u64 {
        let rate = gentle::reads_per_s(&self.recorder.disks.of(None).model);
        (rate / self.at_once.max(1) as u64).max(1)
    }

    fn unread(&self, files: usize) -> Limitation {
        let what = match files {
            0 => "how the data files lie on the disk was not read".into(),
            _ => {
                format!("how {files} of the largest files lie on the disk was not read to the end")
            }
        };
        let rate = self.reads_per_s();
        Limitation {
            what,
            why: format!(
                "the time was over; at most {rate} pages a second are read beside a database on this disk"
            ),
            remedy: "ask for more time with --for, or see `seekscope layout`".into(),
        }
    }
}
