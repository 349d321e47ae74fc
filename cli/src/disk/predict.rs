//! `seekscope disk predict`: predicts the cost of a trace or an order of blocks on a measured disk.

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_disk::model::{
    Access, CALL_BYTES_MAX, ClassCost, Order, PredictOptions, Prediction, Region,
    accesses_of_trace, predict, without_think_time,
};
use seekscope_doctor::wording::capitalised;
use seekscope_report::terminal::visible;
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{DeviceModel, Finding, IoEvent, Outcome, RunDirectory};
use serde::Serialize;

use super::results::load_model;
use crate::args::PredictArgs;
use crate::exit::Usage;
use crate::output;

/// Limits synthetic orders, which are lists in memory.
const BLOCKS_MAX: u64 = 50_000_000;

/// What is predicted, and how long it took elsewhere, if known.
struct Work {
    accesses: Vec<Access>,
    file_bytes: Vec<(u32, u64)>,
    notes: Vec<String>,
    /// Time from a trace's first call to the end of its last, where it was recorded.
    recorded_ns: Option<u64>,
    about: String,
}

/// What `--json` prints for a prediction. Names are stable; fields may be added. null means unknown, which is not zero.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictOutput<'a> {
    /// Name and version of this format.
    schema: String,
    command: &'static str,
    #[schemars(extend("const" = "ok"))]
    outcome: Outcome,
    /// The run that holds the model.
    run_dir: String,
    summary: PredictSummary<'a>,
    /// Always empty: a prediction draws no conclusions.
    findings: [Finding; 0],
}

#[derive(Debug, Serialize, JsonSchema)]
struct PredictSummary<'a> {
    /// What was predicted, for people.
    about: &'a str,
    /// The disk that the model describes, for people.
    disk: &'a str,
    /// Largest relative deviation of a measured read size from the model's line.
    #[schemars(range(min = 0))]
    fit_error: f64,
    #[schemars(range(min = 1))]
    accesses: usize,
    /// Predicted time, with the time between calls as recorded, s.
    #[schemars(range(min = 0))]
    predicted_s: f64,
    #[schemars(range(min = 0))]
    predicted_without_think_time_s: f64,
    /// Time from the first event of the trace to the end of the last, s; null if no trace was predicted.
    #[schemars(range(min = 0))]
    recorded_s: Option<f64>,
    /// Requests sent to the device, read-ahead included.
    device_requests: u64,
    /// Bytes of these requests.
    device_bytes: u64,
    /// Bytes of reads that were in the page cache, or on their way into it.
    cached_bytes: u64,
    /// The time by class of access, without the time between calls.
    by_class: &'a [ClassCost],
    /// What the prediction leaves out, in sentences.
    not_modelled: Vec<&'a String>,
}

/// Runs the command.
pub fn run(args: &PredictArgs) -> Result<()> {
    let (model, _, document) = load_model(&args.model)?;
    let memory_bytes = document.host.map_or(8 << 30, |h| h.memory_bytes);
    let mut options = PredictOptions::with_memory(memory_bytes);
    options.cache_bytes = args.cache.unwrap_or(memory_bytes / 2);
    let mut work = match (&args.trace, &args.order) {
        (Some(run), _) => trace(run)?,
        (None, Some(order)) => synthetic(order, args)?,
        (None, None) => return Err(Usage("name a --trace or an --order".into()).into()),
    };
    if work.accesses.is_empty() {
        return Err(Usage(format!(
            "{} holds no reads or writes to predict",
            work.about
        ))
        .into());
    }
    options.file_bytes.extend(work.file_bytes.iter().copied());
    let as_recorded = predict(&model, &work.accesses, &options);
    without_think_time(&mut work.accesses);
    let disk_alone = predict(&model, &work.accesses, &options);
    if args.output.json {
        output::print_json(&PredictOutput {
            schema: output::versioned("disk-predict"),
            command: "disk predict",
            outcome: Outcome::Ok,
            run_dir: args.model.display().to_string(),
            summary: PredictSummary::of(&model, &work, &as_recorded, &disk_alone),
            findings: [],
        })
    } else {
        output::print(&text(&model, &work, &as_recorded, &disk_alone))
    }
}

