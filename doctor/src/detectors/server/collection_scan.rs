//! `query.collection-scan`: operations read whole collections. Mostly for want of an index, which is not
//! known of any: some want all documents.

use seekscope_pattern::ThreadRole;
use seekscope_run::units::format_count;
use seekscope_run::{Finding, OperationSeen};

use super::Detector;
use crate::namespaces::is_internal;
use crate::wording::{duration, javascript_text, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["query.collection-scan"],
    detect,
};

/// Looks at the running operations in which such a one was seen. One or two may be somebody's report.
const LOOKS_MIN: u32 = 3;
/// Documents examined for each one returned, over the whole server; the manual calls 1 the ideal.
const EXAMINED_PER_RETURNED_MIN: f64 = 100.0;
/// … and examined per second: below this the disk hardly notices.
const EXAMINED_PER_S_MIN: f64 = 1000.0;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let seen = evidence.examined().map_or(&[][..], |m| &m.operations);
    let mut scans: Vec<&OperationSeen> = Vec::new();
    let scanning = seen.iter().filter(|operation| is_scan(operation));
    for operation in scanning.filter(|operation| !is_capped(evidence, operation)) {
        // The longest stands for its collection.
        if !scans
            .iter()
            .any(|known| known.namespace == operation.namespace)
        {
            scans.push(operation);
        }
    }
    let examined = examined_per_returned(evidence);
    if scans.is_empty() {
        return examined
            .map(|e| unnamed(evidence, &e))
            .into_iter()
            .collect();
    }
    let scans = scans.into_iter();
    scans
        .map(|operation| named(evidence, answers, operation, examined.as_ref()))
        .collect()
}

/// Commands of maintenance scan by nature, and so do members that follow the oplog.
fn is_scan(operation: &OperationSeen) -> bool {
    const MAINTENANCE: [&str; 4] = ["index build", "initial sync", "compact", "validate"];
    let plan = operation.plan.as_deref().unwrap_or_default();
    let namespace = operation.namespace.as_deref().unwrap_or_default();
    plan.starts_with("COLLSCAN")
        && !is_internal(namespace)
        && operation.looks >= LOOKS_MIN
        && !MAINTENANCE.iter().any(|kind| operation.kind.contains(kind))
}

/// Cursors that follow a capped collection are meant to read it in its own order.
fn is_capped(evidence: &Evidence<'_>, operation: &OperationSeen) -> bool {
    let mut collections = evidence.examined().into_iter().flat_map(|m| &m.collections);
    collections.any(|c| c.capped && operation.namespace.as_ref() == Some(&c.namespace))
}

/// What the server counted.
struct Examined {
    documents_per_s: f64,
    returned_per_s: f64,
}

impl Examined {
    fn sentence(&self) -> String {
        format!(
            "The server examined {:.0} documents per second and returned {:.0} (serverStatus).",
            self.documents_per_s, self.returned_per_s
        )
    }
}

fn examined_per_returned(evidence: &Evidence<'_>) -> Option<Examined> {
    let rate = |name| evidence.counters.get("serverStatus", name)?.rate_per_s();
    let documents_per_s = rate("metrics.queryExecutor.scannedObjects")?;
    let returned_per_s = rate("metrics.document.returned")?;
    let many = documents_per_s >= EXAMINED_PER_S_MIN
        && documents_per_s >= EXAMINED_PER_RETURNED_MIN * returned_per_s.max(1.0);
    many.then_some(Examined {
        documents_per_s,
        returned_per_s,
    })
}

fn named(
    evidence: &Evidence<'_>,
    answers: &Answers,
    operation: &OperationSeen,
    examined: Option<&Examined>,
) -> Finding {
    let namespace = operation.namespace.clone().unwrap_or_default();
    let longest = duration(operation.running_us as f64 / 1e6);
    let mut sentences = vec![format!(
        "A {} with plan COLLSCAN was running in {} looks, {} at once, for up to {longest} (currentOp).",
        operation.kind, operation.looks, operation.at_once
    )];
    let mut collections = evidence.examined().into_iter().flat_map(|m| &m.collections);
    if let Some(collection) = collections.find(|c| c.namespace == namespace) {
        sentences.push(format!(
            "The collection has {} documents (collStats).",
            format_count(collection.documents)
        ));
    }
    sentences.extend(examined.map(Examined::sentence));
    let waiting = waiting_s_per_hour(answers, &namespace);
    sentences.extend(waiting.map(|(s, source)| {
        format!(
            "Its readers waited {} per hour; an index saves that at most ({source}).",
            duration(s)
        )
    }));
    let running = format!(
        "db.currentOp({{planSummary: \"COLLSCAN\", ns: {}}})",
        javascript_text(&namespace)
    );
    Finding {
        id: "query.collection-scan".into(),
        title: format!("Operations read all of {namespace} (COLLSCAN)"),
        subject: namespace,
        evidence: sentences,
        saves_s_per_hour: waiting.map(|(s, _)| s),
        confidence: if waiting.is_some() { "medium" } else { "low" }.into(),
        risk: "Each further index costs every write, and its build reads the collection once."
            .into(),
        command: mongosh(evidence.uri(), &running),
        ..Finding::default()
    }
}

