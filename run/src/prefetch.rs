//! What `seekscope prefetch` did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the progress of the scan was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchPace {
    /// Taken from the server's reads of the file.
    Traced,
    /// Taken from the number of bytes that the server has read from all files together.
    Counted,
    /// The scan's progress is unknown: leaves are read as fast as an engine can process what is in memory.
    #[default]
    Own,
}

/// Speed of the whole scan compared with its speed in pauses, in which it passed leaves without help.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrefetchGain {
    /// Number of pauses.
    pub slices: u64,
    pub leaves_left_out: u64,
    /// Time of the whole scan per leaf, ns.
    pub ns_per_leaf: f64,
    /// Time of the scan per leaf in the pauses, ns.
    pub ns_per_leaf_left_out: f64,
    /// How many times as fast the scan was as it would have been at the pace of the pauses throughout; `None` if
    /// too little was measured.
    pub ratio: Option<f64>,
    /// Lower bound of the 95 % interval of `ratio`.
    pub ratio_low: Option<f64>,
    /// Upper bound of the 95 % interval of `ratio`.
    pub ratio_high: Option<f64>,
}

impl PrefetchGain {
    /// Returns whether the scan was faster or slower for it, beyond chance.
    pub fn tells_apart(&self) -> bool {
        let bounds = self.ratio_low.zip(self.ratio_high);
        bounds.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// How far the scan came while it was followed, and in what time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassedScan {
    /// Bytes of the leaves that it passed.
    pub bytes: u64,
    /// Time from when the user began to wait until the scan was last seen to move, ns.
    pub elapsed_ns: u64,
    /// Whether the user began to wait when prefetch was started, as the scan is that of its command; if not, `elapsed_ns`
    /// begins when the scan was first seen.
    #[serde(default)]
    pub from_start: bool,
}

/// What one run read ahead, and the result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrefetchRecord {
    /// The file, relative to its data directory.
    pub file: String,
    /// What was asked for.
    pub named: String,
    /// The data directory.
    pub path: String,
    pub leaf_pages: u64,
    pub leaf_bytes: u64,
    pub file_bytes: u64,
    /// Bytes of the leaves that were in memory before anything was read.
    pub cached_bytes_before: u64,
    /// Memory for what is read ahead, at the end of the run, bytes.
    pub window_bytes: u64,
    /// Whether all leaves fit into this memory.
    pub fits: bool,
    /// Gaps between leaves of up to this many bytes were read through.
    pub gap_bytes: u64,
    /// Maximum number of reads in flight.
    pub depth: u32,
    /// Cost of one more request, ns: measured, or from the device model. `None` if neither is known and the disk
    /// was not tried.
    pub request_ns: Option<f64>,
    /// Rate of one long read, bytes per second: measured, or from the device model; `None` as for `request_ns`.
    pub bytes_per_s: Option<f64>,
    /// Whether at least one of these two was measured, now or for the device model; if false, they are for a
    /// typical disk, or the disk was not tried.
    pub disk_measured: bool,
    pub pace: PrefetchPace,
    /// Time spent before the scan was to begin, on walking the tree and trying the disk, ns.
    pub preparation_ns: u64,
    /// Time that the scan would take alone, predicted from what the disk costs, ns; absent where that was not known
    /// before the scan ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_predicted_ns: Option<u64>,
    /// The part of `elapsed_ns` for which the user's scan was kept waiting until its leaves were in memory, ns.
    pub scan_waited_ns: u64,
    pub elapsed_ns: u64,
    /// Ordinal of the leaf that the scan had reached, out of `leaf_pages`.
    pub position: u64,
    /// What was seen of the scan, of several the last; `None` from earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<PassedScan>,
    /// Whether the server read much from the disk while that was tried, so that what a request costs alone is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tried_beside_reads: bool,
    /// Number of reads; each covers one or several leaf pages and the gaps between them.
    pub stretches: u64,
    pub leaves_read: u64,
    /// Bytes read from the file, gaps between leaves included.
    pub bytes_read: u64,
    /// Bytes read from gaps between leaves, and released again.
    pub bridged_bytes: u64,
    /// Bytes released after the scan had passed them.
    pub released_bytes: u64,
    /// Number of rounds that reading ahead made over the file.
    pub rounds: u64,
    /// Number of reads of the file by the server; `None` without a trace.
    pub server_reads: Option<u64>,
    /// Number of these reads that had to wait for the disk.
    pub server_misses: Option<u64>,
    /// Time that the server spent in these reads, as a share of the time from the first to the last.
    pub server_read_share: Option<f64>,
    /// Number of times that reading ahead gave way to other reads of the server.
    pub gave_way: u64,
    /// 95th percentile of the time that other reads took at the end, as a multiple of that when undisturbed; `None`
    /// if there was too little to compare.
    pub others_wait: Option<f64>,
    /// Number of times that the window was made smaller because the kernel evicted pages before they were used.
    pub shrunk: u64,
    /// Number of checkpoints that moved the tree during the run.
    pub trees: u64,
    pub gain: Option<PrefetchGain>,
    /// Why reading ahead cannot help here; empty if it can.
    pub cannot_help: Vec<String>,
}

