//! Accesses files with which the kernel is tuned. Only those below a short list of folders are ever opened.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Allowed paths; `*` matches one name of a folder or file.
const ALLOWED: [&str; 3] = [
    "/sys/block/*/queue/*",
    "/sys/kernel/mm/transparent_hugepage/*",
    "/proc/sys/vm/*",
];
const FILE_MAX_BYTES: u64 = 64 << 10;

/// This host's `/sys` and `/proc`, and the disk of the data directory.
#[derive(Debug, Clone)]
pub struct HostFiles {
    root: PathBuf,
    device: Option<String>,
}

/// Why a file of the kernel could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum HostFileError {
    #[error("{0}")]
    NotAllowed(String),
    #[error("{path} names a device, and that of the data directory is not known; write its name")]
    NoDevice { path: String },
    #[error("{path}: {source}{}", advice(source))]
    Io { path: String, source: io::Error },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root on the server's host",
        io::ErrorKind::NotFound => "; this kernel does not have it",
        io::ErrorKind::InvalidInput => "; the kernel does not take this value",
        _ => "",
    }
}

/// Returns whether the path is one of those that may be tuned.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let parts: Vec<&str> = path.split('/').collect();
    let plain = |part: &&str| {
        !part.is_empty()
            && !matches!(*part, "." | "..")
            && !part
                .chars()
                .any(|c| c.is_control() || matches!(c, '{' | '}'))
    };
    let fits = ALLOWED.iter().any(|pattern| {
        let pattern: Vec<&str> = pattern.split('/').collect();
        pattern.len() == parts.len()
            && pattern
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted == part || (*wanted == "*" && plain(part)))
    });
    fits.then_some(()).ok_or_else(|| {
        format!(
            "{path:?} is not among the files that may be set: {}",
            ALLOWED.join(", ")
        )
    })
}

impl HostFiles {
    /// Returns the running kernel's files. `device` is the data directory's disk by its name in `/sys/block`.
    pub fn host(device: Option<String>) -> Self {
        Self::at(Path::new("/"), device)
    }

    /// Returns the files of a made-up host below `root`.
    pub fn at(root: &Path, device: Option<String>) -> Self {
        Self {
            root: root.to_path_buf(),
            device,
        }
    }

    /// Returns the path with the device's name filled in.
    pub(crate) fn resolve(&self, path: &str) -> Result<String, HostFileError> {
        let resolved = match (&self.device, path.contains("{device}")) {
            (_, false) => path.to_owned(),
            (Some(device), true) => path.replace("{device}", device),
            (None, true) => return Err(HostFileError::NoDevice { path: path.into() }),
        };
        check_path(&resolved).map_err(HostFileError::NotAllowed)?;
        Ok(resolved)
    }

    fn opened(&self, path: &str, options: &OpenOptions) -> Result<fs::File, HostFileError> {
        check_path(path).map_err(HostFileError::NotAllowed)?;
        let full = self.root.join(path.trim_start_matches('/'));
        options.open(full).map_err(failed(path))
    }

    /// Reads the whole file.
    pub(crate) fn read(&self, path: &str) -> Result<String, HostFileError> {
        let file = self.opened(path, OpenOptions::new().read(true))?;
        let mut text = String::new();
        file.take(FILE_MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(failed(path))?;
        Ok(text)
    }

    /// Checks whether we may write it.
    pub(crate) fn writable(&self, path: &str) -> Result<(), HostFileError> {
        self.opened(path, OpenOptions::new().write(true))
            .map(|_| ())
    }

    /// Sets the file, and returns its content afterwards.
    pub(crate) fn write(&self, path: &str, value: &str) -> Result<String, HostFileError> {
        // The kernel's files cannot be truncated; those of a test can.
        let mut options = OpenOptions::new();
        options.write(true).truncate(true);
        let mut file = self.opened(path, &options)?;
        file.write_all(format!("{value}\n").as_bytes())
            .map_err(failed(path))?;
        drop(file);
        self.read(path)
    }
}

fn failed(path: &str) -> impl FnOnce(io::Error) -> HostFileError {
    let path = path.to_owned();
    move |source| HostFileError::Io { path, source }
}

/// Returns the value in force: `mq-deadline` in "none [mq-deadline] kyber"; else the whole text.
pub(crate) fn current(text: &str) -> &str {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    bracketed.unwrap_or(text).trim()
}

/// Returns the possible values, from a text that marks the value in force with brackets.
pub(crate) fn choices(text: &str) -> Option<Vec<String>> {
    let words = text.split_whitespace();
    let trimmed = words.map(|word| word.trim_matches(['[', ']']).to_owned());
    text.contains('[').then(|| trimmed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_list_are_opened() {
        for path in [
            "/sys/block/vda/queue/read_ahead_kb",
            "/proc/sys/vm/dirty_ratio",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in [
            "/etc/passwd",
            "/sys/block/../queue/x",
            "/sys/block/vda/queue/../../x",
            "/sys/block//queue/x",
            "/proc/sys/vm/a/b",
            "proc/sys/vm/swappiness",
            "/proc/sys/vm/",
            "",
            "/sys/block/{device}/queue/scheduler",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
        let host = HostFiles::at(Path::new("/"), Some("../..".into()));
        assert!(host.resolve("/sys/block/{device}/queue/scheduler").is_err());
        let unknown = HostFiles::host(None);
        assert!(
            unknown
                .resolve("/sys/block/{device}/queue/scheduler")
                .is_err()
        );
    }

    #[test]
    fn brackets_mark_what_is_in_force() {
        assert_eq!(current("none [mq-deadline] kyber bfq \n"), "mq-deadline");
        assert_eq!(current("128\n"), "128");
        assert_eq!(current("[odd"), "[odd");
        let offered = choices("none [mq-deadline] kyber").unwrap();
        assert_eq!(offered, ["none", "mq-deadline", "kyber"]);
        assert_eq!(choices("128\n"), None);
    }
}
