//! The basis of every kind of benchmark: a run directory, and steps that each run a workload against a target
//! and leave their records and figures in it.
//!
//! ```text
//! let mut stage = Stage::begin(&args.keep, arguments, measurement)?;
//! let worked = async { let target = …; stage.step(&target, plan).await?; … }.await;
//! stage.end(worked, &ending)
//! ```

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use seekscope_client::{ClientError, EndReason, Ended, Job, Second, Wanted, Workload};
use seekscope_run::{
    Arrivals, BenchMeasurement, BenchStep, CounterSample, HostFacts, Limitation, RunDocument,
};
use seekscope_settings::PrimaryChanged;
use seekscope_workload::own::{RoleRun, run_phase};
use tokio::task::JoinSet;

use super::abandonment::Abandonment;
use super::client_choice::Chosen;
use super::ending::server_gone;
use super::sharding::{ShardCounters, ShardWatch};
use super::step_progress::{bar, show};
use super::step_recorder::StepRecorder;
use super::step_summary::{self, Around};
use super::target::Target;
use super::validity::Fault;
use crate::args::{KeepArgs, WarmUpName};
use crate::exit::BrokenOff;
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::session::Session;

/// A running benchmark: its run directory and the records of its steps.
pub struct Stage {
    pub session: Session,
    pub progress: Progress,
    pub interruption: Interruption,
    /// Lets an observing caller abandon the current run: steps and all that belongs to them then end at once.
    pub abandonment: Abandonment,
    /// Whether the run ends when a target's set elects another primary, whose figures are not those of the first.
    pub ends_with_primary: bool,
    /// The election that ends it.
    election: Option<PrimaryChanged>,
}

/// The plan of a step.
#[derive(Debug, Clone)]
pub struct StepPlan {
    /// Unique in the run.
    pub name: String,
    /// "load", "run" or "probe".
    pub kind: &'static str,
    /// e.g. "ycsb-a".
    pub workload_name: String,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    pub workload: Arc<dyn Workload>,
    pub database: String,
    /// The collections it touches; their size is recorded.
    pub collections: Vec<String>,
    pub client: Wanted,
    pub job: Job,
    /// `job.schedule` in its form for results.
    pub arrivals: Arrivals,
    pub warm_up: WarmUpName,
    /// Number of operations to be done, for progress, if known.
    pub expected: Option<u64>,
    /// Set by the caller to end the step early; a signal ends it too.
    pub stop: Option<Arc<AtomicBool>>,
    /// Where to store the seconds for the caller as well.
    pub keep_seconds: Option<Arc<Mutex<Vec<Second>>>>,
}

/// One of several steps that run at the same time.
#[derive(Debug, Clone)]
pub struct AtOnce {
    pub plan: StepPlan,
    /// Ends when all other steps have ended.
    pub background: bool,
}

/// The result of a step, apart from its record.
#[derive(Debug)]
pub struct StepDone {
    /// Its index in [`BenchMeasurement::steps`].
    pub index: usize,
    pub ended: Ended,
    /// Response times of all requests after the warm-up, ns; service times in a closed loop.
    pub response: Histogram<u64>,
    /// Whether the client, not the server, limited the rate.
    pub is_client_bound: bool,
    /// Why the step is unreliable.
    pub faults: Vec<Fault>,
}

impl Stage {
    /// Creates the run directory. Call this on the runtime, before creating anything that a signal would leave
    /// behind.
    pub fn begin(
        keep: &KeepArgs,
        arguments: Vec<String>,
        measurement: BenchMeasurement,
    ) -> Result<Self> {
        let (out, quiet) = (keep.out.as_deref(), keep.output.quiet);
        let stage = Self::begin_as("bench", out, quiet, arguments, |document| {
            document.bench = Some(measurement);
        })?;
        Ok(Self {
            ends_with_primary: true,
            ..stage
        })
    }

