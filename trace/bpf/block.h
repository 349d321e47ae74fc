/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Requests of disks, from the moment the driver gets them to their completion.
 *
 * Requests are chosen by disk and file, not by process: written data leaves for the disk long after
 * the process's call, in a thread of the kernel. A request that joins data of several files (the
 * kernel merges neighbours) counts for the file of its first piece.
 *
 * On a busy host most requests are other processes'. So these programs do as little as they can for
 * those: with `own_requests_only` they are counted where they are issued, by disk and by what they
 * are for, and their ends are not looked at.
 */
#pragma once

#include "block_types.h"
#include "block_file.h"

#define OP_BLOCK_READ 22
#define OP_BLOCK_WRITE 23
#define OP_BLOCK_FLUSH 24
#define OP_BLOCK_DISCARD 25

#define MAX_DISKS 16
#define MAX_SECTORS 0xffff

/* The disks wanted, major << 20 | minor of the whole disk, up to the first 0. */
volatile __u32 block_disks[MAX_DISKS] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STARTS);
	__type(key, __u64); /* address of the struct request */
	__type(value, struct block_record);
} seekscope_block SEC(".maps");

/* Whom a request that was counted is for. `src/request_counts.rs` has the same order. */
enum request_cause {
	CAUSE_TRACED_FILES,
	CAUSE_OTHER_FILES,
	CAUSE_FILESYSTEM, /* metadata, the filesystem's journal included */
	CAUSE_UNKNOWN,	  /* memory that caches no file: direct I/O of others, swap; flushes */
	CAUSES,
};
#define REQUEST_OPS 4 /* OP_BLOCK_READ and the three after it */

struct request_count {
	__u64 requests;
	__u64 bytes;
};

/* By disk (its place in `block_disks`), cause and operation. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_DISKS * CAUSES * REQUEST_OPS);
	__type(key, __u32);
	__type(value, struct request_count);
} seekscope_request_counts SEC(".maps");

#define REQUEST_FLAG(flags, name) \
	((flags) & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_##name)))

static __always_inline __u8 op_of_request(__u32 cmd_flags)
{
	switch (cmd_flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		return OP_BLOCK_READ;
	case REQ_OP_WRITE:
	case REQ_OP_WRITE_ZEROES:
	case REQ_OP_ZONE_APPEND:
		return OP_BLOCK_WRITE;
	case REQ_OP_FLUSH:
		return OP_BLOCK_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return OP_BLOCK_DISCARD;
	default:
		return OP_NONE; /* commands to the device that move no blocks */
	}
}

static __always_inline __u8 facts_of_request(__u32 cmd_flags)
{
	bool read = (cmd_flags & REQ_OP_MASK) == REQ_OP_READ;
	__u8 facts = 0;

	if (REQUEST_FLAG(cmd_flags, META))
		facts |= BLOCK_METADATA;
	if (REQUEST_FLAG(cmd_flags, RAHEAD))
		facts |= BLOCK_READ_AHEAD;
	else if (read || REQUEST_FLAG(cmd_flags, SYNC) || REQUEST_FLAG(cmd_flags, PREFLUSH))
		facts |= BLOCK_SYNCHRONOUS;
	if (REQUEST_FLAG(cmd_flags, FUA))
		facts |= BLOCK_FORCE_UNIT_ACCESS | BLOCK_SYNCHRONOUS;
	return facts;
}

static __always_inline __u32 number_of_disk(struct gendisk *disk)
{
	return disk ? disk->major << 20 | disk->first_minor : 0;
}

static __always_inline __u32 disk_of_request(struct request *rq)
{
	struct request___5_16 *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return number_of_disk(old->rq_disk);
	struct request_queue *queue = rq->q;
	return queue ? number_of_disk(queue->disk) : 0;
}

static __always_inline __u32 disk_of_bio(struct bio *bio)
{
	struct bio___5_11 *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return number_of_disk(old->bi_disk);
	struct block_device *device = bio->bi_bdev;
	return device ? number_of_disk(device->bd_disk) : 0;
}

