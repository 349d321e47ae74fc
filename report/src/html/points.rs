//! Encodes numbers for the page: columns of bytes, deflated, as base64 text.
//!
//! A column of n whole numbers is stored as planes, first all lowest bytes, then the next: high bytes are
//! mostly alike and compress to nothing, so a column may be as wide as its largest value needs.
//! `web/src/points.ts` reads this.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use maud::{Markup, html};
use seekscope_run::{IoEvent, IoKind, LeafRecord};

/// Bytes per point before compression: time 4, offset 6, length 4, latency 4, kind 1.
pub(super) const BYTES_PER_POINT: usize = 19;
/// Represents an unknown offset; no file is that large.
pub(super) const OFFSET_UNKNOWN: u64 = (1 << 48) - 1;
const KIND_WRITE: u64 = 1;
const KIND_FAILED: u64 = 2;

/// Blocks of compressed bytes, each in its own element so that the page need not decode what it does not use.
#[derive(Default)]
pub(crate) struct Blobs {
    base64: Vec<String>,
}

impl Blobs {
    /// Adds a block and returns the id of its element.
    pub(super) fn add(&mut self, bytes: &[u8]) -> String {
        self.base64.push(STANDARD.encode(deflate(bytes)));
        Self::id(self.base64.len() - 1)
    }

    fn id(index: usize) -> String {
        format!("blob-{index}")
    }

    /// Returns the elements that hold the blocks.
    pub(super) fn markup(&self) -> Markup {
        html! {
            @for (index, text) in self.base64.iter().enumerate() {
                script type="text/plain" id=(Self::id(index)) { (text) }
            }
        }
    }
}

/// The usual level, 6, saves 3 % of the page but costs more CPU time, on the host that is examined.
const DEFLATE_LEVEL: u32 = 3;

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let level = Compression::new(DEFLATE_LEVEL);
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    // Writing to a Vec cannot fail; if it did, the page would say that it cannot read the block.
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .unwrap_or_default()
}

/// Calls of one file in one phase, or its leaf pages, by column.
#[derive(Default)]
pub(super) struct PointColumns {
    time: Vec<u64>,
    offset: Vec<u64>,
    length: Vec<u64>,
    latency: Vec<u64>,
    kind: Vec<u64>,
}

impl PointColumns {
    /// Adds a call that started `time` units after its phase.
    pub(super) fn push(&mut self, time: u64, event: &IoEvent) {
        self.time.push(time);
        self.offset.push(
            event
                .offset
                .map_or(OFFSET_UNKNOWN, |o| o.min(OFFSET_UNKNOWN - 1)),
        );
        self.length.push(u64::from(event.length));
        self.latency
            .push(u64::from(short_float_bits(event.latency_ns)));
        let write = if event.op.kind() == IoKind::Read {
            0
        } else {
            KIND_WRITE
        };
        let failed = if event.result < 0 { KIND_FAILED } else { 0 };
        self.kind.push(write | failed);
    }

    /// Adds the leaf page at that position in key order; it is not a call, so it has no latency.
    pub(super) fn push_leaf(&mut self, leaf: &LeafRecord) {
        self.time.push(leaf.ordinal);
        self.offset.push(leaf.offset.min(OFFSET_UNKNOWN - 1));
        self.length.push(u64::from(leaf.length));
        self.latency.push(0);
        self.kind.push(0);
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> usize {
        self.time.len()
    }

    /// Returns all columns as bytes, in order of time, while events are recorded in the order of their end.
    /// Times and offsets are stored as differences, because both mostly grow evenly.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&index| self.time[index]);
        let sorted = |column: &[u64]| order.iter().map(|&i| column[i]).collect::<Vec<u64>>();
        let mut out = Vec::with_capacity(self.len() * BYTES_PER_POINT);
        push_planes(&mut out, &differences(&sorted(&self.time)), 4);
        push_planes(&mut out, &differences(&sorted(&self.offset)), 6);
        push_planes(&mut out, &sorted(&self.length), 4);
        push_planes(&mut out, &sorted(&self.latency), 4);
        push_planes(&mut out, &sorted(&self.kind), 1);
        out
    }
}

