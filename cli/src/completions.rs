//! `seekscope completions`: prints shell completion scripts, made from the definition of the command line.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::{Cli, CompletionsArgs};
use crate::output;

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<()> {
    output::print(&script(args.shell)?)
}

fn script(shell: Shell) -> Result<String> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "seekscope", &mut script);
    Ok(String::from_utf8(script)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_commands_of_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell).unwrap();
            for word in ["layout", "mongoperf", "updates-per-hour"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
