//! The session's loop: asks what to run next, applies the setting, runs it, and records the result.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use mongodb::bson::oid::ObjectId;
use seekscope_run::TrialJournal;
use seekscope_run::tune::{TrialStatus, TuneLedger, TuneTrial};
use seekscope_server::{ProcFs, redact_text};
use seekscope_tune::session::{Next, Request, Session};

use super::arena::{Arena, Unfit};
use super::measurement::{Asked, Ended, Load};
use super::memory_watch::MemoryWatch;
use super::metric::{Constraint, Metric};
use super::progress_lines::ProgressLines;
use super::server_arena::ended_by;
use crate::bench::{Stage, Target};
use crate::exit::{Interrupted, Usage};

/// A run that did not settle says less: its variance is multiplied by this factor.
const UNSTEADY_NOISE: f64 = 2.0;
/// A run in which a set has elected its primary anew is made as often as this before the session ends.
const RUNS_MAX: usize = 3;

/// A running session.
pub struct Tuner<'a> {
    pub session: Session,
    pub arena: Arena<'a>,
    pub load: Load,
    pub metric: Metric,
    pub constraints: Vec<Constraint>,
    pub progress_lines: ProgressLines,
    pub ledger: TuneLedger,
    /// Time that the session took before it was resumed.
    pub earlier: Duration,
    pub began: Instant,
    /// Time that it took until the first trial could begin: settings saved, data loaded.
    pub readying: Duration,
    pub journal: TrialJournal,
}

