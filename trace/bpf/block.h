/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Requests of disks, from the moment the driver gets them to their completion, and the file each
 * one belongs to.
 *
 * The file is found through the memory the request reads into or writes from: a page of the page
 * cache knows its file and its place in it. Memory of a program means direct I/O; its file is noted
 * when the filesystem hands a piece of the call (a bio) to the block layer, before pieces are
 * split, merged and reordered: from the filesystem's bookkeeping (iomap: ext4, xfs and others),
 * else from the call that the thread is in.
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

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
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
	struct block_device *bi_bdev; /* since Linux 5.12 */
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_end_io;
	void *bi_private;
};

struct bio___5_11 {
	struct gendisk *bi_disk;
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

/* A piece of a direct call on its way to the disk. */
struct direct_piece {
	__u64 sector; /* on the disk; the piece is contiguous there and in the file */
	__u64 offset; /* in the file, or OFFSET_UNKNOWN */
	__u64 inode;
	__u32 device;
	__u32 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* replaced when the kernel reuses the bio */
	__uint(max_entries, STARTS);
	__type(key, __u64); /* address of the struct bio */
	__type(value, struct direct_piece);
} seekscope_pieces SEC(".maps");

/* How much of a thread's direct call has been sent off: a large one becomes several pieces. */
struct direct_progress {
	__u64 call_ns; /* start of the call */
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STARTS);
	__type(key, __u32); /* thread */
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

static __always_inline __u32 number_of_disk(struct gendisk *disk)
{
	if (!disk)
		return 0;
	return BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}

static __always_inline __u32 disk_of_request(struct request *rq)
{
	struct request___5_16 *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return number_of_disk(BPF_CORE_READ(old, rq_disk));
	return number_of_disk(BPF_CORE_READ(rq, q, disk));
}

static __always_inline __u32 disk_of_bio(struct bio *bio)
{
	struct bio___5_11 *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return number_of_disk(BPF_CORE_READ(old, bi_disk));
	return number_of_disk(BPF_CORE_READ(bio, bi_bdev, bd_disk));
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

/* The file that the memory of a bio caches; false for memory that is no cache of a file. */
static __always_inline bool file_of_memory(struct bio *bio, struct block_record *record)
{
	struct bio_vec *pieces = BPF_CORE_READ(bio, bi_io_vec);
	struct bio_vec piece = {};

	if (!pieces)
		return false;
	pieces += BPF_CORE_READ(bio, bi_iter.bi_idx);
	if (bpf_probe_read_kernel(&piece, sizeof(piece), pieces))
		return false;
	__u64 page = (__u64)piece.bv_page, head = head_of(page);
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
	set_file_offset(record, index * page_bytes + piece.bv_offset +
					BPF_CORE_READ(bio, bi_iter.bi_bvec_done));
	return true;
}

/* Direct I/O of a filesystem that uses iomap: the bio leads to the call, whoever runs it. */
static __always_inline bool call_of_iomap(struct bio *bio, struct direct_piece *piece)
{
	struct file_facts facts = {};

	if (!iomap_dio_end_io || (__u64)BPF_CORE_READ(bio, bi_end_io) != iomap_dio_end_io)
		return false;
	struct iomap_dio *dio = BPF_CORE_READ(bio, bi_private);
	struct kiocb *call = BPF_CORE_READ(dio, iocb);
	struct file *file = BPF_CORE_READ(call, ki_filp);
	if (!file)
		return false;
	read_file_facts(file, &facts, false);
	piece->inode = facts.inode;
	piece->device = facts.device;
	/* The size covers what has been sent off, this piece included. */
	piece->offset = BPF_CORE_READ(call, ki_pos) + BPF_CORE_READ(dio, size) - piece->bytes;
	return facts.wanted;
}

/* Direct I/O elsewhere: the call that this thread is in, if the memory is not the page cache's. */
static __always_inline bool call_of_thread(struct bio *bio, struct direct_piece *piece)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct start_slot *slot = slot_of(tid);
	struct block_record unused = {};

	if (!slot || slot->tid != tid || slot->op == OP_NONE || !(slot->flags & FLAG_DIRECT) ||
	    file_of_memory(bio, &unused))
		return false;
	struct direct_progress progress = {.call_ns = slot->start_ns};
	struct direct_progress *known = bpf_map_lookup_elem(&seekscope_direct, &tid);
	if (known && known->call_ns == slot->start_ns)
		progress.bytes = known->bytes;
	piece->inode = slot->inode;
	piece->device = slot->device;
	piece->offset =
		slot->flags & FLAG_APPEND ? OFFSET_UNKNOWN : slot->offset + progress.bytes;
	progress.bytes += piece->bytes;
	bpf_map_update_elem(&seekscope_direct, &tid, &progress, BPF_ANY);
	return true;
}

static __always_inline int on_bio(struct bio *bio)
{
	struct direct_piece piece = {};
	__u64 key = (__u64)bio;

	if (!tracing || !is_wanted_disk(disk_of_bio(bio)))
		return 0;
	piece.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	piece.sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	if (piece.bytes && (call_of_iomap(bio, &piece) || call_of_thread(bio, &piece)))
		bpf_map_update_elem(&seekscope_pieces, &key, &piece, BPF_ANY);
	return 0;
}

/* The file of a bio that was noted as a piece of a direct call. */
static __always_inline bool file_of_piece(struct bio *bio, struct block_record *record)
{
	__u64 sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	__u64 key = (__u64)bio;

	/* The front of one that was too large for a request; the rest keeps the address. */
	if (bio_chain_end_io && (__u64)BPF_CORE_READ(bio, bi_end_io) == bio_chain_end_io)
		key = (__u64)BPF_CORE_READ(bio, bi_private);
	struct direct_piece *piece = bpf_map_lookup_elem(&seekscope_pieces, &key);
	if (!piece || sector < piece->sector ||
	    sector - piece->sector >= piece->bytes >> SECTOR_SHIFT)
		return false;
	record->inode = piece->inode;
	record->device = piece->device;
	record->facts |= BLOCK_FILE_FROM_CALL;
	if (piece->offset != OFFSET_UNKNOWN)
		set_file_offset(record,
				piece->offset + ((sector - piece->sector) << SECTOR_SHIFT));
	return true;
}

/* The kernel marks all that passes through its read-ahead as such, also what a read asked for. */
static __always_inline void correct_read_ahead(struct block_record *record)
{
	struct start_slot *slot = slot_of(record->tid);
	__u64 sector = (__u64)record->offset_sectors_high << 32 | record->offset_sectors;
	__u64 start = sector << SECTOR_SHIFT;
	__u64 end = start + (record->sector >> 48 << SECTOR_SHIFT);

	if (!(record->facts & BLOCK_READ_AHEAD) || !slot || slot->tid != record->tid ||
	    slot->inode != record->inode || slot->device != record->device)
		return;
	if (slot->offset < end && start <= slot->offset + slot->length)
		record->facts ^= BLOCK_READ_AHEAD | BLOCK_SYNCHRONOUS;
}

static __always_inline void find_file(struct request *rq, struct block_record *record)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);

	if (!bio || file_of_piece(bio, record))
		return;
	if (file_of_memory(bio, record) && record->inode)
		correct_read_ahead(record);
}

