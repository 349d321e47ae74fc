//! The lines that YCSB prints at its end, for every step in turn, as if YCSB had been run once for each.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use seekscope_run::{
    BenchStep, OperationResult, RunDirectory, RunDocument, RunError, latency_histogram,
    response_tag_of, tag_of,
};
use seekscope_workload::ycsb::text_output::{YcsbFigures, YcsbOperation, ycsb_output};

/// YCSB's own percentiles, in per cent.
const PERCENTILES: [f64; 3] = [50.0, 95.0, 99.0];
const PAIR: &str = "READ-MODIFY-WRITE";
const PARTS: [&str; 2] = ["READ", "UPDATE"];

/// Returns YCSB's lines for all steps. Times are those of the whole step, warm-up included, as in YCSB.
pub fn lines(directory: &RunDirectory, document: &RunDocument) -> Result<String, RunError> {
    let histograms = directory.latency_histograms()?;
    let steps = document.bench.iter().flat_map(|b| &b.steps);
    Ok(steps.map(|step| lines_of(step, &histograms)).collect())
}

fn lines_of(step: &BenchStep, histograms: &BTreeMap<String, Histogram<u64>>) -> String {
    let empty = latency_histogram();
    let of_tag = |tag: &str| histograms.get(tag).unwrap_or(&empty);
    let names: Vec<(String, String)> = step
        .operations
        .iter()
        .flat_map(|operation| names(step, operation))
        .collect();
    let errors: Vec<Vec<(String, u64)>> =
        names.iter().map(|(name, _)| errors(step, name)).collect();
    let operations: Vec<YcsbOperation<'_>> = names
        .iter()
        .zip(&errors)
        .map(|((name, tag), errors)| YcsbOperation {
            name,
            counts: counts(step, name, histograms),
            times: of_tag(tag),
            errors,
        })
        .collect();
    ycsb_output(&YcsbFigures {
        run_time_ns: step.ended_ns.saturating_sub(step.started_ns),
        operations: &operations,
        percentiles: &PERCENTILES,
    })
}

/// Returns the names under which an operation is printed, with the tags of their times.
fn names(step: &BenchStep, operation: &OperationResult) -> Vec<(String, String)> {
    let name = &operation.name;
    let mut names = vec![(name.clone(), tag_of(&step.name, name))];
    if operation.response.is_some() {
        let tag = response_tag_of(&step.name, name);
        names.push((format!("Intended-{name}"), tag));
    }
    names
}

fn errors(step: &BenchStep, name: &str) -> Vec<(String, u64)> {
    let own = step
        .failures
        .iter()
        .filter(|(operation, ..)| operation == name);
    own.map(|(_, error, count, _)| (error.clone(), *count))
        .collect()
}

/// Returns how many operations count towards the throughput; parts of a read-modify-write count only if done
/// alone.
fn counts(step: &BenchStep, name: &str, histograms: &BTreeMap<String, Histogram<u64>>) -> u64 {
    let done = |name: &str| {
        histograms
            .get(&tag_of(&step.name, name))
            .map_or(0, Histogram::len)
    };
    match name {
        _ if name.starts_with("Intended-") => 0,
        _ if PARTS.contains(&name) => done(name).saturating_sub(done(PAIR)),
        _ => done(name),
    }
}
