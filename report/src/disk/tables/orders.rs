//! Shows reads through a cold page cache: by order, by read-ahead, by page fault.

use seekscope_run::{ReadAdvice, StepGroup};

use super::super::sentences::block;
use super::super::steps::{Measured, Orders, Window, of_group, windows};
use super::super::{DiskReportInput, OrderPrediction};
use super::reads::{mb_cell, rate_cell};
use super::{LATENCIES, cpu_cell, fetched_cell, latency_cells};
use crate::numbers::{format_rate, format_share, format_times};
use crate::table::{Cell, Table};

const NOT_TRIED: &str = "not tried";
const NOT_PREDICTED: &str = "not predicted";
const NOT_MEASURED: &str = "not measured";

/// Returns the same blocks in different orders, beside the model's predictions.
pub(in super::super) fn orders(input: &DiskReportInput<'_>) -> Option<Table> {
    let orders = Orders::of(input.measurement()?);
    let mut table = Table::new(
        1,
        &[
            "order",
            "blocks/s",
            "MB/s",
            "× shuffled",
            "fetched/byte",
            "predicted/s",
            "error",
        ],
    );
    let named = orders.named();
    for (name, m) in &named {
        let predicted = input.predictions.iter().find(|p| p.name == m.step.name);
        let times = orders
            .shuffled
            .map(|s| format_times(m.job.iops() / s.job.iops()));
        let cells = [
            name.clone().into(),
            rate_cell(m),
            mb_cell(m),
            Cell::or(times, NOT_MEASURED),
            fetched_cell(m),
        ];
        table.row(cells.into_iter().chain(prediction_cells(predicted)));
    }
    let is_step = |p: &&OrderPrediction| named.iter().any(|(_, m)| m.step.name == p.name);
    for prediction in input.predictions.iter().filter(|p| !is_step(p)) {
        let measured = format_rate(prediction.measured_per_s);
        let unknown = [const { Cell::Missing(NOT_MEASURED) }; 3];
        table.row(
            [prediction.name.clone().into(), measured.into()]
                .into_iter()
                .chain(unknown)
                .chain(prediction_cells(Some(prediction))),
        );
    }
    table.or_nothing()
}

fn prediction_cells(prediction: Option<&OrderPrediction>) -> [Cell; 2] {
    match prediction {
        None => [Cell::Missing(NOT_PREDICTED), Cell::Missing(NOT_PREDICTED)],
        Some(p) => [
            format_rate(p.predicted_per_s).into(),
            signed_share(p.error()).into(),
        ],
    }
}

/// Formats like `+15.3 %`.
fn signed_share(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "+" };
    format!("{sign}{}", format_share(share.abs()))
}

/// Returns cold buffered reads by read-ahead window.
pub(in super::super) fn read_ahead(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "read-ahead",
            "in order, MB/s",
            "in order/s",
            "random/s",
            "random fetched/byte",
        ],
    );
    for point in windows(input.measurement()?) {
        let name = match point.window {
            Window::Off => "off".into(),
            Window::Bytes(bytes) => block(bytes),
            Window::Device => "the device's own".into(),
            Window::Advised => "sequential advice".into(),
        };
        let cell = |m: Option<Measured<'_>>, of: fn(&Measured<'_>) -> Cell| {
            m.as_ref().map_or(Cell::Missing(NOT_TRIED), of)
        };
        table.row([
            name.into(),
            cell(point.in_order, mb_cell),
            cell(point.in_order, rate_cell),
            cell(point.random, rate_cell),
            cell(point.random, fetched_cell),
        ]);
    }
    table.or_nothing()
}

/// Returns page faults on a mapping.
pub(in super::super) fn mmap(input: &DiskReportInput<'_>) -> Option<Table> {
    let [p50, p99, p999, max] = LATENCIES;
    let mut table = Table::new(
        1,
        &[
            "advice, threads",
            "faults/s",
            "fetched/byte",
            p50,
            p99,
            p999,
            max,
            "CPU per fault",
        ],
    );
    for m in of_group(input.measurement()?, StepGroup::Mmap) {
        let advice = match m.facts().advice {
            ReadAdvice::Normal => "none",
            ReadAdvice::Random => "random",
            ReadAdvice::Sequential => "sequential",
        };
        let name = format!("{advice}, {}", m.facts().threads);
        table.row(
            [name.into(), rate_cell(&m), fetched_cell(&m)]
                .into_iter()
                .chain(latency_cells(m.latency()))
                .chain([cpu_cell(&m)]),
        );
    }
    table.or_nothing()
}
