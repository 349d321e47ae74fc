//! A benchmark as one HTML file.

use maud::{Markup, html};
use seekscope_run::BenchStep;

use super::charts::{self, Figure};
use super::{BenchReportInput, heat, labs, sentences, tables, variants};
use crate::facts::{date, device_facts, target_facts};
use crate::html::charts::{BarChart, HeatMap, LineChart, figure};
use crate::html::facts::{again, limitations, measured_on};
use crate::html::page::{PageData, page};
use crate::html::points::Blobs;
use crate::html::table::table;
use crate::table::Table;

/// Steps with figures; the tables have the others.
const STEPS_DRAWN: usize = 24;
/// Up to so many steps their figures are open at once.
const STEPS_OPEN: usize = 3;

const SQL: &str = "SELECT step, operation, (t_ns - min(t_ns) OVER ()) / 1e9 AS second, \
    (count - errors) * 1e9 / duration_ns AS per_s FROM 'intervals.parquet' ORDER BY t_ns;";

/// A step's figures.
struct Drawn<'a> {
    step: &'a BenchStep,
    figures: Vec<Figure>,
    heat: Option<HeatMap>,
}

/// Renders the report.
pub fn html(input: &BenchReportInput<'_>) -> String {
    let document = input.document;
    let mut blobs = Blobs::default();
    let drawn: Vec<Drawn<'_>> = (input.steps().iter().take(STEPS_DRAWN).enumerate())
        .map(|(index, step)| Drawn {
            step,
            figures: charts::of_step(input, index, step),
            heat: heat::of_step(input, index, step, &mut blobs),
        })
        .collect();
    let saturation = charts::saturation(input);
    let growth = charts::growth(input);
    let variants = variants::Variants::of(input);
    let body = html! {
        header { (header(input)) }
        main {
            noscript { p.note { "The figures need scripts; all numbers stand in the tables." } }
            (variants_section(variants.as_ref()))
            (numbers(input))
            (saturation_section(input, saturation.as_ref()))
            (index_builds(input))
            (schema(input, growth.as_ref()))
            (steps(input, &drawn))
            (limitations(document))
            (measured_on(document, &[
                ("Disk under the data", document.device.as_ref().map(device_facts)),
                ("Server", document.target.as_ref().map(target_facts)),
            ]))
            (settings(input))
            (again(document, &data_note(), SQL))
        }
    };
    let mut data = PageData {
        bars: variants.map_or_else(Vec::new, |v| v.charts),
        ..PageData::default()
    };
    for step in drawn {
        data.lines.extend(step.figures.into_iter().map(|f| f.chart));
        data.heats.extend(step.heat);
    }
    data.lines.extend(saturation.into_iter().chain(growth));
    let title = format!(
        "seekscope {}: what the server did, and what it cost",
        document.command
    );
    page(&title, body, &data, &blobs)
}

fn header(input: &BenchReportInput<'_>) -> Markup {
    let document = input.document;
    html! {
        p.outcome data-outcome=(sentences::outcome_word(document)) { bdi { (sentences::verdict(document)) } }
        p.brand { "seekscope " (document.command) }
        h1 {
            @match input.measurement() {
                Some(measurement) => bdi { (sentences::headline(measurement)) },
                None => "Nothing was measured in this run",
            }
        }
        p.meta {
            (date(document.started.realtime_ns))
            @if let Some(target) = &document.target {
                @if !target.product.is_empty() { " · " bdi { (target.product) " " (target.version) } }
            }
            @if let Some(device) = &document.device {
                @if let Some(disk) = &device.disk { " · " bdi { (disk) } ", " bdi { (device.filesystem) } }
            }
        }
    }
}

/// All steps as numbers.
fn numbers(input: &BenchReportInput<'_>) -> Markup {
    let all = input.steps();
    html! {
        section #numbers {
            h2 { "Operations" }
            p.lead {
                "Service time counts from sending a request, response time from its scheduled start. "
                "Percentiles stand where enough operations speak of them. ± is the 95 % interval of the "
                "rate (batch means: seconds depend on one another)."
            }
            @match tables::operations(all) {
                Some(operations) => (table(&operations)),
                None => p.note { "No operation was measured." },
            }
            (headed("How it was driven", tables::conditions(all)))
            (headed("What it cost", tables::costs(all)))
            (headed("What the data take", tables::storage(all)))
            (headed("Failures", tables::failures(all)))
        }
    }
}

fn headed(heading: &str, numbers: Option<Table>) -> Markup {
    html! {
        @if let Some(numbers) = numbers { h3 { (heading) } (table(&numbers)) }
    }
}

