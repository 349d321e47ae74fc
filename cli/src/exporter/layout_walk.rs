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

/// What took the place of a file that is gone is walked this long after, when it is in a checkpoint.
const AFTER_LOSS: Duration = Duration::from_secs(120);

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
    /// When a walk of all files last began.
    begun: Option<Instant>,
    /// What was found of the files that are still there.
    found: Option<LayoutMeasurement>,
    /// When a file that had been walked was first missed, since the last walk began.
    lost: Option<Instant>,
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
            found: None,
            lost: None,
        }
    }

    /// Begins a walk when it is time and the disk is known, for which scans are predicted. Returns whether one has ended
    /// and [found](Self::found) something; `Err` says why it has not.
    pub fn look(
        &mut self,
        names: &FileMap,
        disk: impl FnOnce() -> Option<ScanDisk>,
    ) -> Option<Result<(), String>> {
        if let Some(walk) = self.walk.take_if(|walk| walk.thread.is_finished()) {
            let walked = match walk.thread.join() {
                Ok(walked) => walked.map_err(|error| message_of(&error)),
                Err(_) => Err("the walk panicked; please report this".into()),
            };
            return Some(walked.map(|found| self.found = Some(found)));
        }
        let now = Instant::now();
        let is_due = self.is_due(now);
        if !(is_due || self.is_due_after_loss(now)) || self.walk.is_some() {
            return None;
        }
        let disk = disk()?;
        let known = match &self.found {
            Some(found) if !is_due => found.files.clone(),
            _ => Vec::new(),
        };
        if is_due {
            self.begun = Some(now);
        }
        self.lost = None;
        self.begin(names, disk, known).err().map(Err)
    }

    /// Returns whether it is time to walk all files.
    fn is_due(&self, now: Instant) -> bool {
        let is_over = |begun| now.saturating_duration_since(begun) >= self.plan.every;
        self.begun.is_none_or(is_over)
    }

    /// Returns whether it is time to walk those that were not there yet.
    fn is_due_after_loss(&self, now: Instant) -> bool {
        let is_over = |lost| now.saturating_duration_since(lost) >= AFTER_LOSS;
        self.lost.is_some_and(is_over)
    }

    /// Returns what is known of the files.
    pub fn found(&self) -> Option<&LayoutMeasurement> {
        self.found.as_ref()
    }

    /// Forgets files that were walked and are gone, as when a collection was dropped or another was renamed over it, and
    /// returns their names. What took their place is walked soon.
    pub fn forget_gone(&mut self) -> Vec<String> {
        let Some(found) = &mut self.found else {
            return Vec::new();
        };
        let is_gone = |file: &str| matches!(self.path.join(file).try_exists(), Ok(false));
        // Where the whole directory is gone, nothing is known of its files.
        if is_gone("") {
            return Vec::new();
        }
        let files = found.files.iter().map(|file| file.file.clone());
        let gone: Vec<String> = files.filter(|file| is_gone(file)).collect();
        found.files.retain(|file| !gone.contains(&file.file));
        if !gone.is_empty() {
            self.lost.get_or_insert_with(Instant::now);
        }
        gone
    }

    fn begin(
        &mut self,
        names: &FileMap,
        disk: ScanDisk,
        known: Vec<LayoutFile>,
    ) -> Result<(), String> {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, plan, path) = (Arc::clone(&stop), self.plan.clone(), self.path.clone());
        let names = names.clone();
        let thread = std::thread::Builder::new().name("layout-walk".into());
        let thread = thread
            .spawn(move || {
                let _turn = plan.turn.lock().unwrap_or_else(PoisonError::into_inner);
                walk(&path, &names, disk, &known, &flag)
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

/// Walks the largest files, except those that are `known`.
fn walk(
    path: &Path,
    names: &FileMap,
    disk: ScanDisk,
    known: &[LayoutFile],
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
        let mut file = named_file(file_id, table, &directory, names);
        if let Some(known) = known.iter().find(|known| known.file == table.file) {
            layout.files.push(LayoutFile {
                file_id,
                namespace: file.namespace,
                index: file.index,
                ..known.clone()
            });
            continue;
        }
        let found = match directory.walk(table, &gentle::walk_options(reads_per_s, stop)) {
            Ok(found) => found,
            Err(_) if !stop.load(Ordering::Relaxed) => continue,
            Err(error) => return Err(error.into()),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_forgotten_and_what_took_its_place_is_walked_soon() {
        let folder = tempfile::tempdir().unwrap();
        let plan = WalkPlan {
            every: Duration::from_secs(21_600),
            turn: Arc::default(),
        };
        let mut walks = LayoutWalks::new(plan, folder.path().into());
        assert_eq!(walks.forget_gone(), [""; 0]);
        let begun = Instant::now();
        walks.begun = Some(begun);
        let names = ["collection-1.wt", "collection-2.wt"];
        let files = names.map(|name| LayoutFile {
            file: name.into(),
            ..LayoutFile::default()
        });
        walks.found = Some(LayoutMeasurement {
            files: files.into(),
            ..LayoutMeasurement::default()
        });
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(walks.forget_gone(), [""; 0]);
        assert!(!walks.is_due_after_loss(begun + AFTER_LOSS * 2));
        std::fs::remove_file(folder.path().join(names[0])).unwrap();
        assert_eq!(walks.forget_gone(), [names[0]]);
        assert_eq!(walks.forget_gone(), [""; 0], "once");
        let left = &walks.found().unwrap().files;
        assert!(left.len() == 1 && left[0].file == names[1], "{left:?}");
        assert!(!walks.is_due_after_loss(begun));
        let soon = begun + AFTER_LOSS * 2;
        assert!(walks.is_due_after_loss(soon) && !walks.is_due(soon));
        // A directory that is gone tells nothing of its files.
        drop(folder);
        assert_eq!(walks.forget_gone(), [""; 0]);
    }
}
