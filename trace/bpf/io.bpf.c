// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Follows the read, write and sync system calls of some processes on regular files and block
 * devices.
 *
 * A call's start is kept in an array slot chosen by thread id; at its end one record goes to the
 * ring buffer, or is added to the file's totals. Two backends share these bodies and user space loads one of them:
 *
 *   tp_btf      typed tracepoints of all system calls; from Linux 7.2 on they miss calls (src/preemption.rs)
 *   tracepoint  the classic tracepoint of each followed call: costs the followed calls more, and all
 *               others a third; needs Linux 5.8 with CONFIG_FTRACE_SYSCALLS, and tracefs
 *
 * Either reads the kernel's memory directly where the kernel hands out typed pointers (`typed`,
 * Linux 5.11 and 6.2), else through helpers. Loading settles which, and drops the other variant.
 */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "kernel_reads.h"
#include "record.h"

/* ---- Set by user space before loading; the verifier then drops what they rule out. ---- */

#define OP_TABLE_SIZE 512
/* OP_* by system-call number. The largest number we follow is 437. */
const volatile __u8 op_of_syscall[OP_TABLE_SIZE] = {};
/* Number of slots - 1, where the number is a power of two. */
const volatile __u32 slot_mask = 0;
/* Wake the reader when more bytes than this wait in the ring. */
const volatile __u64 wakeup_bytes = 0;
/* O_DIRECT differs between architectures. */
const volatile __u32 o_direct = 0;

/* ---- Shared with user space while running. ---- */

/* Programs act only while this is set. Attaching is not atomic over two programs; this is. */
volatile __u32 tracing = 0;
/* A wake-up is under way; the reader clears it. Saves waking once per record beyond the mark. */
volatile __u32 wakeup_sent = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20); /* user space sets its own size */
} seekscope_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384); /* user space sets its own number */
	__type(key, __u32);
	__type(value, struct start_slot);
} seekscope_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct io_counters);
} seekscope_count SEC(".maps");

#include "names.h"
#include "filter.h"
#include "totals.h"

/* A call's arguments, however the backend came by them. */
struct arguments {
	__u32 fd;
	__u64 second;
	__u64 count;
	__u64 position;
	__u32 rwf;
};

static __always_inline struct start_slot *slot_of(__u32 tid)
{
	__u32 index = tid & slot_mask;
	return bpf_map_lookup_elem(&seekscope_slots, &index);
}

static __always_inline struct io_counters *counters(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&seekscope_count, &zero);
}

static __always_inline __u8 op_of(long nr)
{
	__u64 index = nr;
	return index < OP_TABLE_SIZE ? op_of_syscall[index] : OP_NONE;
}

static __always_inline bool uses_file_position(__u8 op, __u64 position)
{
	if (op == OP_READ || op == OP_READV || op == OP_WRITE || op == OP_WRITEV)
		return true;
	return (op == OP_PREADV2 || op == OP_PWRITEV2) && position == ~0ULL;
}

static __always_inline bool is_append(__u8 op, __u32 file_flags, __u32 rwf)
{
	if (op < OP_WRITE || op > OP_PWRITEV2)
		return false;
	if (op != OP_PWRITEV2)
		return file_flags & O_APPEND;
	return (rwf & RWF_APPEND) || ((file_flags & O_APPEND) && !(rwf & RWF_NOAPPEND));
}

static __always_inline bool has_count(__u8 op)
{
	return op == OP_READ || op == OP_PREAD || op == OP_WRITE || op == OP_PWRITE ||
	       op == OP_SYNC_FILE_RANGE;
}

/* Where the call works in the file. */
static __always_inline __u64 offset_of(__u8 op, const struct arguments *call,
				       const struct file_facts *facts)
{
	if (op == OP_FSYNC || op == OP_FDATASYNC)
		return OFFSET_UNKNOWN; /* everywhere */
	if (op == OP_SYNC_FILE_RANGE)
		return call->second;
	return uses_file_position(op, call->position) ? facts->position : call->position;
}

static __always_inline void fill_slot(struct start_slot *slot, __u8 op, const struct arguments *call,
				      const struct file_facts *facts, struct file *file)
{
	bool from_position = uses_file_position(op, call->position);
	__u8 flags = 0;

	if (from_position)
		flags |= FLAG_OFFSET_FROM_POSITION;
	if (facts->flags & o_direct)
		flags |= FLAG_DIRECT;
	if (is_append(op, facts->flags, call->rwf))
		flags |= FLAG_APPEND;
	slot->flags = flags;
	slot->offset = offset_of(op, call, facts);
	slot->inode = facts->inode;
	slot->device = facts->device;
	slot->file = (__u64)file;
	slot->length = 0;
	if (has_count(op))
		slot->length = call->count > 0xffffffff ? 0xffffffff : call->count;
}

