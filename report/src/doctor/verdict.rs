//! Begins the first screen: the state of the disk, and the possible gain.

use seekscope_doctor::Answers;
use seekscope_doctor::answers::DeviceLoad;
use seekscope_doctor::ranking::is_seen;
use seekscope_doctor::thresholds::{SYNC_BOUND, UNRESPONSIVE};
use seekscope_pattern::ThreadRole;
use seekscope_run::units::{format_count, format_list};
use seekscope_run::{Finding, Outcome};

use super::{DoctorReportInput, caveats};
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
    let mut state: Vec<String> = caveats::untold(input.document, input.counters)
        .into_iter()
        .collect();
    state.extend(input.answers().role_changes.iter().cloned());
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
        return followed(findings, format!("{}.", unresponsive.heading()));
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
        // What holds operations up instead, and how long is known.
        if let Some(first) = findings.first().filter(|first| first.id != HEALTHY)
            && apart.is_none()
        {
            let verdict = followed(findings, format!("{}.", first.heading()));
            let told = [verdict.next, Some(format!("{}.", healthy.title))];
            let told: Vec<String> = told.into_iter().flatten().collect();
            return Verdict {
                next: Some(told.join(" ")),
                ..verdict
            };
        }
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
    // Where something else comes first, that is what is named.
    let first = findings.first();
    let bound = first.filter(|finding| finding.id == SYNC_BOUND);
    let bound = bound.map(|finding| format!("{}.", finding.heading()));
    if let Some(state) = apart.or(bound) {
        return followed(findings, state);
    }
    if !input.sees_server() {
        return followed(findings, UNSEEN.into());
    }
    match state(input) {
        Some(state) => waiting(input, state),
        None => alone(
            &next(findings, None)
                .unwrap_or_else(|| "Too little could be measured to conclude anything.".into()),
        ),
    }
}

fn followed(findings: &[Finding], state: String) -> Verdict {
    Verdict {
        next: next(findings, Some(&state)),
        state,
    }
}

/// Says what is known of the cause, after how long threads wait for the disk.
fn waiting(input: &DoctorReportInput<'_>, state: String) -> Verdict {
    let findings = &input.diagnosis.findings;
    let found = next(findings, Some(&state)).unwrap_or_else(|| NO_CAUSE.into());
    let is_much = waiting_s(input.answers()) >= UNEXPLAINED_LEAST;
    // Of a private server everybody knows that it has just started.
    let is_local = input.document.target.as_ref().is_some_and(|of| of.local);
    let cold = caveats::cold_start(input.counters).filter(|_| is_much && !is_local);
    let caveat = match is_unexplained(input.answers(), findings) {
        true => cold.or_else(|| Some("What was found does not explain that.".into())),
        false => cold,
    };
    Verdict {
        state,
        next: Some(
            [Some(found), caveat]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
        ),
    }
}

/// Returns whether threads wait noticeably for files, although no finding would save any of it or names the job that
/// waits.
fn is_unexplained(answers: &Answers, findings: &[Finding]) -> bool {
    let explains = |finding: &Finding| {
        let saved_s = finding.alone_s_per_hour.or(finding.saves_s_per_hour);
        let saves = is_seen(finding) && saved_s.is_some_and(|s| s >= SAVED_LEAST_S);
        saves || JOBS.contains(&finding.id.as_str())
    };
    waiting_s(answers) >= UNEXPLAINED_LEAST && !findings.iter().any(explains)
}

/// Says how many findings there are, and which is the first with what it would save, where that was observed; `state` is
/// what was said before, which may name it. `None` without any.
fn next(findings: &[Finding], state: Option<&str>) -> Option<String> {
    let first = findings.first()?;
    let saved_s = first.saves_s_per_hour.filter(|_| is_seen(first));
    let saved_s = saved_s.filter(|s| s.is_finite() && *s >= SAVED_LEAST_S);
    // Operations that are not run save the CPU's time, too.
    let what = match first.operations.is_empty() {
        true => "waiting",
        false => "operations' time",
    };
    let saved = saved_s.map(|s| format!("saves about {} s of {what} per hour", format_rate(s)));
    let (count, which, named) = match findings.len() {
        1 => ("One finding".into(), "it", ": "),
        count => (
            format!("{} findings", format_count(count as u64)),
            "the first",
            "; the first: ",
        ),
    };
    let is_told = state.is_some_and(|state| state.contains(&first.title));
    let name = first.heading();
    Some(match saved {
        Some(saved) if is_told => format!("{count}: acting on {which} {saved}."),
        Some(saved) => format!("{count}{named}{name}. Acting on it {saved}."),
        None if state.is_some() => format!("{count}."),
        None => format!("{count}{named}{name}."),
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
mod tests;