/// What one run read ahead of the copies that a member made of the collections in its initial sync.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrefetchForSync {
    /// The member that copies, `host:port`.
    pub member: String,
    /// The collections in the order in which they were copied, without those in small files.
    pub collections: Vec<PrefetchRecord>,
    /// Number of collections that were seen being copied and whose files were too small to be read ahead.
    pub small_collections: u64,
    /// Time for which the member was seen in its initial sync, ns.
    pub sync_ns: u64,
    /// Whether the initial sync was seen to end with the member as a secondary.
    pub completed: bool,
}

impl PrefetchForSync {
    /// Returns how many times as fast the copies together were as they would have been alone, as stated of each,
    /// weighted with the time it took; `None` if nothing is stated of any.
    pub fn stated_gain(&self) -> Option<f64> {
        let told = self.collections.iter().filter_map(|copy| {
            let took_ns = copy.took_ns() as f64;
            Some((took_ns * copy.stated_gain()?, took_ns))
        });
        let sums = told.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        sums.map(|(alone_ns, took_ns)| alone_ns / took_ns.max(1.0))
    }
}

/// What a run of `prefetch` read ahead: of the scans of one file, or of an initial sync.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PrefetchSummary {
    File(Box<PrefetchRecord>),
    Sync(PrefetchForSync),
}

/// The time per request, ns, from which a scan takes as long as its requests, so that its time alone can be
/// predicted from them. On faster disks, much of its time is the server's own.
const PREDICTABLE_NS: f64 = 3e6;

impl PrefetchRecord {
    /// Returns the time from when its preparation began to its end, ns.
    pub fn took_ns(&self) -> u64 {
        self.preparation_ns.saturating_add(self.elapsed_ns)
    }

    /// Returns how much of all leaves the scan passed while it was followed.
    pub fn passed_share(&self) -> f64 {
        let (passed, all) = match self.passed {
            Some(passed) => (passed.bytes, self.leaf_bytes),
            None => (self.position, self.leaf_pages),
        };
        (passed as f64 / all.max(1) as f64).min(1.0)
    }

    /// Returns the time of the scan for what it passed, with all that the user waited for, ns.
    pub fn passing_ns(&self) -> u64 {
        self.passed
            .map_or_else(|| self.took_ns(), |passed| passed.elapsed_ns)
    }

    /// Returns the time that the scan would have taken alone for what it passed, predicted from the disk's costs, ns;
    /// `None` where nothing is predicted: on a disk whose requests take less than 3 ms, where what they take alone is not
    /// known, and where the scan was not followed, for what else the user's command did would count as the scan's.
    pub fn predicted_alone_ns(&self) -> Option<f64> {
        let was_followed = self.position > 0 && self.pace != PrefetchPace::Own;
        let is_predictable = was_followed && self.is_slow() && !self.tried_beside_reads;
        is_predictable.then(|| Some(self.alone_predicted_ns? as f64 * self.passed_share()))?
    }

