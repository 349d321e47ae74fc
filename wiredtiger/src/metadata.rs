//! The metadata table: a row per file, table and more, each with a configuration text.

use std::collections::BTreeMap;

use crate::turtle::{self, TurtleError};

/// The rows of `WiredTiger.wt`, or of `WiredTiger.backup`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Version of the engine that wrote it, if the source says so (`WiredTiger.backup` does).
    pub version: Option<String>,
    rows: BTreeMap<String, String>,
}

impl Metadata {
    /// Reads the table's rows, whose keys and values end in a zero byte.
    #[must_use]
    pub fn from_rows(rows: Vec<(Vec<u8>, Vec<u8>)>) -> Metadata {
        let text = |mut bytes: Vec<u8>| {
            let end = bytes.iter().position(|&byte| byte == 0);
            bytes.truncate(end.unwrap_or(bytes.len()));
            String::from_utf8(bytes).unwrap_or_else(|error| ascii(error.as_bytes()))
        };
        let rows = rows
            .into_iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect();
        Metadata {
            version: None,
            rows,
        }
    }

    /// Reads the text of `WiredTiger.backup`, which replaces the turtle in a copied backup.
    pub fn from_backup(bytes: &[u8]) -> Result<Metadata, TurtleError> {
        let rows: BTreeMap<String, String> = turtle::line_pairs(bytes)?
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if !rows.keys().any(|key| key.starts_with("file:")) {
            return Err(TurtleError::NoMetadata);
        }
        let version = rows
            .get("WiredTiger version")
            .and_then(|text| turtle::version_of(text));
        Ok(Metadata { version, rows })
    }

    /// Returns files and their configuration texts, by name. Names are paths below the data
    /// directory and hostile like everything else (they may contain `..`).
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.starting_with("file:")
    }

    /// Returns the configuration text of a file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&str> {
        self.rows.get(&format!("file:{name}")).map(String::as_str)
    }

    /// Returns tables and their configuration texts, by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.starting_with("table:")
    }

    fn starting_with(&self, prefix: &'static str) -> impl Iterator<Item = (&str, &str)> {
        self.rows
            .range(prefix.to_owned()..)
            .map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
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
            row("file:db/c.wt", "a=1"),
            row("table:db/c", "b"),
            row("system:x", ""),
            row("file:b.wt", ""),
        ];
        let metadata = Metadata::from_rows(rows);
        assert_eq!(
            metadata.files().collect::<Vec<_>>(),
            [("b.wt", ""), ("db/c.wt", "a=1")]
        );
        assert_eq!(metadata.tables().collect::<Vec<_>>(), [("db/c", "b")]);
        assert_eq!(metadata.file("db/c.wt"), Some("a=1"));
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
