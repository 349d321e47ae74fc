/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Requests of disks, from the moment the driver gets them to their completion, and the file each
 * one belongs to.
 *
 * The file is found through the memory the request reads into or writes from: a page of the page
 * cache knows its file and its place in it. Memory of a program means direct I/O; then the request
 * leads back to the call through the filesystem's bookkeeping (iomap: ext4, xfs and others), else
 * the issuing thread's own call is taken.
 *
 * Requests are chosen by disk, not by process: written data leaves for the disk long after the
 * process's call, in a thread of the kernel. A request that joins data of several files (the
 * kernel merges neighbours) counts for the file of its first piece.
 */
#pragma once

#define OP_BLOCK_READ 22
#define OP_BLOCK_WRITE 23
#define OP_BLOCK_FLUSH 24
#define OP_BLOCK_DISCARD 25

#define MAX_DISKS 16
#define MAX_SECTORS 0xffff
#define SECTOR_MASK ((1ULL << 48) - 1)
/* File offsets are kept in sectors, in 40 bits. */
#define OFFSET_SECTORS_UNKNOWN ((1ULL << 40) - 1)

/* libbpf replaces the values by the running kernel's. */
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};
/* Operations (linux/blk_types.h), the low byte of `cmd_flags`; numbered alike since Linux 4.10. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_ZONE_APPEND 7
#define REQ_OP_WRITE_ZEROES 9

#define S_IFDIR 0040000
#define PAGE_MAPPING_FLAGS 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk; /* since Linux 5.15 */
};

struct bvec_iter {
	__u32 bi_idx;
	__u32 bi_bvec_done;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
	unsigned long index;
};

/* Linux 7 renamed the member and may store a mask in it. */
struct page___7 {
	unsigned long compound_info;
};

/* Since Linux 5.16. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
};

struct address_space {
	struct inode *host;
};

struct inode___block {
	struct address_space *i_mapping;
};

struct bio_vec {
	struct page *bv_page;
	__u32 bv_len;
	__u32 bv_offset;
};

struct bio {
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_end_io;
	void *bi_private;
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
};

/* Until Linux 5.16. */
struct request___5_16 {
	struct gendisk *rq_disk;
};

struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
};

struct iomap_dio {
	struct kiocb *iocb;
	long long size; /* bytes sent off so far */
};

#pragma clang attribute pop

/* Addresses of two kernel functions that mark direct I/O, from /proc/kallsyms; 0 if unknown. */
const volatile __u64 iomap_dio_end_io = 0;
const volatile __u64 bio_chain_end_io = 0;

/* The disks wanted, major << 20 | minor of the whole disk, up to the first 0. */
volatile __u32 block_disks[MAX_DISKS] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STARTS);
	__type(key, __u64); /* address of the struct request */
	__type(value, struct block_record);
} seekscope_block SEC(".maps");

/* How much of a direct call has been issued: a large one becomes several requests. */
struct direct_progress {
	__u64 call; /* tells calls with the same key apart */
	__u64 position;
	__u64 issued;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct direct_progress);
} seekscope_direct SEC(".maps");

