//! Says what a directory is that is not a WiredTiger data directory, so that the user need not
//! guess.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// This many entries are enough.
const ENTRIES_MAX: usize = 10_000;

/// The presence of any of these makes a data directory.
pub(crate) const MARKS: [&str; 3] = [
    "WiredTiger.turtle",
    "WiredTiger.turtle.set",
    "WiredTiger.backup",
];

/// Returns a sentence about `path`, without a full stop.
pub(crate) fn describe(path: &Path) -> String {
    let Ok(entries) = fs::read_dir(path) else {
        return "it cannot be listed".to_owned();
    };
    let names: Vec<_> = entries
        .flatten()
        .take(ENTRIES_MAX)
        .map(|entry| entry.file_name())
        .collect();
    if names.is_empty() {
        return "it is empty".to_owned();
    }
    if let Some(above) = path.ancestors().skip(1).find(|p| is_data_directory(p)) {
        return format!(
            "it lies inside the data directory {}; name that",
            above.display()
        );
    }
    let below = names
        .iter()
        .find(|name| is_data_directory(&path.join(name)));
    if let Some(below) = below {
        let below = path.join(below);
        return format!(
            "the data directory {} lies inside it; name that",
            below.display()
        );
    }
    of_names(&names).to_owned()
}

/// Returns whether it is a data directory, looking at names only.
pub(crate) fn is_data_directory(path: &Path) -> bool {
    MARKS.iter().any(|mark| path.join(mark).exists())
}

fn of_names(names: &[impl AsRef<OsStr>]) -> &'static str {
    let named = |wanted: &str| names.iter().any(|n| n.as_ref() == wanted);
    let ending = |wanted: &str| {
        let extension = |n| Path::new(n).extension();
        names
            .iter()
            .any(|n| extension(n.as_ref()) == Some(OsStr::new(wanted)))
    };
    if ending("ns") && ending("0") {
        "it looks like MMAPv1, MongoDB's engine before WiredTiger, which stores no B-trees of pages"
    } else if named("CURRENT") && (ending("sst") || ending("ldb") || ending("log")) {
        "it looks like RocksDB or LevelDB, which have no B-trees"
    } else if named("PG_VERSION") {
        "it looks like PostgreSQL"
    } else if named("ibdata1") {
        "it looks like MySQL or MariaDB"
    } else if ending("wt") {
        "it has .wt files but not what names their roots; single files may be read as lone files"
    } else {
        "it does not look like any database that seekscope knows"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_told_by_what_is_in_them() {
        let looks_like = |files: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            describe(folder.path())
        };
        assert_eq!(looks_like(&[]), "it is empty");
        assert!(looks_like(&["local.ns", "local.0"]).contains("MMAPv1"));
        assert!(looks_like(&["CURRENT", "MANIFEST-000001", "000003.sst"]).contains("RocksDB"));
        assert!(looks_like(&["db/WiredTiger.turtle"]).contains("db lies inside it"));
        assert!(looks_like(&["collection-1.wt"]).contains("lone"));
        assert!(looks_like(&["letter.txt"]).contains("not look like any database"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("WiredTiger.backup"), "").unwrap();
        let shop = folder.path().join("shop");
        fs::create_dir(&shop).unwrap();
        fs::write(shop.join("collection-1.wt"), "").unwrap();
        assert!(describe(&shop).contains("lies inside the data directory"));
        assert!(!is_data_directory(&shop));
    }
}
