//! Works out how much of the disk's capability is used.
//!
//! The load is what the kernel counts for the disk (`/proc/diskstats`, all processes together); the
//! capability is what the device model predicts for requests of the mean size.

mod ceiling;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::evidence::{Series, ability};
pub(crate) use ceiling::{Ceiling, limit_in_words, reached as ceiling_reached, used_share};

const SOURCE: &str = "diskstats";

/// Load of the disk under the data, all processes together, over the observation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceLoad {
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub read_bytes_per_s: f64,
    pub write_bytes_per_s: f64,
    /// Requests in the busiest second.
    pub peak_requests_per_s: f64,
    /// Bytes in the busiest second.
    pub peak_bytes_per_s: f64,
    /// Mean time of a read in queue and disk, ns.
    pub read_ns: Option<f64>,
    pub write_ns: Option<f64>,
    /// Mean number of requests in flight.
    pub queue_depth: f64,
    /// Requests of this size per second that the disk can serve according to the model, at the best depth.
    pub able_requests_per_s: Option<f64>,
    /// Mean ratio of used to possible load, from 0: of requests or of bytes, whichever is nearer its limit.
    pub utilisation: Option<f64>,
    /// The same for the busiest second.
    pub peak_utilisation: Option<f64>,
    /// Whether the capability was measured, not assumed from a typical disk.
    pub ability_measured: bool,
    /// What the capability is based on: "measured", "as seen in this run", "of a typical disk".
    pub ability_basis: String,
    /// Share (0 to 1) of the disk's bytes that the examined server caused.
    pub server_share: Option<f64>,
    /// The limit that flattened the load: "cgroup read IOPS 150/s", "volume's 3,000 IOPS"; null if none was
    /// seen.
    pub ceiling: Option<String>,
}

impl DeviceLoad {
    /// Returns mean bytes of a request; 0 without requests.
    pub(crate) fn request_bytes(&self) -> f64 {
        let requests = self.reads_per_s + self.writes_per_s;
        let bytes = self.read_bytes_per_s + self.write_bytes_per_s;
        if requests > 0.0 {
            bytes / requests
        } else {
            0.0
        }
    }
}

pub(super) fn device_load(evidence: &Evidence<'_>) -> Option<DeviceLoad> {
    let rate = |name| evidence.rate(SOURCE, name);
    let mut load = DeviceLoad {
        reads_per_s: rate("reads")?,
        writes_per_s: rate("writes")?,
        read_bytes_per_s: rate("read_bytes")?,
        write_bytes_per_s: rate("write_bytes")?,
        peak_requests_per_s: peak(evidence, ["reads", "writes"]),
        peak_bytes_per_s: peak(evidence, ["read_bytes", "write_bytes"]),
        read_ns: mean_ns(rate("read_ms"), rate("reads")),
        write_ns: mean_ns(rate("write_ms"), rate("writes")),
        queue_depth: rate("queue_ms").unwrap_or(0.0) / 1000.0,
        ..DeviceLoad::default()
    };
    load.server_share = server_share(evidence, &load);
    load.ceiling = ceiling_reached(evidence).map(|ceiling| ceiling.name);
    if let Some(disk) = evidence.ability().filter(|_| load.request_bytes() > 0.0) {
        // The load is that of all processes, while a limit of the server's group applies to the server alone.
        let model = evidence.disk_beyond_limits();
        let able = model.and_then(|model| ability::requests_per_s(&model, load.request_bytes()));
        load.ability_measured = disk.measured;
        load.ability_basis = disk.basis().into();
        // The capability for this size of request is bounded by bytes as well: a second of many small requests is not a
        // peak for the device.
        let bytes_bound = load.peak_bytes_per_s / load.request_bytes();
        let peak = load.peak_requests_per_s.min(bytes_bound);
        let exceeded = able.is_some_and(|able| able < peak) && !disk.measured;
        load.able_requests_per_s = match exceeded {
            // What a limit grants says nothing of the disk, and a typical one is refuted.
            true if load.ceiling.is_some() => None,
            // What it did it can do, whatever a typical disk can.
            true => {
                load.ability_basis = "as seen in the busiest second".into();
                Some(peak)
            }
            false => able,
        };
        let over = |requests: f64| load.able_requests_per_s.map(|able| requests / able);
        (load.utilisation, load.peak_utilisation) =
            (over(load.reads_per_s + load.writes_per_s), over(peak));
    }
    Some(load)
}

fn mean_ns(ms_per_s: Option<f64>, per_s: Option<f64>) -> Option<f64> {
    let (ms_per_s, per_s) = (ms_per_s?, per_s?);
    (per_s > 0.0).then(|| ms_per_s * 1e6 / per_s)
}