impl Tuner<'_> {
    /// Runs the whole session. An error ends it early; what was measured is kept.
    pub async fn work(&mut self, stage: &mut Stage) -> Result<()> {
        loop {
            stage.interruption.check()?;
            let thinking = Instant::now();
            let next = self.session.next(self.elapsed());
            self.ledger.think_s += thinking.elapsed().as_secs_f64();
            let Next::Run(request) = next else { break };
            let mut trial = self.trial(stage, &request).await?;
            // Commands and servers quote what they were given.
            let uri = self.arena.target().map_or("", |target| &target.uri);
            trial.reason = redact_text(&trial.reason, uri);
            let thinking = Instant::now();
            let trial = self.session.record(trial).clone();
            self.ledger.think_s += thinking.elapsed().as_secs_f64();
            self.journal.append(&trial)?;
            self.progress_lines
                .tell(stage.progress, &trial, self.elapsed());
            self.ledger.total_s = self.elapsed().as_secs_f64();
        }
        match self.session.stopped() {
            None => match self.session.only_failures() {
                Some(why) => Err(anyhow::anyhow!(
                    "every setting that was tried failed, the last one so: {why}"
                )),
                None => Ok(()),
            },
            Some(stopped @ seekscope_tune::session::Stopped::BudgetTooSmall { .. }) => {
                Err(Usage(stopped.to_string()).into())
            }
            Some(stopped) => Err(anyhow::anyhow!("{stopped}")),
        }
    }

    /// Takes over the measurements of an interrupted session.
    pub fn take(&mut self, trials: Vec<TuneTrial>) -> Result<()> {
        for trial in trials {
            let trial = self.session.record(trial);
            self.journal.append(trial)?;
        }
        // What stopped it has been fixed, or stops it again.
        self.session.retry();
        Ok(())
    }

    /// Returns the time of all parts of the session together.
    pub fn elapsed(&self) -> Duration {
        self.earlier + self.began.elapsed()
    }

    /// Performs one run, however it ends. What it was like while its set elected a primary says nothing of the setting:
    /// that run is none.
    async fn trial(&mut self, stage: &mut Stage, request: &Request) -> Result<TuneTrial> {
        let mut runs = 0;
        loop {
            runs += 1;
            let trial = self.run(stage, request).await;
            if let Err(error) = &trial
                && error.is::<Interrupted>()
            {
                return trial;
            }
            match self.arena.is_disturbed(stage).await? {
                Some(changed) if runs == RUNS_MAX => return Err(ended_by(stage, changed)),
                Some(changed) if trial.is_ok() => {
                    stage
                        .progress
                        .say(format!("{changed}; this run is repeated"));
                }
                _ => return trial,
            }
        }
    }

    async fn run(&mut self, stage: &mut Stage, request: &Request) -> Result<TuneTrial> {
        let mut trial = request.trial();
        let number = self.session.trials().len() + 1;
        trial.started_unix_ms = unix_ms();
        let begun = Instant::now();
        let prepared = {
            let _step = stage.progress.step(format!("trial {number}: preparing"));
            self.arena.prepare(stage, &self.load, &request.values).await
        };
        trial.prepare_s = begun.elapsed().as_secs_f64();
        self.ledger.prepare_s += trial.prepare_s;
        if let Err(Unfit(reason)) = prepared? {
            trial.reason = reason;
            return Ok(trial);
        }
        let begun = Instant::now();
        let ended = self.measure(stage, request, number).await?;
        trial.measure_s = begun.elapsed().as_secs_f64();
        self.ledger.measure_s += trial.measure_s;
        if matches!(ended, Ended::NearlyFull { .. }) {
            self.arena.withdraw(stage).await?;
        }
        self.judge(ended, &mut trial);
        Ok(trial)
    }

    async fn measure(
        &mut self,
        stage: &mut Stage,
        request: &Request,
        number: usize,
    ) -> Result<Ended> {
        let figures = std::iter::once(self.metric.figure.as_str());
        let pid = self.arena.target().and_then(|target| target.facts.pid);
        let memory = MemoryWatch::of(&ProcFs::host(), pid);
        let asked = Asked {
            name: format!("trial {number}"),
            seed: request.seed,
            metric: &self.metric,
            environment: self.arena.environment(&request.values, request.seed),
            against: request.best.map(|best| (best, self.session.early_stop())),
            memory: &memory,
            wanted: figures
                .chain(self.constraints.iter().map(|c| c.figure.as_str()))
                .collect(),
        };
        let target = self.arena.target();
        let process = process_of(target).await;
        let ended = self.load.run(stage, target, asked).await?;
        let counts = matches!(ended, Ended::Measured { .. } | Ended::Early { .. });
        if counts && process.is_some() && process_of(target).await != process {
            return Ok(Ended::Failed {
                reason: "the server ended, or was restarted, while this ran".into(),
            });
        }
        Ok(ended)
    }

    /// Translates a run's end to the trial's result.
    fn judge(&self, ended: Ended, trial: &mut TuneTrial) {
        match ended {
            Ended::Failed { reason } | Ended::NearlyFull { reason } => trial.reason = reason,
            Ended::Early { value, at_share } => {
                trial.status = TrialStatus::EndedEarly;
                trial.value = Some(value);
                trial.noise = UNSTEADY_NOISE;
                trial.reason = format!(
                    "could not win after {:.0} % of its time; its value is extrapolated",
                    at_share * 100.0
                );
            }
            Ended::Measured {
                figures,
                steady,
                partial,
            } => {
                let missed: Vec<String> = self
                    .constraints
                    .iter()
                    .filter_map(|constraint| constraint.missed(&figures))
                    .collect();
                match self.metric.of(&figures) {
                    Err(why) => trial.reason = why,
                    Ok(value) => {
                        trial.value = Some(value);
                        trial.partial = partial;
                        trial.status = match missed.is_empty() {
                            true => TrialStatus::Measured,
                            false => TrialStatus::ConstraintMissed,
                        };
                        trial.reason = missed.join("; ");
                        if steady == Some(false) {
                            trial.noise = UNSTEADY_NOISE;
                        }
                    }
                }
                trial.figures = figures;
            }
        }
    }
}

/// Returns what the server's process calls itself, anew with each start; `None` where it does not answer or say so.
async fn process_of(target: Option<&Target>) -> Option<ObjectId> {
    let server = target?.server().ok()?;
    server.hello().await.ok()?.process_id
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
