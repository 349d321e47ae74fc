/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel programs hand to user space through the ring buffer, in host byte order.
 * `src/decode.rs` and `src/notices.rs` read the same layouts and tell them apart by length:
 *
 *   56 bytes   `struct io_record`: a completed call. The ring buffer adds a header of 8
 *   32 bytes   `struct thread_record`: a thread's first call. It spares each call the process id
 *   above 56   `struct name_record`: a file was opened
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
#define OP_FSYNC 11
#define OP_FDATASYNC 12
#define OP_SYNC_FILE_RANGE 13
/* Submits or collects requests of libaio, each of which has a record of its own. Never in a record, nor are the
 * ones above. */
#define OP_AIO_CALL 254
/* Not I/O: gives a file its name. */
#define OP_OPEN 255

/* `flags`: the low byte of `IoFlags` in the `run` crate. 0x04 said that a latency had been cut off,
 * when records had 32 bits for it. */
#define FLAG_WAITED 0x01
#define FLAG_DEVICE_READ 0x02
#define FLAG_OFFSET_FROM_POSITION 0x08
#define FLAG_DIRECT 0x10
#define FLAG_APPEND 0x20
#define FLAG_DEVICE_BYTES_SATURATED 0x40
#define FLAG_CACHE_UNKNOWN 0x80

/* `offset` where it could not be known. No file offset is this large: they are signed. */
#define OFFSET_UNKNOWN (~0ULL)

/* The block layer counts in this unit and knows no smaller one. */
#define SECTOR_SHIFT 9

struct io_record {
	__u64 start_ns;		   /*  0  CLOCK_MONOTONIC at entry */
	__u64 offset;		   /*  8  byte offset in the file, or OFFSET_UNKNOWN */
	__u64 inode;		   /* 16  inode number */
	__u64 latency_ns;	   /* 24  entry to exit */
	__u32 length;		   /* 32  bytes asked for; bytes transferred for vectored calls */
	__u32 tid;		   /* 36  thread, numbered by the first PID namespace */
	__u32 device;		   /* 40  superblock's device, the kernel's way: major << 20 | minor */
	__s32 result;		   /* 44  bytes transferred, or negative errno */
	__u32 device_read_bytes;   /* 48  read from devices on behalf of this call */
	__u8 op;		   /* 52  OP_* */
	__u8 flags;		   /* 53  FLAG_* */
	__u16 reserved;		   /* 54 */
};

_Static_assert(sizeof(struct io_record) == 56, "src/decode.rs relies on 56 bytes");

/* `facts` of a disk's request: the high byte of `IoFlags`; the last one is known here only, and
 * becomes the event's result. */
#define BLOCK_FILE_FROM_CALL 0x01
#define BLOCK_METADATA 0x02
#define BLOCK_READ_AHEAD 0x04
#define BLOCK_SYNCHRONOUS 0x08
#define BLOCK_FORCE_UNIT_ACCESS 0x10
/* The device was busy and gave the request back; never in a record that is sent. */
#define BLOCK_GIVEN_BACK 0x40
#define BLOCK_FAILED 0x80

/* A completed request of a disk. Start, inode, latency, thread, device, operation and flags lie
 * where they lie in a struct io_record; `op` tells the two apart. */
struct block_record {
	__u64 start_ns;		 /*  0  CLOCK_MONOTONIC when the driver got it */
	__u64 sector;		 /*  8  first sector on the disk */
	__u64 inode;		 /* 16  0: no file known */
	__u64 latency_ns;	 /* 24  to completion */
	__u32 disk;		 /* 32  the whole disk, major << 20 | minor */
	__u32 tid;		 /* 36  thread that issued it, numbered by the first PID namespace */
	__u32 device;		 /* 40  superblock's device of the file */
	__u32 offset_sectors;	 /* 44  offset in the file, 512-byte units; all 40 bits set: unknown */
	__u8 offset_sectors_high; /* 48  ... its bits 32 to 39 */
	__u8 facts;		 /* 49  BLOCK_* */
	__u16 sectors;		 /* 50  its length */
	__u8 op;		 /* 52  OP_BLOCK_* */
	__u8 flags;		 /* 53  FLAG_* */
	__u16 reserved;		 /* 54 */
};

_Static_assert(sizeof(struct block_record) == 56, "as large as struct io_record");

/* Sent before a thread's first call, and again when its start slot was shared meanwhile. */
struct thread_record {
	__u32 tid; /*  0  numbered by the first PID namespace, as all that follow */
	__u32 tgid; /*  4  its process */
	__u32 reserved[2];
	char comm[16]; /* 16  its name, ends with a zero byte */
};

_Static_assert(sizeof(struct thread_record) == 32, "src/notices.rs relies on 32 bytes");

#define NAME_BYTES 4096	 /* of a path: PATH_MAX */
#define COMPONENT_BYTES 256 /* NAME_MAX and a zero byte */
#define DEPTH_MAX 40	 /* folders; deeper files are named by user space, if it comes in time */

#define NAME_TRUNCATED 1 /* deeper than DEPTH_MAX or longer than NAME_BYTES */
#define NAME_UNLINKED 2	 /* opened without a name, or it is gone already */

/* A file was opened. The path's parts stand in `parts` from the last to the first, each ended by a
 * zero byte, as seen from the process's own root folder. */
struct name_record {
	__u64 inode;
	__u32 device;
	__u32 generation; /* tells a new file from an older one with its inode number */
	__u32 tgid;
	__u32 flags; /* NAME_* */
	__u64 reserved[5];
	char parts[2 * NAME_BYTES]; /* twice, so that one mask bounds every access */
};

/* Longer than any other record even without parts. */
#define NAME_HEADER_BYTES 64

_Static_assert(__builtin_offsetof(struct name_record, parts) == NAME_HEADER_BYTES,
	       "src/notices.rs relies on it");

/* Where events are only counted: what was seen of one file and operation. */
struct total_key {
	__u64 inode;
	__u32 device;
	__u32 op;
};

#define LATENCY_BUCKETS 40 /* bucket i holds latencies from 2^i to 2^(i+1) - 1 ns; the last all above */

struct totals {
	__u64 calls;
	__u64 errors;
	__u64 bytes; /* transferred */
	__u64 device_read_bytes;
	__u64 hits;
	__u64 misses;
	__u64 waited; /* for pages that others were reading */
	__u64 direct;
	__u64 latency_ns; /* sum */
	__u64 latency_buckets[LATENCY_BUCKETS];
};

/* Counters, one set per CPU. `src/loader.rs` sums them. */
struct io_counters {
	__u64 seen;	       /* calls on files that completed (or whose start was lost) */
	__u64 lost_ring_full;  /* ... of these: no room in the ring buffer */
	__u64 lost_start;      /* ... of these: start slot overwritten before the call ended */
	__u64 unmatched_exits; /* ends of calls whose start was not seen; not in `seen` */
	__u64 lost_table_full; /* ... of `seen`: no room in a table */
	__u64 lost_end;	       /* ... of `seen`: the kernel ran no program at its end */
	__u64 host_calls;      /* system calls of all processes while they were counted */
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
	/* Low halves: only their change over one call counts. */
	__u32 device_read_bytes;
	__u32 voluntary_switches;
	__u32 length;
	__u32 device;
	__u32 announced; /* thread whose record was sent; outlives the call */
	__u32 reserved;
};

_Static_assert(sizeof(struct start_slot) == 64, "one cache line; src/loader.rs reads `tid`, `op`");
