//! Watches a server, read-only, at its own work or during index builds. Leaves records, which `conclusion`
//! interprets.
//!
//! `subject` finds whom to examine and what is permitted, and `contract` announces it; `gathering` watches,
//! with its parts in parallel: `counters`, the trace, `leaf_order` of the data files and `builds`, supervised
//! by `guard`. `disk_ability` says what the disk can do, `history` what happened before, `cost` what the
//! examination took.

mod builds;
mod contract;
mod cost;
mod counters;
mod deployment;
mod disk_ability;
mod gathering;
mod guard;
mod history;
mod leaf_order;
mod subject;

use std::path::Path;

use anyhow::Result;
use mongodb::bson::doc;
use seekscope_run::units::nanoseconds;
use seekscope_run::{
    Disk, ExaminationRecord, HostFacts, Limitation, MemberState, Phase, RunDocument,
};
use seekscope_server::examination::{FoundDeployment, OthersAsked};
use seekscope_server::{Namespace, NamespaceError, ProcFs, Server, first_batch};
use seekscope_workload::IndexKeys;

use super::demo;
use super::measurement::observed;
use crate::args::{BuildArgs, DemoArgs, ExamineArgs};
use crate::ending;
use crate::environment::Environment;
use crate::exit::{BrokenOff, Inconsistent, Usage};
use crate::interruption::Interruption;
use crate::local_members::FOR_SILENT;
use crate::progress::Progress;
use crate::session::{self, Session};
pub use builds::Builds;
use deployment::Whole;
use gathering::Gathering;
use subject::Subject;

/// A request to examine a server, checked before anything is touched.
#[derive(Debug, Clone)]
pub struct Asked {
    pub uri: String,
    pub args: ExamineArgs,
    pub namespaces: Vec<Namespace>,
    /// The index that may be built on the only collection named.
    pub build: Option<IndexKeys>,
    /// Other members that are asked for what they say of themselves.
    pub others: OthersAsked,
    /// How many members are examined at once on this host.
    pub at_once: usize,
}

impl Asked {
    /// Checks the names and returns the request.
    pub fn new(uri: &str, args: &ExamineArgs) -> Result<Self, Usage> {
        let names = args.collection.iter().map(|name| name.parse());
        let namespaces = names.collect::<Result<_, NamespaceError>>();
        Ok(Self {
            uri: uri.to_string(),
            args: args.clone(),
            namespaces: namespaces.map_err(|e| Usage(e.to_string()))?,
            build: None,
            others: match args.no_members {
                true => OthersAsked::Nobody,
                false => OthersAsked::All,
            },
            at_once: 1,
        })
    }

    /// Returns how long to watch, ns.
    fn asked_ns(&self) -> u64 {
        nanoseconds(self.args.duration())
    }

    /// Returns the phase in which servers are watched at their own work.
    fn own_work(&self) -> Phase {
        let seconds = self.args.duration().as_secs_f64();
        let activity = format!("its own work for {seconds} s");
        observed(activity, self.namespaces.first(), Disk::Plain)
    }

    /// Adds a permitted index build.
    pub fn with_build(mut self, args: &BuildArgs) -> Result<Self, Usage> {
        let Some(index) = &args.index else {
            return Ok(self);
        };
        let keys = IndexKeys::parse(index).map_err(|e| Usage(e.to_string()))?;
        if args.allow_index_build {
            if self.namespaces.len() != 1 {
                let why = "--allow-index-build builds one index on one collection: name --collection once";
                return Err(Usage(why.into()));
            }
            self.build = Some(keys);
        }
        Ok(self)
    }
}

