//! `seekscope compare`: two runs of the same command side by side. So far it knows layouts
//! ([`layout`]); a further kind of run gets a module of its own here.

mod layout;

use anyhow::Result;
use seekscope_run::RunDirectory;

use crate::args::CompareArgs;
use crate::exit::Usage;

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<()> {
    if same_place(args) {
        return Err(Usage("these are the same run; name two".into()).into());
    }
    let first = RunDirectory::open(&args.first)?;
    let second = RunDirectory::open(&args.second)?;
    layout::compare(&first, &second, args)
}

fn same_place(args: &CompareArgs) -> bool {
    let place = |path: &std::path::Path| path.canonicalize().ok();
    place(&args.first).is_some() && place(&args.first) == place(&args.second)
}
