//! Adds up what was waited, by kind, and how much of it each finding may claim.
//!
//! Several findings may explain the same waiting: a limit and slow syncs of the journal are the same second
//! of a writer. Each kind of waiting is therefore a budget: the finding that is ranked first takes what it
//! claims, the next one its share of what is left, and so on. Time that the server's log tells of operations of certain
//! kinds is theirs alone: a finding about these takes its claim whole, as far as it is left. All claims together never
//! exceed what was waited.

use schemars::JsonSchema;
use seekscope_run::{Finding, OperationKind, OperationSeen};
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::answers::{ceiling_reached, saved_of_disk, waiting_beside_disk_s_per_hour};
use crate::detectors::queued_for_locks;
use crate::evidence::Series;
use crate::evidence::cpu::{got_beside_others_s_per_hour, queued_s_per_hour};
use crate::evidence::waiting::{CACHE_ROOM_US, EVICTING_US, QUEUED};
use crate::ranking::{NOTICEABLE_S_PER_HOUR, is_seen};
use crate::wording::percent;

/// Observed waiting, s per hour, each second under one kind only.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Waited {
    /// Reads that the disk had to serve.
    #[schemars(range(min = 0))]
    pub reads: f64,
    /// Reads that the page cache served, checksums, and before 6.0 decompression.
    #[schemars(range(min = 0))]
    pub reads_from_memory: f64,
    /// Syncs of the journal, as far as operations can have waited for them.
    #[schemars(range(min = 0))]
    pub syncs: f64,
    /// Making room in the cache, by application threads, or waiting for it.
    #[schemars(range(min = 0))]
    pub cache_room: f64,
    /// Writes that other members had yet to acknowledge.
    #[schemars(range(min = 0))]
    pub members: f64,
    /// Waiting for CPUs that others took: other processes of the host, or of the host of a virtual machine.
    #[schemars(range(min = 0))]
    pub processors: f64,
    /// Waiting for locks that other operations held.
    #[schemars(range(min = 0))]
    pub locks: f64,
    /// Operations beyond all that: tickets, conflicts, the CPU's work.
    #[schemars(range(min = 0))]
    pub operations: f64,
}

/// The fields of [`Waited`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reads,
    FromMemory,
    Syncs,
    Room,
    Members,
    Processors,
    Locks,
    Operations,
}

/// Two sums of the same times are equal within this.
const ROUNDING: f64 = 1e-6;

/// What a finding may explain of which nothing else is known: all but waiting for locks, which has findings of its own.
const ANY: [Kind; 7] = [
    Kind::Reads,
    Kind::FromMemory,
    Kind::Syncs,
    Kind::Room,
    Kind::Members,
    Kind::Processors,
    Kind::Operations,
];
/// Findings of operations that read in vain.
pub(crate) const READING: [&str; 2] = ["query.collection-scan", "query.index-scan"];
/// What the kinds of operations that write have in their names.
const WRITES: [&str; 5] = ["insert", "update", "remove", "delete", "findandmodify"];
/// The kinds of waiting that an operation that reads may include.
const OF_READING: [Kind; 3] = [Kind::Reads, Kind::FromMemory, Kind::Operations];
/// The kinds that a checkpoint delays: everything except what memory serves.
const OF_CHECKPOINTS: [Kind; 4] = [Kind::Syncs, Kind::Reads, Kind::Room, Kind::Operations];

impl Waited {
    pub(crate) fn of(evidence: &Evidence<'_>) -> Self {
        let per_hour = |names: &[&str]| evidence.status_rate(names).map(|us| us / 1e6 * 3600.0);
        let mut waited = Self {
            reads: evidence.read_waiting().map_or(0.0, |w| w.s_per_s * 3600.0),
            reads_from_memory: waiting_beside_disk_s_per_hour(evidence),
            syncs: evidence.sync_waiting_s_per_hour().unwrap_or(0.0),
            cache_room: per_hour(&CACHE_ROOM_US)
                .unwrap_or(0.0)
                .max(per_hour(&EVICTING_US).unwrap_or(0.0)),
            members: evidence.waiting_for_members_s_per_hour(),
            ..Self::default()
        };
        // MongoDB 4.4 counts next to nothing of an aggregation that groups, and its log tells of it.
        let logged = logged_s_per_hour(evidence, |_| true);
        let queued = queued_for_locks(evidence).unwrap_or(0.0) * 3600.0;
        // Who waits for a lock is counted when that ends, if it does.
        let ended = counted_s_per_hour(evidence, &["writes", "transactions", "commands"]);
        let counted = counted_s_per_hour(evidence, &["reads"]) + (ended - queued).max(0.0);
        let beyond = (counted.max(logged) - waited.total()).max(0.0);
        waited.processors = waiting_for_cpus_s_per_hour(evidence, &waited).min(beyond);
        waited.operations = beyond - waited.processors;
        waited.locks = queued;
        waited
    }

