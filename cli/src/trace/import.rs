//! `seekscope trace import`: makes a run from a trace that another tool recorded.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};
use schemars::JsonSchema;
use seekscope_exchange::{DETECTION_BYTES, Format, ImportError, ImportSummary, detect, import};
use seekscope_report::terminal::visible;
use seekscope_run::units::format_count;
use seekscope_run::{
    CacheState, ClockOffset, Disk, Finding, Limitation, Outcome, Phase, TraceFacts,
};
use serde::Serialize;

use crate::args::{ImportArgs, ImportFormat};
use crate::exit::{Unreadable, Usage, message_of};
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

/// Runs the command. `stop` ends it early; the run then contains what was read by then.
pub fn run(args: &ImportArgs, arguments: Vec<String>, stop: &AtomicBool) -> Result<()> {
    let mut text = open(&args.file)?;
    let mut beginning = Vec::new();
    text.by_ref()
        .take(DETECTION_BYTES as u64)
        .read_to_end(&mut beginning)
        .map_err(Unreadable::at(&args.file))?;
    let format = format_of(args, &beginning)?;
    let mut session = Session::begin("trace", arguments, args.out.as_deref())?;
    let mut phase = phase_of(args, format);
    session.open_phase(&phase)?;
    let mut writer = session.directory.io_writer()?;
    let reader = BufReader::with_capacity(1 << 20, Cursor::new(beginning).chain(text));
    let go_on = || !stop.load(Ordering::Relaxed);
    let (summary, ended) = import(format, reader, &mut writer, go_on);
    writer.flush()?;
    drop(writer);
    let ended = match ended {
        Ok(()) if summary.events == 0 => Err(anyhow!("the trace holds no I/O on files or disks")),
        ended => ended.map_err(anyhow::Error::from),
    };
    close(&mut session, &mut phase, format, &summary)?;
    end(&mut session, &ended)?;
    // Otherwise the caller that handles the signal says so.
    if !stopped(&ended) {
        ended?;
    }
    show(args, &session, format, &summary)
}

fn stopped(ended: &Result<()>) -> bool {
    let error = ended.as_ref().err();
    let cause = error.and_then(|e| e.downcast_ref::<ImportError>());
    matches!(cause, Some(ImportError::Stopped { .. }))
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(Unreadable::at(path))?;
    Ok(Box::new(file))
}

fn format_of(args: &ImportArgs, beginning: &[u8]) -> Result<Format> {
    match args.format {
        ImportFormat::Fio => Ok(Format::Fio),
        ImportFormat::Blkparse => Ok(Format::Blkparse),
        ImportFormat::Strace => Ok(Format::Strace),
        ImportFormat::Bpftrace => Ok(Format::Csv),
        ImportFormat::Auto => detect(beginning).ok_or_else(|| {
            Usage(format!(
                "{} is not a trace in a known format (fio's iolog, blkparse's text, strace's \
                 output, CSV with a header); if it is, name the format with --format",
                args.file.display()
            ))
            .into()
        }),
    }
}

fn phase_of(args: &ImportArgs, format: Format) -> Phase {
    let tool = format.tool();
    Phase {
        name: "trace".into(),
        activity: format!("what {tool} recorded in {}", args.file.display()),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: format!("the trace of {tool} does not record it"),
        },
        started_ns: 0,
        ended_ns: 0,
        index_build: None,
        trace: None,
        process_io: None,
    }
}

/// Closes the phase, which covers all events; the run is dated to their time.
fn close(
    session: &mut Session,
    phase: &mut Phase,
    format: Format,
    summary: &ImportSummary,
) -> Result<()> {
    let (first_ns, last_ns) = summary.span_ns.unwrap_or_default();
    phase.started_ns = first_ns;
    phase.ended_ns = last_ns.saturating_add(1);
    phase.trace = Some(TraceFacts {
        backend: "import".into(),
        backend_reason: format!("the records come from a trace of {}", format.tool()),
        seen: summary.events,
        written: summary.events,
        ..TraceFacts::default()
    });
    session.document.phases = vec![phase.clone()];
    for limitation in format.limitations(summary) {
        session.limit(limitation);
    }
    session.document.summary = serde_json::to_value(ImportFigures::of(format, summary))?;
    session.document.started = ClockOffset {
        monotonic_ns: first_ns,
        realtime_ns: if summary.since_1970 {
            first_ns
        } else {
            session.document.started.realtime_ns
        },
    };
    session.save()
}

