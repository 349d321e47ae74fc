//! Opening and walking: names, figures, what is refused and what it is called.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use seekscope_layout::{
    DataDirectory, DeviceMap, LayoutError, TreeSource, WalkOptions, WalkedFile, walk_lone,
};
use seekscope_run::layout::{DataState, NameSource};
use serde_json::Value;

use crate::made_tree;
use crate::real_directory::{GO_ON, NAMES, RealDirectory, options};

fn open(path: &Path) -> Result<DataDirectory, LayoutError> {
    DataDirectory::open(path, &GO_ON)
}

fn walk(directory: &DataDirectory, wanted: &str) -> Result<WalkedFile, LayoutError> {
    directory.walk(directory.find(wanted).unwrap(), &options(4))
}

pub(crate) fn leaves(walked: &WalkedFile) -> Vec<(u64, u64)> {
    let leaves = walked.tree.leaves.iter();
    leaves
        .map(|leaf| (leaf.offset, leaf.length.into()))
        .collect()
}

pub(crate) fn true_leaves(file: &Value) -> Vec<(u64, u64)> {
    let leaves = file["leaves"].as_array().unwrap().iter();
    leaves
        .map(|l| (l[0].as_u64().unwrap(), l[1].as_u64().unwrap()))
        .collect()
}

/// Namespaces, indexes, counts and leaves are those that mongod and WiredTiger themselves told.
#[test]
fn real_directories_are_read_as_they_are() {
    let (mut files, mut leaf_pages) = (0, 0);
    for name in NAMES {
        let real = RealDirectory::unpack(name);
        let directory = real.open();
        assert_eq!(directory.state, DataState::Stopped);
        assert_eq!(directory.names, NameSource::Catalogue);
        assert!(directory.unreadable_names.is_empty());
        assert_eq!(
            directory.wiredtiger_version.as_deref(),
            real.expected["wiredtiger"].as_str()
        );
        let expected = real.expected["files"].as_object().unwrap();
        let listed: BTreeSet<_> = directory.tables().iter().map(|t| t.file.as_str()).collect();
        for table in directory.tables() {
            let Some(truth) = expected.get(&table.file) else {
                continue;
            };
            assert_eq!(
                table.namespace.as_deref(),
                truth["namespace"].as_str(),
                "{}",
                table.file
            );
            assert_eq!(
                table.index.as_deref(),
                truth["index"].as_str(),
                "{}",
                table.file
            );
            let walked = directory.walk(table, &options(16)).unwrap();
            assert_eq!(leaves(&walked), true_leaves(truth), "{}", table.file);
            assert_eq!(walked, directory.walk(table, &options(1)).unwrap());
            assert_eq!((walked.pinned_bytes, walked.restarts), (Some(0), 0));
            assert!(
                walked.file_bytes < 10 << 20 || walked.bytes_read * 1000 <= walked.file_bytes * 3
            );
            assert!(std::ptr::eq(directory.find(&table.name()).unwrap(), table));
            assert!(std::ptr::eq(directory.find(table.ident()).unwrap(), table));
            files += 1;
            leaf_pages += walked.tree.leaves.len();
        }
        assert!(
            expected.keys().all(|file| listed.contains(file.as_str())),
            "{listed:?}"
        );
        for (namespace, stats) in real.expected["collections"].as_object().unwrap() {
            let table = directory.find(namespace).unwrap();
            if stats["count"].as_u64() > Some(0) {
                assert_eq!(table.documents, stats["count"].as_u64(), "{namespace}");
            }
        }
    }
    assert_eq!((files, leaf_pages), (98, 3109));
}

#[test]
fn own_files_are_found_but_not_listed() {
    let real = RealDirectory::unpack("snappy42");
    let directory = real.open();
    for own in [
        "WiredTiger.wt",
        "_mdb_catalog.wt",
        "sizeStorer",
        "WiredTigerLAS.wt",
    ] {
        let table = directory.find(own).unwrap();
        assert!(
            directory
                .tables()
                .iter()
                .all(|listed| listed.file != table.file),
            "{own}"
        );
        directory.walk(table, &options(1)).unwrap();
    }
    let error = directory.find("sdu.thread").unwrap_err().to_string();
    assert!(
        error.contains("\"sdu.thread\"") && error.contains("sdu.threads8"),
        "{error}"
    );
}

