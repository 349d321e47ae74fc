//! `ttl.deleting`: the server deletes documents that have expired (TTL indexes) for much of the time.
//!
//! One thread of a primary, TTLMonitor, begins a pass every `ttlMonitorSleepSecs` (60), and deletes all that has expired
//! since the last one. Such deletes are in no counter of operations or latencies and not in `top`; mongod 4.4 counts the
//! documents when a pass ends, and `currentOp` names no collection. So the thread itself is looked at: how often it was
//! at work, and how long its calls took in the trace.

use seekscope_pattern::ThreadRole;
use seekscope_run::units::{format_count, format_list, whole};
use seekscope_run::{CollectionFacts, Finding, IndexOption, OperationSeen};

use super::Detector;
use crate::namespaces::is_internal;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["ttl.deleting"],
    detect,
};

const DELETED: &str = "metrics.ttl.deletedDocuments";
/// Prevents further passes; one that runs goes on to its end (mongod 4.4.6).
const SWITCH_OFF: &str = "db.adminCommand({setParameter: 1, ttlMonitorEnabled: false})";
/// Fewest samples and smallest share of the time: a pass of some seconds a minute is everyday.
const LOOKS_MIN: u32 = 2;
const SHARE_MIN: f64 = 0.1;
/// Collections that are named.
const NAMED_MAX: usize = 3;

/// What was seen of the thread.
struct Deleting<'a> {
    /// More than one only where the server tells what it deletes from.
    seen: Vec<&'a OperationSeen>,
    looks: u32,
    all_looks: u32,
    /// The time that its calls took, s per s (trace).
    calling_s_per_s: Option<f64>,
}

impl<'a> Deleting<'a> {
    fn of(evidence: &Evidence<'a>) -> Self {
        let member = evidence.examined();
        let operations = member.map_or(&[][..], |member| &member.operations);
        let seen = operations
            .iter()
            .filter(|one| one.kind == OperationSeen::TTL_MONITOR);
        let seen: Vec<&OperationSeen> = seen.collect();
        Self {
            looks: seen.iter().map(|one| one.looks).sum(),
            all_looks: member.map_or(0, |member| member.operation_looks),
            calling_s_per_s: calling_s_per_s(evidence),
            seen,
        }
    }

    /// Returns the share of the time for which it was at work, at least.
    fn share(&self) -> f64 {
        let is_seen = self.looks >= LOOKS_MIN && self.all_looks > 0;
        let in_looks = match is_seen {
            true => (f64::from(self.looks) / f64::from(self.all_looks)).min(1.0),
            false => 0.0,
        };
        in_looks.max(self.calling_s_per_s.unwrap_or(0.0))
    }

    fn sentences(&self) -> Vec<String> {
        let longest_us = self.seen.iter().map(|one| one.running_us).max();
        let longest = longest_us
            .filter(|us| *us > 0)
            .map(|us| format!(", for {} at a time at the most", duration(us as f64 / 1e6)));
        let looks = (self.looks > 0).then(|| {
            format!(
                "The server's thread that deletes what has expired ({}) was at work in {} of {} looks{} \
                 (currentOp).",
                OperationSeen::TTL_MONITOR,
                self.looks,
                self.all_looks,
                longest.unwrap_or_default()
            )
        });
        let calls = self.calling_s_per_s.map(|s_per_s| {
            format!(
                "Its own reads, writes and syncs of files took {} of each second (trace).",
                duration(s_per_s)
            )
        });
        looks.into_iter().chain(calls).collect()
    }
}

/// Returns how long the calls of the thread took, s per s; `None` if there were none, or no trace.
fn calling_s_per_s(evidence: &Evidence<'_>) -> Option<f64> {
    let seconds = evidence.traced_s()?;
    let threads = evidence.trace?.threads.iter();
    let own = threads.filter(|thread| thread.thread.name == OperationSeen::TTL_MONITOR);
    let latencies = own.flat_map(|thread| {
        [
            thread.reads.latency_ns,
            thread.writes.latency_ns,
            thread.syncs.latency_ns,
        ]
    });
    let ns = latencies.map(|calls| calls.count as f64 * calls.mean as f64);
    let s_per_s = ns.sum::<f64>() / 1e9 / seconds;
    (s_per_s > 0.0).then_some(s_per_s)
}

