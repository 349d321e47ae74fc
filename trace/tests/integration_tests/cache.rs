//! Hit or miss, against `mincore`.

use seekscope_run::{CacheOutcome, IoFlags};
use seekscope_trace::BackendChoice;

use crate::cold_reads::READS;
use crate::support::{BOTH, alone, trace};

/// Compares every read; of each kind there must be at least `each` reads.
fn outcomes_agree_with_mincore(backend: BackendChoice, job: &str, each: usize) {
    // Not below /tmp, which may be in memory.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (_, mut traced, resident) = trace(job, folder.path(), backend);
    assert_eq!((traced.events.len(), resident.len()), (READS, READS));
    traced.events.sort_by_key(|event| event.t_ns);
    let (mut wrong, mut misses) = (Vec::new(), 0);
    for (event, resident) in traced.events.iter().zip(&resident) {
        let hit = event.cache_outcome() == Some(CacheOutcome::Hit);
        if hit != (resident == "1") {
            wrong.push(event);
        }
        misses += usize::from(!hit);
        // A miss was read from the device, and at least the page asked for.
        assert!(
            !event.flags.has(IoFlags::DEVICE_READ) || event.device_read_bytes >= 4096,
            "{event:?}"
        );
    }
    eprintln!(
        "{backend:?}, {job}: {misses} misses of {READS}, {} wrong",
        wrong.len()
    );
    assert!(
        misses >= each && READS - misses >= each,
        "both kinds are needed, {misses} were misses"
    );
    assert!(
        wrong.len() * 1000 <= READS,
        "{} of {READS}: {:?}",
        wrong.len(),
        &wrong[..10]
    );
}

#[test]
fn random_reads_agree_with_mincore() {
    let _turn = alone();
    for backend in BOTH {
        outcomes_agree_with_mincore(backend, "random_reads", 2000);
    }
}

#[test]
fn reads_with_default_read_ahead_agree_with_mincore() {
    let _turn = alone();
    for backend in BOTH {
        outcomes_agree_with_mincore(backend, "default_reads", 1000);
    }
}

#[test]
fn sequential_reads_agree_with_mincore() {
    let _turn = alone();
    for backend in BOTH {
        outcomes_agree_with_mincore(backend, "sequential_reads", 20);
    }
}
