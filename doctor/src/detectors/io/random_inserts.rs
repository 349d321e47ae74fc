//! `index.random-inserts`: inserts read leaves all over an index, because its keys come in no order (hashes,
//! random identifiers).
//!
//! An insert into an index needs the leaf that its key belongs to. Rising keys go to the last leaf, which is
//! in the cache; random ones go anywhere, and once the index is larger than the cache each insert reads one.

use seekscope_pattern::{PatternKind, ThreadRole};
use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{FileRole, Finding};

use super::{Detector, EVENTS_MIN, confidence, saved_per_hour};
use crate::answers::DeviceUser;
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{advise, duration, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["index.random-inserts"],
    detect,
};

/// Smallest share of inserts in all operations on documents: with fewer, queries may be what reads the index.
const INSERTS_SHARE_MIN: f64 = 0.6;
const OPERATIONS: [&str; 5] = ["insert", "query", "update", "delete", "getmore"];

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let Some(inserts) = Inserts::of(evidence) else {
        return Vec::new();
    };
    let users = answers.device_users.iter();
    users
        .filter_map(|user| judge(evidence, user, &inserts))
        .collect()
}

struct Inserts {
    per_s: f64,
    share: f64,
}

impl Inserts {
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let rate = |name: &&str| evidence.status_rate(&[&format!("opcounters.{name}")]);
        // Documents, where they are counted: one operation may insert many.
        let documents = evidence.status_rate(&["metrics.document.inserted"]);
        let operations: f64 = OPERATIONS[1..].iter().filter_map(rate).sum();
        let per_s = documents.or_else(|| rate(&OPERATIONS[0]))?;
        let share = per_s / (per_s + operations).max(1e-9);
        (share >= INSERTS_SHARE_MIN).then_some(Self { per_s, share })
    }
}

fn judge(evidence: &Evidence<'_>, user: &DeviceUser, inserts: &Inserts) -> Option<Finding> {
    let seconds = evidence.traced_s()?;
    let scattered = user.role == FileRole::Index
        && user.thread_role == ThreadRole::Application
        && !user.writes
        && matches!(user.pattern, Some(PatternKind::Random | PatternKind::Mixed));
    let saved = user.waiting_s_per_s * 3600.0;
    if !scattered || user.calls_per_s * seconds < EVENTS_MIN || saved < NOTICEABLE_S_PER_HOUR {
        return None;
    }
    let name = user.namespace.clone().unwrap_or_else(|| user.path.clone());
    // That of an index is "database.collection/index".
    let collection = user
        .namespace
        .as_ref()
        .and_then(|name| name.split_once('/'));
    Some(Finding {
        id: "index.random-inserts".into(),
        subject: name.clone(),
        title: format!(
            "Inserts read leaves of the index {name} here and there: its keys come in no order"
        ),
        evidence: vec![
            format!(
                "{:.0} documents per second were inserted, {} of all operations (serverStatus).",
                inserts.per_s,
                percent(inserts.share)
            ),
            format!(
                "Application threads read {:.0} leaves per second of it at random, {} in all, and waited {} \
                 per hour (trace).",
                user.calls_per_s,
                format_bytes(whole(user.bytes_per_s * seconds)),
                duration(saved)
            ),
        ],
        gain: Some(saved_per_hour(saved * 0.9, saved * 0.5, saved)),
        saves_s_per_hour: Some(saved * 0.9),
        confidence: confidence(evidence),
        risk: "Keys that rise put all inserts into one leaf; with very many writers, and as a shard key, \
               that is a hot spot."
            .into(),
        command: collection.map_or_else(String::new, |(collection, _)| {
            advise(evidence.uri(), collection)
        }),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    fn inserting(places: Vec<u32>, inserts_per_s: f64, queries_per_s: f64) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file("index-8.wt", FileRole::Index, Some("shop.orders/uuid_1"));
        let tid = recording.thread("conn1");
        for (i, place) in places.into_iter().enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 * 0.02,
                offset: u64::from(place) * 32_768,
                bytes: 16_384,
                latency_s: 0.005,
            });
        }
        recording.rising("opcounters.insert", inserts_per_s);
        recording.rising("opcounters.query", queries_per_s);
        recording
    }

    #[test]
    fn ill() {
        let found = inserting(shuffled(2500), 200.0, 10.0).findings(&DETECTOR);
        assert_eq!(found[0].subject, "shop.orders/uuid_1");
        assert_eq!(
            found[0].command,
            "seekscope advise mongodb://db1:27017/ shop.orders"
        );
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved - 0.9 * 2500.0 * 0.005 * 60.0).abs() < 1.0, "{saved}");
    }

    #[test]
    fn healthy() {
        let queried = inserting(shuffled(2500), 10.0, 200.0);
        assert_eq!(queried.findings(&DETECTOR), [], "queries read it");
        let rising = inserting((0..2500).collect(), 200.0, 0.0);
        assert_eq!(rising.findings(&DETECTOR), [], "in order");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
