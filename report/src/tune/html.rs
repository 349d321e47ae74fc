//! A session as one HTML file. Nothing of it needs scripts.

use maud::{Markup, html};
use seekscope_run::{RunDocument, TuneRecord};

use super::exports::{Block, change, undo};
use super::runs::TRIALS_SHOWN;
use super::{convergence, duels, forest, heat, importance, response, runs, sentences, tables};
use crate::facts::{date, device_facts, target_facts};
use crate::html::facts::{again, limitations, measured_on};
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::table;
use crate::table::Table;
use crate::wording;

/// Response slices in a page.
const SLICES_DRAWN: usize = 32;

const SQL: &str = "SELECT purpose, arm, status, count(*) AS runs, avg(value) AS mean, \
    stddev(value) / avg(value) AS variation FROM 'trials.parquet' GROUP BY ALL ORDER BY mean DESC;";

/// Renders the report.
pub fn html(document: &RunDocument) -> String {
    let data = html! {
        "All numbers come from " code { "run.json" } " and " code { "trials.parquet" }
        " (a row for each run) in the run directory, which holds this report too. In DuckDB:"
    };
    let body = html! {
        header { (header(document)) }
        main {
            @if let Some(record) = &document.tune { (of_record(record)) }
            (limitations(document))
            (measured_on(document, &[
                ("Disk under the data", document.device.as_ref().map(device_facts)),
                ("Server", document.target.as_ref().map(target_facts)),
            ]))
            (again(document, &data, SQL))
        }
    };
    let title = format!("seekscope {}: better settings, proven", document.command);
    page(&title, body, &PageData::default(), &Blobs::default())
}

fn header(document: &RunDocument) -> Markup {
    html! {
        p.outcome data-outcome=(wording::outcome_word(document)) { bdi { (wording::outcome(document)) } }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match &document.tune {
                Some(record) => bdi { (capital(&sentences::headline(document, record))) },
                None => "Nothing was tuned in this run",
            }
        }
        p.meta { (date(document.started.realtime_ns)) }
    }
}

/// The sentence with a capital letter.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(rest).collect()
    })
}

fn of_record(record: &TuneRecord) -> Markup {
    html! {
        (verdict(record))
        (recommended(record))
        section #convergence {
            h2 { "How the search went" }
            @match convergence::figure(record) {
                Some(figure) => (figure),
                None => p.note { "No figure: no run gave a number." },
            }
            @if let Some(noise) = &record.noise { h3 { "Noise and drift" } p { (sentences::noise(noise)) } }
        }
        (which_knobs(record))
        (responses(record))
        (trials(record))
        section #ledger {
            h2 { "Where the time went" }
            (or_note(runs::ledger(record), "No times were recorded."))
        }
        section #knobs {
            h2 { "What was tuned" }
            (or_note(tables::knobs(record), "No knob was tuned."))
            @for caution in sentences::cautions(record) { p { bdi { (caution) } } }
            @if let Some(left_out) = tables::left_out(record) { h3 { "Left out" } (table(&left_out)) }
        }
    }
}

fn or_note(content: Option<Table>, note: &str) -> Markup {
    html! {
        @match content {
            Some(content) => (table(&content)),
            None => p.note { (note) },
        }
    }
}

fn verdict(record: &TuneRecord) -> Markup {
    html! {
        section #duel {
            @if record.restored == Some(false) {
                p.outcome data-outcome="changed" { (sentences::restored(record)) }
            }
            @if let Some(warning) = sentences::durability(record) { p.outcome data-outcome="durability" { bdi { (warning) } } }
            p { bdi { (sentences::goal(record)) } }
            h2 { "The duel" }
            @if let Some(figure) = forest::figure(record) { (figure) }
            (or_note(duels::table(record), "No duel was fought, so nothing is proven."))
            @if let Some(tests) = duels::tests(record) { (table(&tests)) }
            @if let Some(pairs) = duels::pairs(record) { details { summary { "Every pair" } (table(&pairs)) } }
            @if let Some(expected) = sentences::expected(record) { p.note { bdi { (expected) } } }
        }
    }
}

fn recommended(record: &TuneRecord) -> Markup {
    html! {
        section #change {
            h2 { "The recommended change" }
            (or_note(tables::change(record), "Change nothing: no gain was proven."))
            @if let Some(reset) = sentences::reset(record) { p { bdi { (reset) } } }
            @for risk in sentences::risks(record) { p { bdi { (risk) } } }
            @for block in change(record) { (to_copy(&block)) }
            @for block in undo(record) { (to_copy(&block)) }
            p.note { (sentences::restored(record)) }
        }
    }
}

/// Lines are elements of their own: control characters in them are shown, line breaks of ours are none.
fn to_copy(block: &Block) -> Markup {
    html! {
        h3 { (block.heading) }
        pre.command { @for line in &block.lines { code.copied { (line) } } }
    }
}

fn which_knobs(record: &TuneRecord) -> Markup {
    html! {
        section #importance {
            h2 { "Which knobs matter" }
            @if let Some(figure) = importance::figure(record) { (figure) }
            (or_note(tables::importance(record), "Nothing is known: too little was tried, or what one run showed the others did not bear out."))
        }
    }
}

fn responses(record: &TuneRecord) -> Markup {
    let map = record.heat_map.as_ref();
    if record.slices.is_empty() && map.is_none() {
        return html! {};
    }
    html! {
        section #response {
            h2 { "What each knob does" }
            p.lead { (sentences::SEARCH_GUIDES) }
            div.charts {
                @for (index, slice) in record.slices.iter().take(SLICES_DRAWN).enumerate() {
                    div {
                        @if let Some(figure) = response::figure(record, index, slice) { (figure) }
                        @if let Some(numbers) = tables::slice(slice) {
                            details { summary { bdi { "Numbers of " (slice.knob) } } (table(&numbers)) }
                        }
                    }
                }
            }
            @if let Some(map) = map {
                h3 { "The pair that does most together" }
                @if let Some(figure) = heat::figure(record, map) { (figure) }
                @if let Some(numbers) = tables::heat_map(map) { details { summary { "Numbers of the pair" } (table(&numbers)) } }
            }
        }
    }
}

fn trials(record: &TuneRecord) -> Markup {
    let hidden = record.trials.len().saturating_sub(TRIALS_SHOWN);
    html! {
        section #trials {
            h2 { "Every run" }
            @if let Some(failures) = runs::failures(record) { (table(&failures)) }
            (or_note(runs::trials(record), "Nothing was run."))
            @if hidden > 0 { p.note { (hidden) " further runs are in " code { "trials.parquet" } "." } }
        }
    }
}
