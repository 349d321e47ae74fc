
use seekscope_stats::shuffled::distinct;
use seekscope_wiredtiger::LeafKind;

use super::*;

const LEAF: u32 = 32 << 10;

fn leaf(offset: u64, length: u32) -> Leaf {
    Leaf {
        offset,
        length,
        kind: LeafKind::Plain,
    }
}

/// What a throttled disk that serves `iops` and `bytes_per_s` makes of a scan, with a head of two
/// requests in flight; the server reads by itself what is not there. Seconds.
fn simulated_scan_s(leaves: &[Leaf], memory_bytes: u64, hit_s: f64) -> (f64, u64, u64) {
    let mut sweep = Sweep::new(leaves, memory_bytes).unwrap();
    let joining = Joining {
        gap_bytes: 1 << 20,
        stretch_bytes: 2 << 20,
    };
    let cost = |bytes: u64| (1.0 / 150.0_f64).max(bytes as f64 / 150e6);
    let count = sweep.leaves().len();
    let (mut disk_free_s, mut now_s) = (0.0_f64, 0.0_f64);
    let mut under_way: Vec<(f64, Stretch)> = Vec::new();
    // The server's: when it will be ready for the next leaf.
    let (mut server_s, mut position, mut misses) = (0.0_f64, 0, 0);
    let mut held_max = 0;
    while position < count {
        while under_way.len() < 2 {
            let Next::Read(stretch) = sweep.next(joining) else {
                break;
            };
            let range = stretch.range();
            disk_free_s = disk_free_s.max(now_s) + cost(range.end - range.start);
            under_way.push((disk_free_s, stretch));
        }
        held_max = held_max.max(sweep.held_bytes());
        let head_s = under_way.first().map_or(f64::INFINITY, |(at, _)| *at);
        if head_s <= server_s {
            now_s = head_s;
            let (_, stretch) = under_way.remove(0);
            sweep.done(&stretch, &stretch.leaves);
            continue;
        }
        now_s = server_s;
        if matches!(sweep.states[position], State::Held) {
            server_s = now_s + hit_s;
        } else {
            misses += 1;
            disk_free_s = disk_free_s.max(now_s) + cost(LEAF.into());
            server_s = disk_free_s;
        }
        position += 1;
        sweep.advance(position);
    }
    (server_s, misses, held_max)
}

#[test]
fn simulate() {
    let n = 10_240;
    let leaves: Vec<Leaf> = distinct(n, n, 7).into_iter().map(|i| leaf(4096 + i * u64::from(LEAF), LEAF)).collect();
    for quarter in [1.0, 0.25, 0.2, 0.125] {
        for hit in [2e-5, 1e-4, 5e-4] {
            let memory = (n as f64 * f64::from(LEAF) * quarter) as u64;
            let r = simulated_scan_s(&leaves, memory, hit);
            eprintln!("{quarter} hit {hit}: {:.2} s, {} misses, held max {:.2}", r.0, r.1, r.2 as f64 / memory as f64);
        }
    }
}
