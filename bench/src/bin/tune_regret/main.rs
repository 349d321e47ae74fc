//! How good the tuner is, without a server: what its recommendations miss on three made-up responses, what
//! a proposal costs, and how often duels are right.
//!
//! `./x bench tune`; the figures of other tuners are constants, made anew by `peers.py` beside this file,
//! which asks this binary (`--serve`) for the responses.

mod cost;
mod duels;
mod regret;
mod serve;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
struct Args {
    /// Sessions per response, each with its own seed.
    #[arg(long, default_value_t = 24)]
    seeds: u64,
    /// Simulated duels per row.
    #[arg(long, default_value_t = 4000)]
    duels: u64,
    /// Measure settings for another tuner, read from standard input.
    #[arg(long)]
    serve: bool,
    /// What to run; all of them if none is named.
    #[arg(value_enum)]
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Regret,
    Cost,
    Duels,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.serve {
        return serve::serve();
    }
    let wanted = |part| args.parts.is_empty() || args.parts.contains(&part);
    if wanted(Part::Regret) {
        regret::print(args.seeds)?;
    }
    if wanted(Part::Cost) {
        cost::print()?;
    }
    if wanted(Part::Duels) {
        duels::print(args.duels)?;
    }
    Ok(())
}
