//! Examines a whole deployment: each member on this host in a run of its own, all at once and on one clock; the
//! other members and the router are asked for what they say of themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use mongodb::bson::doc;
use seekscope_run::units::{format_list, nanoseconds};
use seekscope_run::{Deployment, Limitation, MemberRun, MemberState};
use seekscope_server::examination::{Examination, FoundDeployment, OthersAsked};
use seekscope_server::{ProcFs, Server, ServerError};
use tokio::time::{Instant, sleep};

use super::gathering::{EXTRA_MAX, GUARD_EVERY, Moments, keep_answers, questions};
use super::guard::Guard;
use super::{Asked, check, cost, counters, examine_server, silent_members};
use crate::doctor::measurement::Measurement;
use crate::ending;
use crate::environment::Environment;
use crate::exit::{BrokenOff, Elsewhere, Inconsistent, Interrupted, message_of};
use crate::interruption::Interruption;
use crate::local_members::{FOR_SILENT, LocalMember, LocalMembers};
use crate::progress::Progress;
use crate::session::Session;

/// The most members that are examined at once; further ones are only asked. Each has its own programs in the
/// kernel.
const EXAMINED_MAX: usize = 8;
/// Members named in one limitation.
const NAMED_MAX: usize = 6;

/// The servers of a deployment, by what is done with them.
#[derive(Debug)]
pub struct Whole {
    /// The members on this host are examined, as far as there are not too many.
    local: LocalMembers,
    /// Names of those that are only asked; empty if no others are to be asked.
    asked: Vec<String>,
    /// Those among them that are known to have nothing to tell, and why.
    silent: Vec<(String, String)>,
    /// How many members there are.
    members: usize,
}

impl Whole {
    /// Divides the members up; `None` if a single server is to be examined: it was named, or only one member of a
    /// set is on this host.
    pub fn of(found: &FoundDeployment, asked: &Asked) -> Option<Self> {
        let names_one = asked.args.pid.is_some() || asked.args.dbpath.is_some();
        if found.is_one_server || names_one || asked.build.is_some() {
            return None;
        }
        let mut local = LocalMembers::of(found, &asked.uri);
        if asked.args.no_members && local.router.is_none() {
            return None;
        }
        local.members.truncate(EXAMINED_MAX);
        let is_worth_it = match local.router {
            Some(_) => true,
            None => local.members.len() > 1,
        };
        let is_here = |name: &str| local.members.iter().any(|member| member.name == name);
        let is_other = |name: &str| asked.others != OthersAsked::Nobody && !is_here(name);
        let others = || {
            let members = found.members.iter();
            members.filter(|member| is_other(&member.name))
        };
        let silent = others().filter_map(|member| {
            let why = match &member.hello {
                Ok(hello) if hello.state == MemberState::Arbiter => {
                    "an arbiter, which has no data, and is left out".into()
                }
                Ok(_) => return None,
                Err(why) => format!("cannot be asked ({why})"),
            };
            Some((member.name.clone(), why))
        });
        is_worth_it.then_some(Self {
            silent: silent.collect(),
            asked: others().map(|member| member.name.clone()).collect(),
            members: found.members.len(),
            local,
        })
    }

