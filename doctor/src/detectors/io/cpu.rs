//! `cpu.saturated`: the CPUs, not the disk, are the bottleneck; also says who uses them: the server itself,
//! others on its host, a quota, or the hypervisor.

use seekscope_run::Finding;

use super::{Detector, saved_per_hour};
use crate::evidence::cpu::{self, BUSY, PRESSURE, Taker, Use};
use crate::ranking::NOTICEABLE_S_PER_HOUR;
use crate::wording::{duration, percent, shell_quoted};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["cpu.saturated"],
    detect,
};

/// A server that gets less than this share of what it is allowed, and less than this many CPUs, hardly needs
/// any: others do not harm it, unless its operations take far longer than it works.
const WANTED: f64 = 0.1;
const WANTED_CPUS: f64 = 0.5;
/// The same where the use by others was not counted: most of what is in use is then the server's own.
const WANTED_UNCOUNTED: f64 = 0.4;
/// Waiting for CPUs, s per hour, from which on a server is held up that got hardly any: a tenth of a thread's time.
const HELD_UP_MIN_S: f64 = 360.0;
/// Share of the time in which the control group was throttled.
const THROTTLED: f64 = 0.1;

/// The cause of the shortage.
enum Cause {
    Server,
    /// Share (0..=1) of the host's CPUs that others use.
    Others(f64),
    /// Unknown, because the use by others was not counted.
    Unknown,
    /// Share of the host's CPUs that the hypervisor gave to others.
    Hypervisor(f64),
    /// Waiting, s per second, summed over CPUs.
    Quota(f64),
}

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    judge(evidence, answers).into_iter().collect()
}

fn judge(evidence: &Evidence<'_>, answers: &Answers) -> Option<Finding> {
    let found = Use::of(evidence)?;
    let throttled = evidence
        .rate("cgroup", "cpu_throttled_ns")
        .map_or(0.0, |ns| ns / 1e9);
    let waited = answers.waited.processors;
    let cause = cause(evidence, &found, throttled, waited)?;
    // What a quota holds up is counted; an operation waits again for those that it held up before.
    let (saved, high) = match cause {
        Cause::Quota(waiting) => (Some(waiting * 3600.0), 2.0),
        Cause::Others(_) | Cause::Hypervisor(_) if waited >= NOTICEABLE_S_PER_HOUR => {
            (Some(waited), 1.0)
        }
        _ => (None, 1.0),
    };
    Some(Finding {
        id: "cpu.saturated".into(),
        title: title(&cause, &found),
        evidence: sentences(evidence, &found, throttled, waited),
        gain: saved.map(|s| saved_per_hour(s, s * 0.5, s * high)),
        saves_s_per_hour: saved,
        confidence: "medium".into(),
        risk: risk(&cause, saved, answers).into(),
        command: command(evidence, &cause),
        ..Finding::default()
    })
}

fn risk(cause: &Cause, saved: Option<f64>, answers: &Answers) -> &'static str {
    match (cause, saved) {
        (Cause::Quota(_), _) => "The host's CPUs have to have room for what the quota held back.",
        (Cause::Hypervisor(_), Some(_)) => {
            "Only dedicated CPUs for this virtual machine, or another host, prevent that."
        }
        (_, Some(_)) => {
            "What takes the CPUs has to run elsewhere, at another time or with less weight (nice, or the CPU weight of \
             its control group), and then takes longer itself."
        }
        (_, None) if answers.waited.total_for_disk() < NOTICEABLE_S_PER_HOUR => {
            "What a faster CPU would save cannot be told from here; a faster disk saves nothing while threads wait \
             for CPUs."
        }
        // Threads wait for the disk as well, and other findings say what that costs.
        (_, None) => "What a faster CPU would save cannot be told from here.",
    }
}

/// `waited` is how long operations waited for CPUs that others took, s per hour.
fn cause(evidence: &Evidence<'_>, found: &Use, throttled: f64, waited: f64) -> Option<Cause> {
    // One that uses all of its quota is held up by that, whether or not there are CPUs for it.
    if throttled >= THROTTLED {
        return Some(Cause::Quota(throttled));
    }
    if found.share() >= BUSY {
        return Some(Cause::Server);
    }
    // The less a server gets, the less it seems to want: its operations tell.
    let is_harmed = wants(found) || waited >= HELD_UP_MIN_S;
    match found.taker(evidence) {
        Some(Taker::Hypervisor(share)) => is_harmed.then_some(Cause::Hypervisor(share)),
        Some(Taker::Others(share)) => is_harmed.then_some(Cause::Others(share)),
        None if found.used_by_all.is_some() => {
            (found.is_crowded(evidence) && wants(found)).then_some(Cause::Server)
        }
        None => {
            let pressed = cpu::pressure(evidence).is_some_and(|share| share >= PRESSURE);
            (pressed && found.share() >= WANTED_UNCOUNTED).then_some(Cause::Unknown)
        }
    }
}

