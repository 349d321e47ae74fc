//! Draws a line per member, where several are watched.

use ratatui::text::{Line, Span};

use super::super::draw::EMPHASIS;
use super::super::vitals::{CheckpointVitals, Operations, Vitals};
use super::MemberVitals;
use super::header::{SILENT_S, UNKNOWN, mb, ms, rate, share};
use crate::escape::{shortened, visible};

/// Members that have a line; the others leave room for files.
const MEMBERS_SHOWN: usize = 8;
const LABEL_CHARS: usize = 28;
const HEADING: &str = "member";

/// The columns: heading, width, and what stands there.
type Column = (&'static str, usize, fn(&Vitals) -> String);
static COLUMNS: [Column; 9] = [
    ("ops/s", 6, |vitals| operations(&vitals.operations)),
    ("reads", 7, |vitals| ms(vitals.operations.read_ms)),
    ("writes", 7, |vitals| ms(vitals.operations.write_ms)),
    ("cache", 6, |vitals| share(vitals.cache.used_share)),
    ("dirty", 6, |vitals| share(vitals.cache.dirty_share)),
    ("CPUs", 5, |vitals| rate(vitals.process.cpus)),
    ("MB/s in", 7, |vitals| mb(vitals.process.read_bytes_per_s)),
    ("out", 6, |vitals| mb(vitals.process.write_bytes_per_s)),
    ("checkpoint", 10, |vitals| checkpoint(&vitals.checkpoint)),
];

pub(super) fn lines(members: &[MemberVitals]) -> Vec<Line<'static>> {
    let shown = &members[..members.len().min(MEMBERS_SHOWN)];
    let labels: Vec<String> = shown.iter().map(label).collect();
    let widest = labels.iter().map(|label| label.chars().count()).max();
    let width = widest.unwrap_or(0).max(HEADING.len());
    let headings = COLUMNS
        .iter()
        .map(|(heading, width, _)| format!(" {heading:>width$}"));
    let heading = format!("{HEADING:<width$}{}", headings.collect::<String>());
    let mut lines = vec![Line::from(Span::styled(heading, EMPHASIS))];
    for (member, label) in shown.iter().zip(labels) {
        let cells = COLUMNS.iter().map(|(_, width, cell)| {
            let text = cell(&member.vitals);
            format!(" {text:>width$}")
        });
        let cells: String = cells.collect();
        lines.push(Line::raw(format!("{label:<width$}{cells}")));
    }
    if members.len() > shown.len() {
        let more = members.len() - shown.len();
        lines.push(Line::raw(format!(
            "and {more} more members, all of them with --json"
        )));
    }
    lines
}

fn label(member: &MemberVitals) -> String {
    let label = shortened(&visible(&member.label), LABEL_CHARS);
    match member.is_here {
        true => label,
        false => format!("{label} (elsewhere)"),
    }
}

fn operations(operations: &Operations) -> String {
    match operations.answered_s_ago {
        Some(silent) if silent > SILENT_S => "SILENT".into(),
        _ => rate(operations.total_per_s()),
    }
}

fn checkpoint(checkpoint: &CheckpointVitals) -> String {
    match (checkpoint.running, checkpoint.running_s) {
        (Some(true), Some(seconds)) => format!("for {seconds:.0} s"),
        (Some(_), _) => "none".into(),
        (None, _) => UNKNOWN.into(),
    }
}
