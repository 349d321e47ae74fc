//! Notices that one of the files has changed, and reads them anew.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::{Access, WebConfig, named_files, read_form};
use crate::exit::{Usage, message_of};
use crate::progress::Progress;

/// How often is looked. A change is taken when the files have stayed the same for this long, so that neither a file
/// that is half written is read, nor a new certificate with the old key.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What changes with each change of a file, its permissions included; `None` where there is no file.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

fn stamp(path: &Path) -> Stamp {
    let facts = fs::metadata(path).ok()?;
    let (ctime_s, ctime_ns) = (facts.ctime(), facts.ctime_nsec());
    Some((facts.dev(), facts.ino(), facts.len(), ctime_s, ctime_ns))
}

/// The files and what they said when they were last right.
pub struct Rereading {
    files: Files,
    config: watch::Sender<Arc<WebConfig>>,
}

struct Files {
    path: PathBuf,
    /// The file itself and those that it names, as they were when they were last read.
    read: Vec<(PathBuf, Stamp)>,
    /// The same files, as they were when they were last looked at.
    seen: Vec<Stamp>,
}

impl Rereading {
    /// Reads the files for the first time.
    pub fn begin(path: &Path) -> Result<Self> {
        let mut files = Files {
            path: path.to_path_buf(),
            read: Vec::new(),
            seen: Vec::new(),
        };
        let config = Arc::new(files.read()?);
        let config = watch::channel(config).0;
        Ok(Self { files, config })
    }

    /// Returns what holds, now and later.
    pub fn access(&self) -> Result<Access> {
        Access::new(self.config.subscribe())
    }

    /// Reads the files whenever they have changed. What is wrong then changes nothing, and is said once.
    pub async fn run(self, progress: Progress) -> Infallible {
        let Self { mut files, config } = self;
        loop {
            sleep(LOOK_EVERY).await;
            let before = Arc::clone(&config.borrow());
            let looked = spawn_blocking(move || {
                let looked = files.look(&before);
                (files, looked)
            });
            let looked = match looked.await {
                Ok((same, looked)) => {
                    files = same;
                    looked
                }
                // It panicked, or everything ends; what holds goes on holding.
                Err(_) => return std::future::pending().await,
            };
            match looked {
                None => {}
                Some(Ok(new)) => {
                    config.send_replace(Arc::new(new));
                    progress.say(
                        "the file of --web-config has changed; its new content applies from now on",
                    );
                }
                Some(Err(error)) => progress.complain(format!(
                    "{}; the previous configuration still applies",
                    message_of(&error)
                )),
            }
        }
    }
}

impl Files {
    /// Returns what the files say, if they have changed and now stay the same.
    fn look(&mut self, before: &WebConfig) -> Option<Result<WebConfig>> {
        let now: Vec<Stamp> = self.read.iter().map(|(path, _)| stamp(path)).collect();
        let is_settled = now == self.seen;
        let is_read = now.iter().eq(self.read.iter().map(|(_, stamp)| stamp));
        self.seen = now;
        (is_settled && !is_read).then(|| {
            let new = self.read()?;
            match new.lost_since(before) {
                None => Ok(new),
                Some(lost) => {
                    let why = format!("it no longer has {lost}, which requires a restart");
                    Err(Usage(why)).with_context(|| self.shown())
                }
            }
        })
    }

    /// Reads the files; which they were is noted before, so that a change meanwhile is noticed.
    fn read(&mut self) -> Result<WebConfig> {
        self.read = vec![(self.path.clone(), stamp(&self.path))];
        let config = read_form(&self.path).and_then(|form| {
            let named = named_files(&form).into_iter();
            self.read.extend(named.map(|path| {
                let stamp = stamp(&path);
                (path, stamp)
            }));
            WebConfig::read(form)
        });
        self.seen = self.read.iter().map(|(_, stamp)| *stamp).collect();
        config.with_context(|| self.shown())
    }

    fn shown(&self) -> String {
        format!("--web-config {}", self.path.display())
    }
}

#[cfg(test)]
mod tests;
