//! How often duels are right, on machines that drift.
#![expect(clippy::print_stdout, reason = "the benchmark's result")]

use anyhow::{Context, Result};
use seekscope_tune::duel::{Verdict, judge};
use seekscope_tune::optimiser::Goal;
use seekscope_tune::synthetic::Drift;

/// Noise of a run, true ratio, and what must be reached: share called better, mean pairs.
const ROWS: [(f64, f64, f64, f64); 9] = [
    (0.05, 1.00, 0.05, 14.0),
    (0.05, 1.05, 0.93, 16.0),
    (0.05, 1.08, 1.00, 11.0),
    (0.05, 1.20, 1.00, 6.0),
    (0.10, 1.00, 0.05, 17.0),
    (0.10, 1.05, 0.45, 20.0),
    (0.10, 1.10, 0.94, 16.0),
    (0.10, 1.20, 1.00, 9.5),
    (0.10, 2.36, 1.00, 4.2),
];

pub(crate) fn print(sessions: u64) -> Result<()> {
    println!("{sessions} duels per row; better: at most (ratio 1) or at least what is in brackets");
    println!("drift  noise ratio  better          pairs         covered (0.94 to 0.96)");
    for (name, drift) in [("usual", Drift::USUAL), ("none", Drift::NONE)] {
        for (row, (noise, ratio, better_goal, pairs_goal)) in ROWS.into_iter().enumerate() {
            let (mut better, mut pairs, mut covered) = (0u64, 0, 0u64);
            for session in 0..sessions {
                let seed = session + 1_000_003 * row as u64;
                let judged = judge(&drift.pairs(ratio, noise, seed), Goal::Maximise);
                let judged = judged.context("a duel without pairs")?;
                better += u64::from(judged.verdict == Some(Verdict::Better));
                covered += u64::from(judged.low <= ratio && ratio <= judged.high);
                pairs += judged.pairs;
            }
            let share = |count: u64| count as f64 / sessions as f64;
            println!(
                "{name:5}  {noise:.2}  {ratio:.2}   {:.3} ({better_goal:.2})    {:4.1} ({pairs_goal:4.1})   {:.3}",
                share(better),
                pairs as f64 / sessions as f64,
                share(covered)
            );
        }
    }
    Ok(())
}
