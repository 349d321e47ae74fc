//! Keeps passwords out of `ps`, as anybody on the host can read the arguments of a running process.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::stored_arguments::redacted_argument;

/// Overwrites the arguments that contain credentials, in the memory that `/proc/PID/cmdline` shows. Call this
/// after the arguments were parsed and while there is only one thread.
pub fn hide_credentials() {
    let Some((start, end)) = argument_memory() else {
        return;
    };
    // SAFETY: the kernel names this range as the memory of our own arguments; it is mapped,
    // writable and lives as long as the process. No reference to it exists: the standard library
    // keeps raw pointers and copies, and there is no other thread.
    let memory = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) };
    for argument in memory.split_mut(|byte| *byte == 0) {
        overwrite(argument);
    }
}

/// Replaces a connection string with credentials by one without, padded with blanks, as the length of the
/// memory cannot change.
fn overwrite(argument: &mut [u8]) {
    let text = OsStr::from_bytes(argument).to_string_lossy().into_owned();
    let Some(redacted) = redacted_argument(&text).filter(|redacted| *redacted != text) else {
        return;
    };
    let shown = redacted.into_bytes();
    for (i, byte) in argument.iter_mut().enumerate() {
        *byte = shown.get(i).copied().unwrap_or(b' ');
    }
}

/// Returns `arg_start` and `arg_end`: fields 48 and 49 of proc_pid_stat(5).
fn argument_memory() -> Option<(usize, usize)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Field 2, the program's name, may contain blanks; the first field after it is number 3.
    let mut fields = stat
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .skip(48 - 3);
    let start: usize = fields.next()?.parse().ok()?;
    let end: usize = fields.next()?.parse().ok()?;
    (start != 0 && start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_credentials_are_overwritten() {
        let after = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            overwrite(&mut bytes);
            assert_eq!(bytes.len(), text.len());
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(after("--for"), "--for");
        assert_eq!(after("mongodb://h:1/"), "mongodb://h:1/");
        assert_eq!(after("a@b.c"), "a@b.c");
        assert!(!after("anna:pa55word@h:1/").contains("pa55word"));
        let hidden = after("mongodb://anna:pa55word@h:1/?ssl=true");
        assert!(
            !hidden.contains("pa55word") && hidden.contains("h:1"),
            "{hidden}"
        );
    }
}
