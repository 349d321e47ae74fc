//! Tells what bears on a run's figures when they are compared with those of another.

use seekscope_run::{BenchMeasurement, BenchStep, RunDocument};

use super::sentences::{ALL_WELL, QUIET_SHARE_MAX, verdict};
use super::{index_builds, shard_others};
use crate::balancer;
use crate::numbers::format_share;

/// Returns what must be known of a run before its figures are compared: that it is incomplete or invalid, and what
/// others did meanwhile.
pub fn caveats(document: &RunDocument) -> Vec<String> {
    let mut said = Vec::new();
    let verdict = verdict(document);
    if verdict != ALL_WELL {
        said.push(verdict);
    }
    let Some(bench) = &document.bench else {
        return said;
    };
    said.extend(bench.steps.iter().filter_map(moved));
    said.extend(index_builds::moved(bench));
    said.extend(shard_others::sentences(bench));
    let cpus = document.host.as_ref().map_or(0, |host| host.cpus);
    said.extend(disturbed(bench, f64::from(cpus)));
    said
}

/// Says that chunks were moved during a step.
fn moved(step: &BenchStep) -> Option<String> {
    let shards = step.shards.as_ref()?;
    shards.moved_chunks.filter(|moved| *moved > 0)?;
    Some(balancer::sentence(
        shards.balancer_on,
        shards.moved_chunks,
        "its collections",
        &format!("\"{}\"", step.name),
    ))
}

/// Says which share of this host's CPUs others took, if that is much.
fn disturbed(bench: &BenchMeasurement, cpus: f64) -> Option<String> {
    let shares = bench.steps.iter().filter_map(|step| {
        let ns = step.ended_ns.saturating_sub(step.started_ns) as f64 * cpus;
        let share = step.others_cpu_ns.filter(|_| ns > 0.0)? as f64 / ns;
        Some((share, step.name.as_str()))
    });
    let (share, step) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share > QUIET_SHARE_MAX).then(|| {
        format!(
            "The client's host was not quiet: up to {} of its CPU time went to others (during \"{step}\").",
            format_share(share)
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{HostFacts, Outcome, StepShards};

    use super::*;

    #[test]
    fn what_disturbed_a_run_is_carried_into_comparisons() {
        let mut document = RunDocument::begin("bench", Vec::new());
        (document.outcome, document.outcome_reason) = (Outcome::Ok, None);
        document.host = Some(HostFacts {
            cpus: 2,
            ..HostFacts::default()
        });
        let step = BenchStep {
            name: "load".into(),
            ended_ns: 10_000_000_000,
            others_cpu_ns: Some(1_000_000_000),
            shards: Some(StepShards {
                balancer_on: Some(true),
                moved_chunks: Some(0),
                ..StepShards::default()
            }),
            ..BenchStep::default()
        };
        let with = |document: &RunDocument, step: BenchStep| {
            let mut document = document.clone();
            document.bench = Some(BenchMeasurement {
                steps: vec![step],
                ..BenchMeasurement::default()
            });
            caveats(&document)
        };
        assert_eq!(with(&document, step.clone()), Vec::<String>::new());
        let mut disturbed = step.clone();
        disturbed.others_cpu_ns = Some(8_000_000_000);
        disturbed.shards.as_mut().unwrap().moved_chunks = Some(5);
        let said = with(&document, disturbed);
        assert!(
            said[0].contains("5 CHUNKS of its collections WERE MOVED"),
            "{said:?}"
        );
        assert!(said[1].contains("40.0 % of its CPU time"), "{said:?}");
        document.outcome = Outcome::Partial;
        assert!(with(&document, step)[0].starts_with("Partial"));
    }
}
