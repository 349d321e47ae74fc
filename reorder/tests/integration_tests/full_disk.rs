//! A disk with too little room: before anything is done, and while the copy grows. As root, for the disk
//! is a small file system of its own.

use std::path::Path;
use std::process::Command;

use bson::doc;
use seekscope_reorder::{By, ReorderError, Step, Writers, apply, pending};

use crate::support::{Act, Bed, namespace, never};

/// The number of documents of 3 KB: more than a batch.
const DOCUMENTS: i32 = 8000;

/// A filesystem in memory, which disappears on drop with what is in it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(mib: u32) -> Self {
        let point = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "seekscope-test"]);
        let mounted = mount.arg(point.path()).status().unwrap();
        assert!(mounted.success(), "mounting a tmpfs needs root");
        Self(point)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, for the server's files are open until it has ended.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

async fn filled(disk: &SmallDisk) -> Bed {
    let bed = Bed::start_below(disk.path(), &[]).await;
    let documents = (0..DOCUMENTS).map(|i| doc! { "_id": i, "t": "x".repeat(3000) });
    bed.collection("c").insert_many(documents).await.unwrap();
    bed
}

async fn is_untouched(bed: &Bed) {
    assert_eq!(bed.scan("c").await.len(), DOCUMENTS as usize);
    assert_eq!(bed.names().await, ["c"]);
    let pending = pending(&bed.server, Some(&namespace("c"))).await.unwrap();
    assert_eq!(pending, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_for_a_copy_nothing_is_begun() {
    // 256 MiB are to stay free.
    let disk = SmallDisk::mount(256);
    let bed = filled(&disk).await;
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    let refused = apply(&bed.server, &mut request, &(), never())
        .await
        .unwrap_err();
    let ReorderError::NoSpace {
        free_bytes,
        needed_bytes,
    } = refused
    else {
        panic!("{refused}");
    };
    assert!(free_bytes < needed_bytes, "{refused}");
    is_untouched(&bed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_meanwhile_ends_it_and_it_is_undone() {
    let disk = SmallDisk::mount(640);
    let bed = filled(&disk).await;
    let mut request = bed.request("c", By::Natural, Writers::Quiesced);
    // The second batch of 12 MB waits longer than it takes to look at the disk again.
    request.max_rate_bytes_per_s = Some(1_000_000);
    let others = disk.path().join("others");
    let act = Act::at(Step::Copying, async move {
        std::fs::write(others, vec![0; 450 << 20]).unwrap();
    });
    let ended = apply(&bed.server, &mut request, &act, never())
        .await
        .unwrap_err();
    assert!(matches!(ended, ReorderError::NoSpace { .. }), "{ended}");
    is_untouched(&bed).await;
}