    /// Does the same as [`Self::begin`] for another command; `describe` says what the run is about.
    pub fn begin_as(
        command: &str,
        out: Option<&Path>,
        quiet: bool,
        arguments: Vec<String>,
        describe: impl FnOnce(&mut RunDocument),
    ) -> Result<Self> {
        let interruption = Interruption::listen();
        let mut session = Session::begin(command, arguments, out)?;
        session.document.host = Some(HostFacts::read(Path::new("/")));
        describe(&mut session.document);
        session.save()?;
        Ok(Self {
            session,
            progress: Progress::new(quiet),
            interruption,
            abandonment: Abandonment::default(),
            ends_with_primary: false,
            election: None,
        })
    }

    /// Returns the record that the run is about.
    pub fn measurement(&mut self) -> &mut BenchMeasurement {
        self.session.document.bench.get_or_insert_default()
    }

    /// Returns a step's record.
    pub fn step_at(&mut self, index: usize) -> Option<&mut BenchStep> {
        self.measurement().steps.get_mut(index)
    }

    /// Records what the target is. The first one is the run's.
    pub fn note_target(&mut self, target: &Target) -> Result<()> {
        let document = &mut self.session.document;
        if document.target.is_none() {
            document.target = Some(target.facts.clone());
            document.device = target.device();
        }
        for limitation in target.missing.clone() {
            self.session.limit(limitation);
        }
        self.session.save()
    }

    /// Runs the workload and records what it did. Returns an error if the work could not begin or a signal
    /// came; what was measured by then is in the run.
    pub async fn step(&mut self, target: &Target, plan: StepPlan) -> Result<StepDone> {
        let done = self
            .at_once(
                target,
                vec![AtOnce {
                    plan,
                    background: false,
                }],
            )
            .await?;
        done.into_iter()
            .flatten()
            .next()
            .ok_or_else(|| ClientError::Stopped.into())
    }

    /// Runs several workloads at the same time, each as a separate step; `None` for one in the background that
    /// the others left no time to begin. Server and process usage are those of all steps together.
    pub async fn at_once(
        &mut self,
        target: &Target,
        plans: Vec<AtOnce>,
    ) -> Result<Vec<Option<StepDone>>> {
        self.interruption.check()?;
        self.abandonment.check()?;
        self.check_election()?;
        let Some(first) = plans.first().map(|at_once| &at_once.plan) else {
            return Ok(Vec::new());
        };
        let chosen = target.choose_client(&first.database, first.client)?;
        let started = self.session.document.started;
        let mut recorders = Vec::new();
        for AtOnce { plan, .. } in &plans {
            let kinds = plan.workload.operations();
            recorders.push(StepRecorder::new(
                &self.session.directory,
                started,
                &plan.name,
                kinds,
            )?);
        }
        let before = async { Ok(Around::before(target, first, self.is_shared()).await) };
        let before = self.asking(before).await?;
        let all = plans.iter().flat_map(|at_once| &at_once.plan.collections);
        let collections: BTreeSet<String> = all.cloned().collect();
        let watching =
            self.watch_shards(target, &first.database, collections.into_iter().collect());
        let mut watch = watching.await?;
        let counters = watch.as_ref().map(ShardWatch::counters);
        let sampling = self.start_sampling(target, counters)?;
        let (recorders, ended) = self.work(&chosen, &plans, recorders).await?;
        drop(sampling);
        if let Some(watch) = &mut watch {
            self.end_watch(watch, target).await;
        }
        let after = self.after(target, first).await;
        for limitation in [&before, &after].map(|around| around.limitation.clone()) {
            limitation.into_iter().for_each(|told| self.limit(told));
        }
        let ended = match ended {
            Ok(ended) => ended,
            Err(ClientError::Stopped) => {
                self.interruption.check()?;
                self.abandonment.check()?;
                return Err(ClientError::Stopped.into());
            }
            Err(error) => return Err(error.into()),
        };
        let mut all = Vec::new();
        for ((at_once, recorder), ended) in plans.into_iter().zip(recorders).zip(ended) {
            let Some(ended) = ended else {
                all.push(None);
                continue;
            };
            let around = (&before, &after);
            let plan = &at_once.plan;
            let done = self.conclude(target, &chosen, plan, recorder, ended, around)?;
            if let Some(watch) = &watch {
                self.note_shards(watch, done.index)?;
            }
            all.push(Some(done));
        }
        self.interruption.check()?;
        self.abandonment.check()?;
        self.look_at_server(target, &all).await?;
        Ok(all)
    }

