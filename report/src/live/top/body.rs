//! Shows the files, or why there are none to show; the help; the line of keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::super::draw::{
    Column, EMPHASIS, Glyphs, column, columns_for, hit_share, latency, table,
};
use super::super::snapshot::FileLine;
use super::{TopControls, TopFrame};
use crate::escape::visible;
use crate::numbers::{format_mb, format_rate};

static COLUMNS: [Column; 9] = [
    column("wait ms/s", 9, |file| {
        format_rate(file.rates.in_flight * 1e3)
    }),
    column("calls/s", 7, |file| format_rate(file.rates.calls())),
    column("MB/s", 6, |file| format_mb(file.rates.bytes())),
    column("writes/s", 8, |file| format_rate(file.rates.writes)),
    column("p50", 7, |file| {
        latency(file.latency_ns.map(|(p50, _)| p50))
    }),
    column("p99", 7, |file| {
        latency(file.latency_ns.map(|(_, p99)| p99))
    }),
    column("in cache", 8, |file| hit_share(&file.rates)),
    column("misses/s", 8, misses),
    column("pattern", 10, |file| file.pattern.into()),
];
/// Columns that are dropped first where the terminal is too narrow for all.
const DISPENSABLE: [&str; 3] = ["writes/s", "misses/s", "p50"];

fn misses(file: &FileLine) -> String {
    let misses = file.rates.misses;
    misses.map_or_else(|| "-".into(), format_rate)
}

/// Returns the recently used files, in the reader's order.
pub(super) fn lines<'a>(shown: &'a TopFrame, controls: &TopControls) -> Vec<&'a FileLine> {
    let all = shown.files.iter().flat_map(|files| &files.files);
    let mut lines: Vec<&FileLine> = all.filter(|file| file.rates.calls() > 0.0).collect();
    lines.sort_by(|a, b| controls.order.compare(a, b));
    lines
}

pub(super) fn files(frame: &mut Frame<'_>, area: Rect, shown: &TopFrame, controls: &TopControls) {
    let notes: Vec<Line<'_>> = notes(shown).map(Line::raw).collect();
    if shown.files.is_none() {
        return frame.render_widget(Paragraph::new(notes).wrap(Wrap { trim: false }), area);
    }
    let note_rows = u16::try_from(notes.len())
        .unwrap_or(u16::MAX)
        .min(area.height / 3);
    let rows = [Constraint::Length(note_rows), Constraint::Min(0)];
    let [above, below] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(notes), above);
    let lines = lines(shown, controls);
    if lines.is_empty() {
        let nothing = "No file was read, written or synced in the last second.";
        return frame.render_widget(Paragraph::new(nothing), below);
    }
    let skipped = controls.skipped.min(lines.len() - 1);
    let columns = columns_for(below.width, &COLUMNS, &DISPENSABLE);
    frame.render_widget(table(&lines[skipped..], &columns), below);
}

/// Returns what cannot be shown, and how to enable it.
pub(super) fn notes(shown: &TopFrame) -> impl Iterator<Item = String> {
    let all = shown.limitations.iter();
    all.map(|l| {
        let remedy = match l.remedy.as_str() {
            "" => String::new(),
            remedy => format!(". {remedy}"),
        };
        visible(&format!("! {}: {}{remedy}", l.what, l.why))
    })
}

const HELP: [&str; 17] = [
    "w b c   sort files by time waited, bytes, calls; s the next order",
    "p       pause the picture (counting goes on)      up down  scroll",
    "h       this help, and back                       q        quit",
    "",
    "wait ms/s  time that threads of the server spent in calls on the file, per second",
    "           of time: 1,000 is one thread waiting all the time",
    "calls/s    reads, writes and syncs;  MB/s  bytes read and written (10^6)",
    "p50 p99    latency of those calls: 50 % and 99 % of them were faster",
    "in cache   share of the reads served from the page cache; misses/s the others",
    "pattern    order of the reads (or else writes): sequential, random, strided,",
    "           backward, re-read, mixed; few: too few calls to tell",
    "",
    "disk       the whole disk, whoever uses it; \"each\" is the mean time of a request.",
    "           busy is the time with a request in flight; an SSD at 100 % may have room",
    "cache      WiredTiger's; above 20 % dirty, application threads write pages too",
    "misses     share of the requested pages that WiredTiger had to read",
    "self       what watching costs",
];

pub(super) fn help() -> Paragraph<'static> {
    Paragraph::new(HELP.map(Line::raw).to_vec())
}

pub(super) fn keys(controls: &TopControls, glyphs: Glyphs) -> Line<'static> {
    let arrows = match glyphs {
        Glyphs::Unicode => "↑↓",
        Glyphs::Ascii => "up/down",
    };
    let order = controls.order.name();
    let text = format!("by {order}   w/b/c sort   {arrows} scroll   p pause   h help   q quit");
    Line::styled(text, EMPHASIS)
}
