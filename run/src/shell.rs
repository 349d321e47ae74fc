//! Words in commands for a shell.

use std::fmt::Write as _;

/// Returns the word as a shell reads it back. A word with control characters, such as a line break in the name of a
/// collection, becomes `$'…'` (POSIX 2024; bash, ksh, zsh), so that it stays on its line and can be shown on a
/// terminal.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    if word.chars().any(char::is_control) {
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
            // Bytes, since not every shell knows `\u`. Always three digits: a digit may follow.
            c if c.is_control() => {
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
        let word = "a\nb\t'c'\\ \u{1b}[31m1\u{7f}\u{85}é";
        let quoted = shell_quoted(word);
        assert!(!quoted.chars().any(char::is_control), "{quoted}");
        let echo = format!("printf %s {quoted}");
        let output = std::process::Command::new("bash")
            .args(["-c", &echo])
            .output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), word);
    }
}
