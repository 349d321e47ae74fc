//! What is written by the rules is read back, and no bytes whatever make the parsers panic.

use std::io::Write;

use proptest::prelude::*;
use seekscope_wiredtiger::bytes::ByteReader;
use seekscope_wiredtiger::{
    BlockAddress, BlockFormat, CheckpointCookie, Compressor, ExtentList, FileConfig, KeyValue,
    Metadata, TreeWalk, Turtle, Visit, catalogue, size_storer,
};

use crate::synthetic::{self, Blocks, INTERNAL, LEAF, UNIT, put_child, put_varint};

fn compressed(compressor: Compressor, plain: &[u8]) -> Vec<u8> {
    let counted = |bytes: Vec<u8>| [&(bytes.len() as u64).to_le_bytes()[..], &bytes].concat();
    match compressor {
        Compressor::None => plain.to_vec(),
        Compressor::Snappy => counted(snap::raw::Encoder::new().compress_vec(plain).unwrap()),
        Compressor::Zstd => counted(zstd::bulk::compress(plain, 6).unwrap()),
        Compressor::Zlib => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Compressor::Lz4 => {
            let block = lz4_flex::block::compress(plain);
            let length = plain.len() as u32;
            let prefix = [block.len() as u32, length, length, 0]
                .map(u32::to_le_bytes)
                .concat();
            [prefix, block].concat()
        }
    }
}

/// Supplies what is wanted with the same bytes; any end will do.
fn walk_anything(root: BlockAddress, format: BlockFormat, bytes: &[u8], visit: Visit) {
    let Ok(mut walk) = TreeWalk::new(root, format, 1 << 30, visit) else {
        return;
    };
    while let Some(address) = walk.wanted().first().copied() {
        if walk.supply(&address, bytes).is_err() {
            return;
        }
    }
    let _ = walk.finish();
}

#[test]
fn every_compressor() {
    use Compressor::{Lz4, None, Snappy, Zlib, Zstd};
    for compressor in [None, Snappy, Zlib, Zstd, Lz4] {
        let mut blocks = Blocks::default();
        let children: Vec<_> = (0..700)
            .map(|leaf| blocks.reserve(UNIT * 8, leaf))
            .collect();
        let mut payload = Vec::new();
        for (key, child) in children.iter().enumerate() {
            put_child(&mut payload, 0x30, key as u64, child);
        }
        let image_bytes = 40 + payload.len() as u32;
        let packed = [&payload[..24], &compressed(compressor, &payload[24..])].concat();
        let flag = u8::from(compressor != None);
        let root = blocks.put(synthetic::block(INTERNAL, flag, 1400, image_bytes, &packed));
        let format = BlockFormat {
            allocation_bytes: UNIT,
            compressor,
        };
        let mut walk =
            TreeWalk::new(root, format, blocks.file_bytes(), Visit::InternalPages).unwrap();
        walk.supply(&root, blocks.read(&root)).unwrap();
        let found = walk.finish().unwrap().leaves;
        let found: Vec<u64> = found.iter().map(|leaf| leaf.offset).collect();
        assert_eq!(
            found,
            children
                .iter()
                .map(|child| child.offset)
                .collect::<Vec<_>>()
        );
    }
}

fn address() -> impl Strategy<Value = Option<BlockAddress>> {
    let block =
        (1..1_u64 << 36, 1..1_u32 << 12, any::<u32>()).prop_map(|(offset, length, checksum)| {
            BlockAddress {
                offset: offset * u64::from(UNIT),
                length: length * UNIT,
                checksum,
            }
        });
    prop::option::of(block)
}

fn put_address(out: &mut Vec<u8>, address: Option<BlockAddress>) {
    out.extend(address.map_or(vec![0x80; 3], |address| synthetic::cookie(&address)));
}

/// Rows with ascending keys, some of them longer than a short cell can hold.
fn rows() -> impl Strategy<Value = Vec<KeyValue>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..200);
    prop::collection::btree_map(bytes(), bytes(), 0..60).prop_map(|rows| rows.into_iter().collect())
}

