//! Leftovers of killed runs: found at every start, removed on request. Settings that they left changed are named, with the
//! command that puts them back, which may need a login.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};

use anyhow::{Result, bail};
use seekscope_server::leftovers::{Leftover, Leftovers, clean, leftovers};

use crate::args::CleanArgs;
use crate::environment::Environment;
use crate::progress::Progress;
use crate::unrestored;

/// Runs `seekscope clean`.
pub fn run(args: &CleanArgs, environment: &Environment) -> Result<()> {
    let progress = Progress::new(false);
    let Leftovers { found, ignored } = leftovers(&environment.lease_folder);
    for (path, why) in ignored {
        progress.say(format!("Not removed: {}: {why}", path.display()));
    }
    let unrestored = unrestored::all(&environment.lease_folder);
    for left in &unrestored {
        progress.say(left.to_string());
    }
    if found.is_empty() {
        if unrestored.is_empty() {
            progress.say(
                "Nothing was left behind on this host. If a reorder was killed, what it left in \
                 the server is continued by `seekscope reorder URI --resume` and undone by \
                 `seekscope reorder URI --rollback`.",
            );
        }
        return Ok(());
    }
    found.iter().for_each(|l| progress.say(describe(l)));
    if !args.yes && !confirmed()? {
        bail!("nothing was removed; `seekscope clean --yes` removes the leftovers without asking");
    }
    remove(&found, progress)
}

/// Offers, at the start of a run, to remove what earlier runs could not.
pub fn offer(environment: &Environment, progress: Progress) -> Result<()> {
    let found = leftovers(&environment.lease_folder).found;
    if found.is_empty() {
        return Ok(());
    }
    progress.say("An earlier run was killed and left this behind:");
    found.iter().for_each(|l| progress.say(describe(l)));
    if stdin().is_terminal() && stderr().is_terminal() {
        if confirmed()? {
            remove(&found, progress)?;
        }
    } else {
        progress.say("Remove it with: seekscope clean --yes");
    }
    Ok(())
}

fn describe(leftover: &Leftover) -> String {
    let server = leftover
        .running_server()
        .map(|pid| format!(" and its server, process {pid}"));
    format!(
        "  {}{}",
        leftover.directory().display(),
        server.unwrap_or_default()
    )
}

fn confirmed() -> Result<bool> {
    write!(stderr(), "Remove it? [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn remove(found: &[Leftover], progress: Progress) -> Result<()> {
    for leftover in found {
        clean(leftover)?;
        progress.say(format!("Removed {}", leftover.directory().display()));
    }
    Ok(())
}
