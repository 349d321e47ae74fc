//! Provides what every text for a terminal needs: visible control characters, and what was not measured.

use seekscope_run::RunDocument;

/// Returns what the run could not measure, a paragraph each.
pub(crate) fn limitations(document: &RunDocument) -> String {
    let mut lines = Vec::new();
    for limitation in crate::wording::limitations(document) {
        lines.push(format!(
            "Missing: {}\n  because {}",
            limitation.what, limitation.why
        ));
        if !limitation.remedy.is_empty() {
            lines.push(format!("  remedy: {}", limitation.remedy));
        }
    }
    lines.join("\n")
}

/// Makes control characters visible; line breaks stay. Names come from servers and file systems: an escape
/// sequence must not reach the terminal.
pub fn visible(text: &str) -> String {
    text.split('\n')
        .map(crate::escape::visible)
        .collect::<Vec<_>>()
        .join("\n")
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
}
