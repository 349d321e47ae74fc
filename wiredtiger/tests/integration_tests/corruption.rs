//! Ten thousand damaged files, all the way from the turtle file to the tree and the free space: an
//! answer or an error each time, within bounded memory.
//!
//! Checksums would keep nearly all damage away from the parsers behind them. So half of the damaged
//! blocks get four bytes that make the checksum right again.

use std::ops::Range;

use seekscope_wiredtiger::block::BlockHeader;
use seekscope_wiredtiger::lone::LoneScan;
use seekscope_wiredtiger::{BlockFault, ExtentList, Visit};

use crate::MEMORY;
use crate::directory::{Directory, Files, ReadError, block, walk};
use crate::forgery::forge_checksum;
use crate::mongod::skeleton;

const ROUNDS: usize = 10_000;
const MEMORY_BYTES: usize = 512 << 20;

/// SplitMix64: the same damage in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Blocks that are read, by their headers.
fn blocks_of(file: &[u8]) -> Vec<Range<usize>> {
    let length = |at: usize| {
        let header = BlockHeader::read(&file[at..]).ok()?;
        let length = header.disk_bytes as usize;
        let is_read = matches!(header.page_type, 1 | 5 | 6 | 7) && length >= 4096;
        (is_read && at + length <= file.len()).then_some(at..at + length)
    };
    (4096..file.len())
        .step_by(4096)
        .filter_map(length)
        .collect()
}

fn damage(bytes: &mut [u8], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = [0, 0x7f, 0x80, 0xdf, 0xe1, 0xe8, 0xff][random.below(7)],
            3 => {
                let end = bytes.len().min(at + 1 + random.below(64));
                bytes[at..end].fill(random.next() as u8);
            }
            _ => {
                let length = 1 + random.below(64.min(bytes.len() / 2));
                let (from, to) = (random.below(bytes.len() / 2 - length / 2), at);
                let copied = bytes[from..from + length].to_vec();
                let end = bytes.len().min(to + length);
                bytes[to..end].copy_from_slice(&copied[..end - to]);
            }
        }
    }
}

/// Damages a file somewhere, mostly in the used part of a block.
fn corrupt(file: &mut Vec<u8>, blocks: &[Range<usize>], random: &mut Random) {
    let how = random.below(16);
    if blocks.is_empty() || how == 0 {
        damage(file, random);
    } else if how == 1 {
        file.truncate(random.below(file.len()));
    } else {
        let block = &mut file[blocks[random.below(blocks.len())].clone()];
        let checksum = u32::from_le_bytes(block[32..36].try_into().unwrap());
        let image = u32::from_le_bytes(block[16..20].try_into().unwrap()) as usize;
        let used = image.clamp(64, block.len());
        let from = if random.below(4) == 0 { 0 } else { 40 };
        damage(&mut block[from..used], random);
        if random.below(4) > 0 {
            forge_checksum(block, checksum);
        }
    }
}

/// The whole way that leads to the file `name`.
fn read_all(files: &Files, name: &str) -> Result<(), ReadError> {
    let directory = Directory::open(files)?;
    directory.walk(name)?;
    Ok(())
}

/// What a reader of the lone file would do.
fn read_lone(file: &[u8]) {
    let mut scan = LoneScan::new(file.len() as u64);
    let Ok(()) = scan.feed(file) else { return };
    let Ok(mut search) = scan.finish() else {
        return;
    };
    while let Some(address) = search.wanted().first().copied() {
        search.supply(&address, block(file, &address));
    }
    for tree in search.finish().unwrap_or_default() {
        if let Some(root) = tree.root {
            let found = walk(
                file,
                root,
                tree.format,
                tree.file_bytes,
                Visit::InternalPages,
            );
            let _ = found.map(|(walk, _)| walk.finish());
        }
        if let Some(avail) = tree.avail {
            let _ = ExtentList::parse(&avail, block(file, &avail), tree.file_bytes);
        }
    }
}

#[derive(Debug, Default)]
struct Outcomes {
    read: usize,
    stale: usize,
    malformed: usize,
    other_faults: usize,
    text: usize,
}

impl Outcomes {
    fn count(&mut self, result: &Result<(), ReadError>) {
        *match result {
            Ok(()) => &mut self.read,
            Err(ReadError::Block(_, error)) if error.may_be_stale() => &mut self.stale,
            Err(ReadError::Block(_, error)) => {
                assert!(
                    error
                        .to_string()
                        .contains(&error.address.offset.to_string())
                );
                match error.fault {
                    BlockFault::Malformed(_) => &mut self.malformed,
                    _ => &mut self.other_faults,
                }
            }
            Err(_) => &mut self.text,
        } += 1;
    }
}

/// Says which round it was if it panics.
struct Round(usize, String);

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("round {}, file {}", self.0, self.1);
        }
    }
}

#[test]
fn ten_thousand_damaged_files() {
    let mut random = Random(5);
    let mut outcomes = Outcomes::default();
    let before = MEMORY.restart();
    for name in ["none", "snappy42"] {
        let mut files = skeleton(name);
        // Larger ones only add zeros.
        files.retain(|name, file| !name.contains('-') || file.len() < 5 << 20);
        let data: Vec<String> = files
            .keys()
            .filter(|name| name.contains('-'))
            .cloned()
            .collect();
        let system = [
            "WiredTiger.turtle",
            "WiredTiger.wt",
            "_mdb_catalog.wt",
            "sizeStorer.wt",
        ];
        for round in 0..ROUNDS / 2 {
            let walked = &data[random.below(data.len())];
            let name = match random.below(8) {
                few @ 0..4 => system[few],
                _ => walked.as_str(),
            };
            let _round = Round(round, name.to_owned());
            let intact = files[name].clone();
            let blocks = blocks_of(&intact);
            let file = files.get_mut(name).unwrap();
            corrupt(file, &blocks, &mut random);
            outcomes.count(&read_all(&files, walked));
            if round % 4 == 0 {
                read_lone(&files[name]);
            }
            files.insert(name.to_owned(), intact);
        }
    }
    println!("{outcomes:?}");
    // Every kind has to occur, or the test would not test what it says.
    let Outcomes {
        read,
        stale,
        malformed,
        other_faults,
        text,
    } = outcomes;
    for count in [read, stale, malformed, text] {
        assert!(count > ROUNDS / 100, "{outcomes:?}");
    }
    assert!(other_faults > 0, "{outcomes:?}");
    assert!(MEMORY.peak() - before < MEMORY_BYTES);
}
