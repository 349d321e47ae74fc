//! The device model against measurement: whole surveys, on the disk as it is and throttled like a
//! hard disk, in turns. In each the model is made from that survey and predicts its four orders of
//! blocks from a cold cache. Shown are medians over the rounds, with the range of the errors.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use seekscope_bench::survey_disk;
use seekscope_stats::median;
use serde_json::Value;

/// Predictions against measurement.
#[derive(Debug, Parser)]
struct Arguments {
    /// Surveys of each disk
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Budget of each survey
    #[arg(long, default_value = "90s")]
    budget: String,
    /// The seekscope binary
    #[arg(long, default_value = "seekscope")]
    seekscope: PathBuf,
    /// Folder on the disk to be measured
    #[arg(long, default_value = ".")]
    data_dir: PathBuf,
}

/// Blocks per second: measured and predicted.
type Pair = (f64, f64);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut cells: BTreeMap<(&str, String), Vec<Pair>> = BTreeMap::new();
    for round in 1..=arguments.rounds {
        for disk in ["none", "hdd"] {
            for (name, pair) in survey(&arguments, disk, round)? {
                cells.entry((disk, name)).or_default().push(pair);
            }
        }
    }
    println!("throttle  order                    measured/s  predicted/s  median error  range");
    for ((disk, name), pairs) in &cells {
        let middle =
            |of: fn(&Pair) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
        let percent = |pair: &Pair| (pair.1 / pair.0 - 1.0) * 100.0;
        let lowest = pairs.iter().map(percent).fold(f64::INFINITY, f64::min);
        let highest = pairs.iter().map(percent).fold(f64::NEG_INFINITY, f64::max);
        println!(
            "{disk:8}  {name:24} {:10.0} {:12.0} {:+11.1} %  {lowest:+.1} to {highest:+.1} %",
            middle(|p| p.0),
            middle(|p| p.1),
            median(&pairs.iter().map(percent).collect::<Vec<_>>()).unwrap_or(0.0),
        );
    }
    Ok(())
}

fn survey(arguments: &Arguments, disk: &str, round: u32) -> Result<Vec<(String, Pair)>> {
    let (seekscope, directory) = (&arguments.seekscope, &arguments.data_dir);
    let seed = ["--seed", &round.to_string()];
    let result = survey_disk(seekscope, directory, &arguments.budget, disk, &seed)?;
    let predictions = result
        .pointer("/summary/predictions")
        .and_then(Value::as_array);
    let predictions = predictions.context("the survey made no predictions")?;
    predictions
        .iter()
        .map(|p| {
            let number = |key: &str| p[key].as_f64().context("a prediction lacks a number");
            let name = p["name"].as_str().unwrap_or_default().to_string();
            Ok((
                name,
                (number("measured_per_s")?, number("predicted_per_s")?),
            ))
        })
        .collect()
}
