use proptest::prelude::*;
use seekscope_stats::SplitMix64;
use seekscope_stats::shuffled::distinct;
use seekscope_wiredtiger::LeafKind;

use super::*;

const LEAF: u32 = 32 << 10;
const JOINING: Joining = Joining {
    gap_bytes: 1 << 20,
    stretch_bytes: 2 << 20,
};

fn leaf(offset: u64, length: u32) -> Leaf {
    Leaf {
        offset,
        length,
        kind: LeafKind::Plain,
    }
}

/// Leaves of one size that fill a file, in random order on disk.
fn shuffled(count: u64, seed: u64) -> Vec<Leaf> {
    let slots = distinct(count, count, seed);
    let offset = |slot: u64| 4096 + slot * u64::from(LEAF);
    slots
        .into_iter()
        .map(|slot| leaf(offset(slot), LEAF))
        .collect()
}

fn stretch(next: Next) -> Stretch {
    match next {
        Next::Read(stretch) => stretch,
        other => panic!("{other:?}"),
    }
}

/// The outcome of a scan.
#[derive(Debug)]
struct Scan {
    elapsed_s: f64,
    misses: u64,
    /// Bytes read ahead, in multiples of the file.
    rounds: f64,
    held_bytes_max: u64,
}

/// A scan on a disk of 150 requests and 150 MB a second, a request being 1 MiB, with two reads ahead in
/// flight; a leaf in memory takes `hit_s`, and the server reads by itself what is not.
fn simulate(leaves: &[Leaf], memory_bytes: u64, hit_s: f64) -> Scan {
    let mut sweep = Sweep::new(leaves, memory_bytes).unwrap();
    let (mut requests_s, mut bytes_s) = (0.0_f64, 0.0_f64);
    let mut cost = |now_s: f64, requests: u64, bytes: u64| {
        requests_s = requests_s.max(now_s) + requests as f64 / 150.0;
        bytes_s = bytes_s.max(now_s) + bytes as f64 / 150e6;
        requests_s.max(bytes_s)
    };
    let mut under_way: Vec<(f64, Stretch)> = Vec::new();
    let (mut now_s, mut server_s, mut position) = (0.0_f64, 0.0_f64, 0);
    let (mut misses, mut asked, mut held_bytes_max) = (0, 0, 0);
    while position < leaves.len() {
        while under_way.len() < 2 {
            let Next::Read(stretch) = sweep.next(JOINING) else {
                break;
            };
            let (requests, bytes) = asked_of_the_disk(&sweep, &stretch);
            asked += bytes;
            under_way.push((cost(now_s, requests, bytes), stretch));
        }
        held_bytes_max = held_bytes_max.max(sweep.held_bytes());
        if under_way.first().is_some_and(|(at, _)| *at <= server_s) {
            let (at, stretch) = under_way.remove(0);
            now_s = at;
            sweep.done(&stretch, &stretch.leaves);
            continue;
        }
        now_s = server_s;
        let hit = sweep.states[position] == State::Held;
        misses += u64::from(!hit);
        server_s = if hit {
            now_s + hit_s
        } else {
            cost(now_s, 1, LEAF.into())
        };
        position += 1;
        sweep.advance(position);
    }
    Scan {
        elapsed_s: server_s,
        misses,
        rounds: asked as f64 / (leaves.len() as f64 * f64::from(LEAF)),
        held_bytes_max,
    }
}

/// Requests and bytes: what is in memory is not read again, and cuts a request in two.
fn asked_of_the_disk(sweep: &Sweep, stretch: &Stretch) -> (u64, u64) {
    let range = stretch.range();
    let offset_of = |ordinal: &u32| sweep.leaves[*ordinal as usize].offset;
    let from = sweep
        .by_offset
        .partition_point(|o| offset_of(o) < range.start);
    let inside = sweep.by_offset[from..].iter();
    let inside = inside.take_while(|ordinal| offset_of(ordinal) < range.end);
    let (mut requests, mut bytes, mut run) = (0, 0, 0_u64);
    for &ordinal in inside {
        let length = u64::from(sweep.leaves[ordinal as usize].length);
        if sweep.states[ordinal as usize] == State::Held {
            requests += run.div_ceil(1 << 20);
            run = 0;
        } else {
            run += length;
            bytes += length;
        }
    }
    (requests + run.div_ceil(1 << 20), bytes)
}

