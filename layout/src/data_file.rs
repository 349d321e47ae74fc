//! One file of a data directory, opened without leaving a trace: nothing is written, not even the
//! time of last access, and the page cache is not filled with anything that was not asked for.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use crate::LayoutError;

/// No database page is this long; a longer one is a damaged pointer, and memory is finite.
const READ_BYTES_MAX: u32 = 256 << 20;

/// A file open for reading. Several threads may read at once, since reads name their offsets.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    path: PathBuf,
}

impl DataFile {
    /// Opens a regular file; symbolic links are followed, since data directories are moved that way.
    /// A pipe or device in its place is refused without waiting for it.
    pub(crate) fn open(path: &Path) -> Result<Self, LayoutError> {
        let failed = |errno: Errno| LayoutError::reading(path, errno.into());
        // A pipe opened without NONBLOCK would wait for a writer for ever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        // NOATIME is granted to the owner and to CAP_FOWNER only (open(2)).
        let opened = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
            other => other,
        };
        let file = File::from(opened.map_err(failed)?);
        let metadata = file.metadata().map_err(|e| LayoutError::reading(path, e))?;
        if !metadata.is_file() {
            return Err(LayoutError::NotAFile { path: path.into() });
        }
        Ok(Self {
            file,
            path: path.into(),
        })
    }

    /// Asks the kernel to read only what is asked for: read-ahead can be megabytes per page.
    pub(crate) fn without_read_ahead(self) -> Self {
        // Failed advice is not worth an error.
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::Random);
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Returns the file's present length.
    pub(crate) fn bytes(&self) -> Result<u64, LayoutError> {
        let metadata = self.file.metadata();
        Ok(metadata
            .map_err(|e| LayoutError::reading(&self.path, e))?
            .len())
    }

    /// Reads exactly these bytes at once; [`LayoutError::ShortRead`] if the file ends earlier.
    pub(crate) fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, LayoutError> {
        let short = || LayoutError::ShortRead {
            path: self.path.clone(),
            offset,
            length,
        };
        // Checked before memory is allocated for a length that only a damaged pointer can have.
        if length > READ_BYTES_MAX
            || (length > 1 << 20 && offset.saturating_add(length.into()) > self.bytes()?)
        {
            return Err(short());
        }
        let mut bytes = vec![0; length as usize];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(short()),
            Err(error) => Err(LayoutError::reading(&self.path, error)),
        }
    }

    /// Reads from `offset` on, at most as much as `buffer` holds. Returns the bytes read; 0 at the
    /// end of the file.
    pub(crate) fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize, LayoutError> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(|e| LayoutError::reading(&self.path, e)),
            }
        }
    }

    /// Reads the whole of a text file of at most `bytes_max`.
    pub(crate) fn read_whole(path: &Path, bytes_max: u64) -> Result<Vec<u8>, LayoutError> {
        let file = Self::open(path)?;
        let bytes = file.bytes()?;
        match u32::try_from(bytes) {
            Ok(length) if bytes <= bytes_max => file.read(0, length),
            _ => Err(LayoutError::TooLong {
                path: path.into(),
                bytes,
                bytes_max,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn reads_are_exact_or_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wt");
        fs::write(&path, b"0123456789").unwrap();
        let link = folder.path().join("link.wt");
        symlink(&path, &link).unwrap();
        let file = DataFile::open(&link).unwrap().without_read_ahead();
        assert_eq!(file.read(3, 4).unwrap(), b"3456");
        assert_eq!(file.bytes().unwrap(), 10);
        let short = file.read(8, 4).unwrap_err();
        assert!(
            matches!(
                short,
                LayoutError::ShortRead {
                    offset: 8,
                    length: 4,
                    ..
                }
            ),
            "{short}"
        );
        assert!(matches!(
            file.read(0, u32::MAX),
            Err(LayoutError::ShortRead { .. })
        ));
        assert!(matches!(
            file.read(u64::MAX - 3, 2 << 20),
            Err(LayoutError::ShortRead { .. })
        ));
        let error = DataFile::read_whole(&path, 9).unwrap_err();
        assert!(
            matches!(error, LayoutError::TooLong { bytes: 10, .. }),
            "{error}"
        );
    }

    #[test]
    fn neither_pipes_nor_folders_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.wt");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            let error = DataFile::open(path).unwrap_err();
            assert!(matches!(error, LayoutError::NotAFile { .. }), "{error}");
        }
    }
}
