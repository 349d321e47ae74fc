//! The salt that precedes names when they are hashed, so that they cannot be found by guessing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::exit::Usage;

const BYTES: usize = 16;

pub type Salt = [u8; BYTES];

/// Returns a salt. Without a file it is new each time and kept nowhere; otherwise it is read from the file,
/// which is created if missing, readable by its owner only.
pub fn salt(file: Option<&Path>) -> Result<Salt> {
    let Some(path) = file else {
        return draw();
    };
    let at = || format!("--salt-file {}", path.display());
    match File::open(path) {
        Ok(file) => read(file).with_context(at)?.ok_or_else(|| {
            let why =
                format!("does not hold the {BYTES} bytes of a salt; name a new file or one that seekscope made");
            Usage(format!("{} {why}", at())).into()
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let salt = draw()?;
            let mut new = OpenOptions::new();
            new.write(true).create_new(true).mode(0o600);
            let mut file = new.open(path).with_context(at)?;
            file.write_all(&salt).with_context(at)?;
            file.sync_all().with_context(at)?;
            Ok(salt)
        }
        Err(error) => Err(error).with_context(at),
    }
}

/// Reads the salt; `None` if the file is not one of ours.
fn read(file: File) -> io::Result<Option<Salt>> {
    let mut bytes = Vec::new();
    file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok())
}

fn draw() -> Result<Salt> {
    let mut salt = [0; BYTES];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut salt))
        .context("cannot draw a salt from /dev/urandom")?;
    Ok(salt)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_named_file_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("salt");
        let first = salt(Some(&path)).unwrap();
        assert_eq!(salt(Some(&path)).unwrap(), first);
        assert_ne!(salt(None).unwrap(), first);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "for its owner only");
        for not_ours in [&b""[..], &[1; BYTES - 1], &[1; BYTES + 1]] {
            std::fs::write(&path, not_ours).unwrap();
            assert!(salt(Some(&path)).unwrap_err().is::<Usage>());
        }
    }
}
