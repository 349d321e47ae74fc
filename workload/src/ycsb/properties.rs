//! Parses Java's `.properties` text like `java.util.Properties.load`.

use std::collections::BTreeMap;

use super::YcsbError;

/// Names and their values; a later one replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Handles comments (`#`, `!`), continued lines, the separators `=`, `:` and blanks, and escapes. The
    /// only error is a `\u` without four hexadecimal digits, as in Java.
    pub fn parse(text: &str) -> Result<Self, YcsbError> {
        let mut properties = Self::default();
        for (line, logical) in logical_lines(text) {
            let (name, value) = split(&logical);
            let unescape = |part| unescaped(part).ok_or(YcsbError::Escape { line });
            properties.set(unescape(name)?, unescape(value)?);
        }
        Ok(properties)
    }

    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds all of `other`'s, as with several consecutive `-P` and `-p`.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns them in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Returns lines with their continuations, without comments and empty ones; each with the number of its
/// first.
fn logical_lines(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    // Java ends lines at \n, \r and \r\n; the empty lines that \r\n produces here do no harm, but a continued
    // line must not meet them.
    let mut lines = text
        .split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
        .enumerate();
    std::iter::from_fn(move || {
        loop {
            let (number, line) = lines.next()?;
            let start = line.trim_start_matches(BLANKS);
            if start.is_empty() || start.starts_with(['#', '!']) {
                continue;
            }
            let mut logical = String::from(start);
            while is_continued(&logical) {
                logical.pop();
                let Some((_, next)) = lines.next() else { break };
                logical.push_str(next.trim_start_matches(BLANKS));
            }
            return Some((number + 1, logical));
        }
    })
}

const BLANKS: [char; 3] = [' ', '\t', '\x0C'];

/// Returns whether it ends in an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|&byte| byte == b'\\').count();
    backslashes % 2 == 1
}

/// Splits a line; the name ends at the first separator that is not escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line
        .char_indices()
        .find(|&(_, character)| {
            let separates = !escaped && (BLANKS.contains(&character) || "=:".contains(character));
            escaped = character == '\\' && !escaped;
            separates
        })
        .map_or(line.len(), |(at, _)| at);
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, value.trim_start_matches(BLANKS))
}

/// Resolves escapes; `None` for a `\u` without its digits.
fn unescaped(text: &str) -> Option<String> {
    // Two `\u` may form one character, so the text is assembled as UTF-16.
    let mut units = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let plain = match character {
            '\\' => match characters.next() {
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
                    units.push(unit);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0C',
                Some(other) => other,
                None => continue,
            },
            plain => plain,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        let properties = Properties::parse(text).unwrap();
        properties
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn reads_what_java_reads() {
        for (text, name, value) in [
            ("a=b", "a", "b"),
            ("  a  =  b  ", "a", "b  "),
            ("a:b", "a", "b"),
            ("a b", "a", "b"),
            ("a\t=\tb", "a", "b"),
            ("a = = b", "a", "= b"),
            ("a", "a", ""),
            ("a=b\\\n   c", "a", "bc"),
            ("a=b\\\r\n   c\r\n", "a", "bc"),
            ("a=b\\\\\n", "a", "b\\"),
            ("a\\=\\:\\ b=c", "a=: b", "c"),
            ("a=\\t\\n\\r\\f\\q", "a", "\t\n\r\x0Cq"),
            ("a=\\u00e4\\uD83D\\uDE00", "a", "ä😀"),
            ("# c\n! d\n\n \t# e\na=#b", "a", "#b"),
            ("a=1\na=2", "a", "2"),
            ("=b", "", "b"),
            ("a=b\\", "a", "b"),
        ] {
            assert_eq!(parsed(text), [pair(name, value)], "{text:?}");
        }
        assert_eq!(
            Properties::parse("a=1\nb=\\u12g4"),
            Err(YcsbError::Escape { line: 2 })
        );
        assert!(Properties::parse("a=\\u+123").is_err());
    }

    /// Returns a text that Java's `store` would write for any pair.
    fn escaped(text: &str) -> String {
        text.chars()
            .map(|character| match character {
                '\t' => "\\t".into(),
                '\n' => "\\n".into(),
                '\r' => "\\r".into(),
                '\x0C' => "\\f".into(),
                ' ' | '=' | ':' | '#' | '!' | '\\' => format!("\\{character}"),
                other => other.to_string(),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn reads_back_every_pair(pairs in proptest::collection::btree_map(".*", ".*", 0..8)) {
            let text: String = pairs
                .iter()
                .map(|(name, value)| format!("{}={}\n", escaped(name), escaped(value)))
                .collect();
            prop_assert_eq!(parsed(&text), pairs.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn no_text_is_too_odd(text in "(?s).*") {
            let _ = Properties::parse(&text);
        }
    }
}
