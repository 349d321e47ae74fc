//! Decides the order of findings.
//!
//! Findings are ordered by the waiting that acting on them saves, the most first. Seven rules are applied here
//! because no finding knows of the others:
//!
//! - Noticeable observed waiting comes before what a job that nobody ran would save: the seconds of one scan
//!   and those of every hour are different quantities.
//! - Several findings may explain the same waiting. The first claims its share of it, the next one its share
//!   of what is left, and so on, so that the sum never exceeds what was waited (`claims.rs`).
//! - Of findings that save alike (within a factor of two), the one that removes the cause and costs least
//!   comes first: order before a faster disk (`BEFORE`).
//! - An effect follows its causes, however much of the waiting is counted under it (`EFFECTS`).
//! - "Nothing is wrong with the disk" holds only where no finding about the disk saves anything noticeable, and is then
//!   the answer, after what operations wait for instead.
//! - Writes that wait for syncs of a disk that is well come where what they wait belongs, although nobody can say what acting
//!   on it saves.
//! - Findings that apply to every such host and cost next to nothing come last ([`is_boilerplate`]).

use seekscope_run::Finding;

use crate::Evidence;
use crate::claims::{Waited, explain_the_same, share_out};
use crate::thresholds::{NOTHING_WRONG, SYNC_BOUND, UNRESPONSIVE};

/// Number of findings on a first screen.
pub const FIRST_SCREEN: usize = 5;

/// Waiting that is worth a finding: a hundredth of one thread's time.
pub const NOTICEABLE_S_PER_HOUR: f64 = 36.0;

/// Unit of gains of observed waiting; other gains are of a job that was not observed.
pub const PER_HOUR: &str = "s of waiting per hour";

const FILESYSTEM: &str = "filesystem.unfit";
const CHECKPOINTS: &str = "checkpoint.long";
/// Findings about seekscope, and about the server's age and its start: nothing that was seen while it was watched.
const NOT_OF_THE_WATCH: [&str; 3] = [
    "evidence.incomplete",
    "server.old-settings",
    "server.warnings",
];

