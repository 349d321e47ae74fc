//! `seekscope collect`: one compact file of all that somebody else needs to judge a server.
//!
//! `bundle` makes the file: a run directory of its own, without what can be derived, packed. `names`
//! finds the names that a run holds and `redaction` replaces them. `opening` unpacks.

mod bundle;
mod names;
mod opening;
mod redaction;

pub use opening::{is_bundle, unpack};

use anyhow::Result;
use seekscope_run::units::format_bytes;
use seekscope_run::{RunDirectory, RunDocument};
use serde_json::json;

use crate::args::CollectArgs;
use crate::doctor::{Asked, Target, examine};
use crate::environment::Environment;
use crate::output;
use crate::progress::Progress;
use bundle::{Bundle, Packing};

/// Runs the command.
pub async fn run(
    args: &CollectArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let packing = Packing::of(&args.out)?;
    let progress = Progress::new(args.output.quiet);
    match Target::of(&args.target)? {
        Target::Server(uri) => {
            let asked = Asked::new(uri, &args.examine, None)?;
            let (session, measured) = examine(&asked, environment, arguments, progress).await?;
            progress.say(format!("Run: {}", session.directory.path().display()));
            measured?;
            collect(
                args,
                packing,
                &session.directory,
                session.document,
                progress,
            )
        }
        Target::Recorded(path) => {
            let (directory, document) = RunDirectory::open(path)?;
            collect(args, packing, &directory, document, progress)
        }
    }
}

fn collect(
    args: &CollectArgs,
    packing: Packing,
    directory: &RunDirectory,
    document: RunDocument,
    progress: Progress,
) -> Result<()> {
    let _step = progress.step("packing");
    let bundle = Bundle {
        out: &args.out,
        packing,
        max_bytes: args.max_size,
        hash_names: args.hash_names,
    };
    let made = bundle.make(directory, document)?;
    drop(_step);
    if args.output.json {
        return output::print_json(&json!({
            "schema": "seekscope/collect/1",
            "command": "collect",
            "outcome": "ok",
            "file": args.out.display().to_string(),
            "bytes": made.bytes,
            "names_hashed": args.hash_names,
            "events": { "kept": made.events_kept, "of": made.events },
            "leaves": { "kept": made.leaves_kept, "of": made.leaves },
        }));
    }
    let left_out = match made.events_kept < made.events {
        true => format!(
            "; the first {} of {} I/O events, to stay below --max-size",
            made.events_kept, made.events
        ),
        false => String::new(),
    };
    output::print(&format!(
        "{} ({}{left_out})\nOpen it with: seekscope doctor {}\n",
        args.out.display(),
        format_bytes(made.bytes),
        args.out.display()
    ))
}
