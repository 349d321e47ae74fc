//! Lines of a text that may be hostile: numbered, and of bounded length.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// The longest line that is read; longer ones are skipped. strace prints at most 32 bytes of each
/// buffer unless told otherwise.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Reads lines one by one, reusing the same memory.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

/// A line, without its line end.
pub(crate) struct Line<'a> {
    /// Line number, from 1.
    pub(crate) number: u64,
    /// The text, with bytes that are not UTF-8 replaced.
    pub(crate) text: Cow<'a, str>,
    pub(crate) state: LineState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineState {
    Whole,
    /// The text ends without a line end: its writer may have been stopped in the middle of the
    /// line.
    Last,
    /// Longer than the bound; only its beginning is present.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn of(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Returns the next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut limited = self.reader.by_ref().take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let state = if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
            LineState::Whole
        } else if self.buffer.len() as u64 == LINE_BYTES_MAX {
            self.reader.skip_until(b'\n')?;
            LineState::TooLong
        } else {
            LineState::Last
        };
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(Some(Line {
            number: self.number,
            text: String::from_utf8_lossy(&self.buffer),
            state,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let bound = usize::try_from(LINE_BYTES_MAX).unwrap();
        let text = format!("one\r\n\n{}\nlast", "x".repeat(3 * bound));
        let mut lines = Lines::of(text.as_bytes());
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.number, line.text.len(), line.state));
        }
        assert_eq!(
            seen,
            [
                (1, 3, LineState::Whole),
                (2, 0, LineState::Whole),
                (3, bound, LineState::TooLong),
                (4, 4, LineState::Last),
            ]
        );
    }
}
