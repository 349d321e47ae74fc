//! Tests what the sentences say of known numbers, and when they say nothing.

use seekscope_run::{DeviceModel, JobFacts, ReadAdvice, TokenBucket};

use super::super::made_up::{MadeUp, commit, null, random, sequential};
use super::*;

/// Returns the sentence of a key; panics when there is none.
fn said(made_up: &MadeUp, key: &str) -> String {
    sentence(&made_up.measurement, key).unwrap_or_else(|| panic!("nothing said of {key}"))
}

fn ramp(rates: [f64; 4]) -> MadeUp {
    let mut made_up = MadeUp::default();
    for (rate, depth) in rates.into_iter().zip([1, 8, 16, 32]) {
        made_up.step(
            StepGroup::Ramp,
            "",
            random(4096, depth),
            rate,
            100_000 * u64::from(depth),
        );
    }
    made_up
}

#[test]
fn nothing_measured_nothing_said() {
    assert_eq!(sentences(&DiskMeasurement::default()), []);
    assert_eq!(key_figures(&DiskMeasurement::default()), []);
    assert_eq!(headline(&DiskMeasurement::default()), None);
}

#[test]
fn a_cache_miss_costs_the_mean_and_says_how_it_comes_about() {
    let mut made_up = ramp([10_000.0, 40_000.0, 60_000.0, 60_000.0]);
    let text = said(&made_up, "cache_miss");
    assert!(
        text.starts_with("A WiredTiger cache miss costs about 100 µs"),
        "{text}"
    );
    assert!(text.contains("one in a hundred at least 300 µs"), "{text}");
    assert!(!text.contains("bursts"), "{text}");
    let latency = &mut made_up.measurement.steps[0].jobs[0].reads.latency;
    latency.mean_ns = 6_600_000.0;
    latency.count = 50;
    let text = said(&made_up, "cache_miss");
    assert!(
        text.contains("about 6.60 ms") && text.contains("served in bursts"),
        "{text}"
    );
    assert!(
        !text.contains("one in a hundred"),
        "50 reads have no 99th percentile: {text}"
    );
}

#[test]
fn a_cache_miss_does_not_cost_what_one_stall_did() {
    let mut made_up = ramp([939.0, 4_000.0, 6_000.0, 6_000.0]);
    let latency = &mut made_up.measurement.steps[0].jobs[0].reads.latency;
    (latency.mean_ns, latency.max_ns, latency.p50_ns) = (177_347.0, 113_377_279, 41_919);
    let text = said(&made_up, "cache_miss");
    assert!(
        text.starts_with("A WiredTiger cache miss costs about 56.7 µs"),
        "{text}"
    );
    assert!(
        text.contains("longest of the 939 reads took 113 ms") && !text.contains("bursts"),
        "{text}"
    );
    let headline = headline(&made_up.measurement).unwrap();
    assert!(headline.contains("costs 56.7 µs"), "{headline}");
    assert!(key_figures(&made_up.measurement).contains(&("a cache miss", "56.7 µs".into())));
}

#[test]
fn concurrency_is_told_from_its_lack() {
    let text = said(
        &ramp([10_000.0, 40_000.0, 58_000.0, 60_000.0]),
        "concurrency",
    );
    assert!(
        text.starts_with("Beyond 16 reads in flight, more concurrency adds latency"),
        "{text}"
    );
    assert!(
        text.contains("96.7 % of the best rate, 60,000 random reads of 4 KiB"),
        "{text}"
    );
    assert!(
        text.ends_with("at most 1.60 ms; with 32 in flight it is 3.20 ms."),
        "{text}"
    );
    let throttled = said(&ramp([150.0, 151.0, 150.0, 149.0]), "concurrency");
    assert!(
        throttled.starts_with("Concurrency gains nothing here: with one read"),
        "{throttled}"
    );
    let rising = said(&ramp([100.0, 800.0, 1600.0, 3200.0]), "concurrency");
    assert!(
        rising.contains("still rising with 32 reads in flight"),
        "{rising}"
    );
}

