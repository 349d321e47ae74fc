//! io_uring, libaio, faults and requests of disks: known I/O compared with the trace.

use std::collections::BTreeMap;
use std::path::Path;

use seekscope_run::{IoEvent, IoFlags, IoLayer, IoOp, TraceFacts};
use seekscope_trace::{BackendChoice, Group, LiveSource, Recording, RequestScope, TraceOptions};

use crate::group_jobs::PAGE;
use crate::support::{Collector, Traced, Worker, alone};

/// A folder on a disk; /tmp may be in memory.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// Traces a job and returns the trailer, the trace and what the job said.
fn trace(job: &str, folder: &Path, group: Group) -> (TraceFacts, Traced, Vec<String>) {
    trace_with(job, folder, group, |_| {})
}

/// A request whose end goes by unseen counts as lost or as in flight: a machine may keep programs
/// from running wherever an interrupt met certain processes. What is not so must be exact, so the
/// job is repeated until nothing is missing by the trace's own account.
fn trace_with(
    job: &str,
    folder: &Path,
    group: Group,
    choose: impl Fn(&mut TraceOptions),
) -> (TraceFacts, Traced, Vec<String>) {
    for _ in 0..5 {
        let (facts, traced, said) = trace_once(job, folder, group, &choose);
        assert_eq!(facts.seen, facts.written + facts.lost, "{facts:?}");
        if facts.lost == 0 && facts.in_flight_at_end == 0 {
            return (facts, traced, said);
        }
        eprintln!("{job}: repeated after {facts:?}");
    }
    panic!("{job}: something was lost each time");
}

fn trace_once(
    job: &str,
    folder: &Path,
    group: Group,
    choose: impl Fn(&mut TraceOptions),
) -> (TraceFacts, Traced, Vec<String>) {
    let mut worker = Worker::start(job, folder);
    let sink = Collector::default();
    let mut options = TraceOptions {
        groups: vec![Group::Calls, group],
        ..TraceOptions::new(worker.pid())
    };
    choose(&mut options);
    let source = LiveSource::attach(&options).unwrap();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    let said = worker.work();
    let (facts, _) = recording.stop().unwrap();
    let covered = facts.coverage.iter().find(|c| c.group == group.name());
    assert!(covered.unwrap().covered, "{:?}", facts.coverage);
    (facts, sink.take(), said)
}

/// Returns the line that a job prints for such an event.
fn line(event: &IoEvent) -> String {
    let offset = event.offset.map_or(-1, |o| i64::try_from(o).unwrap());
    format!(
        "{} {offset} {} {}",
        event.op as u8, event.length, event.result
    )
}

/// Events on `file` that `chosen` lets pass, as lines, must be the expected, in any order.
fn assert_same(
    traced: &Traced,
    file: &Path,
    chosen: impl Fn(&IoEvent) -> bool,
    mut expected: Vec<String>,
) {
    let path = file.to_str().unwrap();
    let events = traced.events_on(path).filter(|event| chosen(event));
    let mut found: Vec<String> = events.map(line).collect();
    found.sort();
    expected.sort();
    assert!(!expected.is_empty());
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        let missing = these.iter().filter(|l| those.binary_search(l).is_err());
        missing.take(10).cloned().collect()
    };
    assert_eq!(
        (only(&found, &expected), only(&expected, &found)),
        (vec![], vec![])
    );
    assert_eq!(found, expected);
}

#[test]
fn every_request_of_io_uring_is_there() {
    let _turn = alone();
    let folder = folder();
    let (facts, traced, said) = trace("uring", folder.path(), Group::Uring);
    let of_uring =
        |e: &IoEvent| matches!(e.op, IoOp::UringRead | IoOp::UringWrite | IoOp::UringFsync);
    assert_same(&traced, &folder.path().join("uring.dat"), of_uring, said);
    let events: Vec<&IoEvent> = traced.events.iter().filter(|e| of_uring(e)).collect();
    for event in &events {
        assert!(event.flags.has(IoFlags::CACHE_UNKNOWN) && event.latency_ns > 0);
        assert_eq!(
            event.flags.has(IoFlags::DIRECT),
            event.length == 8192,
            "{event:?}"
        );
    }
    assert!(events.iter().any(|e| e.flags.has(IoFlags::APPEND)));
    assert!(
        events
            .iter()
            .any(|e| e.flags.has(IoFlags::OFFSET_FROM_POSITION))
    );
    assert_eq!(facts.in_flight_at_end, 0);
}

