//! Which finding comes first.
//!
//! Findings are ordered by the waiting that acting on them saves, the most first. Four things are settled
//! here because no finding can know of the others:
//!
//! - Noticeable waiting that was seen comes before what a job would save that nobody ran: the seconds of
//!   one scan and those of every hour are no one quantity.
//! - Several may explain the same reads. Whoever comes first claims its share of their waiting; of what is
//!   left the next one claims its share, and so on, so that the sum never exceeds what was waited.
//! - Of findings that save alike (within a factor of two), what removes the cause and costs least comes
//!   first: order before a faster disk (`BEFORE`).
//! - "Nothing is wrong with the disk" holds only where nothing else saves anything noticeable, and is then
//!   the answer.

use seekscope_run::Finding;

use crate::Evidence;
use crate::answers::saved_of_disk;
use crate::thresholds::NOTHING_WRONG;

/// Findings that a first screen has room for.
pub const FIRST_SCREEN: usize = 5;

/// Waiting that is worth a finding: a hundredth of one thread's time.
pub const NOTICEABLE_S_PER_HOUR: f64 = 36.0;

/// Unit of gains of waiting that was seen; others are of a job that was not.
pub const PER_HOUR: &str = "s of waiting per hour";

const INCOMPLETE: &str = "evidence.incomplete";
const CACHE: &str = "cache.too-small";

/// Findings that explain waiting for reads.
const READS: [&str; 10] = [
    "layout.key-order-lost",
    "cache.too-small",
    "disk.limited",
    "disk.slow",
    "disk.saturated",
    "query.collection-scan",
    "read-ahead.too-large",
    "read-ahead.too-small",
    "index.random-inserts",
    "schema.scattered-series",
];

/// What comes before what, of findings that save alike.
const BEFORE: [(&str, &[&str]); 5] = [
    (
        "schema.scattered-series",
        &["layout.key-order-lost", "cache.too-small", "disk.saturated"],
    ),
    (
        "layout.key-order-lost",
        &[
            "query.collection-scan",
            "cache.too-small",
            "read-ahead.too-small",
            "disk.limited",
            "disk.slow",
            "disk.saturated",
        ],
    ),
    (
        "cache.too-small",
        &["query.collection-scan", "disk.saturated"],
    ),
    (
        "checkpoint.long",
        &[
            "journal.slow-sync",
            "eviction.by-application-threads",
            "cache.dirty-limit-reached",
            "cache.too-small",
            "disk.slow",
            "disk.limited",
            "disk.saturated",
        ],
    ),
    (
        "disk.limited",
        &["journal.slow-sync", "query.collection-scan"],
    ),
];
/// Savings alike: at least this share of the larger.
const ALIKE: f64 = 0.5;

/// Puts findings in order; see the module. Equals keep their order, those whose saving is not known follow
/// by confidence.
pub fn rank(evidence: &Evidence<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let mut findings = ordered(findings);
    share_out(
        &mut findings,
        evidence.read_waiting().map(|w| w.s_per_s * 3600.0),
        |claimed| saved_of_disk(evidence, claimed),
    );
    let mut findings = ordered(findings);
    let acquitted = findings
        .iter()
        .position(|finding| finding.id == NOTHING_WRONG);
    if let Some(at) = acquitted {
        let acquittal = findings.remove(at);
        if !findings.iter().any(accuses_disk) {
            findings.insert(0, acquittal);
        }
    }
    findings
}

/// Is its saving of waiting that was seen, at the load that was seen? Else it is of a job that was not.
pub fn is_seen(finding: &Finding) -> bool {
    finding
        .gain
        .as_ref()
        .is_none_or(|gain| gain.unit == PER_HOUR)
}

/// Saves noticeable waiting that was seen.
fn is_noticeable(finding: &Finding) -> bool {
    is_seen(finding) && saved(finding).is_some_and(|s| s >= NOTICEABLE_S_PER_HOUR)
}

/// Saves noticeable waiting for the disk, or says that operations queue for what the disk holds up.
fn accuses_disk(finding: &Finding) -> bool {
    // Their waiting is not always counted.
    const QUEUES: [&str; 2] = ["cache.dirty-limit-reached", "tickets.exhausted"];
    const DISK: [&str; 8] = [
        "disk.",
        "layout.",
        "cache.",
        "checkpoint.",
        "journal.",
        "eviction.",
        "read-ahead.",
        "schema.",
    ];
    let of_disk = DISK.iter().any(|group| finding.id.starts_with(group))
        || READS.contains(&finding.id.as_str());
    QUEUES.contains(&finding.id.as_str()) || (of_disk && is_noticeable(finding))
}

