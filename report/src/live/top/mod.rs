//! Implements `seekscope top`: who uses the disk right now, a frame at a time.
//!
//! A [`TopFrame`] holds what is known at one moment. [`draw()`] shows it on a terminal according to the
//! reader's [`TopControls`], [`plain_text`] gives the same as text, and [`TopOutput`] for programs.

mod body;
mod controls;
mod header;
mod json;
mod members;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout};
use seekscope_run::Limitation;

use super::draw::Glyphs;
use super::snapshot::LiveSnapshot;
use super::vitals::Vitals;

pub use controls::{Order, TopControls, TopKey};
pub use json::TopOutput;

/// What is known at one moment.
#[derive(Debug, Clone)]
pub struct TopFrame {
    /// What is watched, for people.
    pub subject: String,
    /// Time, CLOCK_REALTIME, ms.
    pub unix_ms: u64,
    /// Time since watching began, s.
    pub elapsed_s: f64,
    /// The disk under the data, e.g. "nvme0n1".
    pub disk: Option<String>,
    pub vitals: Vitals,
    /// The members of a set or cluster, where several are watched: `vitals` then holds what concerns the host alone.
    pub members: Vec<MemberVitals>,
    /// Files of the trace; `None` if there is none.
    pub files: Option<LiveSnapshot>,
    /// What cannot be shown, why, and how to enable it.
    pub limitations: Vec<Limitation>,
}

/// The state of one of several members.
#[derive(Debug, Clone)]
pub struct MemberVitals {
    /// What stands in front of its files' names.
    pub label: String,
    /// Whether its process runs on this host; of others only their own counters are known.
    pub is_here: bool,
    /// The disk under its data.
    pub disk: Option<String>,
    pub vitals: Vitals,
}

impl TopFrame {
    /// Returns how many files were used recently.
    pub fn files_used(&self) -> usize {
        body::lines(self, &TopControls::default()).len()
    }
}

/// Draws the frame to fill the terminal's.
pub fn draw(frame: &mut Frame<'_>, shown: &TopFrame, controls: &TopControls, glyphs: Glyphs) {
    let head = header::lines(shown, controls);
    let head_rows = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let rows = [
        Constraint::Length(head_rows),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, _, middle, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(ratatui::widgets::Paragraph::new(head), top);
    if controls.help {
        frame.render_widget(body::help(), middle);
    } else {
        body::files(frame, middle, shown, controls);
    }
    frame.render_widget(body::keys(controls, glyphs), foot);
}

/// Lines of a frame other than files: the header, its empty line, a table's heading, and notes.
const OTHER_LINES: u16 = 24;
/// Fewest columns of text for a file or pipe.
const WIDTH_MIN: u16 = 80;

/// Returns the frame as lines of text without trailing blanks, `width` columns wide, with at most `files_max`
/// files. What cannot be shown stands below it, each on a line that is as long as it must be.
pub fn plain_text(shown: &TopFrame, order: Order, width: u16, files_max: u16) -> String {
    let notes = body::notes(shown)
        .map(|note| note + "\n")
        .collect::<String>();
    let shown = &TopFrame {
        limitations: Vec::new(),
        ..shown.clone()
    };
    let controls = TopControls::sorted_by(order);
    let head = header::lines(shown, &controls);
    let head_rows = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let height = OTHER_LINES.saturating_add(files_max);
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width.max(WIDTH_MIN), height));
    let Ok(_) = terminal.draw(|frame| {
        let areas = [Constraint::Length(head_rows), Constraint::Min(0)];
        let [top, mut table] = Layout::vertical(areas).areas(frame.area());
        // The table's heading is a line, too.
        table.height = match shown.files {
            Some(_) => table.height.min(files_max.saturating_add(1)),
            None => table.height,
        };
        frame.render_widget(ratatui::widgets::Paragraph::new(head), top);
        body::files(frame, table, shown, &controls);
    });
    text_of(terminal.backend().buffer()) + &notes
}

/// Returns the buffer's lines, without trailing blanks and trailing empty lines.
fn text_of(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_string()
    };
    let lines: Vec<String> = buffer.content.chunks(width).map(line).collect();
    let used = lines.iter().rposition(|line| !line.is_empty());
    let used = used.map_or(0, |last| last + 1);
    lines[..used].join("\n") + "\n"
}
