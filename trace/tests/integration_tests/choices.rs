//! Whose I/O and which I/O: sets of processes, control groups, filters, sampling, totals, and the
//! names of files that live shortly.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use seekscope_run::{IoKind, IoOp, PathState, TraceFacts};
use seekscope_trace::{
    BackendChoice, EventSource, Followed, LiveSource, Recording, Sampling, TraceOptions,
};

use crate::jobs::{done, ready};
use crate::known_program::filled;
use crate::support::{BOTH, Collector, Traced, Worker, alone};

const READS: u64 = 64;
const WRITES: u64 = 2;
const PAGE: u64 = 4096;
const PAGE_LENGTH: usize = 4096;

/// What the traced child does: reads, writes and syncs one file, reads another, makes two files
/// that live for microseconds, and has a child read the first.
pub(crate) fn job(folder: &Path) {
    fs::create_dir_all(folder.join("in/deep")).unwrap();
    fs::create_dir_all(folder.join("out")).unwrap();
    let inside = folder.join("in/deep/a.dat");
    let outside = folder.join("out/b.dat");
    filled(&inside, 1 << 18);
    filled(&outside, 1 << 18);
    ready();
    let mut page = [0; PAGE_LENGTH];
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&inside)
        .unwrap();
    (0..READS).for_each(|i| file.read_exact_at(&mut page, i * PAGE).unwrap());
    (0..WRITES).for_each(|i| file.write_all_at(&page, i * PAGE).unwrap());
    file.sync_data().unwrap();
    File::open(&outside)
        .unwrap()
        .read_exact_at(&mut page, 0)
        .unwrap();
    for name in ["short.dat", "second.dat"] {
        let path = folder.join("out").join(name);
        File::create(&path).unwrap().write_all(&page).unwrap();
        fs::remove_file(&path).unwrap();
    }
    let status = Command::new("cat")
        .arg(&inside)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    done();
}

/// Traces the job with options made for its process.
fn traced(folder: &Path, options: impl FnOnce(u32) -> TraceOptions) -> (TraceFacts, Traced) {
    let mut worker = Worker::start("choose", folder);
    let source = LiveSource::attach(&options(worker.pid())).unwrap();
    let sink = Collector::default();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    worker.work();
    let (facts, _) = recording.stop().unwrap();
    assert!(facts.adds_up() && facts.lost == 0, "{facts:?}");
    (facts, sink.take())
}

fn all_kinds(pid: u32) -> TraceOptions {
    TraceOptions {
        kinds: vec![IoKind::Read, IoKind::Write, IoKind::Sync],
        ..TraceOptions::new(pid)
    }
}

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().into()
}

#[test]
fn files_that_live_shortly_have_names_and_records_of_their_own() {
    let _turn = alone();
    for backend in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let (_, traced) = traced(folder.path(), |pid| TraceOptions {
            backend,
            ..all_kinds(pid)
        });
        for name in ["short.dat", "second.dat"] {
            let path = text(folder.path().join("out").join(name));
            let file = traced.files.values().find(|file| file.path == path);
            let file = file.unwrap_or_else(|| panic!("{path}: {:?}", traced.files));
            assert_eq!(file.path_state, PathState::Deleted);
            let ops: Vec<IoOp> = traced.events_on(&path).map(|e| e.op).collect();
            assert_eq!(ops, [IoOp::Write], "{name}");
        }
    }
}

#[test]
fn syncs_are_events_without_offset() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (facts, traced) = traced(folder.path(), |pid| TraceOptions {
        kinds: vec![IoKind::Sync],
        ..TraceOptions::new(pid)
    });
    let [event] = traced.events.as_slice() else {
        panic!("one sync, not {:?}", traced.events)
    };
    assert_eq!(
        (event.op, event.offset, event.result),
        (IoOp::Fdatasync, None, 0)
    );
    assert!(event.latency_ns > 0);
    assert_eq!(
        traced.path(event),
        text(folder.path().join("in/deep/a.dat"))
    );
    assert_eq!(facts.filters, ["only sync calls"]);
}

