//! What can go wrong with a data directory. Each error says what failed, on what, why, and what to
//! do. Names come from the data, and may hold line breaks and worse: they are made visible.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use seekscope_run::units::format_bytes;
use seekscope_run::{ErrorKind, Kinded, visible};
use seekscope_wiredtiger::View;
use seekscope_wiredtiger::block::{BlockError, BlockFault};
use seekscope_wiredtiger::file_config::{FileConfigError, Refusal};
use seekscope_wiredtiger::lone::LoneError;
use seekscope_wiredtiger::turtle::TurtleError;

/// Why a data directory or one of its files could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The stop flag was set.
    #[error("interrupted")]
    Interrupted,
    #[error(
        "{} is not a WiredTiger data directory: there is neither WiredTiger.turtle nor WiredTiger.turtle.set nor WiredTiger.backup; {finding}",
        shown(path)
    )]
    NotADataDirectory { path: PathBuf, finding: String },
    #[error(
        "{} may not be read: permission denied{}; run as that user or as root, or grant CAP_DAC_READ_SEARCH",
        shown(path),
        owner_uid.map(|uid| format!(", it belongs to user {uid}")).unwrap_or_default()
    )]
    PermissionDenied {
        /// The folder or file that denies access.
        path: PathBuf,
        owner_uid: Option<u32>,
    },
    #[error("{} does not exist", shown(path))]
    Missing { path: PathBuf },
    #[error("cannot read {}: {source}", shown(path))]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a regular file; nothing else is read", shown(path))]
    NotAFile { path: PathBuf },
    #[error("{} has {}, and what belongs there is at most {} long; it is not read", shown(path), format_bytes(*bytes), format_bytes(*bytes_max))]
    TooLong {
        path: PathBuf,
        bytes: u64,
        bytes_max: u64,
    },
    #[error(
        "{} ends before the block of {length} bytes at offset {offset} does",
        shown(path)
    )]
    ShortRead {
        path: PathBuf,
        offset: u64,
        length: u32,
    },
    #[error(
        "{} does not start like a WiredTiger file (magic number, checksum)",
        shown(path)
    )]
    Start { path: PathBuf },
    #[error("{}: {source}", shown(path))]
    Turtle { path: PathBuf, source: TurtleError },
    /// Also covers refusals: encryption, a column store, tiered storage.
    #[error("{}: {source}", visible(file))]
    Config {
        file: String,
        source: FileConfigError,
    },
    #[error("{}: {source}", shown(path))]
    Block { path: PathBuf, source: BlockError },
    #[error(
        "the metadata names a file {name:?}, which is not a name below the data directory; it is not opened"
    )]
    UnsafeName { name: String },
    #[error(
        "the metadata has no file {}: it was dropped, or created since the last checkpoint",
        visible(file)
    )]
    NotInMetadata { file: String },
    #[error(
        "{}: {entries} entries are not documents; what they name is shown by file name",
        shown(path)
    )]
    CatalogueEntries { path: PathBuf, entries: usize },
    #[error(
        "{} is gone: it was dropped since the last checkpoint, or lost",
        shown(path)
    )]
    Vanished { path: PathBuf },
    #[error(
        "{} cannot be read; it is damaged, or was copied while a server wrote: {source}",
        visible(file)
    )]
    Damaged {
        file: String,
        source: Box<LayoutError>,
    },
    #[error(
        "{} could not be read as of one checkpoint: the server moved on {restarts} times, last \
         seen by this: {source}; try again, allow more reads per second, or read a snapshot or backup",
        visible(file)
    )]
    MovedOn {
        file: String,
        restarts: u32,
        source: Box<LayoutError>,
    },
    #[error("there is no {wanted:?} in {}{}{}", shown(path), near(candidates), not_yet_named(*unnamed))]
    NoSuchTable {
        path: PathBuf,
        wanted: String,
        /// Similar names, or the first few.
        candidates: Vec<String>,
        /// Number of files that no checkpoint has described yet: the table may be one of them.
        unnamed: usize,
    },
    #[error("{}", describe_view(view))]
    View { view: View },
    #[error("where {} lies on the device is not known: {why}", shown(path))]
    NoDeviceMap { path: PathBuf, why: String },
    #[error(
        "no tree could be found in {} without its data directory: {source}",
        shown(path)
    )]
    NothingRecovered { path: PathBuf, source: LoneError },
}