/// Of application threads that read the collection, and where it is known from.
fn waiting_s_per_hour(answers: &Answers, namespace: &str) -> Option<(f64, &'static str)> {
    let mut users = answers.device_users.iter().filter(|user| {
        user.namespace.as_deref() == Some(namespace)
            && user.thread_role == ThreadRole::Application
            && !user.writes
    });
    let first = users.next()?;
    let waiting_s_per_s = users.fold(first.waiting_s_per_s, |sum, u| sum + u.waiting_s_per_s);
    Some((waiting_s_per_s * 3600.0, first.source()))
}

fn unnamed(evidence: &Evidence<'_>, examined: &Examined) -> Finding {
    Finding {
        id: "query.collection-scan".into(),
        title: format!(
            "The server examines {:.0} documents for each one that it returns",
            examined.documents_per_s / examined.returned_per_s.max(1.0)
        ),
        evidence: vec![
            examined.sentence(),
            "No collection scan was caught at it, so short ones or unselective indexes do it."
                .into(),
        ],
        confidence: "low".into(),
        risk: "Each further index costs every write, and its build reads the collection once."
            .into(),
        command: mongosh(
            evidence.uri(),
            "db.currentOp({planSummary: {$exists: true}})",
        ),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::CollectionFacts;

    use super::*;
    use crate::testing::Recording;

    fn scan(looks: u32, plan: &str) -> OperationSeen {
        OperationSeen {
            kind: "command find".into(),
            namespace: Some("shop.orders".into()),
            plan: Some(plan.into()),
            running_us: 12_000_000,
            looks,
            at_once: 2,
            ..OperationSeen::default()
        }
    }

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.examined().operations = vec![scan(9, "COLLSCAN"), scan(4, "COLLSCAN")];
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1, "once for a collection");
        assert_eq!(found[0].subject, "shop.orders");
        assert_eq!(
            found[0].title,
            "Operations read all of shop.orders (COLLSCAN)"
        );
        assert!(
            found[0].evidence[0].contains("9 looks, 2 at once, for up to 12.0 s"),
            "{found:?}"
        );

        let mut counted = Recording::new();
        counted.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
        counted.rising("metrics.document.returned", 20.0);
        let found = counted.findings(&DETECTOR);
        assert!(
            found[0].title.contains("2500 documents for each one"),
            "{found:?}"
        );
    }

    #[test]
    fn counters_are_not_called_a_trace() {
        let mut recording = Recording::new();
        recording.examined().operations = vec![scan(9, "COLLSCAN")];
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            read_into_cache_bytes: Some(1 << 20),
            ..CollectionFacts::default()
        }];
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 1e5);
        recording.rising(&format!("{read} count"), 100.0);
        let found = recording.findings(&DETECTOR);
        let sentence = found[0].evidence.last().unwrap();
        assert!(sentence.contains("waited 6 min per hour"), "{sentence}");
        assert!(!sentence.contains("trace"), "{sentence}");
    }

    #[test]
    fn capped_collections_are_followed() {
        let mut recording = Recording::new();
        recording.examined().operations = vec![scan(60, "COLLSCAN")];
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            capped: true,
            ..CollectionFacts::default()
        }];
        assert_eq!(recording.findings(&DETECTOR), []);
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        let build = OperationSeen {
            kind: "index build".into(),
            ..scan(9, "COLLSCAN")
        };
        recording.examined().operations =
            vec![scan(9, "IXSCAN { a: 1 }"), scan(1, "COLLSCAN"), build];
        let tail = OperationSeen {
            namespace: Some("local.oplog.rs".into()),
            ..scan(60, "COLLSCAN")
        };
        recording.examined().operations.push(tail);
        recording.rising("metrics.queryExecutor.scannedObjects", 50_000.0);
        recording.rising("metrics.document.returned", 40_000.0);
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