#[test]
fn blocks_are_judged_by_time_against_data() {
    let mut made_up = ramp([10_000.0; 4]);
    made_up.step(StepGroup::Ramp, "", random(32 << 10, 1), 5_000.0, 190_000);
    let text = said(&made_up, "block_size");
    assert!(
        text.contains("takes 1.9 times as long as one of 4 KiB"),
        "{text}"
    );
    assert!(
        text.contains("8.0 times the data") && text.contains("large blocks"),
        "{text}"
    );
    made_up.measurement.steps.pop();
    made_up.step(StepGroup::Ramp, "", random(32 << 10, 1), 1_000.0, 790_000);
    assert!(said(&made_up, "block_size").contains("compression pay"));
    assert_eq!(sentence(&ramp([1.0; 4]).measurement, "block_size"), None);
}

#[test]
fn cpu_time_is_told_from_a_cpu_limit() {
    let mut made_up = ramp([10_000.0, 20_000.0, 30_000.0, 40_000.0]);
    made_up.measurement.steps[3].jobs[0].cpu_ns = 40_000 * 3_000;
    let text = said(&made_up, "cpu");
    assert!(
        text.contains("3.00 µs with 32 in flight, where 0.12 CPUs"),
        "{text}"
    );
    assert!(text.contains("the disk was the limit"), "{text}");
    made_up.measurement.steps[3].jobs[0].cpu_ns = 950_000_000;
    assert!(said(&made_up, "cpu").contains("no time to spare"));
}

fn orders(in_order: f64, runs: f64, shuffled: f64) -> MadeUp {
    let mut made_up = MadeUp::default();
    made_up.step(StepGroup::Order, "", sequential(32 << 10), in_order, 10_000);
    for (run_blocks, rate) in [(Some(64), runs), (None, shuffled)] {
        let mut job = random(32 << 10, 1);
        job.run_blocks = run_blocks;
        job.direct = false;
        made_up.step(StepGroup::Order, "", job, rate, 10_000);
    }
    made_up
}

#[test]
fn order_is_worth_what_was_measured() {
    let text = said(&orders(3_968.0, 2_937.0, 151.0), "order_gain");
    assert_eq!(
        text,
        "An ordered rewrite could make a cold scan up to 26 times faster: 3,968 blocks of 32 KiB \
         per second in disk order, 151 shuffled."
    );
    let part = said(&orders(3_968.0, 2_937.0, 151.0), "partial_order");
    assert!(
        part.contains("runs of 64 blocks in order reach 74.0 %"),
        "{part}"
    );
    assert!(part.contains("short stretches"), "{part}");
    // Read-ahead that goes wrong in order alone.
    let odd = said(&orders(1_300.0, 5_600.0, 1_000.0), "order_gain");
    assert_eq!(
        odd,
        "What an ordered rewrite gains cannot be determined: all blocks in order were read 1.3 times as fast as shuffled \
         ones (1,300 blocks of 32 KiB per second in disk order, 1,000 shuffled), but runs of 64 in order 5.6 times as \
         fast. Measure again with a larger --size."
    );
    let little = orders(1_200.0, 1_100.0, 1_000.0);
    assert!(said(&little, "order_gain").starts_with("Order hardly matters"));
    assert_eq!(sentence(&little.measurement, "partial_order"), None);
    let indifferent = orders(900.0, 950.0, 1_000.0);
    assert!(said(&indifferent, "order_gain").starts_with("Order does not matter"));
    let tile = |made_up: &MadeUp| {
        let mut figures = key_figures(&made_up.measurement).into_iter();
        let gain = figures.find(|(what, _)| *what == "order gain");
        gain.map(|(_, value)| value)
    };
    assert_eq!(tile(&indifferent).as_deref(), Some("none"));
    // A gain below 1 is none of the order's.
    let failed = orders(4_090.0, 12_472.0, 8_948.0);
    let text = said(&failed, "order_gain");
    assert!(
        text.contains("cannot be determined") && text.contains("more slowly than shuffled"),
        "{text}"
    );
    assert_eq!(tile(&failed), None);
}

