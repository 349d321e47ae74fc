//! `history-store.busy`: much of what the server reads and writes are old versions of documents.
//!
//! An update leaves the version before in the history store for as long as somebody may still want it: an open
//! transaction, a secondary that is behind, or readers of snapshots within the window that the server keeps.

use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{FileRole, Finding};

use super::super::server::locks::{HeldOpen, OPEN_TRANSACTIONS};
use super::{Detector, confidence};
use crate::answers::DeviceUser;
use crate::wording::{duration, mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["history-store.busy"],
    detect,
};

/// Smallest share of the bytes of all files.
const SHARE_MIN: f64 = 0.3;
/// Fewer bytes per second are no load.
const BYTES_PER_S_MIN: f64 = 2_000_000.0;
const VERSIONS: &str = "wiredTiger.cache.history store table insert calls";
/// How long the server keeps versions for readers of snapshots, s: from MongoDB 5.0 on, and in 4.4.
const WINDOWS: [&str; 2] = [
    "minSnapshotHistoryWindowInSeconds",
    "maxTargetSnapshotHistoryWindowInSeconds",
];

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, &answers.device_users).into_iter().collect()
}

/// Bytes per second that were read or written.
struct Bytes {
    of_history: f64,
    of_all: f64,
}

impl Bytes {
    fn of(users: &[DeviceUser], writes: bool) -> Self {
        let of = |is_counted: fn(&DeviceUser) -> bool| {
            let counted = users
                .iter()
                .filter(|user| user.writes == writes && is_counted(user));
            counted.map(|user| user.bytes_per_s).sum()
        };
        Self {
            of_history: of(|user| user.role == FileRole::HistoryStore),
            of_all: of(|_| true),
        }
    }
}

/// Says how much of what is read is of the history store, if that is much.
pub(super) fn much_of_reads(answers: &Answers) -> Option<String> {
    let read = Bytes::of(&answers.device_users, false);
    let share = read.of_history / read.of_all.max(1.0);
    (share >= SHARE_MIN).then(|| {
        format!(
            "{} of the bytes that were read are of the history store, which keeps old versions of documents (trace).",
            percent(share)
        )
    })
}

fn judge(evidence: &Evidence<'_>, users: &[DeviceUser]) -> Option<Finding> {
    let [reads, writes] = [false, true].map(|writes| Bytes::of(users, writes));
    let (read, written) = (reads.of_history, writes.of_history);
    let share = (read + written) / (reads.of_all + writes.of_all).max(1.0);
    if share < SHARE_MIN || read + written < BYTES_PER_S_MIN {
        return None;
    }
    let held = HeldOpen::of(evidence);
    let window = WINDOWS.into_iter().find_map(|name| {
        let value = evidence.examined()?.parameter(name)?;
        Some((name, value))
    });
    let window_in_words = window.map_or(String::new(), |(name, value)| {
        format!(" ({name} is {value})")
    });
    let mut sentences = vec![format!(
        "An update leaves the version before it there for as long as an open transaction, a secondary that is behind, \
         or a reader of snapshots may want it{window_in_words}; where the same documents are updated often, much of that \
         goes there in any case."
    )];
    sentences.extend(held.map(|held| {
        format!(
            "A transaction whose client did nothing was open for {}: what was changed since it began cannot be removed \
             (currentOp).",
            duration(held.oldest_s)
        )
    }));
    sentences.extend(
        evidence
            .status_rate(&[VERSIONS])
            .map(|per_s| format!("{per_s:.0} versions per second were put there (serverStatus).")),
    );
    let command = match (held, window) {
        (Some(_), _) => mongosh(evidence.uri(), OPEN_TRANSACTIONS),
        (None, Some((name, _))) => {
            let script = format!("db.adminCommand({{getParameter: 1, {name}: 1}})");
            mongosh(evidence.uri(), &script)
        }
        (None, None) => String::new(),
    };
    Some(Finding {
        id: "history-store.busy".into(),
        title: format!(
            "Old versions of documents are {} of what the server reads and writes: {}/s are read from the history store, and \
             {}/s written to it",
            percent(share),
            format_bytes(whole(read)),
            format_bytes(whole(written))
        ),
        evidence: sentences,
        confidence: confidence(evidence),
        risk: "Ending somebody's transaction undoes what it has written; a shorter window fails those who read older \
               snapshots."
            .into(),
        command,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Call, Recording, shuffled};

    /// One collection and the history store are read, with this many pages of each.
    fn reading(of_collection: u32, of_history: u32) -> Recording {
        let mut recording = Recording::new();
        let tid = recording.thread("Evictio.Server");
        let files = [
            (FileRole::Collection, "collection-7.wt", of_collection),
            (FileRole::HistoryStore, "WiredTigerHS.wt", of_history),
        ];
        for (role, name, pages) in files {
            let file_id = recording.file(name, role, None);
            for (i, place) in shuffled(pages).into_iter().enumerate() {
                recording.miss(Call {
                    tid,
                    file_id,
                    at_s: i as f64 * 0.005,
                    offset: u64::from(place) * 32_768,
                    bytes: 32_768,
                    latency_s: 0.001,
                });
            }
        }
        recording
    }

    #[test]
    fn ill() {
        let mut recording = reading(2_000, 8_000);
        recording.rising(VERSIONS, 5_000.0);
        recording
            .examined()
            .parameters
            .push(seekscope_run::NamedValue {
                name: WINDOWS[1].into(),
                value: "5".into(),
            });
        let found = recording.findings(&DETECTOR).remove(0);
        let title = "Old versions of documents are 80 % of what the server reads and writes: 4.";
        assert!(found.title.starts_with(title), "{found:?}");
        assert!(
            found.command.contains("maxTargetSnapshotHistoryWindow"),
            "{found:?}"
        );
        recording.hold_transaction_open(45);
        let found = recording.findings(&DETECTOR).remove(0);
        assert!(found.command.contains("idleSessions"), "{found:?}");
        assert!(found.evidence[1].contains("open for 45"), "{found:?}");
        assert!(found.evidence[2].starts_with("5000 versions"), "{found:?}");
    }

    #[test]
    fn healthy() {
        assert_eq!(
            reading(8_000, 1_000).findings(&DETECTOR),
            [],
            "a small share"
        );
        assert_eq!(
            reading(10, 1_000).findings(&DETECTOR),
            [],
            "hardly anything"
        );
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