/// Which server is examined.
#[derive(Debug)]
pub enum Whom<'a> {
    /// One server; of several that are named, the one that suits best.
    Server(&'a Asked),
    /// The server that is named, or every member of the set or cluster that is named.
    Deployment(&'a Asked),
    /// A private server with generated documents.
    Demo(&'a DemoArgs, &'a ExamineArgs),
}

/// Examines a server; however that ends, the run directory is complete. Returns the session and the result, or
/// an error if there was no session yet.
pub async fn examine(
    whom: &Whom<'_>,
    out: Option<&Path>,
    environment: &Environment,
    arguments: Vec<String>,
    progress: Progress,
) -> Result<(Session, Result<()>)> {
    let interruption = Interruption::listen();
    let mut session = begin(arguments, out)?;
    let measured = match whom {
        Whom::Server(asked) | Whom::Deployment(asked) => {
            let may_be_whole = matches!(whom, Whom::Deployment(_));
            examine_named(
                &mut session,
                asked,
                may_be_whole,
                environment,
                progress,
                &interruption,
            )
            .await
        }
        Whom::Demo(args, examine) => {
            demo::run(
                &mut session,
                args,
                examine,
                environment,
                progress,
                &interruption,
            )
            .await
        }
    };
    for silent in silent_members(&session.document) {
        session.limit(silent);
    }
    let measured = measured.and_then(|()| check(&session));
    let measured = ending::close(&mut session, measured, progress);
    Ok((session, measured))
}

/// Returns the members that hold data and did not answer: a report on the others alone would seem to be on all.
fn silent_members(document: &RunDocument) -> Vec<Limitation> {
    let members = document.examination.iter().flat_map(|e| &e.members);
    let members = members.filter(|member| member.state != MemberState::Arbiter);
    let silent = members.filter_map(|member| {
        Some(Limitation {
            what: format!("nothing is known of the member {}", member.name),
            why: member.not_asked.clone()?,
            remedy: match member.shard {
                Some(_) => FOR_SILENT.into(),
                None => "see with rs.status() whether it is down, or whether this host may connect to it".into(),
            },
        })
    });
    silent.collect()
}

/// Begins the run of an examination.
fn begin(arguments: Vec<String>, out: Option<&Path>) -> Result<Session> {
    let mut session = Session::begin("doctor", arguments, out)?;
    session.document.host = Some(HostFacts::read(Path::new("/")));
    session.document.examination = Some(ExaminationRecord::default());
    session.save()?;
    Ok(session)
}

/// What a connection string leads to.
enum Chosen {
    One(Server),
    Whole(Whole),
}

/// Connects to the server that is examined, or finds the members of the deployment, if it may be a whole one.
async fn choose(asked: &Asked, may_be_whole: bool, progress: Progress) -> Result<Chosen> {
    let _step = progress.step("connecting");
    if asked.build.is_some() {
        // Indexes are built on the primary, which the driver finds.
        return Ok(Chosen::One(Server::connect(&asked.uri).await?));
    }
    let found = FoundDeployment::find(&asked.uri, &ProcFs::host()).await?;
    if may_be_whole && let Some(whole) = Whole::of(&found, asked) {
        return Ok(Chosen::Whole(whole));
    }
    Ok(Chosen::One(found.preferred(&asked.uri).await?))
}

/// Refuses a collection that is not there, which is mostly a slip of the pen. Whoever may not list them is believed.
async fn refuse_missing(server: &Server, namespaces: &[Namespace]) -> Result<()> {
    for namespace in namespaces {
        let named = doc! { "name": namespace.collection() };
        let list = doc! { "listCollections": 1, "filter": named, "nameOnly": true };
        let listed = server.command_in_time(namespace.database(), list).await;
        if listed.is_ok_and(|listed| first_batch(&listed).next().is_none()) {
            return Err(Usage(format!("there is no collection {namespace}")).into());
        }
    }
    Ok(())
}

/// Examines the server that the connection string names or, if it may be a whole deployment, every member here.
async fn examine_named(
    session: &mut Session,
    asked: &Asked,
    may_be_whole: bool,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    match interruption
        .or(choose(asked, may_be_whole, progress))
        .await?
    {
        Chosen::Whole(whole) => {
            deployment::examine(session, asked, &whole, environment, progress, interruption).await
        }
        Chosen::One(server) => {
            interruption
                .or(refuse_missing(&server, &asked.namespaces))
                .await?;
            examine_server(
                session,
                asked,
                server,
                None,
                environment,
                progress,
                interruption,
            )
            .await
        }
    }
}

/// Examines one server, at its own work or during index builds: those that were asked for, or `builds` on a
/// private server.
pub async fn examine_server(
    session: &mut Session,
    asked: &Asked,
    server: Server,
    builds: Option<Builds>,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    let is_ours = builds.is_some();
    let examination = session.document.examination.get_or_insert_default();
    examination.asked_ns = asked.asked_ns();
    let subject = Subject::find(session, asked, server);
    let subject = interruption.or(subject).await?;
    if let Some(target) = &mut session.document.target {
        target.local = is_ours;
    }
    disk_ability::note(session, &asked.args, &subject)?;
    let others = cost::other_tracers(&ProcFs::host()).filter(|_| subject.pid.is_some());
    others.into_iter().for_each(|l| session.limit(l));
    let mut builds = match (&asked.build, asked.namespaces.as_slice()) {
        (Some(keys), [namespace]) => {
            let permitted = Builds::permitted(&subject.server, &asked.uri, namespace, keys);
            Some(interruption.or(permitted).await?)
        }
        _ => builds,
    };
    if !is_ours {
        progress.say(contract::contract(session, asked, &subject));
    }
    // Not inside the future that a signal drops: a probe ends on its own and must be waited for.
    if asked.args.probe_disk {
        disk_ability::probe(session, &subject, environment, progress).await?;
    }
    let mut gathering = Gathering::new(session);
    let watching = gathering.watch(session, asked, &subject, builds.as_mut(), progress);
    let watched = interruption.or(watching).await;
    gathering.end(session, &subject).await?;
    if let Some(builds) = builds {
        builds.end(session).await?;
    }
    watched
}

/// Checks the run: a trace must account for every event it saw and must not have ended early by a fault of
/// ours, the server must be there to the end, and nothing of ours may remain on it.
fn check(session: &Session) -> Result<()> {
    if let Some(why) = session.unaccounted() {
        return Err(Inconsistent(why).into());
    }
    let is_grave = |l: &&Limitation| {
        [gathering::SERVER_GONE, builds::INDEX_STAYED].contains(&l.what.as_str())
            || l.what.starts_with(session::TRACE_BROKE_OFF)
    };
    match session.document.limitations.iter().find(is_grave) {
        Some(broken) => {
            let text = format!("{}: {}; {}", broken.what, broken.why, broken.remedy);
            Err(BrokenOff(text).into())
        }
        None => Ok(()),
    }
}
