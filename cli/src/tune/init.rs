//! `tune init`: writes the catalogue's knobs that a server has to a file for editing.

use std::fs::OpenOptions;
use std::io::Write;

use anyhow::{Context, Result};
use seekscope_server::ServerKind;
use seekscope_settings::KnobFile;

use seekscope_report::terminal::visible;

use super::LOCAL;
use super::knobs::{self, Whose};
use super::local_arena::start_args;
use super::server_arena::refuse_router;
use crate::args::{TuneInitArgs, TuneLocalArgs};
use crate::bench::Target;
use crate::environment::Environment;
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Progress;

/// Runs the command.
pub async fn run(args: &TuneInitArgs, environment: &Environment) -> Result<()> {
    let text = text(args, environment).await?;
    match &args.out {
        None => output::print(&text),
        Some(path) => {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
                .with_context(|| format!("cannot make {}", path.display()))?;
            file.write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

/// Starts a private server as `tune local` does, in the folder for temporary files unless another is named.
async fn started(args: &TuneLocalArgs, environment: &Environment) -> Result<Target> {
    let args = start_args(args);
    let parent = args.data_dir.clone().unwrap_or_else(std::env::temp_dir);
    Target::start_local(&args, "", &[], &parent, environment).await
}

async fn text(args: &TuneInitArgs, environment: &Environment) -> Result<String> {
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let (target, kind) = match args.target.as_str() {
        LOCAL => {
            let kind = knobs::local_kind(&args.local, environment)?;
            let target = match kind {
                // Only a running one tells which settings its version has.
                ServerKind::Mongod => {
                    let _step = progress.step("starting a private local server, to ask it");
                    let begun = started(&args.local, environment);
                    Some(interruption.or(begun).await?)
                }
                ServerKind::SecantusdRs => None,
            };
            (target, Some(kind))
        }
        uri => {
            let _step = progress.step("connecting");
            let target = interruption.or(Target::connect(uri, "", None)).await?;
            refuse_router(&target)?;
            (Some(target), None)
        }
    };
    let whose = match (&target, kind) {
        (target, Some(kind)) => Whose::Ours {
            kind,
            target: target.as_ref(),
        },
        (Some(target), None) => Whose::Theirs(target),
        (None, None) => Whose::Nobodys,
    };
    let found = interruption.or(knobs::offered(&whose, &args.local)).await?;
    if let Some(target) = target {
        // Leaves somebody's server alone.
        target.close(false).await?;
    }
    let mut text = String::new();
    for (name, why) in &found.left_out {
        text.push_str(&format!("# not here: {name}: {}\n", visible(why)));
    }
    for (name, said) in &found.memory_risks {
        text.push_str(&format!("# memory of {name}: {}\n", visible(said)));
    }
    for (name, said) in &found.cpu_bounds {
        text.push_str(&format!("# processors of {name}: {}\n", visible(said)));
    }
    for (name, source) in &found.sources {
        text.push_str(&format!("# value of {name}: {source}\n"));
    }
    let file = KnobFile {
        knobs: found.entries,
        presets: found.presets,
        limits: found.limits,
        ..KnobFile::default()
    };
    Ok(format!("{}{text}", file.to_toml()))
}
