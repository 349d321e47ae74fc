//! New checkpoints: a thread that looks for them, walks the tree anew, and leaves it for the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use seekscope_layout::{DataDirectory, LayoutError, WalkOptions};
use seekscope_wiredtiger::Leaf;

const EVERY: Duration = Duration::from_secs(1);
const STOP_NOTICED: Duration = Duration::from_millis(20);
const PARALLEL_READS: usize = 4;

/// The leaves of the newest checkpoint, from the thread that walked it until somebody takes them.
#[derive(Debug, Default)]
pub(crate) struct NewTree(Mutex<Option<Vec<Leaf>>>);

impl NewTree {
    pub(crate) fn take(&self) -> Option<Vec<Leaf>> {
        let mut leaves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaves.take()
    }

    /// Looks until told to stop. A walk that fails is tried again with the next checkpoint: the scan
    /// goes on in the tree that is known.
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

/// The tree of a checkpoint other than the one that is known.
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

/// How trees are read here.
pub(crate) fn walk_options(stop: &AtomicBool) -> WalkOptions<'_> {
    WalkOptions {
        parallel_reads: PARALLEL_READS,
        reads_per_s: None,
        stop,
        keep_pages: true,
    }
}
