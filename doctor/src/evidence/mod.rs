//! Everything known of a run, arranged for queries.

pub(crate) mod ability;
mod counters;
pub(crate) mod cpu;
pub(crate) mod held_back;
pub(crate) mod read_ahead;
mod scanning;
pub(crate) mod waiting;

pub(crate) use counters::Named;
pub use counters::{CHECKPOINT_LAST_MS, CHECKPOINT_STATE, Counters, Series};
pub use scanning::Scanning;
pub(crate) use scanning::is_job;

use seekscope_pattern::{DeviceUse, TraceAnalysis};
use seekscope_run::{
    DeviceFacts, DeviceModel, DiskAbility, ExaminationRecord, HostSettings, IndexBuild, LayoutFile,
    MemberRecord, MemberState, Phase, RunDocument, shell_quoted,
};

use crate::wording::{SOME_PRIMARY, SOME_ROUTER};

/// The option that makes a server a part of a sharded cluster, and its value for a shard.
const CLUSTER_ROLE: &str = "sharding.clusterRole";
const SHARD: &str = "shardsvr";
/// The source of the examined server's own counters.
pub const COUNTERS: &str = "serverStatus";
/// A sample or two may still follow a phase that was not ended early, ns.
const OUTLAST_NS: u64 = 5_000_000_000;

/// The evidence of a run. What was not measured is `None` or empty, and detectors that need it stay silent.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub document: &'a RunDocument,
    /// Analysis of `io.parquet`.
    pub trace: Option<&'a TraceAnalysis>,
    /// Who used the disk, second by second, and each checkpoint, from a second pass over the events.
    pub device_use: Option<&'a DeviceUse>,
    /// Counters from `server.parquet`.
    pub counters: &'a Counters,
}

