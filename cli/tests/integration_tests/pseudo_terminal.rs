//! Programs on a terminal that is a test's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::support::{until, wait};

/// What switches to the other screen and back (xterm's).
pub const TAKEN: &str = "\u{1b}[?1049h";
pub const GIVEN_BACK: &str = "\u{1b}[?1049l";

const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// A program whose input and output are a terminal of 80 columns and 24 rows.
pub struct OnTerminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    pub fn start(command: &mut Command) -> Self {
        let (master, slave) = open_pty();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .env("TERM", "xterm")
            .spawn()
            .unwrap();
        let mut screen = File::from(master.try_clone().unwrap());
        let shown = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error once nobody has the other end open.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let mut shown = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                shown.extend_from_slice(&bytes[..count]);
            }
        });
        // The command holds copies of the terminal until it is changed or dropped.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            child,
            keyboard: File::from(master),
            shown,
        }
    }

    /// Everything that was written to the terminal so far.
    pub fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Waits until the text was written, in one piece.
    pub fn wait_for(&self, text: &str) {
        until(|| self.shown().contains(text));
    }

    /// Waits until a line of the screen holds the text: a program writes only what changes.
    pub fn wait_to_see(&self, text: &str) {
        until(|| screen(&self.shown()).iter().any(|line| line.contains(text)));
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child, Duration::from_secs(30))
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of the screen after all that was written: what sets the cursor is obeyed, colours are not.
fn screen(written: &str) -> Vec<String> {
    let (mut row, mut column) = (0, 0);
    let mut cells = vec![vec![' '; COLUMNS]; ROWS];
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                // ESC [ numbers letter
                let mut sequence = String::new();
                for c in rest.by_ref() {
                    sequence.push(c);
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
                let numbers = sequence.trim_start_matches('[').trim_end_matches('H');
                let mut numbers = numbers.split(';').map(|n| n.parse().unwrap_or(1_usize));
                if sequence.ends_with('H') {
                    row = numbers.next().unwrap_or(1) - 1;
                    column = numbers.next().unwrap_or(1) - 1;
                }
            }
            c => {
                if let Some(cell) = cells.get_mut(row).and_then(|line| line.get_mut(column)) {
                    *cell = c;
                }
                column += 1;
            }
        }
    }
    cells.into_iter().map(String::from_iter).collect()
}

fn open_pty() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize {
        ws_row: u16::try_from(ROWS).unwrap(),
        ws_col: u16::try_from(COLUMNS).unwrap(),
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: both descriptors are written by the call, the size is only read, no name is wanted.
    let result = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has just opened both, and nobody else owns them.
    unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}