/// 320 MB that take 68 s leaf by leaf.
#[test]
fn a_scan_of_a_shuffled_file_in_a_part_of_its_size() {
    let leaves = shuffled(10_240, 7);
    let all = 10_240 * u64::from(LEAF);
    let whole = simulate(&leaves, all, 3e-5);
    assert!(whole.elapsed_s < 3.0 && whole.rounds <= 1.0, "{whole:?}");
    let quarter = simulate(&leaves, all / 4, 3e-5);
    assert!(
        quarter.elapsed_s < 11.5 && quarter.rounds < 4.0,
        "{quarter:?}"
    );
    assert!(quarter.held_bytes_max <= all / 4 + (2 << 20), "{quarter:?}");
    let eighth = simulate(&leaves, all / 8, 3e-5);
    assert!(eighth.elapsed_s < 20.0, "{eighth:?}");
    // An engine that takes 0.5 ms for each leaf hardly waits for the disk.
    let slow = simulate(&leaves, all / 4, 5e-4);
    assert!(slow.misses < 800, "{slow:?}");
}

#[test]
fn short_gaps_are_bridged_and_long_ones_are_not() {
    let leaves = [leaf(0, 4096), leaf(8192, 4096), leaf(4 << 20, 4096)];
    let mut sweep = Sweep::new(&leaves, 1 << 20).unwrap();
    let first = stretch(sweep.next(JOINING));
    assert_eq!((first.leaves.len(), first.range()), (2, 0..12_288));
    assert_eq!(first.leaf_bytes(), 8192);
    let second = stretch(sweep.next(JOINING));
    assert_eq!(second.range(), 4 << 20..(4 << 20) + 4096);
    assert_eq!(sweep.next(JOINING), Next::Nothing);
    let mut alone = Sweep::new(&leaves, 1 << 20).unwrap();
    let joining = Joining {
        gap_bytes: 0,
        ..JOINING
    };
    assert_eq!(stretch(alone.next(joining)).leaves.len(), 1);
}

#[test]
fn deleted_leaves_are_left_alone() {
    let mut leaves = shuffled(8, 1);
    leaves[5].kind = LeafKind::Deleted;
    let sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    assert_eq!(sweep.leaves().len(), 7);
    assert_eq!(sweep.ordinal_at(leaves[5].offset), None);
    assert_eq!(sweep.ordinal_at(leaves[6].offset), Some(5));
    let mut empty = Sweep::new(&[], 0).unwrap();
    assert_eq!(empty.next(JOINING), Next::Nothing);
    assert!(empty.advance(10).is_empty());
}

#[test]
fn what_is_left_out_is_never_read() {
    let leaves = shuffled(100, 3);
    let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    let first = stretch(sweep.next(JOINING));
    sweep.done(&first, &first.leaves);
    let there = first
        .leaves
        .iter()
        .filter(|leaf| sweep.leaves()[40..56].contains(leaf));
    let there = there.count();
    assert!(there > 0 && there < 16, "{there}");
    assert_eq!(sweep.leave_out(40..56).len(), there, "given back");
    let mut read = first.leaves.len() - there;
    while let Next::Read(stretch) = sweep.next(JOINING) {
        read += stretch.leaves.len();
        sweep.done(&stretch, &stretch.leaves);
    }
    assert_eq!(read, 84);
    assert_eq!(sweep.first_unread(), 100);
}

#[test]
fn what_is_being_read_when_it_is_left_out_is_given_back() {
    let leaves = shuffled(10, 3);
    let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    let all = stretch(sweep.next(JOINING));
    assert!(sweep.leave_out(4..8).is_empty(), "nothing is there yet");
    let late = sweep.done(&all, &all.leaves);
    assert_eq!(late.len(), 4);
    assert!(late.iter().all(|leaf| sweep.leaves()[4..8].contains(leaf)));
    assert_eq!(sweep.held_bytes(), 6 * u64::from(LEAF));
}

