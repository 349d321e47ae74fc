/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Everything that is read from kernel memory: the current thread's counters and its open files.
 *
 * `typed` is a compile-time constant in each use. True: the verifier knows the types of the
 * pointers, and fields are plain loads. False: every field is read by a helper call.
 */
#pragma once

/* Turns a pointer found in kernel memory into a typed one that may be read directly (Linux 6.2). */
extern void *bpf_rdonly_cast(const void *address, __u32 btf_id) __ksym __weak;

/* One kernel read: a plain load where the verifier knows the pointer's type, else a helper. */
#define LOAD(typed, pointer, member) \
	((typed) ? (pointer)->member : BPF_CORE_READ(pointer, member))

/* Does bpf_get_current_task_btf exist (Linux 5.11)? Settled when the program is loaded. */
#define HAS_TYPED_TASK bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)

/* The same pointer, of a type that the verifier trusts no further than for reading. For each pointer
 * that is read through one that it does trust, it searches the kernel's types by name, up to four times
 * from end to end, on every path: measured to be a third of the CPU time that loading takes. */
#define FOR_READING(type, pointer)                                                                 \
	(bpf_ksym_exists(bpf_rdonly_cast)                                                          \
		 ? (type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type))               \
		 : (type *)(pointer))

static __always_inline struct task_struct *current_task(const bool typed)
{
	if (!typed)
		return (struct task_struct *)bpf_get_current_task();
	if (bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast((void *)bpf_get_current_task(),
				       bpf_core_type_id_kernel(struct task_struct));
	return (struct task_struct *)bpf_get_current_task_btf();
}

/* A 32-bit call has other numbers and other arguments; such calls are not followed. */
static __always_inline bool is_compat(struct task_struct *task, const bool typed)
{
	return LOAD(typed, task, COMPAT_WORD) & COMPAT_BIT;
}

struct file_facts {
	__u64 inode;
	__u64 position;
	__u32 device;
	__u32 flags;
	bool wanted;
};

/* Bytes this thread has sent to the block layer for reading, 0 on kernels that do not count. */
static __always_inline __u64 device_read_bytes(struct task_struct *task, const bool typed)
{
	if (!bpf_core_field_exists(task->ioac.read_bytes))
		return 0;
	return LOAD(typed, task, ioac.read_bytes);
}

static __always_inline bool is_pseudo(unsigned long magic)
{
	return magic == PROC_SUPER_MAGIC || magic == SYSFS_MAGIC || magic == CGROUP2_SUPER_MAGIC ||
	       magic == CGROUP_SUPER_MAGIC;
}

/* Regular files and block devices are wanted; sockets, pipes, terminals and the kernel's own
 * counters, which servers sample all the time, are not. */
static __always_inline void read_file(struct file *file, struct file_facts *facts, const bool typed)
{
	struct inode *inode = LOAD(typed, file, f_inode);
	if (!inode)
		return;
	__u16 kind = LOAD(typed, inode, i_mode) & S_IFMT;
	if (kind != S_IFREG && kind != S_IFBLK)
		return;
	struct super_block *super = LOAD(typed, inode, i_sb);
	if (!super || is_pseudo(LOAD(typed, super, s_magic)))
		return;
	facts->inode = LOAD(typed, inode, i_ino);
	facts->device = LOAD(typed, super, s_dev);
	facts->position = LOAD(typed, file, f_pos);
	facts->flags = LOAD(typed, file, f_flags);
	facts->wanted = true;
}

/* Descriptor to open file, without a reference: the table may change under us, so every null on
 * the way means "not a file". Reading it at entry, not at exit, keeps a descriptor that another
 * thread closes and reopens during a slow call from naming the wrong file. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd, const bool typed)
{
	struct file *file = 0;
	struct files_struct *files = LOAD(typed, task, files);
	if (!files)
		return 0;
	struct fdtable *table = LOAD(typed, files, fdt);
	if (!table || fd >= LOAD(typed, table, max_fds))
		return 0;
	struct file **array = LOAD(typed, table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), array + fd);
	return file;
}

static __always_inline void read_file_facts(struct file *file, struct file_facts *facts,
					    const bool typed)
{
	if (typed && bpf_ksym_exists(bpf_rdonly_cast))
		read_file(bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file)), facts, true);
	else
		read_file(file, facts, false);
}
