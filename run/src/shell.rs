//! Words in commands for a shell.

use std::fmt::Write as _;

use crate::visible::misleads;

/// Returns the word as a shell reads it back. A word with characters that a reader does not see, such as a line break or
/// a mark of direction in the name of a collection, becomes `$'…'` (POSIX 2024; bash, ksh, zsh), so that it stays on its
/// line, and reaches the shell unchanged when it was shown on a terminal or a page.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    if word.chars().any(misleads) {
        return escaped(word);
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn escaped(word: &str) -> String {
    let mut text = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\'' | '\\' => text.extend(['\\', c]),
            // Bytes, since not every shell knows `\u`, and bash knows no character beyond ASCII by it where the locale is
            // C. Always three digits: a digit may follow.
            c if misleads(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_one_word() {
        assert_eq!(shell_quoted("mongodb://db1:27017/"), "mongodb://db1:27017/");
        assert_eq!(shell_quoted("a'; rm -rf /"), r"'a'\''; rm -rf /'");
        assert_eq!(shell_quoted(""), "''");
    }

    #[test]
    fn control_characters_are_escaped_and_read_back() {
        read_back("a\nb\t'c'\\ \u{1b}[31m1\u{7f}\u{85}é");
    }

    #[test]
    fn marks_of_direction_are_escaped_and_read_back() {
        read_back("shop.b\u{202e}evil'\u{200b}7\u{2028}\u{feff}");
        let quoted = shell_quoted("shop.b\u{202e}evil");
        assert_eq!(quoted, r"$'shop.b\342\200\256evil'");
    }

    /// Whatever the locale of the reader's shell is.
    fn read_back(word: &str) {
        let quoted = shell_quoted(word);
        assert!(!quoted.chars().any(misleads), "{quoted}");
        let echo = format!("printf %s {quoted}");
        for locale in ["C", "C.UTF-8"] {
            let mut bash = std::process::Command::new("bash");
            let output = bash.args(["-c", &echo]).env("LC_ALL", locale).output();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), word);
        }
    }
}
