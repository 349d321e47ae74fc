//! Checks settings of the server and its process: tickets, open files, compatibility version.

use super::{HostAnswer, mongod_version};
use crate::Evidence;
use crate::wording::mongosh;

/// The manual's recommended `ulimit -n` ("UNIX ulimit Settings").
pub(crate) const OPEN_FILES_RECOMMENDED: u64 = 64_000;

/// Gauges of free tickets, by release: up to 7.0, and later.
const FREE_TICKETS: [[&str; 2]; 2] = [
    [
        "wiredTiger.concurrentTransactions.read.available",
        "wiredTiger.concurrentTransactions.write.available",
    ],
    [
        "queues.execution.read.available",
        "queues.execution.write.available",
    ],
];

/// Tickets of one kind, over the observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tickets {
    /// "read" or "write".
    pub(crate) kind: &'static str,
    /// Smallest number that was free.
    pub(crate) fewest_free: f64,
    pub(crate) total: Option<f64>,
    /// Share (0..=1) of the samples in which none was free.
    pub(crate) exhausted_share: f64,
    /// Mean number of operations that waited for one.
    pub(crate) queued: f64,
    pub(crate) samples: usize,
}

/// Returns what the examined server reports of its tickets; empty where it has none.
pub(crate) fn tickets_of(evidence: &Evidence<'_>) -> Vec<Tickets> {
    let counters = evidence.counters;
    let kinds = [(0, "read", "readers"), (1, "write", "writers")];
    let of_kind = |(at, kind, queue): (usize, &'static str, &str)| {
        let get = |name: &str| counters.get("serverStatus", name);
        let (name, free) = FREE_TICKETS
            .iter()
            .find_map(|n| Some((n[at], get(n[at])?)))?;
        let sibling = |last: &str| get(&name.replace("available", last));
        let total = sibling("totalTickets").and_then(|s| s.last());
        let queued = get(&format!("globalLock.currentQueue.{queue}"));
        Some(Tickets {
            kind,
            fewest_free: free.min()?,
            total,
            exhausted_share: free.share(|free| free <= 0.0),
            queued: queued.and_then(|q| q.mean()).unwrap_or(0.0),
            samples: free.points.len(),
        })
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// Checks tickets: 128 of each up to 6.0; from 7.0 on the server adjusts their number itself, and fixing it
/// is advised against (manual, `storageEngineConcurrentReadTransactions`).
pub(super) fn tickets(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let tickets = tickets_of(evidence);
    let worst = tickets
        .iter()
        .max_by(|a, b| a.exhausted_share.total_cmp(&b.exhausted_share))?;
    let dynamic = mongod_version(evidence).is_some_and(|version| version >= 7);
    let texts: Vec<String> = tickets
        .iter()
        .map(|t| match t.total {
            Some(total) => format!(
                "{total:.0} for {}s, {:.0} free at the least",
                t.kind, t.fewest_free
            ),
            None => format!("{:.0} free for {}s at the least", t.fewest_free, t.kind),
        })
        .collect();
    Some(HostAnswer {
        setting: "tickets".into(),
        has: texts.join("; "),
        wants: match dynamic {
            true => "some free, of as many as the server chooses itself".into(),
            false => "some free, of 128 each; more only where the disk is not busy".into(),
        },
        fits: worst.exhausted_share == 0.0 || worst.queued < 1.0,
        why: "operations queue when all are taken, mostly because a slow disk keeps them taken: look for \
              the reason before raising them"
            .into(),
        loss_s_per_hour: None,
        command: mongosh(
            evidence.uri(),
            "db.serverStatus().wiredTiger.concurrentTransactions || db.serverStatus().queues",
        ),
    })
}

/// Checks the limit of open files: "at least 64,000" (manual, "UNIX ulimit Settings"), as every collection
/// and index is an open file.
pub(super) fn open_files(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let host = evidence.host_settings()?;
    let limit = host.open_files_limit?;
    Some(HostAnswer {
        setting: "open files".into(),
        has: match host.open_files {
            Some(open) => format!("{limit} allowed, {open} open"),
            None => format!("{limit} allowed"),
        },
        wants: format!("at least {OPEN_FILES_RECOMMENDED}"),
        fits: limit >= OPEN_FILES_RECOMMENDED,
        why: "each collection and index is a file, each connection a socket; a server that runs out stops"
            .into(),
        loss_s_per_hour: None,
        command: "systemctl edit mongod  # [Service] LimitNOFILE=64000".into(),
    })
}

/// Checks the compatibility version: a server that runs with the features of an older one keeps that one's
/// formats on disk.
pub(super) fn compatibility(evidence: &Evidence<'_>) -> Option<HostAnswer> {
    let member = evidence.examined()?;
    let has = member.compatibility_version.as_deref()?;
    let version = &member.target.version;
    // From 7.0 on the server requires confirmation; older ones reject that parameter.
    let confirm = match mongod_version(evidence)? {
        0..7 => "",
        _ => ", confirm: true",
    };
    let release: Vec<&str> = version.split('.').take(2).collect();
    let wants = release.join(".");
    Some(HostAnswer {
        setting: "feature compatibility version".into(),
        fits: wants == has,
        has: has.into(),
        why: "features and formats on disk of the newer release stay off until it is raised".into(),
        loss_s_per_hour: None,
        command: mongosh(
            evidence.uri(),
            &format!("db.adminCommand({{setFeatureCompatibilityVersion: \"{wants}\"{confirm}}})"),
        ),
        wants,
    })
}
