use seekscope_run::FileRole;

use super::*;
use crate::testing::{Call, GIB, Recording, flash};

fn answer(recording: &Recording, setting: &str) -> Option<HostAnswer> {
    let answers = recording.examine(|_, answers| answers.host.clone());
    answers.into_iter().find(|answer| answer.setting == setting)
}

/// Reads of 16 KiB that miss, with what the disk read for each.
fn reads(recording: &mut Recording, in_order: bool, device_bytes: u32) {
    let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("conn1");
    let shuffled = seekscope_stats::shuffled::distinct(100_000, 2_000, 7);
    for i in 0..2_000u32 {
        let place = match in_order {
            true => u64::from(i),
            false => shuffled[i as usize],
        };
        let call = Call {
            tid,
            file_id,
            at_s: f64::from(i) * 0.02,
            offset: place * 16_384,
            bytes: 16_384,
            latency_s: 0.0005,
        };
        recording.miss_with_read_ahead(call, device_bytes);
    }
}

#[test]
fn read_ahead_goes_by_the_pattern() {
    let mut wasteful = Recording::new();
    wasteful.ability(flash(1e-4));
    wasteful.device().read_ahead_kib = Some(4096);
    reads(&mut wasteful, false, 1 << 20);
    let found = answer(&wasteful, "read-ahead").unwrap();
    assert!(!found.fits, "{found:?}");
    assert_eq!(found.wants, "16 KiB or less");
    assert_eq!(
        found.command,
        "echo 16 > /sys/block/vda/queue/read_ahead_kb"
    );
    // 2,000 times 1,008 KiB at 1 ns per byte, in a minute.
    let loss = found.loss_s_per_hour.unwrap();
    assert!((loss - 2000.0 * 1_032_192e-9 * 60.0).abs() < 1.0, "{loss}");

    let mut modest = Recording::new();
    modest.ability(flash(1e-4));
    reads(&mut modest, false, 16_384);
    assert!(
        answer(&modest, "read-ahead").unwrap().fits,
        "nothing unwanted was read"
    );

    let mut starved = Recording::new();
    starved.ability(flash(1e-2));
    starved.device().read_ahead_kib = Some(16);
    reads(&mut starved, true, 16_384);
    let found = answer(&starved, "read-ahead").unwrap();
    assert!(!found.fits && found.wants == "128 to 1024 KiB", "{found:?}");

    let untraced = answer(&Recording::new(), "read-ahead").unwrap();
    assert!(
        untraced.fits && untraced.loss_s_per_hour.is_none(),
        "{untraced:?}"
    );
    let mut large = Recording::new();
    large.device().read_ahead_kib = Some(8192);
    let untold = answer(&large, "read-ahead").unwrap();
    let [wants, command] = [&untold.wants, &untold.command];
    assert!(wants.is_empty() && command.is_empty(), "{untold:?}");
}

#[test]
fn disk_settings() {
    let mut recording = Recording::new();
    let healthy = answer(&recording, "I/O scheduler").unwrap();
    assert!(healthy.fits && healthy.command.is_empty(), "{healthy:?}");
    recording.device().scheduler = Some("bfq".into());
    let found = answer(&recording, "I/O scheduler").unwrap();
    assert_eq!(found.command, "echo none > /sys/block/vda/queue/scheduler");
    recording.device().disk = Some("a; reboot".into());
    let found = answer(&recording, "I/O scheduler").unwrap();
    assert!(
        found
            .command
            .ends_with("'/sys/block/a; reboot/queue/scheduler'"),
        "{found:?}"
    );
    for (filesystem, fits) in [
        ("xfs", true),
        ("ext4", true),
        ("btrfs", false),
        ("nfs4", false),
    ] {
        recording.device().filesystem = filesystem.into();
        assert_eq!(
            answer(&recording, "filesystem").unwrap().fits,
            fits,
            "{filesystem}"
        );
    }
}

#[test]
fn huge_pages_go_by_the_version() {
    let mut recording = Recording::new();
    assert_eq!(answer(&recording, "transparent huge pages"), None);
    for (version, pages, fits) in [
        ("7.0.5", "always", false),
        ("7.0.5", "madvise", true),
        ("8.0.1", "always", true),
        ("8.0.1", "never", false),
    ] {
        recording.examined().target.version = version.into();
        recording.host().transparent_huge_pages = Some(pages.into());
        let found = answer(&recording, "transparent huge pages").unwrap();
        assert_eq!(found.fits, fits, "{version} {pages}");
        assert_eq!(found.wants.contains(pages), fits, "{found:?}");
    }
    recording.examined().target.product = "secantusd-rs".into();
    assert_eq!(answer(&recording, "transparent huge pages"), None);
}

#[test]
fn memory_settings() {
    let mut recording = Recording::new();
    assert!(answer(&recording, "cache size").unwrap().fits);
    recording.host().surroundings.memory_limit_bytes = Some(8 * GIB);
    let found = answer(&recording, "cache size").unwrap();
    assert!(
        !found.fits && found.command.contains("cache_size=3584M"),
        "{found:?}"
    );

    assert_eq!(answer(&recording, "NUMA"), None);
    recording.host().numa_nodes = 2;
    recording.host().numa_interleaved = Some(false);
    assert!(!answer(&recording, "NUMA").unwrap().fits);

    recording.host().swappiness = Some(60);
    recording.host().swap_total_bytes = Some(0);
    assert_eq!(answer(&recording, "swappiness"), None);
    recording.host().swap_total_bytes = Some(GIB);
    assert!(!answer(&recording, "swappiness").unwrap().fits);

    recording.host().dirty_ratio = Some(20);
    recording.host().dirty_background_ratio = Some(10);
    assert!(
        answer(&recording, "dirty ratios of the page cache")
            .unwrap()
            .fits
    );
    recording.document.host.as_mut().unwrap().memory_bytes = 256 * GIB;
    assert!(
        !answer(&recording, "dirty ratios of the page cache")
            .unwrap()
            .fits
    );
}

#[test]
fn settings_of_the_server() {
    let mut recording = Recording::new();
    assert_eq!(answer(&recording, "tickets"), None);
    recording.steady("wiredTiger.concurrentTransactions.read.available", 100.0);
    recording.steady("wiredTiger.concurrentTransactions.read.totalTickets", 128.0);
    let found = answer(&recording, "tickets").unwrap();
    assert!(
        found.fits && found.has.contains("128 for reads, 100 free"),
        "{found:?}"
    );

    recording.host().open_files_limit = Some(1024);
    assert!(!answer(&recording, "open files").unwrap().fits);

    recording.examined().compatibility_version = Some("6.0".into());
    let found = answer(&recording, "feature compatibility version").unwrap();
    assert!(!found.fits && found.wants == "7.0", "{found:?}");
    assert!(found.command.contains("confirm: true"), "{found:?}");
    recording.examined().target.version = "6.0.12".into();
    recording.examined().compatibility_version = Some("5.0".into());
    let found = answer(&recording, "feature compatibility version").unwrap();
    assert!(!found.command.contains("confirm"), "{found:?}");
}
