/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Kernel types and numbers of the block layer, as of all kernels since 5.8.
 */
#pragma once

/* libbpf replaces the values by the running kernel's. */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};
/* Operations (linux/blk_types.h), the low byte of `cmd_flags`; numbered alike since Linux 4.10. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZONE_APPEND 7
#define REQ_OP_WRITE_ZEROES 9

#define S_IFDIR 0040000
#define PAGE_MAPPING_FLAGS 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk; /* since Linux 5.15 */
};

/* Linux 7.3 renamed `bi_bvec_done`. */
struct bvec_iter___7_3 {
	__u32 bi_offset;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
	__u32 bi_idx;
	__u32 bi_bvec_done;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
	unsigned long index;
};

/* Linux 7 renamed the member and may store a mask in it. */
struct page___7 {
	unsigned long compound_info;
};

/* Since Linux 5.16. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct address_space {
	struct inode *host;
};

struct inode___block {
	struct address_space *i_mapping;
};

struct bio_vec {
	struct page *bv_page;
	__u32 bv_len;
	__u32 bv_offset;
};

struct bio {
	struct block_device *bi_bdev; /* since Linux 5.12 */
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_end_io;
	void *bi_private;
};

struct bio___5_11 {
	struct gendisk *bi_disk;
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
};

/* Until Linux 5.16. */
struct request___5_16 {
	struct gendisk *rq_disk;
};

struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
};

struct iomap_dio {
	struct kiocb *iocb;
	long long size; /* bytes sent off so far */
};

#pragma clang attribute pop
