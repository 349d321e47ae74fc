//! Announces before the first run which knobs could be searched and are not, and what to know about those that
//! are. The record has all of it, even for a quiet session.

use std::collections::BTreeMap;

use super::knobs::Choice;
use crate::progress::Progress;

/// Prints what is left out, and the cautions.
pub fn tell(progress: Progress, choice: &Choice) {
    for line in lines(choice) {
        progress.say(line);
    }
}

fn lines(choice: &Choice) -> Vec<String> {
    let reasons = by_reason(choice);
    let left_out = reasons.into_iter();
    let mut lines: Vec<String> = left_out
        .map(|(why, names)| {
            // The reason speaks of one knob.
            let of_each = names.len() > 1 && why.starts_with("it ");
            let so = if of_each { ", each because" } else { ":" };
            format!("Left out: {}{so} {why}.", names.join(", "))
        })
        .collect();
    let cautions = choice.cautions.iter();
    lines.extend(cautions.map(|(knob, said)| format!("Caution, {knob}: {said}.")));
    lines
}

/// Returns the knobs that the user could include, by the reason that excludes them, which names the option or
/// the phases that would include them. Of the user's own file, all were asked for, and of the catalogue nothing but what
/// was named, if some was.
fn by_reason(choice: &Choice) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    if choice.is_named && !choice.is_of_file {
        return reasons;
    }
    let is_told = |why: &str| choice.is_of_file || why.contains(" --") || why.contains("judge it");
    for (name, why) in choice.left_out.iter().filter(|(_, why)| is_told(why)) {
        reasons.entry(why).or_default().push(name);
    }
    reasons
}

#[cfg(test)]
mod tests {
    use seekscope_tune::space::Space;

    use super::*;

    #[test]
    fn what_an_option_would_let_in_is_said_once_for_each_reason() {
        let left_out = [
            ("a", "it weakens durability; --allow-durability unlocks it"),
            ("b", "not asked for"),
            ("c", "it weakens durability; --allow-durability unlocks it"),
            (
                "d",
                "it shows in runs of more than 60 s; longer phases of the workload judge it",
            ),
        ];
        let pair = |(name, why): (&str, &str)| (name.to_string(), why.to_string());
        let mut choice = Choice {
            entries: Vec::new(),
            space: Space::new(Vec::new(), Vec::new()).unwrap(),
            presets: Vec::new(),
            also: Vec::new(),
            left_out: left_out.map(pair).into(),
            is_of_file: false,
            is_named: false,
            configured: BTreeMap::new(),
            cautions: vec![pair(("e", "it is not raised above 4"))],
        };
        assert_eq!(
            lines(&choice),
            [
                "Left out: d: it shows in runs of more than 60 s; longer phases of the workload judge it.",
                "Left out: a, c, each because it weakens durability; --allow-durability unlocks it.",
                "Caution, e: it is not raised above 4.",
            ]
        );
        choice.is_named = true;
        assert_eq!(lines(&choice), ["Caution, e: it is not raised above 4."]);
        choice.is_of_file = true;
        assert!(lines(&choice).contains(&"Left out: b: not asked for.".into()));
    }
}
