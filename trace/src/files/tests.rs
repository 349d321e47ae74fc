//! Tests with a folder that looks like `/proc`.

use std::os::unix::fs::symlink;

use super::*;
use crate::notices::OpenedFile;

const PID: u32 = 42;

/// A folder that looks like `/proc` with one process, and its data folder.
struct FakeProc {
    root: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl FakeProc {
    fn new() -> Self {
        let fake = Self {
            root: tempfile::tempdir().unwrap(),
            data: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(fake.root.path().join("42/fd")).unwrap();
        fake
    }

    /// Creates a file of 5 bytes that the process has open as descriptor `fd`.
    fn open(&self, fd: u32, name: &str) -> (String, FileKey) {
        let path = self.data.path().join(name);
        fs::write(&path, b"12345").unwrap();
        symlink(&path, self.root.path().join(format!("42/fd/{fd}"))).unwrap();
        (
            path.to_str().unwrap().into(),
            key_of(&fs::metadata(&path).unwrap()),
        )
    }

    fn table(&self) -> FileTable {
        FileTable::scan(self.root.path(), &[PID]).unwrap()
    }
}

fn record(table: &mut FileTable, key: FileKey) -> FileRecord {
    let file_id = table.resolve(key).file_id;
    table.record(file_id).unwrap().clone()
}

#[test]
fn open_files_have_their_paths() {
    let fake = FakeProc::new();
    let (path, key) = fake.open(3, "collection-0.wt");
    let mut table = fake.table();
    assert_eq!(
        table.resolve(key),
        Resolved {
            file_id: 0,
            is_new: true
        }
    );
    assert_eq!(
        table.resolve(key),
        Resolved {
            file_id: 0,
            is_new: false
        }
    );
    let found = record(&mut table, key);
    assert_eq!(
        (found.path, found.path_state, found.size_bytes),
        (path, PathState::Known, 5)
    );
    assert_eq!((found.role, found.namespace), (FileRole::Other, None));
    assert_eq!(table.record(9), None);
    assert_eq!(table.record(1), None);
}

#[test]
fn a_file_opened_later_is_found_but_only_one_look_per_drain_is_made() {
    let fake = FakeProc::new();
    let mut table = fake.table();
    let (_, first) = fake.open(3, "first");
    assert_eq!(record(&mut table, first).path_state, PathState::Known);
    let (_, second) = fake.open(4, "second");
    assert_eq!(record(&mut table, second).path_state, PathState::Unresolved);
    table.next_drain();
    let (path, third) = fake.open(5, "third");
    assert_eq!(record(&mut table, third).path, path);
}

#[test]
fn a_file_never_seen_open_is_described() {
    let mut table = FakeProc::new().table();
    let found = record(&mut table, FileKey::new(254, 3, 17));
    assert_eq!(
        (found.path.as_str(), found.path_state),
        ("inode 17 on 254:3", PathState::Unresolved)
    );
}

#[test]
fn a_deleted_file_loses_the_kernels_suffix() {
    let fake = FakeProc::new();
    let (path, key) = fake.open(3, "journal.1 (deleted)");
    let found = record(&mut fake.table(), key);
    assert_eq!(
        (found.path.as_str(), found.path_state),
        (
            path.strip_suffix(DELETED_SUFFIX).unwrap(),
            PathState::Deleted
        )
    );
}

#[test]
fn a_name_that_really_ends_in_the_suffix_is_kept() {
    let fake = FakeProc::new();
    symlink("/", fake.root.path().join("42/root")).unwrap();
    let (path, key) = fake.open(3, "notes (deleted)");
    let found = record(&mut fake.table(), key);
    assert_eq!((found.path, found.path_state), (path, PathState::Known));
}

#[test]
fn refresh_tells_what_changed_and_nothing_else() {
    let fake = FakeProc::new();
    let (_, same) = fake.open(3, "same");
    let (path, grown) = fake.open(4, "grown");
    let mut table = fake.table();
    table.resolve(same);
    table.resolve(grown);
    fs::write(&path, b"1234567").unwrap();
    table.refresh();
    let changed = table.take_news();
    assert_eq!(changed.len(), 1);
    assert_eq!((&changed[0].path, changed[0].size_bytes), (&path, 7));
    table.refresh();
    assert_eq!(table.take_news(), []);
}

#[test]
fn a_file_open_too_shortly_is_found_beside_its_neighbours() {
    let fake = FakeProc::new();
    symlink("/", fake.root.path().join("42/root")).unwrap();
    fake.open(3, "neighbour");
    let mut table = fake.table();
    let path = fake.data.path().join("short");
    fs::write(&path, b"123").unwrap();
    let key = key_of(&fs::metadata(&path).unwrap());
    assert_eq!(record(&mut table, key).path_state, PathState::Unresolved);
    table.refresh();
    let changed = table.take_news();
    assert_eq!(changed.len(), 1);
    assert_eq!(
        (changed[0].path.as_str(), changed[0].size_bytes),
        (path.to_str().unwrap(), 3)
    );
    assert_eq!(record(&mut table, key), changed[0]);
}

#[test]
fn an_anonymous_device_matches_by_inode_if_only_one_file_has_it() {
    let mut table = FakeProc::new().table();
    let file = |path: &str| OpenFile {
        path: path.into(),
        path_state: PathState::Known,
        size_bytes: 0,
        pid: PID,
        generation: None,
    };
    table.seen.insert(FileKey::new(0, 50, 7), file("/btrfs"));
    table.seen.insert(FileKey::new(0, 51, 8), file("/one"));
    table.seen.insert(FileKey::new(0, 52, 8), file("/two"));
    table.seen.insert(FileKey::new(8, 1, 9), file("/ext4"));
    assert_eq!(record(&mut table, FileKey::new(0, 40, 7)).path, "/btrfs");
    assert_eq!(
        record(&mut table, FileKey::new(0, 40, 8)).path_state,
        PathState::Unresolved
    );
    assert_eq!(
        record(&mut table, FileKey::new(0, 40, 9)).path_state,
        PathState::Unresolved
    );
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let fake = FakeProc::new();
    let error = FileTable::scan(fake.root.path(), &[43]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn mapped_files_are_known_too() {
    let line = "7f00-7f01 r-xp 00000000 fe:01 247081                 /usr/bin/my program";
    let (key, path) = mapped_file(line).unwrap();
    assert_eq!((key.major(), key.minor(), key.inode), (254, 1, 247_081));
    assert_eq!(path, "/usr/bin/my program");
    for odd in [
        "",
        "7f00-7f01 rw-p 00000000 00:00 0 [heap]",
        "7f00-7f01 rw-p 00000000 00:00 0",
        "7f00-7f01 r-xp 00000000 zz:01 5 /x",
    ] {
        assert!(mapped_file(odd).is_none(), "{odd}");
    }
}

#[test]
fn requests_for_files_of_others_share_a_record_until_one_is_opened() {
    let fake = FakeProc::new();
    let mut table = fake.table();
    let disk = FileKey::new(254, 0, 0);
    let (one, two) = (FileKey::new(254, 1, 71), FileKey::new(254, 1, 72));
    let first = table.resolve_request(one, disk).file_id;
    assert_eq!(table.resolve_request(two, disk).file_id, first);
    assert!(
        table
            .record(first)
            .unwrap()
            .path
            .ends_with("for files of other processes")
    );
    assert_ne!(
        table.resolve_request(disk, disk).file_id,
        first,
        "no file at all"
    );
    table.opened(OpenedFile {
        file: two,
        generation: 1,
        pid: PID,
        path: Some("/data/two".into()),
        unlinked: false,
    });
    let opened = table.resolve_request(two, disk);
    assert_ne!(opened.file_id, first);
    assert_eq!(table.record(opened.file_id).unwrap().path, "/data/two");
    assert_eq!(table.resolve_request(one, disk).file_id, first);
    table.refresh();
    assert!(
        table
            .record(first)
            .unwrap()
            .path
            .ends_with("for files of other processes")
    );
}
