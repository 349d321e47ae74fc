//! The test file: unnamed, or on request under the old program's name.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use rustix::fs::fstat;

use super::{CompatOptions, MongoperfError, Options};
use crate::{Contents, DiskError, FillOptions, TestFile, safety};

/// The name that the old program gave its file.
pub const KEPT_NAME: &str = "mongoperf__testfile__tmp";

/// Creates and fills the file. `progress` is called with the bytes written so far.
pub(crate) fn create(
    directory: &Path,
    options: &Options,
    compat: &CompatOptions,
    seed: u64,
    progress: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<TestFile, MongoperfError> {
    if !compat.next_to_database {
        safety::check_no_database(directory, Path::new("/proc"))?;
    }
    let contents = if compat.zero_fill {
        Contents::Zeros
    } else {
        Contents::Random { seed }
    };
    let bytes = options.file_bytes;
    if !compat.keep_file {
        return Ok(TestFile::create(
            directory,
            bytes,
            FillOptions::new(contents),
            progress,
            cancel,
        )?);
    }
    safety::check_space(directory, bytes)?;
    let path = directory.join(KEPT_NAME);
    let mut file = TestFile::create_named(&path).map_err(|error| match error {
        DiskError::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            MongoperfError::FileExists(path.display().to_string())
        }
        other => other.into(),
    })?;
    if let Err(error) = file.fill(bytes, FillOptions::new(contents), progress, cancel) {
        remove_own(&file, &path);
        return Err(error.into());
    }
    Ok(file)
}

/// Removes the name of a newly created file, unless something else has that name by now.
fn remove_own(file: &TestFile, path: &Path) {
    let (Ok(own), Ok(found)) = (fstat(file.as_fd()), path.symlink_metadata()) else {
        return;
    };
    if (own.st_dev, own.st_ino) == (found.dev(), found.ino()) {
        // Best effort while another failure is being handled, which is the one the user must learn
        // of.
        let _ = std::fs::remove_file(path);
    }
}
