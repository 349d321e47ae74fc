//! Joins examinations of one deployment's members that were made at the same time on several hosts into one of the
//! deployment, by wall-clock time: `compare` of such runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use seekscope_run::{
    Deployment, ExaminationRecord, MemberRun, Outcome, Phase, RunDirectory, RunDocument, shifted,
};

use super::Conclusion;
use crate::args::OutputArgs;
use crate::local_members::limitation_of;
use crate::progress::Progress;
use crate::session::{Session, limit, run_folder};

type Run = (RunDirectory, RunDocument);

/// Runs of different members of one deployment, made at the same time.
pub struct Joined<'a> {
    runs: &'a [Run],
    members: Vec<Member>,
}

/// A member that was examined in one of the runs.
struct Member {
    name: String,
    shard: Option<String>,
    /// The folder of its own run.
    folder: PathBuf,
    /// When it was watched, on the clock of the first run, ns.
    watched_ns: (u64, u64),
}

impl<'a> Joined<'a> {
    /// Finds out whether the runs can be joined. The inner error says why they cannot.
    ///
    /// # Errors
    /// Returns an error if the run of a member cannot be read.
    pub fn of(runs: &'a [Run]) -> Result<Result<Self, String>> {
        let mut members: Vec<Member> = Vec::new();
        for run in runs {
            members.extend(members_of(run, &runs[0].1)?);
        }
        Ok(match reason_against(runs, &members) {
            Some(why) => Err(why),
            None => Ok(Self { runs, members }),
        })
    }

    /// Makes one run with copies of the members' runs, and shows it.
    pub fn show(&self, out: Option<&Path>, args: &OutputArgs) -> Result<()> {
        let mut session = self.copied(out)?;
        let conclusion = Conclusion::derive(&mut session, None)?;
        conclusion.show(&session, args, Progress::new(args.quiet))
    }

    fn copied(&self, out: Option<&Path>) -> Result<Session> {
        let first = &self.runs[0].1;
        let whole = self.runs.iter().find(|run| run.1.is_of_deployment());
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.started = first.started;
        document.host.clone_from(&first.host);
        document.target = whole.map_or(first, |run| &run.1).target.clone();
        document.phases = Vec::from_iter(self.phase());
        document.ended_ns = document.phases.first().map(|phase| phase.ended_ns);
        document.examination = Some(self.examination());
        // What is interrupted while it is copied is no whole run; the conclusion saves how the runs ended.
        let directory = RunDirectory::create(&run_folder("doctor", out), &document)?;
        self.carry_over(&mut document);
        if let Some((of_deployment, run)) = whole {
            let shift_ns = run.started.shift_to(document.started);
            let mut counters = of_deployment.counters()?;
            for sample in &mut counters {
                sample.t_ns = shifted(sample.t_ns, shift_ns);
            }
            directory.counter_writer()?.write(&counters)?;
            directory.finish_records()?;
        }
        for (number, member) in (1..).zip(&self.members) {
            let to = directory.path().join(MemberRun::folder_of(number));
            RunDirectory::copy_records(&member.folder, &to)?;
        }
        Ok(Session::reopen(directory, document))
    }

    /// What the runs of whole deployments know, and the runs of all members.
    fn examination(&self) -> ExaminationRecord {
        let mut joined = ExaminationRecord {
            deployment: Deployment::ReplicaSet,
            ..ExaminationRecord::default()
        };
        for (_, run) in self.runs {
            let Some(examination) = &run.examination else {
                continue;
            };
            joined.asked_ns = joined.asked_ns.max(examination.asked_ns);
            joined.redacted |= examination.redacted;
            if run.is_of_deployment() {
                joined.members.extend(examination.members.iter().cloned());
            }
            if examination.deployment == Deployment::Sharded && examination.cluster.is_some() {
                joined.deployment = Deployment::Sharded;
                joined.cluster.clone_from(&examination.cluster);
            }
            joined.set = joined.set.or_else(|| examination.set.clone());
        }
        if joined.deployment == Deployment::Sharded {
            joined.set = None;
        }
        let numbered = (1..).zip(&self.members);
        let runs = numbered.map(|(number, member)| MemberRun {
            member: member.name.clone(),
            shard: member.shard.clone(),
            folder: MemberRun::folder_of(number),
        });
        joined.member_runs = runs.collect();
        joined
    }

