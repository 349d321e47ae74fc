//! Prepares the command line for storage, without passwords.

use std::ffi::OsString;

use seekscope_server::redact_uri;

/// Returns whether this is a connection string, or one whose scheme is missing or misspelt. It is better to
/// redact a file name that looks like one than to store a password.
fn may_hold_secrets(argument: &str) -> bool {
    argument.contains("://")
        || argument
            .split_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
}

/// Options whose values are commands of the user, which may contain passwords in any form.
const COMMANDS: [&str; 5] = [
    "--command",
    "--continue-writers",
    "--pause-writers",
    "--prepare",
    "--restart-command",
];

/// Returns the arguments for storage: connection strings without user and password, and no commands.
pub fn stored_arguments(arguments: impl Iterator<Item = OsString>) -> Vec<String> {
    let stored = |a: OsString| {
        let text = a.to_string_lossy().into_owned();
        redacted_argument(&text).unwrap_or(text)
    };
    hide_values(arguments.map(stored).collect(), &COMMANDS)
}

/// Returns the argument without user and password if it may contain some: a connection string, also after a
/// name as in `-p mongodb.url=mongodb://…`.
pub fn redacted_argument(text: &str) -> Option<String> {
    if !may_hold_secrets(text) {
        return None;
    }
    let uri_at = text
        .find("mongodb://")
        .or_else(|| text.find("mongodb+srv://"));
    let (name, uri) = text.split_at(uri_at.unwrap_or(0));
    Some(match name.ends_with('=') {
        true => format!("{name}{}", redact_uri(uri)),
        false => redact_uri(text),
    })
}

/// Hides the values of these options.
fn hide_values(mut arguments: Vec<String>, options: &[&str]) -> Vec<String> {
    const HIDDEN: &str = "...";
    let mut follows = false;
    for argument in &mut arguments {
        let option = options.iter().find(|option| {
            let rest = argument.strip_prefix(**option);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        });
        match option {
            _ if follows => *argument = HIDDEN.into(),
            Some(option) if argument.len() > option.len() => {
                *argument = format!("{option}={HIDDEN}");
            }
            _ => {}
        }
        follows = !follows && option.is_some_and(|option| argument == option);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_not_kept() {
        let typed = [
            "reorder",
            "a.b",
            "--pause",
            "sh -p geheim",
            "--continue=sh -p geheim",
            "--paused",
        ];
        let stored = hide_values(typed.map(String::from).to_vec(), &["--pause", "--continue"]);
        assert_eq!(
            stored,
            [
                "reorder",
                "a.b",
                "--pause",
                "...",
                "--continue=...",
                "--paused"
            ]
        );
        let odd = ["--pause", "--pause", "x"].map(String::from).to_vec();
        assert_eq!(hide_values(odd, &["--pause"]), ["--pause", "...", "x"]);
    }

    #[test]
    fn names_before_connection_strings_stay() {
        let redacted = |text| redacted_argument(text).unwrap();
        let shown = redacted("-pmongodb.url=mongodb://u:secret@h:1/?w=1");
        assert!(
            shown.starts_with("-pmongodb.url=mongodb://") && shown.ends_with("h:1/?w=1"),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(redacted("mongodb://u:secret@h/"), "mongodb://h/");
        assert!(!redacted("mongodb.url=u:secret@h/").contains("secret"));
        assert_eq!(redacted_argument("recordcount=1"), None);
    }
}
