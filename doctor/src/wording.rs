//! Formats numbers and commands for findings: lengths of time, shares, and text quoted for where it is
//! pasted. Names of collections and members come from servers, so nothing goes into a command unquoted.

use seekscope_run::DiskAbility;
pub use seekscope_run::shell_quoted;
use seekscope_run::units::{format_count, format_ns, whole};

/// Returns words as they are listed in a sentence: "a, b and c".
pub(crate) fn listed(words: &[&str]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        _ => words.concat(),
    }
}

/// Formats a length of time with a suitable unit: "840 ms", "31.6 s", "12 min", "3.4 h", "2.1 days".
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "an unknown time".into();
    }
    match seconds {
        s if s < 120.0 => format_ns(nanoseconds(s)),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    whole(seconds * 1e9)
}

/// Returns "1 write", "2 writes".
pub fn counted(count: u64, of: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {of}{s}", format_count(count))
}

/// Formats a share (0..=1) as a percentage, with one more digit where it is small.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent != 0.0 && percent.abs() < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Returns the basis of figures for a disk.
pub(crate) fn disk_in_words(disk: Option<&DiskAbility>) -> &'static str {
    match disk {
        Some(disk) if disk.measured => "disk measured",
        Some(disk) if disk.seen => "disk as seen in this run",
        _ => "a typical disk",
    }
}

/// Returns the text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Returns whether this is the first field of a key pattern, as a record has it.
pub(crate) fn begins_with(keys: &str, field: &str) -> bool {
    keys.starts_with(&format!("{{{}:", javascript_text(field)))
}

/// Stands for a router of the server's cluster in commands, where none is known.
pub const SOME_ROUTER: &str = "mongodb://MONGOS/";
/// Stands for the primary of the server's set in commands, where it is not known.
pub(crate) const SOME_PRIMARY: &str = "mongodb://PRIMARY/";

/// Returns the command line that tries how a collection should be stored.
pub(crate) fn advise(uri: &str, namespace: &str) -> String {
    format!(
        "seekscope advise {} {}",
        shell_quoted(uri),
        shell_quoted(namespace)
    )
}

/// Returns the text as a JavaScript literal.
pub fn javascript_text(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the collection of `database.collection` as a mongosh expression.
pub fn mongosh_collection(namespace: &str) -> String {
    let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
    format!(
        "db.getSiblingDB({}).getCollection({})",
        javascript_text(database),
        javascript_text(collection)
    )
}

/// Returns a command line that has mongosh evaluate a script.
pub fn mongosh(uri: &str, script: &str) -> String {
    format!(
        "mongosh {} --eval {}",
        shell_quoted(uri),
        shell_quoted(script)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(counted(1, "look"), "1 look");
        assert_eq!(counted(1_200, "look"), "1,200 looks");
        assert_eq!(duration(0.84), "840 ms");
        assert_eq!(duration(31.6), "31.6 s");
        assert_eq!(duration(720.0), "12 min");
        assert_eq!(duration(3.4 * 3600.0), "3.4 h");
        assert_eq!(duration(180_000.0), "2.1 days");
        assert_eq!(duration(f64::NAN), "an unknown time");
        assert_eq!(
            (percent(0.031), percent(0.5)),
            ("3.1 %".into(), "50 %".into())
        );
    }

    #[test]
    fn hostile_names_stay_names() {
        assert_eq!(
            mongosh_collection("shop.a\"); db.dropDatabase(); (\"\n"),
            r#"db.getSiblingDB("shop").getCollection("a\"); db.dropDatabase(); (\"\u{a}")"#
        );
    }
}
