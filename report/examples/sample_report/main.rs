//! Writes a report of a made-up run, for tests and for looking at the page:
//! `sample_report OUT.html [EVENTS] [--hostile]`.

mod synthetic;

use std::error::Error;

use seekscope_pattern::analyse;
use seekscope_report::{ReportInput, html};

fn main() -> Result<(), Box<dyn Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let path = words
        .first()
        .ok_or("usage: sample_report OUT.html [EVENTS] [--hostile]")?;
    let events = words.get(1).map_or(Ok(20_000), |count| count.parse())?;
    let run = synthetic::run(events, flags.iter().any(|flag| flag == "--hostile"));
    let analyses = analyse(&run.document.phases, &run.events);
    let input = ReportInput {
        document: &run.document,
        files: &run.files,
        analyses: &analyses,
        events: &run.events,
    };
    std::fs::write(path, html::render(&input))?;
    Ok(())
}
