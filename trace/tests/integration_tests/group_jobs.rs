//! What traced children do with io_uring, libaio, mapped files and disks. Lines they say are
//! `operation offset length result`, offset -1 where there is none.

use std::alloc::{Layout, alloc_zeroed};
use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use io_uring::{IoUring, opcode, squeue, types};
use seekscope_run::IoOp;

use crate::cold_reads::evict;
use crate::jobs::{done, ready, say};
use crate::known_program::filled;

pub(crate) const PAGE: usize = 4096;
pub(crate) const MIB: usize = 1 << 20;

pub(crate) fn run(job: &str, folder: &Path) {
    match job {
        "uring" => uring(folder),
        "aio" => aio(folder),
        "faults" => faults(folder),
        "cold_reads" => cold_reads(folder, false),
        "reopened_cold_reads" => cold_reads(folder, true),
        "direct_reads" => direct_reads(folder),
        "synced_writes" => synced_writes(folder),
        other => panic!("no job {other}"),
    }
}

fn tell(op: IoOp, offset: i64, length: usize, result: i64) {
    say(&format!("{} {offset} {length} {result}", op as u8));
}

/// Memory for direct I/O. Never freed: children are short-lived.
pub(crate) fn aligned(bytes: usize) -> &'static mut [u8] {
    let layout = Layout::from_size_align(bytes, PAGE).unwrap();
    // SAFETY: fresh zeroed memory of this size that nothing else refers to.
    unsafe { std::slice::from_raw_parts_mut(alloc_zeroed(layout), bytes) }
}

pub(crate) fn open_direct(path: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .unwrap()
}

/// Distinct page numbers below `pages`, far apart and in no order.
fn scattered(pages: usize, count: usize) -> impl Iterator<Item = usize> {
    // A prime step that does not divide the number of pages visits each once.
    (0..count).map(move |index| (index * 1_000_003 + 7) % pages)
}

// ---- io_uring ----

/// Submits one request and waits for its result.
fn one(ring: &mut IoUring, entry: &squeue::Entry) -> i64 {
    // SAFETY: the callers' buffers live until the result is there.
    unsafe { ring.submission().push(entry).unwrap() };
    ring.submit_and_wait(1).unwrap();
    i64::from(ring.completion().next().unwrap().result())
}

fn uring(folder: &Path) {
    let path = folder.join("uring.dat");
    let file = filled(&path, MIB);
    let direct = open_direct(&path);
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    let append = OpenOptions::new().append(true).open(&path).unwrap();
    let mut ring = IoUring::new(64).unwrap();
    let buffer = aligned(64 * PAGE);
    let whole = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the buffer is never freed.
    unsafe { ring.submitter().register_buffers(&[whole]).unwrap() };
    ready();
    for round in 0..50 {
        at_offsets(&mut ring, &file, whole, round * 8192);
        let direct = types::Fd(direct.as_raw_fd());
        let offset = round * 8192;
        let entry = opcode::Read::new(direct, whole.iov_base.cast(), 8192).offset(offset);
        let result = one(&mut ring, &entry.build());
        tell(IoOp::UringRead, offset.cast_signed(), 8192, result);
        assert_eq!(one(&mut ring, &opcode::Nop::new().build()), 0);
    }
    at_position(&mut ring, &file, &append, whole);
    let sync = opcode::Fsync::new(types::Fd(file.as_raw_fd())).build();
    tell(IoOp::UringFsync, -1, 0, one(&mut ring, &sync));
    let refused = types::Fd(write_only.as_raw_fd());
    let entry = opcode::Read::new(refused, whole.iov_base.cast(), 100).build();
    let result = one(&mut ring, &entry);
    assert_eq!(result, -i64::from(libc::EBADF));
    tell(IoOp::UringRead, 0, 100, result);
    not_a_file(&mut ring, whole);
    done();
}

/// All forms of reading and writing at a given place.
fn at_offsets(ring: &mut IoUring, file: &File, whole: libc::iovec, offset: u64) {
    let (fd, memory) = (types::Fd(file.as_raw_fd()), whole.iov_base.cast());
    let pieces = [250, 450].map(|iov_len| libc::iovec { iov_len, ..whole });
    let entries = [
        (
            IoOp::UringRead,
            4096,
            opcode::Read::new(fd, memory, 4096).offset(offset).build(),
        ),
        (
            IoOp::UringWrite,
            700,
            opcode::Write::new(fd, memory, 700)
                .offset(offset + 1)
                .build(),
        ),
        (
            IoOp::UringRead,
            5000,
            opcode::ReadFixed::new(fd, memory, 5000, 0)
                .offset(offset + 2)
                .build(),
        ),
        (
            IoOp::UringWrite,
            600,
            opcode::WriteFixed::new(fd, memory, 600, 0)
                .offset(offset + 3)
                .build(),
        ),
        (
            IoOp::UringRead,
            700,
            opcode::Readv::new(fd, pieces.as_ptr(), 2)
                .offset(offset + 4)
                .build(),
        ),
        (
            IoOp::UringWrite,
            700,
            opcode::Writev::new(fd, pieces.as_ptr(), 2)
                .offset(offset + 5)
                .build(),
        ),
    ];
    for (at, (op, length, entry)) in (offset.cast_signed()..).zip(&entries) {
        let result = one(ring, entry);
        assert_eq!(usize::try_from(result).unwrap(), *length);
        tell(*op, at, *length, result);
    }
}