#define REQUEST_FLAG(flags, name) \
	((flags) & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_##name)))

static __always_inline __u8 op_of_request(__u32 cmd_flags)
{
	switch (cmd_flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		return OP_BLOCK_READ;
	case REQ_OP_WRITE:
	case REQ_OP_WRITE_ZEROES:
	case REQ_OP_ZONE_APPEND:
		return OP_BLOCK_WRITE;
	case REQ_OP_FLUSH:
		return OP_BLOCK_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return OP_BLOCK_DISCARD;
	default:
		return OP_NONE; /* commands to the device that move no blocks */
	}
}

static __always_inline __u8 facts_of_request(__u32 cmd_flags)
{
	bool read = (cmd_flags & REQ_OP_MASK) == REQ_OP_READ;
	__u8 facts = 0;

	if (REQUEST_FLAG(cmd_flags, META))
		facts |= BLOCK_METADATA;
	if (REQUEST_FLAG(cmd_flags, RAHEAD))
		facts |= BLOCK_READ_AHEAD;
	else if (read || REQUEST_FLAG(cmd_flags, SYNC) || REQUEST_FLAG(cmd_flags, PREFLUSH))
		facts |= BLOCK_SYNCHRONOUS;
	if (REQUEST_FLAG(cmd_flags, FUA))
		facts |= BLOCK_FORCE_UNIT_ACCESS | BLOCK_SYNCHRONOUS;
	return facts;
}

static __always_inline __u32 disk_of(struct request *rq)
{
	struct request___5_16 *old = (void *)rq;
	struct gendisk *disk;

	if (bpf_core_field_exists(old->rq_disk))
		disk = BPF_CORE_READ(old, rq_disk);
	else
		disk = BPF_CORE_READ(rq, q, disk);
	if (!disk)
		return 0;
	return BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}

static __always_inline bool is_wanted_disk(__u32 disk)
{
	for (int i = 0; i < MAX_DISKS; i++) {
		__u32 wanted = block_disks[i];
		if (wanted == 0)
			return false;
		if (wanted == disk)
			return true;
	}
	return false;
}

static __always_inline void set_file_offset(struct block_record *record, __u64 offset)
{
	__u64 sectors = offset >> SECTOR_SHIFT;

	if (sectors > OFFSET_SECTORS_UNKNOWN)
		sectors = OFFSET_SECTORS_UNKNOWN;
	record->offset_sectors = sectors;
	record->offset_sectors_high = sectors >> 32;
}

/* The first page of the folio (or compound page) that `page` belongs to. */
static __always_inline __u64 head_of(__u64 page)
{
	struct page *tail = (struct page *)page;
	struct page___7 *newer = (struct page___7 *)page;
	__u64 head;

	if (bpf_core_field_exists(tail->compound_head)) {
		head = BPF_CORE_READ(tail, compound_head);
	} else if (bpf_core_field_exists(newer->compound_info)) {
		head = BPF_CORE_READ(newer, compound_info);
		/* A mask, where an address could not have these bits. */
		if (head >> 32 == 0xffffffff && head & 1)
			return page & head;
	} else {
		return page;
	}
	return head & 1 ? head - 1 : page;
}

/* The file a piece of memory caches; false for memory that is no cache of a file. */
static __always_inline bool file_of_memory(const struct bio_vec *piece, __u32 done,
					   struct block_record *record)
{
	__u64 page = (__u64)piece->bv_page, head = head_of(page);
	__u64 mapping, index;

	if (bpf_core_type_exists(struct folio)) {
		mapping = (__u64)BPF_CORE_READ((struct folio *)head, mapping);
		index = BPF_CORE_READ((struct folio *)head, index);
	} else {
		mapping = (__u64)BPF_CORE_READ((struct page *)head, mapping);
		index = BPF_CORE_READ((struct page *)head, index);
	}
	if (!mapping || mapping & PAGE_MAPPING_FLAGS)
		return false;
	struct inode *inode = BPF_CORE_READ((struct address_space *)mapping, host);
	/* Memory of other uses has other things where a cache page has its mapping. */
	if (!inode || (__u64)BPF_CORE_READ((struct inode___block *)inode, i_mapping) != mapping)
		return false;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG) {
		record->facts |= BLOCK_METADATA;
		return true;
	}
	index += (page - head) / bpf_core_type_size(struct page);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	set_file_offset(record, index * page_bytes + piece->bv_offset + done);
	return true;
}

/* Where in the file the next `bytes` of a direct call are. `total`: what of the call has been sent
 * off at most, 0 if not known. */
static __always_inline __u64 direct_offset(__u64 key, __u64 call, __u64 position, __u64 total,
					   __u32 bytes)
{
	struct direct_progress next = {.call = call, .position = position};
	struct direct_progress *known = bpf_map_lookup_elem(&seekscope_direct, &key);
	__u64 issued = 0;

	if (known && known->call == call && known->position == position &&
	    (total == 0 || known->issued < total))
		issued = known->issued;
	next.issued = issued + bytes;
	bpf_map_update_elem(&seekscope_direct, &key, &next, BPF_ANY);
	return position + issued;
}

/* Direct I/O of a filesystem that uses iomap: the request leads to the call, whoever issues it. */
static __always_inline bool file_of_iomap(struct bio *bio, __u32 bytes, struct block_record *record)
{
	__u64 end_io = (__u64)BPF_CORE_READ(bio, bi_end_io);
	struct file_facts facts = {};

	if (!iomap_dio_end_io)
		return false;
	if (bio_chain_end_io && end_io == bio_chain_end_io) {
		bio = BPF_CORE_READ(bio, bi_private); /* split: this is the rest of it */
		end_io = (__u64)BPF_CORE_READ(bio, bi_end_io);
	}
	if (end_io != iomap_dio_end_io)
		return false;
	struct iomap_dio *dio = BPF_CORE_READ(bio, bi_private);
	struct kiocb *call = BPF_CORE_READ(dio, iocb);
	struct file *file = BPF_CORE_READ(call, ki_filp);
	if (!file)
		return false;
	read_file_facts(file, &facts, false);
	if (!facts.wanted)
		return false;
	__u64 position = BPF_CORE_READ(call, ki_pos);
	__u64 total = BPF_CORE_READ(dio, size);
	record->inode = facts.inode;
	record->device = facts.device;
	record->facts |= BLOCK_FILE_FROM_CALL;
	set_file_offset(record, direct_offset((__u64)dio, (__u64)call, position, total, bytes));
	return true;
}