/// Returns an f32 with the lowest 12 bits rounded away: 0.02 % is finer than any latency shown, and noise
/// does not compress.
fn short_float_bits(latency_ns: u64) -> u32 {
    (latency_ns as f32).to_bits().saturating_add(0x800) & !0xfff
}

fn differences(values: &[u64]) -> Vec<u64> {
    let mut last = 0;
    values
        .iter()
        .map(|&v| v.wrapping_sub(std::mem::replace(&mut last, v)))
        .collect()
}

fn push_planes(out: &mut Vec<u8>, values: &[u64], bytes: usize) {
    for plane in 0..bytes {
        out.extend(values.iter().map(|v| v.to_le_bytes()[plane]));
    }
}

/// Appends counts, mostly small: seven bits a byte, lowest first, the eighth set when more follow (LEB128).
pub(super) fn push_counts(out: &mut Vec<u8>, counts: &[u32]) {
    for &count in counts {
        let mut rest = count;
        while rest >= 0x80 {
            out.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        out.push((rest & 0x7f) as u8);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;
    use proptest::prelude::*;
    use seekscope_run::{IoFlags, IoOp};

    use super::*;

    fn read_column(bytes: &[u8], n: usize, at: &mut usize, width: usize, summed: bool) -> Vec<u64> {
        let mut last = 0u64;
        let column = (0..n)
            .map(|i| {
                let byte = |plane| u64::from(bytes[*at + plane * n + i]) << (8 * plane);
                let value = (0..width).map(byte).sum::<u64>();
                let modulus = 1u64 << (8 * width);
                last = if summed {
                    (last + value) % modulus
                } else {
                    value
                };
                last
            })
            .collect();
        *at += n * width;
        column
    }

    prop_compose! {
        fn any_event()(offset in proptest::option::of(0u64..1 << 47), length: u32, latency_ns: u32,
                       write: bool, result in -5..9i32) -> IoEvent {
            IoEvent {
                t_ns: 0, pid: 1, tid: 1, file_id: 1,
                op: if write { IoOp::Pwrite } else { IoOp::Pread },
                flags: IoFlags::default(),
                offset, length, latency_ns: u64::from(latency_ns), result, device_read_bytes: 0, request: None,
            }
        }
    }

    proptest! {
        #[test]
        fn points_read_back(events in proptest::collection::vec((any::<u32>(), any_event()), 0..50)) {
            let mut columns = PointColumns::default();
            for (time, event) in &events {
                columns.push(u64::from(*time), event);
            }
            let packed = deflate(&columns.encode());
            let mut bytes = Vec::new();
            DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), events.len() * BYTES_PER_POINT);
            let mut at = 0;
            let mut column = |width, summed| read_column(&bytes, events.len(), &mut at, width, summed);
            let (time, offset) = (column(4, true), column(6, true));
            let (length, latency, kind) = (column(4, false), column(4, false), column(1, false));
            let mut events = events;
            events.sort_by_key(|(time, _)| *time);
            for (i, (t, event)) in events.iter().enumerate() {
                prop_assert_eq!(time[i], u64::from(*t));
                prop_assert_eq!(offset[i], event.offset.unwrap_or(OFFSET_UNKNOWN));
                prop_assert_eq!(length[i], u64::from(event.length));
                let shown = f64::from(f32::from_bits(u32::try_from(latency[i]).unwrap()));
                let real = event.latency_ns as f64;
                prop_assert!((shown - real).abs() <= real * 2.5e-4, "{} {}", shown, real);
                prop_assert_eq!(kind[i] & 1 == 1, !event.op.is_read());
                prop_assert_eq!(kind[i] & 2 == 2, event.result < 0);
            }
        }
    }

    #[test]
    fn counts_take_as_many_bytes_as_they_need() {
        let mut bytes = Vec::new();
        push_counts(&mut bytes, &[0, 127, 128, u32::MAX]);
        assert_eq!(bytes, [0, 0x7f, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    }
}