/* The disk's place in `block_disks`, or -1. */
static __always_inline int place_of_disk(__u32 disk)
{
	for (int i = 0; i < MAX_DISKS; i++) {
		__u32 wanted = block_disks[i];
		if (wanted == 0)
			return -1;
		if (wanted == disk)
			return i;
	}
	return -1;
}

static __always_inline int on_bio(struct bio *bio)
{
	struct direct_piece piece = {};
	__u64 key = (__u64)bio;

	if (!tracing || place_of_disk(disk_of_bio(bio)) < 0)
		return 0;
	piece.bytes = bio->bi_iter.bi_size;
	piece.sector = bio->bi_iter.bi_sector;
	if (piece.bytes && (call_of_iomap(bio, &piece) || call_of_thread(bio, &piece)) &&
	    is_wanted_request(piece.inode, piece.device))
		bpf_map_update_elem(&seekscope_pieces, &key, &piece, BPF_ANY);
	return 0;
}

static __always_inline enum request_cause cause_of(const struct block_record *record, bool wanted)
{
	if (wanted)
		return CAUSE_TRACED_FILES;
	if (record->inode)
		return CAUSE_OTHER_FILES;
	return record->facts & BLOCK_METADATA ? CAUSE_FILESYSTEM : CAUSE_UNKNOWN;
}

/* Counts a request that is issued, or takes it back when the device was busy (`times` -1). */
static __always_inline void count_request(int disk, const struct block_record *record,
					  __u64 bytes, bool wanted, __u64 times)
{
	__u32 index = (disk * CAUSES + cause_of(record, wanted)) * REQUEST_OPS +
		      (record->op - OP_BLOCK_READ);
	struct request_count *count = bpf_map_lookup_elem(&seekscope_request_counts, &index);

	if (!count)
		return;
	__sync_fetch_and_add(&count->requests, times);
	__sync_fetch_and_add(&count->bytes, times * bytes);
}

/* What a request that is being issued, or given back, is. */
static __always_inline void describe_request(struct request *rq, struct block_record *record)
{
	__u32 cmd_flags = rq->cmd_flags;
	__u64 sectors = rq->__data_len >> SECTOR_SHIFT;

	record->op = op_of_request(cmd_flags);
	record->facts = facts_of_request(cmd_flags);
	if (sectors > MAX_SECTORS) {
		record->flags |= FLAG_DEVICE_BYTES_SATURATED;
		sectors = MAX_SECTORS;
	}
	record->sectors = sectors;
	/* A flush has no place; its sector is not set. */
	record->sector = record->op == OP_BLOCK_FLUSH ? 0 : rq->__sector;
}

/* Finds the request's file. Is it to be recorded? */
static __always_inline bool is_to_be_recorded(struct request *rq, struct block_record *record)
{
	record->tid = bpf_get_current_pid_tgid();
	set_file_offset(record, OFFSET_UNKNOWN);
	if (record->sectors && (record->op == OP_BLOCK_READ || record->op == OP_BLOCK_WRITE) &&
	    (rq->cmd_flags & REQ_OP_MASK) != REQ_OP_WRITE_ZEROES)
		find_file(rq, record);
	return is_wanted_request(record->inode, record->device);
}

