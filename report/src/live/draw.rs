//! Draws a snapshot: a pure function into a terminal frame.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use seekscope_run::units::{format_count, format_ns};

use super::controls::{Controls, Tab};
use super::counts::Rates;
use super::map;
use super::snapshot::{FileLine, LiveSnapshot};
use crate::escape::visible;
use crate::numbers::{counted, format_mb, format_number, format_rate, format_share};

/// What the terminal's character set can display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    Unicode,
    Ascii,
}

pub(super) const EMPHASIS: Style = Style::new().add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const NOT_KNOWN: &str = "-";

/// Draws the snapshot to fill the frame.
pub fn draw(frame: &mut Frame<'_>, shown: &LiveSnapshot, controls: &Controls, glyphs: Glyphs) {
    let rows = [3, 1, 1, 0, 1].map(|rows| match rows {
        0 => Constraint::Min(0),
        rows => Constraint::Length(rows),
    });
    let [head, tabs, _, body, foot] = Layout::vertical(rows).areas(frame.area());
    let first_lines = vec![
        progress(shown, controls),
        totals(&shown.total),
        disk_line(shown),
    ];
    frame.render_widget(Paragraph::new(first_lines), head);
    frame.render_widget(tab_line(controls.tab), tabs);
    match controls.tab {
        Tab::Files => {
            let halves = [Constraint::Fill(1), Constraint::Fill(1)];
            let [table, picture] = Layout::vertical(halves).spacing(1).areas(body);
            files(frame, table, shown, controls);
            frame.render_widget(map::picture(shown, picture, glyphs), picture);
        }
        Tab::Map => frame.render_widget(map::picture(shown, body, glyphs), body),
        Tab::Disks => disks(frame, body, shown),
    }
    frame.render_widget(keys(glyphs), foot);
}

/// Returns what was recorded so far; losses are emphasised.
fn progress(shown: &LiveSnapshot, controls: &Controls) -> Line<'static> {
    let text = format!(
        "seekscope trace, {}: {}, ",
        format_ns(shown.elapsed_ns),
        counted(shown.events, "event")
    );
    let lost = if shown.lost == 0 {
        Span::raw("none lost")
    } else {
        let lost = format!("{} LOST", format_count(shown.lost));
        Span::styled(lost, EMPHASIS.add_modifier(Modifier::REVERSED))
    };
    let paused = if controls.paused {
        "  [paused; the trace goes on]"
    } else {
        ""
    };
    Line::from(vec![Span::raw(text), lost, Span::styled(paused, EMPHASIS)])
}

fn totals(total: &Rates) -> Line<'static> {
    Line::raw(format!(
        "all files: {} reads/s, {} MB/s read, {} writes/s, {} MB/s written, {} syncs/s, {} in cache, {} calls at a time",
        format_rate(total.reads),
        format_mb(total.read_bytes),
        format_rate(total.writes),
        format_mb(total.write_bytes),
        format_rate(total.syncs),
        hit_share(total),
        format_number(total.in_flight),
    ))
}

pub(super) fn hit_share(rates: &Rates) -> String {
    rates
        .hit_share
        .map_or_else(|| NOT_KNOWN.into(), format_share)
}

/// Returns the busiest disk; the others are in a view of their own.
fn disk_line(shown: &LiveSnapshot) -> Line<'static> {
    let busiest = shown
        .disks
        .iter()
        .max_by(|a, b| a.rates.calls().total_cmp(&b.rates.calls()));
    Line::raw(match busiest {
        None => "disk: no requests seen".into(),
        Some(disk) => format!(
            "disk {}: {} requests/s, {} MB/s read, {} MB/s written, queue depth {}",
            disk.name,
            format_rate(disk.rates.calls()),
            format_mb(disk.rates.read_bytes),
            format_mb(disk.rates.write_bytes),
            format_number(disk.rates.in_flight),
        ),
    })
}

fn tab_line(chosen: Tab) -> Line<'static> {
    let names = Tab::ALL.into_iter().map(|(tab, name)| {
        if tab == chosen {
            Span::styled(format!("[{name}] "), EMPHASIS)
        } else {
            Span::raw(format!(" {name}  "))
        }
    });
    Line::from(names.collect::<Vec<_>>())
}

