//! Finds the servers, and reads all of them now and then. A server that is away is looked for, beside the readings of
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use seekscope_run::Limitation;
use seekscope_server::{ProcFs, ServerError, redact_uri};
use seekscope_trace::TraceError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::exported::Exported;
use super::textfile::Textfile;
use super::watched_server::{Plan, WatchedServer};
use crate::args::ExporterArgs;
use crate::exit::{Elsewhere, message_of};
use crate::progress::Progress;
use crate::subjects::{Subject, Subjects};

/// How often a server that is away is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often members are looked for that were not there before.
const LOOK_FOR_NEW: Duration = Duration::from_secs(300);
/// A server of which this many searches one after another heard nothing does not belong to its target any more. One is
/// not enough: a member that has just been started does not know its set yet.
const UNHEARD_MAX: u32 = 3;
/// How long a search may take.
const SEARCH_LIMIT: Duration = Duration::from_secs(60);

/// All servers and how they are read.
pub struct Monitor {
    targets: Vec<Target>,
    plan: Plan,
    watched: Vec<WatchedServer>,
    search: Option<JoinHandle<Vec<Sought>>>,
    searched: Option<Instant>,
    every: Duration,
    exported: Exported,
    textfile: Option<Textfile>,
    /// Why the text file was not written the last time.
    unwritten: Option<String>,
    progress: Progress,
}

/// What was named on the command line.
#[derive(Clone)]
struct Target {
    uri: Option<String>,
    pid: Option<u32>,
    /// Stands for it until its servers are found.
    shown: String,
    /// The servers that were found at some time, with the number of searches since that heard nothing of them.
    servers: BTreeMap<String, u32>,
    /// Why none was found the last time.
    failure: Option<String>,
}

/// What a search found of one target.
struct Sought {
    /// Index of the target.
    target: usize,
    found: Result<Found>,
}

#[derive(Default)]
struct Found {
    names: BTreeSet<String>,
    /// Servers that belong to it and do not answer.
    away: BTreeSet<String>,
    /// Servers that were not watched yet.
    new: Vec<WatchedServer>,
}

impl Monitor {
    pub fn new(
        args: &ExporterArgs,
        uris: Vec<String>,
        exported: Exported,
        textfile: Option<Textfile>,
        progress: Progress,
    ) -> Self {
        let of_uris = uris.into_iter().map(|uri| Target::new(Some(uri), None));
        let of_pid = args.pid.map(|pid| Target::new(None, Some(pid)));
        Self {
            targets: of_uris.chain(of_pid).collect(),
            plan: Plan::of(args),
            watched: Vec::new(),
            search: None,
            searched: None,
            every: args.every,
            exported,
            textfile,
            unwritten: None,
            progress,
        }
    }

