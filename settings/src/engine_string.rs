//! Reads and edits WiredTiger's configuration texts: `eviction=(threads_max=8),eviction_target=80`. Keys in
//! groups are named with dots here: `eviction.threads_max`.

use std::borrow::Cow;

use seekscope_run::tune::KnobValue;
use seekscope_wiredtiger::config::{Value, find, pairs};

/// Rejects text that would end the value and begin something else.
pub(crate) fn check_value(text: &str) -> Result<(), String> {
    let safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'+' | b'/');
    (!text.is_empty() && text.bytes().all(safe))
        .then_some(())
        .ok_or_else(|| format!("{text:?} cannot stand in a configuration text of WiredTiger"))
}

/// Formats the value for the text.
pub(crate) fn value_text(value: &KnobValue, suffix: &str) -> Result<String, String> {
    let text = format!("{value}{suffix}");
    check_value(&text)?;
    Ok(text)
}

/// Returns the text at a key.
pub(crate) fn lookup(text: &str, key: &str) -> Option<String> {
    let mut text = Cow::Borrowed(text);
    for part in key.split('.') {
        let found = find(&text, part).ok()??.text().into_owned();
        text = Cow::Owned(found);
    }
    Some(text.into_owned())
}

/// Returns the text with keys set, and everything else unchanged.
///
/// # Errors
/// Returns an error if the text is not WiredTiger's, or a value would break it.
pub(crate) fn set_all(text: &str, settings: &[(String, String)]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (key, value) in settings {
        check_value(value)?;
        let path: Vec<&str> = key.split('.').collect();
        text = set(&text, &path, value)?;
    }
    Ok(text)
}

fn set(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    let Some((first, rest)) = path.split_first() else {
        return Ok(value.to_owned());
    };
    let mut items: Vec<String> = Vec::new();
    let mut group = String::new();
    for pair in pairs(text) {
        let (key, old) = pair.map_err(|error| error.to_string())?;
        if key.text() == *first {
            // Of two equal keys, the engine uses the last.
            group = old.text().into_owned();
        } else if old == Value::Absent {
            items.push(raw(key));
        } else {
            items.push(format!("{}={}", raw(key), raw(old)));
        }
    }
    items.push(if rest.is_empty() {
        format!("{first}={value}")
    } else {
        format!("{first}=({})", set(&group, rest, value)?)
    });
    Ok(items.join(","))
}

fn raw(value: Value<'_>) -> String {
    match value {
        Value::Absent => String::new(),
        Value::Bare(text) => text.to_owned(),
        Value::Quoted(text) => format!("\"{text}\""),
        Value::Nested(text) => format!("({text})"),
    }
}

/// Parses a text as a value of a knob: without its suffix, in the type that it looks like. Sizes are
/// converted to the suffix's unit if that is one.
pub(crate) fn parse_value(text: &str, suffix: &str) -> KnobValue {
    let bytes = |text: &str| Value::Bare(text).size_bytes();
    if let Some(unit) = (!suffix.is_empty())
        .then(|| bytes(&format!("1{suffix}")))
        .flatten()
        && let Some(size) = bytes(text)
        && let Ok(count) = i64::try_from(size / unit)
    {
        return KnobValue::Integer(count);
    }
    typed(text.strip_suffix(suffix).unwrap_or(text))
}

/// Converts a text to the type that it looks like.
pub(crate) fn typed(text: &str) -> KnobValue {
    if let Ok(whole) = text.parse::<i64>() {
        return KnobValue::Integer(whole);
    }
    if let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        return KnobValue::Float(number);
    }
    match text {
        "true" => KnobValue::Bool(true),
        "false" => KnobValue::Bool(false),
        other => KnobValue::Text(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    #[test]
    fn groups_are_joined_and_the_rest_stays() {
        let settings = [
            setting("eviction.threads_max", "8"),
            setting("eviction_target", "70"),
            setting("eviction.threads_min", "2"),
        ];
        assert_eq!(
            set_all("", &settings).unwrap(),
            "eviction_target=70,eviction=(threads_max=8,threads_min=2)"
        );
        let text = r#"log=(path="a,b",x=[1,2]),flag,eviction_target=60,eviction_target=65"#;
        let merged = set_all(text, &settings[1..2]).unwrap();
        assert_eq!(
            merged,
            r#"log=(path="a,b",x=[1,2]),flag,eviction_target=70"#
        );
        assert_eq!(lookup(text, "eviction_target").as_deref(), Some("65"));
        assert_eq!(lookup(&merged, "log.path").as_deref(), Some("a,b"));
        assert_eq!(lookup(&merged, "log.none"), None);
        assert!(set_all("a=(b", &settings).is_err());
        for hostile in ["1,log=(enabled=false)", "a)", "", "x\"", "a b", "="] {
            assert!(set_all("", &[setting("k", hostile)]).is_err(), "{hostile}");
        }
    }

    #[test]
    fn sizes_come_in_the_knobs_unit() {
        assert_eq!(parse_value("1GB", "MB"), KnobValue::Integer(1024));
        assert_eq!(parse_value("100MB", "MB"), KnobValue::Integer(100));
        assert_eq!(parse_value("5", ""), KnobValue::Integer(5));
        assert_eq!(parse_value("true", ""), KnobValue::Bool(true));
        assert_eq!(parse_value("best", ""), KnobValue::Text("best".into()));
        assert_eq!(parse_value("NaN", ""), KnobValue::Text("NaN".into()));
    }

    proptest! {
        #[test]
        fn what_is_set_is_found(
            text in "[a-c=,()]{0,12}", key in "[a-c](\\.[a-c]){0,2}", value in "[a-z0-9]{1,4}",
        ) {
            if let Ok(merged) = set_all(&text, &[(key.clone(), value.clone())]) {
                prop_assert_eq!(lookup(&merged, &key), Some(value), "{}", merged);
            }
        }

        #[test]
        fn hostile_texts_are_survived(text: String, key in "[a-z.]{0,8}") {
            let _ = lookup(&text, &key);
            let _ = set_all(&text, &[(key, "1".into())]);
        }
    }
}