#[test]
fn a_folder_lets_through_what_lies_below_it() {
    let _turn = alone();
    for backend in BOTH {
        for filter in ["in", "in/deep/a.dat"] {
            let folder = tempfile::tempdir().unwrap();
            let (facts, traced) = traced(folder.path(), |pid| {
                let mut options = TraceOptions {
                    backend,
                    ..all_kinds(pid)
                };
                options.filter.paths.push(folder.path().join(filter));
                options
            });
            assert_eq!(facts.seen, READS + WRITES + 1, "{filter}");
            let inside = text(folder.path().join("in/deep/a.dat"));
            assert!(traced.events.iter().all(|e| traced.path(e) == inside));
        }
    }
}

#[test]
fn other_filesystems_and_quick_calls_pass_by() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let seen = |path: Option<&Path>, latency_min| {
        let (facts, _) = traced(folder.path(), |pid| {
            let mut options = all_kinds(pid);
            options
                .filter
                .devices_of
                .extend(path.map(Path::to_path_buf));
            options.filter.latency_min = latency_min;
            options
        });
        facts.seen
    };
    let everything = seen(None, Duration::ZERO);
    assert!(everything >= READS + WRITES + 4);
    assert_eq!(seen(Some(folder.path()), Duration::ZERO), everything);
    assert_eq!(seen(Some(Path::new("/proc")), Duration::ZERO), 0);
    assert_eq!(seen(None, Duration::from_secs(60)), 0);
}

#[test]
fn a_sample_keeps_the_same_regions_every_time() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let offsets = || -> BTreeSet<u64> {
        let (_, traced) = traced(folder.path(), |pid| TraceOptions {
            sampling: Some(Sampling {
                one_in: 4,
                region_bytes: 2 * PAGE,
            }),
            ..TraceOptions::new(pid)
        });
        let inside = text(folder.path().join("in/deep/a.dat"));
        let reads = traced.events_on(&inside).filter(|e| e.op == IoOp::Pread);
        reads.filter_map(|e| e.offset).collect()
    };
    let first = offsets();
    assert!((4..READS / 2).contains(&(first.len() as u64)), "{first:?}");
    for offset in &first {
        assert!(
            first.contains(&(offset ^ PAGE)),
            "regions are kept whole: {first:?}"
        );
    }
    assert_eq!(first, offsets());
}

#[test]
fn children_are_followed_from_their_birth() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut parent = 0;
    let (_, traced) = traced(folder.path(), |pid| {
        parent = pid;
        TraceOptions::of(Followed::Processes {
            pids: vec![pid],
            children: true,
        })
    });
    let inside = text(folder.path().join("in/deep/a.dat"));
    let of_child = traced.events_on(&inside).filter(|e| e.pid != parent);
    let bytes: u64 = of_child.clone().map(|e| e.bytes()).sum();
    assert_eq!(bytes, 1 << 18, "cat has read all of it");
    let cat = of_child.last().unwrap();
    assert_eq!(traced.threads[&cat.tid].name, "cat");
    assert_eq!(traced.threads[&cat.tid].pid, cat.pid);
    assert!(traced.events_on(&inside).any(|e| e.pid == parent));
}

/// A control group of its own, in whichever hierarchy lets us make one.
struct Group(PathBuf);

