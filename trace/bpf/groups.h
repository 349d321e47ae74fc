/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What the groups beside the plain system calls share: io_uring, libaio, faults of mapped files,
 * requests of disks. Each group is a set of programs of its own, which user space loads or leaves
 * out. Most of them read kernel memory through helpers, because they run once per I/O of
 * microseconds or more, and because that works from Linux 5.8; those of the block layer run at the
 * I/O of all processes, and load directly what the tracepoints hand out typed.
 */
#pragma once

/* I/Os of one kind that may be under way at once. Beyond that they are counted as lost. */
#define STARTS 16384

const volatile __u32 page_bytes = 4096;

/* Counters of the groups, apart from those of the system calls: disks complete requests in
 * interrupts, which may fall between the load and the store of a plain increment. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct io_counters);
} seekscope_group_count SEC(".maps");

static __always_inline struct io_counters *group_counters(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&seekscope_group_count, &zero);
}

static __always_inline bool is_wanted_file(struct file *file, const struct file_facts *facts,
					   __u64 offset)
{
	return facts->wanted && is_wanted_device(facts->device) && is_wanted_path(file, facts) &&
	       is_sampled(facts, offset);
}

/* Counts an I/O of `latency_ns` that is complete, without sending it. */
static __always_inline void emit_total(struct io_counters *count, const struct io_record *record,
				       __u64 latency_ns)
{
	__u64 device_read = record->device_read_bytes;

	/* Where it is always 0, the compiler would add it by an atomic OR, unknown before 5.12. */
	barrier_var(device_read);
	if (!add_to_totals(record, latency_ns, device_read))
		__sync_fetch_and_add(&count->lost_table_full, 1);
}

/* Sends what is complete. `record`: a struct io_record, or one of a disk's request, for which
 * `total` is given with the same facts; both on the stack or in a map. */
static __always_inline void emit(void *record, const struct io_record *total, __u64 latency_ns)
{
	struct io_counters *count = group_counters();

	if (!count || latency_ns < latency_min_ns)
		return;
	__sync_fetch_and_add(&count->seen, 1);
	if (only_totals) {
		emit_total(count, total, latency_ns);
		return;
	}
	if (bpf_ringbuf_output(&seekscope_ring, record, sizeof(struct io_record), wakeup_flag()))
		__sync_fetch_and_add(&count->lost_ring_full, 1);
}

/* Starts for which there was no room. */
static __always_inline void lose_to_full_table(__u64 how_many)
{
	struct io_counters *count = group_counters();

	if (!count)
		return;
	__sync_fetch_and_add(&count->seen, how_many);
	__sync_fetch_and_add(&count->lost_table_full, how_many);
}

/* A start that another one replaced. It has ended, or its key would not be free: the kernel ran no
 * program then. Seen on one kind of virtual machine, where programs (and samples of perf) are left
 * out of every interrupt that meets a thread of process 1: of 66,049 requests all 66 that ended
 * there, in batches of up to eight, and no other. */
static __always_inline void lose_unseen_end(void)
{
	struct io_counters *count = group_counters();

	if (!count)
		return;
	__sync_fetch_and_add(&count->seen, 1);
	__sync_fetch_and_add(&count->lost_end, 1);
}

/* Keeps a start; one with the same key that never ended is counted as lost. */
static __always_inline void keep_start(void *table, const void *key, const void *start)
{
	if (bpf_map_update_elem(table, key, start, BPF_NOEXIST) == 0)
		return;
	if (bpf_map_lookup_elem(table, key)) {
		lose_unseen_end();
		bpf_map_update_elem(table, key, start, BPF_ANY);
	} else {
		lose_to_full_table(1);
	}
}
