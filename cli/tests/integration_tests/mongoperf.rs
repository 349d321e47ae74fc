//! The drop-in: what scripts of old send, and what they read.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::directory_snapshot::unchanged_by;
use crate::support::{Bench, send, shared_machine, stderr, wait};

/// A link named mongoperf, as scripts call it.
fn link(bench: &Bench) -> PathBuf {
    let path = bench.path("mongoperf");
    if !path.exists() {
        std::os::unix::fs::symlink(bench.seekscope(&[]).get_program(), &path).unwrap();
    }
    path
}

fn start(program: &Path, arguments: &[&str], folder: &Path, input: &str) -> Child {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    child
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(Into::into).collect()
}

/// What the old program would have printed for these options, and where ours goes on.
struct Expected {
    options: &'static str,
    file_mb: u32,
    threads: u32,
    reads: bool,
    mapped: bool,
}

impl Expected {
    /// 1, 2, 4, 8 … and the number asked for.
    fn steps(&self) -> Vec<u32> {
        let powers = (0..).map(|n| 1 << n).take_while(|n| *n < self.threads);
        powers.chain([self.threads]).collect()
    }

    /// Reads the transcript line by line; returns what follows the classic part.
    fn read_classic<'a>(&self, lines: &'a [String]) -> &'a [String] {
        let head = [
            "mongoperf".to_owned(),
            "use -h for help".into(),
            "parsed options:".into(),
            self.options.into(),
            format!("creating test file size:{}MB ...", self.file_mb),
            "testing...".into(),
            format!("options:{}", self.options),
            format!("wthr {}", self.threads),
        ];
        assert_eq!(lines[..head.len()], head);
        let mut rest = &lines[head.len()..];
        let mut running = 0;
        for threads in self.steps() {
            assert_eq!(rest[0], format!("new thread, total running : {threads}"));
            let started = usize::try_from(threads - running).unwrap();
            let (reads, writes) = (u8::from(self.reads), u8::from(!self.reads));
            for line in &rest[1..=started] {
                assert_eq!(line, &format!("read:{reads} write:{writes}"));
            }
            for line in &rest[1 + started..9 + started] {
                self.assert_sample(line);
            }
            rest = &rest[9 + started..];
            running = threads;
        }
        rest
    }

    fn assert_sample(&self, line: &str) {
        let (per_s, rest) = line
            .split_once(" ops/sec ")
            .unwrap_or_else(|| panic!("`{line}`"));
        assert!(per_s.parse::<u64>().is_ok(), "`{line}`");
        let mb = rest.strip_suffix(" MB/sec");
        match self.mapped {
            true => assert_eq!(rest, "", "`{line}`"),
            false => assert!(mb.is_some_and(|mb| mb.parse::<u64>().is_ok()), "`{line}`"),
        }
    }
}

/// The article's own inputs, on a smaller file and with fewer threads, all at once: what they print is looked at,
/// not how fast they are. Each doubling of the threads takes eight seconds; the library's tests have all of them.
#[test]
fn the_examples_of_the_article_print_the_lines_of_old() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let examples = [
        Expected {
            options: "{ nThreads: 4, fileSizeMB: 64, r: true }",
            file_mb: 64,
            threads: 4,
            reads: true,
            mapped: false,
        },
        Expected {
            options: "{ nThreads: 4, fileSizeMB: 64, w: true }",
            file_mb: 64,
            threads: 4,
            reads: false,
            mapped: false,
        },
        Expected {
            options: "{ recSizeKB: 8, nThreads: 3, fileSizeMB: 64, r: true, mmf: true }",
            file_mb: 64,
            threads: 3,
            reads: true,
            mapped: true,
        },
        Expected {
            options: "{ recSizeKB: 8, nThreads: 4, fileSizeMB: 64, w: true, mmf: true }",
            file_mb: 64,
            threads: 4,
            reads: false,
            mapped: true,
        },
    ];
    let program = link(&bench);
    let folder = bench.target();
    let outputs: Vec<Output> = unchanged_by(&folder, || {
        let start = |e: &Expected| {
            let input = e.options.replace(' ', "") + "\n";
            start(&program, &[], &folder, &input)
        };
        let children: Vec<Child> = examples.iter().map(start).collect();
        children
            .into_iter()
            .map(|c| c.wait_with_output().unwrap())
            .collect()
    });
    for (example, output) in examples.iter().zip(&outputs) {
        assert!(
            output.status.success(),
            "{:?} {}",
            output.status,
            stderr(output)
        );
        let lines = lines(output);
        let summary = example.read_classic(&lines);
        assert_eq!(summary[0], "");
        assert!(summary[1].starts_with("summary: "), "{summary:#?}");
        assert!(
            summary[2].contains("p50") && summary[2].contains("p99.9"),
            "{summary:#?}"
        );
        let rows = summary[3..].iter().take_while(|l| !l.starts_with("total:"));
        assert_eq!(rows.count(), example.steps().len(), "{summary:#?}");
        // A program that looks for samples finds none here.
        assert!(
            summary.iter().all(|l| !l.contains("ops/sec ")),
            "{summary:#?}"
        );
    }
}

