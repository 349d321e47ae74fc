/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Where a file stands in the tree of folders: its name when it is opened, and whether one of the
 * folders above it is wanted. Opening is rare beside reading, so every kernel read here goes
 * through a helper, whatever the backend.
 */
#pragma once

/* A place in the tree, on the way up. Not a kernel type: its members are read into variables before
 * BPF_CORE_READ follows them, which would take it for one. */
struct place {
	struct dentry *dentry;
	struct vfsmount *mount;
};

static __always_inline struct place place_of(struct file *file)
{
	struct place place = {
		.dentry = BPF_CORE_READ(file, f_path.dentry),
		.mount = BPF_CORE_READ(file, f_path.mnt),
	};
	return place;
}

/* At the top of a mounted filesystem, goes on at the folder it is mounted on. True if it did. */
static __always_inline bool leave_mount(struct place *place)
{
	struct vfsmount *mounted = place->mount;
	if (place->dentry != BPF_CORE_READ(mounted, mnt_root))
		return false;
	struct mount *mount = (void *)mounted - bpf_core_field_offset(struct mount, mnt);
	struct mount *parent = BPF_CORE_READ(mount, mnt_parent);
	if (!parent || parent == mount)
		return false;
	place->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
	place->mount = (void *)parent + bpf_core_field_offset(struct mount, mnt);
	return true;
}

struct name_buffer {
	/* Of `name.parts`, written so far. In memory because the verifier forgets what it knew of a value
	 * there. In a register it would follow each folder's possible lengths through all folders above:
	 * half a second of CPU for each load. */
	volatile __u32 bytes;
	__u32 unused;
	struct name_record name;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_buffer);
} seekscope_name SEC(".maps");

/* Writes the path's parts. */
static __always_inline void write_parts(struct name_buffer *buffer, struct file *file,
					struct task_struct *task)
{
	struct name_record *name = &buffer->name;
	struct place place = place_of(file);
	struct place root = {
		.dentry = BPF_CORE_READ(task, fs, root.dentry),
		.mount = BPF_CORE_READ(task, fs, root.mnt),
	};

	for (int i = 0; i < DEPTH_MAX; i++) {
		if (place.dentry == root.dentry && place.mount == root.mount)
			return;
		if (leave_mount(&place))
			continue;
		struct dentry *dentry = place.dentry;
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
		if (!parent || parent == dentry)
			return;
		__u32 bytes = buffer->bytes;
		if (bytes >= NAME_BYTES)
			break;
		long part = bpf_probe_read_kernel_str(
			name->parts + (bytes & (NAME_BYTES - 1)), COMPONENT_BYTES,
			BPF_CORE_READ(dentry, d_name.name));
		if (part < 0)
			break;
		buffer->bytes = bytes + part;
		place.dentry = parent;
	}
	name->flags |= NAME_TRUNCATED;
}

/* Tells user space what was opened. A full ring loses the name only: user space looks for it among
 * the process's open files. */
static __always_inline void send_name(struct task_struct *task, __u32 tgid, struct file *file,
				      const struct file_facts *facts)
{
	__u32 zero = 0;
	struct name_buffer *buffer = bpf_map_lookup_elem(&seekscope_name, &zero);

	if (!buffer)
		return;
	struct name_record *name = &buffer->name;
	name->inode = facts->inode;
	name->device = facts->device;
	name->generation = BPF_CORE_READ(file, f_inode, i_generation);
	name->tgid = tgid;
	name->flags = BPF_CORE_READ(file, f_path.dentry, d_hash.pprev) ? 0 : NAME_UNLINKED;
	buffer->bytes = 0;
	write_parts(buffer, file, task);
	__u32 bytes = buffer->bytes;
	/* Keeps the compiler from dropping the mask, by which the verifier knows the bound. */
	barrier_var(bytes);
	bytes &= 2 * NAME_BYTES - 1;
	bpf_ringbuf_output(&seekscope_ring, name, NAME_HEADER_BYTES + bytes, BPF_RB_NO_WAKEUP);
}