static __always_inline int on_issue(struct request *rq)
{
	struct block_record record = {}, *known;
	__u64 key = (__u64)rq;

	if (!tracing)
		return 0;
	record.disk = disk_of_request(rq);
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

	/* The device was busy and gave it back; meanwhile neighbours may have joined it. */
	known = bpf_map_lookup_elem(&seekscope_block, &key);
	if (known && known->op == record.op && (known->sector & SECTOR_MASK) == sector) {
		known->sector = record.sector;
		known->flags = record.flags;
		known->start_ns = bpf_ktime_get_ns();
		return 0;
	}
	record.facts = facts_of_request(cmd_flags);
	record.tid = bpf_get_current_pid_tgid();
	set_file_offset(&record, OFFSET_UNKNOWN);
	if (bytes && (record.op == OP_BLOCK_READ || record.op == OP_BLOCK_WRITE) &&
	    (cmd_flags & REQ_OP_MASK) != REQ_OP_WRITE_ZEROES)
		find_file(rq, &record);
	record.start_ns = bpf_ktime_get_ns();
	/* Replaces a request that was given back and went to the device as part of another. */
	if (bpf_map_update_elem(&seekscope_block, &key, &record, BPF_ANY))
		lose_to_full_table(1);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int seekscope_bio(__u64 *ctx)
{
	return on_bio((struct bio *)ctx[0]);
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue(__u64 *ctx)
{
	return on_issue((struct request *)ctx[0]);
}

/* Until Linux 5.10 the queue came first. */
SEC("tp_btf/block_bio_queue")
int seekscope_bio2(__u64 *ctx)
{
	return on_bio((struct bio *)ctx[1]);
}

SEC("tp_btf/block_rq_issue")
int seekscope_issue2(__u64 *ctx)
{
	return on_issue((struct request *)ctx[1]);
}

/* The facts of a request that totals are made of. */
static __always_inline struct io_record total_of(const struct block_record *record)
{
	struct io_record total = {
		.inode = record->inode,
		.device = record->inode ? record->device : record->disk,
		.op = record->op,
		.result = record->sector >> 48 << SECTOR_SHIFT,
	};

	if (record->facts & BLOCK_FAILED)
		total.result = -5; /* EIO */
	return total;
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
	if (latency_ns > 0xffffffff)
		record->flags |= FLAG_LATENCY_SATURATED;
	record->latency_ns = latency_ns > 0xffffffff ? 0xffffffff : latency_ns;
	struct io_record total = total_of(record);
	emit(record, &total, latency_ns);
	bpf_map_delete_elem(&seekscope_block, &key);
	return 0;
}
