//! Damaged directories and files: nothing panics, hangs or takes more than 512 MB, and what is said
//! names the file and what is wrong with it. In processes of their own, whose memory is limited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};
use seekscope_layout::{DataDirectory, LayoutError, walk_lone};
use seekscope_stats::SplitMix64;
use seekscope_wiredtiger::Tree;

use crate::damage::{Damage, Original};
use crate::engines::{Engine, copy_of, folder};
use crate::real_directory::{GO_ON, options};
use crate::walking::{open, walk};

/// A damage is looked at several times, half a second long, in case a server moved on: so most of the
/// time is waiting, which many processes do at once. SEEKSCOPE_TEST_DAMAGES asks for more.
const DAMAGES: u64 = 1000;
const PROCESSES: u64 = 20;
const MEMORY_MAX_BYTES: u64 = 512 << 20;
const TABLES: [&str; 6] = [
    "one_leaf",
    "text_keys",
    "index",
    "snappy_index",
    "zlib_index",
    "zstd_index",
];
const TURTLE: &str = "WiredTiger.turtle";
const METADATA: &str = "WiredTiger.wt";

#[test]
fn damage_is_told_by_file_and_reason() {
    let folder = folder();
    let directory = folder.path().join("data");
    Engine::V11_3.make(&directory, 4, &TABLES);
    let damages = std::env::var("SEEKSCOPE_TEST_DAMAGES").map_or(DAMAGES, |n| n.parse().unwrap());
    let share = damages.div_ceil(PROCESSES);
    let worker = |number: u64| {
        let copy = copy_of(&directory);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["corrupted::worker", "--exact", "--ignored", "--nocapture"])
            // Further arenas of the allocator would reserve addresses, which are what is limited.
            .env("MALLOC_ARENA_MAX", "1")
            .env(
                "SEEKSCOPE_TEST_DAMAGE",
                format!("{} {share}", number * share),
            )
            .env("SEEKSCOPE_TEST_DIRECTORY", copy.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().take(3).collect::<Vec<_>>();
        assert!(output.status.success(), "{last:?} {errors}");
        said
    };
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..PROCESSES)
            .map(|n| scope.spawn(move || worker(n)))
            .collect();
        for worker in workers {
            counts.add(&worker.join().unwrap());
        }
    });
    println!("{counts:?}");
    assert!(
        counts.damages >= damages && counts.refused * 3 > damages,
        "{counts:?}"
    );
    assert!(counts.under_checksums > damages / 20, "{counts:?}");
}

#[derive(Debug, Default)]
struct Counts {
    damages: u64,
    /// How many of these were noticed, and how many have a correct checksum.
    refused: u64,
    under_checksums: u64,
}

impl Counts {
    fn add(&mut self, said: &str) {
        let line = said.lines().find_map(|line| line.strip_prefix("counts "));
        let numbers = line
            .unwrap()
            .split(' ')
            .map(|number| number.parse::<u64>().unwrap());
        let numbers: Vec<_> = numbers.collect();
        self.damages += numbers[0];
        self.refused += numbers[1];
        self.under_checksums += numbers[2];
    }
}

/// The process that looks at damaged files; `damage_is_told_by_file_and_reason` starts it.
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn worker() {
    let limit = Rlimit {
        current: Some(MEMORY_MAX_BYTES),
        maximum: Some(MEMORY_MAX_BYTES),
    };
    setrlimit(Resource::As, limit).unwrap();
    let range = std::env::var("SEEKSCOPE_TEST_DAMAGE").unwrap();
    let (first, count) = range.split_once(' ').unwrap();
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    let directory = PathBuf::from(std::env::var("SEEKSCOPE_TEST_DIRECTORY").unwrap());
    let patient = Patient::new(&directory);
    let mut counts = Counts::default();
    for seed in first..first + count {
        println!("seed {seed}");
        let mut random = SplitMix64::new(seed);
        let number = usize::try_from(random.below(patient.files.len() as u64)).unwrap();
        let file = &patient.files[number];
        let (damage, bytes) = file.damaged(&mut random);
        std::fs::write(directory.join(&file.name), bytes).unwrap();
        counts.refused += u64::from(patient.examine(file, damage));
        counts.damages += 1;
        counts.under_checksums += u64::from(damage == Damage::UnderItsChecksum);
        std::fs::write(directory.join(&file.name), &file.bytes).unwrap();
    }
    println!(
        "\ncounts {} {} {}",
        counts.damages, counts.refused, counts.under_checksums
    );
}

/// A directory, and what is in it while it is healthy.
struct Patient {
    directory: PathBuf,
    files: Vec<Original>,
    trees: BTreeMap<String, Tree>,
}

impl Patient {
    fn new(directory: &Path) -> Self {
        let found = open(directory);
        let tables = found.tables().iter().map(|table| table.file.clone());
        let tables: Vec<_> = tables.collect();
        let names = tables.iter().map(String::as_str).chain([TURTLE, METADATA]);
        let files = names.map(|name| {
            let bytes = std::fs::read(directory.join(name)).unwrap();
            Original::new(name, bytes, name == METADATA)
        });
        Self {
            directory: directory.into(),
            files: files.collect(),
            trees: tables
                .iter()
                .map(|t| (t.clone(), walk(&found, t).tree))
                .collect(),
        }
    }

    /// Whether the damage was noticed.
    fn examine(&self, file: &Original, damage: Damage) -> bool {
        let path = self.directory.join(&file.name);
        if file.name != TURTLE
            && let Err(error) = walk_lone(&path, &options(1))
        {
            self.assert_told(&error, file);
        }
        let found = match DataDirectory::open(&self.directory, &GO_ON) {
            Ok(found) => found,
            Err(error) => {
                self.assert_told(&error, file);
                return true;
            }
        };
        // The turtle has no checksum, so what it says is believed as long as it makes sense.
        let told_truth = file.name != TURTLE && damage != Damage::UnderItsChecksum;
        let mut refused = false;
        for table in found.tables() {
            match found.walk(table, &options(1)) {
                Ok(walked) if told_truth => {
                    assert!(
                        walked.tree == self.trees[&table.file],
                        "{} {damage:?}",
                        table.file
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    self.assert_told(&error, file);
                    refused = true;
                }
            }
        }
        refused
    }

    /// Names a file, and where a block is at fault its place.
    fn assert_told(&self, error: &LayoutError, damaged: &Original) {
        let text = error.to_string();
        let metadata = [TURTLE, METADATA].contains(&damaged.name.as_str());
        let named = self.files.iter().any(|file| text.contains(&file.name));
        assert!(
            text.contains(&damaged.name) || metadata && named,
            "{}: {text}",
            damaged.name
        );
        let block = match error {
            LayoutError::Damaged { source, .. } => matches!(**source, LayoutError::Block { .. }),
            other => matches!(other, LayoutError::Block { .. }),
        };
        assert!(!block || text.contains("block at "), "{text}");
    }
}