fn trace(run: &std::path::Path) -> Result<Work> {
    let (directory, document) = RunDirectory::open(run)?;
    let mut events = Vec::new();
    directory.for_each_event(|event| events.push(*event))?;
    let first_ns = events.iter().map(|e| e.t_ns).min();
    let last_ns = events.iter().map(end_ns).max();
    let converted = accesses_of_trace(&events);
    let mut notes = Vec::new();
    if let Some(filters) = document.calls_left_out() {
        notes.push(format!(
            "the calls that were not recorded: the trace holds {filters}"
        ));
    }
    if converted.unknown_offset > 0 {
        let count = format_count(converted.unknown_offset);
        notes.push(format!(
            "{count} calls were left out: their offset in the file is unknown"
        ));
    }
    if converted.impossible > 0 {
        let count = format_count(converted.impossible);
        notes.push(format!(
            "{count} accesses were left out: no call can move as many bytes as the trace says"
        ));
    }
    let files = directory.files()?;
    Ok(Work {
        accesses: converted.accesses,
        file_bytes: files.iter().map(|f| (f.file_id, f.size_bytes)).collect(),
        notes,
        recorded_ns: first_ns
            .zip(last_ns)
            .map(|(first, last)| last.saturating_sub(first)),
        about: format!("the trace in {}", run.display()),
    })
}

fn end_ns(event: &IoEvent) -> u64 {
    event.t_ns.saturating_add(event.latency_ns)
}

fn synthetic(text: &str, args: &PredictArgs) -> Result<Work> {
    let order = parse_order(text)?;
    let blocks = args.region / args.bs.max(1);
    if args.bs == 0 || blocks == 0 || blocks > BLOCKS_MAX {
        return Err(Usage(format!(
            "--region {} in blocks of {} makes {blocks} blocks; from 1 to {BLOCKS_MAX} can be predicted",
            args.region, args.bs
        ))
        .into());
    }
    if args.bs > CALL_BYTES_MAX {
        return Err(Usage(format!(
            "--bs {}: one call reads at most {CALL_BYTES_MAX} bytes",
            args.bs
        ))
        .into());
    }
    let region = Region {
        file: 0,
        offset: 0,
        blocks,
        block_bytes: args.bs,
    };
    let mut accesses = region.reads(order, args.seed);
    accesses.iter_mut().for_each(|a| a.direct = args.direct);
    let how = if args.direct {
        "direct"
    } else {
        "through a cold page cache"
    };
    Ok(Work {
        accesses,
        file_bytes: vec![(0, args.region)],
        notes: Vec::new(),
        recorded_ns: None,
        about: format!(
            "{} in blocks of {}, {text}, {how}",
            format_bytes(args.region),
            format_bytes(args.bs)
        ),
    })
}

fn parse_order(text: &str) -> Result<Order> {
    let counted = |name: &str| {
        let number = text.strip_prefix(name)?.strip_prefix(':')?;
        number.parse::<u64>().ok().filter(|n| *n > 0)
    };
    match text {
        "sequential" => return Ok(Order::Sequential),
        "shuffled" => return Ok(Order::Shuffled),
        "backwards" => return Ok(Order::Backwards),
        _ => {}
    }
    if let Some(n) = counted("runs") {
        return Ok(Order::Runs(n));
    }
    if let Some(n) = counted("every") {
        return Ok(Order::EveryNth(n));
    }
    Err(Usage(format!(
        "`{text}` is not an order: write sequential, shuffled, backwards, runs:8 or every:8"
    ))
    .into())
}

