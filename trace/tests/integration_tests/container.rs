//! In another PID namespace the numbers we know are not the kernel's.

use std::process::Command;

use seekscope_trace::BackendChoice;

use crate::jobs::FAST_READS;
use crate::support::{alone, trace};

#[test]
fn reads_are_counted() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (facts, traced, _) = trace("fast_reads", folder.path(), BackendChoice::Auto);
    assert_eq!(facts.seen, FAST_READS);
    assert!(
        traced
            .events
            .iter()
            .all(|event| event.pid == traced.events[0].pid && event.pid != 0)
    );
}

#[test]
fn reads_are_counted_inside_a_container() {
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "container::reads_are_counted"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
