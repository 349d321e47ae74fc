//! Draws offset over time, in characters.

use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use seekscope_run::units::format_bytes;

use super::draw::Glyphs;
use super::snapshot::LiveSnapshot;
use super::window::SLICE_NS;
use crate::escape::{shortened, visible};

/// Shades from none to most, distinguishable without colour.
const UNICODE: [char; 6] = [' ', '·', '░', '▒', '▓', '█'];
const ASCII: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Characters for the offsets at the left.
const LABEL: usize = 10;
/// Lines above and below the map.
const FRAME_LINES: usize = 2;
const NAME_CHARS: usize = 60;

/// Draws the map of the snapshot's file, filling the area.
pub(super) fn picture(shown: &LiveSnapshot, area: Rect, glyphs: Glyphs) -> Paragraph<'static> {
    let rows = usize::from(area.height).saturating_sub(FRAME_LINES);
    let columns = usize::from(area.width).saturating_sub(LABEL + 1);
    let (Some(file), Some((_, map))) = (shown.shown_file(), &shown.map) else {
        return Paragraph::new("No file has been read or written yet.");
    };
    let picture = map.picture(shown.slice, columns, rows);
    let name = shortened(&visible(&file.name()), NAME_CHARS);
    let mut lines = vec![Line::raw(format!(
        "{name}: offset over time, darker is more calls"
    ))];
    if picture.cells.is_empty() {
        lines.push(Line::raw("Nothing with a known offset recently."));
        return Paragraph::new(lines);
    }
    let most = picture.cells.iter().flatten().copied().max().unwrap_or(0);
    for (row, cells) in picture.cells.iter().enumerate().rev() {
        let offset = format_bytes(picture.row_bytes.saturating_mul(row as u64));
        let marks: String = cells
            .iter()
            .map(|&count| glyph(count, most, glyphs))
            .collect();
        let edge = if glyphs == Glyphs::Unicode {
            '│'
        } else {
            '|'
        };
        lines.push(Line::raw(format!("{offset:>LABEL$}{edge}{marks}")));
    }
    let columns = picture.cells.first().map_or(0, Vec::len);
    let span_s = columns as f64 * SLICE_NS as f64 / 1e9;
    lines.push(Line::raw(format!(
        "{:LABEL$} {:<columns$}",
        "",
        axis(span_s, columns)
    )));
    Paragraph::new(lines)
}

/// Returns `60 s ago        now`, as wide as the map.
fn axis(span_s: f64, columns: usize) -> String {
    let past = format!("{span_s:.0} s ago");
    let now = columns.saturating_sub(past.len());
    format!("{past}{:>now$}", "now")
}

/// Chooses a shade by the logarithm of the count: one call is visible beside thousands.
fn glyph(count: u64, most: u64, glyphs: Glyphs) -> char {
    let marks: &[char] = match glyphs {
        Glyphs::Unicode => &UNICODE,
        Glyphs::Ascii => &ASCII,
    };
    let share = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "between 0 and the number of marks"
    )]
    let level = (share * (marks.len() - 1) as f64).ceil() as usize;
    marks
        .get(level.min(marks.len() - 1))
        .copied()
        .unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_is_visible_and_none_is_not() {
        for glyphs in [Glyphs::Unicode, Glyphs::Ascii] {
            assert_eq!(glyph(0, 1_000_000, glyphs), ' ');
            assert_ne!(glyph(1, 1_000_000, glyphs), ' ');
            assert_eq!(glyph(0, 0, glyphs), ' ');
        }
        assert_eq!(glyph(7, 7, Glyphs::Unicode), '█');
        assert_eq!(glyph(7, 7, Glyphs::Ascii), '@');
    }
}
