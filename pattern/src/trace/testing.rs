//! Events for the tests of this module.

use seekscope_run::{IoEvent, IoFlags, IoOp};

/// A read served by the cache.
pub(crate) fn read(t_ns: u64, file_id: u32, offset: u64, bytes: u32) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 1,
        tid: 1,
        file_id,
        op: IoOp::Pread,
        flags: IoFlags::default(),
        offset: Some(offset),
        length: bytes,
        latency_ns: 1000,
        result: bytes.cast_signed(),
        device_read_bytes: 0,
        request: None,
    }
}
