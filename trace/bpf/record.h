/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel programs hand to user space: one `struct io_record` per completed call, through
 * the ring buffer, in host byte order. `src/decode.rs` reads the same layout.
 *
 * 48 bytes hold all there is to say about a call; the ring buffer adds a header of 8. The process
 * id is absent because one trace follows one process.
 */
#pragma once

/* `op`: the values of `IoOp` in the `run` crate. User space fills the table that maps system-call
 * numbers to them, so they are not repeated here, except for the ones the programs tell apart. */
#define OP_NONE 0 /* not a call we follow, or not on a file */
#define OP_READ 1
#define OP_PREAD 2
#define OP_READV 3
#define OP_PREADV2 5
#define OP_WRITE 6
#define OP_PWRITE 7
#define OP_WRITEV 8
#define OP_PWRITEV2 10

/* `flags`: the low byte of `IoFlags` in the `run` crate. */
#define FLAG_WAITED 0x01
#define FLAG_DEVICE_READ 0x02
#define FLAG_LATENCY_SATURATED 0x04
#define FLAG_OFFSET_FROM_POSITION 0x08
#define FLAG_DIRECT 0x10
#define FLAG_APPEND 0x20
#define FLAG_DEVICE_BYTES_SATURATED 0x40
#define FLAG_CACHE_UNKNOWN 0x80

/* `offset` where it could not be known. No file offset is this large: they are signed. */
#define OFFSET_UNKNOWN (~0ULL)

/* `device_read_sectors` counts in this unit; the block layer knows no smaller one. */
#define SECTOR_SHIFT 9

struct io_record {
	__u64 start_ns;		   /*  0  CLOCK_MONOTONIC at entry */
	__u64 offset;		   /*  8  byte offset in the file, or OFFSET_UNKNOWN */
	__u64 inode;		   /* 16  inode number */
	__u32 latency_ns;	   /* 24  entry to exit; UINT32_MAX with FLAG_LATENCY_SATURATED */
	__u32 length;		   /* 28  bytes asked for; bytes transferred for vectored calls */
	__u32 tid;		   /* 32  thread, numbered by the first PID namespace */
	__u32 device;		   /* 36  superblock's device, the kernel's way: major << 20 | minor */
	__s32 result;		   /* 40  bytes transferred, or negative errno */
	__u16 device_read_sectors; /* 44  read from devices on behalf of this call, 512-byte units */
	__u8 op;		   /* 46  OP_* */
	__u8 flags;		   /* 47  FLAG_* */
};

_Static_assert(sizeof(struct io_record) == 48, "src/decode.rs relies on 48 bytes");

/* `facts` of a disk's request: the high byte of `IoFlags`; the last one is known here only, and
 * becomes the event's result. */
#define BLOCK_FILE_FROM_CALL 0x01
#define BLOCK_METADATA 0x02
#define BLOCK_READ_AHEAD 0x04
#define BLOCK_SYNCHRONOUS 0x08
#define BLOCK_FORCE_UNIT_ACCESS 0x10
#define BLOCK_FAILED 0x80

/* A completed request of a disk. Start, inode, latency, thread, device, operation and flags lie
 * where they lie in a struct io_record; `op` tells the two apart. */
struct block_record {
	__u64 start_ns;		 /*  0  CLOCK_MONOTONIC when the driver got it */
	__u64 sector;		 /*  8  low 48 bits: first sector; high 16: number of sectors */
	__u64 inode;		 /* 16  0: no file known */
	__u32 latency_ns;	 /* 24  to completion; UINT32_MAX with FLAG_LATENCY_SATURATED */
	__u32 disk;		 /* 28  the whole disk, major << 20 | minor */
	__u32 tid;		 /* 32  thread that issued it, numbered by the first PID namespace */
	__u32 device;		 /* 36  superblock's device of the file */
	__u32 offset_sectors;	 /* 40  offset in the file, 512-byte units; all 40 bits set: unknown */
	__u8 offset_sectors_high; /* 44  ... its bits 32 to 39 */
	__u8 facts;		 /* 45  BLOCK_* */
	__u8 op;		 /* 46  OP_BLOCK_* */
	__u8 flags;		 /* 47  FLAG_* */
};

_Static_assert(sizeof(struct block_record) == 48, "as large as struct io_record");

/* Counters, one set per CPU. `src/loader.rs` sums them. */
struct io_counters {
	__u64 seen;	       /* calls on files that completed (or whose start was lost) */
	__u64 lost_ring_full;  /* ... of these: no room in the ring buffer */
	__u64 lost_start;      /* ... of these: start slot overwritten before the call ended */
	__u64 unmatched_exits; /* ends of calls whose start was not seen; not in `seen` */
	__u64 lost_table_full; /* ... of `seen`: no room to keep the start until the end */
};

/* The start of a call, kept until it ends, in an array indexed by thread id. */
struct start_slot {
	__u32 tid; /* 0: free */
	__u16 nr;  /* system-call number, so that another call's exit is never taken for ours */
	__u8 op;   /* OP_NONE: the call is not on a file, its exit is to be ignored */
	__u8 flags;
	__u64 start_ns;
	__u64 offset;
	__u64 inode;
	__u64 file; /* address of the kernel's struct file */
	__u64 device_read_bytes;
	__u64 voluntary_switches;
	__u32 length;
	__u32 device;
};

_Static_assert(sizeof(struct start_slot) == 64, "one cache line; src/loader.rs reads `tid`, `op`");
