//! Finds the one member to which its control group grants less than the others have.
//!
//! A limit is what a member was given: what follows from it, such as the time that a page takes to read, sets nobody
//! apart. Only members that were examined on their hosts are compared, since only there their groups are seen.

use seekscope_run::units::{format_bytes, format_count, whole};
use seekscope_run::{Finding, Surroundings};

use super::ExaminedMember;
use crate::answers::{MemberDifference, limit_in_words};

/// The others have at least this many times as much.
const RATIO_MIN: f64 = 1.5;

/// What one member is granted less of.
#[derive(Debug)]
pub(super) struct Less {
    pub(super) difference: MemberDifference,
    /// Id of the finding that tells what it costs.
    told_by: &'static str,
}

/// A limit of a control group.
struct Limit {
    name: String,
    value: f64,
    shown: String,
    told_by: &'static str,
    /// How the finding that tells what it costs names it, if it tells one limit from another.
    told_as: Option<String>,
}

/// Returns the member with a limit that all others lack, or have far higher. Of several limits the one that was found
/// to hold it back.
pub(super) fn less(examined: &[ExaminedMember]) -> Option<Less> {
    let all = examined.iter().filter_map(|member| {
        let host = member.document.examination.as_ref()?.host.as_ref()?;
        Some((member, limits(member, &host.surroundings)))
    });
    let all: Vec<(&ExaminedMember, Vec<Limit>)> = all.collect();
    let is_told = |member: &ExaminedMember, limit: &Limit| {
        let mut findings = member.diagnosis.findings.iter();
        findings.any(|finding| {
            let names = |words: &String| finding.title.contains(words);
            finding.id == limit.told_by && limit.told_as.as_ref().is_none_or(names)
        })
    };
    let of_each = all.iter().enumerate().flat_map(|(at, (member, own))| {
        let others = all
            .iter()
            .enumerate()
            .filter(move |(other, _)| *other != at);
        let others: Vec<&Vec<Limit>> = others.map(|(_, (_, limits))| limits).collect();
        let lesser = own
            .iter()
            .filter_map(move |limit| Some((limit, apart(limit, &others)?)));
        lesser.map(move |(limit, others)| (*member, limit, others))
    });
    // The first of those that are alike.
    let (member, limit, others) = of_each.reduce(|first, next| {
        match is_told(next.0, next.1) && !is_told(first.0, first.1) {
            true => next,
            false => first,
        }
    })?;
    Some(Less {
        difference: MemberDifference {
            member: member.record()?.name.clone(),
            factor: limit.name.clone(),
            value: limit.shown.clone(),
            others,
            source: "control groups".into(),
        },
        told_by: limit.told_by,
    })
}

/// Returns what the others have of it, if each of them has far more or no limit, and there are others.
fn apart(limit: &Limit, others: &[&Vec<Limit>]) -> Option<String> {
    let of_others = others
        .iter()
        .map(|limits| limits.iter().find(|one| one.name == limit.name));
    let of_others: Vec<Option<&Limit>> = of_others.collect();
    let has_more =
        |other: &Option<&Limit>| other.is_none_or(|other| other.value >= limit.value * RATIO_MIN);
    let is_apart = !of_others.is_empty() && of_others.iter().all(has_more);
    is_apart.then(|| {
        let known = of_others.iter().flatten();
        let tightest = known.min_by(|a, b| a.value.total_cmp(&b.value));
        tightest.map_or("none".into(), |other| other.shown.clone())
    })
}

/// Returns the limits of a member's control group; of those on its disk and memory that grant less than the host has.
fn limits(member: &ExaminedMember, surroundings: &Surroundings) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for limit in &surroundings.io_limits {
        let what = limit.what.strip_suffix(" bytes/s");
        let shown = match what {
            Some(_) => format_bytes(limit.per_s),
            None => limit.per_s.to_string(),
        };
        let found = Limit {
            name: format!(
                "its control group's limit on {}",
                what.map_or(limit.what.clone(), |direction| format!(
                    "{direction} bandwidth"
                ))
            ),
            value: limit.per_s as f64,
            shown: format!("{shown}/s"),
            told_by: "disk.limited",
            told_as: Some(limit_in_words(limit)),
        };
        // Several groups above each other: the tightest holds.
        match limits.iter_mut().find(|known| known.name == found.name) {
            Some(known) if known.value > found.value => *known = found,
            Some(_) => {}
            None => limits.push(found),
        }
    }
    let host = member.document.host.as_ref();
    let memory = surroundings.memory_limit_bytes;
    let memory = memory.filter(|bytes| host.is_none_or(|host| *bytes < host.memory_bytes));
    limits.extend(memory.map(|bytes| Limit {
        name: "its control group's limit on memory".into(),
        value: bytes as f64,
        shown: format_bytes(bytes),
        told_by: "memory.short",
        told_as: None,
    }));
    let quota = surroundings.cpu_quota;
    let quota = quota.filter(|cpus| host.is_none_or(|host| *cpus < f64::from(host.cpus)));
    limits.extend(quota.map(|cpus| Limit {
        name: "its control group's limit on CPUs".into(),
        value: cpus,
        shown: in_words(cpus),
        told_by: "cpu.saturated",
        told_as: None,
    }));
    limits
}

fn in_words(cpus: f64) -> String {
    match cpus.fract() == 0.0 {
        true => format_count(whole(cpus)),
        false => format!("{cpus:.2}"),
    }
}

impl Less {
    /// Returns whether what was found to set a member apart follows from this, or there is nothing else.
    pub(super) fn explains(&self, found: Option<&MemberDifference>) -> bool {
        found.is_none_or(|found| found.member == self.difference.member)
    }

    /// Refers to the finding about the limit, which has what another look at the member would show.
    pub(super) fn refer(&self, findings: &mut [Finding]) {
        let member = &self.difference.member;
        let about = |finding: &&Finding| finding.member == *member && finding.id == self.told_by;
        let Some(title) = findings.iter().find(about).map(|found| found.title.clone()) else {
            return;
        };
        let mut differing = findings.iter_mut();
        if let Some(differs) = differing.find(|finding| finding.id == "member.differs") {
            let sentence =
                format!("What that costs, and what lifts it, is told under \"{title}\".");
            differs.evidence.push(sentence);
            differs.command.clear();
        }
    }
}
