//! The three ways to access the test file: direct I/O, the page cache where that was allowed
//! instead, and a shared mapping.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};
use seekscope_run::ReadAdvice;

use super::options::PAGE_BYTES;
use super::{CompatOptions, MongoperfError, Options};
use crate::direct_probe::probe;
use crate::engine::Mapping;
use crate::{DiskError, TestFile};

/// How operations access the file.
#[derive(Debug)]
pub(crate) enum Access<'a> {
    Direct {
        file: File,
        /// Alignment of offsets, lengths and memory, bytes.
        alignment_bytes: u64,
    },
    /// pread and pwrite through the page cache.
    Cached(File),
    Mapped(Mapping<'a>),
}

impl<'a> Access<'a> {
    /// Opens the file as `options` ask. Calls `notice` with any deviation.
    pub(crate) fn open(
        file: &'a TestFile,
        options: &Options,
        compat: &CompatOptions,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, MongoperfError> {
        if options.mapped {
            return Self::map(file, compat);
        }
        match open_direct(file) {
            Ok(direct) => Ok(direct),
            Err(MongoperfError::NoDirectIo(why)) if compat.allow_cached => {
                notice(&format!(
                    "direct I/O is not possible here ({why}): these are figures of the page cache, \
                     not of a disk"
                ));
                Ok(Self::Cached(file.open(false)?))
            }
            Err(error) => Err(error),
        }
    }

    fn map(file: &'a TestFile, compat: &CompatOptions) -> Result<Self, MongoperfError> {
        // If the file could not be written around the page cache, all of it is in the cache now.
        fadvise(file, 0, None, Advice::DontNeed)
            .map_err(|e| DiskError::on("uncache the file in", file.path())(e.into()))?;
        let advice = if compat.read_around {
            ReadAdvice::Normal
        } else {
            ReadAdvice::Random
        };
        Ok(Self::Mapped(Mapping::new(file, advice)?))
    }

    /// Returns what lengths and offsets must be multiples of: blocks for direct I/O, pages for a
    /// mapping.
    pub(crate) fn alignment_bytes(&self) -> u64 {
        match self {
            Self::Direct {
                alignment_bytes, ..
            } => *alignment_bytes,
            Self::Cached(_) => 1,
            Self::Mapped(_) => PAGE_BYTES,
        }
    }

    /// Returns the name for the summary.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Direct { .. } => "direct I/O",
            Self::Cached(_) => "through the page cache",
            Self::Mapped(_) => "through a mapping (page cache)",
        }
    }

    /// Reads `buffer.len()` bytes; a mapping touches one byte in each page of them.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError> {
        match self {
            Self::Direct { file, .. } | Self::Cached(file) => {
                let result = file.read_exact_at(buffer, offset);
                result.map_err(device_error("read", offset))
            }
            Self::Mapped(mapping) => {
                mapping.touch(offset, buffer.len() as u64);
                Ok(())
            }
        }
    }

    /// Writes `buffer` and waits until it is on the disk; a mapping only stores one byte in each
    /// page.
    pub(crate) fn write(&self, buffer: &[u8], offset: u64) -> Result<(), DiskError> {
        match self {
            Self::Direct { file, .. } | Self::Cached(file) => {
                let written = file.write_all_at(buffer, offset);
                written.map_err(device_error("write", offset))?;
                file.sync_data().map_err(device_error("sync", offset))
            }
            Self::Mapped(mapping) => {
                mapping.mark(offset, buffer.len() as u64);
                Ok(())
            }
        }
    }
}

fn device_error(operation: &'static str, offset: u64) -> impl FnOnce(io::Error) -> DiskError {
    move |source| DiskError::Device {
        operation,
        offset,
        source,
    }
}

/// Opens the file for direct I/O, only if reads are seen to bypass the page cache: some filesystems
/// accept the flag and cache anyway.
fn open_direct(file: &TestFile) -> Result<Access<'_>, MongoperfError> {
    let facts = probe(file)?;
    if !facts.real {
        return Err(MongoperfError::NoDirectIo(facts.evidence));
    }
    Ok(Access::Direct {
        file: file.open(true)?,
        // A page if the kernel (before 6.1) or the filesystem does not say: hardly any requires
        // more.
        alignment_bytes: match facts.alignment_bytes {
            0 => PAGE_BYTES,
            bytes => bytes,
        },
    })
}