/// Findings that precede others that save alike.
const BEFORE: [(&str, &[&str]); 8] = [
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
    // They claim seconds only where reading is spared, and then nothing is left to be cached, or to be waited for.
    ("query.collection-scan", &OF_READING),
    ("query.index-scan", &OF_READING),
    ("cache.too-small", &["disk.saturated"]),
    (
        "memory.short",
        &["disk.limited", "disk.slow", "disk.saturated"],
    ),
    (
        CHECKPOINTS,
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
    ("disk.limited", &["journal.slow-sync"]),
];
/// What is an effect of others that are found as well, however much of the waiting is counted under it.
const EFFECTS: [(&str, &[&str]); 3] = [
    ("writes.unacknowledged", &ACKNOWLEDGED_LATE),
    ("flow-control.engaged", &ACKNOWLEDGED_LATE),
    ("member.differs", &["shards.hot", "shards.uneven"]),
];
/// Why a member, or the server itself, may be behind with what it has to acknowledge.
const ACKNOWLEDGED_LATE: [&str; 7] = [
    CHECKPOINTS,
    "disk.limited",
    "disk.saturated",
    "disk.slow",
    "journal.slow-sync",
    "member.lagging",
    "member.unavailable",
];
const OF_READING: [&str; 3] = ["cache.too-small", "disk.limited", "disk.saturated"];
/// Findings of operations that queue. Their waiting is not always counted.
const QUEUES: [&str; 2] = ["cache.dirty-limit-reached", "tickets.exhausted"];
/// Savings are alike if the smaller is at least this share of the larger.
const ALIKE: f64 = 0.5;

/// Puts findings in order; see the module. Equal ones keep their order; those whose saving is not known
/// follow by confidence.
pub fn rank(evidence: &Evidence<'_>, findings: Vec<Finding>) -> Vec<Finding> {
    let mut findings = ordered(findings);
    share_out(evidence, &mut findings);
    let mut findings = ordered(findings);
    let acquitted = findings
        .iter()
        .position(|finding| finding.id == NOTHING_WRONG);
    if let Some(at) = acquitted {
        let acquittal = findings.remove(at);
        if !findings.iter().any(accuses_disk) {
            acquit(&mut findings, acquittal);
        }
    }
    place_bound(&mut findings, Waited::of(evidence).syncs);
    findings
}

/// Adds that nothing is wrong with the disk, behind what operations were seen to wait for.
pub(crate) fn acquit(findings: &mut Vec<Finding>, acquittal: Finding) {
    let comes_first = |finding: &Finding| {
        finding.id == UNRESPONSIVE || finding.id == "locks.queued" || is_noticeable(finding)
    };
    let place = findings.iter().position(|finding| !comes_first(finding));
    findings.insert(place.unwrap_or(findings.len()), acquittal);
}

/// Moves what writes wait for syncs, s per hour, before what saves less than that, and behind its causes.
fn place_bound(findings: &mut Vec<Finding>, waited: f64) {
    let Some(at) = findings.iter().position(|f| f.id == SYNC_BOUND) else {
        return;
    };
    let bound = findings.remove(at);
    let is_cause = |f: &Finding| is_noticeable(f) && explain_the_same(&f.id, "journal.slow-sync");
    let after = findings.iter().rposition(is_cause).map_or(0, |at| at + 1);
    let is_less = |f: &Finding| !is_noticeable(f) || saved(f).is_some_and(|s| s < waited);
    let place = findings[after..].iter().position(is_less);
    findings.insert(place.map_or(findings.len(), |at| after + at), bound);
}

/// Returns whether its saving is one of observed waiting, at the observed load. Otherwise it is of a job that was not
/// observed.
pub fn is_seen(finding: &Finding) -> bool {
    finding
        .gain
        .as_ref()
        .is_none_or(|gain| gain.unit == PER_HOUR)
}

/// Returns whether most hosts have it and it costs next to nothing, as mount options that cost something now and then are.
pub fn is_boilerplate(finding: &Finding) -> bool {
    finding.id == FILESYSTEM && finding.confidence == "low"
}

/// Returns whether it saves noticeable observed waiting.
fn is_noticeable(finding: &Finding) -> bool {
    is_seen(finding) && saved(finding).is_some_and(|s| s >= NOTICEABLE_S_PER_HOUR)
}

/// Returns whether it says that operations were seen to be held up, where nobody counts for how long. That precedes
/// what would be saved in jobs that were not observed.
fn is_held_up(finding: &Finding) -> bool {
    let id = finding.id.as_str();
    const SEEN: [&str; 6] = [
        "cpu.saturated",
        "locks.queued",
        "member.unavailable",
        "query.collection-scan",
        "query.index-scan",
        "query.small-batches",
    ];
    let is_queue = SEEN.contains(&id) || QUEUES.contains(&id);
    is_queue && !is_noticeable(finding)
}

/// Returns whether it saves noticeable waiting for the disk, or says that operations queue because of the disk.
fn accuses_disk(finding: &Finding) -> bool {
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
    // Findings of groups whose others have nothing to do with reads.
    const ALSO_READING: [&str; 4] = [
        "memory.short",
        "query.collection-scan",
        "query.index-scan",
        "index.random-inserts",
    ];
    let of_disk = DISK.iter().any(|group| finding.id.starts_with(group))
        || ALSO_READING.contains(&finding.id.as_str());
    QUEUES.contains(&finding.id.as_str()) || (of_disk && is_noticeable(finding))
}

fn saved(finding: &Finding) -> Option<f64> {
    finding.saves_s_per_hour.filter(|s| s.is_finite())
}

/// Puts findings in order without sharing out what was waited, for those of different servers: each waits for
/// its own disk.
pub(crate) fn ordered(mut findings: Vec<Finding>) -> Vec<Finding> {
    let key = |finding: &Finding| {
        (
            (
                finding.id == UNRESPONSIVE,
                is_noticeable(finding),
                is_held_up(finding),
            ),
            saved(finding).unwrap_or(-1.0),
            (
                !is_boilerplate(finding),
                !NOT_OF_THE_WATCH.contains(&finding.id.as_str()),
            ),
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
    for (effect, causes) in EFFECTS {
        put_after_causes(&mut findings, effect, causes);
    }
    // Nothing of the server's own bounds such checkpoints: the limit does.
    let has_no_remedy = |finding: &Finding| finding.id == CHECKPOINTS && finding.command.is_empty();
    if findings.iter().any(has_no_remedy) {
        put_after_causes(&mut findings, CHECKPOINTS, &["disk.limited"]);
    }
    findings
}

/// Moves an effect behind the last of its causes that costs something, and causes of which that is not known before it.
fn put_after_causes(findings: &mut Vec<Finding>, effect: &str, causes: &[&str]) {
    let is_cause = |finding: &Finding| causes.contains(&finding.id.as_str());
    let Some(at) = findings.iter().position(|finding| finding.id == effect) else {
        return;
    };
    let mut later = findings.split_off(at);
    let effect = later.remove(0);
    let (uncounted, mut later): (Vec<_>, Vec<_>) = later
        .into_iter()
        .partition(|finding| is_cause(finding) && finding.saves_s_per_hour.is_none());
    let last = later.iter().rposition(|f| is_cause(f) && is_noticeable(f));
    let after = later.split_off(last.map_or(0, |last| last + 1));
    for part in [later, uncounted, vec![effect], after] {
        findings.extend(part);
    }
}

/// Moves findings with the id `first` before the first of `later` that saves alike and is equally of observed
/// waiting or not.
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

    /// Ranks with 1000 s per hour of waiting for reads.
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
        let found = ranked(vec![
            finding("cache.too-small", Some(700.0)),
            finding("query.collection-scan", Some(600.0)),
        ]);
        assert_eq!(ids(&found)[0], "query.collection-scan");
        let found = ranked(vec![
            finding("disk.limited", Some(900.0)),
            finding("query.index-scan", Some(800.0)),
        ]);
        assert_eq!(ids(&found)[0], "query.index-scan");
    }

    #[test]
    fn an_effect_follows_its_causes_and_no_others() {
        let flow = || finding("flow-control.engaged", Some(9_000.0));
        let found = ranked(vec![
            flow(),
            finding("eviction.by-application-threads", Some(48.0)),
            finding("disk.limited", Some(500.0)),
            finding("member.lagging", None),
        ]);
        let expected = [
            "disk.limited",
            "member.lagging",
            "flow-control.engaged",
            "eviction.by-application-threads",
        ];
        assert_eq!(ids(&found), expected);
        let alone = ranked(vec![
            finding("eviction.by-application-threads", Some(48.0)),
            flow(),
        ]);
        assert_eq!(ids(&alone)[0], "flow-control.engaged");
    }

    #[test]
    fn what_was_seen_comes_before_the_age_of_the_server() {
        let mut old = finding("server.old-settings", None);
        old.confidence = "medium".into();
        let mut seen = finding("index.write-cost", None);
        seen.confidence = "low".into();
        assert_eq!(ids(&ranked(vec![old, seen]))[0], "index.write-cost");
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
        let queued = ranked(vec![scan(900.0), finding("tickets.exhausted", None)]);
        assert_eq!(ids(&queued)[0], "tickets.exhausted");
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
    fn checkpoints_come_before_the_disk_that_they_fill() {
        let long = |command: &str| Finding {
            command: command.into(),
            ..finding("checkpoint.long", Some(600.0))
        };
        for disk in ["disk.slow", "disk.limited"] {
            let found = ranked(vec![
                finding(disk, Some(900.0)),
                long("lower the dirty limit"),
            ]);
            assert_eq!(ids(&found)[0], "checkpoint.long");
        }
        let bounded = ranked(vec![long(""), finding("disk.limited", Some(900.0))]);
        assert_eq!(
            ids(&bounded)[0],
            "disk.limited",
            "nothing else is to be done"
        );
    }

    #[test]
    fn waiting_is_claimed_once() {
        let found = ranked(vec![
            finding("cache.too-small", Some(600.0)),
            finding("disk.saturated", Some(800.0)),
        ]);
        assert_eq!(ids(&found), ["cache.too-small", "disk.saturated"]);
        let saved: Vec<f64> = found.iter().filter_map(saved).collect();
        assert!(
            (saved[0] - 600.0).abs() < 1e-6 && (saved[1] - 320.0).abs() < 1e-6,
            "{saved:?}"
        );
        let reads = saved[0] + saved[1];
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
        let held_up = vec![finding("query.spills", Some(500.0)), acquittal()];
        assert_eq!(ids(&ranked(held_up)), ["query.spills", NOTHING_WRONG]);
    }

    #[test]
    fn what_writes_wait_for_syncs_has_its_place_without_a_saving() {
        let placed = |mut findings: Vec<Finding>| {
            findings.push(finding(SYNC_BOUND, None));
            place_bound(&mut findings, 1_000.0);
            ids(&findings).iter().position(|id| *id == SYNC_BOUND)
        };
        let of_cpus = |s| finding("cpu.saturated", Some(s));
        assert_eq!(placed(vec![]), Some(0));
        assert_eq!(placed(vec![of_cpus(700.0)]), Some(0));
        assert_eq!(placed(vec![of_cpus(1700.0), finding("b", None)]), Some(1));
        let limited = finding("disk.limited", Some(900.0));
        assert_eq!(placed(vec![limited, of_cpus(700.0)]), Some(1), "its cause");
    }
}