fn saved(finding: &Finding) -> Option<f64> {
    finding.saves_s_per_hour.filter(|s| s.is_finite())
}

fn ordered(mut findings: Vec<Finding>) -> Vec<Finding> {
    let key = |finding: &Finding| {
        (
            is_noticeable(finding),
            saved(finding).unwrap_or(-1.0),
            // It speaks of us, not of the server.
            finding.id != INCOMPLETE,
            confidence(&finding.confidence),
        )
    };
    findings.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        let saved = b.1.total_cmp(&a.1);
        b.0.cmp(&a.0).then(saved).then((b.2, b.3).cmp(&(a.2, a.3)))
    });
    for (first, later) in BEFORE.into_iter().rev() {
        put_before(&mut findings, first, later);
    }
    findings
}

/// Moves findings with the id `first` before the first of `later` that saves alike, and likewise of what
/// was seen, or was not.
fn put_before(findings: &mut Vec<Finding>, first: &str, later: &[&str]) {
    for at in 0..findings.len() {
        if findings[at].id != first {
            continue;
        }
        let least = saved(&findings[at]).unwrap_or(0.0) / ALIKE;
        let seen = is_seen(&findings[at]);
        let place = findings[..at].iter().position(|other| {
            later.contains(&other.id.as_str())
                && is_seen(other) == seen
                && saved(other).is_some_and(|s| s <= least)
        });
        if let Some(place) = place {
            let finding = findings.remove(at);
            findings.insert(place, finding);
        }
    }
}

/// Of the waiting for reads each takes its share of what those before it leave. A larger cache also saves
/// time in reads that the disk has no part in: of its claim only what is `of_disk` is shared.
fn share_out(
    findings: &mut [Finding],
    waiting_s_per_hour: Option<f64>,
    of_disk: impl Fn(f64) -> f64,
) {
    let Some(waiting) = waiting_s_per_hour.filter(|waiting| *waiting > 0.0) else {
        return;
    };
    let mut left = 1.0;
    for finding in findings {
        let claims = is_seen(finding) && READS.contains(&finding.id.as_str());
        let Some(claimed) = saved(finding).filter(|_| claims) else {
            continue;
        };
        let shared = match finding.id == CACHE {
            true => of_disk(claimed).clamp(0.0, claimed.max(0.0)),
            false => claimed,
        };
        if left < 1.0 && shared > 0.0 {
            let granted = claimed - shared * (1.0 - left);
            finding.saves_s_per_hour = Some(granted);
            if let Some(gain) = &mut finding.gain {
                gain.value *= granted / claimed;
                gain.low *= granted / claimed;
                finding.evidence.push(format!(
                    "Alone it would save {claimed:.0} s per hour; the findings above it take their part of \
                     that first."
                ));
            }
        }
        left *= (1.0 - shared / waiting).clamp(0.0, 1.0);
    }
}