/// Requests without an offset: filling the file left its position at the end.
fn at_position(ring: &mut IoUring, mut file: &File, append: &File, whole: libc::iovec) {
    let memory: *mut u8 = whole.iov_base.cast();
    let end = MIB as i64;
    let read = |ring: &mut IoUring, offset: i64, length: u32| {
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), memory, length);
        let result = one(ring, &entry.offset(u64::MAX).build());
        tell(IoOp::UringRead, offset, length as usize, result);
        result
    };
    assert_eq!(read(ring, end, 300), 0);
    let entry = opcode::Write::new(types::Fd(append.as_raw_fd()), memory, 400);
    let result = one(ring, &entry.offset(u64::MAX).build());
    tell(IoOp::UringWrite, end, 400, result);
    assert_eq!(read(ring, end, 500), 400);
    file.rewind().unwrap();
    assert_eq!(read(ring, 0, 100), 100);
    assert_eq!(read(ring, 100, 50), 50);
}

/// A request on a socket must not be in the trace.
fn not_a_file(ring: &mut IoUring, whole: libc::iovec) {
    let (socket, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
    other.write_all(b"not a file").unwrap();
    let entry = opcode::Read::new(types::Fd(socket.as_raw_fd()), whole.iov_base.cast(), 10);
    assert_eq!(one(ring, &entry.build()), 10);
}

// ---- libaio ----

/// `struct iocb` (linux/aio_abi.h).
#[repr(C)]
#[derive(Default, Clone)]
struct ControlBlock {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Default, Clone)]
struct Collected {
    data: u64,
    block: u64,
    result: i64,
    result2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;

fn aio_op(opcode: u16) -> IoOp {
    match opcode {
        PREAD | PREADV => IoOp::AioRead,
        PWRITE | PWRITEV => IoOp::AioWrite,
        _ => IoOp::AioFsync,
    }
}

fn aio(folder: &Path) {
    let path = folder.join("aio.dat");
    filled(&path, MIB).sync_all().unwrap();
    let file = open_direct(&path);
    let fd = u32::try_from(file.as_raw_fd()).unwrap();
    let buffer = aligned(16 * PAGE).as_mut_ptr() as u64;
    let pieces = [PAGE, 2 * PAGE].map(|iov_len| libc::iovec {
        iov_base: buffer as *mut libc::c_void,
        iov_len,
    });
    let mut context = 0u64;
    // SAFETY: io_setup fills `context`.
    let failed = unsafe { libc::syscall(libc::SYS_io_setup, 512, &raw mut context) };
    assert_eq!(failed, 0);
    ready();
    for round in 0..10 {
        let block = |index: i64, opcode, buffer, bytes| ControlBlock {
            opcode,
            fd,
            buffer,
            bytes,
            offset: (round * 16 + index) * 4096,
            ..ControlBlock::default()
        };
        let vector = pieces.as_ptr() as u64;
        let mut blocks = vec![
            block(0, PREAD, buffer, 4096),
            block(1, PWRITE, buffer, 8192),
            block(3, PREADV, vector, 2),
            block(6, PWRITEV, vector, 2),
        ];
        blocks.extend((0..60).map(|_| block(9, PREAD, buffer, 512)));
        submit(context, &blocks);
        collect(context, &blocks);
    }
    let sync = [ControlBlock {
        opcode: FSYNC,
        fd,
        ..ControlBlock::default()
    }];
    submit(context, &sync);
    collect(context, &sync);
    refuse_the_second(context, fd, buffer);
    done();
}

fn submit(context: u64, blocks: &[ControlBlock]) {
    let list: Vec<*const ControlBlock> = blocks.iter().map(|block| &raw const *block).collect();
    // SAFETY: the blocks live until their results have been collected.
    let taken = unsafe { libc::syscall(libc::SYS_io_submit, context, list.len(), list.as_ptr()) };
    assert_eq!(usize::try_from(taken).unwrap(), blocks.len());
}

fn collect(context: u64, blocks: &[ControlBlock]) {
    let mut events = vec![Collected::default(); blocks.len()];
    let mut found = 0;
    while found < blocks.len() {
        let room = &mut events[found..];
        // SAFETY: room for as many events as it says.
        let got = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                context,
                1,
                room.len(),
                room.as_mut_ptr(),
                0,
            )
        };
        found += usize::try_from(got).unwrap();
    }
    for event in events {
        // SAFETY: the kernel hands back the addresses it was given.
        let block = unsafe { &*(event.block as *const ControlBlock) };
        let op = aio_op(block.opcode);
        let length = match block.opcode {
            PREADV | PWRITEV => usize::try_from(event.result).unwrap(),
            _ => usize::try_from(block.bytes).unwrap(),
        };
        let offset = if op == IoOp::AioFsync {
            -1
        } else {
            block.offset
        };
        tell(op, offset, length, event.result);
    }
}

