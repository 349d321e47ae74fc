//! Parts that must run in a process of their own: this test program starts itself again with one
//! of the ignored "tests" below, which are no tests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support;

/// Begins the lines that the child has for us, among those of the test harness.
const MARK: &str = "child says ";

pub(crate) struct Helper {
    pub(crate) child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Helper {
    pub(crate) fn start(name: &str, argument: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                &format!("child::{name}"),
                "--ignored",
                "--nocapture",
            ])
            .env("SEEKSCOPE_TEST_CHILD", argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// What the child says next.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.lines.read_line(&mut line).unwrap(),
                0,
                "the child ended early"
            );
            if let Some((_, said)) = line.split_once(MARK) {
                return said.trim().to_string();
            }
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(what: &str) {
    println!("{MARK}{what}");
    std::io::stdout().flush().unwrap();
}

fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_string()
}

/// Starts a server in a workspace and waits to be killed.
#[test]
#[ignore = "started by other tests"]
fn holds_a_server() {
    let root = std::path::PathBuf::from(std::env::var("SEEKSCOPE_TEST_CHILD").unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut workspace = seekscope_server::Workspace::create(&root, &root.join("leases")).unwrap();
    let server = runtime.block_on(support::start(&workspace));
    workspace.record_server(server.pid()).unwrap();
    say(&format!("{} {}", server.pid(), workspace.path().display()));
    listen();
}

/// Reads 4 KiB at pseudo-random places of a file when told how often; says the elapsed ns.
#[test]
#[ignore = "started by other tests"]
fn reads_at_random() {
    let path = std::env::var("SEEKSCOPE_TEST_CHILD").unwrap();
    let file = std::fs::File::open(path).unwrap();
    let blocks = file.metadata().unwrap().len() / 4096;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    let mut buffer = [0; 4096];
    say("ready");
    while let Ok(count) = listen().parse::<u64>() {
        let start = Instant::now();
        for n in 0..count {
            // The multiplier is odd, so within 2^k blocks no block comes twice.
            let block = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % blocks;
            file.read_exact_at(&mut buffer, block * 4096).unwrap();
        }
        say(&start.elapsed().as_nanos().to_string());
    }
}
