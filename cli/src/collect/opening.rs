//! Opens runs and bundles. A bundle comes from others, and is treated as hostile until checked.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use rustix::fs::{Access, access};
use seekscope_run::{MemberRun, RunDirectory, RunDocument, RunError};
use zstd::stream::read::Decoder;

use super::FIGURES;
use super::stopping::{go_on, until_signal};
use crate::exit::{Inconsistent, NotPermitted, Usage};
use crate::interruption::Interruption;
use crate::session::{Session, run_folder};
use crate::trace::disk_is_full;

/// Files that a bundle may contain, beside [`FIGURES`]; nothing else is unpacked.
const FILES: [&str; 6] = [
    "run.json",
    "io.parquet",
    "files.parquet",
    "threads.parquet",
    "server.parquet",
    "layout.parquet",
];
/// The most runs of members in the bundle of a deployment.
const MEMBERS_MAX: usize = 256;
/// A bundle that unpacks to more than this is not one of ours.
const TOTAL_BYTES_MAX: u64 = 16 << 30;
/// Limits the document, which is read into memory.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;
/// Bytes written between checks of the free space on the disk.
const STRETCH_BYTES: u64 = 64 << 20;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens a run where it is, or unpacks a bundle into a folder and opens that: into `out`, or else into a new folder for
/// `command`.
///
/// # Errors
/// Returns [`seekscope_run::RunError::NotARun`] if the path is neither.
pub async fn open(path: &Path, command: &str, out: Option<&Path>) -> Result<Session> {
    if is_bundle(path) {
        let (directory, document) = unpacked(path, &run_folder(command, out)).await?;
        return Ok(Session::reopen(directory, document));
    }
    if let Some(copy) = out {
        RunDirectory::read_document(path)?;
        copy_run(path, copy)?;
        let (directory, document) = RunDirectory::open(copy)?;
        return Ok(Session::reopen(directory, document));
    }
    if path.is_dir() && access(path, Access::WRITE_OK).is_err() {
        let text = format!(
            "{} may not be written to, and a run is shown with a page in its folder: --out DIR shows a copy of it",
            path.display()
        );
        return Err(NotPermitted(text).into());
    }
    let (directory, document) = RunDirectory::open(path)?;
    Ok(Session::reopen(directory, document))
}

/// Opens a run where it is, to read from it alone, or unpacks a bundle into a new folder for `command` and opens that.
///
/// # Errors
/// Returns [`seekscope_run::RunError::NotARun`] if the path is neither.
pub async fn open_to_read(path: &Path, command: &str) -> Result<(RunDirectory, RunDocument)> {
    match is_bundle(path) {
        true => unpacked(path, &run_folder(command, None)).await,
        false => Ok(RunDirectory::open(path)?),
    }
}

async fn unpacked(bundle: &Path, folder: &Path) -> Result<(RunDirectory, RunDocument)> {
    unpack(bundle, folder).await?;
    Ok(RunDirectory::open(folder)?)
}

