//! Finds the one factor in which a member differs from the others.
//!
//! A cause is told from its consequences by what members are given: their cache, and the order in which their
//! files lie. Where one member differs in that and in what it measures, the former is named. How much work a
//! member gets is no fault of its own: it is named where nothing else differs.
//!
//! The method is robust, because members are few: on a logarithmic scale, a member's distance from the median
//! of the others in units of their spread (median absolute deviation, at least a fifth). Figures are raised
//! by the amount that matters, so that nothing and next to nothing are alike. With two members there is no
//! spread, and the figure with the largest ratio counts.

use std::collections::BTreeSet;

use super::figures::{FIGURES, Figure, Kind};
use super::{MemberAnswer, MemberDifference};

/// Smallest ratio to the others' value, or its inverse; 2 with two members, where either could be the odd
/// one.
const RATIO_MIN: f64 = 1.5;
const RATIO_OF_TWO_MIN: f64 = 2.0;
/// Spread of members that are alike, as a logarithm.
const SPREAD_MIN: f64 = 0.2;
/// Smallest distance in spreads.
const SPREADS_MIN: f64 = 2.5;
/// Factor from the median absolute deviation to the standard deviation of a normal distribution.
const NORMAL: f64 = 1.4826;
/// Weight of an effect, which counts less than its possible causes.
const EFFECT_WEIGHT: f64 = 0.5;

/// Returns the factor in which one member differs most from the others, if it differs enough. A differing
/// setting is named when no figure stands out but those of the members' work.
pub(in crate::answers) fn difference(members: &[MemberAnswer]) -> Option<MemberDifference> {
    let compared: Vec<&MemberAnswer> = members.iter().filter(|m| m.is_comparable()).collect();
    (compared.len() >= 2).then_some(())?;
    // After a failover, figures of work are those of two duties.
    let roles_changed = members.iter().any(|member| member.became.is_some());
    let candidates = compared.iter().flat_map(|member| {
        let all = FIGURES.iter();
        let all = all.filter(|figure| !(roles_changed && figure.kind.depends_on_work()));
        all.filter_map(|figure| stands_out(member, &compared, figure))
    });
    let candidates: Vec<Candidate> = candidates.collect();
    own_factor(&candidates)
        .or_else(|| effect(&candidates))
        .or_else(|| version(&compared))
        .or_else(|| setting(&compared))
        .or_else(|| farthest(candidates.iter()))
}

/// A figure in which a member stands out.
struct Candidate {
    /// Weighted distance from the others, in units of their spread.
    distance: f64,
    kind: Kind,
    difference: MemberDifference,
}

/// Returns what the member that stands out most has or is, apart from its work. Where it was given something
/// else than the others, that is named: the rest follows from it.
fn own_factor(candidates: &[Candidate]) -> Option<MemberDifference> {
    let own = || candidates.iter().filter(|one| one.kind.is_own());
    let first = farthest(own())?;
    let given =
        own().filter(|one| one.kind == Kind::Given && one.difference.member == first.member);
    farthest(given).or(Some(first))
}

/// Returns the consequence that stands out most and does not follow from the member's work.
fn effect(candidates: &[Candidate]) -> Option<MemberDifference> {
    let works = |member: &str| {
        let mut loads = candidates.iter().filter(|one| one.kind == Kind::Load);
        loads.any(|load| load.difference.member == member)
    };
    let effects = candidates.iter().filter(|one| one.kind == Kind::Effect);
    farthest(effects.filter(|one| !works(&one.difference.member)))
}

fn farthest<'a>(among: impl Iterator<Item = &'a Candidate>) -> Option<MemberDifference> {
    let found = among.max_by(|a, b| a.distance.total_cmp(&b.distance));
    found.map(|candidate| candidate.difference.clone())
}

