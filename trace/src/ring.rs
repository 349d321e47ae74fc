//! Reading the kernel's ring buffer in batches, on a timer.

use std::mem;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use rustix::event::epoll;
use rustix::time::Timespec;

use crate::decode::RECORD_BYTES;
use crate::error::TraceError;
use crate::notices::{Notice, decode_notice};

/// The most records taken at once: bounds the memory, and the time until a drain returns.
pub(crate) const BATCH_RECORDS: usize = 16_384;

/// Negative errno by which the callback stops the library at a malformed record.
const MALFORMED: i32 = -libc::EBADMSG;

/// The result of one read of the ring.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// I/O records, one after the other.
    pub(crate) records: Vec<u8>,
    /// Everything else, each with the number of I/O records that came before it.
    pub(crate) notices: Vec<(usize, Notice)>,
}

impl Batch {
    fn take(&mut self, record: &[u8]) -> i32 {
        if record.len() == RECORD_BYTES {
            self.records.extend_from_slice(record);
            return 0;
        }
        let Some(notice) = decode_notice(record) else {
            return MALFORMED;
        };
        self.notices
            .push((self.records.len() / RECORD_BYTES, notice));
        0
    }

    fn clear(&mut self) {
        self.records.clear();
        self.notices.clear();
    }
}

pub(crate) struct Ring {
    buffer: RingBuffer<'static>,
    /// Filled by the library's callback, emptied by [`Ring::read`]; never contended.
    batch: Arc<Mutex<Batch>>,
    wakeup: rustix::fd::OwnedFd,
}

impl Ring {
    pub(crate) fn open(map: &dyn MapCore) -> Result<Self, TraceError> {
        let batch = Arc::new(Mutex::new(Batch::default()));
        let filled = Arc::clone(&batch);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |record| {
                filled
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(record)
            })
            .map_err(ring_error)?;
        let buffer = builder.build().map_err(ring_error)?;
        Ok(Self {
            buffer,
            batch,
            wakeup: wakeup_of(map).map_err(ring_error)?,
        })
    }

    /// Waits for the next timed drain, or for the kernel's signal that the ring fills up.
    pub(crate) fn wait(&self, interval: Duration) {
        let timeout = Timespec::try_from(interval).unwrap_or_default();
        let mut ready = Vec::with_capacity(1);
        // An interrupted or failed wait only means an early look.
        if epoll::wait(
            &self.wakeup,
            rustix::buffer::spare_capacity(&mut ready),
            Some(&timeout),
        )
        .is_err()
        {
            std::thread::sleep(interval / 8);
        }
    }

    /// Puts up to one batch of records into `into`. Returns the number of records of all kinds.
    pub(crate) fn read(&mut self, into: &mut Batch) -> Result<usize, TraceError> {
        into.clear();
        mem::swap(
            into,
            &mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let code = self.buffer.consume_raw_n(BATCH_RECORDS);
        mem::swap(
            into,
            &mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner),
        );
        if code < 0 {
            let why = std::io::Error::from_raw_os_error(-code);
            return Err(ring_error(why));
        }
        Ok(into.records.len() / RECORD_BYTES + into.notices.len())
    }
}

/// Returns an epoll instance that reports wake-ups only (edge-triggered): a level-triggered one
/// would report any waiting record and turn the timed drain into one per record.
fn wakeup_of(map: &dyn MapCore) -> rustix::io::Result<rustix::fd::OwnedFd> {
    let wakeup = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(
        &wakeup,
        map.as_fd().as_fd(),
        epoll::EventData::new_u64(0),
        flags,
    )?;
    Ok(wakeup)
}

fn ring_error(error: impl std::fmt::Display) -> TraceError {
    TraceError::Ring {
        why: error.to_string(),
    }
}
