//! Files made to lead the parser astray: each is refused for what it is, in bounded memory.

use seekscope_wiredtiger::{
    BlockAddress, BlockError, BlockFault, BlockFormat, Compressor, ExtentList, FileConfig,
    FileConfigError, TreeWalk, Visit,
};

use crate::MEMORY;
use crate::forgery::forge_checksum;
use crate::synthetic::{
    self, Blocks, EXTENT_LIST, FORMAT, INTERNAL, LEAF, OVERFLOW, TO_INTERNAL, TO_LEAF, UNIT,
    cookie, put_varint,
};

fn walk(blocks: &Blocks, root: BlockAddress, visit: Visit) -> Result<TreeWalk, BlockError> {
    walk_as(blocks, root, visit, FORMAT)
}

fn walk_as(
    blocks: &Blocks,
    root: BlockAddress,
    visit: Visit,
    format: BlockFormat,
) -> Result<TreeWalk, BlockError> {
    let mut walk = TreeWalk::new(root, format, blocks.file_bytes(), visit)?;
    while let Some(address) = walk.wanted().first().copied() {
        walk.supply(&address, blocks.read(&address))?;
    }
    Ok(walk)
}

fn fault(result: Result<TreeWalk, BlockError>) -> BlockFault {
    let error = result.unwrap_err();
    assert!(!error.may_be_stale(), "{error}");
    error.fault
}

