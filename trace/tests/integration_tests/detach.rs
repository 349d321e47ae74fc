//! Nothing stays in the kernel.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use seekscope_trace::{BackendChoice, Recording};

use crate::support::{BOTH, Collector, Worker, alone, attach};

/// Numbers of the programs that this process holds descriptors of.
fn our_programs() -> HashSet<u32> {
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts
        .flat_map(|text| {
            text.lines()
                .filter_map(|l| l.strip_prefix("prog_id:")?.trim().parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns those of `programs` that the kernel still has.
fn alive(programs: &HashSet<u32>) -> Vec<u32> {
    ProgInfoIter::default()
        .map(|info| info.id)
        .filter(|id| programs.contains(id))
        .collect()
}

#[test]
fn a_dropped_recording_leaves_no_program() {
    let _turn = alone();
    for backend in BOTH {
        // Those of another test may still be on their way out.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !our_programs().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start("fast_reads", folder.path());
        let source = attach(&worker, backend, 1 << 20);
        let programs = our_programs();
        // One for entry and one for exit of all calls, or several for single calls.
        let is_one_pair = programs.len() == 2;
        assert_eq!(is_one_pair, backend == BackendChoice::TpBtf, "{programs:?}");
        assert_eq!(alive(&programs).len(), programs.len());
        let recording = Recording::start(Box::new(source), Box::new(Collector::default()));
        worker.work();
        drop(recording);
        // The kernel frees programs a grace period after their last user is gone, and lets go of one tracepoint after the
        // other.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !alive(&programs).is_empty() || !our_programs().is_empty() {
            assert!(
                Instant::now() < deadline,
                "programs {:?} are still there",
                alive(&programs)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