#[test]
fn scans_are_told_in_time_and_held_against_the_page_cache() {
    let mut made_up = orders(3_968.0, 1.0, 1.0);
    let mut direct = sequential(1 << 20);
    direct.direct = true;
    made_up.step(StepGroup::SequentialDirect, "", direct, 1000.0, 1_000_000);
    let text = said(&made_up, "scan");
    assert!(
        text.contains("at most 1,049 MB/s, which is 102 s for 100 GiB"),
        "{text}"
    );
    assert!(text.contains("130 MB/s (12.4 %), so small calls"), "{text}");
}

#[test]
fn read_ahead_helps_scans_and_may_hurt_the_rest() {
    let mut made_up = MadeUp::default();
    for (kib, in_order, shuffled) in [
        (8, 600.0, 150.0),
        (1024, 9_500.0, 148.0),
        (4096, 9_900.0, 60.0),
    ] {
        for (mut job, rate) in [
            (sequential(32 << 10), in_order),
            (random(32 << 10, 1), shuffled),
        ] {
            job.window_bytes = Some(kib << 10);
            made_up.step(StepGroup::ReadAhead, "", job, rate, 1_000);
        }
    }
    let text = said(&made_up, "read_ahead");
    assert!(
        text.starts_with("Scans need 1 MiB of read-ahead or more: 311 MB/s with that"),
        "{text}"
    );
    let random = said(&made_up, "read_ahead_random");
    assert!(
        random.starts_with("Random reads lose 60.0 % with 4 MiB of read-ahead"),
        "{random}"
    );
    made_up.measurement.steps[4].jobs[0].reads.bytes /= 4;
    let worse = said(&made_up, "read_ahead");
    assert!(
        worse.starts_with("For scans, 1 MiB of read-ahead was best: 311 MB/s with that")
            && worse.ends_with("; 4 MiB of read-ahead was slower here, 81.1 MB/s."),
        "{worse}"
    );
    made_up.measurement.steps.truncate(4);
    assert!(
        said(&made_up, "read_ahead_random")
            .starts_with("Read-ahead makes no difference to random reads")
    );
}

#[test]
fn commits_wait_and_share() {
    let mut made_up = MadeUp::default();
    made_up.step(
        StepGroup::Journal,
        "1 overwrite",
        commit(4096, 1),
        415.0,
        840_000,
    );
    made_up.step(
        StepGroup::Journal,
        "8 overwrite",
        commit(4096, 8),
        28_000.0,
        135_000,
    );
    let text = said(&made_up, "commit");
    assert!(
        text.starts_with("A journaled commit (j:true) waits 840 µs at the median and 2.52 ms"),
        "{text}"
    );
    assert!(text.contains("more than 415 times per second"), "{text}");
    assert_eq!(
        said(&made_up, "group_commit"),
        "8 writers share flushes: together 28,000 commits per second, 67 times as many."
    );
    assert_eq!(sentence(&made_up.measurement, "fresh_file"), None);
    made_up.step(
        StepGroup::Journal,
        "1 fresh",
        JobFacts {
            fresh_blocks: true,
            ..commit(4096, 1)
        },
        100.0,
        3_500_000,
    );
    assert!(said(&made_up, "fresh_file").contains("take 4.2 times as long"));
    // A single commit made all of them seem long.
    let fresh = &mut made_up.measurement.steps[2].jobs[0].writes.latency;
    (fresh.p50_ns, fresh.max_ns, fresh.mean_ns) = (790_000, 245_000_000, 3_250_000.0);
    let text = said(&made_up, "fresh_file");
    assert!(
        text.contains("no difference beyond noise (790 µs and 840 µs at the median)")
            && text.contains("One commit took 245 ms"),
        "{text}"
    );
    made_up.measurement.steps[1].jobs[0].writes.operations = 420;
    assert!(said(&made_up, "group_commit").contains("together are no faster"));
}