    /// Returns the total of all kinds.
    pub fn total(&self) -> f64 {
        self.sum(&ANY) + self.locks
    }

    /// Returns the total of the kinds that involve the disk.
    pub fn total_for_disk(&self) -> f64 {
        self.reads + self.syncs
    }

    /// Returns the waiting that a finding of this id explains; `None` where that is of no kinds in particular.
    pub(crate) fn explained_by(&self, id: &str) -> Option<f64> {
        match id {
            "disk.limited" => Some(self.total_for_disk()),
            id => kinds_of(id).map(|kinds| self.sum(kinds)),
        }
    }

    fn get(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Reads => self.reads,
            Kind::FromMemory => self.reads_from_memory,
            Kind::Syncs => self.syncs,
            Kind::Room => self.cache_room,
            Kind::Members => self.members,
            Kind::Processors => self.processors,
            Kind::Locks => self.locks,
            Kind::Operations => self.operations,
        }
    }

    fn get_mut(&mut self, kind: Kind) -> &mut f64 {
        match kind {
            Kind::Reads => &mut self.reads,
            Kind::FromMemory => &mut self.reads_from_memory,
            Kind::Syncs => &mut self.syncs,
            Kind::Room => &mut self.cache_room,
            Kind::Members => &mut self.members,
            Kind::Processors => &mut self.processors,
            Kind::Locks => &mut self.locks,
            Kind::Operations => &mut self.operations,
        }
    }

    fn sum(&self, kinds: &[Kind]) -> f64 {
        kinds.iter().map(|kind| self.get(*kind)).sum()
    }
}

/// Grants each finding, in order, what it claims of what the previous ones left.
pub(crate) fn share_out(evidence: &Evidence<'_>, findings: &mut [Finding]) {
    let mut purse = Purse::new(Waited::of(evidence));
    let mut claimed_before: Vec<OperationKind> = Vec::new();
    for finding in findings.iter_mut().filter(|finding| is_seen(finding)) {
        let claimed = finding.saves_s_per_hour.filter(|s| s.is_finite());
        let Some(mut claimed) = claimed.filter(|claimed| *claimed > 0.0) else {
            continue;
        };
        let granted = match finding.id.clone().as_str() {
            "cache.too-small" => {
                let of_disk = saved_of_disk(evidence, claimed).clamp(0.0, claimed);
                purse.take(of_disk, &[Kind::Reads])
                    + purse.take(claimed - of_disk, &[Kind::FromMemory])
            }
            id => {
                let kinds = kinds(id, evidence);
                if READING.contains(&id) {
                    claimed = without_processors(finding, claimed, &purse.all);
                }
                claimed = at_most(finding, claimed, purse.all.sum(kinds));
                match is_time_of_its_own(evidence, finding, claimed, &claimed_before) {
                    true => purse.take_whole(claimed, kinds),
                    false => purse.take(claimed, kinds),
                }
            }
        };
        claimed_before.extend_from_slice(&finding.operations);
        grant(finding, claimed, granted);
    }
}

