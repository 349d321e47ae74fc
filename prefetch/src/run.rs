//! Reading ahead until the scan has ended: some threads read stretches, one follows the scan.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use seekscope_run::{Limitation, PrefetchPace, PrefetchRecord};

use crate::PrefetchError;
use crate::costs::DEPTH_MAX;
use crate::followed::{Followed, ScanReads};
use crate::following::Follower;
use crate::gain::Pauses;
use crate::guard::Guard;
use crate::memory::Budget;
use crate::preparation::Prefetch;
use crate::reading::{Shared, lock, start_readers};
use crate::stretch_reader::StretchReader;
use crate::tree_watch::NewTree;

/// Scans are made to wait only for requests slower than this: while a scan waits for leaves one by
/// one, each takes the place of a request of ours forty times as long.
const SLOW_REQUEST_NS: f64 = 1e6;
/// The longest a scan is kept waiting, as a multiple of the time that reading its file should take.
const PATIENCE: f64 = 1.5;
/// A scan may be kept waiting at least this long: in a short trial, a disk with saved-up credit looks several
/// times as fast as it is, which for a small file is all of the difference.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Decides about the beginning and the end.
pub struct Control<'a> {
    /// Lets the user's scan begin, if we decide when; called once. If everything fits into memory
    /// and requests are slow, that is when everything has been read: reading in disk order first is
    /// then quicker than with a scan in between that asks for single leaves.
    pub begin: Option<&'a mut dyn FnMut()>,
    /// Called every few milliseconds; true ends the run.
    pub has_ended: &'a mut dyn FnMut() -> bool,
    /// Ends the run after this long without a read of the file; `None`: never.
    pub idle: Option<Duration>,
    pub duration: Option<Duration>,
    /// Called now and then with the present status.
    pub progress: &'a mut dyn FnMut(&Status),
    pub stop: &'a AtomicBool,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Leaves that the scan has passed, and the total.
    pub position: u64,
    pub leaves: u64,
    pub held_bytes: u64,
    pub bytes_read: u64,
    /// How the scan is followed now, and whether a better way is being prepared.
    pub pace: PrefetchPace,
    pub is_attaching: bool,
}

/// The result of a run.
#[derive(Debug)]
pub struct Finished {
    pub record: PrefetchRecord,
    /// What could not be done during the run, why, and what grants it.
    pub limitations: Vec<Limitation>,
}

/// Returns whether an open file has no name any more.
fn is_deleted(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

fn note_deletion(mut finished: Finished, file: &File) -> Finished {
    if is_deleted(file) {
        finished.limitations.push(Limitation {
            what: "the file was deleted during the run, and nothing could be read ahead of later scans".into(),
            why: "its collection or index was dropped, or another file took its place".into(),
            remedy: String::new(),
        });
    }
    finished
}

impl Prefetch {
    /// Reads ahead until the scan, or whatever `control` says, has ended, or reading ahead turns out
    /// not to help. If that is known from the start, lets the scan begin and reads nothing.
    ///
    /// # Errors
    /// When the file can no longer be read.
    pub fn run(self, mut control: Control<'_>) -> Result<Finished, PrefetchError> {
        if !self.helps() {
            return Ok(self.leave_alone(control));
        }
        let patience = control.begin.as_ref().and_then(|_| self.patience());
        let Self {
            request,
            mut directory,
            checkpoint,
            file,
            path,
            sweep,
            costs,
            is_calibrated,
            request_bytes,
            alone,
            pace,
            attaching,
            began_ns,
            counts,
            record,
            ..
        } = self;
        let shared = Shared::new(sweep, costs, is_calibrated, request_bytes, counts);
        if patience.is_some() {
            shared.reads_alone();
        }
        let depth = request.depth.or(is_calibrated.then_some(costs.depth));
        let reader = StretchReader::new(Arc::clone(&file), request_bytes);
        // If it is not known what is in memory, nothing is given back, and a pause would only show
        // how fast the scan is with us.
        let measures_gain = request.measure_gain && reader.sees_residency();
        let new_tree = NewTree::default();
        let name = record.file.clone();
        let mut follower = Follower {
            shared: &shared,
            new_tree: &new_tree,
            reader,
            guard: request.guard.then(Guard::default),
            intensity: 1.0,
            peace: Duration::ZERO,
            helps: true,
            scan_waits: false,
            scan: ScanReads::default(),
            depth_max: depth.unwrap_or(DEPTH_MAX),
            has_named_depth: request.depth.is_some(),
            judged: counts,
            pace,
            attaching,
            has_command: control.begin.is_some(),
            limitations: Vec::new(),
            followed: Followed::new(control.begin.is_some().then_some(began_ns)),
            pauses: measures_gain.then(Pauses::default),
            tried_since: None,
            record,
            budget: Budget::new(request.window_bytes),
            checked: Instant::now(),
            alone: &alone,
        };
        std::thread::scope(|scope| {
            // However this ends, the threads that are waited for here go on until they are told to
            // stop.
            let _until_then = shared.until_dropped();
            let threads = || -> std::io::Result<()> {
                let depth = follower.depth_max;
                start_readers(scope, &shared, depth, request.depth, &file, &alone)?;
                let (new_tree, over) = (&new_tree, &shared.over);
                let watch = move || new_tree.watch(&mut directory, &name, checkpoint, over);
                let thread = std::thread::Builder::new().name("tree-watch".into());
                thread.spawn_scoped(scope, watch)?;
                Ok(())
            };
            let started = threads();
            if started.is_ok() {
                follower.follow(&mut control, patience);
            }
            started
        })
        .map_err(|source| PrefetchError::Thread { source })?;
        let finished = note_deletion(follower.finish(), &file);
        let failure = lock(&shared.failure).take();
        match failure.filter(|_| finished.record.bytes_read == 0) {
            // Some blocks may be gone with a checkpoint; if nothing was read, something is wrong.
            Some(source) => Err(PrefetchError::Read { path, source }),
            None => Ok(finished),
        }
    }

    /// Lets the scan begin, and does nothing that it would notice.
    fn leave_alone(self, control: Control<'_>) -> Finished {
        if let Some(begin) = control.begin {
            begin();
        }
        Finished {
            record: self.record,
            limitations: Vec::new(),
        }
    }

    /// Returns how long a scan may be kept waiting for all of its leaves: a multiple of the time
    /// that reading them should take, in one stretch or by single requests; `None`: not at all, as
    /// on a disk that is tried meanwhile, of which too little is known.
    fn patience(&self) -> Option<Duration> {
        let (costs, record) = (&self.costs, &self.record);
        let waits = self.is_calibrated && self.sweep.fits() && costs.request_ns >= SLOW_REQUEST_NS;
        let in_one_s = record.file_bytes as f64 / costs.bytes_per_s.max(1.0);
        let singly_s = record.leaf_pages as f64 * costs.request_ns / 1e9;
        let patience = Duration::try_from_secs_f64(PATIENCE * in_one_s.min(singly_s));
        waits.then(|| patience.unwrap_or_default().max(PATIENCE_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_seen_to_be_deleted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = File::open(file.path()).unwrap();
        assert!(!is_deleted(&open));
        drop(file);
        assert!(is_deleted(&open));
    }
}
