//! What was found, the most to gain first.

use seekscope_run::{Finding, Gain};

use super::Naming;

struct Made<'a> {
    id: &'a str,
    subject: &'a str,
    title: &'a str,
    evidence: &'a [&'a str],
    gain: Option<(f64, f64, f64, &'a str)>,
    saves: Option<f64>,
    confidence: &'a str,
    risk: &'a str,
    command: &'a str,
}

const FINDINGS: [Made<'static>; 7] = [
    Made {
        id: "layout.key-order-lost",
        subject: "shop.orders",
        title: "shop.orders lies in random order on disk: a cold scan takes 4 min 12 s, in order it would take 9.1 s",
        evidence: &[
            "29,700 of 29,999 steps from leaf to leaf are seeks (layout, checkpoint WiredTigerCheckpoint.12).",
            "Application threads waited 1.9 s in every second for reads of this file (trace of 60 s).",
            "The disk reads 32 KiB at random in 610 µs and in order at 480 MB/s (measured 3 days ago).",
        ],
        gain: Some((1410.0, 1180.0, 1630.0, "s of waiting per hour")),
        saves: Some(1410.0),
        confidence: "high",
        risk: "needs 1.1 GiB of free space, and writes that much; a copy is swapped in when it is complete.",
        command: "seekscope reorder mongodb://db2.example:27017 shop.orders",
    },
    Made {
        id: "cache.too-small",
        subject: "",
        title: "The cache misses 38 % of page reads; 4 GiB more would serve 61 % of those",
        evidence: &[
            "Re-use distances of 1.2 million page reads, one page in 8 followed (trace of 60 s).",
            "1,240 reads per second go to the disk; 760 of them were read less than 8 GiB of other pages ago.",
        ],
        gain: Some((620.0, 480.0, 750.0, "s of waiting per hour")),
        saves: Some(620.0),
        confidence: "medium",
        risk: "the host has 5.2 GiB of memory available; leave some to the page cache.",
        command: "mongosh --eval 'db.adminCommand({setParameter: 1, wiredTigerEngineRuntimeConfig: \"cache_size=8G\"})'",
    },
    Made {
        id: "checkpoint.long",
        subject: "",
        title: "Checkpoints take 7.0 s, and journal syncs 11 times as long meanwhile",
        evidence: &[
            "3 checkpoints in 60 s, the longest 7.0 s with 480 MiB written (trace).",
            "99 % of journal syncs took at most 41.0 ms during checkpoints, 3.70 ms otherwise.",
        ],
        gain: Some((95.0, 40.0, 160.0, "s of waiting per hour")),
        saves: Some(95.0),
        confidence: "medium",
        risk: "more eviction by application threads where the limit is too low.",
        command: "mongosh --eval 'db.adminCommand({setParameter: 1, wiredTigerEngineRuntimeConfig: \"eviction_dirty_target=3,eviction_dirty_trigger=6\"})'",
    },
    Made {
        id: "huge-pages.unfit",
        subject: "",
        title: "Transparent huge pages are on; a server before 8.0 wants them off",
        evidence: &[
            "/sys/kernel/mm/transparent_hugepage/enabled says always; the server is 7.0.14.",
        ],
        gain: None,
        saves: None,
        confidence: "high",
        risk: "none known; holds until the next start of the host.",
        command: "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled\necho never | sudo tee /sys/kernel/mm/transparent_hugepage/defrag",
    },
    Made {
        id: "member.differs",
        subject: "db2.example:27017",
        title: "db2 reads its disk in 610 µs, db1 and db3 theirs in 120 µs",
        evidence: &["Mean time of a disk read over 60 s (serverStatus of three members)."],
        gain: None,
        saves: None,
        confidence: "medium",
        risk: "",
        command: "",
    },
    Made {
        id: "index.unused",
        subject: "shop.orders/legacy_1",
        title: "The index legacy_1 of shop.orders was not used in 41 days and takes 212 MiB",
        evidence: &["$indexStats: 0 uses since the server counts."],
        gain: Some((8.0, 2.0, 15.0, "s of waiting per hour")),
        saves: Some(8.0),
        confidence: "low",
        risk: "a monthly report may use it.",
        command: "mongosh shop --eval 'db.orders.hideIndex(\"legacy_1\")'",
    },
    Made {
        id: "space.reusable",
        subject: "shop.orders",
        title: "31 % of the file of shop.orders is free for reuse",
        evidence: &["340 MiB of 1.1 GiB, 12 MiB of it at the end (collStats, layout)."],
        gain: None,
        saves: None,
        confidence: "high",
        risk: "compact blocks nothing since 4.4, yet competes for the disk.",
        command: "mongosh shop --eval 'db.runCommand({compact: \"orders\"})'",
    },
];

pub(super) fn findings(name: &Naming<'_>) -> Vec<Finding> {
    let made = FINDINGS.iter().enumerate();
    made.map(|(nth, made)| Finding {
        id: name(made.id, nth),
        subject: name(made.subject, nth + 1),
        title: name(made.title, nth),
        evidence: made
            .evidence
            .iter()
            .map(|sentence| name(sentence, nth + 2))
            .collect(),
        gain: made.gain.map(|(value, low, high, unit)| Gain {
            value,
            low,
            high,
            unit: name(unit, nth + 1),
        }),
        saves_s_per_hour: made.saves,
        confidence: name(made.confidence, nth + 3),
        risk: name(made.risk, nth),
        command: name(made.command, nth + 1),
        ..Finding::default()
    })
    .collect()
}
