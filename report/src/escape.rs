//! Makes text from elsewhere safe to show.
//!
//! The templates turn `<`, `>`, `&` and `"` into entities. The remaining danger is what a reader cannot see:
//! control characters, and marks that reverse the direction of the text around them. [`visible`] names them. It is
//! applied once to finished markup, rather than to each name: the templates themselves hold no such character, line
//! breaks included, so none can be missed.

pub(crate) use seekscope_run::visible;
use serde::Serialize;

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
    use seekscope_run::misleads;

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
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("abcdefghij", 6), "abc…hij");
        assert_eq!(shortened("äöü", 3), "äöü");
    }
}