#[test]
fn every_request_of_libaio_is_there() {
    let _turn = alone();
    let folder = folder();
    let (facts, traced, said) = trace("aio", folder.path(), Group::Aio);
    let of_aio = |e: &IoEvent| matches!(e.op, IoOp::AioRead | IoOp::AioWrite | IoOp::AioFsync);
    assert_same(&traced, &folder.path().join("aio.dat"), of_aio, said);
    for event in traced.events.iter().filter(|e| of_aio(e)) {
        assert!(event.flags.has(IoFlags::DIRECT) && event.flags.has(IoFlags::CACHE_UNKNOWN));
        assert!(event.latency_ns > 0);
    }
    assert_eq!(
        facts.in_flight_at_end, 0,
        "a refused control block is not in flight"
    );
}

#[test]
fn every_major_fault_is_there() {
    let _turn = alone();
    let folder = folder();
    let (_, traced, said) = trace("faults", folder.path(), Group::Faults);
    let expected: Vec<String> = said.iter().filter(|l| *l != "resident").cloned().collect();
    assert!(
        expected.len() > 280,
        "only {} pages were cold",
        expected.len()
    );
    let path = folder.path().join("mapped.dat");
    assert_same(&traced, &path, |e| e.op == IoOp::MmapFault, expected);
    let faults = || traced.events.iter().filter(|e| e.op == IoOp::MmapFault);
    for event in faults() {
        assert!(
            event.latency_ns > 1000 && event.device_read_bytes >= 4096,
            "{event:?}"
        );
    }
    let waited = faults().filter(|e| e.flags.has(IoFlags::WAITED)).count();
    // A fast device answers some before the thread falls asleep.
    assert!(waited > 0);
}

#[test]
fn every_cold_read_reaches_the_disk_under_its_files_name() {
    let _turn = alone();
    let folder = folder();
    let (_, traced, said) = trace("cold_reads", folder.path(), Group::Block);
    assert!(said.len() > 350, "only {} pages were cold", said.len());
    let path = folder.path().join("cold.dat");
    let device = |e: &IoEvent| e.op == IoOp::BlockRead;
    assert_same(&traced, &path, device, said);
    let requests: Vec<&IoEvent> = traced
        .events_on(path.to_str().unwrap())
        .filter(|e| device(e))
        .collect();
    let mut inside_its_call = 0;
    for event in &requests {
        assert!(event.request.unwrap().sector > 0 && event.latency_ns > 0);
        assert!(!event.flags.has(IoFlags::METADATA | IoFlags::FILE_FROM_CALL));
        let call = traced.events.iter().find(|c| {
            c.op == IoOp::Pread && c.offset == event.offset && c.file_id == event.file_id
        });
        let call = call.unwrap();
        let inside =
            call.t_ns < event.t_ns && event.t_ns + event.latency_ns < call.t_ns + call.latency_ns;
        assert!(inside, "{event:?} {call:?}");
        let waited_for = event.flags.has(IoFlags::SYNCHRONOUS);
        inside_its_call += usize::from(event.tid == call.tid && waited_for);
    }
    // A busy disk gets some from a thread of the kernel, later.
    assert!(inside_its_call * 2 > requests.len(), "{inside_its_call}");
}

#[test]
fn requests_alone_of_a_file_opened_later_pass_the_filter_of_its_folder() {
    let _turn = alone();
    let folder = folder();
    let (_, traced, said) = trace_with(
        "reopened_cold_reads",
        folder.path(),
        Group::Block,
        |options| {
            options.kinds.clear();
            options.filter.paths = vec![folder.path().to_path_buf()];
        },
    );
    let all = |_: &IoEvent| true;
    assert_same(&traced, &folder.path().join("cold.dat"), all, said);
}