    /// Returns how many times as fast what was passed of the scan was as it would have been alone, as predicted.
    pub fn predicted_gain(&self) -> Option<f64> {
        Some(self.predicted_alone_ns()? / self.passing_ns().max(1) as f64)
    }

    /// Returns what was measured in pauses, where that can be believed: on a slow disk requests for the pages of a pause
    /// wait behind ours, and there are more of them than alone.
    pub fn measured_gain(&self) -> Option<&PrefetchGain> {
        self.gain.as_ref().filter(|_| !self.is_slow())
    }

    /// Returns how many times as fast the scan is said to have been: as predicted where that can be, otherwise as
    /// measured in pauses.
    pub fn stated_gain(&self) -> Option<f64> {
        self.predicted_gain()
            .or_else(|| self.measured_gain()?.ratio)
    }

    fn is_slow(&self) -> bool {
        let in_pauses = self.gain.map(|gain| gain.ns_per_leaf_left_out);
        let costs = [self.request_ns, in_pauses];
        costs.into_iter().flatten().any(|ns| ns >= PREDICTABLE_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_GAINED: PrefetchGain = PrefetchGain {
        slices: 0,
        leaves_left_out: 0,
        ns_per_leaf: 0.0,
        ns_per_leaf_left_out: 0.0,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
    };

    #[test]
    fn a_gain_is_predicted_on_slow_disks() {
        let slow = PrefetchRecord {
            pace: PrefetchPace::Traced,
            preparation_ns: 1_000,
            elapsed_ns: 9_000,
            request_ns: Some(6e6),
            alone_predicted_ns: Some(80_000),
            position: 10,
            leaf_pages: 10,
            ..PrefetchRecord::default()
        };
        assert_eq!(slow.predicted_gain(), Some(8.0));
        let in_part = PrefetchRecord {
            leaf_bytes: 1_000,
            passed: Some(PassedScan {
                bytes: 250,
                elapsed_ns: 16_000,
                from_start: true,
            }),
            ..slow.clone()
        };
        assert_eq!(in_part.predicted_gain(), Some(1.25));
        let contended = PrefetchRecord {
            tried_beside_reads: true,
            ..slow.clone()
        };
        assert_eq!(contended.predicted_gain(), None);
        let quick = PrefetchRecord {
            request_ns: Some(6e5),
            ..slow.clone()
        };
        assert_eq!(quick.predicted_gain(), None);
        let unknown = PrefetchRecord {
            alone_predicted_ns: None,
            ..slow.clone()
        };
        assert_eq!(unknown.predicted_gain(), None);
        let not_followed = PrefetchRecord {
            pace: PrefetchPace::Own,
            ..slow.clone()
        };
        assert_eq!(not_followed.predicted_gain(), None);
        let nothing_scanned = PrefetchRecord {
            position: 0,
            ..slow
        };
        assert_eq!(nothing_scanned.predicted_gain(), None);
    }

    #[test]
    fn the_gain_of_a_sync_is_that_of_its_time() {
        let copy = |gain: Option<f64>, took_ns| PrefetchRecord {
            elapsed_ns: took_ns,
            gain: gain.map(|ratio| PrefetchGain {
                ratio: Some(ratio),
                ..NOTHING_GAINED
            }),
            ..PrefetchRecord::default()
        };
        let mut sync = PrefetchForSync::default();
        assert_eq!(sync.stated_gain(), None);
        sync.collections = vec![copy(None, 1_000)];
        assert_eq!(sync.stated_gain(), None);
        // 300 + 100 ns alone, and 200 ns with it.
        sync.collections = vec![copy(Some(3.0), 100), copy(Some(1.0), 100), copy(None, 900)];
        assert_eq!(sync.stated_gain(), Some(2.0));
    }
}
