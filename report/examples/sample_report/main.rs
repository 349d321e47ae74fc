//! Writes a report of a made-up run, for tests and for looking at the page:
//!
//! - `sample_report OUT.html [CALLS] [--hostile]`: an examination of index builds,
//! - `sample_report OUT.html [SECONDS] --disk [--job] [--hostile]`: a disk, or one job on it for
//!   some seconds,
//! - `sample_report OUT.html [CALLS] --trace [--hostile]`: a trace,
//! - `sample_report OUT.html [LEAVES] --layout [--named] [--hostile]`: a layout,
//! - `sample_report OUT.html [SECONDS] --bench [--hostile]`: a benchmark,
//! - `sample_report OUT.html [CALLS] --doctor [--hostile]`: an examination,
//! - `sample_report OUT.html [RUNS] --tune [--interrupted | --hostile]`: a tuning session; interrupted after
//!   so many runs.
//!
//! OUT.txt instead is what the terminal would show of a disk, a trace, a layout, a benchmark, a session or
//! an examination.

mod bench_sample;
mod builds_sample;
mod disk_sample;
mod doctor_sample;
mod hostile;
mod layout_sample;
mod trace_sample;
mod tune_sample;

use std::error::Error;

use seekscope_report::{disk, tune};

/// The width of the text, characters.
const WIDTH: u16 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let flag = |name: &str| flags.iter().any(|flag| flag == name);
    let path = words
        .first()
        .ok_or("usage: sample_report OUT.html [NUMBER] [--disk [--job] | --trace | --layout [--named] | --bench | --doctor | --tune [--interrupted]] [--hostile]")?;
    let number = words.get(1).map(|number| number.parse()).transpose()?;
    let report = if flag("--disk") {
        let sample = if flag("--job") {
            disk_sample::job_run(number.unwrap_or(60))
        } else {
            disk_sample::disk_run(flag("--hostile"))
        };
        if path.ends_with(".txt") {
            disk::terminal(&sample.input(), WIDTH)
        } else {
            disk::html(&sample.input())
        }
    } else if flag("--trace") {
        let sample = trace_sample::trace(number.unwrap_or(20_000), flag("--hostile"));
        if path.ends_with(".txt") {
            sample.terminal(WIDTH)
        } else {
            sample.html()?
        }
    } else if flag("--doctor") {
        let sample = doctor_sample::examination(number.unwrap_or(20_000), flag("--hostile"));
        if path.ends_with(".txt") {
            sample.terminal(WIDTH)
        } else {
            sample.html()?
        }
    } else if flag("--bench") {
        let sample = bench_sample::bench_run(number.unwrap_or(60), flag("--hostile"));
        if path.ends_with(".txt") {
            sample.terminal(WIDTH)
        } else {
            sample.html()
        }
    } else if flag("--tune") {
        let runs = number.unwrap_or(40);
        let document = match flag("--interrupted") {
            true => tune_sample::interrupted(usize::try_from(runs)?),
            false => tune_sample::session(usize::try_from(runs)?, flag("--hostile")),
        };
        if path.ends_with(".txt") {
            tune::terminal(&document, WIDTH)
        } else {
            tune::html(&document)
        }
    } else if flag("--layout") {
        let leaves = number.unwrap_or(20_000);
        let sample = layout_sample::layout(leaves, flag("--named"), flag("--hostile"));
        if path.ends_with(".txt") {
            sample.terminal(WIDTH, true)
        } else {
            sample.html()?
        }
    } else {
        builds_sample::builds(number.unwrap_or(20_000), flag("--hostile")).html()?
    };
    std::fs::write(path, report)?;
    Ok(())
}
