//! Begins the first screen: the state of the disk, and the possible gain.

use seekscope_doctor::Answers;
use seekscope_doctor::answers::DeviceLoad;
use seekscope_doctor::ranking::is_seen;
use seekscope_doctor::thresholds::{SYNC_BOUND, UNRESPONSIVE};
use seekscope_pattern::ThreadRole;
use seekscope_run::units::{format_count, format_list};
use seekscope_run::{Finding, Outcome};

use super::DoctorReportInput;
use crate::layout::sentences::format_s;
use crate::numbers::{format_number, format_rate, format_share};

/// Says that no other finding saves anything noticeable.
const HEALTHY: &str = "disk.not-the-problem";
const HELD_UP: [&str; 3] = ["cpu.saturated", "locks.queued", "writes.unacknowledged"];
/// Jobs that may make threads wait for more than all operations together do.
const JOBS: [&str; 3] = ["index-build.running", "resync.running", "ttl.deleting"];
/// Findings that set a shard or a member apart from the others: where the data lies explains how the work does.
const APART: [&str; 3] = ["shards.uneven", "shards.hot", "member.differs"];
/// Used share of the disk's capability from which on the disk limits the server.
const BUSY: f64 = 0.8;
/// Waiting for files, s per s, below which it is not mentioned: a hundredth of one thread's time.
const WAITING_LEAST: f64 = 0.01;
/// Waiting for files, s per s, from which it is said that no finding explains it.
const UNEXPLAINED_LEAST: f64 = 0.1;
/// Smallest time of reads beyond the calls that is told, as a share of the waiting.
const BESIDE_LEAST: f64 = 0.25;
/// Members that could not be asked that are named.
const SILENT_MAX: usize = 4;
/// Savings, s per hour, below which they are not mentioned.
const SAVED_LEAST_S: f64 = 1.0;
const UNSEEN: &str = "Too little could be measured: neither the server's counters nor its reads and writes could be read.";
const NO_CAUSE: &str = "No cause was found that is worth acting on.";

/// The main sentence, and the one that follows it. Control characters in names are not yet made visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) state: String,
    pub(super) next: Option<String>,
}

