//! Makes text from elsewhere safe to show.
//!
//! The templates turn `<`, `>`, `&` and `"` into entities. The remaining danger is what a reader cannot see:
//! control characters, and marks that reverse the direction of the text around them.

use serde::Serialize;

/// Replaces misleading invisible characters by their names, e.g. `\u{202e}`.
///
/// Applied once to finished markup, rather than to each name: the templates themselves hold no such
/// character, line breaks included, so none can be missed.
pub(crate) fn visible(markup: &str) -> String {
    let mut out = String::with_capacity(markup.len());
    for c in markup.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if misleads(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Is it a control character, direction mark, line separator or zero-width space?
fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns JSON for the inside of a `<script>` element: it can neither end the element nor open another.
pub(crate) fn json_block(value: &impl Serialize) -> String {
    // Only types of this module are passed in, and all of them serialise.
    let json = serde_json::to_string(value).unwrap_or_default();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Shortens to at most `limit` characters by leaving out the middle, for menus, where a name must fit.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_string();
    }
    let half = limit / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use maud::html;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_breaks_out(text in any::<String>()) {
            let markup = visible(&html! { p title=(text) { (text) } }.into_string());
            let inner = markup.strip_prefix("<p title=\"").and_then(|m| m.strip_suffix("</p>")).unwrap();
            // One quote ends the attribute, one bracket the tag; the text adds none.
            prop_assert_eq!(inner.matches('"').count(), 1);
            prop_assert_eq!(inner.matches('>').count(), 1);
            prop_assert!(!inner.contains('<'));
            prop_assert!(!markup.chars().any(misleads));
        }

        #[test]
        fn json_cannot_end_its_element_and_reads_back(text in any::<String>()) {
            let block = json_block(&text);
            prop_assert!(!block.contains(['<', '>', '&']));
            prop_assert_eq!(serde_json::from_str::<String>(&block).unwrap(), text);
        }
    }

    #[test]
    fn shows_what_hides() {
        assert_eq!(visible("a\u{202e}b\nc\u{7}"), "a\\u{202e}b\\nc\\u{7}");
        assert_eq!(visible("naïve Ωλ 数"), "naïve Ωλ 数");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("abcdefghij", 6), "abc…hij");
        assert_eq!(shortened("äöü", 3), "äöü");
    }
}
