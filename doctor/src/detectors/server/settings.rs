//! `server.old-settings`: options and versions that newer releases no longer have or advise against.

use seekscope_run::{Finding, MemberRecord};

use super::Detector;
use crate::answers::mongod_version;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["server.old-settings"],
    detect,
};

/// Releases before this one no longer get fixes (MongoDB's lifecycle schedules: 6.0 ended in July 2025, 7.0 ends
/// in August 2027).
const SUPPORTED_FROM: u32 = 7;

/// An option with a harmful value, and why it is harmful.
struct OldOption {
    name: &'static str,
    hurts: fn(&str) -> bool,
    why: &'static str,
}

const OLD_OPTIONS: [OldOption; 4] = [
    OldOption {
        name: "storage.engine",
        hurts: |value| value == "mmapv1",
        why: "it locks whole collections and leaves reading and writing to the page cache; removed in 4.2",
    },
    OldOption {
        name: "storage.journal.enabled",
        hurts: |value| value == "false",
        why: "a crash loses up to a minute of writes; not possible for replica sets since 4.0",
    },
    OldOption {
        name: "storage.syncPeriodSecs",
        hurts: |value| value.parse::<f64>().is_ok_and(|s| s == 0.0 || s > 300.0),
        why: "data collects between checkpoints, so each is long, and at 0 there are none at all",
    },
    OldOption {
        name: "storage.journal.commitIntervalMs",
        hurts: |value| value.parse::<f64>().is_ok_and(|ms| ms < 10.0),
        why: "the journal is synced far more often than writes ask for",
    },
];

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let Some(member) = evidence.examined() else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = OLD_OPTIONS
        .iter()
        .filter_map(|option| {
            let value = member
                .option(option.name)
                .filter(|value| (option.hurts)(value))?;
            Some((
                format!(
                    "{} is {value}, which is out of date and does harm",
                    option.name
                ),
                format!(
                    "{} is {value}: {} (getCmdLineOpts).",
                    option.name, option.why
                ),
            ))
        })
        .collect();
    let has_options = !found.is_empty();
    found.extend(release(evidence, member));
    let compatibility = compatibility(evidence, member);
    let risks = [
        has_options.then_some(
            "Options take effect after a restart: of a replica set, restart a secondary first.",
        ),
        compatibility
            .as_ref()
            .map(|_| "A higher compatibility version cannot be taken back everywhere."),
    ];
    found.extend(compatibility);
    let title = match found.as_slice() {
        [] => return Vec::new(),
        [(title, _)] => title.clone(),
        several => format!(
            "The server runs with {} settings or versions that are out of date",
            several.len()
        ),
    };
    let sentences = found.into_iter().map(|(_, sentence)| sentence).collect();
    vec![Finding {
        id: "server.old-settings".into(),
        title,
        evidence: sentences,
        confidence: "medium".into(),
        risk: risks.into_iter().flatten().collect::<Vec<_>>().join(" "),
        command: match has_options {
            true => mongosh(
                evidence.uri(),
                "db.adminCommand({getCmdLineOpts: 1}).parsed",
            ),
            false => String::new(),
        },
        ..Finding::default()
    }]
}

/// Returns a title and a sentence where the release is no longer supported.
fn release(evidence: &Evidence<'_>, member: &MemberRecord) -> Option<(String, String)> {
    mongod_version(evidence).filter(|version| *version < SUPPORTED_FROM)?;
    let version = &member.target.version;
    Some((
        format!("MongoDB {version} is no longer supported"),
        format!(
            "MongoDB {version} is of the {} series, which gets no fixes any more; an upgrade goes from each series to \
             the next (buildInfo).",
            series(version)
        ),
    ))
}

/// Returns a title and a sentence where the server does less than its release can.
fn compatibility(evidence: &Evidence<'_>, member: &MemberRecord) -> Option<(String, String)> {
    mongod_version(evidence)?;
    let has = member.compatibility_version.as_deref()?;
    let release = series(&member.target.version);
    (has != release).then(|| {
        let told = format!("The feature compatibility version is {has} on MongoDB {release}");
        let sentence = format!("{told} (getParameter).");
        (told, sentence)
    })
}

/// Returns the first two numbers of a version: those of one series differ in mended errors only.
fn series(version: &str) -> String {
    let numbers: Vec<&str> = version.split('.').take(2).collect();
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use seekscope_run::NamedValue;

    use super::*;
    use crate::testing::Recording;

    fn with_option(name: &str, value: &str) -> Recording {
        let mut recording = Recording::new();
        recording.examined().options.push(NamedValue {
            name: name.into(),
            value: value.into(),
        });
        recording
    }

    #[test]
    fn ill() {
        let mut recording = with_option("storage.journal.enabled", "false");
        assert_eq!(recording.findings(&DETECTOR).len(), 1);
        recording.examined().target.version = "4.2.2".into();
        recording.examined().compatibility_version = Some("4.0".into());
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "The server runs with 3 settings or versions that are out of date"
        );
        // No option is named, so none is asked for.
        recording.examined().options.clear();
        recording.examined().compatibility_version = Some("4.2".into());
        let found = recording.findings(&DETECTOR);
        assert_eq!(
            (found[0].risk.as_str(), found[0].command.as_str()),
            ("", "")
        );
        assert_eq!(found[0].title, "MongoDB 4.2.2 is no longer supported");
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        let mut recording = with_option("storage.syncPeriodSecs", "60");
        recording.examined().compatibility_version = Some("7.0".into());
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
