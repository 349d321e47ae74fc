//! `cpu.saturated`: the CPUs, not the disk, are what there is too little of.

use seekscope_run::Finding;

use super::Detector;
use crate::wording::percent;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["cpu.saturated"],
    detect,
};

/// Share of the CPUs that are allowed, taken by the server.
const BUSY: f64 = 0.85;
/// … or by all, told by tasks that wait for one this share of the time, while the server takes as much.
const PRESSURE: f64 = 0.6;
const BUSY_UNDER_PRESSURE: f64 = 0.4;
/// Share of the time in which the control group was made to wait.
const THROTTLED: f64 = 0.1;

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    judge(evidence).into_iter().collect()
}

/// CPUs that the server used on average, and may use.
struct Use {
    used: f64,
    allowed: f64,
}

impl Use {
    fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let host = evidence.document.host.as_ref();
        let cpus = host.map(|h| f64::from(h.cpus)).filter(|n| *n > 0.0)?;
        Some(Self {
            used: evidence.rate("process", "cpu_ns")? / 1e9,
            allowed: quota(evidence).map_or(cpus, |quota| quota.min(cpus)),
        })
    }

    fn share(&self) -> f64 {
        self.used / self.allowed.max(0.01)
    }
}

fn quota(evidence: &Evidence<'_>) -> Option<f64> {
    evidence.host_settings()?.surroundings.cpu_quota
}

/// Share of the CPUs that the server may use, which it did; `None` where that is not known.
pub(super) fn busy_share(evidence: &Evidence<'_>) -> Option<f64> {
    Use::of(evidence).map(|found| found.share())
}

fn judge(evidence: &Evidence<'_>) -> Option<Finding> {
    let found = Use::of(evidence)?;
    let (used, allowed, busy) = (found.used, found.allowed, found.share());
    let pressure = evidence.rate("pressure", "cpu.some_us").map(|us| us / 1e6);
    let throttled = evidence
        .rate("cgroup", "cpu_throttled_ns")
        .map_or(0.0, |ns| ns / 1e9);
    let crowded = pressure.is_some_and(|p| p >= PRESSURE) && busy >= BUSY_UNDER_PRESSURE;
    if busy < BUSY && !crowded && throttled < THROTTLED {
        return None;
    }
    let mut sentences = vec![format!(
        "The server used {used:.1} of {allowed:.1} CPUs on average (process, host)."
    )];
    sentences.extend(pressure.map(|share| {
        format!(
            "Some task waited for a CPU in {} of the time (pressure).",
            percent(share.min(1.0))
        )
    }));
    if throttled >= THROTTLED {
        sentences.push(format!(
            "Its control group's quota made it wait {throttled:.2} s per second, summed over CPUs (cgroup)."
        ));
    }
    sentences.extend(evidence.read_waiting().map(|waiting| {
        format!(
            "Its threads waited {:.2} s per second for reads ({}).",
            waiting.s_per_s, waiting.source
        )
    }));
    Some(Finding {
        id: "cpu.saturated".into(),
        title: if busy >= BUSY || crowded {
            format!(
                "The CPUs are the limit: the server takes {} of what it is allowed",
                percent(busy)
            )
        } else {
            format!(
                "A CPU quota is the limit: it made the server wait {throttled:.2} s per second, summed over \
                 CPUs"
            )
        },
        evidence: sentences,
        confidence: "medium".into(),
        risk: "What a faster CPU would save cannot be told from here; a faster disk saves nothing while \
               threads wait for CPUs."
            .into(),
        command: quota(evidence).map_or(String::new(), |_| "cat /sys/fs/cgroup/cpu.max".into()),
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn using(cpus: f64, pressure: f64) -> Recording {
        let mut recording = Recording::new();
        recording.values("process", "cpu_ns", |s| s * cpus * 1e9);
        recording.values("pressure", "cpu.some_us", |s| s * pressure * 1e6);
        recording
    }

    #[test]
    fn ill() {
        let found = using(7.5, 0.9).findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "The CPUs are the limit: the server takes 94 % of what it is allowed"
        );
        assert_eq!(found[0].saves_s_per_hour, None);
        assert_eq!(
            using(4.0, 0.9).findings(&DETECTOR).len(),
            1,
            "others take the rest"
        );
        let mut quota = using(1.0, 0.1);
        quota.host().surroundings.cpu_quota = Some(1.0);
        assert_eq!(quota.findings(&DETECTOR).len(), 1);
    }

    /// Bursts use up the quota of each tenth of a second, while the average is low.
    #[test]
    fn ill_by_a_quota_alone() {
        let mut recording = using(0.5, 0.1);
        recording.host().surroundings.cpu_quota = Some(4.0);
        recording.values("cgroup", "cpu_throttled_ns", |s| s * 0.3e9);
        assert_eq!(
            recording.findings(&DETECTOR)[0].title,
            "A CPU quota is the limit: it made the server wait 0.30 s per second, summed over CPUs"
        );
    }

    #[test]
    fn healthy() {
        assert_eq!(
            using(2.0, 0.9).findings(&DETECTOR),
            [],
            "not this server's doing"
        );
        assert_eq!(using(2.0, 0.1).findings(&DETECTOR), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