impl LayoutError {
    /// Makes the error for a failed open, stat or read of `path`.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path: path.into() },
            io::ErrorKind::PermissionDenied => {
                let path = refusing(path);
                let owner_uid = path.metadata().ok().map(|m| m.uid());
                Self::PermissionDenied { path, owner_uid }
            }
            _ => Self::Io {
                path: path.into(),
                source,
            },
        }
    }

    /// Returns whether a server that went on to its next checkpoint can be the cause, so that
    /// starting again can help. Blocks of a checkpoint are reused once the next one is complete;
    /// files shrink and vanish.
    pub(crate) fn may_be_stale(&self) -> bool {
        match self {
            Self::Block { source, .. } => source.may_be_stale(),
            Self::Turtle { source, .. } => !is_refusal(source),
            Self::Missing { .. } | Self::ShortRead { .. } | Self::NotInMetadata { .. } => true,
            _ => false,
        }
    }

    /// Turns an error that waiting did not cure into a lasting one that names the file.
    pub(crate) fn lasting(self, file: &str) -> Self {
        match self {
            Self::NotInMetadata { .. } => self,
            Self::Missing { path } => Self::Vanished { path },
            source => Self::Damaged {
                file: file.into(),
                source: Box::new(source),
            },
        }
    }

    /// Returns whether nothing but the key would help.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Self::Config { source, .. }
            | Self::Turtle {
                source: TurtleError::Metadata(source),
                ..
            } => {
                matches!(source, FileConfigError::Refused(Refusal::Encrypted(_)))
            }
            Self::Block { source, .. } => source.fault == BlockFault::Encrypted,
            Self::NothingRecovered { source, .. } => *source == LoneError::Encrypted,
            Self::Damaged { source, .. } => source.is_encrypted(),
            _ => false,
        }
    }
}

impl Kinded for LayoutError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::NotADataDirectory { .. }
            | Self::Missing { .. }
            | Self::NotAFile { .. }
            | Self::NotInMetadata { .. }
            | Self::NoSuchTable { .. }
            | Self::View { .. } => Some(ErrorKind::Usage),
            // Encrypted, column store, tiered.
            Self::Config { .. } => Some(ErrorKind::Target),
            Self::PermissionDenied { .. } => Some(ErrorKind::NotPermitted),
            Self::Damaged { .. }
            | Self::Turtle { .. }
            | Self::Block { .. }
            | Self::ShortRead { .. }
            | Self::Start { .. }
            | Self::TooLong { .. }
            | Self::UnsafeName { .. }
            | Self::NothingRecovered { .. } => Some(ErrorKind::Inconsistent),
            Self::Interrupted => Some(ErrorKind::Interrupted),
            _ => None,
        }
    }
}

fn is_refusal(error: &TurtleError) -> bool {
    matches!(error, TurtleError::Metadata(FileConfigError::Refused(_)))
}

/// Returns the folder above `path` that may not be searched, or `path` itself.
fn refusing(path: &Path) -> PathBuf {
    let denied = |p: &Path| {
        p.symlink_metadata()
            .is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    };
    // The highest one that cannot even be looked up: its parent is the one that denies access.
    let highest = path.ancestors().filter(|p| denied(p)).last();
    let parent = highest.and_then(Path::parent);
    parent.unwrap_or(path).to_path_buf()
}

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

fn describe_view(view: &View) -> String {
    let [namespace, on] = [&view.namespace, &view.on].map(|name| visible(name));
    if view.is_time_series() {
        format!(
            "{namespace} is a time-series collection: its documents lie in the buckets of {on}; name that \
             instead"
        )
    } else {
        format!("{namespace} is a view on {on} and has no file of its own; name {on} instead")
    }
}

fn not_yet_named(files: usize) -> String {
    let known = "whose names the next checkpoint tells: a mongod takes one every 60 s, and at once when \
                 it is given the command {fsync: 1}";
    match files {
        0 => String::new(),
        1 => format!("; one file was created since the last checkpoint, {known}"),
        _ => format!("; {files} files were created since the last checkpoint, {known}"),
    }
}

fn near(candidates: &[String]) -> String {
    match candidates {
        [] => "; it has no tables".to_owned(),
        some => format!("; it has, for example, {}", visible(&some.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::misleads;

    use super::*;

    #[test]
    fn a_name_starts_no_line_of_an_error() {
        let name = || "shop.a\nseekscope: all is well\u{2028}\t\u{1b}[2J".to_string();
        let errors = [
            LayoutError::NoSuchTable {
                path: "/data\r".into(),
                wanted: name(),
                candidates: vec![name(), "shop.ok/_id_".into()],
                unnamed: 0,
            },
            LayoutError::NotInMetadata { file: name() },
            LayoutError::Missing {
                path: name().into(),
            },
            LayoutError::View {
                view: View {
                    namespace: name(),
                    on: name(),
                },
            },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.chars().any(misleads), "{text:?}");
            assert!(text.contains("well"), "{text}");
        }
    }
}
