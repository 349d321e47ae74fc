//! `seekscope completions` and `seekscope manual`: what packages are made of.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print a shell script that completes seekscope's commands and options
///
/// The Debian package includes it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(seekscope completions bash)
  seekscope completions zsh > ~/.zfunc/_seekscope
  seekscope completions fish > ~/.config/fish/completions/seekscope.fish")]
pub struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Print the manual page, or write the manual pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope manual | man -l -
  seekscope manual --out /usr/local/share/man/man1 && man seekscope-doctor")]
pub struct ManualArgs {
    /// Folder in which to write seekscope.1 and a page for each command; created if missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
