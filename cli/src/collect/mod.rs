//! `seekscope collect`: makes one compact file of all that others need to judge a server.
//!
//! `bundle` makes the file: a separate run directory without what can be derived, packed. `names` finds the
//! names in a run and `redaction` replaces them; `stripping` removes what may hold any. `opening` unpacks.
//! `stopping` ends both at a signal, leaving nothing behind.

mod bundle;
mod names;
mod opening;
mod redaction;
mod salt;
mod stopping;
mod stripping;

pub use opening::{open, open_to_read};

use std::sync::Arc;

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_run::units::{format_bytes, format_list};
use seekscope_run::{MemberState, Outcome, RunDirectory, RunDocument, shell_quoted};
use serde::Serialize;

use crate::args::CollectArgs;
use crate::doctor::{Asked, Conclusion, Target, Whom, examine, only_recorded};
use crate::environment::Environment;
use crate::interruption::Interruption;
use crate::output;
use crate::progress::Progress;
use bundle::{Bundle, Packing};
use salt::salt;
use stopping::until_signal;

/// Records without names beside those that every bundle may hold; they stay as they are.
const FIGURES: [&str; 5] = [
    "totals.parquet",
    "totals_latency.parquet",
    "intervals.parquet",
    "trials.parquet",
    "latency.hlog",
];
/// The number of members named in a message, so that it stays readable.
const OTHERS_NAMED_MAX: usize = 12;

/// What `--json` prints for a bundle. Names are stable; fields may be added.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CollectOutput {
    /// Name and version of this format.
    schema: String,
    command: &'static str,
    #[schemars(extend("const" = "ok"))]
    outcome: Outcome,
    /// Path of the bundle.
    file: String,
    /// Size of the bundle.
    bytes: u64,
    /// Whether names were replaced by hashes.
    names_hashed: bool,
    events: Rows,
    leaves: Rows,
}

/// How many of a run's rows are included in the bundle.
#[derive(Debug, Serialize, JsonSchema)]
struct Rows {
    /// Number of rows included.
    kept: u64,
    /// Number of rows in the run.
    of: u64,
}

/// Runs the command.
pub async fn run(
    args: &CollectArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let packing = Packing::of(&args.out)?;
    let target = Target::of(&args.target)?;
    let hashing = args.hash_names.then(|| salt(args.salt_file.as_deref()));
    let bundle = Bundle {
        out: args.out.clone(),
        packing,
        max_bytes: args.max_size,
        salt: hashing.transpose()?,
    };
    let progress = Progress::new(args.output.quiet);
    match target {
        Target::Server(uri) => {
            let asked = Asked::new(uri, &args.examine)?;
            let whom = Whom::Server(&asked);
            // Before the examination, whose own handler would swallow a signal at its very end.
            let interruption = Interruption::listen();
            let (mut session, measured) =
                examine(&whom, None, environment, arguments, progress).await?;
            if !session.document.phases.is_empty() {
                // The run is of the kind that `doctor` makes, with its page; whoever opens the bundle draws the
                // conclusions again.
                Conclusion::derive(&mut session, None)?.save(&session)?;
                let report = session.directory.report_path();
                progress.say(format!("Report: {}", report.display()));
            }
            measured?;
            let run = (session.directory, session.document);
            collect(args, bundle, run, interruption, progress).await
        }
        Target::Recorded(path) => {
            only_recorded(&args.examine, path)?;
            let (directory, document) = RunDirectory::open(path)?;
            let run = (Arc::new(directory), document);
            collect(args, bundle, run, Interruption::listen(), progress).await
        }
    }
}

