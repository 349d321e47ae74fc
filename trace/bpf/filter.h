/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which processes and files are traced. The constants are set before loading; what they rule out
 * costs nothing.
 */
#pragma once

/* The traced process, numbered as in the namespace named by the next two. Unused with a set. */
const volatile __u32 target_tgid = 0;
/* Its PID namespace, 0 for the first one. Needed where seekscope itself runs in a container and
 * cannot know the number that the first namespace has for the process. */
const volatile __u64 target_pidns_device = 0;
const volatile __u64 target_pidns_inode = 0;
/* The processes in `seekscope_tgids` are traced, numbered likewise. */
const volatile __u32 target_is_set = 0;

#define DEVICE_FILTERS 8
/* Superblock devices of the wanted files; none: all. */
const volatile __u32 device_filters = 0;
const volatile __u32 device_filter[DEVICE_FILTERS] = {};
/* Of the requests of disks, record only those for files that a traced process has opened; all are
 * counted. */
const volatile __u32 own_requests_only = 0;
/* Only files in `seekscope_wanted`, or below a folder in it. */
const volatile __u32 filters_paths = 0;
/* Only regions of 2^sample_region_shift bytes of which one in sample_one_in is kept; 0: all. */
const volatile __u32 sample_one_in = 0;
const volatile __u32 sample_region_shift = 20;
/* Calls that took less are neither counted nor recorded. */
const volatile __u64 latency_min_ns = 0;

#define TGIDS_MAX 16384
#define WANTED_MAX 256
#define VERDICTS_MAX 16384 /* user space makes it larger where more files are open */

struct file_key {
	__u64 inode;
	__u64 device;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TGIDS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} seekscope_tgids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WANTED_MAX);
	__type(key, struct file_key);
	__type(value, __u8);
} seekscope_wanted SEC(".maps");

#define VERDICT_WANTED 1
#define VERDICT_UNWANTED 2

/* What was found out about files when a traced process opened them, or when their path was filtered
 * first. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, VERDICTS_MAX);
	__type(key, struct file_key);
	__type(value, __u8);
} seekscope_verdicts SEC(".maps");

/* Is the current process followed? */
static __always_inline bool is_target(__u64 pid_tgid)
{
	__u32 tgid = pid_tgid >> 32;

	if (target_pidns_inode) {
		struct bpf_pidns_info info = {};
		if (bpf_get_ns_current_pid_tgid(target_pidns_device, target_pidns_inode, &info,
						sizeof(info)))
			return false; /* a process of another namespace */
		tgid = info.tgid;
	}
	if (target_is_set)
		return bpf_map_lookup_elem(&seekscope_tgids, &tgid);
	return tgid == target_tgid;
}

static __always_inline bool is_wanted_device(__u32 device)
{
	if (!device_filters)
		return true;
	for (__u32 i = 0; i < DEVICE_FILTERS; i++) {
		if (i < device_filters && device_filter[i] == device)
			return true;
	}
	return false;
}

/* Is the file itself, or one of the folders above it, on the list? */
static __always_inline bool is_below_wanted(struct file *file)
{
	struct place place = place_of(file);

	for (int i = 0; i < DEPTH_MAX; i++) {
		struct dentry *dentry = place.dentry;
		struct inode *inode = BPF_CORE_READ(dentry, d_inode);
		if (!inode)
			return false;
		struct file_key key = {
			.inode = BPF_CORE_READ(inode, i_ino),
			.device = BPF_CORE_READ(inode, i_sb, s_dev),
		};
		if (bpf_map_lookup_elem(&seekscope_wanted, &key))
			return true;
		if (leave_mount(&place))
			continue;
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry)
			return false;
		place.dentry = parent;
	}
	return false;
}

/* At the opening of a file, since its inode number may have been another file's; and requests of
 * disks, which know neither path nor process, go by this verdict. */
static __always_inline bool judge_path(struct file *file, const struct file_facts *facts)
{
	if (!filters_paths && !own_requests_only)
		return true;
	struct file_key key = {.inode = facts->inode, .device = facts->device};
	bool wanted = !filters_paths || is_below_wanted(file);
	__u8 verdict = wanted ? VERDICT_WANTED : VERDICT_UNWANTED;
	bpf_map_update_elem(&seekscope_verdicts, &key, &verdict, BPF_ANY);
	return wanted;
}

static __always_inline bool is_wanted_path(struct file *file, const struct file_facts *facts)
{
	if (!filters_paths)
		return true;
	struct file_key key = {.inode = facts->inode, .device = facts->device};
	__u8 *known = bpf_map_lookup_elem(&seekscope_verdicts, &key);
	return known ? *known == VERDICT_WANTED : judge_path(file, facts);
}

/* Is a request of a disk for a file that is to be followed? A file of the traced processes, and one
 * below a folder, counts once a traced process has opened or used it. */
static __always_inline bool is_wanted_request(__u64 inode, __u32 device)
{
	struct file_key key = {.inode = inode, .device = device};

	if (inode && !is_wanted_device(device))
		return false;
	if (filters_paths && bpf_map_lookup_elem(&seekscope_wanted, &key))
		return true;
	if (!filters_paths && !own_requests_only)
		return true;
	if (!inode)
		return false;
	__u8 *known = bpf_map_lookup_elem(&seekscope_verdicts, &key);
	return known && *known == VERDICT_WANTED;
}

/* Regions are kept or left as a whole, the same ones in every trace, so that what is kept of a
 * file still has its pattern within each region. What has no place in the file, such as a sync, is
 * kept: in one of the regions it would be there for some files always, and for others never. */
static __always_inline bool is_sampled(const struct file_facts *facts, __u64 offset)
{
	if (!sample_one_in || offset == OFFSET_UNKNOWN)
		return true;
	__u64 region = facts->inode * 0x9e3779b97f4a7c15ULL + (offset >> sample_region_shift);
	region *= 0xff51afd7ed558ccdULL;
	region ^= region >> 32;
	return (__u32)region % sample_one_in == 0;
}
