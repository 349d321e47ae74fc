//! New checkpoints: a thread that looks for them, walks the tree again, and leaves it for the other
//! threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use seekscope_layout::{DataDirectory, LayoutError, WalkOptions};
use seekscope_wiredtiger::Leaf;

const EVERY: Duration = Duration::from_secs(1);
const STOP_NOTICED: Duration = Duration::from_millis(20);
const PARALLEL_READS: usize = 4;

/// The leaves of the newest checkpoint, kept from the thread that walked it until another takes them.
#[derive(Debug, Default)]
pub(crate) struct NewTree(Mutex<Option<Vec<Leaf>>>);

impl NewTree {
    pub(crate) fn take(&self) -> Option<Vec<Leaf>> {
        let mut leaves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaves.take()
    }

    /// Looks for new checkpoints until told to stop. A walk that fails is tried again with the next
    /// checkpoint; the scan goes on in the known tree.
    pub(crate) fn watch(
        &self,
        directory: &mut DataDirectory,
        file: &str,
        checkpoint: Option<u64>,
        stop: &AtomicBool,
    ) {
        let mut known = checkpoint;
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(STOP_NOTICED);
            if looked.elapsed() < EVERY {
                continue;
            }
            looked = Instant::now();
            if let Ok(Some((order, leaves))) = newer(directory, file, known, stop) {
                known = Some(order);
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(leaves);
            }
        }
    }
}

/// Returns the tree of a checkpoint other than the known one, if there is one.
fn newer(
    directory: &mut DataDirectory,
    file: &str,
    known: Option<u64>,
    stop: &AtomicBool,
) -> Result<Option<(u64, Vec<Leaf>)>, LayoutError> {
    if !directory.refresh(stop)? {
        return Ok(None);
    }
    let table = directory.find(file)?;
    let newest = table
        .config
        .as_ref()
        .ok()
        .and_then(|c| c.newest_checkpoint());
    if newest.is_none_or(|newest| Some(newest.order) == known) {
        return Ok(None);
    }
    let walked = directory.walk(table, &walk_options(stop))?;
    let order = walked.checkpoint.map_or(0, |checkpoint| checkpoint.order);
    Ok(Some((order, walked.tree.leaves)))
}

/// Returns the options with which trees are read here.
pub(crate) fn walk_options(stop: &AtomicBool) -> WalkOptions<'_> {
    WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop,
        keep_pages: true,
    }
}