#[test]
fn what_was_left_out_can_be_taken_in_again() {
    let leaves = shuffled(100, 3);
    let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    let bytes = sweep.unread_bytes;
    sweep.leave_out(40..56);
    sweep.advance(48);
    sweep.take_in(40..56);
    assert_eq!(sweep.unread_bytes, bytes - 48 * u64::from(LEAF));
    assert_eq!(sweep.first_unread(), 48);
}

#[test]
fn leaves_that_the_kernel_took_are_read_again() {
    let leaves = shuffled(10, 3);
    let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    let all = stretch(sweep.next(JOINING));
    sweep.done(&all, &all.leaves);
    let next = sweep.held_next(2);
    assert_eq!(next, sweep.leaves()[..2]);
    sweep.lost(next[0]);
    assert_eq!(sweep.first_unread(), 0);
    assert_eq!(stretch(sweep.next(JOINING)).leaves, [next[0]]);
    // Leaves that were in memory before are nobody's to give back.
    let again = Stretch {
        leaves: vec![next[0]],
    };
    assert!(sweep.done(&again, &[]).is_empty());
    assert_eq!(sweep.advance(2), [next[1]]);
}

#[test]
fn with_less_memory_the_farthest_leaves_are_given_back() {
    let leaves = shuffled(64, 9);
    let all = 64 * u64::from(LEAF);
    let mut sweep = Sweep::new(&leaves, all).unwrap();
    while let Next::Read(stretch) = sweep.next(JOINING) {
        sweep.done(&stretch, &stretch.leaves);
    }
    let given_back = sweep.set_memory(all / 4);
    assert_eq!(given_back.len(), 48);
    assert!(
        given_back
            .iter()
            .all(|leaf| sweep.leaves()[16..].contains(leaf))
    );
    assert_eq!(sweep.held_bytes(), all / 4);
    assert_eq!(sweep.set_memory(all), []);
    // They are read again.
    assert_eq!(sweep.first_unread(), 16);
    assert!(matches!(sweep.next(JOINING), Next::Read(_)));
}

/// The trial of the disk leaves some leaves in memory before the scan begins, and a command waits
/// until the others are there.
#[test]
fn the_first_round_begins_also_where_much_is_held_already() {
    let leaves = shuffled(100, 3);
    let mut sweep = Sweep::new(&leaves, 20 * u64::from(LEAF)).unwrap();
    let tried = sweep.leaves()[..9].to_vec();
    sweep.hold(&tried);
    assert!(!sweep.is_read());
    while let Next::Read(stretch) = sweep.next(JOINING) {
        let mut ours = stretch.leaves.clone();
        ours.sort_unstable();
        sweep.done(&stretch, &ours);
    }
    assert!(sweep.is_read());
    assert_eq!(sweep.held_bytes(), 20 * u64::from(LEAF));
    assert_eq!(
        sweep.next(JOINING),
        Next::Nothing,
        "until the scan has moved"
    );
}

#[test]
fn what_comes_too_late_is_given_back() {
    let leaves = shuffled(10, 3);
    let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
    let all = stretch(sweep.next(JOINING));
    assert!(sweep.advance(4).is_empty(), "nothing is there yet");
    let late = sweep.done(&all, &all.leaves);
    assert_eq!(late.len(), 4);
    assert_eq!(sweep.held_bytes(), 6 * u64::from(LEAF));
}

#[test]
fn a_scan_that_begins_again_is_read_ahead_again() {
    let leaves = shuffled(64, 5);
    let mut sweep = Sweep::new(&leaves, 64 * u64::from(LEAF) / 4).unwrap();
    for position in 0..=64 {
        while let Next::Read(stretch) = sweep.next(JOINING) {
            sweep.done(&stretch, &stretch.leaves);
        }
        sweep.advance(position);
    }
    assert_eq!(
        (sweep.held_bytes(), sweep.next(JOINING)),
        (0, Next::Nothing)
    );
    sweep.advance(0);
    assert!(matches!(sweep.next(JOINING), Next::Read(_)));
}

