//! Reads ahead of an initial sync: of the collections that a member copies from the server, each from its first
//! page to its last, one after the other.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_run::units::{format_list, nanoseconds};
use seekscope_run::{Limitation, MemberState, PrefetchForSync, RunDocument};
use seekscope_server::examination::{CopyCursor, copy_cursors, set_status};
use seekscope_server::{Server, ServerError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::target::Target;
use super::{Scans, Work};
use crate::exit::{Elsewhere, Usage, message_of};

/// How often the server is asked.
const EVERY: Duration = Duration::from_millis(250);
/// A server that does not answer for this long is given up.
const SILENT_MAX: Duration = Duration::from_secs(60);
/// Smaller files are copied before the disk has been tried and the tracer attached.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// The most members that are named.
const NAMES_SHOWN: usize = 50;

/// What the server said of the member.
#[derive(Debug, Clone)]
struct Look {
    at: Instant,
    state: MemberState,
    /// The server from which it copies, where that is another.
    elsewhere: Option<String>,
    copies: Vec<CopyCursor>,
    /// The copies seen in all looks so far, in the order in which they were first seen: a copy may begin and end while
    /// another collection is being looked at.
    seen: Vec<CopyCursor>,
}

impl Look {
    /// Asks the server; `None` if the set has no such member.
    async fn take(server: &Server, member: &str) -> Result<Option<Self>, ServerError> {
        let status = set_status(server).await?;
        let copies = copy_cursors(server).await?;
        let source = status.source(member).map(String::from);
        Ok(status.state(member).map(|state| Self {
            at: Instant::now(),
            state,
            elsewhere: source.filter(|source| Some(source.as_str()) != status.own_name()),
            seen: copies.clone(),
            copies,
        }))
    }

    /// Puts the copies that were seen before in front of those seen now.
    fn after(mut self, before: &Self) -> Self {
        let new = self
            .seen
            .into_iter()
            .filter(|copy| !before.seen.contains(copy));
        self.seen = before.seen.iter().cloned().chain(new).collect();
        self
    }

    /// Returns the server from which the member copies, where that is another.
    fn copies_elsewhere(&self) -> Option<&str> {
        let elsewhere = self.elsewhere.as_deref();
        elsewhere.filter(|_| self.state == MemberState::InitialSync)
    }

    /// Returns whether the member is in its initial sync, of which others hear some seconds late, or is about to begin it.
    fn is_syncing(&self) -> bool {
        let begins = matches!(self.state, MemberState::Startup | MemberState::InitialSync);
        begins || !self.copies.is_empty()
    }
}

/// Watches what a member copies from the server.
pub struct SyncWatch {
    member: String,
    looks: watch::Receiver<Look>,
    task: JoinHandle<()>,
}

impl SyncWatch {
    /// Asks the server for the first time, and goes on asking.
    ///
    /// # Errors
    /// The server is in no replica set or is the member itself, its set has no such member or that copies from another
    /// server, or it refuses an answer.
    pub async fn begin(target: &Target, member: &str) -> Result<Self> {
        let server = target.server.clone().ok_or_else(|| {
            Usage(
                "--for-sync wants the connection string of the server that the member copies from"
                    .into(),
            )
        })?;
        let status = set_status(&server).await?;
        if status.own_name() == Some(member) {
            let text = format!(
                "{member} is the server that {} names, which copies nothing from itself: --for-sync wants the member \
                 that copies from it",
                server.shown_uri()
            );
            return Err(Usage(text).into());
        }
        let Some(first) = Look::take(&server, member).await? else {
            let mut names: Vec<&str> = status.names().map(String::as_str).collect();
            names.sort_unstable();
            let text = format!(
                "{} has no member {member} (add one that is new first, and start its sync afterwards); its members are {}",
                server.shown_uri(),
                format_list(&names, NAMES_SHOWN, ", ")
            );
            return Err(Usage(text).into());
        };
        if let Some(source) = first.copies_elsewhere() {
            let text = format!("{member} copies from {source}: name that server, on its host");
            return Err(Usage(text).into());
        }
        let (sender, looks) = watch::channel(first);
        let asked = member.to_string();
        let task = tokio::spawn(async move {
            while !sender.is_closed() {
                tokio::time::sleep(EVERY).await;
                if let Ok(Some(look)) = Look::take(&server, &asked).await {
                    let look = look.after(&sender.borrow());
                    sender.send_replace(look);
                }
            }
        });
        Ok(Self {
            member: member.into(),
            looks,
            task,
        })
    }

    fn look(&self) -> Look {
        self.looks.borrow().clone()
    }

    /// Returns whether the cursor was there at the last look.
    fn has(&self, cursor: i64) -> bool {
        let look = self.looks.borrow();
        look.copies.iter().any(|copy| copy.id == cursor)
    }
}

impl Drop for SyncWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Work {
    /// Reads ahead of each collection that the member copies, until its initial sync has ended.
    pub(super) fn ahead_of_sync(&mut self, sync: &SyncWatch, stop: &AtomicBool) -> Result<()> {
        let member = sync.member.as_str();
        self.session.document.prefetch_for_sync = Some(PrefetchForSync {
            member: member.into(),
            ..PrefetchForSync::default()
        });
        let began = Instant::now();
        let mut passed: HashSet<i64> = HashSet::new();
        let (mut first_seen, mut quiet_since) = (None, Instant::now());
        let mut step = None;
        while !stop.load(Ordering::Relaxed) {
            let left = self
                .args
                .pace
                .duration
                .map(|time| time.saturating_sub(began.elapsed()));
            let look = sync.look();
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            if let Some(why) = self.lost(&look) {
                return Err(Elsewhere(format!("no longer following {member}: {why}")).into());
            }
            if let Some(source) = look.copies_elsewhere() {
                self.session.limit(Limitation {
                    what: format!("nothing is read ahead of {member} any more"),
                    why: match first_seen {
                        Some(_) => format!("it began anew, and copies from {source}"),
                        None => format!("it copies from {source}"),
                    },
                    remedy: "run seekscope prefetch on that server's host".into(),
                });
                break;
            }
            if look.is_syncing() {
                quiet_since = Instant::now();
            }
            if look.state == MemberState::InitialSync || !look.copies.is_empty() {
                let since: &mut Instant = first_seen.get_or_insert(look.at);
                self.note(|sync| sync.sync_ns = nanoseconds(look.at - *since));
            }
            let has_ended = first_seen.is_some() && look.state == MemberState::Secondary;
            if look.copies.is_empty() && has_ended {
                self.note(|sync| sync.completed = true);
                break;
            }
            if quiet_since.elapsed() >= self.args.pace.idle {
                break;
            }
            let next = look.seen.into_iter().find(|copy| passed.insert(copy.id));
            match next {
                Some(copy) => {
                    step = None;
                    self.ahead_of_copy(sync, &copy, left, stop)?;
                }
                None => {
                    let waiting =
                        || format!("waiting for the next collection that {member} copies");
                    step.get_or_insert_with(|| self.progress.step(waiting()));
                    std::thread::sleep(EVERY / 5);
                }
            }
        }
        drop(step);
        Ok(())
    }

    /// Reads ahead of the copy of one collection, if its file is large enough for that to help.
    fn ahead_of_copy(
        &mut self,
        sync: &SyncWatch,
        copy: &CopyCursor,
        left: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let name = copy.collection.to_string();
        let file = match self.target.file(&name) {
            Ok(file) => file,
            Err(error) => {
                self.not_ahead_of(&name, error.to_string());
                return Ok(());
            }
        };
        let path = self.target.directory.join(&file.path);
        if path
            .metadata()
            .is_ok_and(|file| file.len() < FILE_BYTES_MIN)
        {
            self.note(|sync| sync.small_collections += 1);
            return Ok(());
        }
        if !sync.has(copy.id) {
            self.not_ahead_of(&name, "it was over before its turn came".into());
            return Ok(());
        }
        let place = self.session.document.prefetch_for_sync.as_ref();
        let place = place.map_or(0, |sync| sync.collections.len());
        let done = self.read_ahead(
            Scans {
                name: &name,
                file,
                has_ended: &mut || !sync.has(copy.id),
                idle: None,
                duration: left,
                keep: &mut |document, record| {
                    let sync = of(document);
                    sync.collections.truncate(place);
                    sync.collections.push(record);
                },
            },
            stop,
        );
        match done {
            // One collection that is dropped meanwhile does not end the copies of the others.
            Err(error) if !stop.load(Ordering::Relaxed) => {
                self.not_ahead_of(&name, message_of(&error));
                Ok(())
            }
            done => done,
        }
    }

    fn not_ahead_of(&mut self, name: &str, why: String) {
        self.session.limit(Limitation {
            what: format!("the copy of {name} was not read ahead of to its end"),
            why,
            remedy: String::new(),
        });
    }

    /// Returns why nothing more can be known of the sync; `None` while it can.
    fn lost(&mut self, look: &Look) -> Option<String> {
        let silent = look.at.elapsed() > SILENT_MAX;
        self.server.sees_its_end();
        let silent = silent.then(|| "the server does not answer any more".to_string());
        self.server.told().or(silent)
    }

    fn note(&mut self, change: impl FnOnce(&mut PrefetchForSync)) {
        change(of(&mut self.session.document));
    }
}

fn of(document: &mut RunDocument) -> &mut PrefetchForSync {
    document.prefetch_for_sync.get_or_insert_default()
}
