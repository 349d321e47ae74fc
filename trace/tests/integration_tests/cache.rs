//! Hit or miss, against `mincore`.

use seekscope_run::{CacheOutcome, IoFlags};

use crate::jobs::CACHE_READS;
use crate::support::{BOTH, alone, trace};

#[test]
fn hits_and_misses_agree_with_mincore() {
    let _turn = alone();
    for backend in BOTH {
        // Not below /tmp, which may be in memory.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let (_, mut traced, resident) = trace("cached_and_not", folder.path(), backend);
        assert_eq!(
            (traced.events.len(), resident.len()),
            (CACHE_READS, CACHE_READS)
        );
        traced.events.sort_by_key(|event| event.t_ns);
        let (mut agree, mut misses) = (0, 0);
        for (event, resident) in traced.events.iter().zip(&resident) {
            let hit = event.cache_outcome() == Some(CacheOutcome::Hit);
            agree += usize::from(hit == (resident == "1"));
            misses += usize::from(!hit);
            // A miss was read from the device, and at least the page asked for.
            assert!(
                !event.flags.has(IoFlags::DEVICE_READ) || event.device_read_bytes >= 4096,
                "{event:?}"
            );
        }
        assert!(
            misses > 1000 && misses < CACHE_READS - 1000,
            "both kinds are needed, {misses} were misses"
        );
        assert!(
            agree * 100 >= CACHE_READS * 99,
            "{agree} of {CACHE_READS} agree"
        );
        eprintln!("{backend:?}: {agree} of {CACHE_READS} agree with mincore, {misses} misses");
    }
}
