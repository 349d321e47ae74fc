//! Formats the recommended change as texts to be copied, and its undo.

use std::collections::BTreeMap;

use seekscope_run::shell_quoted;
use seekscope_run::tune::{KnobValue, KnobValues, TuneExports};
use seekscope_tune::space::{ChangeCost, Risk};

use crate::apply::same;
use crate::discovery::RUNTIME_CONFIG;
use crate::engine_string;
use crate::knob_file::{ENGINE_CONFIG, KnobEntry, Route};
use crate::mongod_conf::{Setting, edited};
use crate::script::with_value;

/// A knob that changes, and one of its two values.
type Change<'a> = (&'a KnobEntry, &'a KnobValue);

/// Returns what to write where, to go from `baseline` to `recommended` and back. `configured` are the
/// server's texts for WiredTiger ([`crate::Discovered::configured`]): their other settings are kept.
pub fn exports(
    entries: &[KnobEntry],
    configured: &BTreeMap<String, String>,
    baseline: &KnobValues,
    recommended: &KnobValues,
) -> TuneExports {
    let mut there: Vec<Change<'_>> = Vec::new();
    let mut back: Vec<Change<'_>> = Vec::new();
    for entry in entries {
        let name = &entry.knob.name;
        let before = baseline.get(name).unwrap_or(&entry.knob.default);
        if let Some(after) = recommended.get(name).filter(|after| !same(after, before)) {
            there.push((entry, after));
            back.push((entry, before));
        }
    }
    let risks = there.iter().zip(&back);
    TuneExports {
        mongod_conf: mongod_conf(&there, configured),
        set_parameter: set_parameter(&there),
        shell: there.iter().filter_map(shell).collect(),
        undo_mongod_conf: mongod_conf(&back, configured),
        undo_set_parameter: set_parameter(&back),
        undo_shell: back.iter().filter_map(shell).collect(),
        risks: risks
            .filter_map(|((entry, after), (_, before))| risk(entry, before, after))
            .collect(),
    }
}

/// Returns the knob's permanent place in the configuration file.
fn setting((entry, value): &Change<'_>) -> Option<Setting> {
    let in_text = |path: &str, key: &str, suffix: &str| Setting {
        path: path.into(),
        key: Some(key.into()),
        suffix: suffix.into(),
        value: (*value).clone(),
    };
    let plain = |path: &str, value: KnobValue| Setting {
        path: path.into(),
        key: None,
        suffix: String::new(),
        value,
    };
    match (&entry.set, entry.config.as_deref()) {
        (Route::Engine { key, suffix }, None | Some(ENGINE_CONFIG)) => {
            Some(in_text(ENGINE_CONFIG, key, suffix))
        }
        (_, Some(path)) => Some(plain(path, scaled(value, entry.config_factor))),
        (Route::Parameter { name }, None) => {
            Some(plain(&format!("setParameter.{name}"), (*value).clone()))
        }
        (
            Route::Option {
                path,
                key: Some(key),
                suffix,
            },
            None,
        ) => Some(in_text(path, key, suffix)),
        (Route::Option { path, suffix, .. }, None) => Some(Setting {
            suffix: suffix.clone(),
            ..plain(path, (*value).clone())
        }),
        _ => None,
    }
}

fn scaled(value: &KnobValue, factor: f64) -> KnobValue {
    match value.number() {
        Some(number) if factor != 1.0 => KnobValue::Float(number * factor),
        _ => value.clone(),
    }
}

fn mongod_conf(changes: &[Change<'_>], configured: &BTreeMap<String, String>) -> String {
    let settings: Vec<Setting> = changes.iter().filter_map(setting).collect();
    let present = configured.iter();
    let present = present
        .filter(|(path, _)| settings.iter().any(|s| s.path == **path))
        .map(|(path, text)| Setting {
            path: path.clone(),
            key: None,
            suffix: String::new(),
            value: KnobValue::Text(text.clone()),
        });
    let all: Vec<Setting> = present.chain(settings.iter().cloned()).collect();
    if all.is_empty() {
        return String::new();
    }
    // A server's configuration may not be valid text: the change alone is still worth showing.
    edited("", &all)
        .or_else(|_| edited("", &settings))
        .unwrap_or_else(|why| format!("# {why}\n"))
}

fn set_parameter(changes: &[Change<'_>]) -> Vec<String> {
    let line = |name: &str, value: String| {
        format!("db.adminCommand({{ setParameter: 1, {name}: {value} }})")
    };
    let mut lines = Vec::new();
    let mut engine = Vec::new();
    for (entry, value) in changes {
        match &entry.set {
            Route::Engine { key, suffix } => {
                if let Ok(text) = engine_string::value_text(value, suffix) {
                    engine.push((key.clone(), text));
                }
            }
            Route::Parameter { name } if entry.knob.change == ChangeCost::Runtime => {
                lines.push(line(name, script_value(value)));
            }
            _ => {}
        }
    }
    if !engine.is_empty()
        && let Ok(text) = engine_string::set_all("", &engine)
    {
        lines.push(line(RUNTIME_CONFIG, script_value(&KnobValue::Text(text))));
    }
    lines
}

/// Formats a value as JavaScript.
fn script_value(value: &KnobValue) -> String {
    match value {
        KnobValue::Text(text) => serde_json::Value::String(text.clone()).to_string(),
        other => other.to_string(),
    }
}

fn shell((entry, value): &Change<'_>) -> Option<String> {
    let value = value.to_string();
    match &entry.set {
        Route::File { path } => Some(format!(
            "echo {} | sudo tee {}",
            shell_quoted(&value),
            shell_quoted(path)
        )),
        Route::Command { set, .. } => Some(with_value(set, &value)),
        Route::Local { name, suffix } => Some(format!(
            "# start option of the server: {name}={value}{suffix}"
        )),
        Route::Environment { name } => Some(format!("export {name}={}", shell_quoted(&value))),
        _ => None,
    }
}

fn risk(entry: &KnobEntry, before: &KnobValue, after: &KnobValue) -> Option<String> {
    let what = match entry.knob.risk {
        Risk::Performance => return None,
        Risk::Memory => "memory: the server or its host may run out of it",
        Risk::Durability => "durability: a crash may lose more, or take longer to recover from",
        Risk::Availability => "availability: operations may fail or mean something else",
        Risk::Pinned => "anything",
    };
    let unit = if entry.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", entry.unit)
    };
    Some(format!(
        "{} from {before} to {after}{unit} risks {what}. {}",
        entry.knob.name, entry.why
    ))
}
