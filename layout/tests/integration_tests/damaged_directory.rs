//! Directories with bytes changed here and there: what is still read is true, all else is an error
//! that names a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use seekscope_layout::{DataDirectory, walk_lone};
use seekscope_stats::SplitMix64;
use serde_json::Value;

use crate::access::{leaves, true_leaves};
use crate::real_directory::{GO_ON, RealDirectory, options};

const CASES: u64 = 150;

#[test]
fn damage_is_an_error_or_does_not_matter() {
    let real = RealDirectory::unpack("snappy42");
    let files = real.expected["files"].as_object().unwrap();
    let own = [
        "WiredTiger.turtle",
        "WiredTiger.wt",
        "_mdb_catalog.wt",
        "sizeStorer.wt",
    ];
    let mut names: Vec<_> = files.keys().map(String::as_str).collect();
    // The directory's own files are damaged as often as all others.
    names.extend(own.iter().cycle().take(names.len()));
    let mut random = SplitMix64::new(42);
    let mut errors = 0;
    for _ in 0..CASES {
        let name = names[random.below(names.len() as u64) as usize];
        let path = real.file(name);
        let before = std::fs::read(&path).unwrap();
        damage(&path, &before, &mut random);
        errors += read_all(&real.path, files);
        if let Err(error) = walk_lone(&path, &options(2)) {
            assert!(error.to_string().contains(name), "{error}");
        }
        std::fs::write(&path, before).unwrap();
    }
    assert!(
        errors > CASES / 4,
        "{errors}: the damage is hardly ever noticed"
    );
    assert_eq!(
        read_all(&real.path, files),
        0,
        "nothing is damaged any more"
    );
}

/// Changes a few bytes, mostly in the first and last pages, or cuts the file off.
fn damage(path: &Path, before: &[u8], random: &mut SplitMix64) {
    let file = File::options().write(true).open(path).unwrap();
    let bytes = before.len() as u64;
    if random.below(8) == 0 {
        return file.set_len(random.below(bytes)).unwrap();
    }
    for _ in 0..=random.below(8) {
        let at = match random.below(3) {
            0 => random.below(bytes.min(16_384)),
            1 => bytes - 1 - random.below(bytes.min(16_384)),
            _ => random.below(bytes),
        };
        file.write_all_at(&[random.below(256) as u8], at).unwrap();
    }
}

/// How many errors there were.
fn read_all(path: &Path, expected: &serde_json::Map<String, Value>) -> u64 {
    let directory = match DataDirectory::open(path, &GO_ON) {
        Ok(directory) => directory,
        Err(error) => {
            assert!(error.to_string().contains("WiredTiger"), "{error}");
            return 1;
        }
    };
    let mut errors = directory.unreadable_names.len() as u64;
    for table in directory.tables() {
        match (
            directory.walk(table, &options(2)),
            expected.get(&table.file),
        ) {
            (Ok(walked), Some(truth)) => assert_eq!(leaves(&walked), true_leaves(truth)),
            (Ok(_), None) => {}
            (Err(error), _) => {
                assert!(error.to_string().contains(&table.file), "{error}");
                errors += 1;
            }
        }
    }
    errors
}
