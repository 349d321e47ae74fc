//! `seekscope bench`: measures what a server can do. Read [`stage`] first: every verb builds on it.

mod abandonment;
mod client_choice;
mod data;
mod ending;
mod figures;
mod folder_copy;
mod index;
mod objective;
mod operation_options;
mod own;
mod owned;
mod private_server;
mod repeatable;
mod results;
mod rounds;
mod schema;
mod search;
mod sending;
mod setting;
mod sharding;
mod stage;
mod step_progress;
mod step_recorder;
mod step_summary;
pub mod summary;
mod sysbench;
mod target;
mod validity;
mod variants;
mod whereabouts;
mod ycsb;
mod ycsb_output;

pub use repeatable::Repeatable;
pub use results::show;
pub use rounds::{KeptSeconds, Pace, Stretch, Watch};
pub use stage::{Stage, StepDone};
pub use target::Target;

use anyhow::Result;

use crate::args::{BenchArgs, BenchVerb};
use crate::environment::Environment;

/// Runs the verb.
pub async fn run(
    args: &BenchArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    match &args.verb {
        BenchVerb::Ycsb(args) => ycsb::run(args, environment, arguments).await,
        BenchVerb::Sysbench(args) => sysbench::run(args, environment, arguments).await,
        BenchVerb::Index(args) => index::run(args, environment, arguments).await,
        BenchVerb::Schema(args) => schema::run(args, environment, arguments).await,
        BenchVerb::Run(args) => own::run(args, environment, arguments).await,
        BenchVerb::Print(args) => own::print(args),
        BenchVerb::Sample(args) => own::sample(args).await,
    }
}
