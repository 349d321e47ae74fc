//! `seekscope doctor`: gather, conclude, report.
//!
//! `examine` watches a server and leaves its records in the run directory; `conclusion` derives all that
//! is said from the records of any run, `recorded` of those that were brought here, `judgement` holds
//! findings against an earlier run's and a user's limits. `index_builds`
//! (with `demo`, `permitted_build`, `comparison`, `findings`, `results`, `summary`) is the older kind of
//! run, which builds indexes and compares them.

mod comparison;
mod conclusion;
mod demo;
mod diagnostic_folder;
mod examine;
mod findings;
mod index_builds;
mod judgement;
mod measurement;
mod permitted_build;
mod recorded;
mod results;
mod scan_times;
mod summary;

pub use conclusion::Conclusion;
pub use examine::{Asked, examine};
pub use judgement::Earlier;
pub use recorded::show_run;

use std::path::Path;

use anyhow::Result;
use seekscope_server::Server;
use seekscope_server::examination::rights::role_script;

use crate::args::DoctorArgs;
use crate::environment::Environment;
use crate::exit::Usage;
use crate::output;

/// What the command is to be done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    Server(&'a str),
    /// A run, a bundle, or a folder of diagnostic files.
    Recorded(&'a Path),
}

impl<'a> Target<'a> {
    /// A connection string, or something that exists.
    pub fn of(text: &'a str) -> Result<Self, Usage> {
        if text.contains("://") {
            return Ok(Self::Server(text));
        }
        let path = Path::new(text);
        if path.exists() {
            return Ok(Self::Recorded(path));
        }
        // A connection string without its beginning, which may hold a password.
        if text.contains([':', '@']) {
            return Ok(Self::Server(text));
        }
        Err(Usage(format!(
            "{text:?} is neither a connection string (mongodb://…) nor a run, bundle or folder that exists"
        )))
    }
}

/// Of the server's release, where one is named.
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
    match target {
        None => index_builds::run(args, environment, arguments).await,
        Some(Target::Server(_)) if args.examine.allow_index_build => {
            index_builds::run(args, environment, arguments).await
        }
        Some(Target::Server(uri)) => examine::run(args, uri, environment, arguments).await,
        Some(Target::Recorded(path)) => recorded::run(args, path, arguments).await,
    }
}
