/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel types and constants the programs use. Only the members read are listed, in any
 * order: with `preserve_access_index` the loader replaces every offset by the one found in the
 * running kernel's type information, so one object fits all kernels.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

/* Stable kernel interface (linux/bpf.h). */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};
enum bpf_func_id { BPF_FUNC_get_current_task_btf = 158 };
struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

/* What the classic tracepoints of system calls pass (events/syscalls/.../format). */
struct syscall_enter {
	__u64 common;
	__s32 nr;
	__u32 padding;
	unsigned long args[6];
};

struct syscall_exit {
	__u64 common;
	__s32 nr;
	__u32 padding;
	long result;
};

/* Stable kernel interface (linux/stat.h, linux/magic.h, linux/fs.h). */
#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define O_APPEND 02000 /* the same on x86 and arm64, unlike O_DIRECT */
#define PROC_SUPER_MAGIC 0x9fa0
#define SYSFS_MAGIC 0x62656572
#define CGROUP_SUPER_MAGIC 0x27e0eb
#define CGROUP2_SUPER_MAGIC 0x63677270
#define RWF_APPEND 0x10
#define RWF_NOAPPEND 0x20

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	unsigned long flags;
	__u32 status; /* x86 only */
};

struct task_io_accounting {
	__u64 read_bytes;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct linux_binprm {
	struct file *file;
};

struct fs_struct {
	struct path root;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	long long i_size;
	__u32 i_generation;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	long long f_pos;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned long nvcsw;
	__s32 pid;
	__s32 tgid;
	struct fs_struct *fs;
	struct files_struct *files;
	struct task_io_accounting ioac;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long r9;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long long regs[31];
	unsigned long long orig_x0;
	int syscallno;
};
#else
#error "system-call registers are known for x86_64 and arm64 only"
#endif

#pragma clang attribute pop

/* Where the arguments of a system call are. The first register of arm64 is overwritten by the
 * result, hence its saved copy, which is valid at entry and exit alike. */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL_NR(regs) ((long)(regs)->orig_ax)
#define SYSCALL_FD(regs) ((__u32)(regs)->di)
#define SYSCALL_SECOND(regs) ((regs)->si)
#define SYSCALL_COUNT(regs) ((regs)->dx)
#define SYSCALL_POSITION(regs) ((regs)->r10)
#define SYSCALL_RWF(regs) ((__u32)(regs)->r9)
#else
#define SYSCALL_NR(regs) ((long)(regs)->syscallno)
#define SYSCALL_FD(regs) ((__u32)(regs)->orig_x0)
#define SYSCALL_SECOND(regs) ((regs)->regs[1])
#define SYSCALL_COUNT(regs) ((regs)->regs[2])
#define SYSCALL_POSITION(regs) ((regs)->regs[3])
#define SYSCALL_RWF(regs) ((__u32)(regs)->regs[5])
#endif

/* A 32-bit call on a 64-bit kernel: other numbers, other argument layout. */
#if defined(__TARGET_ARCH_x86)
#define TS_COMPAT 0x0002
#define COMPAT_WORD thread_info.status
#define COMPAT_BIT TS_COMPAT
#else
#define TIF_32BIT 22
#define COMPAT_WORD thread_info.flags
#define COMPAT_BIT (1UL << TIF_32BIT)
#endif
