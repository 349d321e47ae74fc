//! io_uring: one ring per thread, the file and the buffers registered if permitted, requests
//! submitted in lots and reaped in batches. Nothing is allocated or locked per request.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use seekscope_run::monotonic_ns;

use super::{Engine, Worker, incomplete};
use crate::buffer::AlignedBuffer;
use crate::job::Job;
use crate::offsets::Access;
use crate::recorder::{Collector, Operation};
use crate::{DiskError, TestFile, random_bytes};

/// The depth from which two requests are submitted at once; below it, each is submitted by itself.
/// More at once saves CPU time, but the disk waits for the first until the last is prepared: whole
/// batches cost 15 % of the IOPS at depth 32, lots of four 6 % at depth 8.
const PAIRS_FROM_DEPTH: u32 = 32;
/// Set in a completion's tag if it belongs to the sync that follows a write.
const SYNC_TAG: u64 = 1 << 32;
/// How often, and at what interval, a kernel that takes no requests is asked again.
const REFUSALS_MAX: u32 = 1000;
const REFUSED_PAUSE: Duration = Duration::from_millis(1);
/// A wait for a schedule is cut into pieces of this length, so that a request to stop is noticed.
const WAIT_NS_MAX: u64 = 100_000_000;

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Slot {
    access: Access,
    due_ns: u64,
    called_ns: u64,
    written_ns: u64,
}

pub(super) struct UringEngine {
    ring: IoUring,
    file: File,
    buffers: AlignedBuffer,
    block: u32,
    fixed_buffers: bool,
    fixed_file: bool,
    sync_each_write: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Number of requests submitted at once.
    lot: u32,
    /// Requests queued and not yet submitted.
    queued: u32,
    /// Consecutive times that the kernel took nothing and had no completions.
    refusals: u32,
}

impl UringEngine {
    /// Prepares the engine. Must be called by the thread that will run it: rings have a single
    /// issuer.
    pub(super) fn prepare(
        job: &Job,
        file: &TestFile,
        collector: &Collector,
    ) -> Result<Self, DiskError> {
        let facts = &job.facts;
        let depth = facts.depth;
        let block = usize::try_from(facts.block_bytes).unwrap_or(usize::MAX);
        let mut buffers = AlignedBuffer::new(block * depth as usize)?;
        if facts.access.writes() {
            random_bytes::fill(buffers.bytes(), job.seed);
        }
        let file = file.open(facts.direct)?;
        // A write and its sync are two entries.
        let ring = new_ring(if facts.sync_each_write {
            2 * depth
        } else {
            depth
        })?;
        let submitter = ring.submitter();
        let fixed_file = submitter.register_files(&[file.as_raw_fd()]);
        if let Err(error) = &fixed_file {
            collector.note(format!("registered files: {error}"));
        }
        let vectors: Vec<libc::iovec> = (0..depth as usize)
            .map(|slot| libc::iovec {
                iov_base: buffers.bytes()[slot * block..].as_mut_ptr().cast(),
                iov_len: block,
            })
            .collect();
        // SAFETY: the vectors lie inside `buffers`, whose pages the kernel pins.
        let fixed_buffers = unsafe { submitter.register_buffers(&vectors) };
        if let Err(error) = &fixed_buffers {
            collector.note(format!(
                "registered buffers: {error} (limited by ulimit -l)"
            ));
        }
        let idle = Slot {
            access: Access {
                offset: 0,
                is_write: false,
            },
            due_ns: 0,
            called_ns: 0,
            written_ns: 0,
        };
        Ok(Self {
            fixed_file: fixed_file.is_ok(),
            fixed_buffers: fixed_buffers.is_ok(),
            ring,
            file,
            buffers,
            block: u32::try_from(block).unwrap_or(u32::MAX),
            sync_each_write: facts.sync_each_write,
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            lot: if depth < PAIRS_FROM_DEPTH { 1 } else { 2 },
            queued: 0,
            refusals: 0,
        })
    }

    /// Queues one access in a free slot, which the caller has made sure exists.
    #[inline]
    fn queue(&mut self, slot: u32, due_ns: u64, called_ns: u64, access: Access) {
        self.slots[slot as usize] = Slot {
            access,
            due_ns,
            called_ns,
            written_ns: 0,
        };
        let entry = self.entry(slot, access).user_data(slot.into());
        if access.is_write && self.sync_each_write {
            let sync = self.sync_entry().user_data(u64::from(slot) | SYNC_TAG);
            self.push(&entry.flags(squeue::Flags::IO_LINK));
            self.push(&sync);
        } else {
            self.push(&entry);
        }
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffer and the file that the entry names live until the request has
        // completed: `run` waits for all of them, or gives the memory up (`abandon`). There is
        // room: the queue has an entry for each slot (two with syncs).
        let pushed = unsafe { self.ring.submission().push(entry) };
        debug_assert!(
            pushed.is_ok(),
            "the submission queue has room for all slots"
        );
    }

