//! Whole runs on real files, with samples of a few milliseconds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::input::parse;
use super::*;

/// The moment when this many lines match; with 0, the moment before the first line.
type Moment = (fn(&str) -> bool, usize);

/// Collects the output of a run, and can interfere with it.
#[derive(Default)]
struct Transcript {
    lines: Vec<String>,
    notices: Vec<String>,
    cancel_at: Option<Moment>,
    /// Number of the first line that cannot be written.
    broken_at: Option<usize>,
}

struct Recorder<'a>(&'a mut Transcript, &'a AtomicBool);

impl Output for Recorder<'_> {
    fn line(&mut self, text: &str) -> io::Result<()> {
        let transcript = &mut *self.0;
        if transcript.broken_at == Some(transcript.lines.len()) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        transcript.lines.push(text.into());
        if let Some((is_such, times)) = transcript.cancel_at {
            let seen = transcript.lines.iter().filter(|line| is_such(line));
            self.1.fetch_or(seen.count() >= times, Ordering::Relaxed);
        }
        Ok(())
    }

    fn notice(&mut self, text: &str) {
        self.0.notices.push(text.into());
    }
}

impl Transcript {
    fn run(
        &mut self,
        directory: &Path,
        input: &str,
        compat: CompatOptions,
    ) -> Result<Report, MongoperfError> {
        let request = Request {
            sample: Duration::from_millis(4),
            ..Request::new(input.as_bytes(), directory, compat)
        };
        let cancel = AtomicBool::new(self.cancel_at.is_some_and(|(_, times)| times == 0));
        run(&request, &mut Recorder(self, &cancel), &cancel)
    }

    fn count(&self, text: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(text)).count()
    }
}

fn run_in(directory: &Path, input: &str, compat: CompatOptions) -> (Transcript, Report) {
    let mut transcript = Transcript::default();
    let report = transcript.run(directory, input, compat).expect(input);
    (transcript, report)
}

/// Runs until ten samples have seen operations, however slow the disk is.
fn run_until_busy(directory: &Path, input: &str, compat: CompatOptions) -> (Transcript, Report) {
    let busy = |line: &str| line.contains(" ops/sec ") && !line.starts_with("0 ");
    let mut transcript = Transcript {
        cancel_at: Some((busy, 10)),
        ..Transcript::default()
    };
    let forever = CompatOptions {
        forever: true,
        ..compat
    };
    let report = transcript.run(directory, input, forever).expect(input);
    (transcript, report)
}

fn refused(directory: &Path, input: &str, compat: CompatOptions) -> (Transcript, MongoperfError) {
    let mut transcript = Transcript::default();
    let error = transcript.run(directory, input, compat).expect_err(input);
    (transcript, error)
}

/// Returns names, kinds and contents of everything in a directory.
fn listing(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let contents = if kind.is_file() {
            format!("{:?}", fs::read(entry.path()).unwrap())
        } else {
            format!("{kind:?}: {:?}", fs::read_link(entry.path()).ok())
        };
        (entry.file_name().into_string().unwrap(), contents)
    });
    entries.collect()
}

/// A directory with something in it that must not change.
fn inhabited() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(KEPT_NAME), b"somebody's").unwrap();
    fs::write(folder.path().join("collection-0.wt"), b"precious").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    folder
}

/// Returns whether a line is a sample line: whole numbers, and with mmf a space at the end.
fn is_sample(line: &str, mapped: bool) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((operations, rest)) = line.split_once(" ops/sec ") else {
        return false;
    };
    let mb = rest.strip_suffix(" MB/sec").map(number);
    number(operations)
        && if mapped {
            rest.is_empty()
        } else {
            mb == Some(true)
        }
}

/// The expected output of a run.
struct Expected<'a> {
    echo: &'a str,
    file_mb: u32,
    steps: &'a [u32],
    started: &'a str,
    mapped: bool,
}