    /// Reads for ever, unless a target turns out to be one that nobody can find.
    pub async fn run(&mut self) -> Result<()> {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.begin_search();
        // The first reading is that of the servers that are found at once.
        self.end_search().await?;
        loop {
            let until_search = LOOK_AGAIN.min(self.every);
            tokio::select! {
                _ = ticks.tick() => self.read_all().await,
                () = tokio::time::sleep(until_search) => {}
            }
            if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
                self.end_search().await?;
            }
            self.drop_lost();
            if self.wants_search() {
                self.begin_search();
            }
        }
    }

    async fn read_all(&mut self) {
        let exported = &self.exported;
        join_all(self.watched.iter_mut().map(|server| server.read(exported))).await;
        exported.round_ended();
        self.write_textfile();
    }

    /// Writes the text file. A full disk or a folder that is gone may come right again, and scrapes go on meanwhile; it
    /// is said once.
    fn write_textfile(&mut self) {
        let Some(textfile) = &mut self.textfile else {
            return;
        };
        let failure = textfile.write(&self.exported).err();
        let failure = failure.map(|error| message_of(&error));
        if let Some(failure) = &failure
            && self.unwritten.as_ref() != Some(failure)
        {
            self.progress.complain(failure);
        }
        self.unwritten = failure;
    }

    /// Stops reading servers that are away.
    fn drop_lost(&mut self) {
        let (exported, progress) = (&self.exported, self.progress);
        let targets = &self.targets;
        self.watched.retain(|server| {
            let is_lost = server.is_lost();
            if is_lost {
                exported.registry().server(&server.name).lose();
                let of_process = |target: &Target| {
                    target.pid.is_some() && target.servers.contains_key(&server.name)
                };
                // The number of a process that has ended is nobody's.
                if !targets.iter().any(of_process) {
                    progress.complain(format!(
                        "{} does not answer or has ended; looking for it again",
                        server.name
                    ));
                }
            }
            !is_lost
        });
    }

    fn wants_search(&self) -> bool {
        if self.search.is_some() {
            return false;
        }
        let watched: BTreeSet<&String> = self.watched.iter().map(|server| &server.name).collect();
        let is_lacking = self.targets.iter().any(|target| {
            let mut servers = target.servers.iter();
            let is_well =
                |(name, unheard): (&String, &u32)| *unheard == 0 && watched.contains(name);
            target.servers.is_empty() || !servers.all(is_well)
        });
        let after = if is_lacking { LOOK_AGAIN } else { LOOK_FOR_NEW };
        self.searched
            .is_none_or(|searched| searched.elapsed() >= after)
    }

    fn begin_search(&mut self) {
        let known: Vec<(String, Option<u32>)> = self
            .watched
            .iter()
            .map(|server| (server.name.clone(), server.pid()))
            .collect();
        let (targets, plan) = (self.targets.clone(), self.plan.clone());
        self.searched = Some(Instant::now());
        self.search = Some(tokio::spawn(async move {
            let searches = targets.iter().enumerate().map(|(i, target)| {
                let (known, plan) = (&known, &plan);
                async move {
                    let found = tokio::time::timeout(SEARCH_LIMIT, target.search(known, plan));
                    let found = found.await.unwrap_or_else(|_| {
                        let shown = &target.shown;
                        let why = format!("{shown} took too long to answer");
                        Err(Elsewhere(why).into())
                    });
                    Sought { target: i, found }
                }
            });
            join_all(searches).await
        }));
    }

    async fn end_search(&mut self) -> Result<()> {
        let Some(search) = self.search.take() else {
            return Ok(());
        };
        for sought in search.await? {
            match sought.found {
                Ok(found) => self.take(sought.target, found),
                Err(error) => self.note_failure(sought.target, error)?,
            }
        }
        Ok(())
    }

    /// Begins to read the servers that were found, unless another target named them too, and forgets those that left.
    fn take(&mut self, target: usize, found: Found) {
        let Some(target) = self.targets.get_mut(target) else {
            return;
        };
        target.failure = None;
        let left = target.hear_of(&found);
        if !target.servers.contains_key(&target.shown) {
            self.exported.registry().forget(&target.shown);
        }
        for name in left {
            self.forget(&name);
        }
        for server in found.new {
            if self.watched.iter().any(|known| known.name == server.name) {
                continue;
            }
            self.progress.say(format!("reading {}", server.name));
            for limitation in server.limitations() {
                let Limitation { what, why, remedy } = limitation;
                let remedy = match remedy.is_empty() {
                    true => String::new(),
                    false => format!(". {remedy}"),
                };
                let name = &server.name;
                self.progress.say(format!("{name}: {what}: {why}{remedy}"));
            }
            self.watched.push(server);
        }
    }

    /// Shows a server no longer that left its target, unless another target has it.
    fn forget(&mut self, name: &str) {
        if self.targets.iter().any(|t| t.servers.contains_key(name)) {
            return;
        }
        self.watched.retain(|server| server.name != name);
        self.exported.registry().forget(name);
        let farewell = format!("{name} no longer belongs to the servers that were named");
        self.progress.say(farewell);
    }

    /// Notes that a target was not found; one that nobody could find is an error.
    fn note_failure(&mut self, target: usize, error: anyhow::Error) -> Result<()> {
        let Some(target) = self.targets.get_mut(target) else {
            return Ok(());
        };
        if matches!(error.downcast_ref(), Some(ServerError::BadUri { .. })) {
            return Err(error);
        }
        if let Some(pid) = target.pid {
            return Err(match target.servers.is_empty() {
                true => error,
                false => Elsewhere(format!(
                    "process {pid} has ended, and a server that is started in its place has \
                     another process ID: restart the exporter with that ID, or with a connection \
                     string, with which it finds the server by itself"
                ))
                .into(),
            });
        }
        if target.servers.is_empty() {
            self.exported.registry().server(&target.shown).lose();
        }
        let message = message_of(&error);
        if target.failure.as_ref() != Some(&message) {
            self.progress.complain(&message);
            target.failure = Some(message);
        }
        Ok(())
    }
}