    #[inline]
    fn entry(&self, slot: u32, access: Access) -> squeue::Entry {
        // SAFETY: slots are below the depth, so the block lies inside the buffers.
        let memory = unsafe {
            self.buffers
                .as_ptr()
                .add(slot as usize * self.block as usize)
        };
        let index = u16::try_from(slot).unwrap_or(0);
        let (block, offset) = (self.block, access.offset);
        let plain = types::Fd(self.file.as_raw_fd());
        match (access.is_write, self.fixed_buffers, self.fixed_file) {
            (false, true, true) => opcode::ReadFixed::new(Fixed(0), memory, block, index)
                .offset(offset)
                .build(),
            (false, true, false) => opcode::ReadFixed::new(plain, memory, block, index)
                .offset(offset)
                .build(),
            (false, false, true) => opcode::Read::new(Fixed(0), memory, block)
                .offset(offset)
                .build(),
            (false, false, false) => opcode::Read::new(plain, memory, block)
                .offset(offset)
                .build(),
            (true, true, true) => opcode::WriteFixed::new(Fixed(0), memory, block, index)
                .offset(offset)
                .build(),
            (true, true, false) => opcode::WriteFixed::new(plain, memory, block, index)
                .offset(offset)
                .build(),
            (true, false, true) => opcode::Write::new(Fixed(0), memory, block)
                .offset(offset)
                .build(),
            (true, false, false) => opcode::Write::new(plain, memory, block)
                .offset(offset)
                .build(),
        }
    }

    fn sync_entry(&self) -> squeue::Entry {
        let flags = FsyncFlags::DATASYNC;
        match self.fixed_file {
            true => opcode::Fsync::new(Fixed(0)).flags(flags).build(),
            false => opcode::Fsync::new(types::Fd(self.file.as_raw_fd()))
                .flags(flags)
                .build(),
        }
    }

    /// Submits what is queued and waits for at least one completion, until `until_ns` at most.
    fn submit_and_wait(&mut self, until_ns: Option<u64>, now_ns: u64) -> Result<(), DiskError> {
        let result = match until_ns {
            None => self.ring.submit_and_wait(1),
            Some(until_ns) => {
                let wait_ns = until_ns.saturating_sub(now_ns).clamp(1, WAIT_NS_MAX);
                let time = Timespec::new().nsec(u32::try_from(wait_ns).unwrap_or(u32::MAX));
                let args = SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(1, &args)
            }
        };
        self.submitted(result)
    }

    /// Submits what is queued.
    fn submit(&mut self) -> Result<(), DiskError> {
        let result = self.ring.submit();
        self.submitted(result)
    }

    /// Handles the kernel's answer to a submission. Anything it left in the queue goes with the
    /// next one.
    fn submitted(&mut self, result: io::Result<usize>) -> Result<(), DiskError> {
        self.queued = 0;
        let Err(error) = result else { return Ok(()) };
        match error.raw_os_error() {
            // The time is over, or a signal arrived.
            Some(libc::ETIME | libc::EINTR) => Ok(()),
            // Completions must be taken first, or memory is short at the moment.
            Some(libc::EBUSY | libc::EAGAIN) if self.refusals < REFUSALS_MAX => {
                self.refusals += 1;
                std::thread::sleep(REFUSED_PAUSE);
                Ok(())
            }
            _ => Err(unavailable(error)),
        }
    }

    /// Gives up the memory of requests in flight, which must not be used again: the ring no longer
    /// works, so they cannot be waited for.
    fn abandon(&mut self, error: DiskError) -> DiskError {
        self.buffers.leak();
        error
    }

    /// Takes the available completions and frees their slots. The first failure among them is
    /// returned after all have been taken.
    #[inline]
    fn reap(&mut self, worker: &mut Worker<'_>, now_ns: u64) -> Result<(), DiskError> {
        let mut outcome = Ok(());
        let Self {
            ring, slots, free, ..
        } = self;
        for completion in ring.completion() {
            self.refusals = 0;
            let index = usize::try_from(completion.user_data() & !SYNC_TAG).unwrap_or(usize::MAX);
            let Some(slot) = slots.get_mut(index) else {
                continue;
            };
            let is_sync = completion.user_data() & SYNC_TAG != 0;
            let Access { is_write, .. } = slot.access;
            let checked = check(&completion, slot.access, is_sync, self.block);
            let failed = checked.is_err();
            outcome = outcome.and(checked);
            if is_write && self.sync_each_write && !is_sync {
                // The slot is free once its sync has also completed; after a failed write the sync
                // is cancelled.
                slot.written_ns = now_ns;
                continue;
            }
            free.push(u32::try_from(index).unwrap_or(0));
            if failed {
                continue;
            }
            let recorder = &mut worker.recorder;
            if is_sync {
                recorder.record(Operation::Sync, slot.written_ns, slot.written_ns, now_ns);
            }
            let operation = match is_write {
                true => Operation::Write,
                false => Operation::Read,
            };
            recorder.record(operation, slot.due_ns, slot.called_ns, now_ns);
        }
        outcome
    }

