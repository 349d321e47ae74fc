//! Provides what every text for a terminal needs: visible control characters, and what was not measured.

use seekscope_run::RunDocument;

use crate::escape;

/// Returns what the run could not measure, a paragraph each. A line break in a name starts no line.
pub(crate) fn limitations(document: &RunDocument) -> String {
    let mut lines = Vec::new();
    for limitation in crate::wording::limitations(document) {
        lines.push(format!(
            "Missing: {}\n  because {}",
            escape::visible(&limitation.what),
            escape::visible(&limitation.why)
        ));
        if !limitation.remedy.is_empty() {
            lines.push(format!("  remedy: {}", escape::visible(&limitation.remedy)));
        }
    }
    lines.join("\n")
}

/// Makes control characters visible; line breaks stay, since texts of several lines pass through here as a whole. Names
/// come from servers and file systems: an escape sequence must not reach the terminal. A name that may hold a line
/// break goes through [`seekscope_run::visible`] where it is put into the text.
pub fn visible(text: &str) -> String {
    text.split('\n')
        .map(escape::visible)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Makes a message visible as [`visible`] does, and indents its lines after the first, unless they are: whatever it
/// quotes, no line of it passes for another message, on a terminal or in a log.
pub fn message(text: &str) -> String {
    let mut message = String::new();
    for (number, line) in visible(text).split('\n').enumerate() {
        if number > 0 {
            message.push('\n');
            if !line.is_empty() && !line.starts_with(' ') {
                message.push_str("  ");
            }
        }
        message.push_str(line);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(
            visible("a\u{1b}[2Jb\nc\u{202e}d"),
            "a\\u{1b}[2Jb\nc\\u{202e}d"
        );
    }

    #[test]
    fn only_the_first_line_of_a_message_begins_like_one() {
        assert_eq!(
            message("no shop.a\nseekscope: all is well\r\n  indented\n"),
            "no shop.a\n  seekscope: all is well\\r\n  indented\n"
        );
    }

    #[test]
    fn a_name_starts_no_line_of_what_was_not_measured() {
        let mut document = RunDocument::begin("layout", Vec::new());
        document.limitations.push(seekscope_run::Limitation {
            what: "the order of shop.a\nMissing: b".into(),
            why: "c\u{2028}d".into(),
            remedy: "e\tf".into(),
        });
        assert_eq!(
            limitations(&document),
            "Missing: the order of shop.a\\nMissing: b\n  because c\\u{2028}d\n  remedy: e\\tf"
        );
    }
}
