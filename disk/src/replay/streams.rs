//! Which thread plays what: lanes for a thread that had several requests in flight, and shared
//! threads where there would otherwise be too many.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Op;

/// The operations that one thread plays, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The recorded thread, or the first of those that share this one.
    pub tid: u32,
    /// Operations in order of their recorded start.
    pub ops: Vec<Op>,
}

impl Stream {
    fn start_ns(&self) -> u64 {
        self.ops.first().map_or(0, |op| op.start_ns)
    }

    /// Returns when the last of its operations ended.
    fn end_ns(&self) -> u64 {
        self.ops.iter().map(Op::end_ns).max().unwrap_or(0)
    }
}

/// Returns as many streams as the thread had requests in flight at once; each request goes to the
/// lane that has been free for longest. `ops` must be in order of their start.
pub(super) fn lanes(tid: u32, ops: Vec<Op>) -> Vec<Stream> {
    let mut lanes: Vec<Stream> = Vec::new();
    let mut free: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for op in ops {
        let lane = match free.peek() {
            Some(Reverse((end_ns, lane))) if *end_ns <= op.start_ns => {
                let lane = *lane;
                free.pop();
                lane
            }
            _ => {
                let ops = Vec::new();
                lanes.push(Stream { tid, ops });
                lanes.len() - 1
            }
        };
        free.push(Reverse((op.end_ns(), lane)));
        lanes[lane].ops.push(op);
    }
    lanes
}

/// Reduces the streams to at most `threads_max`. A stream is appended to the one that ends first;
/// if that had ended before it began, this changes nothing. Also returns how many streams were
/// appended to one that had not.
pub(super) fn fold(mut streams: Vec<Stream>, threads_max: usize) -> (Vec<Stream>, u64) {
    if streams.len() <= threads_max {
        return (streams, 0);
    }
    streams.sort_by_key(Stream::start_ns);
    let rest = streams.split_off(threads_max);
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| Reverse((stream.end_ns(), number)))
        .collect();
    let mut folded = 0;
    for stream in rest {
        let Some(Reverse((end_ns, number))) = ends.pop() else {
            break;
        };
        folded += u64::from(end_ns > stream.start_ns());
        ends.push(Reverse((end_ns.max(stream.end_ns()), number)));
        streams[number].ops.extend(stream.ops);
    }
    for stream in &mut streams {
        stream.ops.sort_by_key(|op| op.start_ns);
    }
    (streams, folded)
}
