//! Runs a workload's phases one after the other, and the roles of each phase at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use seekscope_client::Ended;
use seekscope_run::{Arrivals, BenchStep};
use seekscope_workload::ExpectedData;
use seekscope_workload::own::language;
use seekscope_workload::own::plan::{PhasePlan, RolePlan};
use seekscope_workload::own::{ExpectedCollection, Plan};

use super::super::client_choice::wanted;
use super::super::data;
use super::super::rounds::Watch;
use super::super::stage::{AtOnce, Stage, StepDone, StepPlan};
use super::super::target::Target;
use crate::args::RunArgs;

/// The phases of a workload, ready to run.
pub struct Phases<'a> {
    pub args: &'a RunArgs,
    pub plan: &'a Plan,
    pub target: &'a Target,
    pub part: Part,
    /// Prefix of the names of steps, which are unique in a run.
    pub prefix: &'a str,
    pub watch: Option<Watch>,
}

/// A part of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    All,
    /// The loading phases, with the indexes before and after them.
    Loads,
    /// The others, on data loaded before. What an earlier process wrote is not verified.
    Rest,
}

impl Part {
    pub fn has(self, phase: &PhasePlan) -> bool {
        let loads = phase.roles.iter().any(RolePlan::is_load);
        match self {
            Self::All => true,
            Self::Loads => loads,
            Self::Rest => !loads,
        }
    }
}

/// Transactions per second by phase and role.
type Reached = HashMap<(String, String), f64>;

impl Phases<'_> {
    /// Runs the phases. Returns the results of the roles of the last phase.
    pub async fn run(&self, stage: &mut Stage) -> Result<Vec<StepDone>> {
        let mut reached = Reached::new();
        let (mut in_doubt, mut last) = (0, Vec::new());
        if self.part != Part::Rest {
            let before = self.plan.collections.iter().flat_map(|c| &c.indexes_before);
            for command in before.cloned() {
                self.command(stage, command).await?;
            }
        }
        for (place, phase) in self.plan.phases.iter().enumerate() {
            if !self.part.has(phase) {
                continue;
            }
            let pause = async {
                tokio::time::sleep(phase.pause).await;
                Ok(())
            };
            stage.asking(pause).await?;
            let steps = phase.roles.iter().map(|role| AtOnce {
                plan: self.step(phase, role, &reached),
                background: role.end.background,
            });
            let done = stage.at_once(self.target, steps.collect()).await?;
            last.clear();
            for (role, done) in phase.roles.iter().zip(done) {
                let Some(done) = done else { continue };
                let per_s = stage
                    .step_at(done.index)
                    .map_or(0.0, |step| rate(step, &done.ended));
                reached.insert((phase.name.clone(), role.name.clone()), per_s);
                if role.is_load() {
                    data::ensure_complete(stage, &done)?;
                }
                in_doubt += done.ended.in_doubt;
                last.push(done);
            }
            let indexes = self.plan.collections.iter().flat_map(|c| &c.indexes_after);
            for (_, command) in indexes.filter(|(after, _)| *after == place) {
                self.command(stage, command.clone()).await?;
            }
        }
        if let (Some(done), true) = (last.last(), self.part != Part::Rest) {
            self.verify(stage, done.index, in_doubt).await?;
        }
        Ok(last)
    }

    async fn command(&self, stage: &Stage, command: mongodb::bson::Document) -> Result<()> {
        let _step = stage.progress.step("building indexes");
        let database = &self.args.target.database;
        let sent = async { Ok(self.target.server()?.command(database, command).await?) };
        stage.asking(sent).await?;
        Ok(())
    }

    fn step(&self, phase: &PhasePlan, role: &RolePlan, reached: &Reached) -> StepPlan {
        let reached_per_s = role.share_of().and_then(|(of, role)| {
            let is_meant =
                |place: &(String, String)| place.0 == of && role.is_none_or(|r| r == place.1);
            reached
                .iter()
                .find(|(place, _)| is_meant(place))
                .map(|(_, per_s)| *per_s)
        });
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self
            .args
            .threads
            .map_or((processors / 2).max(1), |n| n as usize);
        StepPlan {
            name: match phase.roles.len() {
                1 => format!("{}{}", self.prefix, phase.name),
                _ => format!("{}{}/{}", self.prefix, phase.name, role.name),
            },
            kind: if role.is_load() { "load" } else { "run" },
            workload_name: self.plan.name.clone(),
            repetition: 1,
            workload: Arc::new(role.clone()),
            database: self.args.target.database.clone(),
            collections: self
                .plan
                .collections
                .iter()
                .map(|c| c.name.clone())
                .collect(),
            client: wanted(self.args.client),
            job: role.job(threads, reached_per_s),
            arrivals: record(role.arrivals(reached_per_s)),
            warm_up: self.args.warm_up,
            expected: None,
            stop: None,
            keep_seconds: self.watch.as_ref().map(|watch| watch.keep(role)),
        }
    }

    /// Verifies what was written. Each of several processes knows only what it wrote itself; what an operation
    /// of a kind that is not counted left out is not verified.
    async fn verify(&self, stage: &mut Stage, index: usize, in_doubt: u64) -> Result<()> {
        let collections = self.plan.collections.iter().map(ExpectedCollection::new);
        let expected: Vec<ExpectedCollection<'_>> = collections.collect();
        let expected: Vec<&dyn ExpectedData> =
            expected.iter().map(|e| e as &dyn ExpectedData).collect();
        let database = &self.args.target.database;
        data::verify_step(stage, self.target, database, index, &expected, in_doubt).await
    }
}

/// Returns the role's rate of transactions without its warm-up. If none succeeded after that, as where the phase
/// was shorter than the warm-up, returns the rate of those begun in its whole time.
fn rate(step: &BenchStep, ended: &Ended) -> f64 {
    if step.throughput_per_s > 0.0 {
        return step.throughput_per_s;
    }
    let elapsed_ns = ended.ended_ns.saturating_sub(ended.started_ns).max(1);
    ended.transactions as f64 * 1e9 / elapsed_ns as f64
}

/// Converts the arrivals to their form in results.
fn record(arrivals: language::Arrivals) -> Arrivals {
    match arrivals {
        language::Arrivals::Constant(per_s) => Arrivals::Constant { per_s },
        language::Arrivals::Poisson(per_s) => Arrivals::Poisson { per_s },
        language::Arrivals::Ramp(ramp) => Arrivals::Ramp {
            from_per_s: ramp.from,
            to_per_s: ramp.to,
        },
        language::Arrivals::Closed | language::Arrivals::Share(_) => Arrivals::Closed,
    }
}
