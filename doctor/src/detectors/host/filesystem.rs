//! `filesystem.unfit`: the data is on a filesystem, device or mount that hurts a database.

use seekscope_run::{Distortion, Finding};

use super::Detector;
use crate::wording::shell_quoted;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["filesystem.unfit"],
    detect,
};

/// The distortions in the surroundings that are the filesystem's and hurt a database by themselves; ext4 is
/// reported among the host's settings.
const UNFIT: [&str; 9] = [
    "tmpfs",
    "overlay",
    "network-filesystem",
    "copy-on-write",
    "barriers-off",
    "synchronous-mount",
    "online-discard",
    "access-times",
    "loop-device",
];

/// Returns a command that shows how the data's filesystem is mounted.
fn command(evidence: &Evidence<'_>) -> String {
    let path = evidence.device().map_or(".", |device| &device.path);
    let path = shell_quoted(path);
    format!("findmnt -o TARGET,SOURCE,FSTYPE,OPTIONS --target {path}")
}

/// Problems among them that only cost something now and then.
const MILD: [&str; 3] = ["online-discard", "access-times", "loop-device"];

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let Some(host) = evidence.host_settings() else {
        return Vec::new();
    };
    let distortions = host.surroundings.distortions.iter();
    let (mild, grave): (Vec<&Distortion>, Vec<&Distortion>) = distortions
        .filter(|distortion| UNFIT.contains(&distortion.id.as_str()))
        .partition(|distortion| MILD.contains(&distortion.id.as_str()));
    let mut found: Vec<Finding> = grave.into_iter().map(of_one).collect();
    found.extend(of_mild(&mild));
    for finding in &mut found {
        finding.command = command(evidence);
    }
    found
}

fn of_one(distortion: &Distortion) -> Finding {
    Finding {
        id: "filesystem.unfit".into(),
        subject: distortion.id.clone(),
        title: format!(
            "The data's filesystem does not suit a database: {}",
            distortion.what
        ),
        evidence: evidence_of(distortion),
        confidence: "medium".into(),
        risk: "Data has to be moved, or its filesystem mounted anew: try it on a secondary.".into(),
        ..Finding::default()
    }
}

/// Combines everything that costs something now and then into one finding: most hosts have some of it.
fn of_mild(distortions: &[&Distortion]) -> Option<Finding> {
    let what: Vec<&str> = distortions.iter().map(|d| d.what.as_str()).collect();
    (!what.is_empty()).then(|| Finding {
        id: "filesystem.unfit".into(),
        title: format!(
            "Mounting the data differently would save a little: {}",
            what.join("; ")
        ),
        // The title says what was seen.
        evidence: distortions
            .iter()
            .map(|of| format!("{} {}", of.consequence, of.remedy))
            .collect(),
        confidence: "low".into(),
        risk: "A filesystem is mounted anew for it: try it on a secondary.".into(),
        ..Finding::default()
    })
}

fn evidence_of(distortion: &Distortion) -> Vec<String> {
    vec![
        format!("{} (host's mounts and settings).", distortion.what),
        distortion.consequence.clone(),
        distortion.remedy.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn distortion(id: &str) -> Distortion {
        Distortion {
            id: id.into(),
            what: "/data is on overlay".into(),
            consequence: "The first write copies the file.".into(),
            remedy: "Use a volume.".into(),
        }
    }

    #[test]
    fn ill() {
        let mut recording = Recording::new();
        recording.host().surroundings.distortions = vec![distortion("overlay")];
        let found = recording.findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert!(found[0].title.contains("/data is on overlay"));
        let command = &found[0].command;
        assert!(command.ends_with(" --target /var/lib/mongodb"), "{command}");
    }

    #[test]
    fn what_costs_little_is_one_finding() {
        let mut recording = Recording::new();
        recording.host().surroundings.distortions =
            vec![distortion("access-times"), distortion("online-discard")];
        let found = recording.findings(&DETECTOR);
        assert_eq!((found.len(), found[0].confidence.as_str()), (1, "low"));
        let title = "Mounting the data differently would save a little: /data is on overlay";
        assert!(found[0].title.starts_with(title), "{found:?}");
        let evidence = "The first write copies the file. Use a volume.";
        assert_eq!(found[0].evidence, [evidence, evidence]);
        assert!(crate::ranking::is_boilerplate(&found[0]));
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        // This one is about measuring, not about the database.
        recording.host().surroundings.distortions = vec![distortion("write-cache")];
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
