//! The metadata table: a row per file, table and more, each with a configuration text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::file_config::{FileConfig, FileConfigError};
use crate::turtle::{self, TurtleError};
use crate::walk::KeyValue;

/// Begins the keys of rows about files.
const FILE_PREFIX: &str = "file:";

/// A file's configuration, or why it is not usable.
pub type ParsedConfig = Result<Arc<FileConfig>, FileConfigError>;

/// What `WiredTiger.wt`, or `WiredTiger.backup`, says about files. The texts themselves are not
/// kept: with all that says nothing of files they take several kilobytes for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Version of the engine that wrote it, if the source says so (`WiredTiger.backup` does).
    pub version: Option<String>,
    files: BTreeMap<String, ParsedConfig>,
}

impl Metadata {
    /// Reads the table's rows.
    #[must_use]
    pub fn from_rows(rows: &[KeyValue]) -> Metadata {
        let mut metadata = Metadata::default();
        rows.iter().for_each(|row| metadata.add_row(row));
        metadata
    }

    /// Reads a row of the table, whose key and value end in a zero byte.
    pub fn add_row(&mut self, (key, value): &KeyValue) {
        if key.starts_with(FILE_PREFIX.as_bytes()) {
            self.add(&text(key), &text(value));
        }
    }

    /// Reads the text of `WiredTiger.backup`, which replaces the turtle in a copied backup.
    pub fn from_backup(bytes: &[u8]) -> Result<Metadata, TurtleError> {
        let mut metadata = Metadata::default();
        for (key, value) in turtle::line_pairs(bytes)? {
            if key == "WiredTiger version" {
                metadata.version = turtle::version_of(value);
            }
            metadata.add(key, value);
        }
        match metadata.files.is_empty() {
            true => Err(TurtleError::NoMetadata),
            false => Ok(metadata),
        }
    }

    fn add(&mut self, key: &str, config: &str) {
        if let Some(file) = key.strip_prefix(FILE_PREFIX) {
            let config = FileConfig::parse(config).map(Arc::new);
            self.files.insert(file.to_owned(), config);
        }
    }

    /// Returns files and their configurations, by name. Names are paths below the data directory and
    /// hostile like everything else (they may contain `..`).
    pub fn files(&self) -> impl Iterator<Item = (&str, &ParsedConfig)> {
        self.files
            .iter()
            .map(|(name, config)| (name.as_str(), config))
    }

    /// Returns the configuration of a file; `None` if it is not listed.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&ParsedConfig> {
        self.files.get(name)
    }
}

/// Returns the text before the zero byte.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|&byte| byte == 0);
    let bytes = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(ascii(bytes)),
    }
}

/// Converts text that may not be UTF-8 without making it longer: non-ASCII bytes become question
/// marks.
fn ascii(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| {
            if byte.is_ascii() {
                char::from(byte)
            } else {
                '?'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lose_their_zero_bytes() {
        let row = |key: &str, value: &str| {
            (
                [key.as_bytes(), &[0]].concat(),
                [value.as_bytes(), &[0]].concat(),
            )
        };
        let rows = vec![
            row("file:db/c.wt", "allocation_size=8KB"),
            row("table:db/c", "b"),
            row("system:x", ""),
            row("file:b.wt", "a=("),
        ];
        let metadata = Metadata::from_rows(&rows);
        let names: Vec<&str> = metadata.files().map(|(name, _)| name).collect();
        assert_eq!(names, ["b.wt", "db/c.wt"]);
        let config = metadata.file("db/c.wt").unwrap().as_ref().unwrap();
        assert_eq!(config.allocation_bytes, 8192);
        assert!(metadata.file("b.wt").unwrap().is_err());
        assert_eq!(metadata.file("c.wt"), None);
    }

    #[test]
    fn a_backup_tells_its_version() {
        let text = b"WiredTiger version\nmajor=10,minor=0,patch=2\nfile:a.wt\ncheckpoint=()\n";
        let metadata = Metadata::from_backup(text).unwrap();
        assert_eq!(metadata.version.as_deref(), Some("10.0.2"));
        assert_eq!(metadata.files().count(), 1);
        assert_eq!(
            Metadata::from_backup(b"a\nb\n"),
            Err(TurtleError::NoMetadata)
        );
    }
}