#[test]
fn a_burst_is_compared_with_the_same_commits_alone() {
    let mut made_up = MadeUp::default();
    made_up.step(StepGroup::Checkpoint, "", commit(4096, 1), 50.0, 9_000_000);
    let text = said(&made_up, "checkpoint");
    assert!(
        text.starts_with("While a checkpoint-like burst writes, a commit waits 9.00 ms"),
        "{text}"
    );
    assert!(
        !text.contains("alone") && !text.contains("99th"),
        "50 have no 99th percentile: {text}"
    );
    made_up.step(StepGroup::Journal, "", commit(4096, 1), 1000.0, 450_000);
    let text = said(&made_up, "checkpoint");
    assert!(
        text.contains("at the median (20 times as long as alone)"),
        "{text}"
    );
    assert!(text.ends_with("the longest stall was 36.0 ms."), "{text}");
}

#[test]
fn mixed_reads_are_compared_with_reads_alone() {
    let mut made_up = ramp([10_000.0, 40_000.0, 58_000.0, 60_000.0]);
    let mut job = random(4096, 16);
    job.access = seekscope_run::AccessKind::RandRw;
    job.read_share = 0.7;
    made_up.step(StepGroup::Mixed, "", job, 30_000.0, 3_200_000);
    let text = said(&made_up, "mixed");
    assert!(
        text.starts_with("With 30 % writes among the reads and 16 in flight"),
        "{text}"
    );
    assert!(
        text.ends_with("2.0 times as long as without the writes."),
        "{text}"
    );
}

#[test]
fn a_mapping_without_advice_drags_in_too_much() {
    let mut made_up = MadeUp::default();
    for (advice, rate) in [(ReadAdvice::Random, 8_600.0), (ReadAdvice::Normal, 32.0)] {
        let mut job = random(4096, 1);
        job.engine = seekscope_run::EngineKind::Mmap;
        job.advice = advice;
        made_up.step(StepGroup::Mmap, "", job, rate, 10_000);
    }
    made_up.measurement.steps[1].device_read_bytes = Some(32 * 4096 * 1600);
    let text = said(&made_up, "mmap");
    assert!(
        text.contains("8,600 cold page faults per second with random advice and 32.0"),
        "{text}"
    );
    assert!(
        text.contains("reads 1,600 times the bytes requested"),
        "{text}"
    );
    made_up.measurement.steps[1].device_read_bytes = Some(32 * 1024);
    assert!(said(&made_up, "mmap").contains("75.0 % of the bytes were in memory already"));
}

#[test]
fn the_generator_must_be_far_ahead_of_the_disk() {
    let mut made_up = ramp([10_000.0, 40_000.0, 58_000.0, 60_000.0]);
    made_up.step(StepGroup::Generator, "", null(), 6_000_000.0, 100);
    let text = said(&made_up, "generator");
    assert!(
        text.contains("100 times the most that this disk did"),
        "{text}"
    );
    made_up.measurement.steps[4].jobs[0].reads.operations = 90_000;
    assert!(said(&made_up, "generator").contains("only 1.5 times"));
}

#[test]
fn direct_reads_are_believed_only_with_proof() {
    let mut made_up = ramp([10_000.0; 4]);
    assert!(said(&made_up, "direct").contains("did not bypass the page cache"));
    made_up.measurement.direct.real = true;
    let text = said(&made_up, "direct");
    assert!(text.ends_with("fetched 100.0 % of their bytes."), "{text}");
    for step in &mut made_up.measurement.steps {
        step.device_read_bytes = step.device_read_bytes.map(|bytes| bytes / 4);
    }
    let text = said(&made_up, "direct");
    assert!(
        text.contains("but according to the kernel, the block layer fetched 25.0 %"),
        "{text}"
    );
    for step in &mut made_up.measurement.steps {
        step.device_read_bytes = None;
    }
    assert_eq!(
        said(&made_up, "direct"),
        "Direct reads bypassed the page cache."
    );
}

#[test]
fn a_job_with_a_rate_says_whether_it_was_kept() {
    let mut made_up = MadeUp::default();
    let mut job = random(4096, 32);
    job.rate_per_s = Some(5_000.0);
    made_up.step(StepGroup::Job, "job", job, 5_000.0, 700_000);
    assert!(
        said(&made_up, "job").starts_with("randread of 4 KiB with 32 in flight: 5,000 per second")
    );
    assert!(said(&made_up, "rate").contains("was reached"));
    made_up.measurement.steps[0].jobs[0].behind = 50;
    assert!(said(&made_up, "rate").contains("was reached"));
    made_up.measurement.steps[0].jobs[0].behind = 1234;
    assert!(said(&made_up, "rate").contains("1,234 operations were due but had not begun"));
    let names: Vec<&str> = key_figures(&made_up.measurement)
        .iter()
        .map(|f| f.0)
        .collect();
    assert_eq!(
        names,
        [
            "operations per second",
            "moved",
            "median latency",
            "99th percentile"
        ]
    );
}

