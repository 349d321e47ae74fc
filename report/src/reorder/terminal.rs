//! A plan or a reordering as plain text.

use seekscope_run::{Outcome, ReorderTask, RunDocument};

use super::{sentences, tables};
use crate::escape;
use crate::facts::quoted;
use crate::terminal::{limitations, visible};
use crate::text::{table_text, wrapped};
use crate::wording;

/// Renders it, `width` characters wide. Control characters in names are shown, not obeyed.
pub fn terminal(document: &RunDocument, width: u16) -> String {
    let mut paragraphs = Vec::new();
    if document.outcome != Outcome::Ok {
        paragraphs.push(wrapped(&wording::outcome(document), width, ""));
    }
    let Some(record) = &document.reorder else {
        return visible(&paragraphs.join("\n\n")) + "\n";
    };
    let mut say = |text: String| paragraphs.push(wrapped(&text, width, ""));
    sentences::headline(record).into_iter().for_each(&mut say);
    if let Some(plan) = record.plan.as_ref().filter(|_| record.done.is_none()) {
        say(sentences::verdict(plan));
    }
    if let Some(plan) = &record.plan {
        paragraphs.push(table_text(&tables::plan(plan), width));
        let mut about = Vec::new();
        about.extend(plan.scan.as_ref().and_then(sentences::shared_table));
        about.extend(sentences::lasts(plan.writes.as_ref(), plan.lasts.as_ref()));
        if record.done.is_none() {
            about.extend(plan.scan.as_ref().map(sentences::compact));
            about.extend(sentences::blocking(&plan.blocking));
        }
        paragraphs.extend(about.iter().map(|text| wrapped(text, width, "")));
    }
    if let Some(done) = &record.done {
        paragraphs.push(table_text(&tables::done(done), width));
    }
    paragraphs.extend(tables::before_and_after(record).map(|table| table_text(&table, width)));
    for text in sentences::conclusion(record) {
        paragraphs.push(wrapped(&text, width, ""));
    }
    if let Some(layout) = record.before.as_ref().or(record.after.as_ref()) {
        paragraphs.push(wrapped(
            &crate::layout::sentences::disk_hint(layout),
            width,
            "",
        ));
    }
    if record.task == ReorderTask::Plan && document.outcome == Outcome::Ok {
        let uri = document.target.as_ref().map_or("URI", |t| t.uri.as_str());
        let by = match record.by.as_str() {
            "natural" => String::new(),
            keys => format!(" --by {}", quoted(&escape::visible(keys))),
        };
        paragraphs.push(format!(
            "Nothing was changed. To do it: seekscope reorder {} {}{by} --apply",
            quoted(&escape::visible(uri)),
            quoted(&escape::visible(&record.namespace))
        ));
    }
    paragraphs.push(limitations(document));
    let text = paragraphs
        .iter()
        .map(|paragraph| paragraph.trim_end())
        .filter(|paragraph| !paragraph.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    visible(&text) + "\n"
}