    /// Notes an election that came before the end of these steps. Returns an error if the server is gone on which they
    /// failed.
    async fn look_at_server(&mut self, target: &Target, all: &[Option<StepDone>]) -> Result<()> {
        let mut done = all.iter().flatten();
        let failing = done
            .clone()
            .find(|done| done.ended.reason == EndReason::Failing);
        let shown = failing.or_else(|| done.next()).map(|done| done.index);
        let step = shown.and_then(|index| self.step_at(index));
        let name = step.map_or_else(String::new, |step| step.name.clone());
        self.note_election(target, &name).await?;
        if failing.is_some()
            && let Err(gone) = target.ping().await
        {
            return Err(server_gone(&name, gone));
        }
        Ok(())
    }

    /// Notes that the target's set has elected another primary since it was connected to, if it has. What was
    /// acknowledged can still be read back before that ends the run.
    async fn note_election(&mut self, target: &Target, during: &str) -> Result<()> {
        let Some(changed) = self
            .asking(async { Ok(target.change_of_primary().await) })
            .await?
        else {
            return Ok(());
        };
        match self.ends_with_primary {
            true => self.election = Some(changed),
            false => self.limit(Limitation {
                what: format!("the figures of {during} are not of one primary"),
                why: changed.to_string(),
                remedy: String::new(),
            }),
        }
        Ok(())
    }

    /// Returns an error if an election ends the run.
    pub fn check_election(&self) -> Result<()> {
        match self.election.clone() {
            Some(changed) => Err(BrokenOff::by_election(
                "the benchmark",
                changed,
                "run it again once the set keeps its primary",
            )),
            None => Ok(()),
        }
    }

    /// Returns an error if the target's set has elected another primary since it was connected to, and that ends the
    /// run.
    pub async fn check_primary(&mut self, target: &Target, during: &str) -> Result<()> {
        self.note_election(target, during).await?;
        self.check_election()
    }

    /// Begins to observe the shards behind a router; `None` for other servers.
    pub async fn watch_shards(
        &self,
        target: &Target,
        database: &str,
        collections: Vec<String>,
    ) -> Result<Option<ShardWatch>> {
        let watch = ShardWatch::begin(target, database, collections);
        self.asking(async { Ok(watch.await) }).await
    }

    /// Looks at the shards a last time. Cut short by a signal, what was not seen is unknown.
    pub async fn end_watch(&self, watch: &mut ShardWatch, target: &Target) {
        let looking = async {
            watch.end(target).await;
            Ok(())
        };
        let _ = self.asking(looking).await;
    }

    /// Adds what the shards did to a step's record.
    fn note_shards(&mut self, watch: &ShardWatch, index: usize) -> Result<()> {
        let Some(step) = self.step_at(index) else {
            return Ok(());
        };
        step.shards = Some(watch.of_step(step));
        for limitation in watch.limitations(&step.name.clone()) {
            self.limit(limitation);
        }
        self.session.save()
    }

    /// Observes the server at the end of a step and after the checkpoint that follows.
    async fn after(&self, target: &Target, plan: &StepPlan) -> Around {
        let mut after = Around::ended(target);
        let _step = self.progress.step("waiting for the server's checkpoint");
        let settled = async {
            after.settle(target, plan, self.is_shared()).await;
            Ok(())
        };
        // If the wait is cut short, the checkpoint's figures are unknown.
        let _ = self.asking(settled).await;
        after
    }

