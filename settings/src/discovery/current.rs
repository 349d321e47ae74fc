//! Finds the current value of a knob, by its route.

use std::collections::BTreeMap;

use mongodb::bson::{Bson, Document};
use seekscope_run::tune::KnobValue;
use seekscope_tune::space::Range;

use super::{ServerReplies, Source, Surroundings, value_of};
use crate::engine_string::{lookup, parse_value, typed};
use crate::host_files;
use crate::knob_file::{ENGINE_CONFIG, KnobEntry, Route};

/// The parameter that reconfigures WiredTiger; a server without it has a different engine.
pub(crate) const RUNTIME_CONFIG: &str = "wiredTigerEngineRuntimeConfig";
const MIB: i64 = 1 << 20;
/// How the names of the parameters for numbers of tickets end, and what the status calls them.
const TICKETS: [(&str, &str); 2] = [
    ("ConcurrentReadTransactions", "read"),
    ("ConcurrentWriteTransactions", "write"),
];

pub(super) fn current(
    entry: &mut KnobEntry,
    replies: &ServerReplies,
    surroundings: &Surroundings<'_>,
) -> Result<(KnobValue, Source), String> {
    let documented = entry.knob.default.clone();
    let or_documented = |found: Option<(KnobValue, Source)>| {
        Ok(found.unwrap_or((documented.clone(), Source::Documented)))
    };
    match entry.set.clone() {
        Route::Parameter { name } => match parameter(&name, replies) {
            Some(Some(value)) => Ok((value, Source::Server)),
            Some(None) => Err(format!("its parameter {name} is not a plain value here")),
            None => Err(format!("this server has no parameter {name}")),
        },
        Route::Engine { key, suffix } => {
            let Some(runtime) = replies.parameters.get(RUNTIME_CONFIG) else {
                return Err(format!("this server has no parameter {RUNTIME_CONFIG}"));
            };
            let runtime = runtime.as_str().unwrap_or_default();
            or_documented(engine(entry, &key, &suffix, runtime, replies))
        }
        Route::Option { path, key, suffix } => {
            if replies.options.is_empty() {
                return Err("the server does not say how it was started".into());
            }
            or_documented(configured(
                &replies.options,
                &path,
                key.as_deref(),
                &suffix,
                1.0,
            ))
        }
        Route::Local { name, .. } => {
            let options = surroundings
                .local
                .ok_or("it is a start option of a server of our own")?;
            let value = options.get(&name);
            or_documented(value.map(|value| (value.clone(), Source::StartOption)))
        }
        Route::File { path } => host_file(entry, &path, surroundings),
        Route::Command { .. } => match surroundings.scripts.get(&entry.knob.name) {
            Some(Ok(printed)) => Ok((as_knob(entry, printed.trim()), Source::Script)),
            Some(Err(why)) => Err(why.clone()),
            None => or_documented(None),
        },
        Route::Environment { .. } => or_documented(None),
    }
}

/// Returns a parameter's value, `Some(None)` if it is not a plain one. A server from 7.0 on says 0 for a number of
/// tickets that nobody has set, and takes no 0: what it uses is in its status.
fn parameter(name: &str, replies: &ServerReplies) -> Option<Option<KnobValue>> {
    let value = value_of(replies.parameters.get(name)?);
    let kind = TICKETS
        .iter()
        .find_map(|(end, kind)| name.ends_with(end).then_some(kind));
    match (&value, kind) {
        (Some(KnobValue::Integer(0)), Some(kind)) => Some(tickets(kind, replies)),
        _ => Some(value),
    }
}

/// Returns the number of tickets in use; from 8.0 on it is outside the engine's section.
fn tickets(kind: &str, replies: &ServerReplies) -> Option<KnobValue> {
    let sections = ["queues.execution", "wiredTiger.concurrentTransactions"];
    let total = |section: &str| at(&replies.status, &format!("{section}.{kind}.totalTickets"));
    let total = sections.into_iter().find_map(total)?;
    super::whole(total).map(KnobValue::Integer)
}

/// Prefers what was set at run time, then what was configured, then what the server reports.
fn engine(
    entry: &KnobEntry,
    key: &str,
    suffix: &str,
    runtime: &str,
    replies: &ServerReplies,
) -> Option<(KnobValue, Source)> {
    if let Some(text) = lookup(runtime, key) {
        return Some((parse_value(&text, suffix), Source::Server));
    }
    if key == "cache_size" {
        let cache = replies.status.get_document("wiredTiger").ok()?;
        let cache = cache.get_document("cache").ok()?;
        let bytes = super::whole(cache.get("maximum bytes configured")?)?;
        return Some((KnobValue::Integer(bytes / MIB), Source::Server));
    }
    if let Some(found) = configured(&replies.options, ENGINE_CONFIG, Some(key), suffix, 1.0) {
        return Some(found);
    }
    let path = entry
        .config
        .as_deref()
        .filter(|path| *path != ENGINE_CONFIG)?;
    configured(&replies.options, path, None, suffix, entry.config_factor)
}

/// Reads `getCmdLineOpts`, which has options of the command line in the same shape as those of the file.
fn configured(
    options: &Document,
    path: &str,
    key: Option<&str>,
    suffix: &str,
    factor: f64,
) -> Option<(KnobValue, Source)> {
    let value = value_of(at(options.get_document("parsed").ok()?, path)?)?;
    let value = match (key, value) {
        (Some(key), KnobValue::Text(text)) => parse_value(&lookup(&text, key)?, suffix),
        (Some(_), _) => return None,
        (None, value) => match value.number() {
            Some(number) if factor != 1.0 => KnobValue::Float((number / factor).round()),
            _ => value,
        },
    };
    Some((value, Source::Configured))
}

fn at<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let (folders, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut document = document;
    for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
        document = document.get_document(folder).ok()?;
    }
    document.get(last)
}

/// Returns WiredTiger's configuration texts with their paths in `mongod.conf`.
pub(super) fn configured_texts(options: &Document) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let Ok(parsed) = options.get_document("parsed") else {
        return texts;
    };
    for part in ["engineConfig", "collectionConfig", "indexConfig"] {
        let path = format!("storage.wiredTiger.{part}.configString");
        if let Some(Bson::String(text)) = at(parsed, &path) {
            texts.insert(path, text.clone());
        }
    }
    texts
}

fn host_file(
    entry: &mut KnobEntry,
    path: &str,
    surroundings: &Surroundings<'_>,
) -> Result<(KnobValue, Source), String> {
    let host = surroundings
        .host
        .ok_or("it is a file of the server's host, which is not this one or may not be set")?;
    let path = host.resolve(path).map_err(|error| error.to_string())?;
    let text = host.read(&path).map_err(|error| error.to_string())?;
    host.writable(&path).map_err(|error| error.to_string())?;
    if let (Some(offered), Range::Categorical { choices }) =
        (host_files::choices(&text), &mut entry.knob.range)
    {
        choices.retain(|choice| offered.contains(choice));
        if choices.len() < 2 {
            return Err(format!("{path} offers nothing to choose from"));
        }
    }
    let value = as_knob(entry, host_files::current(&text));
    entry.set = Route::File { path };
    Ok((value, Source::HostFile))
}

/// Converts to the knob's type; a choice is text even if it looks like a number.
fn as_knob(entry: &KnobEntry, text: &str) -> KnobValue {
    match entry.knob.range {
        Range::Categorical { .. } => KnobValue::Text(text.into()),
        _ => typed(text),
    }
}