impl Target {
    fn new(uri: Option<String>, pid: Option<u32>) -> Self {
        let shown = match (&uri, pid) {
            (Some(uri), _) => hosts_of(&redact_uri(uri)).to_owned(),
            (None, pid) => process_name(pid.unwrap_or_default()),
        };
        Self {
            uri,
            pid,
            shown,
            servers: BTreeMap::new(),
            failure: None,
        }
    }

    /// Takes up which servers a search heard of, and returns those that left. One that is away is known until it is
    /// back: it is looked for often, and not only when new servers are.
    fn hear_of(&mut self, found: &Found) -> Vec<String> {
        let mut left = Vec::new();
        self.servers.retain(|name, unheard| {
            let is_heard = found.names.contains(name) || found.away.contains(name);
            *unheard = if is_heard { 0 } else { *unheard + 1 };
            let stays = *unheard < UNHEARD_MAX;
            if !stays {
                left.push(name.clone());
            }
            stays
        });
        let here = found.names.iter();
        self.servers.extend(here.map(|name| (name.clone(), 0)));
        left
    }

    /// Finds its servers on this host, and begins to count of those that are not `known` with this process.
    async fn search(&self, known: &[(String, Option<u32>)], plan: &Plan) -> Result<Found> {
        let proc_fs = ProcFs::host();
        if let Some(pid) = self.pid {
            let process = proc_fs.identity(pid);
            process.map_err(|_| TraceError::NoSuchProcess { pid })?;
        }
        let subjects = Subjects::find(self.uri.as_deref(), self.pid, &proc_fs).await?;
        let mut found = Found {
            away: subjects.away,
            ..Found::default()
        };
        for subject in subjects.here {
            let name = name_of(&subject);
            found.names.insert(name.clone());
            if !known.contains(&(name.clone(), subject.pid)) {
                found
                    .new
                    .push(WatchedServer::begin(name, subject, plan).await);
            }
        }
        Ok(found)
    }
}

/// Returns the hosts of a connection string without credentials.
fn hosts_of(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn name_of(subject: &Subject) -> String {
    let server = subject.server.as_ref();
    let address = server.and_then(|server| server.seeds().into_iter().next());
    let socket = || Some(server?.sockets().next()?.display().to_string());
    let named = address.or_else(socket);
    named.unwrap_or_else(|| process_name(subject.pid.unwrap_or_default()))
}

fn process_name(pid: u32) -> String {
    format!("process {pid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_away_stays_known_and_one_that_left_does_not() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = |here: &[&str], away: &[&str]| Found {
            names: names(here),
            away: names(away),
            new: Vec::new(),
        };
        let mut target = Target::new(Some("mongodb://a:1,b:2/?replicaSet=rs".into()), None);
        assert!(target.hear_of(&found(&["a:1", "b:2"], &[])).is_empty());
        for _ in 0..UNHEARD_MAX + 1 {
            let left = target.hear_of(&found(&["a:1"], &["b:2", "never-seen:3"]));
            assert_eq!(left, [""; 0]);
            assert_eq!(target.servers.get("b:2"), Some(&0));
        }
        // The only one that answered had just been started, and did not know its set yet.
        assert_eq!(target.hear_of(&found(&["a:1"], &[])), [""; 0]);
        assert_eq!(target.hear_of(&found(&["a:1", "b:2"], &[])), [""; 0]);
        for _ in 1..UNHEARD_MAX {
            assert_eq!(target.hear_of(&found(&["a:1"], &[])), [""; 0]);
        }
        assert_eq!(target.hear_of(&found(&["a:1"], &[])), ["b:2"]);
        assert_eq!(target.servers.keys().collect::<Vec<_>>(), ["a:1"]);
    }

    #[test]
    fn a_target_is_shown_without_credentials() {
        for (uri, shown) in [
            (
                "mongodb://user:secret@db1:27018/admin?tls=true",
                "db1:27018",
            ),
            ("mongodb://a:1,b:2/?replicaSet=rs0", "a:1,b:2"),
            (
                "mongodb+srv://user:p%40ss@cluster.example/",
                "cluster.example",
            ),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(Target::new(Some(uri.into()), None).shown, shown);
        }
        assert_eq!(Target::new(None, Some(7)).shown, "process 7");
    }
}