fn keys(glyphs: Glyphs) -> Line<'static> {
    let arrows = match glyphs {
        Glyphs::Unicode => "↑ ↓",
        Glyphs::Ascii => "up/down",
    };
    Line::raw(format!(
        "{arrows} file   Tab view   p pause   q end the trace"
    ))
}

/// One column of the table of files.
pub(super) struct Column {
    heading: &'static str,
    width: u16,
    cell: fn(&FileLine) -> String,
}

pub(super) const fn column(
    heading: &'static str,
    width: u16,
    cell: fn(&FileLine) -> String,
) -> Column {
    Column {
        heading,
        width,
        cell,
    }
}

static FILE_COLUMNS: [Column; 9] = [
    column("role", 13, |file| file.role().into()),
    column("reads/s", 8, |file| format_rate(file.rates.reads)),
    column("writes/s", 8, |file| format_rate(file.rates.writes)),
    column("MB/s", 7, |file| format_mb(file.rates.bytes())),
    column("p50", 8, |file| {
        latency(file.latency_ns.map(|(p50, _)| p50))
    }),
    column("p99", 8, |file| {
        latency(file.latency_ns.map(|(_, p99)| p99))
    }),
    column("in cache", 8, |file| hit_share(&file.rates)),
    column("syncs/s", 7, |file| format_rate(file.rates.syncs)),
    column("pattern", 11, |file| file.pattern.into()),
];
const NAME_WIDTH_MIN: u16 = 18;
/// Columns that are dropped first where the terminal is too narrow for all.
const DISPENSABLE: [&str; 4] = ["role", "syncs/s", "p50", "writes/s"];

pub(super) fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| NOT_KNOWN.into(), format_ns)
}

/// Returns the columns that fit beside a name; the `dispensable` ones are dropped first.
pub(super) fn columns_for(
    width: u16,
    columns: &'static [Column],
    dispensable: &[&str],
) -> Vec<&'static Column> {
    let mut shown: Vec<&Column> = columns.iter().collect();
    for heading in dispensable {
        let others: u16 = shown.iter().map(|column| column.width + 1).sum();
        if others + NAME_WIDTH_MIN <= width {
            break;
        }
        shown.retain(|column| column.heading != *heading);
    }
    shown
}

fn files(frame: &mut Frame<'_>, area: Rect, shown: &LiveSnapshot, controls: &Controls) {
    let columns = columns_for(area.width, &FILE_COLUMNS, &DISPENSABLE);
    let files: Vec<&FileLine> = shown.files.iter().collect();
    let table = table(&files, &columns)
        .row_highlight_style(SELECTED)
        .highlight_symbol("> ");
    let selected = (!shown.files.is_empty()).then(|| controls.selected_index(shown));
    let mut state = TableState::default().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// Returns a line per file: its name and the columns.
pub(super) fn table(files: &[&FileLine], columns: &[&Column]) -> Table<'static> {
    let widths = std::iter::once(Constraint::Min(NAME_WIDTH_MIN)).chain(
        columns
            .iter()
            .map(|column| Constraint::Length(column.width)),
    );
    let headings = std::iter::once("file").chain(columns.iter().map(|column| column.heading));
    let rows = files.iter().map(|file| {
        let cells = columns.iter().map(|column| (column.cell)(file));
        Row::new(std::iter::once(visible(&file.name())).chain(cells))
    });
    let headings = headings.map(Cell::from).collect::<Row<'_>>();
    Table::new(rows, widths).header(headings.style(EMPHASIS))
}

const DISK_COLUMNS: [&str; 7] = [
    "disk",
    "reads/s",
    "MB/s read",
    "writes/s",
    "MB/s written",
    "flushes/s",
    "queue depth",
];

fn disks(frame: &mut Frame<'_>, area: Rect, shown: &LiveSnapshot) {
    let rows = shown.disks.iter().map(|disk| {
        let rates = &disk.rates;
        Row::new([
            disk.name.clone(),
            format_rate(rates.reads),
            format_mb(rates.read_bytes),
            format_rate(rates.writes),
            format_mb(rates.write_bytes),
            format_rate(rates.syncs),
            format_number(rates.in_flight),
        ])
    });
    let mut widths = DISK_COLUMNS.map(|_| Constraint::Length(13));
    // "nvme0n1 (259:0)".
    widths[0] = Constraint::Length(18);
    let table = Table::new(rows, widths).header(Row::new(DISK_COLUMNS).style(EMPHASIS));
    frame.render_widget(table, area);
}
