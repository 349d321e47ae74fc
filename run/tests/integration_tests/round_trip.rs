use seekscope_run::{LeafRecord, Outcome, RunDirectory, RunDocument, RunError};

use crate::{event, files};

#[test]
fn what_is_written_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/run");
    let mut document = RunDocument::begin("doctor", vec!["--seed".into(), "1".into()]);
    let run = RunDirectory::create(&path, &document).unwrap();
    let count = 600_000; // more than two row groups
    let mut writer = run.io_writer().unwrap();
    files().iter().for_each(|f| writer.file(f).unwrap());
    (0..count).for_each(|n| writer.event(&event(n)).unwrap());
    writer.flush().unwrap();
    drop(writer);
    document.outcome = Outcome::Ok;
    run.save(&document).unwrap();
    run.finish_records().unwrap();
    assert!(matches!(
        RunDirectory::open(&path),
        Err(RunError::InUse { .. })
    ));
    drop(run);

    let (run, read) = RunDirectory::open(&path).unwrap();
    assert_eq!(read, document);
    assert_eq!(run.files().unwrap(), files());
    let mut n = 0;
    run.for_each_event(|e| {
        assert_eq!(*e, event(n));
        n += 1;
    })
    .unwrap();
    assert_eq!(n, count);
    assert!(!path.join("io.spool").exists());
}

#[test]
fn foreign_folders_are_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::write(parent.path().join("precious"), "x").unwrap();
    let refused = RunDirectory::create(parent.path(), &RunDocument::begin("doctor", vec![]));
    assert!(matches!(refused, Err(RunError::Occupied { .. })));
    assert!(matches!(
        RunDirectory::open(parent.path()),
        Err(RunError::NotARun { .. })
    ));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[test]
fn newer_damaged_and_older_documents() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("run.json");
    std::fs::write(&file, r#"{"schema": "seekscope/run/2"}"#).unwrap();
    assert!(matches!(
        RunDirectory::open(parent.path()),
        Err(RunError::TooNew { .. })
    ));
    std::fs::write(&file, r#"{"schema": "seekscope/run/1", "phases": 5}"#).unwrap();
    assert!(matches!(
        RunDirectory::open(parent.path()),
        Err(RunError::Damaged { .. })
    ));
    // The least that an old file may hold: everything added later has a default.
    let least = r#"{"schema": "seekscope/run/1", "seekscope_version": "0.0.1", "command": "doctor",
        "arguments": [], "outcome": "ok", "started": {"monotonic_ns": 1, "realtime_ns": 2}}"#;
    std::fs::write(&file, least).unwrap();
    let (_, document) = RunDirectory::open(parent.path()).unwrap();
    assert_eq!((document.outcome, document.phases.len()), (Outcome::Ok, 0));
}

#[test]
fn a_damaged_parquet_file_is_an_error_that_names_it() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("doctor", vec![])).unwrap();
    std::fs::write(
        parent.path().join("io.parquet"),
        "PAR1 but nothing else PAR1",
    )
    .unwrap();
    let message = run.for_each_event(|_| ()).unwrap_err().to_string();
    assert!(message.contains("io.parquet"), "{message}");
}

fn leaf(file_id: u32, ordinal: u64) -> LeafRecord {
    LeafRecord {
        file_id,
        ordinal,
        // Neither ascending nor small: beyond 32 bits, and up to the last that a file can have.
        offset: (ordinal * 2_654_435_761 % 100_003) << 46,
        length: u32::MAX - u32::try_from(ordinal % 9).unwrap(),
    }
}

#[test]
fn leaves_come_back_in_their_order() {
    let parent = tempfile::tempdir().unwrap();
    let document = RunDocument::begin("layout", vec![]);
    let run = RunDirectory::create(&parent.path().join("run"), &document).unwrap();
    let read = |file_id: Option<u32>| {
        let mut leaves = Vec::new();
        run.for_each_leaf(
            |id| file_id.is_none_or(|only| only == id),
            |leaf| leaves.push(*leaf),
        )
        .unwrap();
        leaves
    };
    assert!(read(None).is_empty(), "nothing was written");
    // More than one row group, and files that share one.
    let leaves: Vec<LeafRecord> = [(1, 200_000), (2, 3), (7, 70_000)]
        .into_iter()
        .flat_map(|(file_id, count)| (0..count).map(move |n| leaf(file_id, n)))
        .collect();
    let mut writer = run.leaf_writer().unwrap();
    leaves.iter().for_each(|leaf| writer.leaf(*leaf).unwrap());
    assert!(read(None).is_empty(), "not before it is finished");
    writer.finish().unwrap();
    assert!(read(None) == leaves);
    assert_eq!(read(Some(2)), leaves[200_000..200_003]);
    assert!(read(Some(3)).is_empty());

    // A later state replaces it, at once or not at all.
    let mut writer = run.leaf_writer().unwrap();
    writer.leaf(leaf(9, 0)).unwrap();
    drop(writer);
    assert_eq!(read(None).len(), leaves.len());
    let mut writer = run.leaf_writer().unwrap();
    writer.leaf(leaf(9, 0)).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(None), [leaf(9, 0)]);
}
