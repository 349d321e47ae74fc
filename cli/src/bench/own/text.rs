//! Texts of workloads: those that come with seekscope, and those derived from documents.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use seekscope_server::{Namespace, Server};
use seekscope_workload::own::builtin::{BUILTINS, builtin};
use seekscope_workload::own::sample::{
    Observed, ShapeText, caveats, sample_collection, sample_file, workload_text,
};
use serde_json::json;

use crate::args::{PrintArgs, SampleArgs};
use crate::exit::Usage;
use crate::output;
use crate::progress::Progress;

/// Returns the names of the workloads that come with seekscope.
pub fn names() -> Vec<&'static str> {
    BUILTINS.iter().map(|builtin| builtin.name).collect()
}

/// Runs `seekscope bench print`.
pub fn print(args: &PrintArgs) -> Result<()> {
    let Some(name) = &args.workload else {
        return match args.output.json {
            true => output::print_json(&json!({ "workloads": names() })),
            false => output::print(&(names().join("\n") + "\n")),
        };
    };
    let found = builtin(name).ok_or_else(|| {
        Usage(format!(
            "no workload is called {name:?}; there are {}",
            names().join(", ")
        ))
    })?;
    show(name, found.text, args.output.json)
}

/// Runs `seekscope bench sample`.
pub async fn sample(args: &SampleArgs) -> Result<()> {
    let progress = Progress::new(args.output.quiet);
    let (observed, collection) = observe(args, progress).await?;
    let text = workload_text(
        &observed,
        &ShapeText {
            collection: &collection,
            records: args.records,
            keep_values: args.keep_values,
        },
    );
    if !args.keep_values {
        progress.say(
            "Texts and binary values were not copied; field names and ranges of numbers and dates were.",
        );
    }
    for caveat in caveats(&observed) {
        progress.say(caveat);
    }
    let Some(path) = &args.out else {
        return show(&collection, &text, args.output.json);
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

async fn observe(args: &SampleArgs, progress: Progress) -> Result<(Observed, String)> {
    let path = Path::new(&args.source);
    if let Some(uri) = &args.uri {
        let namespace = args.source.parse::<Namespace>();
        let namespace = namespace.map_err(|error| Usage(format!("{}: {error}", args.source)))?;
        let _step = progress.step(format!("asking for {} documents", args.documents));
        let server = Server::connect(uri).await?;
        let observed = sample_collection(&server, &namespace, args.documents).await?;
        return Ok((observed, namespace.collection().into()));
    }
    if !path.exists() {
        let why = "no such file; a collection needs a connection string after it";
        return Err(Usage(format!("{}: {why}", args.source)).into());
    }
    let name = path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned());
    Ok((
        sample_file(path, args.documents)?,
        name.unwrap_or_else(|| "sampled".into()),
    ))
}

fn show(name: &str, text: &str, is_json: bool) -> Result<()> {
    match is_json {
        true => output::print_json(&json!({ "workload": name, "text": text })),
        false => output::print(text),
    }
}