#[test]
fn bad_input_is_answered_and_nothing_is_made() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (program, folder) = (link(&bench), bench.target());
    for (input, code, words) in [
        ("", 1, "error no options found on stdin for mongoperf"),
        ("{nThreads:2,fileSizeMB:8", 1, "couldn't parse json options"),
        (
            "{nThreads:2,fileSizeMB:8,r:tru",
            1,
            "couldn't parse json options",
        ),
        ("hello", 1, "couldn't parse json options"),
        (
            "{nThreads:0,fileSizeMB:8,r:true}",
            2,
            "bad threads field value",
        ),
        ("{nThreads:-1,fileSizeMB:8,r:true}", 2, "nThreads"),
        ("{nThreads:4000000000,fileSizeMB:8,r:true}", 1, "nThreads"),
        ("{nThreads:\"32\",fileSizeMB:8,r:true}", 1, "nThreads"),
        ("{nThreads:32.5,fileSizeMB:8,r:true}", 1, "nThreads"),
        (
            "{nThreads:1,recSizeKB:64001,fileSizeMB:100,r:true}",
            2,
            "recSizeKB",
        ),
        (
            "{nThreads:1,recSizeKB:2048,fileSizeMB:1,r:true}",
            2,
            "recSizeKB",
        ),
        ("{nThreads:1,fileSizeMB:8}", 1, "r and w"),
        ("{nThreads:1,fileSizeMB:8,r:0,w:false}", 1, "r and w"),
        (
            "{nThreads:1,fileSizeMB:99999999999,r:true}",
            1,
            "not enough space",
        ),
    ] {
        let output = unchanged_by(&folder, || {
            start(&program, &[], &folder, input)
                .wait_with_output()
                .unwrap()
        });
        let all = lines(&output).join("\n") + &stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{input}: {all}");
        assert!(all.contains(words), "{input}: {all}");
        assert!(
            !all.contains("panicked") && !all.contains("testing..."),
            "{input}: {all}"
        );
        let said = stderr(&output);
        let said = said.trim_end().rsplit('\n').next().unwrap();
        assert_eq!(said.matches(words).count().max(1), 1, "said twice: {said}");
    }
}

#[test]
fn a_test_file_of_old_is_never_touched() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (program, folder) = (link(&bench), bench.target());
    let kept = folder.join("mongoperf__testfile__tmp");
    std::fs::write(&kept, "precious").unwrap();
    let input = "{nThreads:1,fileSizeMB:16,r:true}";
    let refused = unchanged_by(&folder, || {
        start(&program, &["--keep-file"], &folder, input)
            .wait_with_output()
            .unwrap()
    });
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("mongoperf__testfile__tmp exists"));
    // A link must not lead our writes elsewhere either.
    std::fs::remove_file(&kept).unwrap();
    std::fs::write(bench.path("elsewhere"), "precious").unwrap();
    std::os::unix::fs::symlink(bench.path("elsewhere"), &kept).unwrap();
    let refused = unchanged_by(&bench.path("."), || {
        start(&program, &["--keep-file"], &folder, input)
            .wait_with_output()
            .unwrap()
    });
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
}

#[test]
fn for_ever_ends_with_a_signal_and_a_summary() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (program, folder) = (link(&bench), bench.target());
    for (signal, size, arguments, part, times) in [
        // While filling, in the first sample, and after the eight samples that end it otherwise.
        (libc::SIGTERM, 4000, &[][..], "creating test file", 1),
        (libc::SIGHUP, 16, &[], "new thread", 1),
        (libc::SIGINT, 16, &["--forever"], " ops/sec ", 9),
    ] {
        let input = format!("{{nThreads:1,fileSizeMB:{size},r:true}}");
        let output = unchanged_by(&folder, || {
            let mut child = start(&program, arguments, &folder, &input);
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            let mut printed = String::new();
            while printed.matches(part).count() < times {
                let length = stdout.read_line(&mut printed).unwrap();
                assert_ne!(length, 0, "it ended after: {printed}");
            }
            std::thread::sleep(Duration::from_millis(100));
            send(&child, signal);
            wait(&mut child, Duration::from_secs(10));
            stdout.read_to_string(&mut printed).unwrap();
            Output {
                stdout: printed.into_bytes(),
                ..child.wait_with_output().unwrap()
            }
        });
        let lines = lines(&output);
        assert_eq!(
            output.status.code(),
            Some(130),
            "{}\n{lines:#?}",
            stderr(&output)
        );
        let samples = lines.iter().filter(|l| l.contains(" ops/sec ")).count();
        match signal {
            libc::SIGTERM => assert_eq!(samples, 0),
            libc::SIGHUP => assert!((0..=2).contains(&samples), "{lines:#?}"),
            _ => assert!((9..=11).contains(&samples), "{lines:#?}"),
        }
        let told = lines.iter().any(|l| l.starts_with("interrupted"));
        assert_eq!(told, signal != libc::SIGTERM, "{lines:#?}");
    }
}

/// Killed outright: the file has no name, so nothing stays.
#[test]
fn even_a_kill_leaves_no_file() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (program, folder) = (link(&bench), bench.target());
    unchanged_by(&folder, || {
        let mut child = start(
            &program,
            &[],
            &folder,
            "{nThreads:1,fileSizeMB:4000,r:true}",
        );
        std::thread::sleep(Duration::from_millis(400));
        child.kill().unwrap();
        child.wait().unwrap();
    });
}