async fn collect(
    args: &CollectArgs,
    bundle: Bundle,
    (directory, document): (Arc<RunDirectory>, RunDocument),
    interruption: Interruption,
    progress: Progress,
) -> Result<()> {
    let alone = examined_alone(&document);
    let opened_by = match document.phases.is_empty() {
        true => "report",
        false => "doctor",
    };
    let step = progress.step("packing");
    let make = move |stop: &_| bundle.make(&directory, document, stop);
    let made = until_signal(interruption, make).await?;
    drop(step);
    if args.output.json {
        alone.into_iter().for_each(|told| progress.say(told));
        return output::print_json(&CollectOutput {
            schema: output::versioned("collect"),
            command: "collect",
            outcome: Outcome::Ok,
            file: args.out.display().to_string(),
            bytes: made.bytes,
            names_hashed: args.hash_names,
            events: Rows {
                kept: made.events_kept,
                of: made.events,
            },
            leaves: Rows {
                kept: made.leaves_kept,
                of: made.leaves,
            },
        });
    }
    let left_out = match made.events_kept < made.events {
        true => format!(
            "; the first {} of {} I/O events, to stay below --max-size",
            made.events_kept, made.events
        ),
        false => String::new(),
    };
    let alone = alone.map_or_else(String::new, |told| format!("{told}\n"));
    output::print(&format!(
        "{} ({}{left_out})\n{alone}Open it with: seekscope {opened_by} {}\n",
        args.out.display(),
        format_bytes(made.bytes),
        shell_quoted(&args.out.display().to_string())
    ))
}

/// Says which member was examined, if there are others, and what makes a bundle of each of these.
fn examined_alone(document: &RunDocument) -> Option<String> {
    if document.is_of_deployment() {
        return None;
    }
    let members = &document.examination.as_ref()?.members;
    let (examined, others) = members.split_first()?;
    let uri = document.target.as_ref().map_or("", |target| &target.uri);
    let others = others
        .iter()
        .filter(|other| other.state != MemberState::Arbiter);
    let commands: Vec<String> = others.map(|other| command(uri, &other.name)).collect();
    (!commands.is_empty()).then(|| {
        format!(
            "The bundle is of {} alone. A run of `seekscope doctor` of the whole set has all members on its host, and \
             `seekscope collect RUN` makes one bundle of it; to make one of each of the others, type, with your login where \
             one is needed: {}",
            examined.name,
            format_list(&commands, OTHERS_NAMED_MAX, "; ")
        )
    })
}

/// Returns the command that makes a bundle of the member with this name, `host:port`. `uri` leads to another member,
/// directly and without credentials.
fn command(uri: &str, name: &str) -> String {
    let options = uri
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('/'));
    let options = options.map_or("?directConnection=true", |(_, options)| options);
    let uri = shell_quoted(&format!("mongodb://{name}/{options}"));
    let file = name.replace([':', '[', ']'], "-");
    format!("seekscope collect {uri} --out {file}.tar.zst")
}

#[cfg(test)]
mod tests {
    use seekscope_run::{ExaminationRecord, MemberRecord};

    use super::*;

    #[test]
    fn the_members_that_were_not_examined_are_named() {
        let of = |members: &[(&str, MemberState)]| {
            let members = members.iter().map(|(name, state)| MemberRecord {
                name: (*name).into(),
                state: *state,
                ..MemberRecord::default()
            });
            let mut document = RunDocument::begin("doctor", Vec::new());
            document.examination = Some(ExaminationRecord {
                members: members.collect(),
                ..ExaminationRecord::default()
            });
            examined_alone(&document)
        };
        let examined = ("a:1", MemberState::Secondary);
        let arbiter = ("c:3", MemberState::Arbiter);
        assert_eq!(of(&[examined, arbiter]), None);
        let told = of(&[examined, ("b:2", MemberState::Primary), arbiter]).unwrap();
        assert!(told.starts_with("The bundle is of a:1 alone"), "{told}");
        let typed = ": seekscope collect 'mongodb://b:2/?directConnection=true' --out b-2.tar.zst";
        assert!(told.ends_with(typed), "{told}");
        let with_tls = command("mongodb://a:1/?tls=true&directConnection=true", "[::1]:2");
        assert!(with_tls.contains("'mongodb://[::1]:2/?tls=true&directConnection=true'"));
        assert_eq!(
            examined_alone(&RunDocument::begin("doctor", Vec::new())),
            None
        );
    }
}
