//! Pausing the writers by a command, as an operator would: it sets a file and waits until the writers
//! have confirmed by another that they stand still.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::task::JoinHandle;

const POLL: Duration = Duration::from_millis(2);

/// Held for reading by each write under way; held for writing while nobody may write.
pub type Gate = Arc<RwLock<()>>;

/// The two files.
#[derive(Debug, Clone)]
pub struct PauseFiles {
    wanted: PathBuf,
    confirmed: PathBuf,
}

impl PauseFiles {
    pub fn new(folder: &Path) -> Self {
        Self {
            wanted: folder.join("pause-wanted"),
            confirmed: folder.join("paused"),
        }
    }

    /// Returns the command for `--pause-writers`.
    pub fn pause_command(&self) -> String {
        let (wanted, confirmed) = (self.wanted.display(), self.confirmed.display());
        format!("touch '{wanted}'; until [ -e '{confirmed}' ]; do sleep 0.01; done")
    }

    /// Returns the command for `--continue-writers`.
    pub fn continue_command(&self) -> String {
        let (wanted, confirmed) = (self.wanted.display(), self.confirmed.display());
        format!("rm -f '{wanted}'; while [ -e '{confirmed}' ]; do sleep 0.01; done")
    }

    pub fn is_wanted(&self) -> bool {
        self.wanted.exists()
    }

    /// Lets the writers go on whatever anyone wanted.
    pub fn lift(&self) {
        let _ = std::fs::remove_file(&self.wanted);
    }

    /// Closes the gate as long as a pause is wanted. The task ends when it is aborted.
    pub fn serve(&self, gate: Gate) -> JoinHandle<()> {
        let files = self.clone();
        tokio::spawn(async move {
            loop {
                if files.is_wanted() {
                    let closed = gate.write().await;
                    // Whoever waits for the file in vain reports it.
                    let _ = std::fs::write(&files.confirmed, "");
                    while files.is_wanted() {
                        tokio::time::sleep(POLL).await;
                    }
                    let _ = std::fs::remove_file(&files.confirmed);
                    drop(closed);
                }
                tokio::time::sleep(POLL).await;
            }
        })
    }
}