/* A start that nobody will complete: its call is lost, and counted as seen so that
 * seen = written + lost holds. */
static __always_inline void lose_occupant(const struct start_slot *slot)
{
	struct io_counters *count = counters();
	if (slot->tid == 0 || slot->op == OP_NONE || !count)
		return;
	count->seen++;
	count->lost_start++;
}

/* Sends the thread's name and process before its first record. A full ring loses it: user space
 * then looks into /proc. */
static __always_inline void announce(struct start_slot *slot, __u64 pid_tgid)
{
	struct thread_record *thread;

	slot->announced = pid_tgid;
	thread = bpf_ringbuf_reserve(&seekscope_ring, sizeof(*thread), 0);
	if (!thread)
		return;
	thread->tid = pid_tgid;
	thread->tgid = pid_tgid >> 32;
	thread->reserved[0] = thread->reserved[1] = 0;
	bpf_get_current_comm(thread->comm, sizeof(thread->comm));
	bpf_ringbuf_submit(thread, BPF_RB_NO_WAKEUP);
}

/* Is this call on a file that the filters let pass? */
static __always_inline bool is_wanted(__u8 op, const struct arguments *call, struct file *file,
				      const struct file_facts *facts)
{
	return facts->wanted && is_wanted_device(facts->device) && is_wanted_path(file, facts) &&
	       is_sampled(facts, offset_of(op, call, facts));
}

static __always_inline int on_enter(__u64 pid_tgid, long nr, __u8 op, const struct arguments *call,
				    const bool typed)
{
	__u32 tid = pid_tgid;
	struct task_struct *task = current_task(typed);
	struct file_facts facts = {};
	struct start_slot *slot = slot_of(tid);

	if (!slot || is_compat(task, typed))
		return 0;
	lose_occupant(slot);

	/* Claim before filling: see take_start. */
	*(volatile __u32 *)&slot->tid = tid;
	barrier();
	struct file *file = file_of(task, call->fd, typed);
	if (file)
		read_file_facts(file, &facts, typed);
	bool wanted = file && is_wanted(op, call, file, &facts);
	slot->nr = nr;
	slot->op = wanted ? op : OP_NONE;
	if (!wanted)
		return 0;

	if (slot->announced != tid)
		announce(slot, pid_tgid);
	fill_slot(slot, op, call, &facts, file);
	slot->device_read_bytes = device_read_bytes(task, typed);
	slot->voluntary_switches = LOAD(typed, task, nvcsw);
	slot->start_ns = bpf_ktime_get_ns(); /* last, so that our own work is not timed */
	return 0;
}

/* Where an appending write went, known only afterwards: write() leaves the file's position behind
 * its data; the calls with an offset argument ignore it and the position, but leave the file ending
 * with their data (unless someone else appended meanwhile). */
static __always_inline __u64 append_offset(const struct start_slot *slot, __s64 result)
{
	struct file *file = (struct file *)slot->file;
	__s64 end;

	if (result < 0)
		return OFFSET_UNKNOWN;
	if (slot->flags & FLAG_OFFSET_FROM_POSITION)
		end = BPF_CORE_READ(file, f_pos);
	else
		end = BPF_CORE_READ(file, f_inode, i_size);
	return end >= result ? end - result : OFFSET_UNKNOWN;
}

static __always_inline void set_device_read(struct io_record *record, __u32 bytes)
{
	if (bytes)
		record->flags |= FLAG_DEVICE_READ;
	record->device_read_bytes = bytes;
}

static __always_inline void fill_record(struct io_record *record, const struct start_slot *slot,
					__s64 result, __u64 end_ns, const bool typed)
{
	struct task_struct *task = current_task(typed);

	record->start_ns = slot->start_ns;
	record->offset = slot->flags & FLAG_APPEND ? append_offset(slot, result) : slot->offset;
	record->inode = slot->inode;
	record->length = has_count(slot->op) ? slot->length : (result > 0 ? result : 0);
	record->tid = slot->tid;
	record->device = slot->device;
	record->result = result; /* the kernel caps transfers below 2 GiB */
	record->op = slot->op;
	record->flags = slot->flags;
	if ((__u32)LOAD(typed, task, nvcsw) != slot->voluntary_switches)
		record->flags |= FLAG_WAITED;
	set_device_read(record, (__u32)device_read_bytes(task, typed) - slot->device_read_bytes);
	record->latency_ns = end_ns - slot->start_ns;
	record->reserved = 0;
}

/* Waking the reader for each record costs microseconds in the traced thread. It looks by itself
 * every few milliseconds; it is woken only when the ring fills faster than that. */
