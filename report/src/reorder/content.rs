//! What a report of `reorder` says, in its order; terminal and HTML show the same.

use seekscope_run::{Outcome, ReorderMeasurement, ReorderTask, RunDocument};

use super::{sentences, tables};
use crate::escape::visible;
use crate::facts::quoted;
use crate::layout::sentences::disk_hint;
use crate::table::Table;

/// A paragraph, or a table.
pub(super) enum Part {
    Text(String),
    Table(Table),
}

/// Everything after the headline.
pub(super) fn parts(document: &RunDocument, record: &ReorderMeasurement) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(plan) = &record.plan {
        let planned = record.done.is_none();
        if planned {
            parts.push(Part::Text(sentences::verdict(plan)));
        }
        parts.push(Part::Table(tables::plan(plan)));
        let mut said = Vec::new();
        said.extend(plan.scan.as_ref().and_then(sentences::shared_table));
        said.extend(sentences::lasts(plan.writes.as_ref(), plan.lasts.as_ref()));
        if planned {
            said.extend(plan.scan.as_ref().map(sentences::compact));
            said.extend(sentences::blocking(&plan.blocking));
        }
        parts.extend(said.into_iter().map(Part::Text));
    }
    parts.extend(record.done.as_ref().map(tables::done).map(Part::Table));
    parts.extend(tables::before_and_after(record).map(Part::Table));
    let layout = record.before.as_ref().or(record.after.as_ref());
    let mut last = sentences::conclusion(record);
    last.extend(layout.map(disk_hint));
    last.extend(command(document, record));
    parts.extend(last.into_iter().map(Part::Text));
    parts
}

/// How to do what was planned.
fn command(document: &RunDocument, record: &ReorderMeasurement) -> Option<String> {
    if record.task != ReorderTask::Plan || document.outcome != Outcome::Ok {
        return None;
    }
    let uri = document.target.as_ref().map_or("URI", |t| t.uri.as_str());
    let by = match record.by.as_str() {
        "natural" => String::new(),
        keys => format!(" --by {}", quoted(&visible(keys))),
    };
    Some(format!(
        "Nothing was changed. To do it: seekscope reorder {} {}{by} --apply",
        quoted(&visible(uri)),
        quoted(&visible(&record.namespace))
    ))
}
