//! Tells whether the server had to share the CPUs of its host.
//!
//! An operation that examines documents in memory takes as long as it runs, and as long as it waits for a CPU. The second
//! part says nothing of the server: it comes and goes with other processes.

use super::Examined;

/// The finding of a run that the CPUs were too few for all.
const SATURATED: &str = "cpu.saturated";

/// The CPUs of the server's own host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cpus {
    host: f64,
    /// Tasks that ran, or waited for a CPU or a disk, on average over the minute before the watch (load average).
    tasks: f64,
    /// CPUs that the server used in the watch.
    used: Option<f64>,
    is_saturated: bool,
}

impl Cpus {
    /// Returns `None` where the server is on another host.
    fn of(run: Examined<'_>) -> Option<Self> {
        let document = run.document;
        document.examination.as_ref()?.host.as_ref()?;
        let host = document.host.as_ref().filter(|host| host.cpus > 0)?;
        let used = || {
            let phase = document.phases.first()?;
            let watched_ns = phase.duration_ns();
            (watched_ns > 0).then(|| Some(phase.process_io?.cpu_ns as f64 / watched_ns as f64))?
        };
        let mut findings = run.diagnosis.findings.iter();
        Some(Self {
            host: f64::from(host.cpus),
            tasks: host.load_1m,
            used: used(),
            is_saturated: findings.any(|finding| finding.id == SATURATED),
        })
    }

    /// Returns them if more tasks wanted them than there are.
    pub(super) fn short(run: Examined<'_>) -> Option<Self> {
        Self::of(run).filter(|cpus| cpus.are_short())
    }

    fn are_short(self) -> bool {
        self.is_saturated || self.tasks > self.host
    }

    /// Returns words like "other processes may have had the CPUs (a load of 12.8 on 2 CPUs, of which the server used 0.16)".
    pub(super) fn in_words(self) -> String {
        let is_own = self.used.is_some_and(|used| used * 2.0 >= self.host);
        let who = match (is_own, self.is_saturated) {
            (true, _) => "there were too few CPUs for all",
            (false, true) => "other processes had the CPUs",
            (false, false) => "other processes may have had the CPUs",
        };
        let own = self.used.map_or_else(String::new, |used| {
            format!(", of which the server used {used:.2}")
        });
        format!(
            "{who} (a load of {:.1} on {:.0} CPUs{own})",
            self.tasks, self.host
        )
    }
}