#[test]
fn files_in_folders_are_found_by_path() {
    let real = RealDirectory::unpack("zlib_dirs");
    let name = "sdu/collection/11--8253614779706858340.wt";
    let (directory, found) = DataDirectory::containing(&real.file(name), &GO_ON)
        .unwrap()
        .unwrap();
    assert_eq!(found, name);
    let table = directory.find(&found).unwrap();
    assert_eq!(table.name(), "sdu.updated4pct");
    let by_path = directory.find(real.file(name).to_str().unwrap()).unwrap();
    assert_eq!(by_path.file, name);
    let alone = tempfile::tempdir().unwrap();
    let lone = alone.path().join("a.wt");
    fs::copy(real.file(name), &lone).unwrap();
    assert!(DataDirectory::containing(&lone, &GO_ON).unwrap().is_none());
    // A link into the directory leads there, too.
    let link = alone.path().join("link.wt");
    symlink(real.file(name), &link).unwrap();
    let (_, found) = DataDirectory::containing(&link, &GO_ON).unwrap().unwrap();
    assert_eq!(found, name);
}

#[test]
fn a_copied_backup_is_read_by_its_own_list() {
    let real = RealDirectory::unpack("snappy");
    let from_turtle = real.open();
    fs::write(real.file("WiredTiger.backup"), real.backup_text()).unwrap();
    fs::remove_file(real.file("WiredTiger.turtle")).unwrap();
    fs::remove_file(real.file("WiredTiger.wt")).unwrap();
    let from_backup = real.open();
    assert_eq!(from_backup.state, DataState::Backup);
    assert_eq!(from_backup.wiredtiger_version, None);
    let names = |d: &DataDirectory| d.tables().iter().map(|t| t.name()).collect::<Vec<_>>();
    assert_eq!(names(&from_backup), names(&from_turtle));
    for table in from_backup.tables() {
        let walked = from_backup.walk(table, &options(2)).unwrap();
        assert_eq!(
            leaves(&walked),
            true_leaves(&real.expected["files"][&table.file])
        );
    }
}

#[test]
fn a_turtle_that_was_about_to_be_replaced_counts() {
    let real = RealDirectory::unpack("none");
    fs::rename(
        real.file("WiredTiger.turtle"),
        real.file("WiredTiger.turtle.set"),
    )
    .unwrap();
    assert_eq!(real.open().tables().len(), 24);
}

#[test]
fn a_running_server_is_noticed_and_checkpoints_are_seen() {
    let real = RealDirectory::unpack("none");
    let lock = File::open(real.file("WiredTiger.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut directory = real.open();
    assert_eq!(directory.state, DataState::Live);
    assert!(!directory.refresh(&GO_ON).unwrap(), "nothing has happened");
    // A backup cursor pins its checkpoints, so its list goes before the turtle.
    let row = "file:index-19--4975105595696602924.wt";
    let text = real.backup_text();
    let text: Vec<_> = text.lines().collect();
    let kept: Vec<_> = text
        .chunks(2)
        .filter(|pair| pair[0] != row)
        .flatten()
        .copied()
        .collect();
    fs::write(real.file("WiredTiger.backup"), kept.join("\n") + "\n").unwrap();
    // Walks go by the new list at once, names by the next refresh.
    walk(&directory, "sdu.append").unwrap();
    assert!(directory.refresh(&GO_ON).unwrap());
    assert_eq!(directory.state, DataState::Live);
    assert_eq!(directory.wiredtiger_version.as_deref(), Some("2.9.2"));
    // Only the catalogue has it: created since the checkpoint.
    let new = directory.find("other.weird.name-é/_id_").unwrap();
    assert!(
        matches!(new.config, Err(LayoutError::NotInMetadata { .. })),
        "{new:?}"
    );
    let error = directory.walk(new, &options(1)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("created since the last checkpoint"),
        "{error}"
    );
}

#[test]
fn names_come_from_the_next_best_source() {
    let real = RealDirectory::unpack("none");
    let catalogue = File::options()
        .write(true)
        .open(real.file("_mdb_catalog.wt"))
        .unwrap();
    let bytes = catalogue.metadata().unwrap().len();
    catalogue
        .write_all_at(&vec![0xff; usize::try_from(bytes).unwrap() - 4096], 4096)
        .unwrap();
    let directory = real.open();
    assert_eq!(directory.names, NameSource::IndexMetadata);
    let why = directory.unreadable_names[0].to_string();
    assert!(
        why.contains("_mdb_catalog.wt cannot be read; it is damaged"),
        "{why}"
    );
    let table = directory.find("sdu.append/i_1").unwrap();
    assert_eq!(table.file, "index-15--4975105595696602924.wt");
    let collection = directory.find("collection-5--4975105595696602924").unwrap();
    assert_eq!(
        (&collection.namespace, collection.documents),
        (&None, Some(1500))
    );

    let folder = tempfile::tempdir().unwrap();
    let rows = made_tree::write(folder.path(), "accounts", 10, |i| i);
    made_tree::write_backup(folder.path(), &rows);
    let directory = open(folder.path()).unwrap();
    assert_eq!(directory.names, NameSource::TableNames);
    assert_eq!(
        directory.find("accounts").unwrap().namespace.as_deref(),
        Some("accounts")
    );
}

/// A walk needs nothing of the first block, but no server opens a file without it.
#[test]
fn a_file_that_no_server_would_open_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let rows = made_tree::write(folder.path(), "accounts", 10, |i| i);
    made_tree::write_backup(folder.path(), &rows);
    let walk = || {
        let directory = open(folder.path()).unwrap();
        directory.walk(directory.find("accounts").unwrap(), &options(16))
    };
    walk().unwrap();
    let path = folder.path().join("accounts.wt");
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0x55; 4096], 0).unwrap();
    let why = walk().unwrap_err().to_string();
    assert!(
        why.contains("does not start like a WiredTiger file"),
        "{why}"
    );
}

