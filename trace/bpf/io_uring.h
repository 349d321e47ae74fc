/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Reads, writes and syncs through io_uring, from submission to completion.
 *
 * A request is recognised by its address: it may be submitted by a polling thread and completed
 * in any context. Whether the page cache had the data is not known, because the work may be
 * done by another thread.
 */
#pragma once

#define OP_URING_READ 15
#define OP_URING_WRITE 16
#define OP_URING_FSYNC 17

/* Stable kernel interface (linux/io_uring.h). */
enum {
	IORING_OP_READV = 1,
	IORING_OP_WRITEV = 2,
	IORING_OP_FSYNC = 3,
	IORING_OP_READ_FIXED = 4,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_READ = 22,
	IORING_OP_WRITE = 23,
	IORING_OP_READV_FIXED = 60,
	IORING_OP_WRITEV_FIXED = 61,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct io_ring_ctx;

struct io_kiocb {
	struct file *file;
	struct io_ring_ctx *ctx;
	__u8 opcode;
};

/* What the first bytes of a struct io_kiocb hold for reads and writes. */
struct io_rw {
	struct kiocb kiocb;
	__u32 len;
};

struct io_uring_cqe {
	__s32 res;
};

#pragma clang attribute pop

struct uring_start {
	__u64 ring; /* with `record.op`, tells a reused request from the one that was noted */
	struct io_record record;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STARTS);
	__type(key, __u64); /* address of the struct io_kiocb */
	__type(value, struct uring_start);
} seekscope_uring SEC(".maps");

static __always_inline __u8 op_of_uring(__u8 opcode)
{
	switch (opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READV_FIXED:
		return OP_URING_READ;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITEV_FIXED:
		return OP_URING_WRITE;
	case IORING_OP_FSYNC:
		return OP_URING_FSYNC;
	default:
		return OP_NONE;
	}
}

/* The length of the others is a number of pieces. */
static __always_inline bool uring_has_length(__u8 opcode)
{
	return opcode == IORING_OP_READ || opcode == IORING_OP_WRITE ||
	       opcode == IORING_OP_READ_FIXED || opcode == IORING_OP_WRITE_FIXED;
}

static __always_inline int on_uring_submit(struct io_kiocb *req)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u64 key = (__u64)req;
	struct uring_start start = {};

	if (!tracing || !is_target(pid_tgid))
		return 0;
	__u8 opcode = BPF_CORE_READ(req, opcode);
	start.record.op = op_of_uring(opcode);
	if (start.record.op == OP_NONE) {
		/* The request was reused, so the completion of its last use went by unseen: the
		 * program asked for none. */
		if (bpf_map_delete_elem(&seekscope_uring, &key) == 0)
			lose_unseen_end();
		return 0;
	}
	start.record.flags = FLAG_CACHE_UNKNOWN;
	start.record.offset = OFFSET_UNKNOWN;
	if (start.record.op != OP_URING_FSYNC) {
		struct io_rw *rw = (struct io_rw *)req;
		start.record.offset = BPF_CORE_READ(rw, kiocb.ki_pos);
		if (start.record.offset == OFFSET_UNKNOWN)
			start.record.flags |= FLAG_OFFSET_FROM_POSITION;
		if (uring_has_length(opcode))
			start.record.length = BPF_CORE_READ(rw, len);
	}
	start.ring = (__u64)BPF_CORE_READ(req, ctx);
	start.record.tid = pid_tgid;
	start.record.start_ns = bpf_ktime_get_ns();
	keep_start(&seekscope_uring, &key, &start);
	return 0;
}

static __always_inline int on_uring_complete(struct io_kiocb *req, __s32 result)
{
	__u64 key = (__u64)req, end_ns = bpf_ktime_get_ns();
	struct file_facts facts = {};
	struct io_record *record;
	struct uring_start *start;

	if (!tracing || !req)
		return 0;
	start = bpf_map_lookup_elem(&seekscope_uring, &key);
	if (!start)
		return 0;
	record = &start->record;
	if (start->ring != (__u64)BPF_CORE_READ(req, ctx) ||
	    record->op != op_of_uring(BPF_CORE_READ(req, opcode))) {
		bpf_map_delete_elem(&seekscope_uring, &key);
		lose_unseen_end();
		return 0;
	}
	struct file *file = BPF_CORE_READ(req, file);
	if (file)
		read_file_facts(file, &facts, false);
	if (file && is_wanted_file(file, &facts, record->offset)) {
		record->inode = facts.inode;
		record->device = facts.device;
		record->result = result;
		if (facts.flags & o_direct)
			record->flags |= FLAG_DIRECT;
		if (record->length == 0 && result > 0)
			record->length = result;
		/* The request's own position has moved on by what was transferred. */
		bool append = record->op == OP_URING_WRITE && facts.flags & O_APPEND;
		if (append)
			record->flags |= FLAG_APPEND;
		if (record->flags & (FLAG_OFFSET_FROM_POSITION | FLAG_APPEND)) {
			__s64 end = BPF_CORE_READ((struct io_rw *)req, kiocb.ki_pos);
			bool known = result >= 0 && end >= result;
			record->offset = known ? end - result : OFFSET_UNKNOWN;
		}
		record->latency_ns = end_ns - record->start_ns;
		emit(record, record, record->latency_ns);
	}
	bpf_map_delete_elem(&seekscope_uring, &key);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int seekscope_sub_r(__u64 *ctx)
{
	return on_uring_submit((struct io_kiocb *)ctx[0]);
}

/* Linux 6.0 to 6.3. */
SEC("tp_btf/io_uring_submit_sqe")
int seekscope_sub_s(__u64 *ctx)
{
	return on_uring_submit((struct io_kiocb *)ctx[0]);
}

SEC("tp_btf/io_uring_complete")
int seekscope_cqe(__u64 *ctx)
{
	struct io_uring_cqe *cqe = (struct io_uring_cqe *)ctx[2];
	return on_uring_complete((struct io_kiocb *)ctx[1], BPF_CORE_READ(cqe, res));
}

/* Earlier the result was passed by value: ring, request, user data, result, ... */
SEC("tp_btf/io_uring_complete")
int seekscope_cqe_v(__u64 *ctx)
{
	return on_uring_complete((struct io_kiocb *)ctx[1], ctx[3]);
}
