//! The `seekscope` binary: arguments, wiring, exit codes. See ARCHITECTURE.md for the map.

#![allow(
    unreachable_pub,
    reason = "a binary has no outside: pub means used by another module"
)]

mod advise;
mod args;
mod bench;
mod clean;
mod collect;
mod compare;
mod completions;
mod disk;
mod doctor;
mod ending;
mod environment;
mod exit;
mod exporter;
mod file_names;
mod interruption;
mod latency;
mod layout;
mod live_terminal;
mod local_members;
mod manual;
mod member_files;
mod member_role;
mod merge;
mod misspelt;
mod mongoperf_command;
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod name_lookup;
mod name_renewal;
mod output;
mod prefetch;
mod process_title;
mod progress;
mod reorder;
mod replay;
mod report_command;
#[cfg(test)]
mod schemas;
mod session;
mod stored_arguments;
mod subjects;
mod top;
mod trace;
mod tune;
mod unrestored;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use args::{Cli, Command};
use environment::Environment;
use progress::Progress;

fn main() -> ExitCode {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    name_lookup::load_nothing();
    let matches = Cli::command().get_matches_from(environment::command_line());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let arguments = stored_arguments::stored_arguments(std::env::args_os().skip(1));
    process_title::hide_credentials();
    match run(cli.command, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = exit::message_of(&error);
            let text = seekscope_report::terminal::message(&message);
            let _ = writeln!(std::io::stderr(), "seekscope: {text}");
            let exit_code = exit::code_of(&error);
            if is_json_wanted(&matches) && !output::has_printed() {
                // What cannot be printed has been said on the other stream.
                let _ = output::print_error(&message, exit_code);
            }
            ExitCode::from(exit_code)
        }
    }
}

/// Returns whether the command, or the command below it that was called, was given `--json`.
fn is_json_wanted(matches: &ArgMatches) -> bool {
    let has_flag = |of: &ArgMatches| matches!(of.try_get_one::<bool>("json"), Ok(Some(true)));
    let below = matches.subcommand();
    has_flag(matches) || below.is_some_and(|(_, below)| is_json_wanted(below))
}

fn run(command: Command, arguments: Vec<String>) -> Result<()> {
    let environment = Environment::read();
    match command {
        Command::Doctor(args) => {
            clean::offer(&environment, Progress::new(args.output.quiet))?;
            block_on(doctor::run(&args, &environment, arguments))
        }
        Command::Top(args) => block_on(top::run(&args)),
        Command::Exporter(args) => {
            let web_config = exporter::read_web_config(&args)?;
            exporter::drop_privileges(&args);
            block_on(exporter::run(&args, web_config))
        }
        Command::Bench(args) => {
            clean::offer(&environment, Progress::new(args.output().quiet))?;
            block_on(bench::run(&args, &environment, arguments))
        }
        Command::Collect(args) => {
            clean::offer(&environment, Progress::new(args.output.quiet))?;
            block_on(collect::run(&args, &environment, arguments))
        }
        Command::Merge(args) => merge::run(&args, arguments),
        Command::Disk(args) => {
            clean::offer(&environment, Progress::new(args.output().quiet))?;
            block_on(disk::run(&args, &environment, arguments))
        }
        Command::Trace(args) => {
            clean::offer(&environment, Progress::new(args.record.output.quiet))?;
            block_on(trace::run(*args, arguments))
        }
        Command::Advise(args) => {
            clean::offer(&environment, Progress::new(args.output.quiet))?;
            block_on(advise::run(*args, &environment, arguments))
        }
        Command::Layout(args) => block_on(layout::run(*args, &environment, arguments)),
        Command::Reorder(args) => block_on(reorder::run(*args, &environment, arguments)),
        Command::Prefetch(args) => block_on(prefetch::run(*args, arguments)),
        Command::Tune(args) => {
            clean::offer(&environment, Progress::new(args.output().quiet))?;
            block_on(tune::run(*args, &environment, arguments))
        }
        Command::Compare(args) => block_on(compare::run(&args)),
        Command::Mongoperf(args) => block_on(mongoperf_command::run(&args)),
        Command::Replay(args) => block_on(replay::run(&args, arguments)),
        Command::Report(args) => block_on(report_command::run(&args)),
        Command::Clean(args) => clean::run(&args, &environment),
        Command::Completions(args) => completions::run(&args),
        Command::Manual(args) => manual::run(&args),
    }
}

/// Runs a command's work. Two workers are enough to wait for one server and to listen for signals.
fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")?;
    let outcome = runtime.block_on(work);
    end_quietly(runtime);
    outcome
}

/// Ends the runtime without reporting what that does to tasks of MongoDB's driver. A dropped client ends its
/// sessions in a separate task. While that task asks for a connection, the other worker may just have ended the
/// task that hands them out, which the driver considers impossible, and it panics.
fn end_quietly(runtime: tokio::runtime::Runtime) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic
            .location()
            .is_some_and(|place| is_of_driver(place.file()))
        {
            report(panic);
        }
    }));
    drop(runtime);
}

fn is_of_driver(source_file: &str) -> bool {
    source_file
        .split('/')
        .any(|part| part.starts_with("mongodb-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_the_driver_are_told_from_ours() {
        let driver =
            "/home/a/.cargo/registry/src/index/mongodb-3.9.1/src/cmap/connection_requester.rs";
        assert!(is_of_driver(driver));
        for ours in [
            "cli/src/main.rs",
            "/home/a/mongodb/seekscope/cli/src/main.rs",
        ] {
            assert!(!is_of_driver(ours), "{ours}");
        }
    }
}