    /// Fills free slots with accesses that are due. Returns when the next one is due, if there is a
    /// schedule, and whether the job has run out of accesses.
    #[inline]
    fn fill(
        &mut self,
        worker: &mut Worker<'_>,
        mut now_ns: u64,
    ) -> Result<(Option<u64>, bool), DiskError> {
        while let Some(&slot) = self.free.last() {
            let due_ns = match &mut worker.pacing {
                None => now_ns,
                Some(pacing) => {
                    let due_ns = pacing.next_ns();
                    if due_ns > now_ns {
                        return Ok((Some(due_ns), false));
                    }
                    due_ns
                }
            };
            let Some(access) = worker.offsets.next() else {
                return Ok((None, true));
            };
            if let Some(pacing) = &mut worker.pacing {
                pacing.advance();
            }
            self.free.pop();
            if access.is_write {
                let start = slot as usize * self.block as usize;
                let block = &mut self.buffers.bytes()[start..start + self.block as usize];
                random_bytes::make_distinct(block, &mut worker.stamps);
            }
            self.queue(slot, due_ns, now_ns, access);
            self.queued += 1;
            // The access that fills the last slot is submitted with the call that waits.
            if self.queued >= self.lot && !self.free.is_empty() {
                self.submit()?;
                // The next ones begin now, not when the first of the batch did.
                now_ns = monotonic_ns();
            }
        }
        Ok((None, false))
    }
}

impl Engine for UringEngine {
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<bool, DiskError> {
        let depth = self.slots.len();
        let mut now_ns = monotonic_ns();
        let (mut stopping, mut done, mut failure) = (false, false, None);
        loop {
            stopping |= now_ns >= worker.end_ns || worker.stop.is_asked() || done;
            let mut next_ns = None;
            if !stopping {
                match self.fill(worker, now_ns) {
                    Ok(filled) => (next_ns, done) = filled,
                    Err(error) => return Err(self.abandon(error)),
                }
            }
            if self.free.len() == depth {
                if stopping || done {
                    return failure.map_or(Ok(done), Err);
                }
                // Nothing is in flight and nothing is due yet.
                let until_ns = next_ns.unwrap_or(worker.end_ns).min(worker.end_ns);
                crate::pacing::sleep_until(until_ns, now_ns);
                now_ns = monotonic_ns();
                continue;
            }
            if (self.queued > 0 || self.ring.completion().is_empty())
                && let Err(error) = self.submit_and_wait(next_ns, now_ns)
            {
                return Err(self.abandon(failure.unwrap_or(error)));
            }
            now_ns = monotonic_ns();
            if let Err(error) = self.reap(worker, now_ns) {
                // Requests in flight still write into our memory, so they are waited for.
                failure.get_or_insert(error);
                stopping = true;
            }
        }
    }
}

fn check(
    completion: &cqueue::Entry,
    access: Access,
    is_sync: bool,
    block: u32,
) -> Result<(), DiskError> {
    let operation = match (is_sync, access.is_write) {
        (true, _) => "sync",
        (false, true) => "write",
        (false, false) => "read",
    };
    let result = match u32::try_from(completion.result()) {
        Ok(_) if is_sync => return Ok(()),
        Ok(bytes) if bytes == block => return Ok(()),
        Ok(bytes) => Ok(bytes as usize),
        Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
    };
    Err(incomplete(operation, access.offset, result))
}

/// Creates the cheapest ring that this kernel supports: one thread submits, and is not interrupted
/// to take completions that it will look for anyway (kernel 6.0); otherwise a plain one.
fn new_ring(entries: u32) -> Result<IoUring, DiskError> {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_coop_taskrun();
    match builder.build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    }
    .map_err(unavailable)
}

fn unavailable(source: io::Error) -> DiskError {
    let remedy = match source.raw_os_error() {
        Some(libc::ENOMEM) => {
            "the limit of locked memory (ulimit -l) or memory itself is used up; use a smaller \
             --depth or fewer --threads"
        }
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => {
            "the kernel is older than 5.6, or a container or sysctl kernel.io_uring_disabled \
             forbids it; --engine sync with --threads does the same with more CPU time"
        }
        _ => "kernels before 5.11 lack parts of it; --engine sync with --threads needs none",
    };
    DiskError::Engine {
        engine: "io_uring",
        source,
        remedy,
    }
}

/// Checks whether this process may use io_uring.
pub fn is_available() -> Result<(), DiskError> {
    new_ring(1).map(|_| ())
}
