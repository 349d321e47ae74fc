//! `doctor URI --index KEYS --allow-index-build`: an index built, traced, on a server that is not ours,
//! and dropped again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{CacheState, DeviceFacts, Disk, Limitation, Phase};
use seekscope_server::examination::refuse_router;
use seekscope_server::{Namespace, NamespaceError, ProcFs, Server};
use seekscope_workload::{IndexKeys, IndexPlan, drop_index};

use super::measurement::{Measurement, Traced};
use crate::args::ExamineArgs;
use crate::exit::Usage;
use crate::file_names::FileNames;
use crate::layout::seen_from_here;
use crate::progress::Progress;
use crate::session::Session;

/// Marks the index as ours, so that nobody wonders and a crashed run's can be found.
const INDEX_NAME: &str = "seekscope_doctor";
/// How long an interrupted run may take to remove its index.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);

/// The limitation that makes a run incomplete.
pub const INDEX_STAYED: &str = "the index built for this run could not be removed";
const REMOVE_TRIES: u32 = 5;
const REMOVE_PAUSE: Duration = Duration::from_millis(200);

/// An index that this run builds and must not leave behind.
#[derive(Debug, Clone)]
pub struct ForeignIndex {
    uri: String,
    namespace: Namespace,
}

impl ForeignIndex {
    /// Removes the index, finished or still being built. `Err` says what to type instead.
    pub async fn remove(self) -> Result<(), String> {
        let by_hand = format!(
            "the index {INDEX_NAME} may still be on {}; remove it with: db.getCollection({}).dropIndex({INDEX_NAME:?})",
            self.namespace,
            serde_json::Value::from(self.namespace.collection()),
        );
        let removal = async {
            let server = Server::connect(&self.uri).await?;
            for _ in 0..REMOVE_TRIES {
                match drop_index(&server, &self.namespace, INDEX_NAME).await {
                    Err(error) if error.to_string().contains("IndexNotFound") => {
                        // Never begun, or the command is still on its way: look again.
                        tokio::time::sleep(REMOVE_PAUSE).await;
                    }
                    other => return Ok(other?),
                }
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(REMOVE_LIMIT, removal).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{by_hand} ({error})")),
            Err(_) => Err(by_hand),
        }
    }
}

/// What was asked for, checked before anything is touched.
pub struct Request<'a> {
    uri: &'a str,
    pid: Option<u32>,
    namespace: Namespace,
    keys: IndexKeys,
}

impl<'a> Request<'a> {
    /// Checks names and key pattern.
    pub fn new(uri: &'a str, args: &ExamineArgs) -> Result<Self, Usage> {
        let ([collection], Some(index)) = (args.collection.as_slice(), &args.index) else {
            let why =
                "--allow-index-build builds one index on one collection: name --collection once";
            return Err(Usage(why.into()));
        };
        Ok(Self {
            uri,
            pid: args.pid,
            namespace: collection
                .parse()
                .map_err(|e: NamespaceError| Usage(e.to_string()))?,
            keys: IndexKeys::parse(index).map_err(|e| Usage(e.to_string()))?,
        })
    }
}

/// Runs it. While `to_remove` is `Some`, the index named there may exist.
pub async fn run(
    session: &mut Session,
    request: &Request<'_>,
    progress: Progress,
    to_remove: &mut Option<ForeignIndex>,
) -> Result<()> {
    let server = {
        let _step = progress.step("connecting");
        Server::connect(request.uri).await?
    };
    refuse_router(&server).await?;
    let pid = describe(session, &server, request.pid).await?;
    let namespace = &request.namespace;
    let data = data_directory(session, pid);
    let named = std::slice::from_ref(namespace);
    let names = FileNames::find(Some(&server), data.as_deref(), named).await;
    session.file_map = Some(names.map);
    names.limitation.into_iter().for_each(|l| session.limit(l));
    session.save()?;
    progress.say(contract(session));
    let plan = IndexPlan::check(&server, namespace, &request.keys, INDEX_NAME).await?;
    *to_remove = Some(ForeignIndex {
        uri: request.uri.to_string(),
        namespace: namespace.clone(),
    });
    let result = build(session, &server, &plan, pid, progress).await;
    // The entry stays until the removal is over: a signal may come in the middle of it.
    if let Some(index) = to_remove.clone() {
        note_removal(session, index.remove().await);
        *to_remove = None;
    }
    result
}

/// Notes that an index stayed behind, if it did.
pub fn note_removal(session: &mut Session, removed: Result<(), String>) {
    if let Err(by_hand) = removed {
        session.limit(Limitation {
            what: INDEX_STAYED.into(),
            why: "the server refused or did not answer".into(),
            remedy: by_hand,
        });
    }
}

/// Notes server and device facts; returns the process to trace.
async fn describe(session: &mut Session, server: &Server, pid: Option<u32>) -> Result<Option<u32>> {
    let mut facts = server.facts(&ProcFs::host()).await;
    if let Some(pid) = pid {
        facts.target.pid = Some(pid);
        facts
            .missing
            .retain(|m| !m.what.contains("process is not known"));
    }
    facts.missing.into_iter().for_each(|m| session.limit(m));
    if let Some(dbpath) = &facts.target.dbpath {
        session.document.device = DeviceFacts::of_path(Path::new("/"), Path::new(dbpath)).ok();
    }
    let pid = facts.target.pid;
    session.document.target = Some(facts.target);
    Ok(pid)
}

/// As this process can open it.
fn data_directory(session: &Session, pid: Option<u32>) -> Option<PathBuf> {
    let told = session.document.target.as_ref()?.dbpath.as_deref()?;
    seen_from_here(pid?, Path::new(told)).ok()
}

fn contract(session: &Session) -> String {
    let target = session.document.target.as_ref();
    let server = target.map_or("the server", |t| t.uri.as_str());
    format!(
        "Examining an index build on {server}.\n\
         \x20 Reads: server status, catalogue, /proc of the server process, its reads and writes by eBPF.\n\
         \x20 Writes: builds the index {INDEX_NAME} on the collection, as permitted, and drops it again.\n\
         \x20 Never: reads documents, restarts or reconfigures anything.\n\
         \x20 Cost: a few µs of CPU time per read or write of the server, a few thousandths of one CPU\n\
         \x20       when it is idle, 16 MiB of memory, and at the end about 150 bytes per read or write.\n\
         \x20 Ctrl-C stops at any moment.",
    )
}

/// The stretch of time in which a server that is not ours is watched.
pub fn phase(activity: String, namespace: Option<&Namespace>) -> Phase {
    Phase {
        name: "observed".into(),
        variant: "observed".into(),
        activity,
        namespace: namespace.map(ToString::to_string),
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "caches of a server that is not ours are left alone; reads that hit them cost a cold server more".into(),
        },
        started_ns: 0,
        ended_ns: 0,
        index_build: None,
        trace: None,
        process_io: None,
    }
}

async fn build(
    session: &mut Session,
    server: &Server,
    plan: &IndexPlan,
    pid: Option<u32>,
    progress: Progress,
) -> Result<()> {
    let (shown, namespace) = (plan.keys.to_json(), &plan.namespace);
    let phase = phase(format!("index build {shown}"), Some(namespace));
    let measurement = Measurement::begin(session, pid, Traced::Calls, phase)?;
    let _step = progress.step(format!("building {shown} on {namespace}, traced"));
    let built = plan.build(server).await;
    drop(measurement);
    session.close_phase(built.as_ref().ok().cloned())?;
    built?;
    Ok(())
}
