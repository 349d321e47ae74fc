//! Unpacking a bundle that somebody sent: hostile until checked.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use zstd::stream::read::Decoder;

use crate::exit::Usage;

/// What a bundle may hold; nothing else is unpacked.
const FILES: [&str; 6] = [
    "run.json",
    "io.parquet",
    "files.parquet",
    "threads.parquet",
    "server.parquet",
    "layout.parquet",
];
/// A file that unpacks to more is none of ours.
const FILE_BYTES_MAX: u64 = 16 << 30;
/// The document is read into memory.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Does the file look like one, by its first bytes?
pub fn is_bundle(path: &Path) -> bool {
    path.is_file()
        && first_bytes(path)
            .is_ok_and(|bytes| bytes == ZSTD_MAGIC || bytes.starts_with(&GZIP_MAGIC))
}

fn first_bytes(path: &Path) -> io::Result<[u8; 4]> {
    let mut bytes = [0; 4];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Unpacks a bundle into a folder that it makes.
pub fn unpack(bundle: &Path, folder: &Path) -> Result<()> {
    let at = || format!("while unpacking {}", bundle.display());
    let file = File::open(bundle).with_context(at)?;
    if folder.exists() && std::fs::read_dir(folder).with_context(at)?.next().is_some() {
        return Err(Usage(format!("{} is not empty", folder.display())).into());
    }
    std::fs::create_dir_all(folder).with_context(at)?;
    match first_bytes(bundle).with_context(at)? {
        ZSTD_MAGIC => unpack_tar(Decoder::new(file).with_context(at)?, folder),
        _ => unpack_tar(GzDecoder::new(file), folder),
    }
    .with_context(at)
}

fn unpack_tar(packed: impl Read, folder: &Path) -> Result<()> {
    let mut has_document = false;
    for entry in tar::Archive::new(packed).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let name = FILES.iter().find(|name| path.as_path() == Path::new(name));
        let (Some(name), true) = (name, entry.header().entry_type().is_file()) else {
            return Err(Usage(format!(
                "it holds {path:?}: it is no bundle of `seekscope collect`"
            ))
            .into());
        };
        let most = match *name {
            "run.json" => DOCUMENT_BYTES_MAX,
            _ => FILE_BYTES_MAX,
        };
        if entry.size() > most {
            return Err(Usage(format!("{name} in it is too large")).into());
        }
        has_document |= *name == "run.json";
        // Twice the same name would overwrite.
        let mut file = File::create_new(folder.join(name))?;
        io::copy(&mut (&mut entry).take(most), &mut file)?;
    }
    match has_document {
        true => Ok(()),
        false => {
            Err(Usage("it holds no run.json: it is no bundle of `seekscope collect`".into()).into())
        }
    }
}
