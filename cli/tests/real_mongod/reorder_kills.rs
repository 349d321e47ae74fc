//! `reorder` killed, and its server killed, while others write: a short version of `./x bench kills`.

use std::path::PathBuf;

use seekscope_bench::kills::{During, Setting, Victim, run_control, run_trials};

use crate::running::programs;
use crate::support::{Bench, shared_machine};

const KILLS: u64 = 6;

fn setting(bench: &Bench, name: &str, seed: u64) -> Setting {
    let folder = bench.path(name);
    std::fs::create_dir(&folder).unwrap();
    Setting {
        seekscope: PathBuf::from(bench.seekscope(&[]).get_program()),
        programs: programs(),
        folder,
        members: 1,
        shards: 0,
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
    let _machine = shared_machine();
    let bench = Bench::new();
    let setting = setting(&bench, "seekscope", 11);
    let table = runtime()
        .block_on(run_trials(
            &setting,
            (During::Reorder, Victim::Seekscope),
            KILLS,
            &mut |_| {},
        ))
        .unwrap();
    let complaints: Vec<_> = table.trials().flat_map(|t| t.complaints()).collect();
    assert!(table.sound(), "{table}\n{complaints:#?}");
    assert!(table.trials().all(|trial| trial.done > 0), "{table}");
}

#[test]
fn a_killed_server_loses_and_doubles_nothing_of_what_is_reordered() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (control, setting) = (
        setting(&bench, "control", 12),
        setting(&bench, "server", 13),
    );
    let killed = (During::Reorder, Victim::Primary);
    let (control, table) = runtime().block_on(async {
        tokio::join!(
            async { run_control(&control, 2, &mut |_| {}).await },
            async { run_trials(&setting, killed, KILLS, &mut |_| {}).await },
        )
    });
    let (control, table) = (control.unwrap(), table.unwrap());
    assert!(control.sound(), "the server itself loses writes: {control}");
    let complaints: Vec<_> = table.trials().flat_map(|t| t.complaints()).collect();
    assert!(table.sound(), "{table}\n{complaints:#?}");
}
