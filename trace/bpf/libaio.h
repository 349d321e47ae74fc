/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Linux native asynchronous I/O (libaio): from io_submit to the call that collects the result.
 *
 * The latency therefore includes the time a finished I/O waited to be collected. A program that
 * collects results from the shared ring without a system call is not seen to collect them: its
 * I/Os stay in flight, or are lost when it submits the same control block again.
 */
#pragma once

#define OP_AIO_READ 18
#define OP_AIO_WRITE 19
#define OP_AIO_FSYNC 20

/* Most control blocks looked at per call; the rest is counted as lost. */
#define AIO_BATCH 1024

/* Stable kernel interface (linux/aio_abi.h). */
enum {
	IOCB_CMD_PREAD = 0,
	IOCB_CMD_PWRITE = 1,
	IOCB_CMD_FSYNC = 2,
	IOCB_CMD_FDSYNC = 3,
	IOCB_CMD_PREADV = 7,
	IOCB_CMD_PWRITEV = 8,
};

struct iocb {
	__u64 aio_data;
	__u32 aio_key_or_flags[2];
	__u16 aio_lio_opcode;
	__s16 aio_reqprio;
	__u32 aio_fildes;
	__u64 aio_buf;
	__u64 aio_nbytes;
	__s64 aio_offset;
};

struct io_event {
	__u64 data;
	__u64 obj; /* address of the struct iocb */
	__s64 res;
	__s64 res2;
};

struct aio_key {
	__u64 iocb; /* where the program keeps its control block */
	__u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STARTS);
	__type(key, struct aio_key);
	__type(value, struct io_record);
} seekscope_aio SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#if defined(__TARGET_ARCH_x86)
struct pt_regs___aio {
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long ax;
};
#define SYSCALL_ARGUMENT_2(regs) BPF_CORE_READ((struct pt_regs___aio *)(regs), si)
#define SYSCALL_ARGUMENT_3(regs) BPF_CORE_READ((struct pt_regs___aio *)(regs), dx)
#define SYSCALL_ARGUMENT_4(regs) BPF_CORE_READ((struct pt_regs___aio *)(regs), r10)
#else
#define SYSCALL_ARGUMENT_2(regs) BPF_CORE_READ(regs, regs[1])
#define SYSCALL_ARGUMENT_3(regs) BPF_CORE_READ(regs, regs[2])
#define SYSCALL_ARGUMENT_4(regs) BPF_CORE_READ(regs, regs[3])
#endif
#pragma clang attribute pop

/* Tells the call that submits from those that collect; its number differs between architectures. */
const volatile __u32 nr_io_submit = 0;

static __always_inline __u8 op_of_aio(__u16 opcode)
{
	switch (opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PREADV:
		return OP_AIO_READ;
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PWRITEV:
		return OP_AIO_WRITE;
	case IOCB_CMD_FSYNC:
	case IOCB_CMD_FDSYNC:
		return OP_AIO_FSYNC;
	default:
		return OP_NONE;
	}
}

/* Functions of their own, so that the verifier checks their bodies once and not per round. */

/* Notes one control block about to be submitted. */
__noinline int seekscope_aio_submitted(__u64 address)
{
	struct io_record record = {};
	struct file_facts facts = {};
	struct iocb block;
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct aio_key key = {.iocb = address, .tgid = pid_tgid >> 32};

	if (bpf_probe_read_user(&block, sizeof(block), (void *)address))
		return 0;
	record.op = op_of_aio(block.aio_lio_opcode);
	if (record.op == OP_NONE)
		return 0;
	struct file *file = file_of(current_task(false), block.aio_fildes, false);
	if (file)
		read_file_facts(file, &facts, false);
	if (!file || !is_wanted_file(file, &facts, block.aio_offset))
		return 0;
	record.flags = FLAG_CACHE_UNKNOWN;
	if (facts.flags & o_direct)
		record.flags |= FLAG_DIRECT;
	record.offset = record.op == OP_AIO_FSYNC ? OFFSET_UNKNOWN : block.aio_offset;
	if (record.op == OP_AIO_WRITE && facts.flags & O_APPEND) {
		record.flags |= FLAG_APPEND;
		record.offset = OFFSET_UNKNOWN;
	}
	/* The length of vectored operations is a number of pieces. */
	if (block.aio_lio_opcode == IOCB_CMD_PREAD || block.aio_lio_opcode == IOCB_CMD_PWRITE)
		record.length = block.aio_nbytes > 0xffffffff ? 0xffffffff : block.aio_nbytes;
	record.inode = facts.inode;
	record.device = facts.device;
	record.tid = pid_tgid;
	record.start_ns = bpf_ktime_get_ns();
	keep_start(&seekscope_aio, &key, &record);
	return 0;
}