static __always_inline __u64 wakeup_flag(void)
{
	if (wakeup_sent || bpf_ringbuf_query(&seekscope_ring, BPF_RB_AVAIL_DATA) <= wakeup_bytes)
		return BPF_RB_NO_WAKEUP;
	wakeup_sent = 1;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline int count_only(const struct start_slot *start, __s64 result, __u64 end_ns,
				      struct io_counters *count, const bool typed)
{
	struct io_record record = {};
	__u32 device_read = (__u32)device_read_bytes(current_task(typed), typed) -
			    start->device_read_bytes;

	fill_record(&record, start, result, end_ns, typed);
	if (!add_to_totals(&record, end_ns - start->start_ns, device_read))
		count->lost_table_full++;
	return 0;
}

static __always_inline int on_exit(const struct start_slot *start, __s64 result, const bool typed)
{
	__u64 end_ns = bpf_ktime_get_ns();
	struct io_counters *count = counters();
	struct io_record *record;

	if (!count || end_ns - start->start_ns < latency_min_ns)
		return 0;
	count->seen++;
	if (only_totals)
		return count_only(start, result, end_ns, count, typed);
	record = bpf_ringbuf_reserve(&seekscope_ring, sizeof(*record), 0);
	if (!record) {
		count->lost_ring_full++;
		return 0;
	}
	fill_record(record, start, result, end_ns, typed);
	bpf_ringbuf_submit(record, wakeup_flag());
	return 0;
}

enum start {
	START_TAKEN,
	START_IRRELEVANT, /* not on a file, or counted as lost by whoever took the slot */
	START_UNKNOWN,	  /* the call began before tracing did, or its slot was taken */
};

/* Moves the start of the call that ends here out of its slot. Two threads whose ids fall into one
 * slot may be here and in on_enter at the same time; the second look at `tid` keeps a half
 * overwritten start from becoming a record. */
static __always_inline enum start take_start(__u32 tid, long nr, struct start_slot *start)
{
	struct start_slot *slot = slot_of(tid);

	if (!slot)
		return START_IRRELEVANT;
	if (slot->tid != tid || slot->nr != (__u16)nr)
		return START_UNKNOWN;
	*start = *slot;
	barrier();
	if (*(volatile __u32 *)&slot->tid != tid)
		return START_IRRELEVANT;
	*(volatile __u32 *)&slot->tid = 0;
	return start->op == OP_NONE ? START_IRRELEVANT : START_TAKEN;
}

/* A file was opened, or could not be. */
static __always_inline void on_open(__u64 pid_tgid, __s64 result, const bool typed)
{
	struct task_struct *task = current_task(typed);
	struct file_facts facts = {};

	if (result < 0)
		return;
	struct file *file = file_of(task, result, false);
	if (!file)
		return;
	read_file(file, &facts, false);
	if (!facts.wanted)
		return;
	judge_path(file, &facts);
	send_name(task, pid_tgid >> 32, file, &facts);
}

static __always_inline void count_unmatched(void)
{
	struct io_counters *count = counters();
	if (count)
		count->unmatched_exits++;
}

/* ---- Backend tp_btf ---- */

/* In libaio.h, behind what it shares with the other groups. */
static __always_inline void on_aio_enter(struct pt_regs *regs, __u64 nr);
static __always_inline void on_aio_exit(struct pt_regs *regs, __u32 nr, __s64 result);

static __always_inline int on_sys_enter(__u64 *ctx, const bool with_aio)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	long nr = ctx[1];
	__u64 pid_tgid;
	__u8 op;

	if (!tracing)
		return 0;
	/* Every system call of the host comes by here; most are ruled out by their number. */
	op = op_of(nr);
	if (op == OP_NONE || op == OP_OPEN)
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	if (!is_target(pid_tgid))
		return 0;
	if (op == OP_AIO_CALL) {
		if (with_aio)
			on_aio_enter(regs, nr);
		return 0;
	}
	struct arguments call = {
		.fd = SYSCALL_FD(regs),
		.second = SYSCALL_SECOND(regs),
		.count = SYSCALL_COUNT(regs),
		.position = SYSCALL_POSITION(regs),
		.rwf = SYSCALL_RWF(regs),
	};
	return HAS_TYPED_TASK ? on_enter(pid_tgid, nr, op, &call, true)
			      : on_enter(pid_tgid, nr, op, &call, false);
}

