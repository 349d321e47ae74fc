//! Regret of the recommendation after this many measurements, beside that of other tuners.
#![expect(clippy::print_stdout, reason = "the benchmark's result")]

use anyhow::{Context, Result};
use seekscope_stats::{SplitMix64, quantile_sorted};
use seekscope_tune::optimiser::{Goal, History, Optimiser, Outcome, Trial};
use seekscope_tune::space::{Configuration, Space, Value};
use seekscope_tune::synthetic::Surface;

/// The numbers of measurements after which the regret is taken.
const AT: [usize; 2] = [40, 100];

/// Median regret in percent on the three responses.
struct Peer {
    name: &'static str,
    after: [[Option<u8>; 3]; AT.len()],
}

/// One measurement per configuration, 20 to 24 seeds after 40 and 10 to 12 after 100; `peers.py` makes
/// them anew.
const PEERS: [Peer; 3] = [
    Peer {
        name: "SMAC3 2.4.1",
        after: [[Some(37), Some(49), Some(65)], [None; 3]],
    },
    Peer {
        name: "Optuna 5.0.0 TPE",
        after: [
            [Some(34), Some(36), Some(61)],
            [Some(26), Some(29), Some(31)],
        ],
    },
    Peer {
        name: "random",
        after: [
            [Some(44), Some(50), Some(65)],
            [Some(35), Some(42), Some(62)],
        ],
    },
];
/// What seekscope must reach.
const GOALS: [[u8; 3]; AT.len()] = [[18, 27, 58], [11, 21, 31]];

pub(crate) fn print(seeds: u64) -> Result<()> {
    println!("median regret in percent [quartiles], {seeds} seeds");
    println!(
        "{:>24} {:>16} {:>16} {:>16}",
        "measurements, tuner", "Wt8", "Sparse20", "Deceptive12"
    );
    let mut ours: [Vec<String>; AT.len()] = Default::default();
    for surface in Surface::ALL {
        let mut regrets: [Vec<f64>; AT.len()] = Default::default();
        for seed in 0..seeds {
            for (all, one) in regrets.iter_mut().zip(session(surface, seed)?) {
                all.push(100.0 * one);
            }
        }
        for (row, mut regrets) in ours.iter_mut().zip(regrets) {
            regrets.sort_by(f64::total_cmp);
            let at = |q| quantile_sorted(&regrets, q).unwrap_or(f64::NAN);
            row.push(format!("{:.0} [{:.0},{:.0}]", at(0.5), at(0.25), at(0.75)));
        }
    }
    for (nth, measurements) in AT.into_iter().enumerate() {
        println!(
            "{:>24} {:>16} {:>16} {:>16}",
            format!("{measurements} seekscope"),
            ours[nth][0],
            ours[nth][1],
            ours[nth][2]
        );
        let goal = GOALS[nth];
        println!(
            "{:>24} {:>16} {:>16} {:>16}",
            "at most", goal[0], goal[1], goal[2]
        );
        for peer in &PEERS {
            let [a, b, c] = peer.after[nth].map(|r| r.map_or("-".into(), |r| r.to_string()));
            println!("{:>24} {a:>16} {b:>16} {c:>16}", peer.name);
        }
    }
    Ok(())
}

/// Regret after this many measurements each.
fn session(surface: Surface, seed: u64) -> Result<[f64; AT.len()]> {
    let space = surface.space()?;
    let mut optimiser = Optimiser::new(space.clone(), &[], Goal::Maximise, seed)?;
    let (mut history, mut rng) = (History::default(), SplitMix64::new(seed + 1000));
    let mut regrets = [f64::NAN; AT.len()];
    for (regret, end) in regrets.iter_mut().zip(AT) {
        while history.trials.len() < end {
            let configuration = optimiser.propose(&history).configuration;
            let outcome = match surface.measure(&levels(&space, &configuration)?, &mut rng) {
                Some(value) => Outcome::Measured { value, noise: 1.0 },
                None => Outcome::Failed {
                    reason: "it fails there".into(),
                },
            };
            history.trials.push(Trial {
                configuration,
                outcome,
            });
        }
        let best = optimiser.recommend(&history).context("nothing worked")?;
        *regret = surface.regret(&levels(&space, &best.configuration)?);
    }
    Ok(regrets)
}

/// One number per knob, of categories the index, as the responses take them.
pub(crate) fn levels(space: &Space, configuration: &Configuration) -> Result<Vec<f64>> {
    let knobs = space.knobs().iter();
    knobs
        .map(|knob| match configuration.0.get(&knob.name) {
            Some(Value::Text(choice)) => Ok(choice.parse()?),
            value => value
                .and_then(Value::number)
                .with_context(|| format!("no {}", knob.name)),
        })
        .collect()
}
