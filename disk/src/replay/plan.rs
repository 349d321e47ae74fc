//! What to play: 32 bytes per operation, a list per thread.

use std::collections::BTreeMap;

use seekscope_run::{IoEvent, IoFlags, IoKind, IoLayer, IoOp};

use super::facts::PlanFacts;
use super::recording::moved_bytes;
use super::streams::{Stream, fold, lanes};
use super::{Caching, Regions};
use crate::job::BLOCK_BYTES_MAX;
use crate::model::{self, Access};
use crate::recorder::Operation;

/// Offsets that wrap around do so in whole pages.
const PAGE_BYTES: u64 = 4096;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Write,
    Fsync,
    Fdatasync,
}

impl Action {
    /// Returns how the recorded operation is played; `None` if it is not played.
    fn of(op: IoOp) -> Option<Self> {
        match op {
            IoOp::SyncFileRange => None,
            // Both bring the data, and only the necessary metadata, to the disk.
            IoOp::Fdatasync | IoOp::Msync => Some(Self::Fdatasync),
            _ => match op.kind() {
                IoKind::Read => Some(Self::Read),
                IoKind::Write => Some(Self::Write),
                IoKind::Sync => Some(Self::Fsync),
                IoKind::Discard => None,
            },
        }
    }

    /// Returns the operation as which it is counted.
    pub fn operation(self) -> Operation {
        match self {
            Self::Read => Operation::Read,
            Self::Write => Operation::Write,
            Self::Fsync | Self::Fdatasync => Operation::Sync,
        }
    }
}

/// One operation. Traces have millions of them, so this is kept small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Recorded start, ns after the first operation of the plan.
    pub start_ns: u64,
    /// Recorded duration, ns.
    pub latency_ns: u64,
    /// Offset on the target, bytes; 0 for syncs.
    pub offset: u64,
    /// Length in bytes; 0 for syncs.
    pub length: u32,
    pub action: Action,
    /// Whether it bypasses the page cache.
    pub direct: bool,
    /// Index of the chosen file, from 0.
    pub file: u16,
}

const _: () = assert!(size_of::<Op>() == 32);

impl Op {
    /// Returns when it ended in the recording, on the scale of `start_ns`.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.latency_ns)
    }

    fn is_aligned(&self, alignment_bytes: u64) -> bool {
        (self.offset | u64::from(self.length)).is_multiple_of(alignment_bytes)
    }
}

/// The operations of each thread, and facts about all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub streams: Vec<Stream>,
    pub facts: PlanFacts,
}

impl Plan {
    /// Decides which operations bypass the page cache, where that requires offsets and lengths to
    /// be multiples of `alignment_bytes`.
    pub fn settle_direct(&mut self, caching: Caching, alignment_bytes: u64) {
        self.facts.adjusted.unaligned = 0;
        for op in self.ops_mut() {
            op.direct = match caching {
                Caching::AsRecorded => op.direct,
                Caching::Direct => op.length > 0,
                Caching::Buffered => false,
            };
        }
        let mut unaligned = 0;
        for op in self.ops_mut().filter(|op| op.direct) {
            op.direct = op.is_aligned(alignment_bytes.max(1));
            unaligned += u64::from(!op.direct);
        }
        self.facts.adjusted.unaligned = unaligned;
    }

    /// Returns whether some operations bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.ops().any(|op| op.direct)
    }

    /// Returns whether some operations go through the page cache.
    pub fn is_buffered(&self) -> bool {
        self.ops().any(|op| !op.direct)
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.streams.iter().flat_map(|stream| &stream.ops)
    }

    fn ops_mut(&mut self) -> impl Iterator<Item = &mut Op> {
        self.streams.iter_mut().flat_map(|stream| &mut stream.ops)
    }

    /// Returns the same reads and writes for the device model, with the recorded time between them.
    /// The model has no syncs.
    pub fn accesses(&self) -> Vec<Access> {
        let mut accesses = Vec::new();
        for (number, stream) in (0u32..).zip(&self.streams) {
            let mut free_ns = 0;
            for op in &stream.ops {
                let operation = match op.action {
                    Action::Read => model::Operation::Read,
                    Action::Write => model::Operation::Write,
                    Action::Fsync | Action::Fdatasync => continue,
                };
                accesses.push(Access {
                    file: op.file.into(),
                    stream: number,
                    offset: op.offset,
                    length: op.length.into(),
                    operation,
                    direct: op.direct,
                    think_ns: op.start_ns.saturating_sub(free_ns),
                });
                free_ns = op.end_ns().max(free_ns);
            }
        }
        accesses
    }
}

/// Makes a plan from events.
#[derive(Debug)]
pub struct Planner<'a> {
    regions: &'a Regions,
    target_bytes: u64,
    /// Whether the target may be written.
    writes: bool,
    /// Operations by process, thread, and whether the requests were asynchronous.
    threads: BTreeMap<(u32, u32, bool), Vec<Op>>,
    facts: PlanFacts,
}

