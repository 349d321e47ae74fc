//! Runs a workload as often as asked: once, on several servers in turn, or repeatedly in search of the highest
//! rate.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use seekscope_client::{Second, Workload};
use seekscope_run::Saturation;

use super::abandonment::Abandonment;
use super::objective::Judgement;
use super::search::{Probed, Search, Searched};
use super::stage::{Stage, StepDone, StepPlan};
use super::target::Target;
use super::variants;
use crate::args::{BenchTargetArgs, SendArgs, Slo, VersusArgs};

/// One stretch of a workload to be run.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Unique in the run.
    pub name: String,
    pub pace: Pace,
    pub repetition: u32,
    pub duration: Option<Duration>,
    /// Seed of the operations, where the data does not depend on it; `None`: the command line's seed.
    pub seed: Option<u64>,
    pub watch: Option<Watch>,
}

/// Lets a caller observe a stretch and end it early.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Ends the stretch when its figures are no longer wanted.
    pub abandonment: Abandonment,
    /// The seconds measured so far, for each step of the stretch.
    pub steps: Arc<Mutex<Vec<KeptSeconds>>>,
}

/// The seconds of a step, as they come.
#[derive(Debug, Clone)]
pub struct KeptSeconds {
    /// Names of the operations, in the order used in the seconds.
    pub operations: Vec<String>,
    pub seconds: Arc<Mutex<Vec<Second>>>,
}

impl Watch {
    /// Returns where the seconds of a step with this workload are to be stored for watching.
    pub fn keep(&self, workload: &dyn Workload) -> Arc<Mutex<Vec<Second>>> {
        let operations = workload.operations().iter();
        let kept = KeptSeconds {
            operations: operations.map(|operation| operation.name.clone()).collect(),
            seconds: Arc::default(),
        };
        let seconds = Arc::clone(&kept.seconds);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.push(kept);
        seconds
    }
}

/// The schedule of a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The schedule of the command line.
    AsAsked,
    /// A probe in a closed loop.
    Closed,
    /// A probe at this rate, transactions per second.
    Rate(f64),
}

impl Stretch {
    /// Returns the step's plan with its seconds kept if this stretch is watched.
    pub fn watched(&self, plan: StepPlan) -> StepPlan {
        match &self.watch {
            Some(watch) => StepPlan {
                keep_seconds: Some(watch.keep(plan.workload.as_ref())),
                ..plan
            },
            None => plan,
        }
    }

    /// Returns the kind of step; see [`super::stage::StepPlan::kind`].
    pub fn kind(&self) -> &'static str {
        match self.pace {
            Pace::AsAsked => "run",
            Pace::Closed | Pace::Rate(_) => "probe",
        }
    }
}

/// A workload that can be run repeatedly.
pub trait Repeated {
    /// Runs it once and adds its step to the run.
    fn run(
        &mut self,
        stage: &mut Stage,
        target: &Target,
        stretch: Stretch,
    ) -> impl Future<Output = Result<StepDone>>;
}

/// How often to run, and what is required.
#[derive(Debug)]
pub struct Rounds {
    /// Prefix of the names of steps.
    pub name: String,
    repetitions: u32,
    cold: bool,
    duration: Option<Duration>,
    slo: Option<Slo>,
    find_max: bool,
}

impl Rounds {
    pub fn new(
        name: &str,
        target: &BenchTargetArgs,
        send: &SendArgs,
        versus: &VersusArgs,
        duration: Option<Duration>,
    ) -> Self {
        Self {
            name: name.into(),
            repetitions: if versus.are_several() {
                versus.pairs
            } else {
                1
            },
            cold: target.cold,
            duration,
            slo: send.slo.clone(),
            find_max: send.find_max,
        }
    }

    /// Runs all rounds. Returns how they stand to the objective.
    pub async fn run(
        &self,
        stage: &mut Stage,
        targets: &mut [Target],
        repeated: &mut impl Repeated,
    ) -> Result<Judgement> {
        match &self.slo {
            Some(slo) if self.find_max => {
                let mut judgement = Judgement::default();
                for target in targets {
                    judgement.extend(self.find_max(stage, target, repeated, slo).await?);
                }
                Ok(judgement)
            }
            _ => self.in_turn(stage, targets, repeated).await,
        }
    }