/// Returns the kinds that a finding explains; any kind for one that is not listed.
fn kinds(id: &str, evidence: &Evidence<'_>) -> &'static [Kind] {
    match id {
        "disk.limited" => match ceiling_reached(evidence) {
            Some(ceiling) if ceiling.of_writes => &[Kind::Syncs, Kind::Room],
            _ => &[Kind::Reads],
        },
        // A quota holds up whatever the server does.
        "cpu.saturated" if got_beside_others_s_per_hour(evidence).is_some() => &[Kind::Processors],
        id => kinds_of(id).unwrap_or(&ANY),
    }
}

/// Returns whether findings of this ID explain waiting for reads, and no other.
pub(crate) fn explains_reads_alone(id: &str, evidence: &Evidence<'_>) -> bool {
    let kinds = kinds(id, evidence).iter();
    let mut kinds = kinds.filter(|kind| **kind != Kind::FromMemory);
    kinds.next() == Some(&Kind::Reads) && kinds.next().is_none()
}

/// Returns the kinds that a finding of this id always explains.
fn kinds_of(id: &str) -> Option<&'static [Kind]> {
    Some(match id {
        "layout.key-order-lost"
        | "disk.slow"
        | "disk.saturated"
        | "memory.short"
        | "read-ahead.too-large"
        | "read-ahead.too-small"
        | "index.random-inserts"
        | "schema.scattered-series" => &[Kind::Reads],
        "cache.too-small" => &[Kind::Reads, Kind::FromMemory],
        // An operation that is not run waits for nothing.
        id if READING.contains(&id) => &OF_READING,
        "journal.slow-sync" => &[Kind::Syncs],
        "eviction.by-application-threads" => &[Kind::Room],
        "writes.unacknowledged" => &[Kind::Members],
        "locks.fsync" | "locks.queued" => &[Kind::Locks],
        "flow-control.engaged" => &[Kind::Operations],
        "checkpoint.long" => &OF_CHECKPOINTS,
        _ => return None,
    })
}

/// Returns whether findings of these IDs explain waiting of the same kind. False for those that explain none in
/// particular.
pub(crate) fn explain_the_same(a: &str, b: &str) -> bool {
    let kinds = |id| match id {
        "disk.limited" => Some(&[Kind::Reads, Kind::Syncs][..]),
        id => kinds_of(id),
    };
    let (a, b) = (kinds(a).unwrap_or_default(), kinds(b).unwrap_or_default());
    a.iter().any(|kind| b.contains(kind))
}

/// Returns whether what a finding claims is the time of operations that the log shows, and that no finding before it is
/// about.
fn is_time_of_its_own(
    evidence: &Evidence<'_>,
    finding: &Finding,
    claimed: f64,
    before: &[OperationKind],
) -> bool {
    let kinds = &finding.operations;
    let logged = logged_s_per_hour(evidence, |operation| {
        kinds.iter().any(|kind| kind.includes(operation))
    });
    claimed <= logged * (1.0 + ROUNDING) && !kinds.iter().any(|kind| before.contains(kind))
}

/// Returns how long operations took by the server's counts, s per hour. It counts an operation when it ends, with its time
/// from before the watch: none took more of the watch than all of it.
fn counted_s_per_hour(evidence: &Evidence<'_>, kinds: &[&str]) -> f64 {
    let took = kinds.iter().filter_map(|kind| {
        let took_us = evidence.status(&[&format!("opLatencies.{kind}.latency")])?;
        let ended_per_s = evidence.status_rate(&[&format!("opLatencies.{kind}.ops")]);
        let most = ended_per_s.map_or(f64::INFINITY, |per_s| per_s * took_us.span_s());
        Some((took_us.rate_per_s()? / 1e6).min(most))
    });
    took.sum::<f64>() * 3600.0
}

/// Returns how much of what operations took, s per hour, was waiting for CPUs that others took, given their other waits: as
/// the kernel counted it, else as an estimate. They cannot have computed for longer than the server did, and who is in a
/// queue wants no CPU.
fn waiting_for_cpus_s_per_hour(evidence: &Evidence<'_>, waited: &Waited) -> f64 {
    let Some(computed) = got_beside_others_s_per_hour(evidence) else {
        return 0.0;
    };
    if let Some(queued) = queued_s_per_hour(evidence) {
        return queued;
    }
    // How many syncs a write waits for is estimated, so what is left of its time may be more of that. Some commands do
    // nothing but wait to be told what changes.
    let (kinds, otherwise) = match evidence.writes_wait_for_syncs() {
        true => (&["reads"][..], waited.reads + waited.reads_from_memory),
        false => (&["reads", "writes", "transactions"][..], waited.total()),
    };
    let logged = logged_s_per_hour(evidence, |operation| {
        kinds.len() > 1 || !WRITES.iter().any(|write| operation.kind.contains(write))
    });
    let took = counted_s_per_hour(evidence, kinds).max(logged) - otherwise;
    let queue = evidence.status(&[QUEUED]).and_then(Series::mean);
    (took - computed - queue.unwrap_or(0.0) * 3600.0).max(0.0)
}