/// Some leaves have moved to the end of the file, as updates move them.
fn updated(leaves: &[Leaf], share: f64, seed: u64) -> Vec<Leaf> {
    let mut random = SplitMix64::new(seed);
    let mut end = leaves
        .iter()
        .map(|l| l.offset + u64::from(l.length))
        .max()
        .unwrap();
    let moved = leaves.iter().map(|&leaf| {
        if random.below(1000) as f64 >= share * 1000.0 {
            return leaf;
        }
        end += u64::from(LEAF);
        Leaf {
            offset: end,
            ..leaf
        }
    });
    moved.collect()
}

proptest! {
    /// Whatever a scan and the reading threads do, counts stay right and the window bounded.
    #[test]
    fn counts_stay_right(
        seed: u64,
        memory_leaves in 1u64..80,
        steps in prop::collection::vec((0u8..6, 0usize..40), 1..120),
    ) {
        let leaves = shuffled(200, seed);
        let memory_bytes = memory_leaves * u64::from(LEAF);
        let mut sweep = Sweep::new(&leaves, memory_bytes).unwrap();
        let mut under_way: Vec<Stretch> = Vec::new();
        for (what, amount) in steps {
            match what {
                0 | 1 => if let Next::Read(stretch) = sweep.next(JOINING) {
                    prop_assert!(stretch.leaves.is_sorted());
                    let range = stretch.range();
                    prop_assert!(range.end - range.start <= JOINING.stretch_bytes);
                    under_way.push(stretch);
                },
                2 => if let Some(stretch) = under_way.pop() {
                    let ours: Vec<Place> = stretch.leaves.iter().copied().step_by(2).collect();
                    sweep.done(&stretch, &ours);
                },
                3 => if let Some(stretch) = under_way.pop() { sweep.failed(&stretch); },
                4 => { sweep.advance(sweep.position() + amount); }
                _ => {
                    let newer = Sweep::new(&updated(&leaves, 0.1, seed), memory_bytes).unwrap();
                    sweep = sweep.in_tree_of(newer);
                }
            }
            let held = |state| sweep.states.iter().filter(|s| **s == state).count() as u64;
            let unread = sweep.window().filter(|&o| sweep.states[o] == State::Unread).count() as u64;
            prop_assert_eq!(sweep.unread_bytes, unread * u64::from(LEAF));
            prop_assert_eq!(sweep.held_bytes, held(State::Held) * u64::from(LEAF));
            let reading: u64 = under_way.iter().map(Stretch::leaf_bytes).sum();
            prop_assert_eq!(sweep.reading_bytes, reading);
            prop_assert!(sweep.held_bytes() <= memory_bytes + JOINING.stretch_bytes);
            let window = sweep.window().len() as u64 * u64::from(LEAF);
            prop_assert!(sweep.fits() || window <= memory_bytes);
            if under_way.is_empty() && what != 5 {
                prop_assert!(sweep.first_unread() >= sweep.position());
            }
        }
    }

    /// A scan that is followed reads every leaf once, and none is read ahead twice.
    #[test]
    fn every_leaf_is_read_at_most_once(seed: u64, memory_leaves in 4u64..400) {
        let leaves = shuffled(300, seed);
        let mut sweep = Sweep::new(&leaves, memory_leaves * u64::from(LEAF)).unwrap();
        let mut read = std::collections::HashSet::new();
        for position in 0..=300 {
            while let Next::Read(stretch) = sweep.next(JOINING) {
                for leaf in &stretch.leaves {
                    prop_assert!(read.insert(leaf.offset));
                }
                sweep.done(&stretch, &stretch.leaves);
            }
            sweep.advance(position);
        }
        prop_assert!(read.len() >= 200 || memory_leaves < 40, "{} read", read.len());
    }

    /// After a checkpoint the scan is where it was, whatever moved.
    #[test]
    fn a_new_tree_is_continued_at_the_same_key(seed: u64, position in 0usize..200) {
        let leaves = shuffled(200, seed);
        let mut sweep = Sweep::new(&leaves, u64::MAX).unwrap();
        sweep.advance(position);
        let newer = updated(&leaves, 0.3, seed);
        let sweep = sweep.in_tree_of(Sweep::new(&newer, u64::MAX).unwrap());
        // Leaves have kept their ordinals here; the scan goes on at the next one that did not move.
        let expected = (position..200).find(|&i| newer[i] == leaves[i]).unwrap_or(position);
        prop_assert_eq!(sweep.position(), expected);
    }
}