/// Everything was measured, but held to 50 per second: none of it says what the disk can do.
#[test]
fn steps_held_to_a_rate_say_nothing_of_the_disks_ability() {
    let mut made_up = ramp([50.0; 4]);
    let mut add = |group, job| made_up.step(group, "", job, 50.0, 100_000);
    add(StepGroup::SequentialDirect, sequential(1 << 20));
    add(StepGroup::Order, sequential(32 << 10));
    add(StepGroup::Order, {
        let mut shuffled = random(32 << 10, 1);
        shuffled.run_blocks = Some(1);
        shuffled
    });
    add(StepGroup::Order, {
        let mut runs = random(32 << 10, 1);
        runs.run_blocks = Some(8);
        runs
    });
    add(StepGroup::ReadAhead, sequential(32 << 10));
    add(StepGroup::ReadAhead, random(32 << 10, 1));
    add(StepGroup::Journal, commit(4096, 1));
    add(StepGroup::Journal, commit(4096, 8));
    for group in [StepGroup::Mixed, StepGroup::Mmap, StepGroup::Sustained] {
        add(group, random(4096, 8));
    }
    // Full order must gain, or partial order is not worth mentioning.
    made_up.measurement.steps[5].jobs[0].reads.operations = 500;
    made_up.measurement.model = Some(DeviceModel {
        iops_bucket: Some(TokenBucket {
            per_s: 50.0,
            burst: 0.0,
        }),
        ..DeviceModel::default()
    });
    let said_of_ability = |made_up: &MadeUp| {
        let said = sentences(&made_up.measurement).into_iter();
        said.map(|(key, _)| key)
            .filter(|key| OF_ABILITY.contains(key))
            .collect::<Vec<_>>()
    };
    let mut free = OF_ABILITY.to_vec();
    free.retain(|&key| key != "fresh_file");
    assert_eq!(said_of_ability(&made_up), {
        let order = keys().filter(|key| free.contains(key));
        order.collect::<Vec<_>>()
    });
    assert!(said(&made_up, "commit").contains("cannot commit more than"));
    for step in &mut made_up.measurement.steps {
        step.jobs[0].job.rate_per_s = Some(50.0);
    }
    assert_eq!(said_of_ability(&made_up), [""; 0]);
    assert!(!said(&made_up, "commit").contains("cannot"));
    let figures: Vec<&str> = key_figures(&made_up.measurement)
        .iter()
        .map(|f| f.0)
        .collect();
    assert_eq!(figures, ["a cache miss", "a journaled commit, median"]);
    assert!(!headline(&made_up.measurement).unwrap().contains("faster"));
}

#[test]
fn the_model_states_its_error_and_what_follows() {
    let mut made_up = MadeUp::default();
    made_up.measurement.model = Some(DeviceModel {
        l0_ns: 6_580_000.0,
        ns_per_byte: 6.0,
        fit_error: 0.08,
        sequential_bytes_per_s: 150e6,
        iops_bucket: Some(TokenBucket {
            per_s: 3_000.0,
            burst: 90_000.0,
        }),
        ..DeviceModel::default()
    });
    assert!(said(&made_up, "model").contains("6.58 ms plus 6.14 µs for each KiB; every size"));
    assert!(said(&made_up, "read_through").contains("Gaps of up to 964 KiB"));
    let limits = said(&made_up, "limits");
    assert!(
        limits.contains("3,000 requests per second once a burst of 90,000 requests"),
        "{limits}"
    );
    made_up.measurement.model.as_mut().unwrap().fit_error = 0.4;
    assert!(said(&made_up, "model").contains("predictions based on it are rough"));
}
