//! Proof that nothing is written: our own system calls, by strace.

use std::path::{Path, PathBuf};
use std::process::Command;

use seekscope_layout::{DataDirectory, DeviceMap, walk_lone};

use crate::real_directory::{GO_ON, RealDirectory, options};

/// All that may name or touch a file of the directory. `read` is not in it: it would go on from where
/// the file was left, so only the test harness uses it.
const HARMLESS: [&str; 13] = [
    "open",
    "openat",
    "statx",
    "newfstatat",
    "fstat",
    "stat",
    "lstat",
    "readlink",
    "getdents64",
    "pread64",
    "fadvise64",
    "ioctl",
    "close",
];
/// An open with any of these would write, create or lock.
const WRITING: [&str; 6] = [
    "O_WRONLY",
    "O_RDWR",
    "O_CREAT",
    "O_TRUNC",
    "O_APPEND",
    "O_TMPFILE",
];

/// Every way into the library, in a process of its own; its argument is the directory.
#[test]
#[ignore = "started by another test"]
fn reads_everything() {
    let path = PathBuf::from(std::env::var("SEEKSCOPE_TEST_CHILD").unwrap());
    let mut directory = DataDirectory::open(&path, &GO_ON).unwrap();
    directory.refresh(&GO_ON).unwrap();
    for table in directory.tables() {
        let file = path.join(&table.file);
        directory.walk(table, &options(4)).unwrap();
        DeviceMap::read(&file).unwrap();
        DataDirectory::containing(&file, &GO_ON).unwrap().unwrap();
    }
    let largest = directory.find("sdu.append").unwrap();
    let walked = directory.walk(largest, &options(1)).unwrap();
    assert_eq!(
        walk_lone(&path.join(&largest.file), &options(4))
            .unwrap()
            .tree,
        walked.tree
    );
    let nowhere = DataDirectory::open(path.parent().unwrap(), &GO_ON);
    assert!(nowhere.unwrap_err().to_string().contains("lies inside it"));
}

#[test]
fn nothing_is_written_locked_or_touched() {
    let real = RealDirectory::unpack("snappy42");
    let log = real.path.parent().unwrap().join("strace.log");
    let status = Command::new("strace")
        .args(["-f", "-yy", "-s", "4096", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "read_only::reads_everything", "--ignored"])
        .env("SEEKSCOPE_TEST_CHILD", &real.path)
        .status()
        .expect("strace; `./x test` installs it");
    assert!(status.success());
    let text = std::fs::read_to_string(&log).unwrap();
    let (mut opens, mut preads) = (0, 0);
    for line in calls_on(&text, &real.path) {
        let name = call(line);
        // A debug build asks whether a descriptor is open before it closes it.
        let asks_whether_open = name == "fcntl" && line.contains("F_GETFD");
        assert!(HARMLESS.contains(&name) || asks_whether_open, "{line}");
        match name {
            "open" | "openat" if !line.contains("O_DIRECTORY") => {
                opens += 1;
                assert!(!WRITING.iter().any(|flag| line.contains(flag)), "{line}");
                let quiet = ["O_RDONLY", "O_CLOEXEC", "O_NOATIME", "O_NONBLOCK"];
                assert!(quiet.iter().all(|flag| line.contains(flag)), "{line}");
                assert!(!line.contains("WiredTiger.lock"), "{line}");
            }
            "pread64" => preads += 1,
            "ioctl" => assert!(
                line.contains("FS_IOC_FIEMAP") && line.contains("fm_flags=0"),
                "{line}"
            ),
            "fadvise64" => assert!(line.contains("POSIX_FADV_RANDOM"), "{line}"),
            _ => {}
        }
    }
    assert!(
        opens > 50 && preads > 50,
        "{opens} files opened, {preads} reads"
    );
}

/// The lines about anything in the directory, by path or by descriptor (`-yy` names those).
fn calls_on<'a>(text: &'a str, directory: &Path) -> impl Iterator<Item = &'a str> {
    let inside = format!("{}/", directory.display());
    let itself = format!("{}\"", directory.display());
    let ours = move |line: &&str| line.contains(&inside) || line.contains(&itself);
    // What only passes the name on: starting the program, and reporting its environment.
    let about_files = |line: &&str| !["execve", "exit", "+++", "---"].contains(&call(line));
    text.lines().filter(ours).filter(about_files)
}

/// "1234 openat(AT_FDCWD…" is a call of openat, and "1234 <... openat resumed>…" its end.
fn call(line: &str) -> &str {
    let after_pid = line
        .split_once(' ')
        .map_or("", |(_, rest)| rest.trim_start());
    let resumed = after_pid.trim_start_matches("<... ");
    resumed.split(['(', ' ']).next().unwrap_or_default()
}
