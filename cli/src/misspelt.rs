//! Finds the subcommand that a word was meant as, where the command takes another word in its place.

use clap::CommandFactory;

use crate::args::Cli;

/// Letters that are wrong, missing, too many or in the wrong order, at most.
const EDITS_MAX: usize = 2;

/// Returns the subcommand of `command` that the word comes nearest to, as it is typed; `None` if it is like none.
pub fn meant(command: &str, word: &str) -> Option<String> {
    let cli = Cli::command();
    let verbs = cli.find_subcommand(command)?.get_subcommands();
    let names = verbs.map(clap::Command::get_name);
    let near = names.map(|name| (strsim::osa_distance(word, name), name));
    let near = near.filter(|(edits, name)| *edits <= EDITS_MAX && 2 * edits <= name.len());
    near.min()
        .map(|(_, name)| format!("seekscope {command} {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_like_a_subcommand_are_known() {
        assert_eq!(meant("tune", "shw").as_deref(), Some("seekscope tune show"));
        assert_eq!(meant("disk", "rnu").as_deref(), Some("seekscope disk run"));
        assert_eq!(meant("disk", "/mnt/new"), None);
        assert_eq!(meant("disk", "sda"), None);
        assert_eq!(meant("nothing", "run"), None);
    }
}