fn confidence(word: &str) -> u8 {
    match word {
        "high" => 2,
        "medium" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::Gain;

    use super::*;
    use crate::testing::Recording;

    fn finding(id: &str, saves: Option<f64>) -> Finding {
        Finding {
            id: id.into(),
            saves_s_per_hour: saves,
            gain: saves.map(|value| Gain {
                value,
                low: 0.0,
                high: value,
                unit: PER_HOUR.into(),
            }),
            ..Finding::default()
        }
    }

    /// With 1000 s per hour of waiting for reads.
    fn ranked(findings: Vec<Finding>) -> Vec<Finding> {
        let mut recording = Recording::new();
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(&format!("{read} time (usecs)"), 1e9 / 3600.0);
        recording.rising(&format!("{read} count"), 100.0);
        recording.examine(|evidence, _| rank(evidence, findings))
    }

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id.as_str()).collect()
    }

    #[test]
    fn the_most_first_and_the_unknown_last() {
        let sure = Finding {
            confidence: "high".into(),
            ..finding("b", None)
        };
        let found = ranked(vec![
            finding("a", None),
            sure,
            finding("c", Some(1.0)),
            finding("d", Some(9.0)),
        ]);
        assert_eq!(ids(&found), ["d", "c", "b", "a"]);
        let odd = ranked(vec![finding("a", Some(f64::NAN)), finding("b", Some(0.0))]);
        assert_eq!(ids(&odd), ["b", "a"]);
    }

    #[test]
    fn the_cause_comes_before_the_effect_that_saves_alike() {
        let found = ranked(vec![
            finding("disk.limited", Some(950.0)),
            finding("layout.key-order-lost", Some(700.0)),
            finding("query.collection-scan", Some(1000.0)),
        ]);
        assert_eq!(ids(&found)[0], "layout.key-order-lost");
        let found = ranked(vec![
            finding("disk.limited", Some(980.0)),
            finding("layout.key-order-lost", Some(300.0)),
            finding("cache.too-small", Some(600.0)),
        ]);
        assert_eq!(ids(&found)[0], "disk.limited", "order is a third of it");
    }

    fn of_a_scan(mut finding: Finding) -> Finding {
        finding.gain.as_mut().unwrap().unit = "s per cold scan".into();
        finding
    }

    #[test]
    fn waiting_that_was_seen_comes_before_scans_that_nobody_ran() {
        let scan = |s| of_a_scan(finding("layout.key-order-lost", Some(s)));
        let found = ranked(vec![scan(900.0), finding("disk.slow", Some(100.0))]);
        assert_eq!(ids(&found), ["disk.slow", "layout.key-order-lost"]);
        let alike = ranked(vec![scan(700.0), finding("disk.slow", Some(900.0))]);
        assert_eq!(ids(&alike)[0], "disk.slow", "order comes first of its kind");
        let little = ranked(vec![finding("disk.slow", Some(5.0)), scan(900.0)]);
        assert_eq!(ids(&little)[0], "layout.key-order-lost");
        let both = ranked(vec![
            scan(900.0),
            finding("disk.slow", Some(100.0)),
            finding("layout.key-order-lost", Some(80.0)),
        ]);
        assert!(is_seen(&both[0]) && both[0].id == "layout.key-order-lost");
        assert_eq!(ids(&both)[1], "disk.slow");
    }

    #[test]
    fn time_that_the_disk_has_no_part_in_is_nobody_elses() {
        let mut findings = vec![
            finding("cache.too-small", Some(900.0)),
            finding("disk.slow", Some(80.0)),
        ];
        // Of the cache's claim 50 s are waiting for the disk, of which there are 100 s.
        share_out(&mut findings, Some(100.0), |claimed| claimed - 850.0);
        let saved: Vec<f64> = findings.iter().filter_map(saved).collect();
        assert_eq!(saved, [900.0, 40.0]);
        findings.reverse();
        findings[0] = finding("disk.slow", Some(80.0));
        share_out(&mut findings, Some(100.0), |claimed| claimed - 850.0);
        let after = findings[1].saves_s_per_hour.unwrap();
        assert!((after - 860.0).abs() < 1e-6, "{after}");
    }

    #[test]
    fn checkpoints_come_before_the_disk_that_they_fill() {
        for disk in ["disk.slow", "disk.limited"] {
            let found = ranked(vec![
                finding(disk, Some(900.0)),
                finding("checkpoint.long", Some(600.0)),
            ]);
            assert_eq!(ids(&found)[0], "checkpoint.long");
        }
    }

    #[test]
    fn waiting_is_claimed_once() {
        let found = ranked(vec![
            finding("cache.too-small", Some(600.0)),
            finding("disk.saturated", Some(800.0)),
            finding("journal.slow-sync", Some(900.0)),
        ]);
        assert_eq!(
            ids(&found),
            ["journal.slow-sync", "cache.too-small", "disk.saturated"]
        );
        let saved: Vec<f64> = found.iter().filter_map(saved).collect();
        assert!(
            (saved[1] - 600.0).abs() < 1e-6 && (saved[2] - 320.0).abs() < 1e-6,
            "{saved:?}"
        );
        let reads = saved[1] + saved[2];
        assert!(reads <= 1000.0, "{reads}");
    }

    #[test]
    fn the_disk_is_acquitted_only_where_nothing_accuses_it() {
        let acquittal = || finding(NOTHING_WRONG, None);
        let found = ranked(vec![finding("cache.too-small", Some(500.0)), acquittal()]);
        assert_eq!(ids(&found), ["cache.too-small"]);
        let small = ranked(vec![finding("cache.too-small", Some(5.0)), acquittal()]);
        assert_eq!(ids(&small), [NOTHING_WRONG, "cache.too-small"]);
        for queue in ["cache.dirty-limit-reached", "tickets.exhausted"] {
            let queued = ranked(vec![finding(queue, None), acquittal()]);
            assert_eq!(ids(&queued), [queue]);
        }
        let not_seen = of_a_scan(finding("layout.key-order-lost", Some(500.0)));
        let found = ranked(vec![not_seen, acquittal(), finding("index.unused", None)]);
        assert_eq!(ids(&found)[0], NOTHING_WRONG);
    }
}
