//! Nothing stays in the kernel.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use libbpf_rs::query::ProgInfoIter;
use seekscope_trace::Recording;

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

/// Those of `programs` that the kernel still has.
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
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start("fast_reads", folder.path());
        let source = attach(&worker, backend, 1 << 20);
        let programs = our_programs();
        assert_eq!(programs.len(), 2, "one for entry, one for exit");
        assert_eq!(alive(&programs).len(), 2);
        let recording = Recording::start(Box::new(source), Box::new(Collector::default()));
        worker.work();
        drop(recording);
        assert!(our_programs().is_empty());
        // The kernel frees programs a grace period after their last user is gone.
        let deadline = Instant::now() + Duration::from_secs(5);
        while !alive(&programs).is_empty() {
            assert!(
                Instant::now() < deadline,
                "programs {:?} are still there",
                alive(&programs)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
