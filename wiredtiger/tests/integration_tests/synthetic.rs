//! Files made up block by block, right and wrong.

use std::collections::BTreeMap;

use seekscope_wiredtiger::{BlockAddress, BlockFormat, Compressor, block};

pub(crate) const UNIT: u32 = 4096;
pub(crate) const FORMAT: BlockFormat = BlockFormat {
    allocation_bytes: UNIT,
    compressor: Compressor::None,
};
pub(crate) const EXTENT_LIST: u8 = 1;
pub(crate) const OVERFLOW: u8 = 5;
pub(crate) const INTERNAL: u8 = 6;
pub(crate) const LEAF: u8 = 7;

/// Descriptors of address cells.
pub(crate) const TO_INTERNAL: u8 = 0x10;
pub(crate) const TO_LEAF: u8 = 0x20;

pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..64 => out.push(0x80 | value as u8),
        64..8256 => out.extend([0xC0 | ((value - 64) >> 8) as u8, (value - 64) as u8]),
        _ => {
            let bytes = (value - 8256).to_be_bytes();
            let zeros = bytes.iter().take(7).take_while(|&&byte| byte == 0).count();
            out.push(0xE8 - zeros as u8);
            out.extend(&bytes[zeros..]);
        }
    }
}

pub(crate) fn cookie(address: &BlockAddress) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, address.offset / u64::from(UNIT) - 1);
    put_varint(&mut out, u64::from(address.length / UNIT));
    put_varint(&mut out, u64::from(address.checksum));
    out
}

/// Appends the cells of a child: an eight-byte key and the address.
pub(crate) fn put_child(out: &mut Vec<u8>, descriptor: u8, key: u64, address: &BlockAddress) {
    out.push(8 << 2 | 1);
    out.extend(key.to_be_bytes());
    let cookie = cookie(address);
    out.push(descriptor);
    put_varint(out, cookie.len() as u64);
    out.extend(cookie);
}

/// A block of whole units with the right checksum. `plain`: a page's image after its header.
pub(crate) fn block(
    page_type: u8,
    page_flags: u8,
    entries: u32,
    image_bytes: u32,
    stored: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[16..20].copy_from_slice(&image_bytes.to_le_bytes());
    bytes[20..24].copy_from_slice(&entries.to_le_bytes());
    bytes[24] = page_type;
    bytes[25] = page_flags;
    bytes[36] = 1;
    bytes.extend(stored);
    bytes.resize(bytes.len().next_multiple_of(UNIT as usize), 0);
    let length = bytes.len() as u32;
    bytes[28..32].copy_from_slice(&length.to_le_bytes());
    let checksum = block::checksum(&bytes, true);
    bytes[32..36].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Blocks by offset; what is not there has never been written.
#[derive(Default)]
pub(crate) struct Blocks {
    pub(crate) blocks: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Blocks {
    /// Space for a block that nobody reads.
    pub(crate) fn reserve(&mut self, length: u32, checksum: u32) -> BlockAddress {
        self.next = self.next.max(UNIT.into());
        let address = BlockAddress {
            offset: self.next,
            length,
            checksum,
        };
        self.next += u64::from(length);
        address
    }

    pub(crate) fn put(&mut self, bytes: Vec<u8>) -> BlockAddress {
        let checksum = u32::from_le_bytes(bytes[32..36].try_into().unwrap());
        let address = self.reserve(bytes.len() as u32, checksum);
        self.blocks.insert(address.offset, bytes);
        address
    }

    /// An uncompressed page.
    pub(crate) fn page(&mut self, page_type: u8, entries: u32, payload: &[u8]) -> BlockAddress {
        self.put(block(
            page_type,
            0,
            entries,
            payload.len() as u32 + 40,
            payload,
        ))
    }

    pub(crate) fn internal(&mut self, descriptor: u8, children: &[BlockAddress]) -> BlockAddress {
        let mut payload = Vec::new();
        for (key, child) in children.iter().enumerate() {
            put_child(&mut payload, descriptor, key as u64, child);
        }
        self.page(INTERNAL, children.len() as u32 * 2, &payload)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.next
    }

    pub(crate) fn read(&self, address: &BlockAddress) -> &[u8] {
        self.blocks
            .get(&address.offset)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// A whole tree over leaves that do not exist. Leaf lengths vary; the root.
    pub(crate) fn tree(&mut self, leaves: u64, children_per_page: usize) -> BlockAddress {
        let mut level: Vec<BlockAddress> = (0..leaves)
            .map(|leaf| self.reserve(UNIT * (7 + leaf as u32 % 3), leaf as u32))
            .collect();
        let mut descriptor = TO_LEAF;
        loop {
            level = level
                .chunks(children_per_page)
                .map(|children| self.internal(descriptor, children))
                .collect();
            descriptor = TO_INTERNAL;
            if let [root] = level[..] {
                return root;
            }
        }
    }
}
