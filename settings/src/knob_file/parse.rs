//! Parses the format. Structures have no optional shapes, so that the TOML reader itself rejects unknown
//! fields and wrong types, with their place; what it cannot know is checked afterwards, with the line.

use std::collections::BTreeMap;

use seekscope_run::tune::KnobValue;
use seekscope_tune::space::{ChangeCost, Condition, Knob, Limit, Range, Risk, Scale, Space};
use serde::Deserialize;
use toml::Spanned;

use super::run_min::RunMinText;
use super::{KnobEntry, KnobFile, KnobFileError, Pinned, Preset, Route, route};
use crate::version::{Version, Versions};

const FILE_MAX_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    knob: Vec<Spanned<KnobText>>,
    #[serde(default)]
    preset: Vec<Spanned<PresetText>>,
    #[serde(default)]
    limit: Vec<Spanned<Limit>>,
    #[serde(default)]
    pinned: Vec<PinnedText>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TypeText {
    Float,
    Integer,
    Ordinal,
    Categorical,
    Bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnobText {
    name: String,
    #[serde(rename = "type")]
    kind: TypeText,
    low: Option<KnobValue>,
    high: Option<KnobValue>,
    scale: Option<Scale>,
    values: Option<Vec<f64>>,
    choices: Option<Vec<String>>,
    default: KnobValue,
    #[serde(default)]
    special: Vec<f64>,
    share_of: Option<String>,
    when: Option<Condition>,
    #[serde(default)]
    change: ChangeCost,
    #[serde(default)]
    risk: Risk,
    set: RouteText,
    config: Option<String>,
    config_factor: Option<f64>,
    #[serde(default)]
    unit: String,
    since: Option<Version>,
    until: Option<Version>,
    #[serde(default)]
    why: String,
    #[serde(default = "yes")]
    search: bool,
    #[serde(default)]
    percent_of_memory: bool,
    #[serde(default)]
    at_most_cpus: bool,
    #[serde(default)]
    not_in_sets: String,
    run_min: Option<RunMinText>,
}

fn yes() -> bool {
    true
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteText {
    engine: Option<String>,
    parameter: Option<String>,
    option: Option<String>,
    local: Option<String>,
    file: Option<String>,
    command: Option<String>,
    environment: Option<String>,
    key: Option<String>,
    suffix: Option<String>,
    read: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetText {
    name: String,
    values: BTreeMap<String, KnobValue>,
    since: Option<Version>,
    until: Option<Version>,
    #[serde(default)]
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedText {
    name: String,
    why: String,
}

pub(super) fn parse(text: &str) -> Result<KnobFile, KnobFileError> {
    if text.len() > FILE_MAX_BYTES {
        return Err(KnobFileError::Toml(format!(
            "the file has {} bytes; no file of knobs has more than {FILE_MAX_BYTES}",
            text.len()
        )));
    }
    let file: FileText = toml::from_str(text)
        .map_err(|error| KnobFileError::Toml(error.to_string().trim_end().to_owned()))?;
    let line_of = |byte: usize| 1 + text.bytes().take(byte).filter(|b| *b == b'\n').count();
    let mut result = KnobFile::default();
    for spanned in file.knob {
        let line = line_of(spanned.span().start);
        let knob = spanned.into_inner();
        let name = knob.name.clone();
        let entry = entry(knob).map_err(|why| KnobFileError::Entry {
            line,
            what: "knob",
            name: name.clone(),
            why,
        })?;
        if let Some(twin) = result.knobs.iter().find(|other| collides(other, &entry)) {
            return Err(KnobFileError::Entry {
                line,
                what: "knob",
                name,
                why: format!(
                    "the name is taken by another for {}; give each its own",
                    twin.versions
                ),
            });
        }
        result.knobs.push(entry);
    }
    for spanned in file.preset {
        let line = line_of(spanned.span().start);
        let preset = spanned.into_inner();
        result.presets.push(Preset {
            versions: versions(preset.since, preset.until).map_err(|why| KnobFileError::Entry {
                line,
                what: "preset",
                name: preset.name.clone(),
                why,
            })?,
            name: preset.name,
            values: preset.values,
            why: preset.why,
        });
    }
    result.limits = file.limit.into_iter().map(Spanned::into_inner).collect();
    let pinned = file.pinned.into_iter();
    result.pinned = pinned
        .map(|PinnedText { name, why }| Pinned { name, why })
        .collect();
    Ok(result)
}

/// Returns whether two knobs collide. Alternatives must be for different versions, or set differently (e.g. if a
/// parameter was renamed).
fn collides(a: &KnobEntry, b: &KnobEntry) -> bool {
    a.knob.name == b.knob.name && a.versions == b.versions && a.set == b.set
}

fn versions(since: Option<Version>, until: Option<Version>) -> Result<Versions, String> {
    match (since, until) {
        (Some(since), Some(until)) if until < since => Err(format!(
            "there is no version since {since} and until {until}"
        )),
        _ => Ok(Versions { since, until }),
    }
}

fn entry(text: KnobText) -> Result<KnobEntry, String> {
    for text in [&text.name, &text.unit, &text.why] {
        if text.chars().any(char::is_control) {
            return Err(format!("{text:?} holds control characters"));
        }
    }
    let set = route_of(&text.set)?;
    set.check()?;
    if let Some(path) = &text.config {
        route::check_config(path)?;
    }
    let factor = text.config_factor.unwrap_or(1.0);
    if !(factor.is_finite() && factor > 0.0) {
        return Err("`config_factor` must be above zero".into());
    }
    let knob = Knob {
        range: range(&text)?,
        name: text.name,
        default: text.default,
        special: text.special,
        share_of: text.share_of,
        when: text.when,
        change: text.change,
        risk: text.risk,
    };
    if knob.risk == Risk::Pinned {
        return Err("what risks anything (X) is not tuned; name it under [[pinned]]".into());
    }
    check_alone(&knob)?;
    check_texts(&knob, &set)?;
    if text.percent_of_memory && !matches!(knob.range, Range::Integer { .. }) {
        return Err("percent of memory are whole numbers".into());
    }
    if text.at_most_cpus && !matches!(knob.range, Range::Integer { .. }) {
        return Err("numbers of threads are whole numbers".into());
    }
    Ok(KnobEntry {
        knob,
        set,
        config: text.config,
        config_factor: factor,
        unit: text.unit,
        versions: versions(text.since, text.until)?,
        why: text.why,
        search: text.search,
        percent_of_memory: text.percent_of_memory,
        at_most_cpus: text.at_most_cpus,
        not_in_sets: text.not_in_sets,
        run_min: text.run_min.map(RunMinText::checked).transpose()?,
    })
}

/// Checks everything that does not depend on the knobs that this one refers to.
fn check_alone(knob: &Knob) -> Result<(), String> {
    let mut alone = knob.clone();
    alone.when = None;
    if alone.share_of.is_some() {
        // Its default is a value, but its bounds are shares: the default is checked once both knobs are
        // known.
        return Ok(());
    }
    Space::new(vec![alone], Vec::new())
        .map(|_| ())
        .map_err(|error| match error {
            seekscope_tune::space::SpaceError::Knob { why, .. } => why,
            other => other.to_string(),
        })
}

/// Checks texts, which end up in files, commands and WiredTiger's strings.
fn check_texts(knob: &Knob, set: &Route) -> Result<(), String> {
    let Range::Categorical { choices } = &knob.range else {
        return Ok(());
    };
    let keyed = matches!(
        set,
        Route::Engine { .. } | Route::Option { key: Some(_), .. }
    );
    for choice in choices {
        if keyed {
            crate::engine_string::check_value(choice)?;
        }
        if choice.chars().any(char::is_control) {
            return Err(format!("the choice {choice:?} holds control characters"));
        }
    }
    Ok(())
}

fn range(text: &KnobText) -> Result<Range, String> {
    let allowed: &[&str] = match text.kind {
        TypeText::Float | TypeText::Integer => &["low", "high", "scale"],
        TypeText::Ordinal => &["values"],
        TypeText::Categorical => &["choices"],
        TypeText::Bool => &[],
    };
    let given = [
        ("low", text.low.is_some()),
        ("high", text.high.is_some()),
        ("scale", text.scale.is_some()),
        ("values", text.values.is_some()),
        ("choices", text.choices.is_some()),
    ];
    for (name, given) in given {
        if given && !allowed.contains(&name) {
            return Err(format!("a knob of this type has no `{name}`"));
        }
        if !given && allowed.contains(&name) && name != "scale" {
            return Err(format!("`{name}` is missing"));
        }
    }
    let scale = text.scale.unwrap_or_default();
    let number = |value: &Option<KnobValue>| value.as_ref().and_then(KnobValue::number);
    Ok(match text.kind {
        TypeText::Float => Range::Float {
            low: number(&text.low).ok_or("`low` must be a number")?,
            high: number(&text.high).ok_or("`high` must be a number")?,
            scale,
        },
        TypeText::Integer => {
            let whole = |value: &Option<KnobValue>| match value {
                Some(KnobValue::Integer(value)) => Ok(*value),
                _ => Err("`low` and `high` must be whole numbers"),
            };
            Range::Integer {
                low: whole(&text.low)?,
                high: whole(&text.high)?,
                scale,
            }
        }
        TypeText::Ordinal => Range::Ordinal {
            values: text.values.clone().unwrap_or_default(),
        },
        TypeText::Categorical => Range::Categorical {
            choices: text.choices.clone().unwrap_or_default(),
        },
        TypeText::Bool => Range::Bool,
    })
}

fn route_of(text: &RouteText) -> Result<Route, String> {
    let named = [
        ("engine", &text.engine),
        ("parameter", &text.parameter),
        ("option", &text.option),
        ("local", &text.local),
        ("file", &text.file),
        ("command", &text.command),
        ("environment", &text.environment),
    ];
    let mut given = named
        .iter()
        .filter_map(|(kind, value)| value.as_ref().map(|value| (*kind, value.clone())));
    let (Some((kind, value)), None) = (given.next(), given.next()) else {
        let kinds: Vec<&str> = named.iter().map(|(kind, _)| *kind).collect();
        return Err(format!("`set` takes one of {}", kinds.join(", ")));
    };
    let extras = [
        ("key", text.key.is_some(), kind == "option"),
        (
            "suffix",
            text.suffix.is_some(),
            matches!(kind, "engine" | "option" | "local"),
        ),
        ("read", text.read.is_some(), kind == "command"),
    ];
    if let Some((name, ..)) = extras.iter().find(|(_, given, fits)| *given && !fits) {
        return Err(format!("`set` by {kind} has no `{name}`"));
    }
    let suffix = text.suffix.clone().unwrap_or_default();
    Ok(match kind {
        "engine" => Route::Engine { key: value, suffix },
        "parameter" => Route::Parameter { name: value },
        "option" => Route::Option {
            path: value,
            key: text.key.clone(),
            suffix,
        },
        "local" => Route::Local {
            name: value,
            suffix,
        },
        "file" => Route::File { path: value },
        "command" => Route::Command {
            set: value,
            read: text.read.clone(),
        },
        _ => Route::Environment { name: value },
    })
}
