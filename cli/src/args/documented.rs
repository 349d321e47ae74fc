//! The commands that the documentation shows, for the tests that try them.

use std::path::PathBuf;

/// Blocks of other languages than the shell's.
const OTHER_LANGUAGES: [&str; 6] = ["toml", "json", "js", "sql", "text", "python"];
/// What ends a command of the shell, or makes the rest somebody else's.
const SHELL_MARKS: [&str; 4] = ["|", ">", "&&", ";"];

/// A line of the shell in which seekscope is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentedCommand {
    /// Of the file, below the repository.
    pub page: String,
    /// As it stands there; lines continued with a backslash are joined.
    pub line: String,
}

fn repository() -> PathBuf {
    PathBuf::from("..")
}

/// Those of README.md and of the pages in `docs/`, in alphabetical order of the pages.
pub fn documented_commands() -> Vec<DocumentedCommand> {
    let root = repository();
    let pages = std::fs::read_dir(root.join("docs")).unwrap().flatten();
    let mut pages: Vec<String> = pages
        .map(|page| format!("docs/{}", page.file_name().to_string_lossy()))
        .filter(|page| page.ends_with(".md"))
        .collect();
    pages.push("README.md".into());
    pages.sort();
    let commands = pages.into_iter().flat_map(|page| {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        let lines = commands_of(&text).into_iter();
        lines.map(move |line| DocumentedCommand {
            page: page.clone(),
            line,
        })
    });
    commands.collect()
}

fn commands_of(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    // Inside of a block: is it the shell's?
    let mut block: Option<bool> = None;
    let mut begun = String::new();
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            let is_shell = !OTHER_LANGUAGES
                .iter()
                .any(|other| language.starts_with(other));
            block = if block.is_some() {
                None
            } else {
                Some(is_shell)
            };
            continue;
        }
        if block != Some(true) {
            continue;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if let Some(part) = line.strip_suffix('\\') {
            begun.push_str(part);
            continue;
        }
        let whole = std::mem::take(&mut begun) + line.trim_start();
        if arguments(&whole).is_some() {
            commands.push(whole);
        }
    }
    commands
}

/// What seekscope is called with in a line of the shell, quotes undone; `None` if it is not called.
pub fn arguments(line: &str) -> Option<Vec<String>> {
    let words = shell_words(line);
    let mut words = words
        .into_iter()
        .skip_while(|word| word != "seekscope")
        .skip(1);
    let first = words.next()?;
    let rest = words.take_while(|word| !SHELL_MARKS.contains(&word.as_str()));
    Some(std::iter::once(first).chain(rest).collect())
}

/// Words as a shell divides them; a comment ends the line, `$(…)` is one word.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut depth = 0;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') if depth == 0 => words.extend(word.take()),
            (None, c) => {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                word.get_or_insert_default().push(c);
            }
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_a_shell_would_read_them() {
        let text = "seekscope not this\n```\nseekscope top 'a b' --pid $(pgrep -x mongod)  # why\n\
                    echo '{}' | seekscope mongoperf | less\nls\n```\n```toml\nseekscope = 1\n```\n\
                    ```sh\n$ seekscope trace \\\n    export RUN > x\n```\n";
        let found: Vec<Vec<String>> = commands_of(text)
            .iter()
            .map(|line| arguments(line).unwrap())
            .collect();
        let expected: [&[&str]; 3] = [
            &["top", "a b", "--pid", "$(pgrep -x mongod)"],
            &["mongoperf"],
            &["trace", "export", "RUN"],
        ];
        assert_eq!(found, expected);
    }
}
