//! Simulates sessions without a server.

use std::time::Duration;

use seekscope_run::tune::{TrialStatus, TuneTrial};
use seekscope_stats::SplitMix64;

use crate::optimiser::Goal;
use crate::session::{Next, Plan, Preset, Request, Session};
use crate::space::{Configuration, Knob, Range, Scale, Space, Value};
use crate::synthetic::Surface;

const RUN: Duration = Duration::from_secs(60);

pub(super) fn plan(surface: Surface, trials: usize, seed: u64) -> Plan {
    Plan {
        space: surface.space().unwrap(),
        goal: Goal::Maximise,
        seed,
        presets: Vec::new(),
        also: Vec::new(),
        trials,
        baseline_pairs: 4,
        duel_pairs: 24,
        budget: None,
    }
}

pub(super) fn wt8_preset(values: &[(&str, i64)]) -> Preset {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::Integer(*value)));
    Preset {
        name: "expert".into(),
        values: Configuration(values.collect()),
    }
}

/// Runs everything that is requested, a minute each; returns the time taken.
pub(super) fn go_through(
    session: &mut Session,
    mut machine: impl FnMut(&Request) -> TuneTrial,
) -> Duration {
    let mut elapsed = Duration::ZERO;
    while let Next::Run(request) = session.next(elapsed) {
        let trial = machine(&request);
        session.record(trial);
        elapsed += RUN;
        assert!(session.trials().len() < 1000, "it does not end");
    }
    elapsed
}

fn ended(request: &Request, value: Option<f64>) -> TuneTrial {
    let mut trial = request.trial();
    trial.value = value;
    match value {
        Some(_) => trial.status = TrialStatus::Measured,
        None => trial.reason = "out of memory".into(),
    }
    (trial.prepare_s, trial.measure_s) = (10.0, 50.0);
    trial
}

/// Returns a machine that follows a synthetic response.
pub(super) fn run_on(surface: Surface, seed: u64) -> impl FnMut(&Request) -> TuneTrial {
    let (space, mut rng) = (surface.space().unwrap(), SplitMix64::new(seed));
    move |request| {
        let levels = space.levels_of(&request.values).unwrap();
        ended(request, surface.measure(&levels, &mut rng))
    }
}

/// Returns a plan with six knobs that do nothing.
pub(super) fn flat_plan(trials: usize, seed: u64) -> Plan {
    let range = || Range::Float {
        low: 0.0,
        high: 1.0,
        scale: Scale::Linear,
    };
    let knobs = (0..6).map(|nth| Knob::new(&format!("idle{nth}"), range(), Value::Float(0.5)));
    Plan {
        space: Space::new(knobs.collect(), Vec::new()).unwrap(),
        ..plan(Surface::Wt8, trials, seed)
    }
}

/// A machine whose speed depends on nothing but time: correlated noise, and a walk.
pub(super) struct Flat {
    noise: f64,
    own: f64,
    walk: f64,
    rng: SplitMix64,
}

impl Flat {
    pub(super) fn new(noise: f64, seed: u64) -> Self {
        Self {
            noise,
            own: 0.0,
            walk: 0.0,
            rng: SplitMix64::new(seed),
        }
    }

    pub(super) fn run(&mut self, request: &Request) -> TuneTrial {
        self.own = 0.2 * self.own + 0.98 * self.rng.normal();
        self.walk += 0.2 * self.rng.normal();
        ended(
            request,
            Some(1000.0 * (self.noise * (self.own + self.walk)).exp()),
        )
    }
}
