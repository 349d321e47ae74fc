//! What a benchmark's records say, derived anew from the run directory each time: by `bench` at its end
//! and by `report` later.

use std::fmt::Write as _;

use anyhow::Result;
use seekscope_run::units::format_ns;
use seekscope_run::{BenchStep, Outcome, RunDocument};

use super::{summary, ycsb_output};
use crate::args::OutputArgs;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

/// What is printed on stdout unless JSON is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Tables,
    /// The lines that YCSB prints.
    YcsbLines,
}

/// See the module.
pub struct Results {}

impl Results {
    /// Reads the records, fills in the summary.
    pub fn derive(session: &mut Session) -> Result<Self> {
        if let Some(measurement) = &session.document.bench {
            session.document.summary = summary::summary(measurement);
        }
        session.save()?;
        Ok(Self {})
    }

    /// Prints tables, YCSB's lines or JSON. What cannot be believed says so in its first line.
    pub fn show(
        &self,
        session: &Session,
        args: &OutputArgs,
        progress: Progress,
        show: Show,
    ) -> Result<()> {
        let document = &session.document;
        let run_dir = session.directory.path().display().to_string();
        if args.json {
            output::print_json(&summary::document(document, &run_dir))?;
        } else {
            let mut text = warning(document);
            match show {
                Show::Tables => text.push_str(&tables(document)),
                Show::YcsbLines => text.push_str(&ycsb_output::lines(document)),
            }
            output::print(&text)?;
        }
        progress.say(format!("Run: {run_dir}"));
        Ok(())
    }
}

/// The first line of a run that is not what was asked for.
fn warning(document: &RunDocument) -> String {
    let word = match document.outcome {
        Outcome::Ok => return String::new(),
        Outcome::Partial => "PARTIAL",
        Outcome::Failed => "FAILED",
        Outcome::Invalid => "INVALID",
    };
    let reason = document.outcome_reason.as_deref().unwrap_or_default();
    format!("{word}: {}\n", seekscope_report::terminal::visible(reason))
}

fn tables(document: &RunDocument) -> String {
    let mut text = String::new();
    let steps = document.bench.iter().flat_map(|b| &b.steps);
    for step in steps {
        add_step(&mut text, step);
    }
    text
}

fn add_step(text: &mut String, step: &BenchStep) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} {}  {:.0}/s",
        step.name, step.variant, step.throughput_per_s
    );
    for operation in &step.operations {
        let latency = operation.response.as_ref().unwrap_or(&operation.service);
        let _ = writeln!(
            text,
            "  {:<20} {:>10} ok {:>7} failed {:>10.0}/s  p50 {:>8}  p99 {:>8}  max {:>8}",
            operation.name,
            operation.count,
            operation.errors,
            operation.per_s,
            format_ns(latency.p50_ns),
            format_ns(latency.p99_ns),
            format_ns(latency.max_ns)
        );
    }
    for (operation, name, count, message) in &step.failures {
        let message = seekscope_report::terminal::visible(message);
        let _ = writeln!(text, "  {count} {operation} failed with {name}: {message}");
    }
}
