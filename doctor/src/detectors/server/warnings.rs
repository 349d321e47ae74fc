//! `server.warnings`: warnings of the server itself at its start, as far as they concern the disk.

use seekscope_run::Finding;

use super::Detector;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["server.warnings"],
    detect,
};

/// Words of warnings about filesystem, memory and limits. The others are about who may connect.
const WORDS: [&str; 14] = [
    "readahead",
    "read-ahead",
    "xfs",
    "filesystem",
    "file system",
    "hugepage",
    "huge page",
    "numa",
    "swappiness",
    "rlimit",
    "ulimit",
    "max_map_count",
    "file descriptors",
    "journal",
];
/// A longer warning is cut: it comes from a server.
const LENGTH_MAX: usize = 300;

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let all = evidence.examined().map_or(&[][..], |m| &m.warnings);
    let about_disks = all.iter().filter(|warning| {
        let warning = warning.to_lowercase();
        WORDS.iter().any(|word| warning.contains(word))
    });
    let sentences: Vec<String> = about_disks
        .map(|warning| {
            let cut: String = warning.chars().take(LENGTH_MAX).collect();
            format!("\"{}\" (the server's log).", cut.trim())
        })
        .collect();
    if sentences.is_empty() {
        return Vec::new();
    }
    let title = match sentences.len() {
        1 => "The server warned of a setting of its host when it started".into(),
        count => format!("The server warned of {count} settings of its host when it started"),
    };
    vec![Finding {
        id: "server.warnings".into(),
        title,
        evidence: sentences,
        confidence: "low".into(),
        risk: String::new(),
        command: mongosh(
            evidence.uri(),
            "db.adminCommand({getLog: \"startupWarnings\"}).log",
        ),
        ..Finding::default()
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.examined().warnings = vec![
            "Readahead for /var/lib/mongodb is set to 4096KB".into(),
            "Access control is not enabled for the database.".into(),
        ];
        let found = recording.findings(&DETECTOR);
        assert_eq!(found[0].evidence.len(), 1);
        assert!(found[0].evidence[0].contains("4096KB"));
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        recording.examined().warnings = vec!["Access control is not enabled".into()];
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
