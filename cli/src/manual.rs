//! `seekscope manual`: prints pages for man(1), made from the definition of the command line.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Cli, ManualArgs};
use crate::output;

/// Prints `seekscope.1`, or writes it and a page for each command, such as `seekscope-disk-run.1`.
pub fn run(args: &ManualArgs) -> Result<()> {
    match &args.out {
        Some(folder) => write_all(folder),
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page)?;
            output::print(&String::from_utf8(page)?)
        }
    }
}

fn write_all(folder: &Path) -> Result<()> {
    let why = || format!("cannot write manual pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(why)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("man1");
        write_all(&pages).unwrap();
        for command in Cli::command().get_subcommands() {
            let page = pages.join(format!("seekscope-{}.1", command.get_name()));
            let text = fs::read_to_string(&page).unwrap();
            assert!(text.contains(".SH NAME"), "{}", page.display());
        }
        assert!(pages.join("seekscope-bench-ycsb.1").exists());
    }
}
