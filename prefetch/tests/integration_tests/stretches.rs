//! Stretches of a file whose leaves lie in no order.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};
use seekscope_prefetch::stretch_reader::StretchReader;
use seekscope_prefetch::sweep::{Joining, Next, Place, Stretch, Sweep};
use seekscope_run::page_cache::{evict, resident_bytes};
use seekscope_stats::shuffled::distinct;
use seekscope_wiredtiger::{Leaf, LeafKind};

const LEAF: u32 = 32 << 10;
const LEAVES: u64 = 256;

/// A file of leaves, none of them cached, and the leaves in a key order that is none on disk. Every
/// second place is free.
struct Shuffled {
    folder: tempfile::TempDir,
    file: Arc<File>,
    leaves: Vec<Leaf>,
}

impl Shuffled {
    fn new() -> Self {
        // A tmpfs holds its pages whatever one advises; cargo's folder lies on the disk of the build.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("collection.wt");
        let mut written = File::create(&path).unwrap();
        let block: Vec<u8> = (0..LEAF).map(|i| i as u8).collect();
        for _ in 0..LEAVES * 2 {
            written.write_all(&block).unwrap();
        }
        written.sync_all().unwrap();
        let file = File::open(&path).unwrap();
        fadvise(&file, 0, None, Advice::Random).unwrap();
        let leaf = |slot: u64| Leaf {
            offset: slot * 2 * u64::from(LEAF),
            length: LEAF,
            kind: LeafKind::Plain,
        };
        let leaves = distinct(LEAVES, LEAVES, 11).into_iter().map(leaf).collect();
        let shuffled = Self {
            folder,
            file: Arc::new(file),
            leaves,
        };
        shuffled.make_cold();
        shuffled
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("collection.wt")
    }

    fn bytes(&self) -> u64 {
        self.file.metadata().unwrap().len()
    }

    fn make_cold(&self) {
        let cold = (0..100).any(|_| {
            evict(&*self.file, 0, 0).unwrap();
            self.cached() == 0
        });
        assert!(cold, "the file stays in memory: is the build on a tmpfs?");
    }

    fn cached(&self) -> u64 {
        resident_bytes(&*self.file, 0, self.bytes()).unwrap()
    }

    fn is_cached(&self, offset: u64, length: u64) -> bool {
        resident_bytes(&*self.file, offset, length).unwrap() == length
    }

    /// Given back pages may be held by the kernel's own lists for a moment.
    fn holds_only(&self, expected: u64) -> bool {
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            self.cached() == expected
        })
    }

    fn reader(&self) -> StretchReader {
        StretchReader::new(Arc::clone(&self.file), 1 << 20)
    }

    fn places(&self) -> Vec<Place> {
        let place = |leaf: &Leaf| Place {
            offset: leaf.offset,
            length: leaf.length,
        };
        self.leaves.iter().map(place).collect()
    }
}

fn joining(gap_bytes: u64) -> Joining {
    Joining {
        gap_bytes,
        stretch_bytes: 2 << 20,
    }
}

/// Reads all that is to be read now; returns the stretches.
fn read_window(shuffled: &Shuffled, sweep: &mut Sweep, gap_bytes: u64) -> Vec<Stretch> {
    let mut reader = shuffled.reader();
    let mut read = Vec::new();
    while let Next::Read(stretch) = sweep.next(joining(gap_bytes)) {
        let outcome = reader.read(&stretch).unwrap();
        let late = sweep.done(&stretch, &outcome.ours);
        assert!(late.is_empty());
        read.push(stretch);
    }
    read
}

#[test]
fn wanted_pages_are_there_and_bridged_gaps_are_not() {
    let shuffled = Shuffled::new();
    let quarter = LEAVES * u64::from(LEAF) / 4;
    let mut sweep = Sweep::new(&shuffled.leaves, quarter).unwrap();
    let stretches = read_window(&shuffled, &mut sweep, 1 << 20);
    assert!(
        stretches.len() < 20,
        "gaps were joined: {}",
        stretches.len()
    );
    let read: Vec<Place> = stretches.iter().flat_map(|s| s.leaves.clone()).collect();
    for leaf in &read {
        assert!(
            shuffled.is_cached(leaf.offset, leaf.length.into()),
            "{leaf:?}"
        );
    }
    assert_eq!(sweep.held_bytes(), read.len() as u64 * u64::from(LEAF));
    assert!(sweep.held_bytes() <= quarter + (2 << 20));
    assert!(
        shuffled.holds_only(sweep.held_bytes()),
        "{} cached",
        shuffled.cached()
    );
    // And the next leaves of the scan are among them.
    let places = shuffled.places();
    assert!(
        places[..8]
            .iter()
            .filter(|place| read.contains(place))
            .count()
            >= 6
    );
}