/// Returns the member as a candidate if it differs enough in this figure.
fn stands_out(
    member: &MemberAnswer,
    compared: &[&MemberAnswer],
    figure: &Figure,
) -> Option<Candidate> {
    let value = value_of(member, figure)?;
    let by_duty = figure.kind.depends_on_work();
    let others = compared.iter().filter(|other| {
        other.name != member.name
            && (!by_duty || has_same_duty(member, other))
            && (!figure.of_data || other.shard == member.shard)
    });
    let others: Vec<f64> = others.filter_map(|other| value_of(other, figure)).collect();
    if others.len() == 1 && compared.len() > 2 {
        // Either of these two could be the odd one.
        return None;
    }
    let middle = seekscope_stats::median(&others)?;
    let log = |value: f64| (value.max(0.0) + figure.matters).ln();
    let distance = (log(value) - log(middle)).abs();
    let deviations: Vec<f64> = others
        .iter()
        .map(|v| (log(*v) - log(middle)).abs())
        .collect();
    let spread = (seekscope_stats::median(&deviations)? * NORMAL).max(SPREAD_MIN);
    let of_two = others.len() == 1;
    let ratio_min = if of_two { RATIO_OF_TWO_MIN } else { RATIO_MIN };
    let ratio = (value.max(middle) + f64::EPSILON) / (value.min(middle).max(0.0) + f64::EPSILON);
    let matters = (value - middle).abs() >= figure.matters && ratio >= ratio_min;
    // Of two members, the one with the larger value is named; with fewer than three, neither is certain to be
    // the odd one.
    let is_named = !of_two || value > middle;
    if !matters || !is_named || (!of_two && distance / spread < SPREADS_MIN) {
        return None;
    }
    let weight = match figure.kind {
        Kind::Effect | Kind::Speed => EFFECT_WEIGHT,
        Kind::Given | Kind::Property | Kind::Load => 1.0,
    };
    let difference = MemberDifference {
        member: member.name.clone(),
        factor: figure.name.into(),
        value: number(value),
        others: number(middle),
        source: figure.source.into(),
    };
    Some(Candidate {
        distance: weight * distance / spread,
        kind: figure.kind,
        difference,
    })
}

/// Primaries and secondaries have different work, and feel it differently; a delayed member does that of another
/// time, and a hidden one none for users.
fn has_same_duty(one: &MemberAnswer, other: &MemberAnswer) -> bool {
    one.state == other.state && !one.has_own_duty && !other.has_own_duty
}

fn value_of(member: &MemberAnswer, figure: &Figure) -> Option<f64> {
    let found = member.figures.iter().find(|(name, _)| name == figure.name);
    found.and_then(|(_, value)| *value)
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn version(compared: &[&MemberAnswer]) -> Option<MemberDifference> {
    odd_one(compared, "version", |member| {
        Some(member.version.as_str()).filter(|version| !version.is_empty())
    })
}

fn setting(compared: &[&MemberAnswer]) -> Option<MemberDifference> {
    let all = compared
        .iter()
        .flat_map(|member| &member.differing_settings);
    let names: BTreeSet<&str> = all.map(|(name, _)| name.as_str()).collect();
    let differences = names.into_iter().filter_map(|name| {
        odd_one(compared, name, |member| {
            let mut settings = member.differing_settings.iter();
            settings
                .find(|(n, _)| n == name)
                .map(|(_, value)| value.as_str())
        })
    });
    // Storage settings first: this is about disks.
    let mut all: Vec<MemberDifference> = differences.collect();
    all.sort_by_key(|difference| !difference.factor.starts_with("storage."));
    all.into_iter().next()
}

/// Returns the only member whose text is not that of all others, where there are at least two others, or the
/// second of two. Those of which the text is not known are left out.
fn odd_one<'a>(
    compared: &[&'a MemberAnswer],
    factor: &str,
    text: impl Fn(&'a MemberAnswer) -> Option<&'a str>,
) -> Option<MemberDifference> {
    let known = compared
        .iter()
        .filter_map(|member| Some((member.name.as_str(), text(member)?)));
    let known: Vec<(&str, &str)> = known.collect();
    if known.len() == 2 && compared.len() > 2 {
        // Either of these two could be the odd one.
        return None;
    }
    let odd = (0..known.len()).rev().find(|&at| {
        let mut others = known.iter().enumerate().filter(|(other, _)| *other != at);
        let first = others.next().map(|(_, (_, text))| *text);
        first.is_some_and(|first| first != known[at].1)
            && others.all(|(_, (_, text))| Some(*text) == first)
    })?;
    let (_, others) = known.iter().enumerate().find(|(at, _)| *at != odd)?;
    Some(MemberDifference {
        member: known[odd].0.into(),
        factor: factor.into(),
        value: known[odd].1.into(),
        others: others.1.into(),
        source: "options of each".into(),
    })
}
