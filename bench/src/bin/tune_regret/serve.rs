//! The responses for other tuners: a line of JSON in, a line of JSON out.
#![expect(clippy::print_stdout, reason = "the answers")]

use std::io::BufRead;

use anyhow::{Context, Result};
use seekscope_tune::synthetic::Surface;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Question {
    /// 0, 1 or 2.
    surface: usize,
    /// One number per knob, of categories the index; without them the answer is the space.
    levels: Option<Vec<f64>>,
}

#[derive(Serialize)]
struct Answer {
    throughput: f64,
    fails: bool,
    noise: f64,
    regret: f64,
}

pub(crate) fn serve() -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let surface = *Surface::ALL
            .get(question.surface)
            .context("surfaces are 0, 1 and 2")?;
        let answer = match question.levels {
            None => serde_json::to_string(&surface.space()?)?,
            Some(levels) => {
                let truth = surface.truth(&levels);
                serde_json::to_string(&Answer {
                    throughput: truth.throughput,
                    fails: truth.fails,
                    noise: truth.noise,
                    regret: surface.regret(&levels),
                })?
            }
        };
        println!("{answer}");
    }
    Ok(())
}
