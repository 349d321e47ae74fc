//! Counts requests of disks by second, for runs in which the kernel's counters of the disk are missing.

use std::collections::BTreeMap;

use seekscope_run::{IoEvent, IoKind, IoLayer};

use super::reader::Points;

const SECOND_NS: u64 = 1_000_000_000;

/// Requests of all disks by the second in which they were issued.
#[derive(Debug, Default)]
pub(in super::super) struct DeviceSeconds {
    /// Second → requests that read, then those that write.
    seconds: BTreeMap<u64, [Requests; 2]>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Requests {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) latency_ns: u64,
}

impl DeviceSeconds {
    /// Adds the event if it is a request of a disk.
    pub(in super::super) fn count(&mut self, event: &IoEvent) {
        let direction = match event.op.kind() {
            _ if event.op.layer() == IoLayer::File => return,
            IoKind::Read => 0,
            IoKind::Write => 1,
            IoKind::Sync | IoKind::Discard => return,
        };
        let second = self.seconds.entry(event.t_ns / SECOND_NS).or_default();
        let requests = &mut second[direction];
        requests.count += 1;
        requests.bytes += u64::from(event.length);
        requests.latency_ns = requests.latency_ns.saturating_add(event.latency_ns);
    }

    pub(super) fn points(&self, direction: usize, of: fn(&Requests) -> Option<f64>) -> Points {
        let values = self.seconds.iter();
        let point = |(second, both): (&u64, &[Requests; 2])| {
            let middle_ns = second
                .saturating_mul(SECOND_NS)
                .saturating_add(SECOND_NS / 2);
            Some((middle_ns, of(&both[direction])?))
        };
        values.filter_map(point).collect()
    }
}
