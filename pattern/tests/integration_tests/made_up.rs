//! Access patterns made up from a block size and a seed.

use seekscope_pattern::{AnalysisOptions, FileTrace, PatternKind, TraceAnalyser};
use seekscope_run::{IoEvent, IoFlags, IoOp};
use seekscope_stats::SplitMix64;

/// Places in a file of 4 GiB or more, by thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) tid: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A pattern of which the kind is known.
pub(crate) struct Truth {
    pub(crate) name: &'static str,
    pub(crate) kind: PatternKind,
    pub(crate) make: fn(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place>,
}

const BLOCKS: u64 = 100_000;

fn at(offset: u64, bytes: u64) -> Place {
    Place {
        tid: 1,
        offset,
        bytes,
    }
}

fn offsets(count: u64, block: u64, offset: impl FnMut(u64) -> u64) -> Vec<Place> {
    (0..count)
        .map(offset)
        .map(|offset| at(offset, block))
        .collect()
}

/// Longer than the sequential window.
fn stride(block: u64, rng: &mut SplitMix64) -> u64 {
    block + (1 << 18) + rng.below(1000) * 4096
}

fn random(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place> {
    offsets(count, block, |_| rng.below(BLOCKS) * block)
}

/// Rank r with a probability of about 1/r, ranks scattered over the file.
fn hot(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place> {
    offsets(count, block, |_| {
        let rank = (BLOCKS as f64).powf(rng.unit_f64()) as u64;
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % BLOCKS * block
    })
}

fn streams(count: u64, block: u64, streams: u64, threads: bool) -> Vec<Place> {
    let place = |i| Place {
        tid: if threads { 1 + (i % streams) as u32 } else { 1 },
        offset: (i % streams * (BLOCKS / streams) + i / streams) * block,
        bytes: block,
    };
    (0..count).map(place).collect()
}

/// Leaves in key order, mostly but not always next to one another on disk; now and then an inner
/// page from elsewhere.
fn index_scan(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place> {
    let mut leaf = 0;
    offsets(count, block, |i| {
        if i % 60 == 59 {
            return rng.below(BLOCKS) * block;
        }
        leaf += if rng.below(10) == 0 {
            1 + rng.below(3)
        } else {
            1
        };
        leaf * block
    })
}

fn append_log(count: u64, _: u64, rng: &mut SplitMix64) -> Vec<Place> {
    let mut end = 0;
    let mut append = |_| {
        let bytes = 128 * (1 + rng.below(64));
        end += bytes;
        at(end - bytes, bytes)
    };
    (0..count).map(&mut append).collect()
}

fn half_and_half(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place> {
    let mut next = 0;
    offsets(count, block, |_| {
        if rng.below(2) == 0 {
            return rng.below(BLOCKS) * block;
        }
        next += 1;
        (BLOCKS + next) * block
    })
}

fn runs_of_eight(count: u64, block: u64, rng: &mut SplitMix64) -> Vec<Place> {
    let mut start = 0;
    offsets(count, block, |i| {
        if i % 8 == 0 {
            start = rng.below(BLOCKS / 64) * 64;
        }
        (start + i % 8) * block
    })
}

/// Every pattern but "few".
pub(crate) const TRUTHS: [Truth; 15] = [
    Truth {
        name: "sequential",
        kind: PatternKind::Sequential,
        make: |count, block, _| offsets(count, block, |i| i * block),
    },
    Truth {
        name: "sequential with small gaps",
        kind: PatternKind::Sequential,
        make: |count, block, rng| {
            let mut offset = 0;
            offsets(count, block, |_| {
                offset += block + rng.below(16) * 4096;
                offset
            })
        },
    },
    Truth {
        name: "strided forward",
        kind: PatternKind::Strided,
        make: |count, block, rng| {
            let stride = stride(block, rng);
            offsets(count, block, |i| i * stride)
        },
    },
    Truth {
        name: "strided backward",
        kind: PatternKind::Strided,
        make: |count, block, rng| {
            let stride = stride(block, rng);
            offsets(count, block, |i| (count - i) * stride)
        },
    },
    Truth {
        name: "backward sequential",
        kind: PatternKind::Backward,
        make: |count, block, _| offsets(count, block, |i| (count - i) * block),
    },
    Truth {
        name: "uniform random",
        kind: PatternKind::Random,
        make: random,
    },
    Truth {
        name: "hot random",
        kind: PatternKind::Random,
        make: hot,
    },
    Truth {
        name: "runs of eight in random order",
        kind: PatternKind::Sequential,
        make: runs_of_eight,
    },
    Truth {
        name: "half sequential, half random",
        kind: PatternKind::Mixed,
        make: half_and_half,
    },
    Truth {
        name: "five streams by five threads",
        kind: PatternKind::Sequential,
        make: |count, block, _| streams(count, block, 5, true),
    },
    Truth {
        name: "sixteen streams by one thread",
        kind: PatternKind::Sequential,
        make: |count, block, _| streams(count, block, 16, false),
    },
    Truth {
        name: "re-read loop",
        kind: PatternKind::ReRead,
        make: |count, block, rng| {
            let (start, length) = (rng.below(BLOCKS), 1 + rng.below(16));
            offsets(count, block, |i| (start + i % length) * block)
        },
    },
    Truth {
        name: "append to a log",
        kind: PatternKind::Sequential,
        make: append_log,
    },
    Truth {
        name: "index scan",
        kind: PatternKind::Sequential,
        make: index_scan,
    },
    Truth {
        name: "re-read of scattered places",
        kind: PatternKind::ReRead,
        make: |count, block, rng| {
            let places: Vec<u64> = (0..12).map(|_| rng.below(BLOCKS) * block).collect();
            offsets(count, block, |_| places[rng.below(12) as usize])
        },
    },
];

/// One microsecond each, ten microseconds apart.
pub(crate) fn events(places: &[Place], op: IoOp) -> Vec<IoEvent> {
    let event = |(i, place): (usize, &Place)| IoEvent {
        t_ns: 1_000_000 + i as u64 * 10_000,
        pid: 1,
        tid: place.tid,
        file_id: 7,
        op,
        flags: IoFlags::default(),
        offset: Some(place.offset),
        length: place.bytes as u32,
        latency_ns: 1000,
        result: place.bytes as i32,
        device_read_bytes: 0,
        request: None,
    };
    places.iter().enumerate().map(event).collect()
}

/// The only file of a trace of these events.
pub(crate) fn only_file(events: &[IoEvent]) -> FileTrace {
    let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
    for event in events {
        analyser.push(event);
    }
    let mut analysis = analyser.finish(&[], &[]);
    assert_eq!(analysis.files.len(), 1);
    analysis.files.remove(0)
}
