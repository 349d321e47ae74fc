//! Reads the order of a server's files now and then, as gently as `doctor`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_exporter::{FileLayout, FileName};
use seekscope_layout::DataDirectory;
use seekscope_run::{FileRole, HostFacts, LayoutFile, LayoutMeasurement};
use seekscope_server::FileMap;

use super::watched_server::name_of;
use crate::args::ExporterArgs;
use crate::exit::message_of;
use crate::layout::{Recorder, ScanDisk, ScanDisks, gentle, named_file};

/// When and how files are walked; the same for all servers.
#[derive(Clone)]
pub struct WalkPlan {
    every: Duration,
    /// Servers of a host mostly share its disk, so they are walked one after the other.
    turn: Arc<Mutex<()>>,
}

impl WalkPlan {
    /// Returns the plan, unless files are not to be walked.
    pub fn of(args: &ExporterArgs) -> Option<Self> {
        (!args.no_layout).then(|| Self {
            every: args.layout_every,
            turn: Arc::default(),
        })
    }
}

/// The walks of one server. Dropping it ends a walk at its next page.
pub struct LayoutWalks {
    plan: WalkPlan,
    path: PathBuf,
    walk: Option<Walk>,
    begun: Option<Instant>,
}

struct Walk {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<LayoutMeasurement>>,
}

impl LayoutWalks {
    pub fn new(plan: WalkPlan, path: PathBuf) -> Self {
        Self {
            plan,
            path,
            walk: None,
            begun: None,
        }
    }

    /// Begins a walk when it is time and the disk is known, for which scans are predicted, and returns the result of one
    /// that has ended; `Err` says why there is none.
    pub fn look(
        &mut self,
        names: &FileMap,
        disk: impl FnOnce() -> Option<ScanDisk>,
    ) -> Option<Result<LayoutMeasurement, String>> {
        if let Some(walk) = self.walk.take_if(|walk| walk.thread.is_finished()) {
            let walked = walk.thread.join();
            return Some(match walked {
                Ok(walked) => walked.map_err(|error| message_of(&error)),
                Err(_) => Err("the walk panicked; please report this".into()),
            });
        }
        let is_due = self
            .begun
            .is_none_or(|begun| begun.elapsed() >= self.plan.every);
        if !is_due || self.walk.is_some() {
            return None;
        }
        let disk = disk()?;
        self.begun = Some(Instant::now());
        self.begin(names, disk).err().map(Err)
    }

    fn begin(&mut self, names: &FileMap, disk: ScanDisk) -> Result<(), String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, plan, path) = (Arc::clone(&stop), self.plan.clone(), self.path.clone());
        let names = names.clone();
        let thread = std::thread::Builder::new().name("layout-walk".into());
        let thread = thread
            .spawn(move || {
                let _turn = plan.turn.lock().unwrap_or_else(PoisonError::into_inner);
                walk(&path, &names, disk, &flag)
            })
            .map_err(|error| error.to_string())?;
        self.walk = Some(Walk { stop, thread });
        Ok(())
    }
}

impl Drop for LayoutWalks {
    fn drop(&mut self) {
        // It is not waited for: it may be another server's turn, and it only reads.
        if let Some(walk) = &self.walk {
            walk.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn walk(
    path: &Path,
    names: &FileMap,
    disk: ScanDisk,
    stop: &AtomicBool,
) -> Result<LayoutMeasurement> {
    let directory = DataDirectory::open(path, stop)?;
    let reads_per_s = gentle::reads_per_s(&disk.model);
    let recorder = Recorder {
        disks: ScanDisks::one(disk),
        memory_bytes: HostFacts::read(Path::new("/")).memory_bytes,
        updates_per_hour: None,
        since: None,
    };
    let mut layout = gentle::measurement(&directory, &recorder.disks);
    for (file_id, table) in (1u32..).zip(gentle::largest_files(&directory, names, &[])) {
        let found = match directory.walk(table, &gentle::walk_options(reads_per_s, stop)) {
            Ok(found) => found,
            Err(_) if !stop.load(Ordering::Relaxed) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut file = named_file(file_id, table, &directory, names);
        recorder.fill(&mut file, &found, &directory.path().join(&table.file));
        layout.files.push(file);
    }
    Ok(layout)
}

/// Returns what is exported of a file that was walked.
pub fn exported(file: &LayoutFile, names: &FileMap) -> FileLayout {
    let scan = file.predicted_scan.as_ref();
    FileLayout {
        name: name_in_layout(file, names),
        order_score: file.order.as_ref().map(|order| order.score),
        scan_now_s: scan.map(|scan| scan.now_s),
        scan_restored_s: scan.map(|scan| scan.ordered_s),
        file_bytes: file.file_bytes,
        free_bytes: file.free_bytes,
        leaf_pages: file.leaf_pages,
    }
}

/// Returns the name that the file has where its calls are counted, so that both can be joined; a file that was not
/// known there has the one of the catalogue in the data directory.
fn name_in_layout(file: &LayoutFile, names: &FileMap) -> FileName {
    let known = name_of(names, Path::new(&file.file));
    match (&file.namespace, known.collection.is_empty()) {
        (Some(namespace), true) => FileName {
            role: match file.index {
                Some(_) => FileRole::Index.name(),
                None => FileRole::Collection.name(),
            },
            collection: namespace.clone(),
            index: file.index.clone().unwrap_or_default(),
        },
        _ => known,
    }
}
