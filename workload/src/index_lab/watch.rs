//! Watches the server while an index is being built.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use seekscope_run::ProcessIo;
use seekscope_server::process::io_between;
use seekscope_server::{ProcFs, Server, number, page_cache};

use super::lab::BuildProgress;

const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// mongod's external sorter spills into this folder of the data directory.
const SPILL_FOLDER: &str = "_tmp";

/// What was seen of the server during a build. `None`: not accessible.
#[derive(Debug)]
pub(super) struct Watch {
    pid: Option<u32>,
    spill_folder: Option<PathBuf>,
    io_before: Option<ProcessIo>,
    /// I/O of the server's process from begin to end.
    pub(super) io: Option<ProcessIo>,
    pub(super) rss_bytes: Option<u64>,
    pub(super) temp_bytes: Option<u64>,
}

impl Watch {
    /// Starts watching, before the build.
    pub(super) fn begin(pid: Option<u32>, data_directory: Option<&Path>) -> Self {
        Self {
            pid,
            spill_folder: data_directory
                .filter(|d| d.is_dir())
                .map(|d| d.join(SPILL_FOLDER)),
            io_before: pid.and_then(|pid| ProcFs::host().io(pid).ok()),
            io: None,
            rss_bytes: None,
            temp_bytes: None,
        }
    }

    /// Watches until dropped, and reports the server's own progress each second.
    pub(super) async fn look(
        &mut self,
        server: &Server,
        collection: &str,
        progress: &(dyn Fn(BuildProgress) + Send + Sync),
    ) {
        let start = Instant::now();
        let mut told = start;
        loop {
            self.look_once();
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                let reply = server.command("admin", doc! { "currentOp": 1 }).await;
                let (done, total) = reply
                    .ok()
                    .and_then(|r| build_progress(&r, collection))
                    .unwrap_or_default();
                progress(BuildProgress {
                    elapsed: start.elapsed(),
                    done,
                    total,
                });
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Updates the highest values.
    fn look_once(&mut self) {
        let rss = self.pid.and_then(|pid| ProcFs::host().rss_bytes(pid).ok());
        self.rss_bytes = self.rss_bytes.max(rss);
        let spilled = self.spill_folder.as_deref().map(bytes_below);
        self.temp_bytes = self.temp_bytes.max(spilled);
    }

    /// Stops watching; call this when the build has ended.
    pub(super) fn end(&mut self) {
        self.look_once();
        let now = self.pid.and_then(|pid| ProcFs::host().io(pid).ok());
        self.io = self
            .io_before
            .as_ref()
            .zip(now)
            .map(|(before, now)| io_between(before, &now));
    }
}

/// Returns the bytes of the files in a folder; a missing folder holds none.
fn bytes_below(folder: &Path) -> u64 {
    let files = page_cache::files_below(folder).unwrap_or_default();
    files
        .iter()
        .filter_map(|path| path.metadata().ok())
        .map(|m| m.len())
        .sum()
}

/// Returns the server's reported progress: done, and total. Only some servers report it.
fn build_progress(reply: &Document, collection: &str) -> Option<(u64, u64)> {
    let operations = reply.get_array("inprog").ok()?;
    let building = operations
        .iter()
        .filter_map(Bson::as_document)
        .find(|operation| {
            let command = operation.get_document("command").ok();
            command.and_then(|c| c.get_str("createIndexes").ok()) == Some(collection)
        })?;
    let progress = building.get_document("progress").ok()?;
    Some((
        number(progress.get("done")?)?,
        number(progress.get("total")?)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_that_of_our_collection() {
        let other =
            doc! { "command": { "createIndexes": "x" }, "progress": { "done": 1, "total": 2 } };
        let ours = doc! { "command": { "createIndexes": "c" }, "progress": { "done": 30_i64, "total": 70.0 } };
        let reply = doc! { "inprog": [1, other, ours] };
        assert_eq!(build_progress(&reply, "c"), Some((30, 70)));
        assert_eq!(build_progress(&reply, "d"), None);
        assert_eq!(build_progress(&doc! { "inprog": 5 }, "c"), None);
    }

    #[test]
    fn spilled_bytes_are_those_below_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let mut watch = Watch::begin(None, Some(root.path()));
        watch.look_once();
        assert_eq!((watch.temp_bytes, watch.rss_bytes), (Some(0), None));
        std::fs::create_dir(root.path().join("_tmp")).unwrap();
        std::fs::write(root.path().join("_tmp/extsort.1"), [0; 100]).unwrap();
        watch.look_once();
        std::fs::remove_dir_all(root.path().join("_tmp")).unwrap();
        watch.look_once();
        assert_eq!(watch.temp_bytes, Some(100), "the most that was seen");
        assert_eq!(
            Watch::begin(None, Some(Path::new("/nowhere"))).spill_folder,
            None
        );
    }
}
