use std::io::Write;

use seekscope_run::{Outcome, RunDirectory, RunDocument};

use crate::{counter, event, files, interval};

/// After a crash there is no footer, no closed file, perhaps half a row: what was written counts.
#[test]
fn records_survive_a_crash() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("doctor", vec![])).unwrap();
    let mut writer = run.io_writer().unwrap();
    files().iter().for_each(|f| writer.file(f).unwrap());
    (0..1000).for_each(|n| writer.event(&event(n)).unwrap());
    writer.flush().unwrap();
    std::mem::forget(writer);
    let mut writer = run.interval_writer().unwrap();
    (0..20).for_each(|n| writer.write(&interval(n)).unwrap());
    std::mem::forget(writer);
    let counters: Vec<_> = (0..20).map(counter).collect();
    let mut writer = run.counter_writer().unwrap();
    writer.write(&counters[..7]).unwrap();
    std::mem::forget(writer);
    let mut again = run.counter_writer().unwrap();
    again.write(&counters[7..]).unwrap();
    std::mem::forget(again);
    drop(run);
    for (name, torn) in [
        ("io.spool", &b"torn"[..]),
        ("files.spool", &br#"{"file_id": 2, "pa"#[..]),
        ("intervals.spool", &br#"{"step": "#[..]),
        ("server.spool", &br#"{"t_ns": 1, "source": "x", "#[..]),
    ] {
        let path = parent.path().join(name);
        std::fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .write_all(torn)
            .unwrap();
    }

    let (run, document) = RunDirectory::open(parent.path()).unwrap();
    assert_eq!(document.outcome, Outcome::Partial);
    let mut n = 0;
    run.for_each_event(|e| {
        assert_eq!(*e, event(n));
        n += 1;
    })
    .unwrap();
    assert_eq!(n, 1000);
    assert_eq!(run.files().unwrap(), files());
    let intervals: Vec<_> = (0..20).map(interval).collect();
    assert_eq!(run.intervals().unwrap(), intervals);
    assert_eq!(run.counters().unwrap(), counters);
    drop(run);
    let (run, _) = RunDirectory::open(parent.path()).unwrap();
    assert_eq!(
        run.intervals().unwrap(),
        intervals,
        "opened once more, nothing changes"
    );
    assert_eq!(run.counters().unwrap(), counters);
    assert_eq!(run.files().unwrap(), files());
}
