/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Counting instead of recording, for traces that run for weeks: totals and a latency histogram per
 * file and operation stay in the kernel, and user space fetches them now and then.
 */
#pragma once

/* Count, send no records. */
const volatile __u32 only_totals = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space sets its own number */
	__type(key, struct total_key);
	__type(value, struct totals);
} seekscope_totals SEC(".maps");

/* What an entry begins with: too large for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} seekscope_no_totals SEC(".maps");

#define PAGE_BYTES 4096

/* The same rule as `IoEvent::cache_outcome` in the `run` crate. */
static __always_inline void count_cache(struct totals *totals, const struct io_record *record,
					__u64 device_read)
{
	bool waited = record->flags & FLAG_WAITED;
	__u64 asked_for = ((record->result + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1)) + PAGE_BYTES;

	if (record->flags & FLAG_DIRECT)
		__sync_fetch_and_add(&totals->direct, 1);
	else if (device_read && (waited || device_read <= asked_for))
		__sync_fetch_and_add(&totals->misses, 1);
	else if (waited)
		__sync_fetch_and_add(&totals->waited, 1);
	else
		__sync_fetch_and_add(&totals->hits, 1);
}

static __always_inline __u32 latency_bucket(__u64 ns)
{
	__u32 bucket = 0;

	for (int shift = 32; shift > 0; shift >>= 1) {
		if (ns >> shift) {
			bucket += shift;
			ns >>= shift;
		}
	}
	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* Adds a finished call. False when the table has no room for its file. */
static __always_inline bool add_to_totals(const struct io_record *record, __u64 latency_ns,
					  __u64 device_read)
{
	struct total_key key = {
		.inode = record->inode,
		.device = record->device,
		.op = record->op,
	};
	struct totals *totals = bpf_map_lookup_elem(&seekscope_totals, &key);

	if (!totals) {
		__u32 zero = 0;
		struct totals *empty = bpf_map_lookup_elem(&seekscope_no_totals, &zero);
		if (!empty)
			return false;
		/* Another thread may have been first, which is as good. */
		bpf_map_update_elem(&seekscope_totals, &key, empty, BPF_NOEXIST);
		totals = bpf_map_lookup_elem(&seekscope_totals, &key);
		if (!totals)
			return false;
	}
	__sync_fetch_and_add(&totals->calls, 1);
	__sync_fetch_and_add(&totals->latency_ns, latency_ns);
	__sync_fetch_and_add(&totals->latency_buckets[latency_bucket(latency_ns)], 1);
	/* Mostly the page cache had it. */
	if (device_read)
		__sync_fetch_and_add(&totals->device_read_bytes, device_read);
	if (record->result < 0) {
		__sync_fetch_and_add(&totals->errors, 1);
		return true;
	}
	__sync_fetch_and_add(&totals->bytes, record->result);
	if (record->op < OP_WRITE)
		count_cache(totals, record, device_read);
	return true;
}