impl Verdict {
    fn in_words(self) -> String {
        let sentences = [Some(self.state), self.next];
        sentences
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns the state of the disk, and what to do about it, in one or two sentences.
pub fn verdict(input: &DoctorReportInput<'_>) -> String {
    of(input).in_words()
}

/// Returns the same for a member of a deployment that is shown as a whole: its members that are missing are named there.
pub fn verdict_of_member(input: &DoctorReportInput<'_>) -> String {
    with_roles(input).in_words()
}

/// Returns the verdict, with what limits it in front: members that are missing from it, or took another role
/// meanwhile.
pub(super) fn of(input: &DoctorReportInput<'_>) -> Verdict {
    let verdict = with_roles(input);
    match silent(input) {
        Some(silent) => Verdict {
            state: format!("{silent} {}", verdict.state),
            ..verdict
        },
        None => verdict,
    }
}

fn with_roles(input: &DoctorReportInput<'_>) -> Verdict {
    let verdict = judged(input);
    let mut state = input.answers().role_changes.clone();
    state.push(verdict.state);
    Verdict {
        state: state.join(" "),
        ..verdict
    }
}

/// Names the members of the set or cluster that hold data and could not be asked.
fn silent(input: &DoctorReportInput<'_>) -> Option<String> {
    let members = input.answers().members.iter();
    let members = members.filter(|member| member.holds_data());
    let (count, silent) = members.fold((0, Vec::new()), |(count, mut silent), member| {
        let shard = member.shard.as_ref().map(|shard| format!(" of {shard}"));
        let why = member.not_asked.as_deref();
        silent
            .extend(why.map(|why| format!("{}{} ({why})", member.name, shard.unwrap_or_default())));
        (count + 1, silent)
    });
    let named = format_list(&silent, SILENT_MAX, ", ");
    (!silent.is_empty()).then(|| {
        let silent = format_count(silent.len() as u64);
        format!(
            "Of {} members {silent} could not be asked: {named}.",
            format_count(count)
        )
    })
}

fn judged(input: &DoctorReportInput<'_>) -> Verdict {
    let alone = |state: &str| Verdict {
        state: state.into(),
        next: None,
    };
    if matches!(input.document.outcome, Outcome::Failed | Outcome::Invalid) {
        return alone("Nothing can be concluded from this run.");
    }
    let findings = &input.diagnosis.findings;
    if let Some(unresponsive) = findings.iter().find(|finding| finding.id == UNRESPONSIVE) {
        return Verdict {
            state: match unresponsive.member.as_str() {
                "" => format!("{}.", unresponsive.title),
                member => format!("{member}: {}.", unresponsive.title),
            },
            next: next(findings),
        };
    }
    let of_deployment = input.document.is_of_deployment();
    // What is little sure is left to the findings: it would stand before what costs most.
    let is_sure = |finding: &&Finding| finding.confidence != "low";
    let apart = APART.iter().filter_map(|id| {
        let mut sure = findings.iter().filter(is_sure);
        sure.find(|finding| finding.id == *id)
    });
    let apart: Vec<String> = apart.map(|finding| format!("{}.", finding.title)).collect();
    let apart = (of_deployment && !apart.is_empty()).then(|| apart.join(" "));
    if let Some(healthy) = findings.iter().find(|finding| finding.id == HEALTHY) {
        // What holds operations up instead.
        let queued = findings
            .iter()
            .find(|finding| HELD_UP.contains(&finding.id.as_str()));
        let elsewhere = apart.or_else(|| queued.map(|finding| format!("{}.", finding.title)));
        return match elsewhere {
            None => alone(&healthy.title),
            next => Verdict {
                state: format!("{}.", healthy.title),
                next,
            },
        };
    }
    let bound = findings.iter().find(|finding| finding.id == SYNC_BOUND);
    let bound = bound.map(|finding| match finding.member.as_str() {
        "" => format!("{}.", finding.title),
        member => format!("{member}: {}.", finding.title),
    });
    if let Some(state) = apart.or(bound) {
        return Verdict {
            state,
            next: next(findings),
        };
    }
    if !input.sees_server() {
        return Verdict {
            state: UNSEEN.into(),
            next: next(findings),
        };
    }
    match (state(input), next(findings)) {
        (Some(state), Some(next)) if is_unexplained(input.answers(), findings) => Verdict {
            state,
            next: Some(format!("{next} What was found does not explain that.")),
        },
        (Some(state), next) => Verdict {
            state,
            next: Some(next.unwrap_or_else(|| NO_CAUSE.into())),
        },
        (None, Some(next)) => alone(&next),
        (None, None) => alone("Too little could be measured to conclude anything."),
    }
}

/// Do threads wait noticeably for files, although no finding would save any of it or names the job that waits?
fn is_unexplained(answers: &Answers, findings: &[Finding]) -> bool {
    let explains = |finding: &Finding| {
        let saved_s = finding.alone_s_per_hour.or(finding.saves_s_per_hour);
        let saves = is_seen(finding) && saved_s.is_some_and(|s| s >= SAVED_LEAST_S);
        saves || JOBS.contains(&finding.id.as_str())
    };
    waiting_s(answers) >= UNEXPLAINED_LEAST && !findings.iter().any(explains)
}

/// Says how many findings there are, and what the first would save, where that was observed; `None` without
/// any.
fn next(findings: &[Finding]) -> Option<String> {
    let first = findings.first()?;
    let saved_s = first.saves_s_per_hour.filter(|_| is_seen(first));
    let saved_s = saved_s.filter(|s| s.is_finite() && *s >= SAVED_LEAST_S);
    // Operations that are not run save the CPU's time, too.
    let what = match first.operations.is_empty() {
        true => "waiting",
        false => "operations' time",
    };
    let saved = saved_s.map(|s| format!("saves about {} s of {what} per hour", format_rate(s)));
    let count = format_count(findings.len() as u64);
    Some(match (findings.len(), saved) {
        (1, None) => "One finding.".into(),
        (1, Some(saved)) => format!("One finding: acting on it {saved}."),
        (_, None) => format!("{count} findings."),
        (_, Some(saved)) => format!("{count} findings: acting on the first {saved}."),
    })
}

/// Says how busy the disk is, and how long threads wait on which somebody depends.
fn state(input: &DoctorReportInput<'_>) -> Option<String> {
    let answers = input.answers();
    let load = answers.device_load.as_ref();
    // For a typical disk the capability is a guess: good enough for ranking, not for the first sentence.
    let used = load
        .filter(|load| load.ability_measured)
        .and_then(|load| load.utilisation)
        .filter(|used| used.is_finite());
    let state = match (used, load.and_then(ceiling)) {
        (_, Some(ceiling)) => format!("The disk is held back by {ceiling}"),
        (Some(used), None) if used >= BUSY => {
            format!(
                "The disk is the bottleneck: {} of what it can do is used",
                format_share(used)
            )
        }
        (Some(used), None) => format!(
            "The disk has room: {} of what it can do is used",
            format_share(used)
        ),
        (None, None) => return waits(answers).map(|waits| format!("Of every second {waits}.")),
    };
    Some(match waits(answers) {
        Some(waits) => format!("{state}, and of every second {waits}."),
        None => format!("{state}."),
    })
}

/// Returns the time that application threads wait for files, s per s.
fn waiting_s(answers: &Answers) -> f64 {
    let users = answers.device_users.iter();
    let application = users.filter(|user| user.thread_role == ThreadRole::Application);
    application.map(|user| user.waiting_s_per_s).sum()
}

fn waits(answers: &Answers) -> Option<String> {
    let waiting_s = waiting_s(answers);
    let noticeable = waiting_s.is_finite() && waiting_s >= WAITING_LEAST;
    noticeable.then(|| {
        let waits = match waiting_s {
            s if s < 1.0 => format!("application threads wait {} for files", format_s(s)),
            s => format!(
                "application threads together wait {} s for files",
                format_number(s)
            ),
        };
        match beside_s(answers, waiting_s) {
            Some(beside_s) => format!(
                "{waits}, and work {} on what they read (checksums; before MongoDB 6.0 decompression, too)",
                format_s(beside_s)
            ),
            None => waits,
        }
    })
}

/// Returns the time, of every second, of reads into the server's cache beyond the calls, s, where it is not much
/// less than that of the calls; findings claim it, too.
fn beside_s(answers: &Answers, waiting_s: f64) -> Option<f64> {
    let waited = &answers.waited;
    let beside_s = (waited.reads + waited.reads_from_memory) / 3600.0 - waiting_s;
    (beside_s.is_finite() && beside_s >= BESIDE_LEAST * waiting_s).then_some(beside_s)
}

fn ceiling(load: &DeviceLoad) -> Option<&str> {
    load.ceiling
        .as_deref()
        .filter(|ceiling| !ceiling.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_doctor::Diagnosis;
    use seekscope_doctor::answers::{DeviceUser, MemberAnswer};
    use seekscope_doctor::evidence::{COUNTERS, Counters};
    use seekscope_run::{CounterSample, FileRole, MemberState, RunDocument};

    fn verdict_of(findings: Vec<Finding>, device_load: Option<DeviceLoad>) -> String {
        let query = CounterSample {
            source: COUNTERS.into(),
            name: "opcounters.query".into(),
            t_ns: 1,
            value: 1.0,
        };
        verdict_with(findings, device_load, &Counters::new([query]))
    }

    fn verdict_with(
        findings: Vec<Finding>,
        device_load: Option<DeviceLoad>,
        counters: &Counters,
    ) -> String {
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.outcome = Outcome::Ok;
        let answers = Answers {
            device_load,
            ..Answers::default()
        };
        verdict(&DoctorReportInput {
            document: &document,
            diagnosis: &Diagnosis { findings, answers },
            trace: None,
            counters,
            events: &|_| Ok(()),
            leaves: &|_| Ok(()),
        })
    }

    fn finding(id: &str, saves_s_per_hour: Option<f64>) -> Finding {
        Finding {
            id: id.into(),
            title: format!("title of {id}"),
            saves_s_per_hour,
            ..Finding::default()
        }
    }

    fn load(utilisation: Option<f64>, ceiling: Option<&str>) -> Option<DeviceLoad> {
        Some(DeviceLoad {
            utilisation,
            ability_measured: true,
            ceiling: ceiling.map(String::from),
            ..DeviceLoad::default()
        })
    }

    #[test]
    fn what_reads_take_beyond_the_calls_is_told_where_it_is_much() {
        let of_each_second = |beside_s: f64| {
            let mut answers = Answers::default();
            answers.device_users.push(DeviceUser {
                path: String::new(),
                role: FileRole::Collection,
                namespace: None,
                thread_role: ThreadRole::Application,
                writes: false,
                calls_per_s: 0.0,
                bytes_per_s: 0.0,
                device_bytes_per_s: 0.0,
                waiting_s_per_s: 0.2,
                device_time_share: None,
                pattern: None,
                sequential_share: None,
                p50_ns: 0,
                p99_ns: 0,
            });
            answers.waited.reads = 0.1 * 3600.0;
            answers.waited.reads_from_memory = (0.1 + beside_s) * 3600.0;
            waits(&answers).unwrap()
        };
        let waits = "application threads wait 200 ms for files";
        assert_eq!(of_each_second(0.04), waits);
        assert_eq!(
            of_each_second(0.3),
            format!(
                "{waits}, and work 300 ms on what they read (checksums; before MongoDB 6.0 decompression, too)"
            )
        );
    }

    #[test]
    fn says_how_the_disk_does_and_what_there_is_to_gain() {
        assert_eq!(
            verdict_of(
                vec![finding("a", Some(840.0)), finding("b", None)],
                load(Some(0.91), None)
            ),
            "The disk is the bottleneck: 91.0 % of what it can do is used. 2 findings: acting on the first \
             saves about 840 s of waiting per hour."
        );
        let mut of_a_scan = finding("a", Some(840.0));
        of_a_scan.gain = Some(seekscope_run::Gain {
            value: 1.0,
            low: 1.0,
            high: 1.0,
            unit: "s per cold scan".into(),
        });
        let not_seen = verdict_of(vec![of_a_scan], load(Some(0.2), None));
        assert!(not_seen.ends_with(" One finding."), "{not_seen}");
        let mut of_queries = finding("a", Some(840.0));
        of_queries.operations = vec![seekscope_run::OperationKind::default()];
        let of_queries = verdict_of(vec![of_queries], load(Some(0.2), None));
        let told = "acting on it saves about 840 s of operations' time per hour.";
        assert!(of_queries.ends_with(told), "{of_queries}");
        let room = verdict_of(Vec::new(), load(Some(0.2), None));
        assert!(
            room.starts_with("The disk has room") && room.ends_with(NO_CAUSE),
            "{room}"
        );
        let held = verdict_of(
            vec![finding("a", None)],
            load(Some(0.2), Some("cgroup read IOPS 150/s")),
        );
        assert!(
            held.starts_with("The disk is held back by cgroup read IOPS 150/s."),
            "{held}"
        );
    }

    #[test]
    fn members_that_are_missing_come_first() {
        let member = |name: &str, state, not_asked: Option<&str>| MemberAnswer {
            name: name.into(),
            state,
            not_asked: not_asked.map(String::from),
            ..MemberAnswer::default()
        };
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.outcome = Outcome::Ok;
        let mut diagnosis = Diagnosis {
            findings: vec![finding(HEALTHY, None)],
            ..Diagnosis::default()
        };
        let said_by = |verdict: fn(&DoctorReportInput<'_>) -> String, diagnosis: &Diagnosis| {
            verdict(&DoctorReportInput {
                document: &document,
                diagnosis,
                trace: None,
                counters: &Counters::default(),
                events: &|_| Ok(()),
                leaves: &|_| Ok(()),
            })
        };
        let said = |diagnosis: &Diagnosis| said_by(verdict, diagnosis);
        diagnosis.answers.members = vec![
            member("db1", MemberState::Primary, None),
            member("db2", MemberState::Arbiter, Some("an arbiter has no data")),
        ];
        assert_eq!(said(&diagnosis), "title of disk.not-the-problem");
        let down = member("db3", MemberState::Down, Some("nothing listens there"));
        diagnosis.answers.members.push(down);
        diagnosis
            .answers
            .role_changes
            .push("The primary changed.".into());
        assert_eq!(
            said(&diagnosis),
            "Of 2 members 1 could not be asked: db3 (nothing listens there). The primary changed. title of \
             disk.not-the-problem"
        );
        assert_eq!(
            said_by(verdict_of_member, &diagnosis),
            "The primary changed. title of disk.not-the-problem"
        );
    }

    #[test]
    fn a_healthy_disk_and_an_empty_run_say_so() {
        let healthy = vec![finding("index.unused", Some(3.0)), finding(HEALTHY, None)];
        assert_eq!(
            verdict_of(healthy, load(Some(0.1), None)),
            "title of disk.not-the-problem"
        );
        assert!(verdict_of(Vec::new(), None).starts_with("Too little"));
        let unseen = verdict_with(Vec::new(), load(Some(0.2), None), &Counters::default());
        assert_eq!(unseen, UNSEEN);
        let odd = verdict_of(
            vec![finding("a", Some(f64::NAN))],
            load(Some(f64::NAN), None),
        );
        assert!(!odd.contains("NaN"), "{odd}");
    }
}
