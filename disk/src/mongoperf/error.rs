//! Why a run ended without its result, and the corresponding exit code.

use std::io;

use seekscope_run::{ErrorKind, Kinded};

use super::input::InputError;
use super::options::OptionsError;
use crate::DiskError;

/// Why a run ended without its result. Anything that the old program printed on standard output has
/// been printed there already; the text of the error is for standard error.
#[derive(Debug, thiserror::Error)]
pub enum MongoperfError {
    #[error(
        "give the options on standard input: echo '{{nThreads:8,fileSizeMB:1000,r:true}}' | mongoperf"
    )]
    NoInput,
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("nThreads must be at least 1")]
    NoThreads,
    #[error(
        "direct I/O is not possible here ({0}), so the page cache and not the disk would be measured; name a directory on a disk, use mmf:true, or --allow-cached for the old behaviour"
    )]
    NoDirectIo(String),
    #[error(
        "{0} exists; it is neither overwritten nor removed: look whose it is, or leave out --keep-file"
    )]
    FileExists(String),
    #[error("{source}{}", in_terms_of_the_options(source))]
    Disk {
        #[from]
        source: DiskError,
    },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl MongoperfError {
    /// Returns whether the cancel flag was set.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(
            self,
            Self::Disk {
                source: DiskError::Interrupted
            }
        )
    }

    /// Returns the exit code: 1 where the old program used it, and for failures; 2 for options that
    /// the old program accepted and then misbehaved with, and that are refused here.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoThreads
            | Self::Options(
                OptionsError::OutOfRange { .. } | OptionsError::RecordExceedsFile { .. },
            ) => 2,
            Self::Disk {
                source: DiskError::LiveDatabase { .. },
            } => 3,
            Self::NoInput
            | Self::Input(_)
            | Self::Options(OptionsError::ThreadsType(_) | OptionsError::NothingToDo)
            | Self::NoDirectIo(_)
            | Self::FileExists(_)
            | Self::Disk { .. }
            | Self::Output(_) => 1,
        }
    }
}

impl Kinded for MongoperfError {
    fn kind(&self) -> Option<ErrorKind> {
        Some(ErrorKind::Code(self.exit_code()))
    }
}

/// Returns the name used in the input. Errors of the disk name the flags of `seekscope disk`, some
/// of which are fields of the input here.
fn in_terms_of_the_options(error: &DiskError) -> &'static str {
    match error {
        DiskError::NoSpace { .. } | DiskError::FileSizeLimit { .. } | DiskError::Full { .. } => {
            " (for mongoperf the size is the field fileSizeMB)"
        }
        DiskError::Memory { .. } => " (for mongoperf these are the fields nThreads and recSizeKB)",
        DiskError::LiveDatabase { .. } => " (for mongoperf the flag lifts the check alone)",
        _ => "",
    }
}
