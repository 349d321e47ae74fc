//! `reorder` killed, and its server killed, while others write: a short version of `./x bench kills`.

use std::path::PathBuf;

use seekscope_bench::kills::{Setting, Victim, run_control, run_trials};

use crate::running::programs;
use crate::support::{Bench, machine};

const KILLS: u64 = 6;

fn setting(bench: &Bench, name: &str, seed: u64) -> Setting {
    let folder = bench.path(name);
    std::fs::create_dir(&folder).unwrap();
    Setting {
        seekscope: PathBuf::from(bench.seekscope(&[]).get_program()),
        server: programs().mongod,
        folder,
        members: 1,
        documents: 3_000,
        writers: 3,
        seed,
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn killed_reorder_loses_and_doubles_nothing() {
    let _machine = machine();
    let bench = Bench::new();
    let setting = setting(&bench, "seekscope", 11);
    let table = runtime()
        .block_on(run_trials(&setting, Victim::Seekscope, KILLS, &mut |_| {}))
        .unwrap();
    let complaints: Vec<_> = table.trials().flat_map(|t| t.complaints()).collect();
    assert!(table.sound(), "{table}\n{complaints:#?}");
    assert!(table.trials().all(|trial| trial.done > 0), "{table}");
}

#[test]
fn a_killed_server_loses_and_doubles_nothing_of_what_is_reordered() {
    let _machine = machine();
    let bench = Bench::new();
    let control = setting(&bench, "control", 12);
    let control = runtime()
        .block_on(run_control(&control, 2, &mut |_| {}))
        .unwrap();
    assert!(control.sound(), "the server itself loses writes: {control}");
    let setting = setting(&bench, "server", 13);
    let table = runtime()
        .block_on(run_trials(&setting, Victim::Server, KILLS, &mut |_| {}))
        .unwrap();
    let complaints: Vec<_> = table.trials().flat_map(|t| t.complaints()).collect();
    assert!(table.sound(), "{table}\n{complaints:#?}");
}