/// The collections of which documents are deleted.
struct Collections {
    names: Vec<String>,
    /// How they are known.
    basis: Option<String>,
    /// Whether one of them may be named as the one.
    are_sure: bool,
}

impl Collections {
    fn of(evidence: &Evidence<'_>, answers: &Answers, deleting: &Deleting<'_>) -> Self {
        let named = deleting.seen.iter();
        let named = named.filter_map(|one| one.namespace.clone());
        let mut names: Vec<String> = named.collect();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            return Self {
                names,
                basis: None,
                are_sure: true,
            };
        }
        let member = evidence.examined();
        let collections = member.map_or(&[][..], |member| &member.collections);
        let expiring = collections.iter().filter(|facts| expires(facts));
        let expiring: Vec<String> = expiring.map(|facts| facts.namespace.clone()).collect();
        let read = expiring.iter().filter(|name| is_read(answers, name));
        let read: Vec<String> = read.cloned().collect();
        let are_read = !read.is_empty();
        let names = if are_read { read } else { expiring };
        let list = format_list(&names, NAMED_MAX, ", ");
        let basis = match (names.len(), are_read) {
            (0, _) => None,
            (1, true) => Some(format!(
                "{list} has a TTL index, and threads in the background read its files (trace)."
            )),
            (_, true) => Some(format!(
                "{list} have TTL indexes, and threads in the background read their files (trace)."
            )),
            (1, false) => Some(format!("{list} has a TTL index (listIndexes).")),
            (_, false) => Some(format!("{list} have TTL indexes (listIndexes).")),
        };
        Self {
            names,
            basis,
            are_sure: are_read || member.is_some_and(|member| member.collections_left_out == 0),
        }
    }

    /// Returns the name if it is one.
    fn only(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if self.are_sure => Some(name),
            _ => None,
        }
    }
}

fn expires(collection: &CollectionFacts) -> bool {
    let mut indexes = collection.indexes.iter();
    let expires = indexes.any(|index| index.options.contains(&IndexOption::Expiring));
    expires && !is_internal(&collection.namespace)
}

/// Returns whether it or one of its indexes was read by threads that serve no client.
fn is_read(answers: &Answers, collection: &str) -> bool {
    let mut users = answers.device_users.iter();
    users.any(|user| {
        let name = user.namespace.as_deref().unwrap_or_default();
        let rest = name.strip_prefix(collection);
        let is_of_it = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_of_it && !user.writes && user.thread_role == ThreadRole::Background
    })
}

