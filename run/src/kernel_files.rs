//! Reads small text files of `/proc` and `/sys`. A file that is missing, hidden or malformed reads as `None`.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(crate) fn read_trimmed(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

pub(crate) fn read_number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    read_trimmed(path)?.parse().ok()
}

/// Returns the active word of a text such as `always [madvise] never`.
pub(crate) fn bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

/// Returns an absolute path of the host, taken below `root`.
pub(crate) fn below(root: &Path, absolute: &Path) -> PathBuf {
    root.join(absolute.strip_prefix("/").unwrap_or(absolute))
}
