//! What directories of very many tables take of memory.

use std::path::PathBuf;
use std::process::Command;

use seekscope_layout::DataDirectory;

use crate::made_tree;
use crate::real_directory::GO_ON;

const TABLES: usize = 20_000;
/// Two kilobytes each, for names and what is kept of the configuration.
const OPENED_KIB_MAX: u64 = 40 << 10;

/// In a process of its own, as memory that other tests have given back would be used again.
#[test]
#[ignore = "started by another test"]
fn opens_a_directory_of_very_many_tables() {
    let path = PathBuf::from(std::env::var("SEEKSCOPE_TEST_CHILD").unwrap());
    let before = peak_kib();
    let directory = DataDirectory::open(&path, &GO_ON).unwrap();
    let taken = peak_kib() - before;
    assert_eq!(directory.tables().len(), TABLES);
    assert!(taken < OPENED_KIB_MAX, "{taken} KiB");
}

#[test]
fn very_many_tables_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    // As mongod 4.4 writes it: three rows for each table, of which one is of use.
    let text = |more: &str| {
        let unused = "app_metadata=(formatVersion=1),assert=(),collator=,columns=,dictionary=0";
        format!(
            "allocation_size=4KB,key_format=q,{unused},{}{more}",
            "log=(),".repeat(120)
        )
    };
    let checkpoint = "checkpoint=(WiredTigerCheckpoint.1=(addr=\"\",order=1,time=1700000000))";
    let rows: Vec<(String, String)> = (0..3 * TABLES)
        .map(|row| {
            let ident = format!("collection-{:05}", row % TABLES);
            match row / TABLES {
                0 => (format!("colgroup:{ident}"), text("")),
                1 => (format!("file:{ident}.wt"), text(checkpoint)),
                _ => (format!("table:{ident}"), text("")),
            }
        })
        .collect();
    made_tree::write_metadata(folder.path(), &rows);
    let metadata = folder.path().join("WiredTiger.wt");
    let metadata_kib = metadata.metadata().unwrap().len() >> 10;
    assert!(metadata_kib > 50 << 10, "{metadata_kib} KiB");
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "memory::opens_a_directory_of_very_many_tables",
            "--ignored",
        ])
        .env("SEEKSCOPE_TEST_CHILD", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// The most memory that this process has had.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}
