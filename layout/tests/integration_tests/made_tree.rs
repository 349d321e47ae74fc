//! A data directory with one tree of any size, written as WiredTiger writes (see the parser's
//! FORMAT.md). The leaves are holes of a sparse file: nobody reads them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const UNIT: u64 = 4096;
const LEAF: u64 = 8 * UNIT;
const CHILDREN: usize = 150;

/// Offset, length, checksum; then the kind of its cell.
#[derive(Clone, Copy)]
struct Child {
    offset: u64,
    length: u64,
    checksum: u32,
    descriptor: u8,
}

/// Writes `NAME.wt` with this many leaves of 32 KiB, in the order of `place` (key order to place in
/// the file), and returns the row of the metadata that leads to it.
pub(crate) fn write(
    directory: &Path,
    name: &str,
    leaves: u64,
    place: impl Fn(u64) -> u64,
) -> String {
    let file = File::create(directory.join(format!("{name}.wt"))).unwrap();
    let mut level: Vec<_> = (0..leaves)
        .map(|i| Child {
            offset: UNIT + place(i) * LEAF,
            length: LEAF,
            checksum: 0,
            descriptor: 0x30,
        })
        .collect();
    let mut end = UNIT + leaves * LEAF;
    loop {
        level = level
            .chunks(CHILDREN)
            .map(|children| {
                let page = internal_page(children);
                file.write_all_at(&page, end).unwrap();
                end += UNIT;
                Child {
                    offset: end - UNIT,
                    length: UNIT,
                    checksum: u32::from_le_bytes(page[32..36].try_into().unwrap()),
                    descriptor: 0x10,
                }
            })
            .collect();
        if level.len() == 1 {
            break;
        }
    }
    let mut cookie = vec![1];
    cookie.extend(address(&level[0]));
    cookie.extend([0x80; 9]);
    cookie.extend(varint(end));
    cookie.extend(varint(end - 2 * UNIT));
    let cookie: String = cookie.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "file:{name}.wt\nallocation_size=4KB,key_format=q,checkpoint=(WiredTigerCheckpoint.3=(\
         addr=\"{cookie}\",order=3,time=1700000000,write_gen=7))\n"
    )
}

/// Makes these rows a hot backup.
pub(crate) fn write_backup(directory: &Path, rows: &str) {
    fs::write(directory.join("WiredTiger.backup"), rows).unwrap();
}

fn internal_page(children: &[Child]) -> Vec<u8> {
    let mut page = vec![0; 40];
    for child in children {
        page.extend([8 << 2 | 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let cookie = address(child);
        page.extend([child.descriptor, 0x80 + u8::try_from(cookie.len()).unwrap()]);
        page.extend(cookie);
    }
    let image = u32::try_from(page.len()).unwrap();
    assert!(u64::from(image) <= UNIT);
    page[8] = 7;
    page[16..20].copy_from_slice(&image.to_le_bytes());
    page[20..24].copy_from_slice(&u32::try_from(children.len() * 2).unwrap().to_le_bytes());
    page[24] = 6;
    page[28..32].copy_from_slice(&4096u32.to_le_bytes());
    page[36] = 1;
    page.resize(4096, 0);
    let checksum = crc32c::crc32c(&page);
    page[32..36].copy_from_slice(&checksum.to_le_bytes());
    page
}

fn address(child: &Child) -> Vec<u8> {
    let parts = [
        child.offset / UNIT - 1,
        child.length / UNIT,
        u64::from(child.checksum),
    ];
    parts.into_iter().flat_map(varint).collect()
}

fn varint(value: u64) -> Vec<u8> {
    match value {
        0..64 => vec![0x80 | value as u8],
        64..8256 => {
            let low = value - 64;
            vec![0xc0 | (low >> 8) as u8, low as u8]
        }
        _ => {
            let bytes = (value - 8256).to_be_bytes();
            let zeros = bytes.iter().take_while(|&&b| b == 0).count().min(7);
            let mut packed = vec![0xe0 | (8 - zeros) as u8];
            packed.extend(&bytes[zeros..]);
            packed
        }
    }
}
