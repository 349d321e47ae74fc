//! `seekscope compare`: runs of the same command side by side. It knows layouts ([`layout`]),
//! benchmarks ([`mod@bench`]) and examinations ([`doctor`]); a further kind of run gets a module of its own here.

mod bench;
mod doctor;
mod layout;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use seekscope_run::{RunDirectory, RunDocument};

use crate::args::CompareArgs;
use crate::exit::Usage;

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<()> {
    let paths: Vec<&PathBuf> = [&args.first, &args.second]
        .into_iter()
        .chain(&args.others)
        .collect();
    let mut places = HashSet::new();
    let mut is_repeated =
        |path: &&PathBuf| path.canonicalize().is_ok_and(|place| !places.insert(place));
    if paths.iter().copied().any(|path| is_repeated(&path)) {
        return Err(Usage("the same run is named twice; name different ones".into()).into());
    }
    let runs: Vec<(RunDirectory, RunDocument)> = (paths.iter())
        .map(|path| RunDirectory::open(path))
        .collect::<Result<_, _>>()?;
    match &runs[..] {
        [(_, first), ..] if first.bench.is_some() => bench::compare(&runs, args),
        [first, second] if first.1.examination.is_some() && second.1.examination.is_some() => {
            doctor::compare(first, second, args)
        }
        [first, second] => layout::compare(first, second, args),
        _ => Err(Usage("more than two runs can be compared of `bench` only".into()).into()),
    }
}