#[test]
fn a_large_tree_costs_a_thousandth_and_is_read_once() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let count = 65_536;
    let place = |i: u64| i * 40_503 % count;
    let rows = made_tree::write(folder.path(), "big", count, place);
    made_tree::write_backup(folder.path(), &rows);
    let directory = open(folder.path()).unwrap();
    let table = directory.find("big").unwrap();
    let keeping = WalkOptions {
        keep_pages: true,
        ..options(16)
    };
    let walked = directory.walk(table, &keeping).unwrap();
    let expected: Vec<_> = (0..count)
        .map(|i| (4096 + place(i) * 32_768, 32_768))
        .collect();
    assert_eq!(leaves(&walked), expected);
    assert_eq!(
        (walked.tree.depth, walked.tree.internal.len()),
        (4, 437 + 3 + 1)
    );
    assert_eq!(walked.reads, walked.tree.internal.len() as u64);
    assert!(walked.bytes_read * 1000 < walked.file_bytes);
    // Nothing has changed since, and a walk that keeps nothing takes up what was kept.
    let again = directory.walk(table, &keeping).unwrap();
    assert_eq!(
        (again.reads, again.tree.leaves.len()),
        (0, walked.tree.leaves.len())
    );
    let last = directory.walk(table, &options(16)).unwrap();
    assert_eq!((last.reads, last.tree), (0, walked.tree));
    assert_eq!(
        directory.walk(table, &options(16)).unwrap().reads,
        walked.reads
    );
}

#[test]
fn damage_is_named_by_file_offset_and_reason() {
    let real = RealDirectory::unpack("snappy");
    let name = "collection-5--1524076704828929010.wt";
    let root = real.expected["files"][name]["root"][0].as_u64().unwrap();
    let directory = real.open();
    let file = File::options().write(true).open(real.file(name)).unwrap();
    file.write_all_at(&[1], root + 100).unwrap();
    let error = walk(&directory, name).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LayoutError::Damaged { .. }), "{text}");
    assert!(
        text.contains(name) && text.contains(&root.to_string()),
        "{text}"
    );
    assert!(text.contains("checksum"), "{text}");
    file.set_len(root).unwrap();
    let text = walk(&directory, name).unwrap_err().to_string();
    assert!(text.contains("ends before the block"), "{text}");
    fs::remove_file(real.file(name)).unwrap();
    let error = walk(&directory, name).unwrap_err();
    assert!(
        matches!(&error, LayoutError::Vanished { path } if path.ends_with(name)),
        "{error}"
    );
}

#[test]
fn metadata_cannot_lead_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("db");
    fs::create_dir(&below).unwrap();
    let row = made_tree::write(folder.path(), "outside", 10, |i| i);
    let config = row.lines().nth(1).unwrap();
    let pipe = below.join("pipe.wt");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let absolute = folder.path().join("outside.wt");
    let names = ["../outside.wt", absolute.to_str().unwrap(), "pipe.wt"];
    let rows: String = names
        .iter()
        .map(|name| format!("file:{name}\n{config}\n"))
        .collect();
    made_tree::write_backup(&below, &rows);
    let directory = open(&below).unwrap();
    for name in names {
        let table = directory
            .tables()
            .iter()
            .find(|table| table.file == name)
            .unwrap();
        let error = directory.walk(table, &options(1)).unwrap_err();
        let refused = matches!(
            error,
            LayoutError::UnsafeName { .. } | LayoutError::NotAFile { .. }
        );
        assert!(refused, "{error}");
    }
}

