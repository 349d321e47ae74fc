//! A data directory with trees of any size, written as WiredTiger writes (see the parser's
//! FORMAT.md). Leaves without rows are holes of a sparse file: nobody reads them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const UNIT: u64 = 4096;
const LEAF: u64 = 8 * UNIT;
const CHILDREN: usize = 150;
/// Rows of a leaf.
const ROWS: usize = 20;

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
    let leaf = |i| Child {
        offset: UNIT + place(i) * LEAF,
        length: LEAF,
        checksum: 0,
        descriptor: 0x30,
    };
    let above = (0..leaves).map(leaf).collect();
    write_above(&file, name, above, UNIT + leaves * LEAF)
}

/// Writes `NAME.wt` with these rows, whose keys and values end in a zero byte, and returns like
/// [`write`].
pub(crate) fn write_rows(directory: &Path, name: &str, rows: &[(String, String)]) -> String {
    let file = File::create(directory.join(format!("{name}.wt"))).unwrap();
    let (mut end, mut leaves) = (UNIT, Vec::new());
    for rows in rows.chunks(ROWS) {
        let mut cells = Vec::new();
        for (key, value) in rows {
            assert!(key.len() < 63 && value.len() > 63);
            cells.push((key.len() as u8 + 1) << 2 | 1);
            cells.extend([key.as_bytes(), &[0]].concat());
            cells.push(0x80);
            cells.extend(varint(value.len() as u64 + 1 - 64));
            cells.extend([value.as_bytes(), &[0]].concat());
        }
        let page = page(7, rows.len() * 2, &cells);
        file.write_all_at(&page, end).unwrap();
        leaves.push(child(&page, end, 0x30));
        end += page.len() as u64;
    }
    write_above(&file, name, leaves, end)
}

/// The first unit of a file: the magic number, the version 1.0 of the format, and the checksum of the unit.
fn descriptor() -> Vec<u8> {
    let mut unit = vec![0; usize::try_from(UNIT).unwrap()];
    unit[..4].copy_from_slice(&120_897_u32.to_le_bytes());
    unit[4] = 1;
    let checksum = crc32c::crc32c(&unit);
    unit[8..12].copy_from_slice(&checksum.to_le_bytes());
    unit
}

/// Writes the internal pages above `level` from `end` on, and returns the row of the metadata.
fn write_above(file: &File, name: &str, mut level: Vec<Child>, mut end: u64) -> String {
    file.write_all_at(&descriptor(), 0).unwrap();
    loop {
        level = level
            .chunks(CHILDREN)
            .map(|children| {
                let page = internal_page(children);
                file.write_all_at(&page, end).unwrap();
                end += UNIT;
                child(&page, end - UNIT, 0x10)
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

/// Makes this the directory's metadata.
pub(crate) fn write_metadata(directory: &Path, rows: &[(String, String)]) {
    let row = write_rows(directory, "WiredTiger", rows);
    let version = "WiredTiger version\nmajor=10,minor=0,patch=0\n";
    let turtle = format!("{version}{row}");
    fs::write(directory.join("WiredTiger.turtle"), turtle).unwrap();
}

/// Makes these rows a hot backup.
pub(crate) fn write_backup(directory: &Path, rows: &str) {
    fs::write(directory.join("WiredTiger.backup"), rows).unwrap();
}

fn internal_page(children: &[Child]) -> Vec<u8> {
    let mut cells = Vec::new();
    for child in children {
        cells.extend([8 << 2 | 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        let cookie = address(child);
        cells.extend([child.descriptor, 0x80 + u8::try_from(cookie.len()).unwrap()]);
        cells.extend(cookie);
    }
    let page = page(6, children.len() * 2, &cells);
    assert_eq!(page.len() as u64, UNIT);
    page
}

fn child(page: &[u8], offset: u64, descriptor: u8) -> Child {
    Child {
        offset,
        length: page.len() as u64,
        checksum: u32::from_le_bytes(page[32..36].try_into().unwrap()),
        descriptor,
    }
}

/// A block with a page of this kind: 6 is internal, 7 a leaf.
fn page(kind: u8, entries: usize, cells: &[u8]) -> Vec<u8> {
    let mut page = vec![0; 40];
    page.extend(cells);
    let image = u32::try_from(page.len()).unwrap();
    page.resize(page.len().next_multiple_of(UNIT as usize), 0);
    let length = u32::try_from(page.len()).unwrap();
    page[8] = 7;
    page[16..20].copy_from_slice(&image.to_le_bytes());
    page[20..24].copy_from_slice(&u32::try_from(entries).unwrap().to_le_bytes());
    page[24] = kind;
    page[28..32].copy_from_slice(&length.to_le_bytes());
    page[36] = 1;
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