fn reason(result: Result<TreeWalk, BlockError>) -> &'static str {
    match fault(result) {
        BlockFault::Malformed(error) => error.reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_sound_tree_is_walked() {
    let mut blocks = Blocks::default();
    let root = blocks.tree(1_000, 7);
    let tree = walk(&blocks, root, Visit::InternalPages)
        .unwrap()
        .finish()
        .unwrap();
    let offsets: Vec<u64> = tree.leaves.iter().map(|leaf| leaf.offset).collect();
    assert_eq!(offsets.len(), 1_000);
    assert!(offsets.is_sorted());
    assert_eq!((tree.internal.len(), tree.depth), (143 + 21 + 3 + 1, 5));
}

#[test]
fn a_root_may_be_a_leaf() {
    let mut blocks = Blocks::default();
    let root = blocks.page(LEAF, 2, &[1 << 2 | 1, b'k', 1 << 2 | 3, b'v']);
    let tree = walk(&blocks, root, Visit::InternalPages)
        .unwrap()
        .finish()
        .unwrap();
    assert_eq!(
        (tree.leaves.len(), tree.depth, tree.internal.len()),
        (1, 1, 0)
    );
    let rows = walk(&blocks, root, Visit::Rows).unwrap().rows().unwrap();
    assert_eq!(rows, [(b"k".to_vec(), b"v".to_vec())]);
}

#[test]
fn loops_and_shared_blocks() {
    let mut blocks = Blocks::default();
    let leaf = blocks.reserve(UNIT, 1);
    let twice = blocks.internal(TO_LEAF, &[leaf, leaf]);
    assert_eq!(
        fault(walk(&blocks, twice, Visit::InternalPages)),
        BlockFault::CoveredTwice
    );

    // A page that points at itself: its checksum has to hold for its own address.
    let itself = BlockAddress {
        offset: blocks.file_bytes(),
        length: UNIT,
        checksum: 0x1234_5678,
    };
    let mut payload = Vec::new();
    synthetic::put_child(&mut payload, TO_INTERNAL, 0, &itself);
    let mut page = synthetic::block(INTERNAL, 0, 2, 40 + payload.len() as u32, &payload);
    forge_checksum(&mut page, itself.checksum);
    assert_eq!(blocks.put(page), itself);
    assert_eq!(
        fault(walk(&blocks, itself, Visit::InternalPages)),
        BlockFault::CoveredTwice
    );
}

#[test]
fn towers_and_pages_of_the_wrong_kind() {
    let mut blocks = Blocks::default();
    let mut page = blocks.reserve(UNIT, 1);
    page = blocks.internal(TO_LEAF, &[page]);
    for _ in 0..40 {
        page = blocks.internal(TO_INTERNAL, &[page]);
    }
    assert!(matches!(
        fault(walk(&blocks, page, Visit::InternalPages)),
        BlockFault::TooDeep(_)
    ));

    let list = blocks.page(EXTENT_LIST, 0, &[]);
    for (descriptor, child) in [(TO_INTERNAL, list), (TO_LEAF, page)] {
        let root = blocks.internal(descriptor, &[child]);
        let found = fault(walk(&blocks, root, Visit::Rows));
        assert!(matches!(found, BlockFault::PageType { .. }), "{found}");
    }
    let empty = blocks.page(INTERNAL, 0, &[]);
    assert!(reason(walk(&blocks, empty, Visit::InternalPages)).contains("cells"));
    let beyond = BlockAddress {
        offset: blocks.file_bytes(),
        ..page
    };
    let root = blocks.internal(
        TO_LEAF,
        &[BlockAddress {
            offset: beyond.offset * 2,
            ..beyond
        }],
    );
    assert!(matches!(
        fault(walk(&blocks, root, Visit::InternalPages)),
        BlockFault::OutsideFile { .. }
    ));
}

#[test]
fn what_is_not_read_is_refused_as_such() {
    let mut blocks = Blocks::default();
    let encrypted = blocks.put(synthetic::block(INTERNAL, 0x08, 0, 4096, &[]));
    assert_eq!(
        fault(walk(&blocks, encrypted, Visit::Rows)),
        BlockFault::Encrypted
    );
    let column = blocks.page(3, 0, &[]);
    assert_eq!(
        fault(walk(&blocks, column, Visit::Rows)),
        BlockFault::ColumnStore(3)
    );
    let mut payload = vec![1 << 2 | 1, b'k', TO_LEAF];
    let mut tiered = cookie(&blocks.reserve(UNIT, 1));
    tiered.push(1);
    put_varint(&mut tiered, 7);
    put_varint(&mut payload, tiered.len() as u64);
    payload.extend(tiered);
    let tiered = blocks.page(INTERNAL, 2, &payload);
    assert!(reason(walk(&blocks, tiered, Visit::InternalPages)).contains("tiered"));
}

/// A leaf page with `key` and then `cells` times `cell`.
fn leaf_of(
    blocks: &mut Blocks,
    key: &[u8],
    cell: &[u8],
    cells: usize,
    per_cell: u32,
) -> BlockAddress {
    let payload = [key, &cell.repeat(cells)].concat();
    blocks.page(LEAF, 2 + cells as u32 * per_cell, &payload)
}

#[test]
fn a_small_page_does_not_become_gigabytes() {
    let mut blocks = Blocks::default();
    // A long value, then a million rows that copy it: the distance grows with each.
    let mut value = vec![1 << 2 | 1, b'k', 0x80];
    put_varint(&mut value, (1 << 20) - 64);
    value.resize(value.len() + (1 << 20), b'v');
    let mut copies = value.clone();
    for _ in 0..100_000 {
        copies.extend([1 << 2 | 2, 0, b'k']);
        let back = copies.len() as u64 - 2;
        copies.push(0x90);
        put_varint(&mut copies, back);
    }
    let copies = blocks.page(LEAF, 2 + 200_000, &copies);
    // Keys that share 255 bytes with the one before.
    let mut key = vec![0x50];
    put_varint(&mut key, 255 - 64);
    key.resize(key.len() + 255, b'k');
    key.push(3);
    let prefixes = leaf_of(&mut blocks, &key, &[2, 255, 3], 1 << 20, 2);
    let before = MEMORY.restart();
    for bomb in [copies, prefixes] {
        assert!(reason(walk(&blocks, bomb, Visit::Rows)).contains("memory"));
    }
    assert!(MEMORY.peak() - before < 512 << 20);
}

#[test]
fn millions_of_pages_are_not_asked_for() {
    let mut blocks = Blocks::default();
    // Internal children that do not exist, each a dozen bytes of the root's.
    let children: Vec<_> = (0..1_100_000).map(|_| blocks.reserve(UNIT, 0)).collect();
    let root = blocks.internal(TO_INTERNAL, &children);
    drop(children);
    let before = MEMORY.restart();
    let found = fault(walk(&blocks, root, Visit::InternalPages));
    assert!(matches!(found, BlockFault::TooMany { .. }), "{found}");
    assert!(MEMORY.peak() - before < 512 << 20);
}

#[test]
fn checkpoints_without_end() {
    let text = format!("checkpoint=({})", "a=(),".repeat(1 << 20));
    let error = FileConfig::parse(&text).unwrap_err();
    assert_eq!(error, FileConfigError::TooManyCheckpoints);
}

#[test]
fn headers_that_claim_gigabytes() {
    let mut blocks = Blocks::default();
    for (compressed, image_bytes) in [(0, 5000), (0, u32::MAX), (1, u32::MAX), (1, 39), (0, 0)] {
        let root = blocks.put(synthetic::block(INTERNAL, compressed, 2, image_bytes, &[]));
        let found = fault(walk(&blocks, root, Visit::InternalPages));
        assert_eq!(found, BlockFault::ImageSize(image_bytes));
    }
    // 64 zero bytes, then streams that say 4 GiB, or nonsense.
    for compressor in [
        Compressor::Snappy,
        Compressor::Zlib,
        Compressor::Zstd,
        Compressor::Lz4,
    ] {
        for stored in [vec![0xff; 200], vec![0; 200], vec![0x20; 200]] {
            let stored = [vec![0; 24], stored].concat();
            let root = blocks.put(synthetic::block(INTERNAL, 1, 2, 1 << 20, &stored));
            let format = BlockFormat {
                compressor,
                ..FORMAT
            };
            let found = fault(walk_as(&blocks, root, Visit::InternalPages, format));
            assert!(matches!(found, BlockFault::Compression { .. }), "{found}");
        }
    }
    let root = blocks.put(synthetic::block(INTERNAL, 1, 2, 1 << 20, &[0; 100]));
    let found = fault(walk(&blocks, root, Visit::InternalPages));
    assert!(
        found
            .to_string()
            .contains("not configured with a compressor"),
        "{found}"
    );
}

#[test]
fn overflow_items_are_put_in_their_place() {
    let mut blocks = Blocks::default();
    let value = blocks.page(OVERFLOW, 5, b"value");
    let key = blocks.page(OVERFLOW, 3, b"key");
    let mut payload = Vec::new();
    for (descriptor, address) in [(0x60, key), (0xA0, value)] {
        let cookie = cookie(&address);
        payload.push(descriptor);
        put_varint(&mut payload, cookie.len() as u64);
        payload.extend(cookie);
    }
    // Then a key with an empty value, and a deleted row.
    payload.extend([
        1 << 2 | 1,
        b'l',
        1 << 2 | 1,
        b'm',
        0x88,
        0x40,
        0x80,
        0x81,
        b'x',
    ]);
    let root = blocks.page(LEAF, 5, &payload);
    let rows = walk(&blocks, root, Visit::Rows).unwrap().rows().unwrap();
    let row = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(rows, [row(b"key", b"value"), row(b"l", b"")]);
}

#[test]
fn lists_of_extents() {
    let list = |pairs: &[(u64, u64)]| {
        let mut payload = Vec::new();
        for &(offset, bytes) in pairs {
            put_varint(&mut payload, offset);
            put_varint(&mut payload, bytes);
        }
        let mut blocks = Blocks::default();
        let address = blocks.page(EXTENT_LIST, payload.len() as u32, &payload);
        ExtentList::parse(&address, blocks.read(&address), 1 << 20)
    };
    const MAGIC: (u64, u64) = (71_002, 0);
    let sound = list(&[MAGIC, (16_384, 4096), (65_536, 8192), (8192, 8192), (0, 0)]).unwrap();
    assert_eq!(sound.extents.len(), 2);
    assert_eq!(sound.bytes(), 4096 + 8192 + 8192);
    let wrong: [&[(u64, u64)]; 7] = [
        &[],
        &[(71_003, 0)],
        &[MAGIC, (0, 2)],
        &[MAGIC, (8192, 0), (0, 0)],
        &[MAGIC, (1 << 20, 4096), (0, 0)],
        &[MAGIC, (u64::MAX, u64::MAX), (0, 0)],
        &[MAGIC, (4096, 600_000), (8192, 600_000), (0, 0)],
    ];
    for pairs in wrong {
        let error = list(pairs).unwrap_err();
        assert!(
            matches!(error.fault, BlockFault::Malformed(_)),
            "{pairs:?}: {error}"
        );
    }
}

#[test]
fn only_what_is_wanted_is_taken() {
    let mut blocks = Blocks::default();
    let root = blocks.tree(100, 10);
    let mut walk = TreeWalk::new(root, FORMAT, blocks.file_bytes(), Visit::InternalPages).unwrap();
    let other = BlockAddress {
        offset: root.offset + 4096,
        ..root
    };
    let error = walk.supply(&other, blocks.read(&root)).unwrap_err();
    assert_eq!(error.fault, BlockFault::NotWanted);
    walk.supply(&root, blocks.read(&root)).unwrap();
    assert_eq!(walk.wanted().len(), 10);
    assert_eq!(
        walk.supply(&root, blocks.read(&root)).unwrap_err().fault,
        BlockFault::NotWanted
    );
    assert_eq!(walk.finish().unwrap_err().fault, BlockFault::NotSupplied);
}
