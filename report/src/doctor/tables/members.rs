//! Shows members side by side: a column each, the differing factor marked.

use maud::{Markup, html};
use seekscope_doctor::answers::MemberAnswer;
use seekscope_run::MemberRun;

use super::super::DoctorReportInput;
use crate::numbers::format_rate;

/// The most columns; a cluster of hundreds would make the page useless.
const MEMBERS_MAX: usize = 12;

/// Names what differs, then all figures.
pub(in super::super) fn members(input: &DoctorReportInput<'_>) -> Option<Markup> {
    let answers = input.answers();
    let members = answers
        .members
        .get(..answers.members.len().min(MEMBERS_MAX))?;
    // A lone server cannot be compared with others.
    if members.len() < 2 {
        return None;
    }
    let odd = answers.member_difference.as_ref();
    let is_odd = |member: &MemberAnswer, factor: &str| {
        odd.is_some_and(|odd| odd.member == member.name && odd.factor == factor)
    };
    Some(html! {
        @match odd {
            Some(odd) => p.meaning {
                "What sets " bdi { (odd.member) } " apart: " bdi { (odd.factor) } " is " bdi { (odd.value) }
                ", of the others " bdi { (odd.others) } "."
            },
            None => p.meaning { "Nothing sets one member apart from the others." },
        }
        div.scroll {
            table.comparison.members {
                thead { tr { td {} @for member in members { th scope="col" { (heading(member)) } } } }
                tbody {
                    @for factor in names(members, |m| m.figures.iter().map(|(name, _)| name.as_str()).collect()) {
                        (row(factor, members, is_odd, |member| {
                            let figure = member.figures.iter().find(|(name, _)| name == factor);
                            figure.and_then(|(_, value)| *value).map(format_rate)
                        }))
                    }
                    @for factor in names(members, |m| m.differing_settings.iter().map(|(name, _)| name.as_str()).collect()) {
                        (row(factor, members, is_odd, |member| {
                            let setting = member.differing_settings.iter().find(|(name, _)| name == factor);
                            setting.map(|(_, value)| value.clone())
                        }))
                    }
                }
            }
        }
        @if answers.members.len() > MEMBERS_MAX {
            p.note { "And " (answers.members.len() - MEMBERS_MAX) " members more, in run.json." }
        }
    })
}

fn heading(member: &MemberAnswer) -> Markup {
    html! {
        @match member.run.as_deref().filter(|run| MemberRun::is_folder(run)) {
            Some(run) => a href={ (run) "/report.html" } { bdi { (member.name) } },
            None => bdi { (member.name) },
        }
        span.under {
            @if let Some(shard) = &member.shard { bdi { (shard) } ", " }
            (member.state.name())
            @if !member.version.is_empty() { ", " bdi { (member.version) } }
        }
        @if let Some(verdict) = &member.verdict { span.under { bdi { (verdict) } } }
        @if let Some(why) = &member.not_asked { span.under.missing { "not asked: " bdi { (why) } } }
    }
}

/// Returns all names, in the order in which they first occur.
fn names<'a>(
    members: &'a [MemberAnswer],
    of: impl Fn(&'a MemberAnswer) -> Vec<&'a str>,
) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in members.iter().flat_map(of) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn row(
    factor: &str,
    members: &[MemberAnswer],
    is_odd: impl Fn(&MemberAnswer, &str) -> bool,
    value: impl Fn(&MemberAnswer) -> Option<String>,
) -> Markup {
    html! {
        tr {
            th scope="row" { bdi { (factor) } }
            @for member in members {
                @match value(member) {
                    Some(text) if is_odd(member, factor) => td.differs { "◆ " bdi { (text) } },
                    Some(text) => td { bdi { (text) } },
                    None => td.missing { "unknown" },
                }
            }
        }
    }
}