#[test]
fn what_is_no_data_directory_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| open(path).unwrap_err().to_string();
    assert!(error(folder.path()).contains("it is empty"));
    fs::write(folder.path().join("local.ns"), "").unwrap();
    fs::write(folder.path().join("local.0"), "").unwrap();
    assert!(error(folder.path()).contains("MMAPv1"));
    assert!(error(&folder.path().join("local.0")).contains("it is a file"));
    assert!(error(&folder.path().join("nowhere")).contains("does not exist"));
    fs::write(folder.path().join("WiredTiger.turtle"), "no\nturtle\n").unwrap();
    assert!(error(folder.path()).contains("WiredTiger.turtle"));
    let text = "file:WiredTiger.wt\nencryption=(keyid=,name=AES256-CBC),checkpoint=()\n";
    fs::write(folder.path().join("WiredTiger.turtle"), text).unwrap();
    assert!(open(folder.path()).unwrap_err().is_encrypted());
}

#[test]
fn a_refused_permission_names_what_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let turtle = folder.path().join("WiredTiger.turtle");
    fs::write(&turtle, "").unwrap();
    set(&turtle, 0o000);
    for (mode, refusing) in [(0o755, turtle.as_path()), (0o000, folder.path())] {
        set(folder.path(), mode);
        let error = as_nobody(|| open(folder.path()).unwrap_err());
        set(folder.path(), 0o755);
        let named =
            matches!(&error, LayoutError::PermissionDenied { path, .. } if path == refusing);
        assert!(
            named && error.to_string().contains("CAP_DAC_READ_SEARCH"),
            "{error}"
        );
    }
}

/// Root may read everything; a thread that gives its file permissions up may not (setfsuid(2)).
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let as_nobody = || {
        // SAFETY: it changes the permissions of this thread, which ends right after.
        unsafe { libc::setfsuid(65_534) };
        act()
    };
    thread::scope(|scope| scope.spawn(as_nobody).join().unwrap())
}

#[test]
fn a_request_to_stop_is_heard_while_reading_slowly() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rows = made_tree::write(folder.path(), "big", 30_000, |i| i);
    made_tree::write_backup(folder.path(), &rows);
    let directory = open(folder.path()).unwrap();
    let stop = AtomicBool::new(false);
    // At a read a second this walk would take three minutes.
    let options = WalkOptions {
        reads_per_s: Some(1),
        stop: &stop,
        ..options(16)
    };
    thread::scope(|scope| {
        let walk = scope.spawn(|| directory.walk(directory.find("big").unwrap(), &options));
        thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(
            walk.join().unwrap(),
            Err(LayoutError::Interrupted)
        ));
    });
    assert!(matches!(
        DataDirectory::open(folder.path(), &stop),
        Err(LayoutError::Interrupted)
    ));
}

/// Without their directory, the files lead to the same trees; single leaves of old releases cannot be
/// found.
#[test]
fn lone_files_are_read_like_those_of_a_directory() {
    let mut guessed = 0;
    for name in NAMES {
        let real = RealDirectory::unpack(name);
        let directory = real.open();
        for table in directory.tables() {
            let walked = directory.walk(table, &options(4)).unwrap();
            match walk_lone(&real.file(&table.file), &options(4)) {
                Ok(lone) => {
                    assert_eq!(leaves(&lone), leaves(&walked), "{name}/{}", table.file);
                    assert!(lone.bytes_read >= walked.file_bytes);
                    if lone.source == TreeSource::OwnDescription {
                        assert_eq!(lone.free, walked.free, "{}", table.file);
                        assert_eq!(lone.overflow_bytes, walked.overflow_bytes);
                    } else {
                        assert_ne!(name, "snappy42");
                        assert_eq!((lone.overflow_bytes, lone.pinned_bytes), (None, None));
                        guessed += 1;
                    }
                }
                Err(error) => {
                    assert!(
                        matches!(error, LayoutError::NothingRecovered { .. }),
                        "{error}"
                    );
                    assert!(
                        walked.tree.leaves.len() < 2,
                        "{name}/{}: {error}",
                        table.file
                    );
                }
            }
        }
    }
    assert!(guessed > 0);
}

/// Uses the disk that the project is built on, which is no tmpfs.
#[test]
fn a_file_on_disk_has_places_on_its_device_and_a_hole_none() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("a.wt");
    let file = File::create(&path).unwrap();
    file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
    file.set_len(4 << 20).unwrap();
    file.sync_all().unwrap();
    let map = DeviceMap::read(&path).unwrap();
    assert!(map.device_offset(0).is_some() && map.device_offset((1 << 20) - 1).is_some());
    assert_eq!(map.device_offset(3 << 20), None);
    let bytes: u64 = map.extents().iter().map(|extent| extent.bytes).sum();
    assert_eq!((bytes, map.unplaced_bytes), (1 << 20, 0));
}
