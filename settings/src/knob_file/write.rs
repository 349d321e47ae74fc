//! Writes the format, for people who will edit it.

use std::fmt::Write;

use seekscope_run::tune::KnobValue;
use seekscope_tune::space::{ChangeCost, Range, Risk, Scale};

use super::{KnobEntry, KnobFile, Route, RunMin};
use crate::version::Versions;

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn number(value: f64) -> String {
    toml::Value::Float(value).to_string()
}

fn value(value: &KnobValue) -> String {
    match value {
        KnobValue::Bool(value) => value.to_string(),
        KnobValue::Integer(value) => value.to_string(),
        KnobValue::Float(value) => number(*value),
        KnobValue::Text(text) => quoted(text),
    }
}

fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(write).collect();
    format!("[{}]", items.join(", "))
}

pub(super) fn change_letter(change: ChangeCost) -> &'static str {
    match change {
        ChangeCost::Runtime => "R",
        ChangeCost::Host => "H",
        ChangeCost::Restart => "S",
        ChangeCost::Reload => "L",
    }
}

pub(super) fn risk_letter(risk: Risk) -> &'static str {
    match risk {
        Risk::Performance => "P",
        Risk::Memory => "M",
        Risk::Durability => "D",
        Risk::Availability => "A",
        Risk::Pinned => "X",
    }
}

fn change_in_words(change: ChangeCost) -> &'static str {
    match change {
        ChangeCost::Runtime => "changes the running server",
        ChangeCost::Host => "changes the whole host",
        ChangeCost::Restart => "needs a restart of the server",
        ChangeCost::Reload => "needs the data to be loaded anew",
    }
}

fn risk_in_words(risk: Risk) -> &'static str {
    match risk {
        Risk::Performance => "risks performance only",
        Risk::Memory => "risks running out of memory",
        Risk::Durability => "risks durability or a long recovery (--allow-durability)",
        Risk::Availability => "risks failing operations (--allow-availability)",
        Risk::Pinned => "is never tuned",
    }
}

pub(super) fn range_in_words(entry: &KnobEntry) -> String {
    let knob = &entry.knob;
    let scaled = |scale: &Scale| match scale {
        Scale::Linear => "",
        Scale::Log => ", logarithmic",
    };
    let of = match &knob.share_of {
        Some(other) if matches!(knob.range, Range::Integer { .. }) => format!(" % of {other}"),
        Some(other) => format!(" times {other}"),
        None => String::new(),
    };
    let mut words = match &knob.range {
        Range::Float { low, high, scale } => format!("{low} to {high}{of}{}", scaled(scale)),
        Range::Integer { low, high, scale } => format!("{low} to {high}{of}{}", scaled(scale)),
        Range::Ordinal { values } => {
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            values.join(", ")
        }
        Range::Categorical { choices } => choices.join(", "),
        Range::Bool => "false, true".into(),
    };
    for special in &knob.special {
        let _ = write!(words, ", or {special}");
    }
    words
}

fn route(route: &Route) -> String {
    let with_suffix = |text: String, suffix: &str| match suffix {
        "" => text,
        suffix => format!("{text}, suffix = {}", quoted(suffix)),
    };
    let inner = match route {
        Route::Engine { key, suffix } => with_suffix(format!("engine = {}", quoted(key)), suffix),
        Route::Parameter { name } => format!("parameter = {}", quoted(name)),
        Route::Option { path, key, suffix } => {
            let mut text = format!("option = {}", quoted(path));
            if let Some(key) = key {
                let _ = write!(text, ", key = {}", quoted(key));
            }
            with_suffix(text, suffix)
        }
        Route::Local { name, suffix } => with_suffix(format!("local = {}", quoted(name)), suffix),
        Route::File { path } => format!("file = {}", quoted(path)),
        Route::Command { set, read } => {
            let mut text = format!("command = {}", quoted(set));
            if let Some(read) = read {
                let _ = write!(text, ", read = {}", quoted(read));
            }
            text
        }
        Route::Environment { name } => format!("environment = {}", quoted(name)),
    };
    format!("{{ {inner} }}")
}

fn range_fields(range: &Range) -> Vec<(&'static str, String)> {
    let scaled = |scale: &Scale| match scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
    };
    let bounds = |kind: &str, low: String, high: String, scale: &Scale| {
        vec![
            ("type", quoted(kind)),
            ("low", low),
            ("high", high),
            ("scale", quoted(scaled(scale))),
        ]
    };
    match range {
        Range::Float { low, high, scale } => bounds("float", number(*low), number(*high), scale),
        Range::Integer { low, high, scale } => {
            bounds("integer", low.to_string(), high.to_string(), scale)
        }
        Range::Ordinal { values } => vec![
            ("type", quoted("ordinal")),
            ("values", list(values, |value| number(*value))),
        ],
        Range::Categorical { choices } => vec![
            ("type", quoted("categorical")),
            ("choices", list(choices, |choice| quoted(choice))),
        ],
        Range::Bool => vec![("type", quoted("bool"))],
    }
}