impl<'a> PredictSummary<'a> {
    fn of(
        model: &'a DeviceModel,
        work: &'a Work,
        as_recorded: &'a Prediction,
        disk_alone: &'a Prediction,
    ) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        Self {
            about: &work.about,
            disk: &model.disk,
            fit_error: model.fit_error,
            accesses: work.accesses.len(),
            predicted_s: seconds(as_recorded.elapsed_ns),
            predicted_without_think_time_s: seconds(disk_alone.elapsed_ns),
            recorded_s: work.recorded_ns.map(seconds),
            device_requests: as_recorded.device_requests,
            device_bytes: as_recorded.device_bytes,
            cached_bytes: as_recorded.cached_bytes,
            by_class: &disk_alone.by_class,
            not_modelled: as_recorded.unmodelled.iter().chain(&work.notes).collect(),
        }
    }
}

/// Formats the prediction as text. Names come from the runs, which may be foreign: control characters are
/// shown, not obeyed.
fn text(
    model: &DeviceModel,
    work: &Work,
    as_recorded: &Prediction,
    disk_alone: &Prediction,
) -> String {
    let mut lines = vec![
        format!("{} on {}", capitalised(&work.about), model.disk),
        format!(
            "  {} accesses: {} predicted",
            format_count(work.accesses.len() as u64),
            format_ns(as_recorded.elapsed_ns)
        ),
    ];
    if let Some(recorded_ns) = work.recorded_ns {
        lines.push(format!(
            "  recorded: {}; without the time between the calls: {} predicted",
            format_ns(recorded_ns),
            format_ns(disk_alone.elapsed_ns)
        ));
    }
    lines.push(format!(
        "  {} requests and {} from the disk; {} found in the page cache",
        format_count(as_recorded.device_requests),
        format_bytes(as_recorded.device_bytes),
        format_bytes(as_recorded.cached_bytes)
    ));
    for class in &disk_alone.by_class {
        lines.push(format!(
            "  {}: {} accesses, {}, {}",
            class.class,
            format_count(class.accesses),
            format_bytes(class.bytes),
            format_ns(class.elapsed_ns)
        ));
    }
    let notes = as_recorded.unmodelled.iter().chain(&work.notes);
    lines.extend(notes.map(|note| format!("  Not in it: {note}")));
    visible(&lines.join("\n")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_a_foreign_run_are_shown_not_obeyed() {
        let model = DeviceModel {
            disk: "ext4 on \u{1b}[2Jvda".into(),
            ..DeviceModel::default()
        };
        let work = Work {
            accesses: Vec::new(),
            file_bytes: Vec::new(),
            notes: vec!["a\u{202e}b".into()],
            recorded_ns: Some(1),
            about: "the trace in \u{9b}31m".into(),
        };
        let prediction = predict(&model, &[], &PredictOptions::with_memory(0));
        let text = text(&model, &work, &prediction, &prediction);
        for control in ['\u{1b}', '\u{202e}', '\u{9b}'] {
            assert!(!text.contains(control), "{text:?}");
        }
        assert!(
            text.contains(r"\u{1b}[2Jvda") && text.ends_with('\n'),
            "{text:?}"
        );
    }

    #[test]
    fn times_near_the_end_of_the_clock() {
        let event = IoEvent {
            t_ns: u64::MAX - 1,
            pid: 1,
            tid: 1,
            file_id: 1,
            op: seekscope_run::IoOp::Pread,
            flags: seekscope_run::IoFlags(0),
            offset: Some(0),
            length: 1,
            latency_ns: 100,
            result: 1,
            device_read_bytes: 0,
            request: None,
        };
        assert_eq!(end_ns(&event), u64::MAX);
    }

    #[test]
    fn orders_are_read() {
        assert_eq!(parse_order("runs:8").unwrap(), Order::Runs(8));
        assert_eq!(parse_order("every:3").unwrap(), Order::EveryNth(3));
        assert_eq!(parse_order("shuffled").unwrap(), Order::Shuffled);
        for wrong in [
            "", "runs", "runs:", "runs:0", "runs:-1", "random", "runs:8x",
        ] {
            assert!(parse_order(wrong).is_err(), "{wrong}");
        }
    }
}