/// Returns the largest sum of two counters' rates in one step.
fn peak(evidence: &Evidence<'_>, names: [&str; 2]) -> f64 {
    let rates = names.map(|name| {
        let series = evidence.counters.get(SOURCE, name);
        series.map(Series::rates).unwrap_or_default()
    });
    let [first, second] = rates;
    // All of a disk's counters are sampled together.
    let sums = first.iter().zip(&second).map(|(a, b)| a.1 + b.1);
    sums.fold(0.0, f64::max)
}

fn server_share(evidence: &Evidence<'_>, load: &DeviceLoad) -> Option<f64> {
    let of = |source: &str| {
        let read = evidence.rate(source, "read_bytes")?;
        Some(read + evidence.rate(source, "write_bytes")?)
    };
    let bytes = of("process").or_else(|| of("cgroup"))?;
    let all = load.read_bytes_per_s + load.write_bytes_per_s;
    (all > 0.0).then(|| (bytes / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use seekscope_run::IoLimit;

    use crate::testing::{Recording, flash};

    #[test]
    fn share_of_the_ability() {
        let mut recording = Recording::new();
        for (name, per_s) in [
            ("reads", 150_000.0),
            ("writes", 10_000.0),
            ("read_bytes", 150_000.0 * 4096.0),
            ("write_bytes", 10_000.0 * 4096.0),
            ("read_ms", 30_000.0),
            ("write_ms", 1000.0),
            ("queue_ms", 31_000.0),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        recording.values("process", "read_bytes", |s| s * 150_000.0 * 4096.0);
        recording.values("process", "write_bytes", |_| 0.0);
        recording.ability(flash(1e-4));
        let load = recording
            .examine(|_, answers| answers.device_load.clone())
            .unwrap();
        assert_eq!((load.reads_per_s, load.queue_depth), (150_000.0, 31.0));
        assert_eq!(load.read_ns, Some(2e5));
        let utilisation = load.utilisation.unwrap();
        assert!((0.6..0.7).contains(&utilisation), "{utilisation}");
        assert!((load.peak_utilisation.unwrap() - utilisation).abs() < 1e-6);
        assert!((load.server_share.unwrap() - 15.0 / 16.0).abs() < 1e-9);
        assert_eq!(load.ceiling, None);
    }

    #[test]
    fn a_disk_can_do_what_it_did() {
        let load = |measured: bool| {
            let mut recording = Recording::new();
            for (name, per_s) in [
                ("reads", 1_000_000.0),
                ("writes", 0.0),
                ("read_bytes", 1_000_000.0 * 4096.0),
                ("write_bytes", 0.0),
                ("read_ms", 30_000.0),
                ("queue_ms", 30_000.0),
            ] {
                recording.values("diskstats", name, |s| s * per_s);
            }
            recording.ability(flash(0.1));
            recording.examination().disk.as_mut().unwrap().measured = measured;
            recording
                .examine(|_, answers| answers.device_load.clone())
                .unwrap()
        };
        let typical = load(false);
        assert_eq!(typical.utilisation, Some(1.0));
        assert_eq!(typical.ability_basis, "as seen in the busiest second");
        let measured = load(true);
        assert!(measured.utilisation.unwrap() > 1.0, "{measured:?}");
        assert_eq!(measured.ability_basis, "measured");
    }

    #[test]
    fn what_a_limit_grants_is_not_what_the_disk_can_do() {
        let mut recording = Recording::new();
        for (name, per_s) in [
            ("reads", 200.0),
            ("reads_merged", 0.0),
            ("writes", 0.0),
            ("read_bytes", 200.0 * 500_000.0),
            ("write_bytes", 0.0),
            ("read_ms", 40.0),
            ("queue_ms", 40.0),
        ] {
            recording.values("diskstats", name, |s| s * per_s);
        }
        let mut model = flash(7e-4);
        (model.bytes_per_s_max, model.ns_per_byte) = (75e6, 13.0);
        recording.ability(model);
        recording.examination().disk.as_mut().unwrap().measured = false;
        let load = |recording: &Recording| {
            recording
                .examine(|_, answers| answers.device_load.clone())
                .unwrap()
        };
        assert_eq!(load(&recording).utilisation, Some(1.0));
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/db".into(),
            device: "254:0".into(),
            what: "read IOPS".into(),
            per_s: 200,
        });
        let limited = load(&recording);
        assert_eq!(
            (limited.able_requests_per_s, limited.utilisation),
            (None, None),
            "{limited:?}"
        );
    }

    #[test]
    fn without_counters_nothing_is_said() {
        let load = Recording::new().examine(|_, answers| answers.device_load.clone());
        assert_eq!(load, None);
    }
}
