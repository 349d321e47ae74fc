//! Reports indexes that were built while the server was watched, or for it: how long each took, and how long
//! the same index took on another collection of the same disk.

use schemars::JsonSchema;
use seekscope_run::{CacheState, Phase};
use seekscope_stats::{PairedRatio, median, paired_ratio};
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::wording::duration;

/// An index build on one disk, with its repetitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexBuildAnswer {
    pub namespace: String,
    /// The key pattern as JSON text.
    pub keys: String,
    pub documents: u64,
    /// The disk, as a text such as "plain disk" ([`seekscope_run::Disk::label`]).
    pub disk: String,
    /// True if reads were throttled by the kernel: the figures are not those of this disk.
    pub emulated: bool,
    /// How much of the data files was cached before the first build.
    pub page_cache_before: Option<CacheState>,
    /// Time from command to reply, one per build, s.
    #[schemars(length(min = 1), inner(range(min = 0)))]
    pub build_s: Vec<f64>,
    /// Comparison with the first collection with as many documents on which the same index was built on this
    /// disk; null for that collection itself, and if there is none.
    pub against: Option<AgainstBuild>,
}

/// How an index build compares with the same build on another collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstBuild {
    pub namespace: String,
    /// Median of the other collection's builds, s.
    pub build_s: f64,
    /// This build's time as a multiple of the other's, over the pairs, with a 95 % bootstrap interval.
    pub ratio: PairedRatio,
}

impl IndexBuildAnswer {
    /// Returns the median over the builds, s.
    pub fn median_s(&self) -> f64 {
        median(&self.build_s).unwrap_or(0.0)
    }

    /// Returns a sentence on the builds, with both figures where there is a comparison.
    pub fn sentence(&self) -> String {
        let built = format!(
            "On the {} the index {} took {} on {}",
            self.disk,
            self.keys,
            duration(self.median_s()),
            self.namespace
        );
        let Some(against) = &self.against else {
            return format!("{built}.");
        };
        let ratio = &against.ratio;
        let sure = match ratio.pairs {
            1 => "one pair, so without an interval".to_string(),
            pairs => format!("{pairs} pairs, {:.1} to {:.1}", ratio.low, ratio.high),
        };
        format!(
            "{built} and {} on {}, {:.1} times as long ({sure}).",
            duration(against.build_s),
            against.namespace,
            ratio.median
        )
    }
}

pub(super) fn index_builds(evidence: &Evidence<'_>) -> Vec<IndexBuildAnswer> {
    let mut answers: Vec<IndexBuildAnswer> = Vec::new();
    for answer in evidence.document.phases.iter().filter_map(of_phase) {
        let same = |other: &&IndexBuildAnswer| {
            other.disk == answer.disk
                && other.keys == answer.keys
                && other.documents == answer.documents
                && other.against.is_none()
        };
        let against = answers.iter().find(same).and_then(|base| {
            let pairs = base
                .build_s
                .iter()
                .copied()
                .zip(answer.build_s.iter().copied());
            Some(AgainstBuild {
                namespace: base.namespace.clone(),
                build_s: base.median_s(),
                ratio: paired_ratio(&pairs.collect::<Vec<_>>(), 1)?,
            })
        });
        answers.push(IndexBuildAnswer { against, ..answer });
    }
    answers
}

fn of_phase(phase: &Phase) -> Option<IndexBuildAnswer> {
    let build = phase.index_build.as_ref()?;
    Some(IndexBuildAnswer {
        namespace: phase.namespace.clone().unwrap_or_default(),
        keys: build.keys.clone(),
        documents: build.documents,
        disk: phase.disk.label(),
        emulated: phase.disk.is_emulated(),
        page_cache_before: Some(phase.cache.clone()),
        build_s: build.all_elapsed_ns().map(|ns| ns as f64 / 1e9).collect(),
        against: None,
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{Disk, IndexBuild};

    use super::*;
    use crate::testing::Recording;

    fn build(namespace: &str, disk: &Disk, seconds: &[u64], documents: u64) -> Phase {
        let ns: Vec<u64> = seconds.iter().map(|s| s * 1_000_000_000).collect();
        Phase {
            namespace: Some(namespace.into()),
            disk: disk.clone(),
            index_build: Some(IndexBuild {
                keys: r#"{"i":1}"#.into(),
                name: "i_1".into(),
                documents,
                elapsed_ns: ns[0],
                repeats_ns: ns[1..].to_vec(),
            }),
            ..Recording::new().document.phases[0].clone()
        }
    }

    #[test]
    fn a_build_is_set_against_the_first_on_its_disk() {
        let slow = Disk::Emulated {
            name: "hdd".into(),
            read_iops: 150,
            read_bytes_per_s: 150_000_000,
        };
        let mut recording = Recording::new();
        recording.document.phases.extend([
            build("sdu.fresh", &slow, &[2, 2], 1000),
            build("sdu.aged", &slow, &[20, 24], 1000),
            build("sdu.fresh", &Disk::Plain, &[1], 1000),
            build("sdu.aged", &Disk::Plain, &[1], 1000),
            build("sdu.small", &Disk::Plain, &[1], 10),
        ]);
        let answers = recording.examine(|evidence, _| index_builds(evidence));
        let sentences: Vec<String> = answers.iter().map(IndexBuildAnswer::sentence).collect();
        assert_eq!(
            sentences,
            [
                r#"On the emulated hdd (150 IOPS, 150 MB/s) the index {"i":1} took 2.00 s on sdu.fresh."#,
                r#"On the emulated hdd (150 IOPS, 150 MB/s) the index {"i":1} took 22.0 s on sdu.aged and 2.00 s on sdu.fresh, 11.0 times as long (2 pairs, 10.0 to 12.0)."#,
                r#"On the plain disk the index {"i":1} took 1.00 s on sdu.fresh."#,
                r#"On the plain disk the index {"i":1} took 1.00 s on sdu.aged and 1.00 s on sdu.fresh, 1.0 times as long (one pair, so without an interval)."#,
                r#"On the plain disk the index {"i":1} took 1.00 s on sdu.small."#,
            ]
        );
    }
}