/* Direct I/O elsewhere: the call that the issuing thread is in. */
static __always_inline void file_of_call(__u32 tid, __u32 bytes, struct block_record *record)
{
	struct start_slot *slot = slot_of(tid);

	if (!slot || slot->tid != tid || slot->op == OP_NONE || !(slot->flags & FLAG_DIRECT))
		return;
	record->inode = slot->inode;
	record->device = slot->device;
	record->facts |= BLOCK_FILE_FROM_CALL;
	if (slot->flags & FLAG_APPEND)
		set_file_offset(record, OFFSET_UNKNOWN);
	else
		set_file_offset(record,
				direct_offset(tid, slot->start_ns, slot->offset, 0, bytes));
}

static __always_inline void find_file(struct request *rq, __u32 bytes, struct block_record *record)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct bio_vec piece = {};

	if (!bio || file_of_iomap(bio, bytes, record))
		return;
	struct bio_vec *pieces = BPF_CORE_READ(bio, bi_io_vec);
	if (!pieces)
		return;
	pieces += BPF_CORE_READ(bio, bi_iter.bi_idx);
	if (bpf_probe_read_kernel(&piece, sizeof(piece), pieces))
		return;
	if (!file_of_memory(&piece, BPF_CORE_READ(bio, bi_iter.bi_bvec_done), record))
		file_of_call(record->tid, bytes, record);
}

static __always_inline int on_issue(struct request *rq)
{
	struct block_record record = {}, *known;
	__u64 key = (__u64)rq;

	if (!tracing)
		return 0;
	record.disk = disk_of(rq);
	if (!is_wanted_disk(record.disk))
		return 0;
	__u32 cmd_flags = BPF_CORE_READ(rq, cmd_flags);
	__u32 bytes = BPF_CORE_READ(rq, __data_len);
	__u64 sectors = bytes >> SECTOR_SHIFT;
	record.op = op_of_request(cmd_flags);
	if (record.op == OP_NONE)
		return 0;
	if (sectors > MAX_SECTORS) {
		record.flags |= FLAG_DEVICE_BYTES_SATURATED;
		sectors = MAX_SECTORS;
	}
	/* A flush has no place; its sector is not set. */
	__u64 sector = record.op == OP_BLOCK_FLUSH ? 0 : BPF_CORE_READ(rq, __sector);
	record.sector = (sector & SECTOR_MASK) | sectors << 48;

	known = bpf_map_lookup_elem(&seekscope_block, &key);
	if (known && known->sector == record.sector && known->op == record.op) {
		known->start_ns = bpf_ktime_get_ns(); /* the device was busy; issued once more */
		return 0;
	}
	record.facts = facts_of_request(cmd_flags);
	record.tid = bpf_get_current_pid_tgid();
	set_file_offset(&record, OFFSET_UNKNOWN);
	if (bytes && (record.op == OP_BLOCK_READ || record.op == OP_BLOCK_WRITE) &&
	    (cmd_flags & REQ_OP_MASK) != REQ_OP_WRITE_ZEROES)
		find_file(rq, bytes, &record);
	record.start_ns = bpf_ktime_get_ns();
	keep_start(&seekscope_block, &key, &record);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue(__u64 *ctx)
{
	return on_issue((struct request *)ctx[0]);
}

/* Until Linux 5.10 the queue came first. */
SEC("tp_btf/block_rq_issue")
int seekscope_issue2(__u64 *ctx)
{
	return on_issue((struct request *)ctx[1]);
}

/* A request may complete in parts; it counts once, with its last part. */
SEC("tp_btf/block_rq_complete")
int seekscope_compl(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	__u32 error = ctx[1], bytes = ctx[2];
	__u64 key = (__u64)rq, end_ns = bpf_ktime_get_ns();
	struct block_record *record;

	if (!tracing)
		return 0;
	record = bpf_map_lookup_elem(&seekscope_block, &key);
	if (!record)
		return 0; /* another disk's, or issued before tracing began */
	if (error)
		record->facts |= BLOCK_FAILED;
	if (bytes < BPF_CORE_READ(rq, __data_len))
		return 0;
	__u64 latency_ns = end_ns - record->start_ns;
	if (latency_ns > 0xffffffff) {
		record->flags |= FLAG_LATENCY_SATURATED;
		latency_ns = 0xffffffff;
	}
	record->latency_ns = latency_ns;
	emit(record);
	bpf_map_delete_elem(&seekscope_block, &key);
	return 0;
}
