//! `query.spills`: sorts and groups of queries do not fit into memory and go through temporary files.
//!
//! mongod writes these as `_tmp/extsort-…` below its data directory, where `allowDiskUse` permits it. Index builds sort
//! through files of such names, too (`extsort-index…`), which is as it should be.

use std::collections::HashSet;

use seekscope_run::units::{format_bytes, format_count, whole};
use seekscope_run::{Finding, SORT_FILES, TEMPORARY_FOLDER};

use super::Detector;
use crate::answers::DeviceUser;
use crate::wording::{duration, mongosh};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["query.spills"],
    detect,
};

/// Bytes per second through such files; less is somebody's report.
const BYTES_PER_S_MIN: f64 = 1e6;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let users = answers.device_users.iter();
    let spilling: Vec<&DeviceUser> = users.filter(|user| is_spill(&user.path)).collect();
    let sum = |of: fn(&DeviceUser) -> f64, writes: bool| -> f64 {
        let users = spilling.iter().filter(|user| user.writes == writes);
        users.map(|user| of(user)).sum()
    };
    let written = sum(|user| user.bytes_per_s, true);
    if written < BYTES_PER_S_MIN {
        return Vec::new();
    }
    let read = sum(|user| user.bytes_per_s, false);
    let waiting_s = |writes| sum(|user| user.waiting_s_per_s, writes) * 3600.0;
    let waited_s = waiting_s(true) + waiting_s(false);
    let files: HashSet<&str> = spilling.iter().map(|user| user.path.as_str()).collect();
    let per_s = |bytes: f64| format!("{}/s", format_bytes(whole(bytes)));
    vec![Finding {
        id: "query.spills".into(),
        title: format!(
            "Sorts or groups of queries do not fit into memory: they write {} to temporary files",
            per_s(written)
        ),
        evidence: vec![
            format!(
                "{} temporary files of sorts (_tmp/extsort-…) were written at {} and read at {}; threads waited {} per \
                 hour for that (trace).",
                format_count(files.len() as u64),
                per_s(written),
                per_s(read),
                duration(waited_s)
            ),
            "A stage of a query that needs more than 100 MB goes on in files where allowDiskUse permits it. An index in \
             the order of the sort, a $match or $limit before it, or fewer fields ($project) spare them."
                .into(),
        ],
        saves_s_per_hour: Some(waited_s),
        confidence: "medium".into(),
        risk: "Each further index costs every write, and its build reads the collection once.".into(),
        command: mongosh(
            evidence.uri(),
            "db.currentOp({\"command.pipeline\": {$exists: true}})",
        ),
        ..Finding::default()
    }]
}

/// Returns whether it is a temporary file of a query, by its path.
fn is_spill(path: &str) -> bool {
    let mut names = path.rsplit('/');
    let name = names.next().unwrap_or_default();
    names.next() == Some(TEMPORARY_FOLDER)
        && name.starts_with(SORT_FILES)
        && !name.contains("index")
}

#[cfg(test)]
mod tests {
    use seekscope_run::FileRole;

    use super::*;
    use crate::testing::{Call, Recording};

    fn writing(name: &str, bytes: u32) -> Recording {
        let mut recording = Recording::new();
        let file_id = recording.file(name, FileRole::Other, None);
        let tid = recording.thread("conn1");
        for second in 0..50_u32 {
            recording.write(Call {
                tid,
                file_id,
                at_s: f64::from(second),
                offset: u64::from(second) * u64::from(bytes),
                bytes,
                latency_s: 0.05,
            });
        }
        recording
    }

    #[test]
    fn ill() {
        let found = writing("_tmp/extsort-sort-executor.3", 8 << 20).findings(&DETECTOR);
        assert!(found[0].title.contains("MiB/s"), "{found:?}");
        assert!(found[0].saves_s_per_hour.unwrap() > 100.0, "{found:?}");
    }

    #[test]
    fn healthy() {
        for (name, bytes) in [
            ("_tmp/extsort-index.3", 8 << 20),
            ("_tmp/extsort-sort-executor.3", 1 << 10),
            ("collection-7.wt", 8 << 20),
        ] {
            assert_eq!(writing(name, bytes).findings(&DETECTOR), [], "{name}");
        }
    }
}
