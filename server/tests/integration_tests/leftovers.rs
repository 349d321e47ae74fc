//! What a killed run leaves, and lease files that lie.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use seekscope_server::leftovers::{clean, leftovers};
use seekscope_server::{ProcFs, Workspace};

use crate::child::Helper;
use crate::support::exists;

#[test]
fn a_killed_run_is_found_and_cleaned() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let leases = root.path().join("leases");
    let mut parent = Helper::start("holds_a_server", &root.path().to_string_lossy());
    let said = parent.hear();
    let directory = PathBuf::from(said.split_once(' ').unwrap().1);
    assert!(leftovers(&leases).found.is_empty(), "its owner lives");
    parent.child.kill().unwrap();
    parent.child.wait().unwrap();

    let left = leftovers(&leases);
    assert_eq!((left.found.len(), left.ignored.len()), (1, 0));
    assert!(
        left.found[0]
            .directory()
            .ends_with(directory.file_name().unwrap())
    );
    clean(&left.found[0]).unwrap();
    assert!(!directory.exists());
    assert!(leftovers(&leases).found.is_empty());
}

/// A lease of a dead owner with one field changed.
fn forge(root: &Path, change: impl Fn(&mut serde_json::Value)) -> (PathBuf, PathBuf) {
    let leases = root.join("leases");
    let workspace = Workspace::create(root, &leases).unwrap();
    let lease_file = leases.join(format!("{}.json", workspace.unique_name()));
    let mut lease: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&lease_file).unwrap()).unwrap();
    let directory = workspace.keep();
    lease["owner"]["start_ticks"] = 1.into();
    change(&mut lease);
    fs::write(&lease_file, lease.to_string()).unwrap();
    fs::set_permissions(&lease_file, fs::Permissions::from_mode(0o600)).unwrap();
    (lease_file, directory)
}

#[test]
fn a_server_is_killed_only_if_it_is_the_same_process() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let leases = root.path().join("leases");
    let mut sleeper = Command::new("sleep").arg("1000").spawn().unwrap();
    let identity = ProcFs::host().identity(sleeper.id()).unwrap();
    let as_json = || serde_json::to_value(&identity).unwrap();
    for (field, lie) in [
        ("start_ticks", 7.into()),
        ("exe", "/bin/other".into()),
        ("exe", serde_json::Value::Null),
    ] {
        forge(root.path(), |lease| {
            lease["server"] = as_json();
            lease["server"][field] = lie.clone();
        });
        let left = leftovers(&leases);
        assert_eq!(left.found[0].running_server(), None);
        clean(&left.found[0]).unwrap();
        assert!(
            sleeper.try_wait().unwrap().is_none(),
            "an innocent process was killed: {field}"
        );
    }
    forge(root.path(), |lease| {
        lease["boot_id"] = "an earlier boot".into()
    });
    forge(root.path(), |lease| lease["server"] = as_json());
    for left in leftovers(&leases).found {
        // The sleeper stays a zombie until we wait for it.
        clean(&left).unwrap();
    }
    assert!(!sleeper.wait().unwrap().success());
    assert!(!exists(identity.pid));
}

#[test]
fn hostile_leases_are_ignored_or_refused() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = root.path().canonicalize().unwrap();
    let leases = root.join("leases");
    let precious = root.join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "x").unwrap();
    let ignored = || leftovers(&leases).ignored.len();

    let lies: [(&str, serde_json::Value); 5] = [
        ("directory", precious.to_string_lossy().into()),
        ("directory", "../x".into()),
        ("cgroup", "/sys/fs/cgroup/blkio".into()),
        ("schema", "other".into()),
        ("token", "../../precious".into()),
    ];
    for (count, (field, lie)) in lies.into_iter().enumerate() {
        forge(&root, |lease| lease[field] = lie.clone());
        assert_eq!(ignored(), count + 1, "{field}");
    }
    fs::write(leases.join("broken.json"), "{").unwrap();
    fs::write(leases.join("huge.json"), vec![b' '; 1 << 20]).unwrap();
    symlink(precious.join("data"), leases.join("link.json")).unwrap();
    let (open_to_all, _) = forge(&root, |_| {});
    fs::set_permissions(open_to_all, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(ignored(), 9);
    assert!(leftovers(&leases).found.is_empty());

    // A believable lease whose directory was replaced by a link, or lost its marker.
    let (_, directory) = forge(&root, |_| {});
    fs::remove_dir_all(&directory).unwrap();
    symlink(&precious, &directory).unwrap();
    let (_, unmarked) = forge(&root, |_| {});
    fs::remove_file(unmarked.join(".seekscope-workspace")).unwrap();
    let left = leftovers(&leases).found;
    assert_eq!(left.len(), 2);
    for leftover in &left {
        clean(leftover).unwrap_err();
    }
    assert!(precious.join("data").exists() && unmarked.exists());
}
