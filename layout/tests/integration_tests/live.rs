//! Walks over databases that a real engine is writing to, with a checkpoint each second.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use seekscope_layout::{DataDirectory, LayoutError, WalkOptions, WalkedFile};
use seekscope_run::layout::DataState;
use seekscope_wiredtiger::block::{BlockHeader, checksum};
use seekscope_wiredtiger::{BlockError, Leaf, Tree, TreeWalk, Visit};

use crate::engines::{Engine, folder};
use crate::real_directory::options;
use crate::walking::{assert_apart, open, walk};

const WALKS: u32 = 500;
const WALK_EVERY: Duration = Duration::from_millis(100);
const FILES: [&str; 2] = ["updated.wt", "append.wt"];

/// The process that writes.
struct Writers {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Writers {
    fn start(engine: Engine, directory: &Path) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        let mut command = engine.script("writers.py", directory);
        let streams = command
            .arg("1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut writers = Self {
            child,
            commands,
            answers,
        };
        assert_eq!(writers.answer(), "ready");
        writers
    }

    fn answer(&mut self) -> String {
        self.answers.next().expect("the writers ended").unwrap()
    }

    fn tell(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        self.answer()
    }

    /// What was written.
    fn stop(mut self) -> String {
        drop(self.commands);
        let said = self.answers.next().unwrap().unwrap();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

/// None of the walks is wrong, and at most one in a hundred has to give up.
#[test]
fn walks_under_heavy_writing_are_right() {
    let folder = folder();
    let directory = folder.path().join("data");
    let writers = Writers::start(Engine::V11_3, &directory);
    let kept = open(&directory);
    assert_eq!(kept.state, DataState::Live);
    let start = Instant::now();
    let (mut succeeded, mut restarts, mut leaves_read, mut checkpoints) = (0, 0, 0, Vec::new());
    for number in 0..WALKS {
        sleep((WALK_EVERY * number).saturating_sub(start.elapsed()));
        let file = FILES[number as usize % 2];
        let anew = (number % 3 == 0).then(|| open(&directory));
        let found = anew.as_ref().unwrap_or(&kept);
        let walked = match found.walk(found.find(file).unwrap(), &options(4)) {
            Err(LayoutError::MovedOn { .. }) => continue,
            other => other.unwrap(),
        };
        assert_accounts(file, &walked);
        if number % 10 < 2 {
            leaves_read += assert_leaves(&directory, file, &walked);
        }
        succeeded += 1;
        restarts += walked.restarts;
        checkpoints.push(walked.checkpoint.unwrap().order);
    }
    let seconds = start.elapsed().as_secs();
    checkpoints.sort_unstable();
    checkpoints.dedup();
    println!(
        "{succeeded} of {WALKS} walks in {seconds} s, {restarts} restarts, {} checkpoints seen, \
         {leaves_read} leaves read; {}",
        checkpoints.len(),
        writers.stop()
    );
    assert!(succeeded * 100 >= WALKS * 99, "{succeeded}");
    assert!(
        checkpoints.len() > 10 && leaves_read > 10_000,
        "{checkpoints:?} {leaves_read}"
    );
}

/// Every byte of the file at that checkpoint is explained: these tables have no overflow values, and
/// the engine noted the size of the tree.
fn assert_accounts(name: &str, walked: &WalkedFile) {
    assert_apart(name, walked);
    let cookie = walked.checkpoint.as_ref().unwrap().cookie.unwrap();
    let leaves: u64 = walked
        .tree
        .leaves
        .iter()
        .map(|leaf| u64::from(leaf.length))
        .sum();
    let tree = leaves + walked.tree.internal_bytes();
    let root = cookie.root.unwrap().length;
    assert_eq!(tree, cookie.checkpoint_bytes + u64::from(root), "{name}");
    let lists = [cookie.alloc, cookie.avail, cookie.discard];
    let lists: u64 = lists
        .iter()
        .flatten()
        .map(|list| u64::from(list.length))
        .sum();
    let free: u64 = walked.free.iter().map(|extent| extent.bytes).sum();
    let description = u64::from(walked.allocation_bytes);
    assert_eq!(
        description + tree + lists + free,
        walked.file_bytes,
        "{name}"
    );
}

/// Reads the leaves themselves, which must be whole and ascend by key, unless the server has moved on
/// since. Returns how many were read.
fn assert_leaves(directory: &Path, name: &str, walked: &WalkedFile) -> usize {
    let file = File::open(directory.join(name)).unwrap();
    let mut before = Vec::new();
    for (number, leaf) in walked.tree.leaves.iter().enumerate() {
        let right = first_key(&file, leaf).filter(|key| *key > before);
        let Some(key) = right else {
            let now = walk(&open(directory), name).checkpoint.unwrap().order;
            let then = walked.checkpoint.as_ref().unwrap().order;
            assert!(
                now > then,
                "{name}: leaf {number} at {} is none",
                leaf.offset
            );
            return number;
        };
        before = key;
    }
    walked.tree.leaves.len()
}

/// The first key on a page that is a leaf of this length, with the right checksum; as it is stored, in
/// which form whole numbers compare like bytes.
fn first_key(file: &File, leaf: &Leaf) -> Option<Vec<u8>> {
    let mut page = vec![0; leaf.length as usize];
    file.read_exact_at(&mut page, leaf.offset).ok()?;
    let header = BlockHeader::read(&page).ok()?;
    let whole = header.checksum == checksum(&page, header.is_checked_whole());
    if !whole || header.disk_bytes != leaf.length || page[24] != 7 {
        return None;
    }
    let cell = &page[40..];
    assert_eq!(cell[0] & 3, 1, "a short key comes first");
    Some(cell[1..=usize::from(cell[0] >> 2)].to_vec())
}

/// What a walk finds with the addresses of a checkpoint that the engine has left behind is never taken
/// for a tree.
#[test]
fn stale_blocks_are_noticed() {
    let folder = folder();
    let directory = folder.path().join("data");
    let writers = Writers::start(Engine::V11_2, &directory);
    let (mut noticed, mut still_there) = (0, 0);
    for number in 0..8 {
        let file = FILES[number % 2];
        let found = open(&directory);
        let fresh = tree_at(&found, &directory, file);
        sleep(Duration::from_millis(2500));
        match (fresh, tree_at(&found, &directory, file)) {
            (_, Err(_)) => noticed += 1,
            (Ok(fresh), Ok(stale)) => {
                assert_eq!(fresh, stale);
                still_there += 1;
            }
            (Err(_), Ok(_)) => panic!("blocks came back"),
        }
    }
    println!(
        "{noticed} stale walks noticed, {still_there} with all pages still there; {}",
        writers.stop()
    );
    // On a busy machine a checkpoint may take longer than the wait.
    assert!(noticed >= 4, "{noticed}");
}

/// A walk by hand, from the address that the directory's file had when it was opened.
fn tree_at(found: &DataDirectory, directory: &Path, name: &str) -> Result<Tree, BlockError> {
    let config = found.find(name).unwrap().config.as_ref().unwrap();
    let cookie = config.newest_checkpoint().unwrap().cookie.unwrap();
    let root = cookie.root.unwrap();
    let mut walk = TreeWalk::new(
        root,
        config.format(),
        cookie.file_bytes,
        Visit::InternalPages,
    )?;
    let file = File::open(directory.join(name)).unwrap();
    while let Some(&block) = walk.wanted().first() {
        let mut page = vec![0; block.length as usize];
        // A file may have become shorter: the rest is then zero.
        let _ = file.read_exact_at(&mut page, block.offset);
        walk.supply(&block, &page)?;
    }
    walk.finish()
}

/// Walks slower than the checkpoints come begin anew, and are right in the end or say that they gave up.
#[test]
fn slow_walks_begin_anew() {
    let folder = folder();
    let directory = folder.path().join("data");
    let writers = Writers::start(Engine::V11_2, &directory);
    let found = open(&directory);
    let (mut restarts, mut gave_up, mut right) = (0, 0, 0);
    thread::scope(|scope| {
        let slow = |number: usize| {
            let reads_per_s = Some([1, 2, 3, 4][number / 2]);
            let table = found.find(FILES[number % 2]).unwrap();
            found.walk(
                table,
                &WalkOptions {
                    reads_per_s,
                    ..options(1)
                },
            )
        };
        let walks: Vec<_> = (0..8)
            .map(|number| scope.spawn(move || slow(number)))
            .collect();
        for (number, walked) in walks.into_iter().enumerate() {
            match walked.join().unwrap() {
                Ok(walked) => {
                    assert_accounts(FILES[number % 2], &walked);
                    restarts += walked.restarts;
                    right += 1;
                }
                Err(LayoutError::MovedOn {
                    restarts: begun, ..
                }) => {
                    restarts += begun;
                    gave_up += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
    // At full speed the same directory is still good.
    for file in FILES {
        assert_accounts(file, &walk(&found, file));
    }
    println!(
        "{right} slow walks right, {gave_up} gave up, {restarts} restarts; {}",
        writers.stop()
    );
    assert!(restarts > 0, "no walk was slow enough");
}

/// An open backup cursor holds its checkpoint: walks do not change while the writing goes on, not even
/// their leaves do, and a copy made meanwhile is what the engine itself finds in it.
#[test]
fn a_backup_stays_as_it_was() {
    let folder = folder();
    let directory = folder.path().join("data");
    let copy = folder.path().join("copy");
    let mut writers = Writers::start(Engine::V11_3, &directory);
    let names = writers.tell("backup");
    assert!(names.contains("updated.wt"), "{names}");
    let found = open(&directory);
    let first = FILES.map(|file| walk(&found, file));
    std::fs::create_dir(&copy).unwrap();
    for name in names.split(' ') {
        std::fs::copy(directory.join(name), copy.join(name)).unwrap();
    }
    for _ in 0..10 {
        sleep(Duration::from_millis(400));
        for (file, first) in FILES.iter().zip(&first) {
            let walked = walk(&open(&directory), file);
            assert_eq!((&walked.tree, walked.restarts), (&first.tree, 0));
            let handle = File::open(directory.join(file)).unwrap();
            let mut keys = walked
                .tree
                .leaves
                .iter()
                .map(|leaf| first_key(&handle, leaf));
            assert!(
                keys.all(|key| key.is_some()),
                "{file}: a leaf of a backup has gone"
            );
        }
    }
    assert_eq!(writers.tell("close"), "closed");
    let later = FILES.map(|file| walk(&open(&directory), file));
    assert!(
        later
            .iter()
            .zip(&first)
            .all(|(later, first)| later.tree != first.tree)
    );
    println!("{}", writers.stop());

    let copied = open(&copy);
    assert_eq!(copied.state, DataState::Backup);
    let truth = Engine::V11_3.verify(&copy);
    for (file, first) in FILES.iter().zip(&first) {
        let walked = walk(&copied, file);
        assert_eq!(walked.tree, first.tree);
        let ours = walked
            .tree
            .leaves
            .iter()
            .map(|leaf| (leaf.offset, leaf.length));
        assert!(
            ours.eq(truth[*file]
                .leaves
                .iter()
                .map(|leaf| (leaf.offset, leaf.length)))
        );
    }
}
