//! Shows the texts to be copied: how to make the recommended change, and how to undo it.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{TuneExports, TunedKnob};

use super::reading::is_durability;
use crate::page::Block;

/// Prefixes of routes that end in the knob's name there.
const ROUTES: [&str; 5] = [
    "wiredTigerEngineRuntimeConfig ",
    "setParameter ",
    "mongod.conf ",
    "start option ",
    "environment ",
];
/// Options of `mongod.conf` that affect durability, by whatever parameter they are set.
const CONFIGURED: [&str; 2] = ["syncPeriodSecs", "commitIntervalMs"];

/// Returns what makes the change; nothing if there is none.
pub(super) fn change(record: &TuneRecord) -> Vec<Block> {
    let TuneExports {
        mongod_conf,
        set_parameter,
        shell,
        ..
    } = &record.exports;
    blocks(
        record,
        ["mongod.conf", "On the running server", "Commands"],
        mongod_conf,
        set_parameter,
        shell,
    )
}

/// Returns what undoes it.
pub(super) fn undo(record: &TuneRecord) -> Vec<Block> {
    let TuneExports {
        undo_mongod_conf,
        undo_set_parameter,
        undo_shell,
        ..
    } = &record.exports;
    blocks(
        record,
        [
            "Undo: mongod.conf",
            "Undo: on the running server",
            "Undo: commands",
        ],
        undo_mongod_conf,
        undo_set_parameter,
        undo_shell,
    )
}

fn blocks(
    record: &TuneRecord,
    headings: [&'static str; 3],
    mongod_conf: &str,
    set_parameter: &[String],
    shell: &[String],
) -> Vec<Block> {
    let knobs: Vec<&TunedKnob> = record
        .knobs
        .iter()
        .filter(|knob| is_durability(knob))
        .collect();
    let lines = |texts: &[String], comment: &str| {
        let lines = texts.iter().flat_map(|text| text.lines());
        lines
            .flat_map(|line| marked(line, comment, &knobs))
            .collect::<Vec<_>>()
    };
    let all = [
        lines(&[mongod_conf.to_string()], "#"),
        lines(set_parameter, "//"),
        lines(shell, "#"),
    ];
    headings
        .into_iter()
        .zip(all)
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(heading, lines)| Block::Copy(heading.into(), lines))
        .collect()
}

/// Returns the line, with a comment in its own language if it names a knob that affects durability: what is
/// copied still works. A line that continues in the next has its comment before it.
fn marked(line: &str, comment: &str, knobs: &[&TunedKnob]) -> Vec<String> {
    if !knobs.iter().any(|knob| speaks_of(line, knob)) {
        return vec![line.to_string()];
    }
    match line.trim_end().ends_with('\\') {
        true => vec![format!("{comment} DURABILITY:"), line.to_string()],
        false => vec![format!("{line} {comment} DURABILITY")],
    }
}

/// Returns whether the line mentions the knob, by its name or by the last part of its name on its route. A parameter
/// may have another name in the configuration file.
fn speaks_of(line: &str, knob: &TunedKnob) -> bool {
    let route = ROUTES.iter().find_map(|route| knob.how.strip_prefix(route));
    let option = route
        .and_then(|name| name.split_whitespace().last())
        .and_then(|name| name.rsplit('.').next())
        .filter(|name| !name.is_empty());
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    (!knob.name.is_empty() && line.contains(knob.name.as_str()))
        || words.any(|word| Some(word) == option || CONFIGURED.contains(&word))
}

#[cfg(test)]
mod tests {
    use seekscope_run::tune::KnobValue;

    use super::*;

    #[test]
    fn lines_that_move_durability_say_so_and_can_still_be_copied() {
        let knob = TunedKnob {
            name: "journal_interval".into(),
            baseline: KnobValue::Integer(100),
            range: String::new(),
            logarithmic: false,
            change: "S".into(),
            risk: "D".into(),
            how: "mongod.conf storage.journal.interval".into(),
        };
        let mark = |line: &str| marked(line, "#", &[&knob]);
        assert_eq!(
            mark("    commitIntervalMs: 500"),
            ["    commitIntervalMs: 500 # DURABILITY"]
        );
        assert_eq!(mark("set journal_interval \\").len(), 2);
        assert!(mark("    interval: 500")[0].ends_with("DURABILITY"));
        let other = "  configString: \"intervals=3\"";
        assert_eq!(mark(other), [other]);
    }
}
