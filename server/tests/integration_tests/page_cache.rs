//! Eviction of our own files.

use std::fs;

use seekscope_server::page_cache::{evict, resident_bytes};

#[test]
fn only_the_files_below_the_directory_are_evicted() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (inside, outside) = (root.path().join("in/sub"), root.path().join("out"));
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir_all(&outside).unwrap();
    let files = [inside.join("a"), outside.join("b")];
    for file in &files {
        fs::write(file, vec![7u8; 3_000_000]).unwrap();
        fs::read(file).unwrap();
    }
    fs::write(inside.join("empty"), "").unwrap();
    std::os::unix::fs::symlink(&files[1], inside.join("link")).unwrap();
    assert!(resident_bytes(&files).unwrap().resident_bytes >= 6_000_000);

    let after = evict(&root.path().join("in")).unwrap();
    assert_eq!(
        (after.files, after.total_bytes, after.resident_bytes),
        (2, 3_000_000, 0)
    );
    assert_eq!(resident_bytes(&files[..1]).unwrap().resident_bytes, 0);
    assert!(resident_bytes(&files[1..]).unwrap().resident_bytes >= 3_000_000);

    let missing = resident_bytes(&[root.path().join("gone")]).unwrap();
    assert_eq!(missing.files, 0);
    assert!(
        evict(&root.path().join("gone"))
            .unwrap_err()
            .to_string()
            .contains("gone")
    );
}
