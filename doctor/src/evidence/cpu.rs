//! Tells who used the CPUs: the examined server, others on its host, or the host of a virtual machine.

use super::Evidence;

/// Share of the allowed CPUs that the server uses, from which on it is itself what fills them.
pub(crate) const BUSY: f64 = 0.85;
/// Share of the time in which some task waits for a CPU, from which there are too few for all.
pub(crate) const PRESSURE: f64 = 0.6;
/// Share of the host's CPUs in use, from which there are too few for all.
const TAKEN: f64 = 0.9;
/// Share of the host's CPUs that the hypervisor gave to others.
const STOLEN: f64 = 0.1;

/// Who else takes the CPUs, so that there are too few, with the share (0..=1) of the host's that it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Taker {
    /// Other processes of the host.
    Others(f64),
    Hypervisor(f64),
}

/// CPUs in use on average, and what the server may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Use {
    /// CPUs used by the server.
    pub(crate) used: f64,
    /// CPUs the server may use: its quota, at most the host's.
    pub(crate) allowed: f64,
    pub(crate) host: f64,
    /// CPUs used by everything on the host, the server included; `None` in runs that did not sample it.
    pub(crate) used_by_all: Option<f64>,
    /// CPUs that a hypervisor gave to others while they were wanted here.
    pub(crate) stolen: Option<f64>,
}

impl Use {
    pub(crate) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let host = evidence.document.host.as_ref();
        let cpus = host.map(|h| f64::from(h.cpus)).filter(|n| *n > 0.0)?;
        let of_host = |name| Some(evidence.rate("cpu", name)? / 1e9);
        Some(Self {
            used: evidence.rate("process", "cpu_ns")? / 1e9,
            allowed: quota(evidence).map_or(cpus, |quota| quota.min(cpus)),
            host: cpus,
            used_by_all: of_host("busy_ns"),
            stolen: of_host("stolen_ns"),
        })
    }

    /// Returns the share of its allowed CPUs that the server used.
    pub(crate) fn share(&self) -> f64 {
        self.used / self.allowed.max(0.01)
    }

    /// Returns the share of the host's CPUs that others used.
    pub(crate) fn share_of_others(&self) -> Option<f64> {
        Some((self.used_by_all? - self.used).max(0.0) / self.host)
    }

    /// Returns who else takes the CPUs; `None` where there are enough, the server itself fills them, or nobody counted.
    pub(crate) fn taker(&self, evidence: &Evidence<'_>) -> Option<Taker> {
        if self.share() >= BUSY {
            return None;
        }
        let stolen = self.stolen.map_or(0.0, |cpus| cpus / self.host);
        if stolen >= STOLEN {
            return Some(Taker::Hypervisor(stolen));
        }
        let others = self.share_of_others()?;
        let is_theirs = self.is_crowded(evidence) && others > self.used / self.host;
        is_theirs.then_some(Taker::Others(others))
    }

    /// Returns whether there are too few CPUs for all that wants one, as far as the use by all was counted.
    pub(crate) fn is_crowded(&self, evidence: &Evidence<'_>) -> bool {
        let is_taken = self.share_taken().is_some_and(|taken| taken >= TAKEN);
        is_taken && pressure(evidence).is_none_or(|share| share >= PRESSURE)
    }

    /// Returns the share of the host's CPUs that was in use or stolen.
    pub(crate) fn share_taken(&self) -> Option<f64> {
        Some((self.used_by_all? + self.stolen.unwrap_or(0.0)) / self.host)
    }
}

/// Returns the CPU time that the server got, s per hour, where others take the CPUs.
pub(crate) fn got_beside_others_s_per_hour(evidence: &Evidence<'_>) -> Option<f64> {
    let found = Use::of(evidence)?;
    found.taker(evidence).map(|_| found.used * 3600.0)
}

/// Returns how long the server's threads that serve operations were in the queue for a CPU, s per hour, as the kernel counted
/// it. `None` where it did not, or where the hypervisor takes the CPUs: the kernel of a virtual machine does not see that.
pub(crate) fn queued_s_per_hour(evidence: &Evidence<'_>) -> Option<f64> {
    let taker = Use::of(evidence)?.taker(evidence)?;
    let is_seen = matches!(taker, Taker::Others(_));
    let ns_per_s = evidence.rate("process", "run_delay_ns")?;
    is_seen.then_some(ns_per_s / 1e9 * 3600.0)
}

/// Returns the CPUs that the server's control group grants.
pub(crate) fn quota(evidence: &Evidence<'_>) -> Option<f64> {
    evidence.host_settings()?.surroundings.cpu_quota
}

/// Returns the share of the time in which some task waited for a CPU.
pub(crate) fn pressure(evidence: &Evidence<'_>) -> Option<f64> {
    Some(evidence.rate("pressure", "cpu.some_us")? / 1e6)
}