    async fn in_turn(
        &self,
        stage: &mut Stage,
        targets: &mut [Target],
        repeated: &mut impl Repeated,
    ) -> Result<Judgement> {
        let mut judgement = Judgement::default();
        for (i, repetition) in variants::order(targets.len(), self.repetitions) {
            let target = &mut targets[i];
            if self.cold
                && let Some(limitation) = target.make_cold().await?
            {
                stage.limit(limitation);
            }
            let stretch = Stretch {
                name: target.step_name(&self.name, repetition, self.repetitions),
                pace: Pace::AsAsked,
                repetition,
                duration: self.duration,
                seed: None,
                watch: None,
            };
            let done = repeated.run(stage, target, stretch).await?;
            if let (Some(slo), Some(step)) = (&self.slo, stage.step_at(done.index)) {
                judgement.extend(Judgement::of(slo, step, &done.response));
            }
        }
        Ok(judgement)
    }

    async fn find_max(
        &self,
        stage: &mut Stage,
        target: &Target,
        repeated: &mut impl Repeated,
        slo: &Slo,
    ) -> Result<Judgement> {
        let cpus = stage.session.document.host.as_ref();
        let cpus = cpus.map_or(1, |host| host.cpus);
        let mut search = Search::new(self.duration);
        while let Some(probe) = search.next() {
            let what = format!("{} {}", self.name, probe.name);
            let stretch = Stretch {
                name: target.step_name(&what, 1, 1),
                pace: probe.per_s.map_or(Pace::Closed, Pace::Rate),
                repetition: 1,
                duration: Some(probe.duration),
                seed: None,
                watch: None,
            };
            let done = repeated.run(stage, target, stretch).await?;
            let Some(step) = stage.step_at(done.index) else {
                break;
            };
            let elapsed_ns = step.ended_ns.saturating_sub(step.started_ns) as f64;
            let share = |ns: u64| ns as f64 / (elapsed_ns * f64::from(cpus.max(1))).max(1.0);
            let probed = Probed {
                others_cpu_share: step.others_cpu_ns.map(share),
                step,
                response: &done.response,
                faults: &done.faults,
                is_client_bound: done.is_client_bound,
            };
            search.note(&probe, probed, slo);
            stage.progress.say(search.last_line());
        }
        let Searched {
            saturation,
            confirmed_step,
        } = search.finish(slo);
        let steps = stage.measurement().steps.iter_mut();
        // The step that confirmed the answer is the run's result.
        for step in steps.filter(|step| Some(&step.name) == confirmed_step.as_ref()) {
            step.kind = "run".into();
        }
        let judgement = judgement_of(&saturation, &self.name);
        stage.measurement().saturation = Some(saturation);
        stage.session.save()?;
        Ok(judgement)
    }
}

/// Returns how the result of a search stands to the objective.
fn judgement_of(saturation: &Saturation, name: &str) -> Judgement {
    let said = |why: &str| vec![format!("{name}: {why}")];
    let (missed, unjudged) = match (saturation.confirmed, saturation.maximum_per_s) {
        (true, _) => (Vec::new(), Vec::new()),
        (false, Some(_)) => (said("no rate held for the confirming step"), Vec::new()),
        (false, None) if saturation.all_missed() => {
            (said("no rate that was tried met it"), Vec::new())
        }
        (false, None) => (
            Vec::new(),
            said("the client did not keep up with the lowest rate that was tried"),
        ),
    };
    Judgement { missed, unjudged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_late_client_leaves_open_is_not_missed() {
        let of = |missed, untold| {
            let saturation = Saturation {
                missed_from_per_s: missed,
                untold_from_per_s: untold,
                ..Saturation::default()
            };
            let judgement = judgement_of(&saturation, "c");
            (judgement.missed.len(), judgement.unjudged.len())
        };
        assert_eq!(of(Some(10.0), None), (1, 0));
        assert_eq!(of(Some(10.0), Some(20.0)), (1, 0));
        assert_eq!(of(Some(20.0), Some(10.0)), (0, 1));
        assert_eq!(of(None, Some(10.0)), (0, 1));
        assert_eq!(of(None, None), (1, 0), "nothing was answered");
        let held = Saturation {
            maximum_per_s: Some(5.0),
            confirmed: true,
            ..Saturation::default()
        };
        assert!(judgement_of(&held, "c").missed.is_empty());
    }
}
