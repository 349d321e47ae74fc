//! Text from elsewhere, such as names of files and collections, made safe to show: a reader sees what would give orders
//! to a terminal, or pass for something else.

use std::fmt::Write as _;

/// Replaces line breaks and misleading invisible characters by their names, e.g. `\n` and `\u{202e}`, so that the text
/// is one line whose characters are all seen.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if misleads(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns whether it is a control character, direction mark, line separator or zero-width space.
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_hides() {
        assert_eq!(visible("a\u{202e}b\nc\u{7}"), "a\\u{202e}b\\nc\\u{7}");
        assert_eq!(
            visible("\r\t\u{85}\u{2028}\u{2029}\u{1b}"),
            "\\r\\t\\u{85}\\u{2028}\\u{2029}\\u{1b}"
        );
        assert_eq!(visible("naïve Ωλ 数"), "naïve Ωλ 数");
    }
}