impl<'a> Evidence<'a> {
    /// Returns what was gathered beside trace and counters.
    pub fn examination(&self) -> Option<&'a ExaminationRecord> {
        self.document.examination.as_ref()
    }

    /// Returns the examined server.
    pub fn examined(&self) -> Option<&'a MemberRecord> {
        self.examination()?.examined()
    }

    pub fn host_settings(&self) -> Option<&'a HostSettings> {
        self.examination()?.host.as_ref()
    }

    /// Returns what the disk does for the server ([`crate::disk_opinion`]), and whether that was measured.
    pub fn model(&self) -> Option<(&'a DeviceModel, bool)> {
        let disk = self.ability()?;
        Some((&disk.model, disk.measured))
    }

    /// Returns [`Self::model`] with its basis.
    pub fn ability(&self) -> Option<&'a DiskAbility> {
        let examination = self.examination()?;
        let opinion = examination.disk_opinion.as_ref();
        opinion.or(examination.disk.as_ref())
    }

    /// Returns what such a disk should do, without the limits on the server: measured, else typical.
    pub fn expected(&self) -> Option<&'a DiskAbility> {
        self.examination()?.disk.as_ref()
    }

    /// Returns [`Self::model`] without the limits of the server's control group: what all processes together
    /// can get from the disk, and what a request takes that nothing holds back before it.
    pub(crate) fn disk_beyond_limits(&self) -> Option<DeviceModel> {
        let (model, measured) = self.model()?;
        let found = self.expected().filter(|_| measured);
        Some(DeviceModel {
            iops_bucket: found.and_then(|disk| disk.model.iops_bucket),
            bytes_bucket: found.and_then(|disk| disk.model.bytes_bucket),
            ..model.clone()
        })
    }

    pub fn device(&self) -> Option<&'a DeviceFacts> {
        self.document.device.as_ref()
    }

    /// Returns the mean size of the leaf pages that were seen, bytes; `None` if no file was walked.
    pub(crate) fn leaf_bytes(&self) -> Option<f64> {
        let files = self.layout_files().iter();
        let (pages, bytes) = files.fold((0, 0), |(pages, bytes): (u64, u64), file| {
            (pages + file.leaf_pages, bytes + file.leaf_bytes)
        });
        (pages > 0).then(|| bytes as f64 / pages as f64)
    }

    /// Returns the files whose leaves were walked, the most to gain first.
    pub fn layout_files(&self) -> &'a [LayoutFile] {
        self.document.layout.as_ref().map_or(&[], |l| &l.files)
    }

    /// Returns how much of the watch the server's log of slow operations covers, s; `None` if it was not read.
    pub(crate) fn slow_log_s(&self) -> Option<f64> {
        let covered_s = self.examined()?.slow_log_s;
        covered_s.filter(|covered_s| *covered_s > 0.0)
    }

    /// Returns the length of the observation, s; `None` when nothing was observed. Index builds have phases
    /// of their own within it, or after it.
    pub fn observed_s(&self) -> Option<f64> {
        let phases = &self.document.phases;
        let whole = phases.iter().find(|phase| phase.index_build.is_none());
        // Runs of older versions have a trace for each build, and nothing else was observed.
        let observed = whole.map_or(&phases[..], std::slice::from_ref);
        let ns: u64 = observed.iter().map(Phase::duration_ns).sum();
        (ns > 0).then(|| ns as f64 / 1e9)
    }

    /// Returns an index that this run itself built on the collection.
    pub(crate) fn index_built_on(&self, namespace: &str) -> Option<&'a IndexBuild> {
        let mut phases = self.document.phases.iter();
        phases.find_map(|phase| {
            let build = phase.index_build.as_ref()?;
            (phase.namespace.as_deref() == Some(namespace)).then_some(build)
        })
    }

    /// Returns the length of time that the server's counters cover, s; more than [`Self::observed_s`] where
    /// tracing was ended early, which ends the phase: counters continue. Without counters it is the same.
    pub fn counted_s(&self) -> Option<f64> {
        let series = self.counters.beginning(COUNTERS, "");
        let longest = series
            .map(|(_, series)| series.span_s())
            .max_by(f64::total_cmp);
        longest.filter(|s| *s > 0.0).or_else(|| self.observed_s())
    }

    /// Returns whether anything was seen of what the server does: its counters, or its calls.
    pub fn sees_server(&self) -> bool {
        self.trace.is_some() || self.counters.beginning(COUNTERS, "").next().is_some()
    }

    /// Returns whether tracing was ended early, while the counters were still sampled.
    pub(crate) fn counters_outlast_trace(&self) -> bool {
        let ends = self.counters.beginning(COUNTERS, "");
        let ends = ends.filter_map(|(_, series)| series.points.last());
        let last_ns = ends.map(|(t_ns, _)| *t_ns).max();
        let phase = self.document.phases.first();
        phase
            .zip(last_ns)
            .is_some_and(|(phase, last_ns)| last_ns > phase.ended_ns.saturating_add(OUTLAST_NS))
    }

    /// Returns the command that puts a collection in order; `None` where `reorder` refuses it: behind a router the
    /// collection may be sharded, and on a shard its cluster would not learn of the new one. What a secondary holds is put
    /// in order at the primary.
    pub(crate) fn reorder(&self, namespace: &str) -> Option<String> {
        let target = self.document.target.as_ref();
        let is_routed = target.is_some_and(|target| !target.shards.is_empty());
        if is_routed || self.is_of_shard() {
            return None;
        }
        let uri = self.uri_of_primary()?;
        let [uri, namespace] = [uri.as_str(), namespace].map(shell_quoted);
        Some(format!("seekscope reorder {uri} {namespace}"))
    }

    /// Returns whether the examined server is a shard of a cluster.
    fn is_of_shard(&self) -> bool {
        self.members().first().is_some_and(|own| {
            let mut roles = own.options.iter().filter(|o| o.name == CLUSTER_ROLE);
            own.shard.is_some() || roles.any(|role| role.value.contains(SHARD))
        })
    }

    fn members(&self) -> &'a [MemberRecord] {
        self.examination().map_or(&[][..], |e| &e.members)
    }

    /// Returns the connection string of the server itself or, of a secondary, that of its primary, if that is known.
    fn uri_of_primary(&self) -> Option<String> {
        match self.members().first().map(|own| own.state) {
            Some(MemberState::Secondary) => {
                let is_primary = |member: &&MemberRecord| member.state == MemberState::Primary;
                let primary = self.members().iter().find(is_primary)?;
                Some(format!("mongodb://{}/", primary.name))
            }
            _ => Some(self.uri().into()),
        }
    }

    /// Returns the connection string for commands that create an index: a secondary takes none, and a shard's index
    /// is made through a router. Placeholders stand for servers that are not known.
    pub(crate) fn uri_for_writes(&self) -> String {
        match self.is_of_shard() {
            true => SOME_ROUTER.into(),
            false => self.uri_of_primary().unwrap_or_else(|| SOME_PRIMARY.into()),
        }
    }

    /// Returns the connection string for suggested commands, without credentials; a placeholder where the
    /// server is not known, or was a private one that no longer exists.
    pub fn uri(&self) -> &'a str {
        let target = self.document.target.as_ref().filter(|t| !t.local);
        target.map_or("URI", |t| &t.uri)
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{NamedValue, TargetFacts};

    use super::*;
    use crate::testing::{Recording, START_NS};

    #[test]
    fn counters_go_on_when_tracing_ends_early() {
        let mut recording = Recording::new();
        let look = |recording: &Recording| {
            recording.examine(|evidence, _| {
                (
                    evidence.observed_s(),
                    evidence.counted_s(),
                    evidence.counters_outlast_trace(),
                )
            })
        };
        recording.document.phases[0].ended_ns = START_NS + 8_000_000_000;
        assert_eq!(look(&recording), (Some(8.0), Some(8.0), false));
        recording.rising("opcounters.query", 1.0);
        assert_eq!(look(&recording), (Some(8.0), Some(60.0), true));
        recording.document.phases[0].ended_ns = START_NS + 59_000_000_000;
        assert_eq!(look(&recording), (Some(59.0), Some(60.0), false));
    }

    #[test]
    fn the_order_is_restored_where_the_server_takes_it() {
        let mut recording = Recording::new();
        recording.document.target = Some(TargetFacts {
            uri: "mongodb://a:1/".into(),
            ..TargetFacts::default()
        });
        let own = |state, options: &[(&str, &str)]| MemberRecord {
            name: "a:1".into(),
            state,
            options: options
                .iter()
                .map(|(name, value)| NamedValue {
                    name: (*name).into(),
                    value: (*value).into(),
                })
                .collect(),
            ..MemberRecord::default()
        };
        let primary = MemberRecord {
            name: "b:2".into(),
            ..own(MemberState::Primary, &[])
        };
        let mut told = |members: Vec<MemberRecord>| {
            recording.document.examination = Some(ExaminationRecord {
                members,
                ..ExaminationRecord::default()
            });
            recording.examine(|evidence, _| evidence.reorder("shop.orders"))
        };
        let at = |uri: &str| Some(format!("seekscope reorder {uri} shop.orders"));
        assert_eq!(
            told(vec![own(MemberState::Standalone, &[])]),
            at("mongodb://a:1/")
        );
        let secondary = own(MemberState::Secondary, &[]);
        assert_eq!(
            told(vec![secondary.clone(), primary.clone()]),
            at("mongodb://b:2/")
        );
        assert_eq!(told(vec![secondary]), None);
        let shard = own(
            MemberState::Primary,
            &[("sharding.clusterRole", "shardsvr")],
        );
        assert_eq!(told(vec![shard]), None);
    }
}