fn run_min(least: &RunMin) -> String {
    match least {
        RunMin::Seconds(s) => format!("{{ s = {} }}", number(*s)),
        RunMin::Times { of, times, unit_s } => format!(
            "{{ of = {}, times = {}, unit_s = {} }}",
            quoted(of),
            number(*times),
            number(*unit_s)
        ),
    }
}

fn version_fields(versions: &Versions) -> Vec<(&'static str, String)> {
    let ends = [("since", versions.since), ("until", versions.until)];
    ends.into_iter()
        .filter_map(|(name, version)| Some((name, quoted(&version?.to_string()))))
        .collect()
}

fn knob(entry: &KnobEntry) -> String {
    let knob = &entry.knob;
    let mut text = String::new();
    for line in [
        entry.why.clone(),
        format!(
            "{}; it {}, and {}.",
            format!("{} {}", range_in_words(entry), entry.unit).trim_end(),
            change_in_words(knob.change),
            risk_in_words(knob.risk)
        ),
    ] {
        if !line.is_empty() {
            let _ = writeln!(text, "# {line}");
        }
    }
    text.push_str("[[knob]]\n");
    let mut fields = vec![("name", quoted(&knob.name))];
    fields.extend(range_fields(&knob.range));
    fields.push(("default", value(&knob.default)));
    if !knob.special.is_empty() {
        fields.push(("special", list(&knob.special, |special| number(*special))));
    }
    if let Some(other) = &knob.share_of {
        fields.push(("share_of", quoted(other)));
    }
    if let Some(when) = &knob.when {
        let is = list(&when.is, value);
        fields.push((
            "when",
            format!("{{ knob = {}, is = {is} }}", quoted(&when.knob)),
        ));
    }
    fields.push(("change", quoted(change_letter(knob.change))));
    fields.push(("risk", quoted(risk_letter(knob.risk))));
    fields.push(("set", route(&entry.set)));
    if let Some(path) = &entry.config {
        fields.push(("config", quoted(path)));
    }
    if entry.config_factor != 1.0 {
        fields.push(("config_factor", number(entry.config_factor)));
    }
    if !entry.unit.is_empty() {
        fields.push(("unit", quoted(&entry.unit)));
    }
    fields.extend(version_fields(&entry.versions));
    if !entry.why.is_empty() {
        fields.push(("why", quoted(&entry.why)));
    }
    if !entry.search {
        fields.push(("search", "false".into()));
    }
    if entry.percent_of_memory {
        fields.push(("percent_of_memory", "true".into()));
    }
    if entry.at_most_cpus {
        fields.push(("at_most_cpus", "true".into()));
    }
    if !entry.not_in_sets.is_empty() {
        fields.push(("not_in_sets", quoted(&entry.not_in_sets)));
    }
    if let Some(least) = &entry.run_min {
        fields.push(("run_min", run_min(least)));
    }
    for (name, value) in fields {
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

fn values<'a, V: 'a>(
    values: impl Iterator<Item = (&'a String, &'a V)>,
    write: impl Fn(&V) -> String,
) -> String {
    let values: Vec<String> = values
        .map(|(name, value)| format!("{} = {}", quoted(name), write(value)))
        .collect();
    format!("{{ {} }}", values.join(", "))
}

pub(super) fn to_toml(file: &KnobFile) -> String {
    let mut parts: Vec<String> = file.knobs.iter().map(knob).collect();
    for preset in &file.presets {
        let mut fields = vec![
            ("name", quoted(&preset.name)),
            ("values", values(preset.values.iter(), value)),
        ];
        fields.extend(version_fields(&preset.versions));
        if !preset.why.is_empty() {
            fields.push(("why", quoted(&preset.why)));
        }
        parts.push(table("preset", &fields));
    }
    for limit in &file.limits {
        parts.push(table(
            "limit",
            &[
                ("name", quoted(&limit.name)),
                ("weights", values(limit.weights.iter(), |w| number(*w))),
                ("at_most", number(limit.at_most)),
            ],
        ));
    }
    for pinned in &file.pinned {
        let fields = [("name", quoted(&pinned.name)), ("why", quoted(&pinned.why))];
        parts.push(table("pinned", &fields));
    }
    parts.join("\n")
}

fn table(kind: &str, fields: &[(&str, String)]) -> String {
    let mut text = format!("[[{kind}]]\n");
    for (name, value) in fields {
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}