fn wants(found: &Use) -> bool {
    found.share() >= WANTED || found.used >= WANTED_CPUS
}

fn title(cause: &Cause, found: &Use) -> String {
    let own = percent(found.share());
    match cause {
        Cause::Server if found.share() >= BUSY => {
            format!("The CPUs are the limit: the server takes {own} of what it is allowed")
        }
        Cause::Server => format!(
            "The CPUs are the limit: {} of them are in use, {} by the server",
            percent(found.share_taken().unwrap_or(1.0)),
            percent(found.used / found.host)
        ),
        Cause::Others(share) => format!(
            "Other processes take the CPUs: they use {} of the host's, and the server gets {own} of what it \
             is allowed",
            percent(*share)
        ),
        Cause::Unknown => format!(
            "There are too few CPUs for all that runs on the host; the server gets {own} of what it is allowed"
        ),
        Cause::Hypervisor(share) => format!(
            "The hypervisor gives {} of this machine's CPUs to others while they are wanted here",
            percent(*share)
        ),
        Cause::Quota(waiting) => format!(
            "A CPU quota is the limit: it made the server wait {waiting:.2} s per second, summed over CPUs"
        ),
    }
}

fn sentences(evidence: &Evidence<'_>, found: &Use, throttled: f64, waited: f64) -> Vec<String> {
    let mut sentences = Vec::new();
    if waited >= NOTICEABLE_S_PER_HOUR {
        let waited = duration(waited);
        sentences.push(match cpu::queued_s_per_hour(evidence) {
            Some(_) => format!(
                "The threads that serve operations had work to do and waited {waited} per hour for a CPU (the kernel's schedstat of each)."
            ),
            None => format!(
                "Operations took {waited} per hour more than the CPU time and the waits for files, syncs and locks account for: that is how long they waited for a CPU (serverStatus, getLog, process)."
            ),
        });
    }
    if throttled >= THROTTLED {
        sentences.push(format!(
            "Its control group, or one around it, allows {:.2} CPUs, and made it wait {throttled:.2} s per second, summed \
             over CPUs (cgroup).",
            found.allowed
        ));
    }
    sentences.push(format!(
        "The server used {:.2} of {:.2} CPUs on average (process, host).",
        found.used, found.allowed
    ));
    sentences.extend(found.used_by_all.map(|all| {
        let stolen = found.stolen.unwrap_or(0.0);
        format!(
            "All processes of the host together used {all:.1} of {:.0} CPUs, others than the server {:.1}; the \
             hypervisor took {stolen:.1} (/proc/stat).",
            found.host,
            (all - found.used).max(0.0)
        )
    }));
    sentences.extend(cpu::pressure(evidence).map(|share| {
        format!(
            "Some task waited for a CPU in {} of the time (pressure).",
            percent(share.min(1.0))
        )
    }));
    sentences.extend(evidence.read_waiting().map(|waiting| {
        format!(
            "Its threads waited {:.2} s per second for reads ({}).",
            waiting.s_per_s, waiting.source
        )
    }));
    sentences
}

