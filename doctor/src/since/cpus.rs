//! Tells whether the server had to share the CPUs of its host.
//!
//! An operation that examines documents in memory takes as long as it runs, and as long as it waits for a CPU. The second
//! part says nothing of the server: it comes and goes with other processes. The watch itself tells of it by the time in
//! which some task waited for a CPU (pressure). Runs that lack it have the load average of the minute before instead.

use seekscope_run::{Finding, FindingChange};

use super::Examined;
use super::printed::{predicted, saves};
use crate::evidence::cpu::PRESSURE;
use crate::wording::percent;

/// The finding of a run that the CPUs were too few for all.
const SATURATED: &str = "cpu.saturated";

/// The CPUs of the server's own host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cpus {
    host: f64,
    /// Share of the watch in which some task waited for a CPU.
    waiting: Option<f64>,
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
            waiting: waiting(run),
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
        let are_wanted = match self.waiting {
            Some(share) => share >= PRESSURE,
            None => self.tasks > self.host,
        };
        self.is_saturated || are_wanted
    }

    /// Returns words like "other processes may have had the CPUs (some task waited for one in 92 % of the time, on 2
    /// CPUs, of which the server used 0.16)".
    pub(super) fn in_words(self) -> String {
        let is_own = self.used.is_some_and(|used| used * 2.0 >= self.host);
        let who = match (is_own, self.is_saturated) {
            (true, _) => "there were too few CPUs for all",
            (false, true) => "other processes had the CPUs",
            (false, false) => "other processes may have had the CPUs",
        };
        let seen = match self.waiting {
            Some(share) => format!(
                "some task waited for one in {} of the time,",
                percent(share)
            ),
            None => format!("a load of {:.1}", self.tasks),
        };
        let own = self.used.map_or_else(String::new, |used| {
            format!(", of which the server used {used:.2}")
        });
        format!("{who} ({seen} on {:.0} CPUs{own})", self.host)
    }
}

fn waiting(run: Examined<'_>) -> Option<f64> {
    let share = run.diagnosis.answers.work?.cpu_pressure_share?;
    Some(share.min(1.0))
}

/// Returns what became of the finding that others take the CPUs, where it is made again: how much they take is their
/// doing, and makes the server neither better nor worse.
pub(super) fn change_of(
    finding: &Finding,
    again: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<FindingChange> {
    let are_of_others = |run: Examined<'_>| run.diagnosis.answers.waited.processors > 0.0;
    if finding.id != SATURATED || !are_of_others(earlier) || !are_of_others(now) {
        return None;
    }
    let waiting = waiting(earlier).zip(waiting(now));
    let waiting = waiting.map_or_else(String::new, |(then, now)| {
        let [then, now] = [then, now].map(percent);
        format!(" (some task waited for one in {then} of the time then, in {now} now)")
    });
    Some(FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        change: "same".into(),
        before: saves(finding),
        after: saves(again),
        predicted: predicted(finding),
        verdict: format!(
            "still there: others take the CPUs, and how much of them they take is not this server's doing{waiting}"
        ),
        ..FindingChange::default()
    })
}
