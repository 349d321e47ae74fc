//! Defines the contents of a report of a disk run: headings, tables, and the sentences under them.

use seekscope_run::StepGroup;

use super::{DiskReportInput, percentiles, sentences, series, tables};
use crate::facts::fact_table;
use crate::table::Table;

/// The material of a section that has something to show.
pub(super) struct Material {
    /// A stable id that figures refer to.
    pub(super) id: &'static str,
    pub(super) heading: &'static str,
    pub(super) tables: Vec<Table>,
    /// What the numbers mean, by key.
    pub(super) sentences: Vec<(&'static str, String)>,
}

type Tables = fn(&DiskReportInput<'_>) -> Vec<Option<Table>>;

struct Plan {
    id: &'static str,
    heading: &'static str,
    tables: Tables,
    sentences: &'static [&'static str],
}

const fn plan(
    id: &'static str,
    heading: &'static str,
    tables: Tables,
    sentences: &'static [&'static str],
) -> Plan {
    Plan {
        id,
        heading,
        tables,
        sentences,
    }
}

const PLANS: [Plan; 15] = [
    plan(
        "job",
        "The job",
        |i| vec![tables::jobs(i, StepGroup::Job)],
        &["job", "rate"],
    ),
    plan(
        "ramp",
        "Random reads by depth",
        |i| vec![tables::ramp(i)],
        &["concurrency", "cache_miss", "block_size", "cpu"],
    ),
    plan(
        "sequential",
        "Reads in order",
        |i| vec![tables::sequential(i)],
        &["scan"],
    ),
    plan(
        "order",
        "What order is worth",
        |i| vec![tables::orders(i)],
        &["order_gain", "partial_order"],
    ),
    plan(
        "read-ahead",
        "Read-ahead",
        |i| vec![tables::read_ahead(i)],
        &["read_ahead", "read_ahead_random"],
    ),
    plan(
        "journal",
        "Journal commits",
        |i| vec![tables::journal(i)],
        &["commit", "group_commit", "fresh_file"],
    ),
    plan(
        "checkpoint",
        "Commits beside a checkpoint-like burst",
        |i| vec![tables::checkpoint(i)],
        &["checkpoint"],
    ),
    plan(
        "mixed",
        "Reads and writes mixed",
        |i| vec![tables::mixed(i)],
        &["mixed"],
    ),
    plan(
        "mmap",
        "Page faults on a mapping",
        |i| vec![tables::mmap(i)],
        &["mmap"],
    ),
    plan(
        "sustained",
        "Sustained reads",
        |i| vec![tables::jobs(i, StepGroup::Sustained)],
        &["sustained"],
    ),
    plan(
        "percentiles",
        "How the tails grow",
        |i| vec![percentiles::table(i)],
        &[],
    ),
    plan(
        "seconds",
        "Second by second",
        |i| vec![series::table(i)],
        &[],
    ),
    plan(
        "model",
        "The device model",
        |i| {
            let model = i.measurement().and_then(|m| m.model.as_ref());
            let facts = model.map(tables::model_facts);
            vec![
                tables::sizes(i),
                facts.map(|facts| fact_table("parameter", facts)),
            ]
        },
        &["model", "read_through", "limits"],
    ),
    plan(
        "trust",
        "The measurement itself",
        |i| vec![tables::generator(i)],
        &["generator", "direct"],
    ),
    plan(
        "surroundings",
        "What distorts a database here",
        |i| vec![tables::distortions(i), tables::limits(i)],
        &[],
    ),
];

/// Returns the sections that have something to show, in order.
pub(super) fn sections(input: &DiskReportInput<'_>) -> Vec<Material> {
    let shown = PLANS.iter().filter_map(|plan| section(input, plan));
    shown.collect()
}

fn section(input: &DiskReportInput<'_>, plan: &Plan) -> Option<Material> {
    let measurement = input.measurement()?;
    let tables: Vec<Table> = (plan.tables)(input).into_iter().flatten().collect();
    let said = plan
        .sentences
        .iter()
        .filter_map(|&key| Some((key, sentences::sentence(measurement, key)?)));
    let mut sentences: Vec<(&'static str, String)> = said.collect();
    // These need more than the measurement.
    sentences.extend(
        match plan.id {
            "order" => super::figures::predictions_sentence(input.predictions),
            "percentiles" => percentiles::sentence(input),
            "seconds" => series::sentence(input),
            _ => None,
        }
        .map(|sentence| (plan.id, sentence)),
    );
    (!tables.is_empty() || !sentences.is_empty()).then_some(Material {
        id: plan.id,
        heading: plan.heading,
        tables,
        sentences,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_has_one_place() {
        let mut placed: Vec<&str> = PLANS
            .iter()
            .flat_map(|plan| plan.sentences)
            .copied()
            .collect();
        placed.sort_unstable();
        let mut known: Vec<&str> = sentences::keys().collect();
        known.sort_unstable();
        assert_eq!(placed, known);
        known.dedup();
        assert_eq!(placed.len(), known.len(), "a key stands for two sentences");
    }
}
