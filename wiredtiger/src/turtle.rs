//! `WiredTiger.turtle`: lines that alternate between keys and values, among them the configuration
//! of the metadata table itself (`src/meta/meta_turtle.c`). `WiredTiger.backup` has the same form.

use thiserror::Error;

use crate::config;
use crate::file_config::{FileConfig, FileConfigError};

/// The name of the metadata table's own file.
pub const METADATA_FILE: &str = "WiredTiger.wt";

/// Why a turtle file is not usable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TurtleError {
    #[error("the text is not UTF-8 from byte {0} on")]
    NotText(usize),
    #[error("there is no line \"file:WiredTiger.wt\", so this is not a WiredTiger data directory")]
    NoMetadata,
    #[error("the entry file:WiredTiger.wt is not valid: {0}")]
    Metadata(#[from] FileConfigError),
}

/// The contents of the turtle file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turtle {
    /// Version of the engine that wrote it, such as `11.3.0`.
    pub version: Option<String>,
    /// How to read `WiredTiger.wt`.
    pub metadata: FileConfig,
}

impl Turtle {
    /// Parses the whole file.
    pub fn parse(bytes: &[u8]) -> Result<Turtle, TurtleError> {
        let (mut version, mut metadata) = (None, None);
        for (key, value) in line_pairs(bytes)? {
            match key {
                "WiredTiger version" => version = version_of(value),
                "file:WiredTiger.wt" => metadata = Some(FileConfig::parse(value)?),
                _ => {}
            }
        }
        Ok(Turtle {
            version,
            metadata: metadata.ok_or(TurtleError::NoMetadata)?,
        })
    }
}

/// Returns pairs of lines; a last key without a value is dropped.
pub(crate) fn line_pairs(bytes: &[u8]) -> Result<impl Iterator<Item = (&str, &str)>, TurtleError> {
    let text = str::from_utf8(bytes).map_err(|error| TurtleError::NotText(error.valid_up_to()))?;
    let mut lines = text.lines();
    Ok(std::iter::from_fn(move || {
        Some((lines.next()?, lines.next()?))
    }))
}

/// Returns `major=11,minor=3,patch=0` as `11.3.0`.
pub(crate) fn version_of(text: &str) -> Option<String> {
    let part = |key| config::find(text, key).ok()??.size_bytes();
    Some(format!(
        "{}.{}.{}",
        part("major")?,
        part("minor")?,
        part("patch")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_keys_is_free_and_strangers_are_skipped() {
        let text = b"file:WiredTiger.wt\nallocation_size=4KB,checkpoint=\nCompatibility version\n\
            major=10,minor=0\nWiredTiger version\nmajor=11,minor=3,patch=0\n";
        let turtle = Turtle::parse(text).unwrap();
        assert_eq!(turtle.version.as_deref(), Some("11.3.0"));
        assert_eq!(turtle.metadata.newest_checkpoint(), None);
    }

    #[test]
    fn what_is_no_turtle_is_refused() {
        assert_eq!(Turtle::parse(b""), Err(TurtleError::NoMetadata));
        assert_eq!(Turtle::parse(b"ab\xff"), Err(TurtleError::NotText(2)));
        let error = Turtle::parse(b"file:WiredTiger.wt\na=(\n").unwrap_err();
        assert!(matches!(error, TurtleError::Metadata(_)), "{error}");
    }
}