impl Group {
    fn new() -> Self {
        let name = format!("seekscope-test-{}", std::process::id());
        let roots = [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/cpu",
            "/sys/fs/cgroup/blkio",
        ];
        let made = roots
            .iter()
            .map(|root| Path::new(root).join(&name))
            .find(|folder| {
                let is_group = |folder: &Path| folder.join("cgroup.procs").exists();
                // Where the hierarchies are mounted below it, the root is a plain folder.
                is_group(folder.parent().unwrap()) && fs::create_dir(folder).is_ok()
            });
        Self(made.unwrap_or_else(|| panic!("the tests need a writable control group hierarchy")))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Empty once its process has ended, which takes a moment.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_control_group_is_followed_with_those_who_join_it() {
    let _turn = alone();
    let group = Group::new();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut workers = folders
        .each_ref()
        .map(|folder| Worker::start("choose", folder.path()));
    let join = |pid: u32| fs::write(group.0.join("cgroup.procs"), pid.to_string()).unwrap();
    join(workers[0].pid());
    let options = TraceOptions::of(Followed::Cgroup(group.0.clone()));
    let source = LiveSource::attach(&options).unwrap();
    let sink = Collector::default();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    workers[0].work();
    join(workers[1].pid());
    // Movers are noticed within a second and a drain.
    std::thread::sleep(Duration::from_millis(2500));
    workers[1].work();
    let (facts, _) = recording.stop().unwrap();
    assert!(facts.adds_up() && facts.lost == 0, "{facts:?}");
    let traced = sink.take();
    for (worker, folder) in workers.iter().zip(&folders) {
        let inside = text(folder.path().join("in/deep/a.dat"));
        let reads = traced.events_on(&inside).filter(|e| e.op == IoOp::Pread);
        assert_eq!(
            reads.filter(|e| e.pid == worker.pid()).count() as u64,
            READS
        );
    }
    drop(workers);
}

#[test]
fn totals_are_what_the_events_would_have_been() {
    let _turn = alone();
    for backend in [BackendChoice::TpBtf, BackendChoice::Tracepoint] {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start("choose", folder.path());
        let mut source = LiveSource::attach(&TraceOptions {
            only_totals: true,
            backend,
            ..all_kinds(worker.pid())
        })
        .unwrap();
        worker.work();
        let mut sink = Collector::default();
        let facts = source.finish(&mut sink).unwrap();
        let totals = source.take_totals(&mut sink).unwrap();
        let traced = sink.take();
        assert!(facts.adds_up() && facts.lost == 0, "{facts:?}");
        assert_eq!(
            facts.written,
            totals.iter().map(|t| t.totals.calls).sum::<u64>()
        );
        assert!(traced.events.is_empty());
        let inside = text(folder.path().join("in/deep/a.dat"));
        let of = |op| {
            let found = totals
                .iter()
                .find(|t| t.op == op && traced.files[&t.file_id].path == inside);
            found.unwrap().totals
        };
        let reads = of(IoOp::Pread);
        assert_eq!(
            (reads.calls, reads.bytes, reads.errors),
            (READS, READS * PAGE, 0)
        );
        assert_eq!(reads.latency_buckets.iter().sum::<u64>(), READS);
        assert_eq!(reads.hits + reads.misses + reads.waited_for_others, READS);
        assert_eq!(
            (of(IoOp::Pwrite).calls, of(IoOp::Fdatasync).calls),
            (WRITES, 1)
        );
        assert!(reads.latency_ns > 0);
    }
}

/// A shell that writes by itself what it is told to.
struct Writer {
    shell: std::process::Child,
}

impl Writer {
    fn start(folder: &Path) -> Self {
        let shell = Command::new("sh")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { shell }
    }

    fn run(&mut self, line: &str) {
        writeln!(self.shell.stdin.as_mut().unwrap(), "{line}; echo done").unwrap();
        let mut said = [0; 5];
        std::io::Read::read_exact(self.shell.stdout.as_mut().unwrap(), &mut said).unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_file_that_takes_over_an_inode_number_has_only_its_own_totals() {
    use std::os::unix::fs::MetadataExt;
    let _turn = alone();
    // Whether a number is given out again is up to the file system; ext4 takes the first that is free.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut writer = Writer::start(folder.path());
    let mut source = LiveSource::attach(&TraceOptions {
        only_totals: true,
        ..all_kinds(writer.shell.id())
    })
    .unwrap();
    let mut sink = Collector::default();
    let inode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().ino();
    let mut written = |source: &mut LiveSource| -> Vec<(u32, u64, u64)> {
        source.drain(&mut sink).unwrap();
        let totals = source.take_totals(&mut sink).unwrap();
        let written = totals
            .iter()
            .filter(|t| t.op == IoOp::Write && t.totals.calls > 0);
        let written = written.map(|t| (t.file_id, t.totals.calls, t.totals.bytes));
        written.collect()
    };
    writer.run("for i in 1 2 3 4 5 6 7; do echo first; done > a");
    let first = written(&mut source);
    let [(first_id, 7, 42)] = first.as_slice() else {
        panic!("{first:?}");
    };
    assert_eq!(written(&mut source), [], "nothing since");
    let number = inode("a");
    writer.run("rm a; echo second > b");
    assert_eq!(
        inode("b"),
        number,
        "the file system gave out another number"
    );
    let second = written(&mut source);
    let [(second_id, 1, 7)] = second.as_slice() else {
        panic!("{second:?}");
    };
    assert_ne!(first_id, second_id);
}