    /// Says what will be examined.
    fn announcement(&self) -> String {
        let uri = &self.local.uri;
        let here = self.local.members.iter();
        let names: Vec<&str> = here.map(|member| member.name.as_str()).collect();
        let here = match names.as_slice() {
            [] if self.silent.len() == self.members => String::new(),
            [] => " None of them is on this host.".into(),
            [one] => format!(" On this host is {one}, which is examined as follows."),
            several => format!(
                " On this host are {}, which are examined at once, each as follows.",
                several.join(", ")
            ),
        };
        let asked = self.asked.iter();
        let asked = asked.filter(|name| self.silent.iter().all(|(silent, _)| silent != *name));
        let asked: Vec<&String> = asked.collect();
        let asked = match asked.as_slice() {
            [] => String::new(),
            [one] => format!(" {one} is only asked for its counters and settings."),
            several => format!(
                " {} others are only asked for their counters and settings.",
                several.len()
            ),
        };
        let mut silent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, why) in &self.silent {
            silent.entry(why).or_default().push(name);
        }
        let silent = silent.into_iter().map(|(why, names)| {
            let names = format_list(&names, NAMED_MAX, ", ");
            format!(" {names}: {why}.")
        });
        let silent: String = silent.collect();
        let what = match (&self.local.router, self.local.shards.len()) {
            (None, _) => format!("The replica set at {uri} has"),
            (Some(_), 0) => {
                return format!("The shards of the cluster behind {uri} are not known.");
            }
            (Some(_), 1) => format!("The sharded cluster behind {uri} has one shard with"),
            (Some(_), shards) => {
                format!("The sharded cluster behind {uri} has {shards} shards with")
            }
        };
        let count = self.members;
        let members = if count == 1 { "member" } else { "members" };
        format!("{what} {count} {members}.{here}{asked}{silent}")
    }

    /// Returns an error if no member could be examined or asked: then a router alone has answered.
    fn check_anybody(&self) -> Result<()> {
        let nobody = self.silent.len() == self.members;
        match self.silent.first().filter(|_| nobody) {
            None => Ok(()),
            Some((_, why)) => {
                let count = self.members;
                let text = format!(
                    "none of the {count} members can be asked, the first {why}; {FOR_SILENT}"
                );
                Err(Elsewhere(text).into())
            }
        }
    }

    /// Returns the requests to the members on this host. Those elsewhere are asked by the first of a set; in a
    /// cluster the router knows them.
    fn requests(&self, asked: &Asked) -> Vec<Asked> {
        let count = self.local.members.len();
        let requests = (0..count).map(|at| Asked {
            others: match at == 0 && self.local.router.is_none() {
                true => self.others(),
                false => OthersAsked::Nobody,
            },
            at_once: count,
            ..asked.clone()
        });
        requests.collect()
    }

    fn others(&self) -> OthersAsked {
        OthersAsked::Only(self.asked.clone())
    }
}

/// Examines all members and leaves the run of each in the folder of `session`'s run.
pub async fn examine(
    session: &mut Session,
    asked: &Asked,
    whole: &Whole,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    record(session, asked, whole).await?;
    progress.say(whole.announcement());
    let mut sessions = begin_members(session, whole)?;
    let measurement = Measurement::begin(session, None, None, asked.own_work())?;
    let begun = Instant::now();
    let (mut examination, mut guard) = (None, Guard::new(None));
    let worked = {
        let members = examine_members(
            &mut sessions,
            asked,
            whole,
            environment,
            progress,
            interruption,
        );
        let moments = Moments::default();
        let router = ask_router(
            session,
            asked,
            whole,
            &mut examination,
            &moments,
            &mut guard,
        );
        tokio::pin!(router);
        let worked = tokio::select! {
            failed = &mut router => match failed? {},
            worked = members => worked,
        };
        if whole.local.router.is_some() {
            // A router whose config servers or shards hang takes longer than the members were watched.
            tokio::select! {
                failed = &mut router => match failed? {},
                () = moments.told.notified() => {}
                () = sleep(EXTRA_MAX) => {}
                _ = interruption.first() => {}
            }
        }
        worked
    };
    drop(measurement);
    session.close_phase()?;
    let (lost, commands) = match interruption.signal() {
        None => {
            let lost = note_router(session, whole, &mut guard, begun).await;
            let is_lost = lost.is_err();
            (
                lost,
                keep_router(session, whole, examination, is_lost).await,
            )
        }
        Some(_) => (Ok(()), 0),
    };
    let mut cost = cost::cost(&session.document, commands, None);
    cost::add_members(&mut cost, sessions.iter().map(|session| &session.document));
    let ended = end_members(session, whole, sessions, worked?, progress);
    session.document.examination.get_or_insert_default().cost = Some(cost);
    session.save()?;
    interruption.check()?;
    ended?;
    lost?;
    whole.check_anybody()
}

