//! Text files that are appended to a line at a time during a run. A killed process leaves at most one torn
//! line, the last; readers ignore it and later writers cut it off.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

/// Opens a file for appending lines, creates it if needed, and cuts off a torn last line.
pub(crate) fn append_lines(path: &Path) -> io::Result<File> {
    let mut file = File::options()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            let whole = whole_lines(&fs::read(path)?).len() as u64;
            file.set_len(whole)?;
        }
    }
    Ok(file)
}

/// Returns the text without a torn last line.
pub(crate) fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    &text[..end]
}

/// Appends values, one JSON document per line. Each is in the file (not yet on the disk) when `write` returns.
#[derive(Debug)]
pub(crate) struct JsonLinesWriter {
    file: File,
}

impl JsonLinesWriter {
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: append_lines(path)?,
        })
    }

    pub(crate) fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.write_all(std::slice::from_ref(value))
    }

    /// Appends several values with one system call.
    pub(crate) fn write_all(&mut self, values: &[impl Serialize]) -> io::Result<()> {
        let mut lines = Vec::new();
        for value in values {
            serde_json::to_writer(&mut lines, value)?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines)
    }

    /// Syncs what was written to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Returns the values of a file of JSON lines; none if there is no file. Invalid lines are skipped: a full disk
/// can tear one in the middle of a run.
pub(crate) fn read_json_lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let text = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    Ok(whole_lines(&text)
        .split(|b| *b == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_ignored_and_then_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let read = || read_json_lines::<u32>(&path).unwrap();
        assert!(read().is_empty(), "no file");
        let append = |n: u32| {
            let mut writer = JsonLinesWriter::append_to(&path).unwrap();
            writer.write(&n).unwrap();
        };
        append(1);
        let torn = |text: &str| {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        torn("23");
        assert_eq!(read(), [1], "23 may be the start of 234");
        append(4);
        torn("half a line\n");
        append(5);
        assert_eq!(read(), [1, 4, 5]);
    }
}