/// The kernel takes control blocks up to the first that it refuses.
fn refuse_the_second(context: u64, fd: u32, buffer: u64) {
    let good = ControlBlock {
        opcode: PREAD,
        fd,
        buffer,
        bytes: 4096,
        ..ControlBlock::default()
    };
    let bad = ControlBlock {
        reserved: 1,
        ..good.clone()
    };
    let list = [&raw const good, &raw const bad];
    // SAFETY: both blocks live until the result has been collected.
    let taken = unsafe { libc::syscall(libc::SYS_io_submit, context, 2, list.as_ptr()) };
    assert_eq!(taken, 1);
    collect(context, std::slice::from_ref(&good));
}

// ---- Mapped files ----

fn map(file: &File, bytes: usize) -> *mut libc::c_void {
    // SAFETY: a new mapping of a file that nobody truncates.
    let map = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(map, libc::MAP_FAILED);
    map
}

fn faults(folder: &Path) {
    const PAGES: usize = 4096;
    let file = filled(&folder.join("mapped.dat"), PAGES * PAGE);
    let map = map(&file, PAGES * PAGE);
    evict(&file, map, PAGES);
    // SAFETY: advice about our own mapping.
    let failed = unsafe { libc::madvise(map, PAGES * PAGE, libc::MADV_RANDOM) };
    assert_eq!(failed, 0);
    ready();
    let mut sum = 0u64;
    for round in 0..2 {
        for page in scattered(PAGES, 300) {
            let mut resident = 0u8;
            // SAFETY: one page of the mapping.
            let value = unsafe {
                let at = map.byte_add(page * PAGE);
                assert_eq!(libc::mincore(at, PAGE, &mut resident), 0);
                at.cast::<u8>().read_volatile()
            };
            sum += u64::from(value);
            if resident & 1 == 0 {
                tell(
                    IoOp::MmapFault,
                    i64::try_from(page * PAGE).unwrap(),
                    PAGE,
                    4096,
                );
            } else if round == 0 {
                say("resident");
            }
        }
    }
    assert_eq!(sum, 7 * 600);
    done();
}

// ---- Disks ----

fn cold_reads(folder: &Path, reopened: bool) {
    const PAGES: usize = 8192;
    let mut file = filled(&folder.join("cold.dat"), PAGES * PAGE);
    let map = map(&file, PAGES * PAGE);
    evict(&file, map, PAGES);
    let mut resident = vec![0u8; PAGES];
    // SAFETY: one byte per page of the mapping; then the mapping is not used any more.
    unsafe {
        assert_eq!(libc::mincore(map, PAGES * PAGE, resident.as_mut_ptr()), 0);
        assert_eq!(libc::munmap(map, PAGES * PAGE), 0);
    }
    ready();
    if reopened {
        file = File::open(folder.join("cold.dat")).unwrap();
    }
    // SAFETY: advice about our own file.
    let advised = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    assert_eq!(advised, 0);
    let mut buffer = [0; PAGE];
    for page in scattered(PAGES, 400) {
        file.read_exact_at(&mut buffer, (page * PAGE) as u64)
            .unwrap();
        if resident[page] & 1 == 0 {
            tell(
                IoOp::BlockRead,
                i64::try_from(page * PAGE).unwrap(),
                PAGE,
                4096,
            );
        }
    }
    done();
}

/// Half of the reads by system call, half through io_uring, where no call is under way.
fn direct_reads(folder: &Path) {
    let path = folder.join("direct.dat");
    filled(&path, 64 * MIB).sync_all().unwrap();
    let file = open_direct(&path);
    let mut ring = IoUring::new(8).unwrap();
    let buffer = aligned(6 * MIB);
    ready();
    for (round, page) in scattered(8 * MIB / PAGE, 100).enumerate() {
        let offset = page * PAGE * 7;
        let length = if round % 10 < 2 {
            6 * MIB
        } else {
            (round % 10) * PAGE
        };
        if round % 2 == 0 {
            file.read_exact_at(&mut buffer[..length], offset as u64)
                .unwrap();
        } else {
            let fd = types::Fd(file.as_raw_fd());
            let bytes = u32::try_from(length).unwrap();
            let entry = opcode::Read::new(fd, buffer.as_mut_ptr(), bytes);
            let result = one(&mut ring, &entry.offset(offset as u64).build());
            assert_eq!(usize::try_from(result).unwrap(), length);
        }
        tell(IoOp::BlockRead, i64::try_from(offset).unwrap(), length, 0);
    }
    done();
}

fn synced_writes(folder: &Path) {
    const PAGES: usize = 8192;
    let file = filled(&folder.join("synced.dat"), PAGES * PAGE);
    file.sync_all().unwrap();
    ready();
    for pages in scattered(PAGES, 200).collect::<Vec<_>>().chunks(20) {
        for page in pages {
            file.write_all_at(&[9; PAGE], (page * PAGE) as u64).unwrap();
            tell(
                IoOp::BlockWrite,
                i64::try_from(page * PAGE).unwrap(),
                PAGE,
                4096,
            );
        }
        file.sync_all().unwrap();
    }
    done();
}