impl Expected<'_> {
    /// Checks all lines against the grammar in the documentation of the module; returns those of
    /// the summary. Syncs of a mapping may come anywhere after the file was made.
    fn check<'t>(&self, transcript: &'t Transcript) -> Vec<&'t str> {
        let classic = transcript.lines.iter().map(String::as_str);
        let mut lines = classic.filter(|line| !is_sync_line(line));
        let mut next = || lines.next().expect("the transcript goes on");
        for expected in [
            "mongoperf",
            "use -h for help",
            "parsed options:",
            self.echo,
            &format!("creating test file size:{}MB ...", self.file_mb),
            "testing...",
            &format!("options:{}", self.echo),
            &format!("wthr {}", self.steps.last().unwrap()),
        ] {
            assert_eq!(next(), expected);
        }
        let mut running = 0;
        for &threads in self.steps {
            assert_eq!(next(), format!("new thread, total running : {threads}"));
            for _ in running..threads {
                assert_eq!(next(), self.started);
            }
            for _ in 0..8 {
                let line = next();
                assert!(is_sample(line, self.mapped), "{line:?}");
            }
            running = threads;
        }
        assert_eq!(next(), "", "an empty line separates the summary");
        let summary: Vec<&str> = lines.collect();
        for line in &summary {
            assert!(
                !line.contains("ops/sec") && !line.contains("new thread"),
                "{line}"
            );
        }
        assert!(summary[0].starts_with("summary: "), "{summary:?}");
        summary
    }
}

fn is_sync_line(line: &str) -> bool {
    line.strip_prefix(&" ".repeat(53))
        .and_then(|rest| rest.strip_prefix("mmf sync took "))
        .and_then(|rest| rest.strip_suffix("ms"))
        .is_some_and(|ms| ms.parse::<u64>().is_ok())
}

/// The article's inputs, except for the size of the file.
#[test]
fn the_inputs_of_the_article_give_the_documented_transcript() {
    let folder = inhabited();
    let before = listing(folder.path());
    let doubling: Vec<u32> = vec![1, 2, 4, 8, 16, 32];
    for (input, expected) in [
        (
            "{nThreads:32,fileSizeMB:8,r:true}",
            Expected {
                echo: "{ nThreads: 32, fileSizeMB: 8, r: true }",
                file_mb: 8,
                steps: &doubling,
                started: "read:1 write:0",
                mapped: false,
            },
        ),
        (
            "{nThreads:32,fileSizeMB:8,w:true}\n",
            Expected {
                echo: "{ nThreads: 32, fileSizeMB: 8, w: true }",
                file_mb: 8,
                steps: &doubling,
                started: "read:0 write:1",
                mapped: false,
            },
        ),
        (
            "{recSizeKB:8,nThreads:8,fileSizeMB:8,r:true,mmf:true}",
            Expected {
                echo: "{ recSizeKB: 8, nThreads: 8, fileSizeMB: 8, r: true, mmf: true }",
                file_mb: 8,
                steps: &doubling[..4],
                started: "read:1 write:0",
                mapped: true,
            },
        ),
        (
            "{ r: 1, w: 'yes', nThreads: 5, recSizeKB: 1024, sub: { a: 1.5 } } and more",
            Expected {
                echo: "{ r: 1, w: \"yes\", nThreads: 5, recSizeKB: 1024, sub: { a: 1.5 } }",
                file_mb: 1,
                steps: &[1, 2, 4, 5],
                started: "read:1 write:1",
                mapped: false,
            },
        ),
    ] {
        let (transcript, report) = run_in(folder.path(), input, CompatOptions::default());
        let summary = expected.check(&transcript);
        assert_eq!(report.ending, Ending::Complete);
        let threads: Vec<u32> = report.steps.iter().map(|step| step.threads).collect();
        assert_eq!(threads, expected.steps);
        assert!(report.steps.iter().all(|step| step.samples.len() == 8));
        let rows = summary
            .iter()
            .filter(|line| line.starts_with("   "))
            .count();
        let kinds = expected.started.matches('1').count();
        assert_eq!(rows, kinds * expected.steps.len(), "{summary:?}");
        assert!(
            transcript
                .notices
                .iter()
                .any(|text| text.contains("writes"))
        );
    }
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn reads_and_writes_count_each_and_have_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let input = "{r:true,w:true,fileSizeMB:4,recSizeKB:16}";
    let (_, report) = run_until_busy(folder.path(), input, CompatOptions::default());
    assert_eq!(report.operation_bytes, 16 << 10);
    let [step] = &report.steps[..] else {
        panic!("one step: {:?}", report.steps)
    };
    let sum = |of: fn(&Sample) -> u64| step.samples.iter().map(of).sum::<u64>();
    assert_eq!(step.reads.operations, sum(|sample| sample.reads));
    assert_eq!(step.writes.operations, sum(|sample| sample.writes));
    assert!(step.reads.operations.abs_diff(step.writes.operations) <= 2);
    for outcome in [&step.reads, &step.writes] {
        assert!(outcome.operations > 0);
        assert_eq!(outcome.bytes, outcome.operations * (16 << 10));
        let latency = &outcome.latency;
        assert!(latency.count > 0);
        assert!(0 < latency.p50_ns && latency.p50_ns <= latency.p99_ns);
        assert!(latency.p99_ns <= latency.p999_ns);
    }
}