/// Returns a command that shows who uses them, or what the quota is.
fn command(evidence: &Evidence<'_>, cause: &Cause) -> String {
    let settings = evidence.host_settings();
    let file = settings.and_then(|host| host.surroundings.cpu_quota_file.as_deref());
    match (cause, file) {
        (Cause::Quota(_), Some(file)) => format!("cat {}", shell_quoted(file)),
        (Cause::Quota(_), None) => "systemd-cgtop --order=cpu --batch --iterations=1".into(),
        (Cause::Hypervisor(_), _) => "vmstat 1 5".into(),
        // The second picture is of the seconds since the first, and not of the whole life of each process.
        _ => "top -b -n 2 -d 3 | grep -A 15 'PID ' | tail -15".into(),
    }
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

    /// The same while all processes use `all` of the host's 8 CPUs, and `stolen` CPUs are stolen.
    fn among(cpus: f64, pressure: f64, all: f64, stolen: f64) -> Recording {
        let mut recording = using(cpus, pressure);
        recording.values("cpu", "busy_ns", |s| s * all * 1e9);
        recording.values("cpu", "stolen_ns", |s| s * stolen * 1e9);
        recording
    }

    fn title(recording: &Recording) -> String {
        let found = recording.findings(&DETECTOR);
        found.first().map_or(String::new(), |f| f.title.clone())
    }

    #[test]
    fn ill() {
        let found = using(7.5, 0.9).findings(&DETECTOR);
        assert_eq!(
            found[0].title,
            "The CPUs are the limit: the server takes 94 % of what it is allowed"
        );
        assert_eq!(found[0].saves_s_per_hour, None);
        let mut quota = using(1.0, 0.1);
        quota.host().surroundings.cpu_quota = Some(1.0);
        assert_eq!(quota.findings(&DETECTOR).len(), 1);
    }

    /// The server's share alone does not show the cause.
    #[test]
    fn whose_doing_it_is() {
        let theirs = "Other processes take the CPUs: they use 50 % of the host's, and the server gets 49 % of \
                      what it is allowed";
        assert_eq!(title(&among(3.9, 0.9, 7.9, 0.0)), theirs);
        assert!(title(&among(6.0, 0.9, 7.9, 0.0)).starts_with("The CPUs are the limit"));
        assert!(title(&among(3.0, 0.9, 5.0, 2.5)).starts_with("The hypervisor gives 31 %"));
        let unknown = "There are too few CPUs for all that runs on the host; the server gets 50 % of what it \
                       is allowed";
        assert_eq!(title(&using(4.0, 0.9)), unknown);
    }

    /// A regression: the less a server got, the less it seemed to want, and the one that got least was not told of.
    #[test]
    fn a_server_that_gets_hardly_any_is_told_what_it_waits() {
        let mut starved = among(0.1, 0.95, 7.98, 0.0);
        assert_eq!(title(&starved), "", "nothing was asked of it");
        starved.rising("opLatencies.reads.latency", 1.2e6);
        starved.rising("opLatencies.reads.ops", 4.0);
        let found = starved.findings(&DETECTOR).remove(0);
        assert!(found.title.starts_with("Other processes take"), "{found:?}");
        let saved = found.saves_s_per_hour.unwrap();
        assert!((saved - 1.1 * 3600.0).abs() < 1.0, "{saved}");
        assert!(found.evidence[0].contains("66 min per hour"), "{found:?}");
        // Whoever waits for a lock wants no CPU.
        starved.steady("globalLock.currentQueue.total", 1.1);
        assert_eq!(title(&starved), "");
    }

    #[test]
    fn what_the_kernel_counts_is_told() {
        let counted = |s_per_s: f64| {
            let mut recording = among(0.1, 0.95, 7.98, 0.0);
            recording.rising("opLatencies.reads.latency", 1.2e6);
            recording.rising("opLatencies.reads.ops", 4.0);
            recording.values("process", "run_delay_ns", |s| s * s_per_s * 1e9);
            recording
        };
        let found = counted(0.5).findings(&DETECTOR).remove(0);
        let told = "waited 30 min per hour for a CPU (the kernel's schedstat of each)";
        assert!(found.evidence[0].contains(told), "{found:?}");
        assert_eq!(title(&counted(0.01)), "", "it waited for something else");
    }

    /// Bursts use up the quota of each tenth of a second, while the average is low.
    #[test]
    fn ill_by_a_quota_alone() {
        let mut recording = using(0.5, 0.1);
        recording.host().surroundings.cpu_quota = Some(4.0);
        recording.values("cgroup", "cpu_throttled_ns", |s| s * 0.3e9);
        assert_eq!(
            title(&recording),
            "A CPU quota is the limit: it made the server wait 0.30 s per second, summed over CPUs"
        );
        recording.host().surroundings.cpu_quota_file = Some("/sys/fs/cgroup/db/cpu.max".into());
        let used_up = |recording: &mut Recording| {
            recording.values("process", "cpu_ns", |s| s * 3.9e9);
            recording.findings(&DETECTOR).remove(0)
        };
        let found = used_up(&mut recording);
        assert!(
            found.title.starts_with("A CPU quota is the limit"),
            "{found:?}"
        );
        assert!(found.evidence[0].contains("allows 4.00 CPUs"), "{found:?}");
        assert_eq!(found.command, "cat /sys/fs/cgroup/db/cpu.max");
        assert_eq!(found.saves_s_per_hour, Some(0.3 * 3600.0));
    }

    #[test]
    fn healthy() {
        assert_eq!(title(&using(2.0, 0.9)), "", "not this server's doing");
        assert_eq!(title(&using(2.0, 0.1)), "");
        let idle = among(0.3, 0.9, 7.9, 0.0);
        assert_eq!(title(&idle), "", "it wants hardly any");
        let room = among(3.0, 0.9, 5.0, 0.0);
        assert_eq!(title(&room), "", "bursts of others, and CPUs to spare");
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