    /// The time in which any member was watched.
    fn phase(&self) -> Option<Phase> {
        let of_first = self.runs[0].1.phases.first()?;
        let started = self.members.iter().map(|member| member.watched_ns.0);
        let ended = self.members.iter().map(|member| member.watched_ns.1);
        Some(Phase {
            started_ns: started.min()?,
            ended_ns: ended.max()?,
            trace: None,
            process_io: None,
            index_build: None,
            ..of_first.clone()
        })
    }

    /// Carries over what was not measured, and how the runs ended: all of them are as good as the worst.
    fn carry_over(&self, document: &mut RunDocument) {
        document.outcome = Outcome::Ok;
        for (directory, run) in self.runs {
            let examined = run.examination.as_ref().and_then(|e| e.examined());
            let member = examined.filter(|_| !run.is_of_deployment());
            let label = member.map(|member| member.name.as_str());
            for limitation in run.limitations.clone() {
                limit(document, limitation_of(label, limitation));
            }
            if run.outcome != Outcome::Ok && document.outcome == Outcome::Ok {
                document.outcome = run.outcome;
                let reason = run.outcome_reason.as_deref().unwrap_or("it did not end");
                let path = directory.path().display();
                document.outcome_reason = Some(format!("{path}: {reason}"));
            }
        }
    }
}

/// Returns why the runs are not of different members of one deployment at one time.
fn reason_against(runs: &[Run], members: &[Member]) -> Option<String> {
    let mut names = HashSet::new();
    if let Some(twice) = members.iter().find(|member| !names.insert(&member.name)) {
        return Some(format!(
            "{} was examined in more than one of them",
            twice.name
        ));
    }
    if let Some(stranger) = stranger(runs) {
        return Some(format!(
            "{} is not known to be of the same replica set or sharded cluster as the others; of a cluster, name the \
             run of its mongos, too",
            stranger.path().display()
        ));
    }
    let last_start = members.iter().map(|member| member.watched_ns.0).max();
    let first_end = members.iter().map(|member| member.watched_ns.1).min();
    (last_start >= first_end).then(|| {
        "they were not made at the same time, by the clocks of their hosts: start them together, each with the same \
         --for"
            .into()
    })
}

/// Returns a run whose deployment has no member or name in common with that of the others.
fn stranger(runs: &[Run]) -> Option<&RunDirectory> {
    let names_in = |run: &RunDocument| -> HashSet<String> {
        let examination = run.examination.iter();
        let names = examination.flat_map(|e| {
            let members = e.member_names().map(String::from);
            let set = e.set.iter().map(|set| format!("the set {set}"));
            members.chain(set)
        });
        names.collect()
    };
    let mut others: Vec<(&RunDirectory, HashSet<String>)> = (runs.iter())
        .map(|run| (&run.0, names_in(&run.1)))
        .collect();
    // The router's run knows all members, those of two shards not each other.
    others.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut others = others.into_iter();
    let mut known = others.next()?.1;
    for (directory, names) in others {
        if known.is_disjoint(&names) {
            return Some(directory);
        }
        known.extend(names);
    }
    None
}

/// Returns the members that a run examined.
fn members_of((directory, document): &Run, first: &RunDocument) -> Result<Vec<Member>> {
    let Some(examination) = &document.examination else {
        return Ok(Vec::new());
    };
    let member = |name: &str, shard: &Option<String>, folder: PathBuf, run: &RunDocument| {
        let shift_ns = run.started.shift_to(first.started);
        let watched = run.phases.first();
        Member {
            name: name.into(),
            shard: shard.clone(),
            folder,
            watched_ns: watched.map_or((u64::MAX, 0), |phase| {
                let (from_ns, to_ns) = (phase.started_ns, phase.ended_ns);
                (shifted(from_ns, shift_ns), shifted(to_ns, shift_ns))
            }),
        }
    };
    if !document.is_of_deployment() {
        let folder = directory.path().to_path_buf();
        let examined = examination.examined();
        let examined = examined.map(|of| member(&of.name, &of.shard, folder, document));
        return Ok(Vec::from_iter(examined));
    }
    let runs = examination.member_runs.iter().map(|run| {
        let session = super::open_member(directory, run)?;
        let folder = session.directory.path().to_path_buf();
        Ok(member(&run.member, &run.shard, folder, &session.document))
    });
    runs.collect()
}
