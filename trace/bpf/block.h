/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Requests of disks, from the moment the driver gets them to their completion.
 *
 * Requests are chosen by disk, not by process: written data leaves for the disk long after the
 * process's call, in a thread of the kernel. A request that joins data of several files (the
 * kernel merges neighbours) counts for the file of its first piece.
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
#define SECTOR_MASK ((1ULL << 48) - 1)

/* The disks wanted, major << 20 | minor of the whole disk, up to the first 0. */
volatile __u32 block_disks[MAX_DISKS] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STARTS);
	__type(key, __u64); /* address of the struct request */
	__type(value, struct block_record);
} seekscope_block SEC(".maps");

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
	if (!disk)
		return 0;
	return BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}

static __always_inline __u32 disk_of_request(struct request *rq)
{
	struct request___5_16 *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return number_of_disk(BPF_CORE_READ(old, rq_disk));
	return number_of_disk(BPF_CORE_READ(rq, q, disk));
}

static __always_inline __u32 disk_of_bio(struct bio *bio)
{
	struct bio___5_11 *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return number_of_disk(BPF_CORE_READ(old, bi_disk));
	return number_of_disk(BPF_CORE_READ(bio, bi_bdev, bd_disk));
}

static __always_inline bool is_wanted_disk(__u32 disk)
{
	for (int i = 0; i < MAX_DISKS; i++) {
		__u32 wanted = block_disks[i];
		if (wanted == 0)
			return false;
		if (wanted == disk)
			return true;
	}
	return false;
}

static __always_inline int on_bio(struct bio *bio)
{
	struct direct_piece piece = {};
	__u64 key = (__u64)bio;

	if (!tracing || !is_wanted_disk(disk_of_bio(bio)))
		return 0;
	piece.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	piece.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	if (piece.bytes && (call_of_iomap(bio, &piece) || call_of_thread(bio, &piece)))
		bpf_map_update_elem(&seekscope_pieces, &key, &piece, BPF_ANY);
	return 0;
}

static __always_inline int on_issue(struct request *rq)
{
	struct block_record record = {}, *known;
	__u64 key = (__u64)rq;

	if (!tracing)
		return 0;
	record.disk = disk_of_request(rq);
	if (!is_wanted_disk(record.disk))
		return 0;
	__u32 cmd_flags = BPF_CORE_READ(rq, cmd_flags);
	__u32 bytes = BPF_CORE_READ(rq, __data_len);
	__u64 sectors = bytes >> SECTOR_SHIFT;
	record.op = op_of_request(cmd_flags);
	if (record.op == OP_NONE)
		return 0;
	if (sectors > MAX_SECTORS) {
		record.flags |= FLAG_DEVICE_BYTES_SATURATED;
		sectors = MAX_SECTORS;
	}
	/* A flush has no place; its sector is not set. */
	__u64 sector = record.op == OP_BLOCK_FLUSH ? 0 : BPF_CORE_READ(rq, __sector);
	record.sector = (sector & SECTOR_MASK) | sectors << 48;

	/* Given back and issued again; meanwhile neighbours may have joined it. */
	known = bpf_map_lookup_elem(&seekscope_block, &key);
	if (known && known->op == record.op && (known->sector & SECTOR_MASK) == sector) {
		known->facts &= ~BLOCK_GIVEN_BACK;
		known->sector = record.sector;
		known->flags = record.flags;
		known->start_ns = bpf_ktime_get_ns();
		return 0;
	}
	record.facts = facts_of_request(cmd_flags);
	record.tid = bpf_get_current_pid_tgid();
	set_file_offset(&record, OFFSET_UNKNOWN);
	if (bytes && (record.op == OP_BLOCK_READ || record.op == OP_BLOCK_WRITE) &&
	    (cmd_flags & REQ_OP_MASK) != REQ_OP_WRITE_ZEROES)
		find_file(rq, &record);
	if (!is_wanted_request(record.inode, record.device))
		return 0;
	record.start_ns = bpf_ktime_get_ns();
	/* A request that was given back may have gone to the device as part of another. The end of any
	 * other that stood here went by unseen. */
	if (known && !(known->facts & BLOCK_GIVEN_BACK))
		lose_replaced_start();
	if (bpf_map_update_elem(&seekscope_block, &key, &record, BPF_ANY))
		lose_to_full_table(1);
	return 0;
}

static __always_inline int on_requeue(struct request *rq)
{
	__u64 key = (__u64)rq;
	struct block_record *record = bpf_map_lookup_elem(&seekscope_block, &key);

	if (record)
		record->facts |= BLOCK_GIVEN_BACK;
	return 0;
}

SEC("tp_btf/block_bio_queue")
int seekscope_bio(__u64 *ctx)
{
	return on_bio((struct bio *)ctx[0]);
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue(__u64 *ctx)
{
	return on_issue((struct request *)ctx[0]);
}

SEC("tp_btf/block_rq_requeue")
int seekscope_back(__u64 *ctx)
{
	return on_requeue((struct request *)ctx[0]);
}

/* Until Linux 5.10 the queue came first; its later versions have both forms. */
SEC("tp_btf/block_bio_queue")
int seekscope_bio2(__u64 *ctx)
{
	return on_bio((struct bio *)ctx[1]);
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue2(__u64 *ctx)
{
	return on_issue((struct request *)ctx[1]);
}

SEC("tp_btf/block_rq_requeue")
int seekscope_back2(__u64 *ctx)
{
	return on_requeue((struct request *)ctx[1]);
}

/* The facts of a request that totals are made of. */
static __always_inline struct io_record total_of(const struct block_record *record)
{
	struct io_record total = {
		.inode = record->inode,
		.device = record->inode ? record->device : record->disk,
		.op = record->op,
		.result = record->sector >> 48 << SECTOR_SHIFT,
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
	__u64 key = (__u64)rq, end_ns = bpf_ktime_get_ns();
	struct block_record *record;

	if (!tracing)
		return 0;
	record = bpf_map_lookup_elem(&seekscope_block, &key);
	if (!record)
		return 0; /* another disk's, or issued before tracing began */
	if (error)
		record->facts |= BLOCK_FAILED;
	if (bytes < BPF_CORE_READ(rq, __data_len))
		return 0;
	__u64 latency_ns = end_ns - record->start_ns;
	if (latency_ns > 0xffffffff)
		record->flags |= FLAG_LATENCY_SATURATED;
	record->latency_ns = latency_ns > 0xffffffff ? 0xffffffff : latency_ns;
	struct io_record total = total_of(record);
	emit(record, &total, latency_ns);
	bpf_map_delete_elem(&seekscope_block, &key);
	return 0;
}
