//! The classifier against made-up patterns, pure and with noise.

use seekscope_pattern::{AccessPattern, Direction, PatternKind};
use seekscope_run::IoOp;
use seekscope_stats::SplitMix64;

use crate::made_up::{Place, TRUTHS, Truth, events, only_file};

const BLOCK_BYTES: [u64; 4] = [4096, 16_384, 32_768, 131_072];
const COUNT: u64 = 2000;

fn pattern(places: &[Place]) -> AccessPattern {
    only_file(&events(places, IoOp::Pread))
        .reads
        .pattern
        .unwrap()
}

#[test]
fn pure_patterns_are_all_told() {
    for truth in &TRUTHS {
        for block in BLOCK_BYTES {
            for (seed, count) in [(1, 100), (2, 300), (3, COUNT), (4, 3 * COUNT)] {
                let places = (truth.make)(count, block, &mut SplitMix64::new(seed));
                let found = pattern(&places);
                assert_eq!(
                    found.kind, truth.kind,
                    "{} {block} {seed}: {found:#?}",
                    truth.name
                );
                assert_eq!(found.accesses, count);
            }
        }
    }
}

#[test]
fn fewer_than_eight_are_few() {
    for truth in &TRUTHS {
        let places = (truth.make)(7, 4096, &mut SplitMix64::new(1));
        assert_eq!(pattern(&places).kind, PatternKind::Few);
    }
}

/// Each event is, with a probability of 0.2, the next one of a pattern of another kind.
fn mixture(truth: &Truth, noise: &Truth, block: u64, seed: u64) -> Vec<Place> {
    let mut rng = SplitMix64::new(seed);
    let mut main = (truth.make)(COUNT, block, &mut rng).into_iter();
    // In every other case the noise is in a part of the file of its own.
    let apart = (seed % 2) << 42;
    let mut noise = (noise.make)(COUNT, block, &mut rng)
        .into_iter()
        .map(|place| Place {
            tid: 99,
            offset: place.offset + apart,
            ..place
        });
    (0..COUNT)
        .filter_map(|_| {
            if rng.below(5) == 0 {
                noise.next()
            } else {
                main.next()
            }
        })
        .collect()
}

#[test]
fn dominant_patterns_are_told_through_noise() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for (t, truth) in TRUTHS.iter().enumerate() {
        for (n, noise) in TRUTHS
            .iter()
            .enumerate()
            .filter(|(_, n)| n.kind != truth.kind)
        {
            for (b, block) in BLOCK_BYTES.into_iter().enumerate() {
                for repetition in 0..2 {
                    let seed = (((t * 100 + n) * 10 + b) * 10 + repetition) as u64;
                    let found = pattern(&mixture(truth, noise, block, seed));
                    cases += 1;
                    if found.kind != truth.kind {
                        wrong.push((truth.name, noise.name, block, found.kind));
                    }
                }
            }
        }
    }
    let right = 1.0 - wrong.len() as f64 / f64::from(cases);
    eprintln!(
        "{cases} mixtures, {:.2} % right, wrong: {wrong:#?}",
        right * 100.0
    );
    assert!(cases >= 500 && right >= 0.95);
}

#[test]
fn streams_are_counted_also_through_noise() {
    let of = |name: &str| TRUTHS.iter().find(|t| t.name == name).unwrap();
    let random = of("uniform random");
    for (truth, streams) in [
        (of("sequential"), 1),
        (of("runs of eight in random order"), 1),
        (of("five streams by five threads"), 5),
        (of("sixteen streams by one thread"), 16),
        (random, 1),
    ] {
        for seed in 0..4 {
            let pure = (truth.make)(COUNT, 4096, &mut SplitMix64::new(seed));
            assert_eq!(
                pattern(&pure).interleaved_streams,
                streams,
                "{}",
                truth.name
            );
            let noisy = pattern(&mixture(truth, random, 4096, seed));
            assert_eq!(
                noisy.interleaved_streams, streams,
                "{} with noise",
                truth.name
            );
        }
    }
}

#[test]
fn each_thread_is_seen_alone() {
    let truth = TRUTHS
        .iter()
        .find(|t| t.name.contains("five threads"))
        .unwrap();
    let places = (truth.make)(COUNT, 4096, &mut SplitMix64::new(1));
    let file = only_file(&events(&places, IoOp::Pread));
    let (pattern, shape) = (file.reads.pattern.unwrap(), file.reads.shape.unwrap());
    assert_eq!((shape.threads, shape.sequential_threads), (5, 5));
    assert_eq!(shape.thread_sequential_share, 1.0);
    // Taken together no step is sequential: that is why threads and streams are looked at.
    assert_eq!(pattern.sequential_share, 0.0);
}

#[test]
fn strides_directions_and_writes() {
    let of = |name: &str| TRUTHS.iter().find(|t| t.name == name).unwrap();
    let places = (of("strided backward").make)(100, 4096, &mut SplitMix64::new(1));
    let found = pattern(&places);
    let stride = places[1].offset.cast_signed() - places[0].offset.cast_signed();
    assert_eq!(
        (found.stride_bytes, found.direction),
        (Some(stride), Direction::Backward)
    );
    let log = (of("append to a log").make)(100, 1, &mut SplitMix64::new(1));
    let file = only_file(&events(&log, IoOp::Pwrite));
    assert!(file.reads.pattern.is_none());
    let found = file.writes.pattern.unwrap();
    assert_eq!(
        (found.kind, found.contiguous_share),
        (PatternKind::Sequential, 1.0)
    );
    assert_eq!((found.run_accesses.max, found.reread_share), (100, 0.0));
}