    /// Makes a step's record from what was recorded.
    fn conclude(
        &mut self,
        target: &Target,
        chosen: &Chosen,
        plan: &StepPlan,
        recorder: StepRecorder,
        ended: Ended,
        (before, after): (&Around, &Around),
    ) -> Result<StepDone> {
        let started = self.session.document.started;
        let directory = &self.session.directory;
        let summed = step_summary::summed_up(directory, started, plan, chosen, &recorder, &ended)?;
        let mut step = summed.step;
        step.variant.clone_from(&target.variant);
        step_summary::add_around(&mut step, before, after);
        for limitation in summed.limitations {
            self.session.limit(limitation);
        }
        let index = self.measurement().steps.len();
        self.measurement().steps.push(step);
        self.session.save()?;
        if let Some(error) = recorder.failure {
            return Err(error).context("while recording what was measured");
        }
        Ok(StepDone {
            index,
            ended,
            response: summed.response,
            is_client_bound: summed.is_client_bound,
            faults: summed.faults,
        })
    }

    /// Returns whether this is one of several clients on the server.
    fn is_shared(&self) -> bool {
        let bench = self.session.document.bench.as_ref();
        let clients = bench.and_then(|bench| bench.client_number);
        clients.is_some_and(|(_, count)| count > 1)
    }

    /// Samples counters of server and host once a second until dropped; those of shards are also kept in memory.
    fn start_sampling(
        &self,
        target: &Target,
        of_shards: Option<ShardCounters>,
    ) -> Result<JoinSet<()>> {
        let device = self
            .session
            .document
            .device
            .as_ref()
            .map(|d| d.device.clone());
        let mut sampling = JoinSet::new();
        for mut sampler in target.samplers(device.as_deref()) {
            let mut writer = self.session.directory.counter_writer()?;
            let of_shards = of_shards.clone();
            sampling.spawn(async move {
                let each = |samples: &[CounterSample]| {
                    if let Some(counters) = &of_shards {
                        counters.note(samples);
                    }
                    writer.write(samples)
                };
                // A run directory that cannot be written is noticed by the step recorders.
                let _ = sampler.every_second(each).await;
            });
        }
        Ok(sampling)
    }

    /// Runs the blocking work on separate threads.
    async fn work(
        &self,
        chosen: &Chosen,
        plans: &[AtOnce],
        mut recorders: Vec<StepRecorder>,
    ) -> Result<(Vec<StepRecorder>, Result<Vec<Option<Ended>>, ClientError>)> {
        let stop = plans
            .iter()
            .find_map(|a| a.plan.stop.clone())
            .unwrap_or_default();
        let bar = bar(self.progress, plans);
        let (spec, plans) = (chosen.spec.clone(), plans.to_vec());
        let flag = Arc::clone(&stop);
        let mut work = tokio::task::spawn_blocking(move || {
            let mut done = 0;
            let roles: Vec<RoleRun<'_>> = plans
                .iter()
                .map(|at_once| RoleRun {
                    workload: at_once.plan.workload.as_ref(),
                    job: at_once.plan.job.clone(),
                    background: at_once.background,
                })
                .collect();
            let ended = run_phase(&spec, &roles, &flag, &mut |place, second| {
                recorders[place].second(&second);
                if recorders[place].failure.is_some() {
                    flag.store(true, Ordering::Relaxed);
                }
                show(&bar, &second, &mut done);
                if let Some(kept) = &plans[place].plan.keep_seconds {
                    kept.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(second);
                }
            });
            (recorders, ended)
        });
        tokio::select! {
            biased;
            _ = self.interruption.first() => {
                stop.store(true, Ordering::Relaxed);
                Ok(work.await?)
            }
            () = self.abandonment.decided() => {
                stop.store(true, Ordering::Relaxed);
                Ok(work.await?)
            }
            worked = &mut work => Ok(worked?),
        }
    }

    /// Runs work, such as queries to a server that may hang, until it ends, a signal comes or the run is
    /// abandoned.
    pub async fn asking<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.interruption.or(self.abandonment.or(work)).await
    }

    /// Records something that the run could not do.
    pub fn limit(&mut self, limitation: Limitation) {
        self.session.limit(limitation);
    }
}