static __always_inline int on_issue(struct request *rq)
{
	struct block_record record = {}, *known;
	__u64 key = (__u64)rq;
	bool wanted;

	if (!tracing)
		return 0;
	record.disk = disk_of_request(rq);
	int disk = place_of_disk(record.disk);
	if (disk < 0)
		return 0;
	describe_request(rq, &record);
	if (record.op == OP_NONE)
		return 0;

	/* Given back and issued again; meanwhile neighbours may have joined it. */
	known = bpf_map_lookup_elem(&seekscope_block, &key);
	if (known && known->op == record.op && known->sector == record.sector) {
		known->facts &= ~BLOCK_GIVEN_BACK;
		known->sectors = record.sectors;
		known->flags = record.flags;
		if (own_requests_only)
			count_request(disk, known, rq->__data_len, true, 1);
		known->start_ns = bpf_ktime_get_ns();
		return 0;
	}
	wanted = is_to_be_recorded(rq, &record);
	if (own_requests_only)
		count_request(disk, &record, rq->__data_len, wanted, 1);
	/* A request that was given back may have gone to the device as part of another. The end of any
	 * other that stood here went by unseen. */
	if (known && !(known->facts & BLOCK_GIVEN_BACK))
		lose_unseen_end();
	if (!wanted) {
		if (known)
			bpf_map_delete_elem(&seekscope_block, &key);
		return 0;
	}
	record.start_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&seekscope_block, &key, &record, BPF_ANY))
		lose_to_full_table(1);
	return 0;
}

static __always_inline int on_requeue(struct request *rq)
{
	__u64 key = (__u64)rq;
	struct block_record *record = bpf_map_lookup_elem(&seekscope_block, &key);
	struct block_record other = {};

	if (record)
		record->facts |= BLOCK_GIVEN_BACK;
	if (!tracing || !own_requests_only)
		return 0;
	describe_request(rq, &other);
	if (other.op == OP_NONE)
		return 0;
	bool wanted = is_to_be_recorded(rq, &other);
	/* Last, or the verifier follows all that comes after it once for each place. */
	int disk = place_of_disk(disk_of_request(rq));
	if (disk >= 0)
		count_request(disk, &other, rq->__data_len, wanted, -1);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int seekscope_bio(__u64 *ctx)
{
	return on_bio(FOR_READING(struct bio, (void *)ctx[0]));
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue(__u64 *ctx)
{
	return on_issue(FOR_READING(struct request, (void *)ctx[0]));
}

SEC("tp_btf/block_rq_requeue")
int seekscope_back(__u64 *ctx)
{
	return on_requeue(FOR_READING(struct request, (void *)ctx[0]));
}

/* Until Linux 5.10 the queue came first; its later versions have both forms. */
SEC("tp_btf/block_bio_queue")
int seekscope_bio2(__u64 *ctx)
{
	return on_bio(FOR_READING(struct bio, (void *)ctx[1]));
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue2(__u64 *ctx)
{
	return on_issue(FOR_READING(struct request, (void *)ctx[1]));
}

SEC("tp_btf/block_rq_requeue")
int seekscope_back2(__u64 *ctx)
{
	return on_requeue(FOR_READING(struct request, (void *)ctx[1]));
}

/* The facts of a request that totals are made of. */
static __always_inline struct io_record total_of(const struct block_record *record)
{
	struct io_record total = {
		.inode = record->inode,
		.device = record->inode ? record->device : record->disk,
		.op = record->op,
		.result = (__u32)record->sectors << SECTOR_SHIFT,
	};

	if (record->facts & BLOCK_FAILED)
		total.result = -5; /* EIO */
	return total;
}

/* A request may complete in parts; it counts once, with its last part. */
SEC("tp_btf/block_rq_complete")
int seekscope_compl(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	__u32 error = ctx[1], bytes = ctx[2];
	__u64 key = (__u64)rq, end_ns;
	struct block_record *record;

	if (!tracing)
		return 0;
	record = bpf_map_lookup_elem(&seekscope_block, &key);
	if (!record)
		return 0; /* not wanted, or issued before tracing began */
	end_ns = bpf_ktime_get_ns();
	if (error)
		record->facts |= BLOCK_FAILED;
	if (bytes < rq->__data_len)
		return 0;
	record->latency_ns = end_ns - record->start_ns;
	struct io_record total = total_of(record);
	emit(record, &total, record->latency_ns);
	bpf_map_delete_elem(&seekscope_block, &key);
	return 0;
}