fn variants_section(variants: Option<&variants::Variants>) -> Markup {
    let Some(variants) = variants else {
        return html! {};
    };
    html! {
        section #variants {
            h2 { "Variants beside one another" }
            @for sentence in &variants.sentences { p.meaning { bdi { (sentence) } } }
            @if let Some(numbers) = &variants.table { (table(numbers)) }
            div.charts {
                @for chart in &variants.charts { (bars(chart)) }
            }
        }
    }
}

fn bars(chart: &BarChart) -> Markup {
    let (heading, caption) = match chart.id.as_str() {
        variants::THROUGHPUT => (
            "Transactions per second by workload",
            "Whiskers: 95 % intervals, over repetitions where there are several.",
        ),
        _ => (
            "Size on disk",
            "Data files and indexes after the variant's last step.",
        ),
    };
    figure(&chart.id, heading, &chart.series, &html! { (caption) })
}

fn saturation_section(input: &BenchReportInput<'_>, chart: Option<&LineChart>) -> Markup {
    let Some(saturation) = input.measurement().and_then(|m| m.saturation.as_ref()) else {
        return html! {};
    };
    let caption = html! { "Response time by load; the ring marks the maximum." };
    html! {
        section #saturation {
            h2 { "Load and latency" }
            p.meaning { bdi { (sentences::saturation(saturation)) } }
            @if let Some(chart) = chart {
                (figure(&chart.id, "Response time by operations per second", &chart.lines, &caption))
            }
            @if let Some(points) = tables::saturation(input) { (table(&points)) }
        }
    }
}

fn index_builds(input: &BenchReportInput<'_>) -> Markup {
    html! {
        @if let Some(builds) = labs::index_builds(input) {
            section #index-builds {
                h2 { "Index builds" }
                p.lead { "p99 is of the other load's response before, during and after each build." }
                (table(&builds))
                @if let Some(costs) = labs::index_build_costs(input) { (table(&costs)) }
            }
        }
    }
}

fn schema(input: &BenchReportInput<'_>, growth: Option<&LineChart>) -> Markup {
    let Some(shapes) = labs::shapes(input) else {
        return html! {};
    };
    let recommendation = input.measurement().and_then(|m| m.recommendation.as_ref());
    let caption = html! { "Samples inserted per second while the data grew, by samples so far." };
    html! {
        section #schema {
            h2 { "Ways of storing the same samples" }
            @if let Some(recommendation) = recommendation { p.meaning { bdi { (recommendation) } } }
            @if let Some(growth) = growth {
                (figure(&growth.id, "Insert rate as the data grew", &growth.lines, &caption))
            }
            (table(&shapes))
            @if let Some(storage) = labs::shape_storage(input) { (table(&storage)) }
            @if let Some(growth) = labs::growth(input) { (table(&growth)) }
            @if let Some(experiments) = labs::experiments(input) { (table(&experiments)) }
        }
    }
}

fn steps(input: &BenchReportInput<'_>, drawn: &[Drawn<'_>]) -> Markup {
    let left_out = input.steps().len() - drawn.len();
    html! {
        section #steps {
            h2 { "Step by step" }
            @for (index, step) in drawn.iter().enumerate() {
                details.step open[drawn.len() <= STEPS_OPEN] id=(format!("step-{index}")) {
                    summary { bdi { (tables::step_name(step.step)) } }
                    @for sentence in sentences::of_step(step.step) { p.meaning { bdi { (sentence) } } }
                    (step_figures(step))
                }
            }
            @if left_out > 0 {
                p.note { (left_out) " further steps have no figures here; the tables and files have them." }
            }
        }
    }
}

fn step_figures(step: &Drawn<'_>) -> Markup {
    let heat_caption = html! {
        "All requests of each second by how long they took, by response time where there is a schedule; "
        "darker: more (logarithmic). Warm-up included."
    };
    html! {
        div.charts {
            @for drawn in &step.figures {
                (figure(&drawn.chart.id, &drawn.heading, &drawn.chart.lines, &html! { (drawn.caption) }))
            }
            @if let Some(heat) = &step.heat {
                (figure(&heat.id, "Latency over time, every request", &[], &heat_caption))
            }
        }
    }
}

fn settings(input: &BenchReportInput<'_>) -> Markup {
    let Some(measurement) = input.measurement() else {
        return html! {};
    };
    let mut numbers = Table::new(2, &["setting", "value"]);
    for (name, value) in &measurement.settings {
        numbers.row([name.as_str().into(), value.as_str().into()]);
    }
    html! {
        @if let Some(numbers) = numbers.or_nothing() {
            section #settings { h2 { "Settings as resolved" } (table(&numbers)) }
        }
    }
}

fn data_note() -> Markup {
    html! {
        "All numbers come from " code { "run.json" } ", " code { "intervals.parquet" }
        " (a row for each second of each operation), " code { "latency.hlog" }
        " (a distribution for each, in HdrHistogram's log format) and " code { "server.parquet" }
        " (counters of server and host) in the run directory, which holds this report too. In DuckDB:"
    }
}