/* Forgets a control block that the kernel did not take. */
__noinline int seekscope_aio_refused(__u64 address)
{
	struct aio_key key = {.iocb = address, .tgid = bpf_get_current_pid_tgid() >> 32};

	bpf_map_delete_elem(&seekscope_aio, &key);
	return 0;
}

/* Writes the record of one result. */
__noinline int seekscope_aio_collected(__u64 address, __u64 end_ns)
{
	struct io_event event;
	struct aio_key key = {.tgid = bpf_get_current_pid_tgid() >> 32};

	if (bpf_probe_read_user(&event, sizeof(event), (void *)address))
		return 0;
	key.iocb = event.obj;
	struct io_record *record = bpf_map_lookup_elem(&seekscope_aio, &key);
	if (!record)
		return 0;
	record->result = event.res;
	if (record->length == 0 && event.res > 0)
		record->length = event.res;
	record->latency_ns = end_ns - record->start_ns;
	emit(record, record, record->latency_ns);
	bpf_map_delete_elem(&seekscope_aio, &key);
	return 0;
}

static __always_inline void on_aio_enter(struct pt_regs *regs, __u64 nr)
{
	__u64 number;

	if (nr != nr_io_submit || is_compat(current_task(false), false))
		return;
	__s64 count = SYSCALL_ARGUMENT_2(regs);
	__u64 *list = (__u64 *)SYSCALL_ARGUMENT_3(regs), address;
	if (count > AIO_BATCH)
		lose_to_full_table(count - AIO_BATCH);
	for (number = 0; number < AIO_BATCH && (__s64)number < count; number++) {
		if (bpf_probe_read_user(&address, sizeof(address), list + number))
			break;
		seekscope_aio_submitted(address);
	}
}

static __always_inline void forget_refused(struct pt_regs *regs, __s64 taken)
{
	__s64 count = SYSCALL_ARGUMENT_2(regs);
	__u64 *list = (__u64 *)SYSCALL_ARGUMENT_3(regs), address, number;

	if (taken < 0)
		taken = 0;
	if (taken >= count)
		return;
	for (number = 0; number < AIO_BATCH && taken + (__s64)number < count; number++) {
		if (bpf_probe_read_user(&address, sizeof(address), list + taken + number))
			break;
		seekscope_aio_refused(address);
	}
}

static __always_inline void on_aio_exit(struct pt_regs *regs, __u32 nr, __s64 result)
{
	__u64 number, end_ns;

	if (is_compat(current_task(false), false))
		return;
	if (nr == nr_io_submit) {
		forget_refused(regs, result);
		return;
	}
	end_ns = bpf_ktime_get_ns();
	__u64 events = SYSCALL_ARGUMENT_4(regs);
	/* Results beyond the bound stay in the table and count as in flight. */
	for (number = 0; number < AIO_BATCH && (__s64)number < result; number++)
		seekscope_aio_collected(events + number * sizeof(struct io_event), end_ns);
}

/* With the backend tracepoint, whose programs do not have the arguments at the end of a call. */

SEC("tp_btf/sys_enter")
int seekscope_aio_e(__u64 *ctx)
{
	if (op_of(ctx[1]) == OP_AIO_CALL && tracing && is_target(bpf_get_current_pid_tgid()))
		on_aio_enter((struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

SEC("tp_btf/sys_exit")
int seekscope_aio_x(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u32 nr = SYSCALL_NR(regs);

	if (op_of(nr) == OP_AIO_CALL && tracing && is_target(bpf_get_current_pid_tgid()))
		on_aio_exit(regs, nr, ctx[1]);
	return 0;
}

/* With the backend tp_btf, one pair for both kinds of calls: a second one would run at every system
 * call of every process. */

SEC("tp_btf/sys_enter")
int seekscope_enter_with_aio(__u64 *ctx)
{
	return on_sys_enter(ctx, true);
}

SEC("tp_btf/sys_exit")
int seekscope_exit_with_aio(__u64 *ctx)
{
	return on_sys_exit(ctx, true);
}
