/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which file a request of a disk belongs to, and where in it.
 *
 * The file is found through the memory the request reads into or writes from: a page of the page
 * cache knows its file and its place in it. Memory of a program means direct I/O; its file is noted
 * when the filesystem hands a piece of the call (a bio) to the block layer, before pieces are
 * split, merged and reordered: from the filesystem's bookkeeping (iomap: ext4, xfs and others),
 * else from the call that the thread is in.
 */
#pragma once

/* File offsets are kept in sectors, in 40 bits. */
#define OFFSET_SECTORS_UNKNOWN ((1ULL << 40) - 1)

/* Addresses of two kernel functions that mark direct I/O, from /proc/kallsyms; 0 if unknown. */
const volatile __u64 iomap_dio_end_io = 0;
const volatile __u64 bio_chain_end_io = 0;

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

static __always_inline void set_file_offset(struct block_record *record, __u64 offset)
{
	__u64 sectors = offset >> SECTOR_SHIFT;

	if (sectors > OFFSET_SECTORS_UNKNOWN)
		sectors = OFFSET_SECTORS_UNKNOWN;
	record->offset_sectors = sectors;
	record->offset_sectors_high = sectors >> 32;
}

/* The first page of the folio (or compound page) that `page` belongs to. Its word may be an address
 * with a mark in its lowest bit, which the verifier lets nobody compute with, so a helper reads it. */
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

/* Bytes of the first piece of memory that are behind this bio already, where it was split. */
static __always_inline __u32 done_of_piece(struct bio *bio)
{
	struct bvec_iter *place = __builtin_preserve_access_index(&bio->bi_iter);
	struct bvec_iter___7_3 *newer = (void *)place;

	if (bpf_core_field_exists(place->bi_bvec_done))
		return BPF_CORE_READ(place, bi_bvec_done);
	return bpf_core_field_exists(newer->bi_offset) ? BPF_CORE_READ(newer, bi_offset) : 0;
}

/* The file of a page of the page cache. Memory of other uses has other things where such a page has
 * its mapping, which then does not lead back to itself. */
static __always_inline bool file_of_mapping(struct address_space *mapping,
					    struct block_record *record, const bool typed)
{
	struct inode *inode = LOAD(typed, mapping, host);

	if (!inode || LOAD(typed, (struct inode___block *)inode, i_mapping) != mapping)
		return false;
	if ((LOAD(typed, inode, i_mode) & S_IFMT) != S_IFREG) {
		record->facts |= BLOCK_METADATA;
		return true;
	}
	struct super_block *super = LOAD(typed, inode, i_sb);
	if (!super)
		return false;
	record->inode = LOAD(typed, inode, i_ino);
	record->device = LOAD(typed, super, s_dev);
	return true;
}

/* The file that the memory of a bio caches; false for memory that is no cache of a file. */
static __always_inline bool file_of_memory(struct bio *bio, struct block_record *record)
{
	struct bio_vec *pieces = bio->bi_io_vec;
	struct bio_vec piece = {};

	if (!pieces)
		return false;
	pieces += bio->bi_iter.bi_idx;
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
	bool found;
	if (bpf_ksym_exists(bpf_rdonly_cast))
		found = file_of_mapping(
			bpf_rdonly_cast((void *)mapping,
					bpf_core_type_id_kernel(struct address_space)),
			record, true);
	else
		found = file_of_mapping((struct address_space *)mapping, record, false);
	if (found && record->inode) {
		index += (page - head) / bpf_core_type_size(struct page);
		set_file_offset(record, index * page_bytes + piece.bv_offset + done_of_piece(bio));
	}
	return found;
}

/* The size that iomap keeps covers the piece that it hands over until some Linux 7, and no more in
 * 7.3. The first piece of the first call tells. */
volatile __u32 size_lags = 0;

/* Direct I/O of a filesystem that uses iomap: the bio leads to the call, whoever runs it. */
static __always_inline bool call_of_iomap(struct bio *bio, struct direct_piece *piece)
{
	struct file_facts facts = {};

	if (!iomap_dio_end_io || (__u64)bio->bi_end_io != iomap_dio_end_io)
		return false;
	struct iomap_dio *dio = bio->bi_private;
	struct kiocb *call = BPF_CORE_READ(dio, iocb);
	struct file *file = BPF_CORE_READ(call, ki_filp);
	if (!file)
		return false;
	read_file_facts(file, &facts, true);
	piece->inode = facts.inode;
	piece->device = facts.device;
	__u64 sent_off = BPF_CORE_READ(dio, size);
	if (sent_off < piece->bytes)
		size_lags = 1;
	if (!size_lags)
		sent_off -= piece->bytes;
	piece->offset = BPF_CORE_READ(call, ki_pos) + sent_off;
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

/* The file of a bio that was noted as a piece of a direct call. */
static __always_inline bool file_of_piece(struct bio *bio, struct block_record *record)
{
	__u64 sector = bio->bi_iter.bi_sector;
	__u64 key = (__u64)bio;

	/* The front of one that was too large for a request; the rest keeps the address. */
	if (bio_chain_end_io && (__u64)bio->bi_end_io == bio_chain_end_io)
		key = (__u64)bio->bi_private;
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
	__u64 end = start + ((__u64)record->sectors << SECTOR_SHIFT);

	if (!(record->facts & BLOCK_READ_AHEAD) || !slot || slot->tid != record->tid ||
	    slot->inode != record->inode || slot->device != record->device)
		return;
	if (slot->offset < end && start <= slot->offset + slot->length)
		record->facts ^= BLOCK_READ_AHEAD | BLOCK_SYNCHRONOUS;
}

static __always_inline void find_file(struct request *rq, struct block_record *record)
{
	struct bio *bio = rq->bio;

	if (!bio || file_of_piece(bio, record))
		return;
	if (file_of_memory(bio, record) && record->inode)
		correct_read_ahead(record);
}