/// How often each page is covered by the events.
fn pages<'a>(events: impl Iterator<Item = &'a IoEvent>) -> BTreeMap<u64, usize> {
    let mut pages = BTreeMap::new();
    for event in events {
        let first = event.offset.unwrap();
        assert!(first % 4096 == 0 && event.length % 4096 == 0, "{event:?}");
        for page in (first..first + u64::from(event.length)).step_by(PAGE) {
            *pages.entry(page).or_default() += 1;
        }
    }
    pages
}

/// Says only what differs: page, found, expected.
fn assert_same_pages(found: &BTreeMap<u64, usize>, expected: &BTreeMap<u64, usize>) {
    let all = found.keys().chain(expected.keys());
    let times = |of: &BTreeMap<u64, usize>, page: &u64| of.get(page).copied().unwrap_or(0);
    let differing: BTreeMap<u64, (usize, usize)> = all
        .map(|page| (*page, (times(found, page), times(expected, page))))
        .filter(|(_, (found, expected))| found != expected)
        .collect();
    assert!(differing.is_empty(), "{differing:?}");
}

fn expected_pages(said: &[String]) -> BTreeMap<u64, usize> {
    let mut pages = BTreeMap::new();
    for line in said {
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        for page in (numbers[1]..numbers[1] + numbers[2]).step_by(PAGE) {
            *pages.entry(page).or_default() += 1;
        }
    }
    pages
}

#[test]
fn every_byte_of_direct_reads_reaches_the_disk_under_its_files_name() {
    let _turn = alone();
    let folder = folder();
    let (_, traced, said) = trace("direct_reads", folder.path(), Group::Block);
    let path = folder.path().join("direct.dat");
    let requests = || {
        traced
            .events_on(path.to_str().unwrap())
            .filter(|e| e.op == IoOp::BlockRead)
    };
    assert_same_pages(&pages(requests()), &expected_pages(&said));
    assert!(requests().all(|e| e.flags.has(IoFlags::FILE_FROM_CALL)));
    assert!(
        requests().count() > said.len(),
        "large reads become several requests"
    );
}

#[test]
fn synced_data_reaches_the_disk_under_its_files_name() {
    let _turn = alone();
    let folder = folder();
    let (_, traced, said) = trace_with("synced_writes", folder.path(), Group::Block, |options| {
        options.requests = RequestScope::WholeDisk;
    });
    let path = folder.path().join("synced.dat");
    let writes = || {
        traced
            .events_on(path.to_str().unwrap())
            .filter(|e| e.op == IoOp::BlockWrite)
    };
    assert_same_pages(&pages(writes()), &expected_pages(&said));
    assert!(writes().all(|e| e.flags.has(IoFlags::SYNCHRONOUS) && e.result > 0));
    // What the journal adds belongs to no file, and is named after the disk.
    let others = traced
        .events
        .iter()
        .filter(|e| e.op.layer() == IoLayer::Device);
    let mut nameless = 0;
    for event in others.filter(|e| traced.files[&e.file_id].inode == 0) {
        nameless += 1;
        assert!(
            traced.path(event).starts_with("requests on "),
            "{}",
            traced.path(event)
        );
    }
    assert!(nameless > 0, "the whole disk was asked for");
}

#[test]
fn all_groups_run_together_and_leave_the_calls_alone() {
    let _turn = alone();
    let folder = folder();
    let mut worker = Worker::start("fast_reads", folder.path());
    let sink = Collector::default();
    let source = LiveSource::attach(&TraceOptions {
        groups: Group::ALL.to_vec(),
        backend: BackendChoice::Auto,
        ..TraceOptions::new(worker.pid())
    })
    .unwrap();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    worker.work();
    let (facts, _) = recording.stop().unwrap();
    assert_eq!((facts.seen, facts.lost), (facts.written, 0), "{facts:?}");
    let calls = sink.take();
    let calls = calls.events.iter().filter(|e| e.op == IoOp::Pread).count();
    assert_eq!(calls as u64, crate::jobs::FAST_READS);
    eprintln!("{:#?}", facts.coverage);
}
