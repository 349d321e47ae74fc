//! Quotes text for a shell.

/// Returns one word for a POSIX shell, quoted if needed.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
}
