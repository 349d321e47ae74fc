//! Compares members or shards side by side.

mod difference;
mod figures;
mod roles;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use seekscope_run::{COUNTERS_OF_MEMBER, MemberRecord, MemberState, NamedValue};
use serde::{Deserialize, Serialize};

use crate::Evidence;

pub(super) use difference::difference;
pub(super) use roles::role_changes;

/// One member over the observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberAnswer {
    pub name: String,
    /// The shard it belongs to; null outside a sharded cluster.
    pub shard: Option<String>,
    pub state: MemberState,
    /// What it became while it was watched; null if it stayed what it was.
    pub became: Option<MemberState>,
    /// Whether it stays behind the primary by intention, or serves no users. If so, its work is not that of the others.
    pub has_own_duty: bool,
    /// Why it could not be queried; null if it was.
    pub not_asked: Option<String>,
    /// The folder of its own run; null unless it was examined as one of several members.
    pub run: Option<String>,
    /// The overall result of that run in one sentence.
    pub verdict: Option<String>,
    pub version: String,
    /// (name with unit, value) in the same order for every member; the value is null if not known for this one.
    pub figures: Vec<(String, Option<f64>)>,
    /// (option or parameter, value) for those that differ between members; without those that could not be read here.
    pub differing_settings: Vec<(String, String)>,
}

/// What sets one member apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberDifference {
    pub member: String,
    /// The figure's name with unit, or the setting's.
    pub factor: String,
    pub value: String,
    /// The value that the others have.
    pub others: String,
    /// Where the values come from, e.g. "serverStatus".
    pub source: String,
}

/// Shown for a member where an option or parameter was not set.
const NOT_SET: &str = "not set";
/// Settings that differ by nature: addresses, paths, files of this one process; also tickets, which the
/// server itself varies from 7.0 on.
const OWN_SETTINGS: [&str; 16] = [
    "diagnosticDataCollectionDirectoryPath",
    "executionControlConcurrent",
    "storageEngineConcurrent",
    "wiredTigerConcurrent",
    "net.",
    "storage.dbPath",
    "systemLog.",
    "processManagement.",
    "security.",
    "replication.replSetName",
    "replication.replSet",
    "sharding.clusterRole",
    "config",
    "setParameter.",
    "cloud.",
    "auditLog.",
];

impl MemberAnswer {
    /// Returns whether it keeps data, and was asked.
    pub(crate) fn is_comparable(&self) -> bool {
        self.not_asked.is_none() && self.holds_data()
    }

    /// Returns whether it holds data, unlike a mongos or an arbiter.
    pub fn holds_data(&self) -> bool {
        keeps_data(self.state)
    }
}

/// Returns the members in the order of the record, the examined one first. Empty if there is only one.
pub(super) fn members(evidence: &Evidence<'_>) -> Vec<MemberAnswer> {
    let records = evidence.examination().map_or(&[][..], |e| &e.members);
    if records.len() < 2 {
        return Vec::new();
    }
    let cluster = evidence.examination().and_then(|e| e.cluster.as_ref());
    let chunks_move = cluster.is_some_and(|cluster| cluster.moved_chunks.unwrap_or(0) > 0);
    let differing = differing_settings(records);
    let answers = records.iter().enumerate();
    answers
        .map(|(at, record)| {
            let source = counters_of(evidence, record, at == 0);
            MemberAnswer {
                name: record.name.clone(),
                shard: record.shard.clone(),
                state: record.state,
                became: record.role_change.map(|change| change.state),
                has_own_duty: record.hidden || record.delay_s.is_some_and(|s| s > 0.0),
                not_asked: record.not_asked.clone(),
                run: record.on_host.as_ref().map(|on_host| on_host.run.clone()),
                verdict: record
                    .on_host
                    .as_ref()
                    .map(|on_host| on_host.verdict.clone()),
                version: record.target.version.clone(),
                figures: figures::figures(record, evidence.counters, &source, chunks_move),
                differing_settings: match is_compared(record) {
                    true => settings_of(record, &differing),
                    false => Vec::new(),
                },
            }
        })
        .collect()
}

/// Returns the source of a member's counters: the examined one's are the run's own.
fn counters_of(evidence: &Evidence<'_>, record: &MemberRecord, is_examined: bool) -> String {
    let own = format!("{COUNTERS_OF_MEMBER}{}", record.name);
    let has_own = evidence.counters.beginning(&own, "").next().is_some();
    match is_examined && !has_own {
        true => "serverStatus".into(),
        false => own,
    }
}

fn is_compared(record: &MemberRecord) -> bool {
    record.not_asked.is_none() && keeps_data(record.state)
}

fn keeps_data(state: MemberState) -> bool {
    !matches!(state, MemberState::Router | MemberState::Arbiter)
}

/// A list of a member's settings. One that could not be read is empty, and nothing in it is known.
type Settings = fn(&MemberRecord) -> &[NamedValue];
const SETTINGS: [Settings; 2] = [|record| &record.options, |record| &record.parameters];

/// Returns the options and parameters that do not have the same value everywhere, as far as known.
fn differing_settings(records: &[MemberRecord]) -> Vec<(Settings, String)> {
    let compared: Vec<&MemberRecord> = records.iter().filter(|r| is_compared(r)).collect();
    let mut differing = Vec::new();
    for settings in SETTINGS {
        let lists = compared.iter().map(|record| settings(record));
        let lists: Vec<&[NamedValue]> = lists.filter(|list| !list.is_empty()).collect();
        let names = lists.iter().flat_map(|list| list.iter());
        let mut names: BTreeSet<&String> = names.map(|setting| &setting.name).collect();
        names.retain(|name| {
            let is_own = OWN_SETTINGS.iter().any(|own| name.starts_with(own));
            let mut values = lists.iter().map(|list| value_of(list, name));
            let first = values.next();
            !is_own && values.any(|value| Some(value) != first)
        });
        differing.extend(names.into_iter().map(|name| (settings, name.clone())));
    }
    differing
}

fn value_of<'a>(list: &'a [NamedValue], name: &str) -> &'a str {
    let found = list.iter().find(|setting| setting.name == name);
    found.map_or(NOT_SET, |setting| &setting.value)
}

/// Returns the differing settings, as far as they are known of this member.
fn settings_of(record: &MemberRecord, differing: &[(Settings, String)]) -> Vec<(String, String)> {
    let lists = differing
        .iter()
        .map(|(settings, name)| (settings(record), name));
    lists
        .filter(|(list, _)| !list.is_empty())
        .map(|(list, name)| (name.clone(), value_of(list, name).to_string()))
        .collect()
}

#[cfg(test)]
mod tests;