/// The old figure counted every operation as 4 KiB.
#[test]
fn megabytes_are_those_transferred_unless_asked_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let input = "{r:true,fileSizeMB:4,recSizeKB:256}";
    for (mongoperf_mbs, kib) in [(false, 256), (true, 4)] {
        let compat = CompatOptions {
            mongoperf_mbs,
            ..CompatOptions::default()
        };
        let (transcript, _) = run_until_busy(folder.path(), input, compat);
        for line in &transcript.lines {
            if is_sample(line, false) {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |at: usize| words[at].parse::<u64>().unwrap();
                assert_eq!(number(2), number(0) * kib / 1024, "{line}");
            }
        }
    }
}

#[test]
fn forever_goes_on_at_full_threads_until_interrupted() {
    let folder = inhabited();
    let before = listing(folder.path());
    let compat = CompatOptions {
        forever: true,
        ..CompatOptions::default()
    };
    let mut transcript = Transcript {
        cancel_at: Some((|line| line.contains(" ops/sec "), 8 + 20)),
        ..Transcript::default()
    };
    let report = transcript
        .run(folder.path(), "{nThreads:2,r:true}", compat)
        .unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
    assert_eq!(transcript.count(" ops/sec "), 28);
    assert_eq!(report.steps[0].samples.len(), 8);
    assert_eq!(
        report.steps[1].samples.len(),
        21,
        "the interrupted one counts too"
    );
    assert!(transcript.lines.last().unwrap().starts_with("interrupted"));
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn interrupting_leaves_nothing_behind_at_any_time() {
    let folder = inhabited();
    let before = listing(folder.path());
    let moments: [Moment; 7] = [
        (|_| true, 0),
        (|line| line.contains("creating"), 1),
        (|line| line.contains("testing"), 1),
        (|line| line.contains("new thread"), 1),
        (|line| line.contains("read:"), 1),
        (|line| line.contains("read:"), 4),
        (|line| line.contains("ops/sec"), 1),
    ];
    for (number, cancel_at) in moments.into_iter().enumerate() {
        let mut transcript = Transcript {
            cancel_at: Some(cancel_at),
            ..Transcript::default()
        };
        let input = "{nThreads:4,fileSizeMB:4,r:true,w:true,sleepMicros:60000000}";
        let report = transcript.run(folder.path(), input, CompatOptions::default());
        assert_eq!(
            report.unwrap().ending,
            Ending::Interrupted,
            "moment {number}"
        );
        assert_eq!(listing(folder.path()), before);
    }
}

#[test]
fn output_that_cannot_be_written_ends_the_run() {
    let folder = inhabited();
    let before = listing(folder.path());
    let input = "{nThreads:2,r:true,w:true}";
    let (whole, _) = run_in(folder.path(), input, CompatOptions::default());
    let end = whole
        .lines
        .iter()
        .position(|line| line.starts_with("total"));
    for broken_at in 0..=end.unwrap() {
        let mut transcript = Transcript {
            broken_at: Some(broken_at),
            ..Transcript::default()
        };
        let result = transcript.run(folder.path(), input, CompatOptions::default());
        assert!(
            matches!(result, Err(MongoperfError::Output(_))),
            "{broken_at}"
        );
        assert_eq!(transcript.lines.len(), broken_at);
    }
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn a_mapping_is_flushed_and_changed_in_one_byte_of_each_page() {
    let folder = tempfile::tempdir().unwrap();
    let compat = CompatOptions {
        forever: true,
        keep_file: true,
        zero_fill: true,
        ..CompatOptions::default()
    };
    let mut transcript = Transcript {
        cancel_at: Some((is_sync_line, 2)),
        ..Transcript::default()
    };
    let input = "{w:true,mmf:true,syncDelay:1,recSizeKB:6,fileSizeMB:2}";
    let report = transcript.run(folder.path(), input, compat).unwrap();
    assert_eq!(report.ending, Ending::Interrupted);
    assert_eq!(report.operation_bytes, 8192);
    assert!(
        transcript
            .notices
            .iter()
            .any(|text| text.contains("rounded up"))
    );
    assert!(transcript.lines.iter().any(|line| is_sync_line(line)));
    let contents = fs::read(folder.path().join(KEPT_NAME)).unwrap();
    assert_eq!(contents.len(), 2 << 20);
    let changed = |(at, byte): (usize, &u8)| (*byte != 0).then_some((at % 4096, *byte));
    let changes: Vec<_> = contents.iter().enumerate().filter_map(changed).collect();
    assert!(!changes.is_empty());
    assert!(
        changes.iter().all(|change| *change == (0, 3)),
        "{changes:?}"
    );
}

#[test]
fn a_kept_file_has_the_old_name_and_never_replaces_another() {
    let keep = CompatOptions {
        keep_file: true,
        fixed_seed: Some(1),
        ..CompatOptions::default()
    };
    let folder = inhabited();
    let before = listing(folder.path());
    let (_, error) = refused(folder.path(), "{r:true}", keep);
    assert!(matches!(error, MongoperfError::FileExists(_)), "{error}");
    assert_eq!(listing(folder.path()), before);

    let linked = tempfile::tempdir().unwrap();
    let target = linked.path().join("target");
    std::os::unix::fs::symlink(&target, linked.path().join(KEPT_NAME)).unwrap();
    let (_, error) = refused(linked.path(), "{r:true}", keep);
    assert!(matches!(error, MongoperfError::FileExists(_)), "{error}");
    assert!(!target.exists());

    let kept = || {
        let empty = tempfile::tempdir().unwrap();
        run_in(empty.path(), "{r:true,fileSizeMB:3}", keep);
        fs::read(empty.path().join(KEPT_NAME)).unwrap()
    };
    let contents = kept();
    assert_eq!(contents.len(), 3 << 20);
    assert!(
        contents
            .chunks(4096)
            .all(|block| block.iter().any(|&byte| byte != 0))
    );
    assert_eq!(contents, kept(), "the same seed");

    let empty = tempfile::tempdir().unwrap();
    let mut transcript = Transcript {
        cancel_at: Some((|line| line.contains("creating"), 1)),
        ..Transcript::default()
    };
    transcript.run(empty.path(), "{r:true}", keep).unwrap();
    assert!(listing(empty.path()).is_empty(), "half a file is not kept");
}

#[test]
fn zeros_are_written_where_asked_for_and_nowhere_else() {
    for zero_fill in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let compat = CompatOptions {
            keep_file: true,
            zero_fill,
            ..CompatOptions::default()
        };
        let (_, report) = run_until_busy(folder.path(), "{w:true}", compat);
        assert!(report.steps[0].writes.operations > 0);
        let contents = fs::read(folder.path().join(KEPT_NAME)).unwrap();
        let zeros = contents
            .chunks(4096)
            .filter(|block| block.iter().all(|&byte| byte == 0));
        assert_eq!(zeros.count(), if zero_fill { 256 } else { 0 });
    }
}

#[test]
fn without_direct_io_only_on_request() {
    // Every Linux has this tmpfs; it accepts O_DIRECT and caches all the same.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (transcript, error) = refused(folder.path(), "{r:true}", CompatOptions::default());
    let MongoperfError::NoDirectIo(why) = &error else {
        panic!("{error}");
    };
    // Found by looking into the page cache, not by the filesystem's name.
    assert!(why.contains("were in the page cache"), "{why}");
    assert!(error.to_string().contains("--allow-cached"), "{error}");
    assert_eq!(transcript.count("testing"), 0);
    let compat = CompatOptions {
        allow_cached: true,
        ..CompatOptions::default()
    };
    let (transcript, report) = run_in(folder.path(), "{r:true,recSizeKB:3}", compat);
    assert_eq!(
        (report.access, report.operation_bytes),
        ("through the page cache", 3072)
    );
    assert!(
        transcript
            .notices
            .iter()
            .any(|text| text.contains("page cache"))
    );
    let (_, mapped) = run_in(folder.path(), "{r:true,mmf:true}", CompatOptions::default());
    assert!(mapped.mapped);
    assert!(listing(folder.path()).is_empty());
}

#[test]
fn wrong_input_is_told_and_nothing_is_made() {
    let folder = inhabited();
    let before = listing(folder.path());
    let none = "error no options found on stdin for mongoperf";
    let unreadable = "couldn't parse json options. input was:";
    for (input, last_lines, code, told) in [
        ("", &[none][..], 1, "standard input"),
        (" \n", &[none], 1, "standard input"),
        ("\0{r:true}", &[none], 1, "standard input"),
        ("{r:tru}", &[unreadable, "|{r:tru}|"], 1, "line 1, byte 4"),
        (
            "{\n r: true",
            &[unreadable, "|{r:true|"],
            1,
            "ends in the middle",
        ),
        ("{}", &["parsed options:", "{}"], 1, "one of r and w"),
        (
            "{r:true,nThreads:32.0}",
            &["parsed options:", "{ r: true, nThreads: 32.0 }"],
            1,
            "whole number",
        ),
        (
            "{r:true,nThreads:-1}",
            &["parsed options:", "{ r: true, nThreads: -1 }"],
            2,
            "from 1 to 4096",
        ),
        (
            "{r:true,recSizeKB:2000}",
            &["parsed options:", "{ r: true, recSizeKB: 2000 }"],
            2,
            "does not fit",
        ),
        (
            "{r:true,nThreads:0}",
            &["{ r: true, nThreads: 0 }", "bad threads field value"],
            2,
            "at least 1",
        ),
        (
            "{r:true,fileSizeMB:1000000000}",
            &["creating test file size:1000000000MB ..."],
            1,
            "fileSizeMB",
        ),
    ] {
        let (transcript, error) = refused(folder.path(), input, CompatOptions::default());
        assert!(
            transcript.lines.ends_with(
                &last_lines
                    .iter()
                    .map(|&l| l.into())
                    .collect::<Vec<String>>()
            ),
            "{input}: {:?}",
            transcript.lines
        );
        assert_eq!(transcript.lines[..2], ["mongoperf", "use -h for help"]);
        assert_eq!(error.exit_code(), code, "{input}");
        assert!(error.to_string().contains(told), "{input}: {error}");
        assert_eq!(listing(folder.path()), before);
    }
    let compat = CompatOptions {
        zero_threads_ok: true,
        ..CompatOptions::default()
    };
    let (transcript, report) = run_in(folder.path(), "{r:true,nThreads:0}", compat);
    assert_eq!(transcript.lines.last().unwrap(), "bad threads field value");
    assert!(report.steps.is_empty());
    assert_eq!(listing(folder.path()), before);
}

#[test]
fn unsuitable_directories_are_told() {
    let folder = inhabited();
    let file = folder.path().join("collection-0.wt");
    for directory in [&folder.path().join("missing"), &file, Path::new("/proc")] {
        let (_, error) = refused(directory, "{r:true}", CompatOptions::default());
        assert!(matches!(error, MongoperfError::Disk { .. }), "{error}");
        let name = directory.to_str().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    }
    let lock = fs::File::create(folder.path().join("WiredTiger.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let before = listing(folder.path());
    let (_, error) = refused(folder.path(), "{r:true}", CompatOptions::default());
    assert!(
        error.to_string().contains("WiredTiger.lock is locked"),
        "{error}"
    );
    let compat = CompatOptions {
        next_to_database: true,
        ..CompatOptions::default()
    };
    run_in(folder.path(), "{r:true}", compat);
    assert_eq!(listing(folder.path()), before);
}

/// A read-only descriptor stands in for a disk that fails.
#[test]
fn a_failing_operation_ends_the_run_with_what_was_measured() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let access = Access::Cached(fs::File::open(file.path()).unwrap());
    let cancel = AtomicBool::new(false);
    let document = parse(b"{r:true,w:true,nThreads:4}").unwrap();
    let options = Options::of(&document, &mut |_| {}).unwrap();
    let ramp = Ramp {
        options: &options,
        compat: &CompatOptions::default(),
        access: &access,
        load: Load {
            reads: true,
            writes: true,
            operation_bytes: 4096,
            offset_step_bytes: PAGE_BYTES,
            offset_steps: 256,
            sleep: Duration::ZERO,
            sleep_shared: false,
            zero_fill: false,
            seed: 1,
        },
        sample: Duration::from_secs(3600),
        cancel: &cancel,
    };
    let mut transcript = Transcript::default();
    let (steps, outcome) = ramp.run(&mut Recorder(&mut transcript, &cancel));
    let error = outcome.unwrap_err();
    assert!(
        error.to_string().contains("failed to write at offset"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 1);
    assert_eq!(transcript.count("ops/sec"), 0);
    assert_eq!(steps[0].writes.operations, 0);
}