impl<'a> Planner<'a> {
    /// Returns a planner for a target of `target_bytes`.
    pub fn new(regions: &'a Regions, target_bytes: u64, writes: bool) -> Self {
        Self {
            regions,
            target_bytes,
            writes,
            threads: BTreeMap::new(),
            facts: PlanFacts::default(),
        }
    }

    /// Takes an event. Events of one thread may come in order of completion.
    pub fn add(&mut self, event: &IoEvent) {
        let Some((file, base)) = self.regions.place(event.file_id) else {
            return;
        };
        if event.op.layer() != IoLayer::File {
            return;
        }
        let Some(action) = Action::of(event.op) else {
            self.facts.skipped.other += 1;
            return;
        };
        if let Some(op) = self.op(event, action, file, base) {
            let asynchronous = is_asynchronous(event.op);
            let thread = (event.pid, event.tid, asynchronous);
            self.threads.entry(thread).or_default().push(op);
        }
    }

    fn op(&mut self, event: &IoEvent, action: Action, file: u16, base: u64) -> Option<Op> {
        let skipped = &mut self.facts.skipped;
        if event.result < 0 {
            skipped.failed[action.operation() as usize] += 1;
            return None;
        }
        let is_sync = action.operation() == Operation::Sync;
        if action != Action::Read && !self.writes {
            let count = if is_sync {
                &mut skipped.syncs
            } else {
                &mut skipped.writes
            };
            *count += 1;
            return None;
        }
        let op = Op {
            start_ns: event.t_ns,
            latency_ns: event.latency_ns,
            offset: 0,
            length: 0,
            action,
            direct: event.flags.has(IoFlags::DIRECT) && !is_sync,
            file,
        };
        if is_sync {
            return Some(op);
        }
        let Some(offset) = event.offset else {
            skipped.unknown_offset += 1;
            return None;
        };
        let bytes = moved_bytes(event);
        self.facts.adjusted.faults += u64::from(event.op == IoOp::MmapFault);
        if bytes == 0 {
            skipped.empty += 1;
            return None;
        }
        if bytes > BLOCK_BYTES_MAX {
            skipped.too_long += 1;
            return None;
        }
        if action == Action::Read {
            self.facts.cache.add(event);
        }
        let (offset, length) = self.place(base.saturating_add(offset), bytes);
        Some(Op {
            offset,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            ..op
        })
    }

    /// Returns an offset where the target has room: beyond its end, offsets wrap around to its
    /// start, in whole pages, so that order and alignment are kept.
    fn place(&mut self, offset: u64, bytes: u64) -> (u64, u64) {
        let adjusted = &mut self.facts.adjusted;
        let target_bytes = self.target_bytes;
        if offset.saturating_add(bytes) <= target_bytes {
            return (offset, bytes);
        }
        if bytes >= target_bytes {
            adjusted.shortened += u64::from(bytes > target_bytes);
            adjusted.wrapped += u64::from(offset > 0);
            return (0, target_bytes);
        }
        adjusted.wrapped += 1;
        let whole_pages = (target_bytes / PAGE_BYTES * PAGE_BYTES).max(1);
        let wrapped = offset % whole_pages;
        let last = target_bytes - bytes;
        let fits = if wrapped <= last {
            wrapped
        } else {
            last / PAGE_BYTES * PAGE_BYTES
        };
        (fits, bytes)
    }

    /// Returns the plan, to be played by at most `threads_max` threads.
    pub fn finish(self, threads_max: usize) -> Plan {
        let mut facts = self.facts;
        let mut threads: Vec<(u32, u32)> = self
            .threads
            .keys()
            .map(|(pid, tid, _)| (*pid, *tid))
            .collect();
        threads.dedup();
        facts.recorded_threads = threads.len() as u64;
        let mut streams = Vec::new();
        for ((_, tid, asynchronous), mut ops) in self.threads {
            // Stable, because without time stamps the recorded order must be kept.
            if !ops.is_sorted_by_key(|op| op.start_ns) {
                ops.sort_by_key(|op| op.start_ns);
            }
            if asynchronous {
                streams.extend(lanes(tid, ops));
            } else {
                streams.push(Stream { tid, ops });
            }
        }
        let (streams, folded) = fold(streams, threads_max.max(1));
        facts.folded = folded;
        facts.threads = streams.len() as u64;
        let mut plan = Plan { streams, facts };
        let began_ns = plan.ops().map(|op| op.start_ns).min().unwrap_or(0);
        for op in plan.ops_mut() {
            op.start_ns -= began_ns;
        }
        plan.facts.operations = plan.ops().count() as u64;
        plan.facts.span_ns = plan.ops().map(Op::end_ns).max().unwrap_or(0);
        let written = plan.ops().filter(|op| op.action == Action::Write);
        plan.facts.write_bytes = written.map(|op| u64::from(op.length)).sum();
        plan
    }
}

/// Returns whether a thread may have several of these operations in flight.
fn is_asynchronous(op: IoOp) -> bool {
    matches!(
        op,
        IoOp::UringRead
            | IoOp::UringWrite
            | IoOp::UringFsync
            | IoOp::AioRead
            | IoOp::AioWrite
            | IoOp::AioFsync
    )
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
