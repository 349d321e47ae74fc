/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Major faults: a thread touched a page of a mapped file that was not in the page cache.
 *
 * Two ways: entry and exit of filemap_fault() where the kernel allows programs there, else the
 * tracepoint at its beginning and the software event that the kernel raises when it has counted
 * a major fault. Faults of pages that were in the cache (minor faults) are not reported.
 */
#pragma once

#define OP_MMAP_FAULT 21

/* What filemap_fault() returns (enum vm_fault_reason). */
#define VM_FAULT_MAJOR 0x0004
#define VM_FAULT_ERROR 0x0873 /* out of memory, bus error, poison, segment violation */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_area_struct {
	struct file *vm_file;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
};

struct task_struct___faults {
	unsigned long min_flt;
	unsigned long maj_flt;
};

#pragma clang attribute pop

struct fault_start {
	struct io_record record;
	__u64 device_read_bytes;
	__u64 voluntary_switches;
	__u64 minor_faults;
	__u64 major_faults;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* minor faults are never taken out */
	__uint(max_entries, STARTS);
	__type(key, __u32); /* thread */
	__type(value, struct fault_start);
} seekscope_fault SEC(".maps");

/* The file's folders are not at hand here: with a filter by path, the file itself must be on the
 * list, or a call on it must have been let pass before. */
static __always_inline bool is_wanted_mapping(const struct io_record *record)
{
	struct file_facts facts = {.inode = record->inode, .device = record->device};
	struct file_key key = {.inode = record->inode, .device = record->device};
	__u8 *verdict;

	if (!is_wanted_device(record->device) || !is_sampled(&facts, record->offset))
		return false;
	if (!filters_paths || bpf_map_lookup_elem(&seekscope_wanted, &key))
		return true;
	verdict = bpf_map_lookup_elem(&seekscope_verdicts, &key);
	return verdict && *verdict == VERDICT_WANTED;
}

static __always_inline int note_fault(struct inode *inode, __u64 page)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = pid_tgid;
	struct task_struct *task = current_task(false);
	struct task_struct___faults *faults = (void *)task;
	struct fault_start start = {}, *known;

	if (!inode)
		return 0;
	start.record.inode = BPF_CORE_READ(inode, i_ino);
	start.record.device = BPF_CORE_READ(inode, i_sb, s_dev);
	start.record.offset = page * page_bytes;
	if (!is_wanted_mapping(&start.record)) {
		bpf_map_delete_elem(&seekscope_fault, &tid);
		return 0;
	}
	start.minor_faults = BPF_CORE_READ(faults, min_flt);
	start.major_faults = BPF_CORE_READ(faults, maj_flt);

	/* The kernel tries again after it has waited for the page with its locks dropped. No fault
	 * has been counted since, so it is still the same one. */
	known = bpf_map_lookup_elem(&seekscope_fault, &tid);
	if (known && known->record.inode == start.record.inode &&
	    known->record.offset == start.record.offset &&
	    known->minor_faults == start.minor_faults && known->major_faults == start.major_faults)
		return 0;
	start.record.tid = tid;
	start.record.op = OP_MMAP_FAULT;
	start.record.length = page_bytes;
	start.device_read_bytes = device_read_bytes(task, false);
	start.voluntary_switches = BPF_CORE_READ(task, nvcsw);
	start.record.start_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&seekscope_fault, &tid, &start, BPF_ANY);
	return 0;
}

static __always_inline void end_fault(struct fault_start *start, __s32 result)
{
	struct task_struct *task = current_task(false);
	struct io_record *record = &start->record;

	record->result = result;
	if (BPF_CORE_READ(task, nvcsw) != start->voluntary_switches)
		record->flags |= FLAG_WAITED;
	set_device_read(record, device_read_bytes(task, false) - start->device_read_bytes);
	record->latency_ns = bpf_ktime_get_ns() - record->start_ns;
	emit(record, record, record->latency_ns);
}

SEC("fentry/filemap_fault")
int seekscope_flt_e(__u64 *ctx)
{
	struct vm_fault *fault = (struct vm_fault *)ctx[0];

	if (!tracing || !is_target(bpf_get_current_pid_tgid()))
		return 0;
	struct inode *inode = BPF_CORE_READ(fault, vma, vm_file, f_inode);
	return note_fault(inode, BPF_CORE_READ(fault, pgoff));
}

SEC("fexit/filemap_fault")
int seekscope_flt_x(__u64 *ctx)
{
	__u32 tid = bpf_get_current_pid_tgid();
	__u32 reason = ctx[1];
	struct fault_start *start;

	if (!tracing || !is_target(bpf_get_current_pid_tgid()))
		return 0;
	start = bpf_map_lookup_elem(&seekscope_fault, &tid);
	if (!start)
		return 0;
	if (reason & VM_FAULT_MAJOR)
		end_fault(start, reason & VM_FAULT_ERROR ? -5 /* EIO */ : (__s32)page_bytes);
	bpf_map_delete_elem(&seekscope_fault, &tid);
	return 0;
}

SEC("tp_btf/mm_filemap_fault")
int seekscope_flt_t(__u64 *ctx)
{
	struct address_space *mapping = (struct address_space *)ctx[0];

	if (!tracing || !is_target(bpf_get_current_pid_tgid()))
		return 0;
	return note_fault(BPF_CORE_READ(mapping, host), ctx[1]);
}

/* The page noted is the one of this fault if exactly this major fault was counted since. */
SEC("perf_event")
int seekscope_flt_m(void *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tid = pid_tgid;
	struct task_struct___faults *faults = (void *)current_task(false);
	struct fault_start *start;

	if (!tracing || !is_target(pid_tgid))
		return 0;
	start = bpf_map_lookup_elem(&seekscope_fault, &tid);
	if (!start)
		return 0;
	if (BPF_CORE_READ(faults, min_flt) == start->minor_faults &&
	    BPF_CORE_READ(faults, maj_flt) == start->major_faults + 1)
		end_fault(start, page_bytes);
	bpf_map_delete_elem(&seekscope_fault, &tid);
	return 0;
}