/// Says how many documents were deleted; `None` where the server's counter was not sampled.
fn deleted(evidence: &Evidence<'_>) -> Option<String> {
    let series = evidence.status(&[DELETED])?;
    let documents = series.increase()?;
    Some(match series.rate_per_s().filter(|per_s| *per_s > 0.0) {
        Some(per_s) => format!(
            "Passes that ended meanwhile had deleted {} documents, {per_s:.0} for each second of the watch; the server \
             counts those of a pass when it ends (serverStatus).",
            format_count(whole(documents))
        ),
        None => "How many documents are deleted is not known: the server counts those of a pass when it ends, and none \
                 that had deleted any has ended meanwhile (serverStatus)."
            .into(),
    })
}

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let deleting = Deleting::of(evidence);
    let share = deleting.share();
    // Where nobody waits, nobody is in its way.
    if share < SHARE_MIN || answers.waited.total() < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let collections = Collections::of(evidence, answers, &deleting);
    let only = collections.only();
    let from = only.map_or(String::new(), |name| format!(" from {name}"));
    let mut sentences = deleting.sentences();
    sentences.extend(collections.basis.clone());
    sentences.extend(deleted(evidence));
    sentences.push(
        "Each pass deletes all that has expired since the last one, document by document, with its entries in all \
         indexes: a new TTL index, or many documents that expire at the same time, make a long burst."
            .into(),
    );
    sentences.push(
        "Let documents expire in small steps (times that are spread), delete a backlog in batches at a quiet hour before \
         the TTL index is made, or keep each day or month in a collection of its own and drop that."
            .into(),
    );
    Some(Finding {
        id: "ttl.deleting".into(),
        subject: only.unwrap_or_default().into(),
        title: format!(
            "For {} of the time the server deletes documents that have expired (TTL){from}",
            percent(share.min(1.0))
        ),
        evidence: sentences,
        confidence: "medium".into(),
        risk: "The command is a last resort for peak hours: a pass that runs goes on to its end, no other one begins, \
               and what expires stays until the same is set to true or the server is restarted. The pass that follows \
               takes the longer for it."
            .into(),
        command: mongosh(evidence.uri(), SWITCH_OFF),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IndexFacts};

    use super::*;
    use crate::testing::{Call, Recording};

    fn collection(namespace: &str, options: &[IndexOption]) -> CollectionFacts {
        CollectionFacts {
            namespace: namespace.into(),
            indexes: vec![IndexFacts {
                name: "at_1".into(),
                keys: r#"{"at":1}"#.into(),
                options: options.into(),
                ..IndexFacts::default()
            }],
            ..CollectionFacts::default()
        }
    }

    /// The thread was at work in this many of sixty looks, while operations took half a second of each second.
    fn expiring(looks: u32) -> Recording {
        let mut recording = Recording::new();
        let member = recording.examined();
        member.operation_looks = 60;
        member.operations = vec![OperationSeen {
            kind: OperationSeen::TTL_MONITOR.into(),
            running_us: 42_000_000,
            looks,
            at_once: 1,
            ..OperationSeen::default()
        }];
        member.collections = vec![
            collection("shop.orders", &[]),
            collection("shop.sessions", &[IndexOption::Expiring]),
            collection("config.system.sessions", &[IndexOption::Expiring]),
        ];
        recording.rising("opLatencies.reads.latency", 500_000.0);
        recording
    }

    #[test]
    fn ill() {
        let mut recording = expiring(45);
        let found = recording.findings(&DETECTOR).remove(0);
        assert_eq!(
            found.title,
            "For 75 % of the time the server deletes documents that have expired (TTL) from shop.sessions"
        );
        assert_eq!(found.subject, "shop.sessions");
        assert!(
            found.evidence[0].contains("in 45 of 60 looks, for 42.0 s at a time"),
            "{found:?}"
        );
        assert!(found.command.contains("ttlMonitorEnabled: false"));
        recording.examined().collections_left_out = 1;
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.title.ends_with("(TTL)"), "it may be another one");
    }

    #[test]
    fn what_the_server_counts_is_of_passes_that_have_ended() {
        let mut recording = expiring(45);
        recording.steady(DELETED, 7.0);
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.evidence[2].contains("is not known"), "{found:?}");
        let mut recording = expiring(45);
        recording.values("serverStatus", DELETED, |s| {
            if s < 30.0 { 0.0 } else { 400_000.0 }
        });
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(
            found.evidence[2].contains("deleted 400,000 documents, 6667 for"),
            "{found:?}"
        );
    }

    #[test]
    fn the_trace_tells_the_thread_and_its_collection() {
        let mut recording = expiring(45);
        let member = recording.examined();
        member.operations.clear();
        let events = collection("shop.events", &[IndexOption::Expiring]);
        member.collections.push(events);
        let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.events"));
        let tid = recording.thread(OperationSeen::TTL_MONITOR);
        for second in 0..50_u32 {
            recording.miss(Call {
                tid,
                file_id,
                at_s: f64::from(second),
                offset: u64::from(second) << 20,
                bytes: 32_768,
                latency_s: 0.3,
            });
        }
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.title.starts_with("For 25 % of the time"), "{found:?}");
        assert!(found.title.ends_with("from shop.events"), "{found:?}");
        assert!(
            found.evidence[0].contains("took 250 ms of each second"),
            "{found:?}"
        );
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(expiring(3).findings(&DETECTOR), [], "a short pass a minute");
        let mut idle = Recording::new();
        *idle.examined() = expiring(45).examined().clone();
        assert_eq!(idle.findings(&DETECTOR), [], "nobody waits");
    }
}