#[test]
fn what_was_cached_stays_and_is_not_given_back() {
    let shuffled = Shuffled::new();
    // A leaf and a page in a gap are somebody else's.
    let others = shuffled.leaves[3];
    let gap = shuffled.leaves[10].offset + u64::from(LEAF);
    let mut bytes = vec![0; LEAF as usize];
    shuffled
        .file
        .read_exact_at(&mut bytes, others.offset)
        .unwrap();
    shuffled
        .file
        .read_exact_at(&mut bytes[..4096], gap)
        .unwrap();
    let before = shuffled.cached();
    assert_eq!(before, u64::from(LEAF) + 4096);

    let quarter = LEAVES * u64::from(LEAF) / 4;
    let mut sweep = Sweep::new(&shuffled.leaves, quarter).unwrap();
    read_window(&shuffled, &mut sweep, 1 << 20);
    // The leaf is not ours: it does not count.
    assert!(shuffled.holds_only(sweep.held_bytes() + before));
    let reader = shuffled.reader();
    reader.give_back(&sweep.advance(LEAVES as usize)).unwrap();
    assert_eq!(sweep.held_bytes(), 0);
    assert!(
        shuffled.holds_only(before),
        "{} of {before}",
        shuffled.cached()
    );
    assert!(shuffled.is_cached(others.offset, LEAF.into()) && shuffled.is_cached(gap, 4096));
}

#[test]
fn a_scan_finds_every_leaf_that_was_read_ahead_of_it() {
    let shuffled = Shuffled::new();
    let memory = LEAVES * u64::from(LEAF) / 4;
    let mut sweep = Sweep::new(&shuffled.leaves, memory).unwrap();
    let places = shuffled.places();
    let (mut hits, mut most) = (0, 0);
    for (ordinal, leaf) in places.iter().enumerate() {
        if ordinal % 16 == 0 {
            read_window(&shuffled, &mut sweep, 256 << 10);
            most = most.max(shuffled.cached());
        }
        hits += u64::from(shuffled.is_cached(leaf.offset, leaf.length.into()));
        let mut bytes = vec![0; LEAF as usize];
        shuffled
            .file
            .read_exact_at(&mut bytes, leaf.offset)
            .unwrap();
        let passed = sweep.advance(ordinal + 1);
        shuffled.reader().give_back(&passed).unwrap();
        if passed.is_empty() {
            // The server's own miss: nobody but this test gives it back.
            shuffled.reader().give_back(&[*leaf]).unwrap();
        }
    }
    assert!(hits > LEAVES * 9 / 10, "{hits} of {LEAVES}");
    assert!(most <= memory + (2 << 20), "{most} of {memory}");
}

#[test]
fn nothing_is_written() {
    let shuffled = Shuffled::new();
    let before = shuffled.path().metadata().unwrap();
    let content = std::fs::read(shuffled.path()).unwrap();
    shuffled.make_cold();
    let mut sweep = Sweep::new(&shuffled.leaves, u64::MAX).unwrap();
    read_window(&shuffled, &mut sweep, 1 << 20);
    shuffled.reader().give_back(&shuffled.places()).unwrap();
    let after = shuffled.path().metadata().unwrap();
    assert_eq!(
        (before.mtime_nsec(), before.ctime_nsec(), before.len()),
        (after.mtime_nsec(), after.ctime_nsec(), after.len())
    );
    assert_eq!(std::fs::read(shuffled.path()).unwrap(), content);
}

/// The server may shorten the file, and a damaged tree may name anything.
#[test]
fn blocks_that_are_not_there_do_no_harm() {
    let shuffled = Shuffled::new();
    let mut reader = shuffled.reader();
    let at = |offset, length| Stretch {
        leaves: vec![Place { offset, length }],
    };
    shorten(&shuffled.path(), u64::from(LEAF));
    let gone = reader.read(&at(10 * u64::from(LEAF), LEAF)).unwrap();
    assert_eq!(gone.bytes, 0);
    let partly = reader.read(&at(u64::from(LEAF) / 2, LEAF)).unwrap();
    assert_eq!(partly.bytes, u64::from(LEAF) / 2);
    assert!(reader.read(&at(4096, u32::MAX)).is_err());
}

fn shorten(path: &Path, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

/// A leaf that is there already is not read, nor counted as what lay between.
#[test]
fn only_what_was_read_counts() {
    let shuffled = Shuffled::new();
    let mut reader = shuffled.reader();
    let place = |slot: u64| Place {
        offset: slot * u64::from(LEAF),
        length: LEAF,
    };
    reader
        .read(&Stretch {
            leaves: vec![place(0)],
        })
        .unwrap();
    let both = Stretch {
        leaves: vec![place(0), place(8)],
    };
    let read = reader.read(&both).unwrap();
    assert_eq!(read.ours, [place(8)]);
    assert_eq!((read.bytes, read.bridged_bytes), (u64::from(LEAF), 0));
}