/// Copies a run, with those of the members of a deployment.
fn copy_run(from: &Path, to: &Path) -> Result<()> {
    RunDirectory::copy_records(from, to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let is_run = RunDirectory::read_document(&entry.path()).is_ok();
        if is_run && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            RunDirectory::copy_records(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns whether the file looks like a bundle, by its first bytes.
fn is_bundle(path: &Path) -> bool {
    path.is_file()
        && first_bytes(path)
            .is_ok_and(|bytes| bytes == ZSTD_MAGIC || bytes.starts_with(&GZIP_MAGIC))
}

fn first_bytes(path: &Path) -> io::Result<[u8; 4]> {
    let mut bytes = [0; 4];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Unpacks a bundle into a folder that it creates. The folder appears once all of it is unpacked; a bundle that
/// is refused or interrupted leaves nothing.
async fn unpack(bundle: &Path, folder: &Path) -> Result<()> {
    let (bundle, folder) = (bundle.to_path_buf(), folder.to_path_buf());
    until_signal(Interruption::listen(), move |stop| {
        unpack_until(&bundle, &folder, TOTAL_BYTES_MAX, stop)
            .with_context(|| format!("while unpacking {}", bundle.display()))
    })
    .await
}

fn unpack_until(bundle: &Path, folder: &Path, most: u64, stop: &AtomicBool) -> Result<()> {
    let exists = folder.exists();
    if exists && !folder.is_dir() {
        let path = folder.to_path_buf();
        return Err(RunError::NotAFolder { path }.into());
    }
    if exists && fs::read_dir(folder)?.next().is_some() {
        return Err(Usage(format!("{} is not empty", folder.display())).into());
    }
    // On the folder's own filesystem, which may be mounted there.
    let beside = match folder.parent() {
        _ if exists => folder,
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(beside)?;
    let work = tempfile::tempdir_in(beside)?;
    // With the permissions of any other run, which a temporary folder does not have.
    let unpacked = work.path().join("run");
    fs::create_dir(&unpacked)?;
    let file = File::open(bundle)?;
    match first_bytes(bundle)? {
        ZSTD_MAGIC => unpack_tar(Decoder::new(file)?, &unpacked, most, stop)?,
        _ => unpack_tar(GzDecoder::new(file), &unpacked, most, stop)?,
    }
    if !exists {
        return Ok(fs::rename(&unpacked, folder)?);
    }
    let entries = fs::read_dir(&unpacked)?.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<OsString> = entries.collect::<io::Result<_>>()?;
    // The document comes last: without it this is not a run yet.
    names.sort_by_key(|name| name == "run.json");
    for name in names {
        fs::rename(unpacked.join(&name), folder.join(&name))?;
    }
    Ok(())
}

fn unpack_tar(packed: impl Read, folder: &Path, most: u64, stop: &AtomicBool) -> Result<()> {
    let mut archive = tar::Archive::new(packed.take(most));
    let unpacked = unpack_entries(&mut archive, folder, stop);
    match archive.into_inner().limit() {
        0 => Err(Usage(format!("it unpacks to more than {most} bytes")).into()),
        _ => unpacked.map_err(|error| match ends_too_early(&error) {
            true => {
                let told = "the file ends in the middle of it: copy or collect it again";
                Inconsistent(told.into()).into()
            }
            false => error,
        }),
    }
}

fn ends_too_early(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
    })
}

fn unpack_entries(
    archive: &mut tar::Archive<impl Read>,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<()> {
    let mut members = 0;
    // Raw: long names and other extensions would be read into memory however large they are. Our bundles need
    // none, and such entries are refused for what they are.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let place = place_of(&path).filter(|_| entry.header().entry_type().is_file());
        let Some((member, name)) = place else {
            return Err(no_bundle(&format!("it holds {path:?}")));
        };
        if name == "run.json" && entry.size() > DOCUMENT_BYTES_MAX {
            return Err(Usage(format!("{name} in it is too large")).into());
        }
        let folder = folder.join(member);
        if !member.is_empty() && !folder.exists() {
            members += 1;
            if members > MEMBERS_MAX {
                return Err(Usage("it holds the runs of too many members".into()).into());
            }
            fs::create_dir(&folder)?;
        }
        let to = folder.join(name);
        // At most one file per name, which limits their number too.
        if to.exists() {
            return Err(no_bundle(&format!("it holds two of {name}")));
        }
        write_out(&mut entry, &to, stop)?;
    }
    match folder.join("run.json").exists() {
        true => Ok(()),
        false => Err(no_bundle("it holds no run.json")),
    }
}

/// Returns the member's folder, empty for the run itself, and the file that an entry is; `None` for anything else.
fn place_of(path: &Path) -> Option<(&str, &'static str)> {
    let path = path.to_str()?;
    let (member, name) = match path.rsplit_once('/') {
        None => ("", path),
        Some((member, name)) if MemberRun::is_folder(member) => (member, name),
        Some(_) => return None,
    };
    let mut names = FILES.into_iter().chain(FIGURES);
    let name = names.find(|known| *known == name)?;
    Some((member, name))
}

fn no_bundle(why: &str) -> anyhow::Error {
    Usage(format!("{why}: it is not a bundle of `seekscope collect`")).into()
}

fn write_out(entry: &mut impl Read, to: &Path, stop: &AtomicBool) -> Result<()> {
    let mut file = File::create_new(to)?;
    go_on(stop)?;
    while io::copy(&mut entry.by_ref().take(STRETCH_BYTES), &mut file)? == STRETCH_BYTES {
        go_on(stop)?;
        if disk_is_full(to.parent().unwrap_or(to)).is_some() {
            let why = "the disk is nearly full; name a folder on another one with --out";
            return Err(Usage(why.into()).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn header(name: &str, bytes: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_size(bytes);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }

    /// Writes a bundle with these files into `folder`.
    fn bundle(folder: &Path, files: &[(&str, &[u8])]) -> PathBuf {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            tar.append(&header(name, bytes.len() as u64), *bytes)
                .unwrap();
        }
        pack(folder, &tar.into_inner().unwrap())
    }

    fn pack(folder: &Path, tar: &[u8]) -> PathBuf {
        let path = folder.join("b.tar.zst");
        fs::write(&path, zstd::encode_all(tar, 1).unwrap()).unwrap();
        path
    }

    const MOST: u64 = 1 << 20;
    static GO_ON: AtomicBool = AtomicBool::new(false);

    fn is_alone(folder: &Path, bundle: &Path) -> bool {
        let names: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        names == [bundle]
    }

    #[test]
    fn it_is_there_when_all_of_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = bundle(folder.path(), &[("run.json", b"{}"), ("io.parquet", b"x")]);
        let (new, empty) = (folder.path().join("a/new"), folder.path().join("empty"));
        fs::create_dir(&empty).unwrap();
        for out in [new, empty] {
            unpack_until(&bundle, &out, MOST, &GO_ON).unwrap();
            assert_eq!(fs::read(out.join("io.parquet")).unwrap(), b"x");
            assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
            assert!(unpack_until(&bundle, &out, MOST, &GO_ON).is_err());
        }
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn members_have_folders_of_their_own_and_nothing_else_has() {
        for (path, expected) in [
            ("run.json", Some(("", "run.json"))),
            ("member-12/io.parquet", Some(("member-12", "io.parquet"))),
            ("member-1/report.html", None),
            ("other-1/run.json", None),
            ("../run.json", None),
            ("member-1/../run.json", None),
            ("/run.json", None),
            ("member-1/member-2/run.json", None),
        ] {
            assert_eq!(place_of(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn what_is_refused_or_interrupted_leaves_nothing() {
        let large = vec![0; 2 << 20];
        let refused: [&[(&str, &[u8])]; 4] = [
            &[("run.json", b"{}"), ("other", b"x")],
            &[("run.json", b"{}"), ("run.json", b"{}")],
            &[("io.parquet", b"x")],
            &[("run.json", b"{}"), ("io.parquet", &large)],
        ];
        for files in refused {
            let folder = tempfile::tempdir().unwrap();
            let bundle = bundle(folder.path(), files);
            let out = folder.path().join("out");
            let error = unpack_until(&bundle, &out, MOST, &GO_ON).unwrap_err();
            assert!(error.is::<Usage>(), "{error}");
            assert!(is_alone(folder.path(), &bundle));
        }
        let folder = tempfile::tempdir().unwrap();
        let bundle = bundle(folder.path(), &[("run.json", b"{}")]);
        let out = folder.path().join("out");
        let stop = AtomicBool::new(true);
        assert!(unpack_until(&bundle, &out, MOST, &stop).is_err());
        assert!(is_alone(folder.path(), &bundle));
    }

    #[test]
    fn a_torn_bundle_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = bundle(folder.path(), &[("run.json", &[b' '; 9_000])]);
        let bytes = fs::read(&bundle).unwrap();
        fs::write(&bundle, &bytes[..bytes.len() / 2]).unwrap();
        let out = folder.path().join("out");
        let error = unpack_until(&bundle, &out, MOST, &GO_ON).unwrap_err();
        assert!(error.is::<Inconsistent>(), "{error:?}");
        assert!(is_alone(folder.path(), &bundle));
    }

    #[test]
    fn a_long_name_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        // Claims to be longer than any memory, but is not.
        let mut long = header("././@LongLink", 1 << 50);
        long.set_entry_type(tar::EntryType::GNULongName);
        long.set_cksum();
        let bundle = pack(folder.path(), long.as_bytes());
        let out = folder.path().join("out");
        let error = unpack_until(&bundle, &out, MOST, &GO_ON).unwrap_err();
        assert!(error.is::<Usage>(), "{error}");
        assert!(error.to_string().contains("LongLink"), "{error}");
    }
}