/// Examines the members on this host, all at once; without any, waits for as long as that would take.
async fn examine_members(
    sessions: &mut [Session],
    asked: &Asked,
    whole: &Whole,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<Vec<Result<()>>> {
    if sessions.is_empty() {
        let over = async {
            sleep(asked.args.duration()).await;
            Ok(())
        };
        interruption.or(over).await?;
    }
    let requests = whole.requests(asked);
    let members = sessions.iter_mut().zip(&requests).zip(&whole.local.members);
    let members = members
        .enumerate()
        .map(|(at, ((session, request), member))| {
            // The first shows how far all of them are.
            let progress = if at == 0 {
                progress
            } else {
                Progress::new(true)
            };
            examine_member(
                session,
                request,
                member,
                environment,
                progress,
                interruption,
            )
        });
    Ok(join_all(members).await)
}

/// Records what the deployment is.
async fn record(session: &mut Session, asked: &Asked, whole: &Whole) -> Result<()> {
    let target = whole.local.target(&ProcFs::host(), &[]).await;
    session.document.target = Some(target);
    let examination = session.document.examination.get_or_insert_default();
    examination.asked_ns = asked.asked_ns();
    examination.deployment = match whole.local.router {
        Some(_) => Deployment::Sharded,
        None => Deployment::ReplicaSet,
    };
    for limitation in &whole.local.missing {
        session.limit(limitation.clone());
    }
    session.save()
}

fn begin_members(session: &Session, whole: &Whole) -> Result<Vec<Session>> {
    let sessions = (1..=whole.local.members.len()).map(|number| {
        let folder = session.directory.path().join(MemberRun::folder_of(number));
        let arguments = session.document.arguments.clone();
        super::begin(arguments, Some(&folder))
    });
    sessions.collect()
}

async fn examine_member(
    session: &mut Session,
    asked: &Asked,
    member: &LocalMember,
    environment: &Environment,
    progress: Progress,
    interruption: &Interruption,
) -> Result<()> {
    examine_server(
        session,
        asked,
        member.server.clone(),
        None,
        environment,
        progress,
        interruption,
    )
    .await
}

/// Asks the router, and through it the members elsewhere, and whether it is still there; without one waits for ever.
async fn ask_router(
    session: &Session,
    asked: &Asked,
    whole: &Whole,
    examination: &mut Option<Examination>,
    moments: &Moments,
    guard: &mut Guard,
) -> Result<std::convert::Infallible> {
    let Some(router) = &whole.local.router else {
        return std::future::pending().await;
    };
    let asked = Asked {
        others: whole.others(),
        ..asked.clone()
    };
    let writer = Arc::new(Mutex::new(session.directory.counter_writer()?));
    tokio::select! {
        failed = counters::of_examined(router, None, None, &writer) => failed,
        failed = questions(examination, &asked, router, &writer, moments) => failed,
        () = watch_router(router, guard) => unreachable!("watching never ends"),
    }
}

/// Asks the router every second whether it is there.
async fn watch_router(router: &Server, guard: &mut Guard) {
    loop {
        guard.look(router, None).await;
        sleep(GUARD_EVERY).await;
    }
}

/// Records that the router answered nobody for seconds. An error if it is gone, like a member that was lost.
async fn note_router(
    session: &mut Session,
    whole: &Whole,
    guard: &mut Guard,
    begun: Instant,
) -> Result<()> {
    let Some(router) = &whole.local.router else {
        return Ok(());
    };
    let ended = Instant::now();
    let is_there = router.command_in_time("admin", doc! { "ping": 1 }).await;
    let silence = guard.silence(begun, ended);
    let record = session.document.examination.get_or_insert_default();
    let Err(error @ ServerError::Unreachable { .. }) = is_there else {
        record.silence = silence;
        return Ok(());
    };
    let watched = ended.saturating_duration_since(begun);
    let lost = silence.map_or(watched, |silence| Duration::from_nanos(silence.after_ns));
    record.server_lost_after_ns = Some(nanoseconds(lost));
    let gone = Limitation {
        what: "the mongos ended while its cluster was watched".into(),
        why: format!("after {:.0} s, {error}", lost.as_secs_f64()),
        remedy: "look into its log and the kernel's (out of memory?), start it, and ask again"
            .into(),
    };
    let text = format!("{}: {}; {}", gone.what, gone.why, gone.remedy);
    session.limit(gone);
    Err(BrokenOff(text).into())
}

/// Keeps what the router answered. Returns the number of commands that were sent.
async fn keep_router(
    session: &mut Session,
    whole: &Whole,
    examination: Option<Examination>,
    is_lost: bool,
) -> u64 {
    if let Some(examination) = examination {
        let told = session.document.limitations.len();
        let commands = keep_answers(session, examination).await;
        if is_lost {
            // Why it answered no more has been told.
            session.document.limitations.truncate(told);
        }
        return commands;
    }
    if whole.local.router.is_some() && !is_lost {
        session.limit(Limitation {
            what: "it is not known how the cluster's data is spread, nor what its router does"
                .into(),
            why: "the router did not answer within the time".into(),
            remedy: "see with sh.status() whether its config servers and shards answer".into(),
        });
    }
    0
}

/// Ends the members' runs. A member that could not be examined does not keep the others from being shown; if
/// there is none, its error is the command's.
fn end_members(
    session: &mut Session,
    whole: &Whole,
    sessions: Vec<Session>,
    worked: Vec<Result<()>>,
    progress: Progress,
) -> Result<()> {
    let mut errors = Vec::new();
    let mut missing: BTreeMap<(String, String, String), Vec<&str>> = BTreeMap::new();
    for (number, ((mut of_member, worked), member)) in
        (1..).zip(sessions.into_iter().zip(worked).zip(&whole.local.members))
    {
        let worked = worked.and_then(|()| check(&of_member));
        let worked = ending::close(&mut of_member, worked, progress);
        for Limitation { what, why, remedy } in of_member.document.limitations.clone() {
            let members = missing.entry((what, why, remedy)).or_default();
            members.push(&member.name);
        }
        // The members elsewhere are asked by the first of those here.
        for silent in silent_members(&of_member.document) {
            session.limit(silent);
        }
        if !of_member.is_discarded() && !of_member.document.phases.is_empty() {
            let examination = session.document.examination.get_or_insert_default();
            if whole.local.router.is_none() {
                let own = of_member.document.examination.as_ref();
                examination.set = own.and_then(|own| own.set.clone());
            }
            examination.member_runs.push(MemberRun {
                member: member.name.clone(),
                shard: member.shard.clone(),
                folder: MemberRun::folder_of(number),
            });
        }
        if let Err(error) = worked {
            errors.push((member.name.as_str(), error));
        }
    }
    for ((what, why, remedy), members) in missing {
        let what = format!(
            "{} ({})",
            what,
            of_members(&members, whole.local.members.len())
        );
        session.limit(Limitation { what, why, remedy });
    }
    let runs = session
        .document
        .examination
        .as_ref()
        .map_or(0, |e| e.member_runs.len());
    let not_asked_for = |(_, error): &&(&str, anyhow::Error)| !error.is::<Interrupted>();
    for (member, error) in errors.iter().filter(not_asked_for) {
        session.limit(Limitation {
            what: format!("{member} was not examined to the end"),
            why: message_of(error),
            remedy: String::new(),
        });
    }
    session.save()?;
    gravest(errors, runs)
}

fn of_members(members: &[&str], all: usize) -> String {
    match members.len() {
        count if count == all && count > 1 => "all members examined".into(),
        _ => format_list(members, NAMED_MAX, ", "),
    }
}

/// Returns the error of the command: an interruption or a measurement that contradicts itself first; any but these
/// and one that broke off only if no member was examined.
fn gravest(errors: Vec<(&str, anyhow::Error)>, runs: usize) -> Result<()> {
    let rank = |error: &anyhow::Error| (!error.is::<Interrupted>(), !error.is::<Inconsistent>());
    let Some((member, error)) = errors.into_iter().min_by_key(|(_, error)| rank(error)) else {
        return Ok(());
    };
    if error.is::<Interrupted>() {
        return Err(error);
    }
    let text = format!("{member}: {}", message_of(&error));
    if error.is::<Inconsistent>() {
        return Err(Inconsistent(text).into());
    }
    if error.is::<BrokenOff>() || runs > 0 {
        return Err(BrokenOff(text).into());
    }
    Err(error.context(format!("cannot examine {member}")))
}