fn put_leaf_cells(out: &mut Vec<u8>, rows: &[KeyValue]) -> u32 {
    let mut cells = 0;
    let mut previous: &[u8] = &[];
    for (key, value) in rows {
        let shared = key.iter().zip(previous).take_while(|(a, b)| a == b).count();
        let suffix = &key[shared..];
        if suffix.len() < 64 {
            out.extend([(suffix.len() as u8) << 2 | 2, shared as u8]);
        } else {
            out.extend([0x70, shared as u8]);
            put_varint(out, suffix.len() as u64 - 64);
        }
        out.extend(suffix);
        cells += 1;
        if !value.is_empty() {
            if value.len() < 64 {
                out.push((value.len() as u8) << 2 | 3);
            } else {
                out.push(0x80);
                put_varint(out, value.len() as u64 - 64);
            }
            out.extend(value);
            cells += 1;
        }
        previous = key;
    }
    cells
}

proptest! {
    #[test]
    fn varints_come_back_and_sort_as_their_numbers(a: u64, b: u64, shift in 0_u32..64) {
        let encoded = |value| {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            out
        };
        let (a, b) = (a >> shift, b >> shift);
        prop_assert_eq!(a.cmp(&b), encoded(a).cmp(&encoded(b)));
        let mut reader_bytes = encoded(a);
        reader_bytes.push(0);
        let mut reader = ByteReader::new(&reader_bytes);
        prop_assert_eq!(reader.varint(), Ok(a));
        prop_assert_eq!(reader.position(), reader_bytes.len() - 1);
    }

    #[test]
    fn cookies_come_back(
        addresses in prop::array::uniform4(address()), file_bytes: u64, checkpoint_bytes: u64,
    ) {
        let mut bytes = vec![1];
        addresses.iter().for_each(|address| put_address(&mut bytes, *address));
        put_varint(&mut bytes, file_bytes);
        put_varint(&mut bytes, checkpoint_bytes);
        let [root, alloc, avail, discard] = addresses;
        let cookie = CheckpointCookie { root, alloc, avail, discard, file_bytes, checkpoint_bytes };
        prop_assert_eq!(CheckpointCookie::parse(&bytes, UNIT), Ok(cookie));
        bytes.pop();
        prop_assert!(CheckpointCookie::parse(&bytes, UNIT).is_err());
    }

    #[test]
    fn rows_come_back(rows in rows()) {
        let mut payload = Vec::new();
        let cells = put_leaf_cells(&mut payload, &rows);
        let mut blocks = Blocks::default();
        let root = blocks.page(LEAF, cells, &payload);
        let mut walk =
            TreeWalk::new(root, synthetic::FORMAT, blocks.file_bytes(), Visit::Rows).unwrap();
        walk.supply(&root, blocks.read(&root)).unwrap();
        prop_assert_eq!(walk.rows().unwrap(), rows);
    }

    #[test]
    fn no_text_panics(text in r#"[a-z=,:()\[\]{}"\\0-9.\n é]{0,200}"#) {
        let _ = FileConfig::parse(&text);
        let _ = Turtle::parse(format!("file:WiredTiger.wt\n{text}\n").as_bytes());
        let _ = Metadata::from_backup(text.as_bytes());
        let _ = FileConfig::parse(&format!("checkpoint=(a=(addr=\"{text}\")),app_metadata=({text})"));
    }

    #[test]
    fn no_bytes_panic(
        payload in prop::collection::vec(any::<u8>(), 0..300),
        page_type in 0_u8..9, flags in prop::sample::select(vec![0, 1, 4, 0x20, 0x21]),
        entries in 0_u32..6,
        image_bytes in prop::option::of(any::<u32>()),
    ) {
        let image_bytes = image_bytes.unwrap_or(payload.len() as u32 + 40);
        let bytes = synthetic::block(page_type, flags, entries, image_bytes, &payload);
        let checksum = u32::from_le_bytes(bytes[32..36].try_into().unwrap());
        let root = BlockAddress { offset: 4096, length: bytes.len() as u32, checksum };
        use Compressor::{Lz4, None, Snappy, Zlib, Zstd};
        for compressor in [None, Snappy, Zlib, Zstd, Lz4] {
            let format = BlockFormat { allocation_bytes: UNIT, compressor };
            walk_anything(root, format, &bytes, Visit::InternalPages);
            walk_anything(root, format, &bytes, Visit::Rows);
        }
        let _ = ExtentList::parse(&root, &bytes, 1 << 30);
        let _ = CheckpointCookie::parse(&payload, UNIT);
        let rows = [(b"table:x".to_vec(), payload)];
        let _ = catalogue::Catalogue::from_rows(&rows);
        let _ = size_storer::parse(&rows);
    }
}
