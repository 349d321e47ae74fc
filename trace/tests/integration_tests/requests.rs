//! Whose requests of a disk are recorded, and which are only counted; what others' cost.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seekscope_run::{CountedRequests, IoLayer, RequestCause, TraceFacts};
use seekscope_trace::{Group, LiveSource, Recording, RequestScope, TraceOptions};

use crate::group_jobs::{MIB, PAGE, aligned, open_direct};
use crate::known_program::filled;
use crate::support::{Collector, Traced, Worker, alone};

/// Direct reads of a file that the traced process knows nothing of.
const OTHERS_READS: usize = 500;

fn counted(facts: &TraceFacts, cause: RequestCause) -> Vec<&CountedRequests> {
    let all = facts.requests.iter();
    all.filter(|counted| counted.cause == cause).collect()
}

fn reads(counted: &[&CountedRequests]) -> (u64, u64) {
    let requests = counted.iter().map(|c| c.reads).sum();
    (requests, counted.iter().map(|c| c.read_bytes).sum())
}

/// The traced process reads cold pages of its file while we read ours and write another.
fn trace(folder: &Path, requests: RequestScope) -> (TraceFacts, Traced, Vec<String>) {
    let ours = folder.join("ours.dat");
    filled(&ours, 4 * MIB).sync_all().unwrap();
    let direct = open_direct(&ours);
    let buffer = aligned(PAGE);
    let mut worker = Worker::start("cold_reads", folder);
    let sink = Collector::default();
    let source = LiveSource::attach(&TraceOptions {
        groups: vec![Group::Calls, Group::Block],
        requests,
        ..TraceOptions::new(worker.pid())
    })
    .unwrap();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    for page in 0..OTHERS_READS {
        direct
            .read_exact_at(buffer, (page * PAGE % (4 * MIB)) as u64)
            .unwrap();
    }
    filled(&folder.join("ours-too.dat"), MIB)
        .sync_all()
        .unwrap();
    let said = worker.work();
    let (facts, _) = recording.stop().unwrap();
    assert_eq!(facts.seen, facts.written + facts.lost, "{facts:?}");
    (facts, sink.take(), said)
}

#[test]
fn requests_of_others_are_counted_and_not_recorded() {
    let _turn = alone();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (facts, traced, said) = trace(folder.path(), RequestScope::TracedFiles);
    let own = folder.path().join("cold.dat");
    let mut recorded = (0, 0);
    for event in &traced.events {
        if event.op.layer() == IoLayer::Device {
            assert_eq!(traced.path(event), own.to_str().unwrap(), "{event:?}");
            recorded = (recorded.0 + 1, recorded.1 + u64::from(event.length));
        }
    }
    assert!(recorded.0 >= said.len() as u64, "{recorded:?} {facts:?}");
    // What the trace counted on its own files is what it recorded, but for ends that went by unseen.
    let (requests, bytes) = reads(&counted(&facts, RequestCause::TracedFiles));
    assert_eq!(
        requests,
        recorded.0 + facts.lost_end + facts.in_flight_at_end
    );
    assert!(
        facts.lost_end > 0 || bytes == recorded.1,
        "{bytes} {recorded:?}"
    );
    let (direct, _) = reads(&counted(&facts, RequestCause::Unknown));
    assert!(direct >= OTHERS_READS as u64, "{:?}", facts.requests);
    let written: u64 = counted(&facts, RequestCause::OtherFiles)
        .iter()
        .map(|c| c.write_bytes)
        .sum();
    assert!(written >= MIB as u64, "{:?}", facts.requests);
}

#[test]
fn the_whole_disk_is_recorded_where_asked_for() {
    let _turn = alone();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (facts, traced, _) = trace(folder.path(), RequestScope::WholeDisk);
    assert_eq!(facts.requests, []);
    let others = traced
        .events
        .iter()
        .filter(|e| e.op.layer() == IoLayer::Device)
        .filter(|e| !traced.path(e).ends_with("cold.dat"))
        .count() as u64;
    // An end that went by unseen is lost once the kernel uses its request again, and until then
    // looks as if it were still in flight.
    let unseen_ends = facts.lost_end + facts.in_flight_at_end;
    assert!(
        others + unseen_ends >= OTHERS_READS as u64,
        "{others} {facts:?}"
    );
}

/// Time that the kernel counted in the programs of this process, ns.
fn counted_by_kernel() -> u64 {
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter_map(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("run_time_ns:"))?;
            line.trim().parse::<u64>().ok()
        })
        .sum()
}

/// The kernel's statistics for as long as this lives, so that nothing has to be estimated.
struct AllStatistics(String);

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl AllStatistics {
    fn on() -> Self {
        let before = fs::read_to_string(SWITCH).unwrap();
        fs::write(SWITCH, "1").unwrap();
        Self(before)
    }
}

impl Drop for AllStatistics {
    fn drop(&mut self) {
        fs::write(SWITCH, &self.0).unwrap();
    }
}

/// While the traced process idles, everything the programs do is for others: the estimate from a sixteenth of
/// the time must come near the kernel's own count, and is no cost of events.
#[test]
fn the_cost_beside_an_idle_process_is_what_the_kernel_counts() {
    let _turn = alone();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let worker = Worker::start("fast_reads", folder.path());
    let ours = folder.path().join("ours.dat");
    filled(&ours, 4 * MIB).sync_all().unwrap();
    let statistics = AllStatistics::on();
    let sink = Collector::default();
    let source = LiveSource::attach(&TraceOptions {
        groups: vec![Group::Calls, Group::Block],
        ..TraceOptions::new(worker.pid())
    })
    .unwrap();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (file, buffer) = (open_direct(&ours), aligned(PAGE));
            while !stop.load(Ordering::Relaxed) {
                file.read_exact_at(buffer, 0).unwrap();
            }
        });
        std::thread::sleep(Duration::from_secs(8));
        stop.store(true, Ordering::Relaxed);
    });
    let truth_ns = counted_by_kernel();
    let (facts, _) = recording.stop().unwrap();
    drop(statistics);
    let ratio = facts.cost.program_ns as f64 / truth_ns as f64;
    assert!(
        (0.5..2.0).contains(&ratio),
        "{ratio}: {truth_ns} ns, {facts:?}"
    );
    assert!(
        facts.cost.standing_ns * 10 >= facts.cost.program_ns * 9,
        "{facts:?}"
    );
    eprintln!(
        "estimated {} ns, counted {truth_ns} ns, {} ns a request",
        facts.cost.program_ns,
        truth_ns
            / facts
                .requests
                .iter()
                .map(CountedRequests::requests)
                .sum::<u64>()
                .max(1)
    );
}
