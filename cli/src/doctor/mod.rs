//! `seekscope doctor`: gather, conclude, report.
//!
//! `examine` watches a server and leaves its records in the run directory, `demo` does so with a private one;
//! `conclusion` derives all statements from the records of any run, `recorded` from those brought here, and
//! `judgement` compares findings with an earlier run's and with a user's limits. `joined` makes one run of those of
//! several hosts.

pub mod conclusion;
mod demo;
mod diagnostic_folder;
mod examine;
mod joined;
mod judgement;
mod measurement;
mod recorded;
mod scan_times;

pub use conclusion::{Conclusion, open_member};
pub use examine::{Asked, Whom, examine};
pub use joined::Joined;
pub use judgement::Earlier;
pub use measurement::observed;
pub use recorded::{only_recorded, show};

use std::path::Path;

use anyhow::Result;
use seekscope_server::Server;
use seekscope_server::examination::rights::role_script;

use crate::args::DoctorArgs;
use crate::environment::Environment;
use crate::exit::{NotPermitted, Usage};
use crate::output;
use crate::progress::Progress;
use judgement::Judgement;

/// The target of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    Server(&'a str),
    /// A run, a bundle, or a folder of diagnostic files.
    Recorded(&'a Path),
}

impl<'a> Target<'a> {
    /// Parses a target: a connection string, or a path that exists.
    pub fn of(text: &'a str) -> Result<Self, Usage> {
        if text.contains("://") {
            return Ok(Self::Server(text));
        }
        let path = Path::new(text);
        if path.exists() {
            return Ok(Self::Recorded(path));
        }
        // A connection string without its beginning, which may contain a password.
        if text.contains([':', '@']) {
            return Ok(Self::Server(text));
        }
        Err(Usage(format!(
            "{text:?} is neither a connection string (mongodb://…) nor a run, bundle or folder that exists"
        )))
    }
}

/// Prints the role with the privileges needed, for the server's release if one is named.
async fn print_role(target: Option<Target<'_>>) -> Result<()> {
    let version = match target {
        None => None,
        Some(Target::Server(uri)) => Server::connect(uri).await?.version().await?,
        Some(Target::Recorded(_)) => {
            let why = "--print-role is for servers: name a connection string, or nothing";
            return Err(Usage(why.into()).into());
        }
    };
    output::print(&role_script(version.as_deref()))
}

/// Runs the command to its end, interrupted or not; the run directory is complete either way.
pub async fn run(
    args: &DoctorArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let target = args.target.as_deref().map(Target::of).transpose()?;
    if args.print_role {
        return print_role(target).await;
    }
    let asked;
    let whom = match target {
        None => Whom::Demo(&args.demo, &args.examine),
        Some(Target::Server(uri)) => {
            asked = Asked::new(uri, &args.examine)?.with_build(&args.build)?;
            Whom::Deployment(&asked)
        }
        Some(Target::Recorded(path)) => return recorded::run(args, path, arguments).await,
    };
    let judgement = Judgement::new(&args.judge)?;
    let progress = Progress::new(args.output.quiet);
    if args.build.index.is_some() && !args.build.allow_index_build {
        progress.say("--index alone builds nothing: add --allow-index-build to permit building and dropping it.");
    }
    let out = args.out.as_deref();
    let (mut session, measured) = examine(&whom, out, environment, arguments, progress).await?;
    if session.document.phases.is_empty() {
        // Nothing was measured: there is nothing to show but the error.
        return measured;
    }
    let conclusion = Conclusion::derive(&mut session, judgement.since())?;
    let shown = conclusion.show(&session, &args.output, progress);
    measured?;
    shown?;
    if conclusion.is_blind {
        let text = "nothing of the server may be read, neither through it nor on its host; the least role and \
                    rights are printed by: seekscope doctor --print-role";
        return Err(NotPermitted(text.into()).into());
    }
    judgement.judge(conclusion.diagnosis())
}
