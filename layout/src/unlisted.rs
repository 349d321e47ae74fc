//! Files of tables that no checkpoint has described yet. The metadata and MongoDB's catalogue
//! describe the last checkpoint, so files created since can only be seen in the folders.

use std::fs;
use std::path::Path;

use crate::recognise;

/// directoryPerDB and directoryForIndexes put two folders above a file.
const FOLDERS_MAX: usize = 2;
/// No database directory has more relevant entries.
const ENTRIES_MAX: usize = 1 << 20;

/// Returns the names of all files that may be tables, relative to the data directory. Folders that
/// cannot be listed are treated as empty.
pub(crate) fn table_files_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut entries_left = ENTRIES_MAX;
    list(directory, "", 0, &mut entries_left, &mut found);
    found
}

fn list(
    folder: &Path,
    prefix: &str,
    depth: usize,
    entries_left: &mut usize,
    found: &mut Vec<String>,
) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if *entries_left == 0 {
            return;
        }
        *entries_left -= 1;
        // Names of MongoDB's files are ASCII; no other name can be one of them.
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() && depth < FOLDERS_MAX && !recognise::is_data_directory(&path) {
            let prefix = format!("{prefix}{name}/");
            list(&path, &prefix, depth + 1, entries_left, found);
        } else if kind.is_file() && name.ends_with(".wt") {
            found.push(format!("{prefix}{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_in_folders_are_found_and_other_databases_are_not() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            "a.wt",
            "a.txt",
            "db/index/b.wt",
            "db/index/deep/c.wt",
            "copy/d.wt",
            "copy/WiredTiger.turtle",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", root.path().join("e.wt")).unwrap();
        let mut found = table_files_below(root.path());
        found.sort();
        assert_eq!(found, ["a.wt", "db/index/b.wt"]);
        assert!(table_files_below(Path::new("/nowhere")).is_empty());
    }
}
