//! Finds in a server's log why it did not start.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

use crate::mongod_conf;

/// Bytes read from the end of what was logged.
const READ_MAX_BYTES: u64 = 256 << 10;
/// Characters shown of a line.
const SHOWN_MAX_CHARS: usize = 400;

/// The log that a configuration file names, and its length before a start.
pub(super) struct ServerLog {
    path: PathBuf,
    bytes: u64,
}

impl ServerLog {
    /// Returns the log; `None` if the configuration names no file.
    pub(super) fn named_in(config: &str) -> Option<Self> {
        let path = mongod_conf::log_path(config)?;
        let bytes = fs::metadata(&path).map_or(0, |found| found.len());
        Some(Self { path, bytes })
    }

    /// Returns the last error that was logged since. Without one, the server may have another log, on another host.
    pub(super) fn last_error(&self) -> Option<String> {
        last_error(&self.text_since().ok()?)
    }

    fn text_since(&self) -> io::Result<String> {
        let found = fs::metadata(&self.path)?;
        if !found.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        // One that is shorter than before was begun anew.
        let from = match found.len() < self.bytes {
            true => 0,
            false => self.bytes,
        };
        let mut file = File::open(&self.path)?;
        let from = from.max(found.len().saturating_sub(READ_MAX_BYTES));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(READ_MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Returns what the last line of an error says; without one, of a fatal error, which often names only a place in the
/// server's source.
fn last_error(text: &str) -> Option<String> {
    let last = |severity: &str| text.lines().rev().find_map(|line| said(line, severity));
    let said = last("E").or_else(|| last("F"))?;
    let shown = said.chars().take(SHOWN_MAX_CHARS);
    let shown = shown.map(|c| if c.is_control() { ' ' } else { c });
    Some(shown.collect())
}

/// Returns what a line says, if it is of this severity: an object since 4.4, before that a text whose second word is the
/// severity.
fn said(line: &str, severity: &str) -> Option<String> {
    if let Ok(line) = serde_json::from_str::<Value>(line) {
        let is_wanted = line["s"].as_str() == Some(severity);
        let message = line["msg"].as_str().filter(|_| is_wanted)?;
        let detail = &line["attr"];
        let texts = [
            &detail["message"]["msg"],
            &detail["message"],
            &detail["error"],
        ];
        return Some(match texts.iter().find_map(|text| text.as_str()) {
            Some(detail) => format!("{message}: {detail}"),
            None => message.to_owned(),
        });
    }
    let mut words = line.split_whitespace();
    let is_wanted = words.nth(1) == Some(severity);
    let (_, message) = line.split_once("] ").filter(|_| is_wanted)?;
    Some(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = r#"{"t":{"$date":"2026-11-30T10:00:00.000+00:00"},"s":"I","c":"STORAGE","id":1,"ctx":"x","msg":"Opening WiredTiger"}
{"s":"E","c":"STORAGE","id":22435,"ctx":"x","msg":"WiredTiger error","attr":{"error":22,"message":"[1:2], Hash bucket size 13862 invalid. Must be power of 2"}}
{"s":"F","c":"-","id":23089,"ctx":"x","msg":"Fatal assertion","attr":{"msgid":28595}}
***aborting after fassert() failure
"#;

    #[test]
    fn the_last_error_since_the_start_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mongod.log");
        let config = format!(
            "systemLog:\n  destination: file\n  path: {}\n",
            path.display()
        );
        fs::write(&path, FAILED).unwrap();
        let log = ServerLog::named_in(&config).unwrap();
        assert_eq!(log.last_error(), None, "that was before");
        fs::write(&path, FAILED.to_owned() + FAILED).unwrap();
        let expected =
            "WiredTiger error: [1:2], Hash bucket size 13862 invalid. Must be power of 2";
        assert_eq!(log.last_error().as_deref(), Some(expected));
        // A log that was begun anew is shorter.
        fs::write(
            &path,
            "2020-01-01T00:00:00.000+0000 E STORAGE  [main] no room\n",
        )
        .unwrap();
        assert_eq!(log.last_error().as_deref(), Some("no room"));
        fs::remove_file(&path).unwrap();
        assert_eq!(log.last_error(), None);
        assert!(ServerLog::named_in("systemLog: {destination: syslog}").is_none());
    }

    #[test]
    fn a_fatal_error_is_told_where_there_is_no_other() {
        let fatal = FAILED.lines().filter(|line| !line.contains("\"E\""));
        let fatal: Vec<&str> = fatal.collect();
        assert_eq!(
            last_error(&fatal.join("\n")).as_deref(),
            Some("Fatal assertion")
        );
        assert_eq!(last_error("nothing of that kind"), None);
    }
}