static __always_inline int on_sys_exit(__u64 *ctx, const bool with_aio)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u64 pid_tgid;
	struct start_slot start;

	if (!tracing)
		return 0;
	long nr = SYSCALL_NR(regs);
	__u8 op = op_of(nr);
	if (op == OP_NONE)
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	if (!is_target(pid_tgid))
		return 0;
	if (op == OP_OPEN) {
		on_open(pid_tgid, ctx[1], false);
		return 0;
	}
	if (op == OP_AIO_CALL) {
		if (with_aio)
			on_aio_exit(regs, nr, ctx[1]);
		return 0;
	}
	enum start found = take_start(pid_tgid, nr, &start);
	if (found == START_TAKEN)
		return HAS_TYPED_TASK ? on_exit(&start, ctx[1], true) : on_exit(&start, ctx[1], false);
	if (found == START_UNKNOWN) {
		struct task_struct *task = current_task(false);
		struct file_facts facts = {};
		struct file *file = file_of(task, SYSCALL_FD(regs), false);
		if (file)
			read_file(file, &facts, false);
		if (facts.wanted && !is_compat(task, false))
			count_unmatched();
	}
	return 0;
}

SEC("tp_btf/sys_enter")
int seekscope_enter(__u64 *ctx)
{
	return on_sys_enter(ctx, false);
}

SEC("tp_btf/sys_exit")
int seekscope_exit(__u64 *ctx)
{
	return on_sys_exit(ctx, false);
}

/* ---- Backend tracepoint: run at the followed calls only. Names are limited to 15 characters. ---- */

/* `arguments` is how many the calls have that the program is attached to: the kernel refuses one that may read more. */
static __always_inline int on_begin(struct syscall_enter *ctx, const int arguments)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	if (!tracing || !is_target(pid_tgid))
		return 0;
	struct arguments call = {.fd = ctx->args[0]};
	if (arguments >= 3) {
		call.second = ctx->args[1];
		call.count = ctx->args[2];
	}
	if (arguments >= 4)
		call.position = ctx->args[3];
	if (arguments >= 6)
		call.rwf = ctx->args[5];
	return HAS_TYPED_TASK ? on_enter(pid_tgid, ctx->nr, op_of(ctx->nr), &call, true)
			      : on_enter(pid_tgid, ctx->nr, op_of(ctx->nr), &call, false);
}

SEC("tracepoint")
int seekscope_args1(struct syscall_enter *ctx)
{
	return on_begin(ctx, 1);
}

SEC("tracepoint")
int seekscope_args3(struct syscall_enter *ctx)
{
	return on_begin(ctx, 3);
}

SEC("tracepoint")
int seekscope_args4(struct syscall_enter *ctx)
{
	return on_begin(ctx, 4);
}

SEC("tracepoint")
int seekscope_args6(struct syscall_enter *ctx)
{
	return on_begin(ctx, 6);
}

SEC("tracepoint")
int seekscope_end(struct syscall_exit *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct start_slot start;

	if (!tracing || !is_target(pid_tgid))
		return 0;
	enum start found = take_start(pid_tgid, ctx->nr, &start);
	if (found == START_TAKEN)
		return HAS_TYPED_TASK ? on_exit(&start, ctx->result, true)
				      : on_exit(&start, ctx->result, false);
	/* The descriptor is not passed here, so calls on sockets and pipes count too. */
	if (found == START_UNKNOWN)
		count_unmatched();
	return 0;
}

SEC("tracepoint")
int seekscope_open(struct syscall_exit *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	if (tracing && is_target(pid_tgid))
		on_open(pid_tgid, ctx->result, false);
	return 0;
}

/* How many system calls the host makes, which the other programs do not see. Attached now and then only. */
SEC("raw_tp/sys_enter")
int seekscope_tally(void *ctx)
{
	struct io_counters *count = counters();
	if (count)
		count->host_calls++;
	return 0;
}

/* ---- Both backends: children of a traced process are traced from their birth ---- */

SEC("raw_tp/sched_process_fork")
int seekscope_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid);
	__u32 to = BPF_CORE_READ(child, tgid);
	__u8 yes = 1;

	if (from != to && bpf_map_lookup_elem(&seekscope_tgids, &from))
		bpf_map_update_elem(&seekscope_tgids, &to, &yes, BPF_ANY);
	return 0;
}

/* A program's file is opened by the kernel itself, and read by faults. */
SEC("raw_tp/sched_process_exec")
int seekscope_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct linux_binprm *program = (struct linux_binprm *)ctx->args[2];
	struct file *file = BPF_CORE_READ(program, file);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct file_facts facts = {};

	if (!tracing || !file || !is_target(pid_tgid))
		return 0;
	read_file(file, &facts, false);
	if (!facts.wanted)
		return 0;
	judge_path(file, &facts);
	send_name(current_task(false), pid_tgid >> 32, file, &facts);
	return 0;
}

/* ---- The other kinds of I/O, each loaded or left out by itself ---- */

#include "groups.h"
#include "block.h"
#include "io_uring.h"
#include "libaio.h"
#include "faults.h"

/* Helpers that read kernel memory are offered to GPL-compatible programs only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