fn end(session: &mut Session, ended: &Result<()>) -> Result<()> {
    let (outcome, reason) = match ended {
        Ok(()) => (Outcome::Ok, None),
        Err(error) if stopped(ended) => (Outcome::Partial, Some(message_of(error))),
        Err(error) => (Outcome::Failed, Some(message_of(error))),
    };
    session.end(outcome, reason)?;
    // The run ended with the recording, on the recording's clock.
    session.document.ended_ns = session.document.phases.first().map(|p| p.ended_ns);
    session.save()
}

/// What `--json` prints for an import; for the run that it makes, `report` prints what it prints for `trace`. Names are
/// stable; fields may be added.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImportOutput<'a> {
    /// Name and version of this format.
    schema: String,
    command: &'static str,
    /// partial if a signal ended the import early.
    outcome: Outcome,
    /// The run that was made.
    run_dir: String,
    summary: ImportFigures<'a>,
    /// What such a trace cannot show, why, and what can.
    limitations: &'a [Limitation],
    /// Always empty: an import draws no conclusions.
    findings: [Finding; 0],
}

#[derive(Debug, Serialize, JsonSchema)]
struct ImportFigures<'a> {
    #[schemars(extend("enum" = ["fio", "blkparse", "strace", "a CSV trace"]))]
    format: &'static str,
    #[schemars(range(min = 1))]
    lines: u64,
    /// Number of events in the text; what its tool lost is unknown.
    #[schemars(range(min = 1))]
    seen: u64,
    #[schemars(range(min = 1))]
    written: u64,
    #[schemars(extend("const" = 0))]
    lost: u64,
    /// Lines that produced no event, by reason.
    skipped: Vec<SkippedLines<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SkippedLines<'a> {
    why: &'a str,
    #[schemars(range(min = 1))]
    lines: u64,
    #[schemars(range(min = 1))]
    first_line: u64,
}

impl<'a> ImportFigures<'a> {
    fn of(format: Format, summary: &'a ImportSummary) -> Self {
        let skipped = summary.skipped.iter().map(|(why, skipped)| SkippedLines {
            why,
            lines: skipped.lines,
            first_line: skipped.first_line,
        });
        Self {
            format: format.tool(),
            lines: summary.lines,
            seen: summary.events,
            written: summary.events,
            lost: 0,
            skipped: skipped.collect(),
        }
    }
}

fn show(
    args: &ImportArgs,
    session: &Session,
    format: Format,
    summary: &ImportSummary,
) -> Result<()> {
    let document = &session.document;
    let run = session.directory.path().display().to_string();
    if args.output.json {
        return output::print_json(&ImportOutput {
            schema: output::versioned("trace-import"),
            command: "trace import",
            outcome: document.outcome,
            run_dir: run,
            summary: ImportFigures::of(format, summary),
            limitations: &document.limitations,
            findings: [],
        });
    }
    let mut lines = vec![format!(
        "{} events from {} lines of {}, in {run}",
        format_count(summary.events),
        format_count(summary.lines),
        format.tool()
    )];
    for (why, skipped) in &summary.skipped {
        lines.push(format!(
            "  {} lines gave no event (the first is line {}): {why}",
            format_count(skipped.lines),
            skipped.first_line
        ));
    }
    let progress = Progress::new(args.output.quiet);
    for limitation in &document.limitations {
        progress.say(visible(&format!(
            "Note: {}: {}",
            limitation.what, limitation.why
        )));
    }
    output::print(&(visible(&lines.join("\n")) + "\n"))
}
