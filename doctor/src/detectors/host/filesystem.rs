//! `filesystem.unfit`: the data lies on something that hurts a database, or is mounted so.

use seekscope_run::Finding;

use super::Detector;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["filesystem.unfit"],
    detect,
};

/// Of the distortions that surroundings name, those that are the filesystem's and hurt a database by
/// themselves; ext4 is told among the host's settings.
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

/// Of these, what costs something now and then.
const MILD: [&str; 3] = ["online-discard", "access-times", "loop-device"];

fn detect(evidence: &Evidence<'_>, _answers: &Answers) -> Vec<Finding> {
    let Some(host) = evidence.host_settings() else {
        return Vec::new();
    };
    let distortions = host.surroundings.distortions.iter();
    distortions
        .filter(|distortion| UNFIT.contains(&distortion.id.as_str()))
        .map(|distortion| Finding {
            id: "filesystem.unfit".into(),
            subject: distortion.id.clone(),
            title: format!(
                "The data's filesystem does not suit a database: {}",
                distortion.what
            ),
            evidence: vec![
                format!("{} (host's mounts and settings).", distortion.what),
                distortion.consequence.clone(),
                distortion.remedy.clone(),
            ],
            confidence: if MILD.contains(&distortion.id.as_str()) {
                "low"
            } else {
                "medium"
            }
            .into(),
            risk: "Data has to be moved, or its filesystem mounted anew: try it on a secondary."
                .into(),
            command: "findmnt -o TARGET,SOURCE,FSTYPE,OPTIONS".into(),
            ..Finding::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use seekscope_run::Distortion;

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
    }

    #[test]
    fn healthy() {
        let mut recording = Recording::new();
        assert_eq!(recording.findings(&DETECTOR), []);
        // Says something about measuring, not about the database.
        recording.host().surroundings.distortions = vec![distortion("write-cache")];
        assert_eq!(recording.findings(&DETECTOR), []);
    }
}