/// Returns how long the wanted ones of the operations took that the server's log calls slow, s per hour.
fn logged_s_per_hour(evidence: &Evidence<'_>, is_wanted: impl Fn(&OperationSeen) -> bool) -> f64 {
    let operations = evidence.examined().map_or(&[][..], |m| &m.operations);
    let wanted = operations.iter().filter(|operation| is_wanted(operation));
    let logged = wanted.filter_map(|operation| operation.logged);
    let took_us = logged.map(|logged| logged.took_us as f64).sum::<f64>();
    evidence
        .slow_log_s()
        .map_or(0.0, |covered_s| took_us / 1e6 / covered_s * 3600.0)
}

struct Purse {
    all: Waited,
    left: Waited,
}

impl Purse {
    fn new(all: Waited) -> Self {
        Self { all, left: all }
    }

    /// Treats `claimed` as a share of what the kinds held at first, and grants that share of what they still
    /// hold.
    fn take(&mut self, claimed: f64, kinds: &[Kind]) -> f64 {
        let (all, left) = (self.all.sum(kinds), self.left.sum(kinds));
        match all > 0.0 {
            true => self.take_whole((claimed / all).min(1.0) * left, kinds),
            false => 0.0,
        }
    }

    /// Grants all that is claimed, as far as the kinds still hold as much.
    fn take_whole(&mut self, claimed: f64, kinds: &[Kind]) -> f64 {
        let left = self.left.sum(kinds);
        if left <= 0.0 || claimed <= 0.0 {
            return 0.0;
        }
        let granted = claimed.min(left);
        for kind in kinds {
            *self.left.get_mut(*kind) *= 1.0 - granted / left;
        }
        granted
    }
}

/// Lowers a claim of operations' time by the share of it that was waiting for CPUs, and says so: without others on the
/// CPUs the same operations take that much less.
fn without_processors(finding: &mut Finding, claimed: f64, waited: &Waited) -> f64 {
    if waited.processors < NOTICEABLE_S_PER_HOUR {
        return claimed;
    }
    let own = waited.sum(&OF_READING);
    let share = own / (own + waited.processors);
    finding.saves_s_per_hour = Some(claimed * share);
    if let Some(gain) = &mut finding.gain {
        gain.value *= share;
        gain.low *= share;
        gain.high *= share;
    }
    // Behind what was seen of them.
    finding.evidence.insert(
        finding.evidence.len().min(1),
        format!(
            "Others used the CPUs: about {} of the operations' time was spent waiting for a CPU and is not counted here (serverStatus, getLog, process).",
            percent(1.0 - share)
        ),
    );
    claimed * share
}

/// Lowers a claim to all the waiting of its kinds, by which it is estimated in another way; where there was none it stays.
fn at_most(finding: &mut Finding, claimed: f64, waited: f64) -> f64 {
    if waited <= 0.0 || waited >= claimed {
        return claimed;
    }
    finding.saves_s_per_hour = Some(waited);
    if let Some(gain) = &mut finding.gain {
        gain.value *= waited / claimed;
        gain.low *= waited / claimed;
        gain.high = gain.high.min(waited).max(gain.value);
    }
    waited
}

fn grant(finding: &mut Finding, claimed: f64, granted: f64) {
    // Rounding does not deserve a sentence.
    if granted >= claimed * (1.0 - 1e-9) {
        return;
    }
    finding.saves_s_per_hour = Some(granted);
    finding.alone_s_per_hour = Some(claimed);
    if granted < NOTICEABLE_S_PER_HOUR && claimed >= NOTICEABLE_S_PER_HOUR {
        // Another explanation of the same waiting: a gain of next to nothing would not help.
        finding.gain = None;
    } else if let Some(gain) = &mut finding.gain {
        gain.value *= granted / claimed;
        gain.low *= granted / claimed;
    }
    finding.evidence.push(format!(
        "Alone it would save {claimed:.0} s per hour; no second of waiting is counted twice, and the findings \
         above it take their part first."
    ));
}

#[cfg(test)]
mod tests;
