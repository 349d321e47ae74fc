//! Recognises scans: reads of a whole file in key order.

use seekscope_pattern::{FileTrace, ThreadRole};
use seekscope_run::{LayoutFile, OperationSeen};

use super::Evidence;
use super::waiting::waited;
use crate::answers::{DOCUMENTS_EXAMINED, name_of};
use crate::wording::percent;

/// Fewest reads from which anything is concluded.
const READS_MIN: u64 = 100;
/// Share of a leaf's documents that a read brings, from which on the readers want neighbours.
const NEIGHBOURS_SHARE: f64 = 0.3;
/// The most documents that reads of a leaf each are believed to have been for, in leaves.
const MORE_THAN_A_LEAF: f64 = 1.5;
/// Share of the time of all reads that is nearly all of it.
const ALONE_SHARE: f64 = 0.8;
/// Share of the time for which reads must have been counted for that to tell anything.
const COUNTED_SHARE: f64 = 0.05;
/// Smallest share of steps to the neighbour in a scan that tells it from random reads.
const TELLING_SHARE: f64 = 0.1;
/// Operations that may each read pages of their own.
const SEEKING: [&str; 4] = [
    "opcounters.insert",
    "opcounters.query",
    "opcounters.update",
    "opcounters.delete",
];
/// Operations for each page that was read, from which on they may have read it one by one.
const OPERATIONS_PER_READ: f64 = 0.5;
/// Share of the leaves that one thread read, hardly any of them twice.
const COVERED_SHARE: f64 = 0.3;
const REREAD_SHARE_MAX: f64 = 0.05;
/// Readers who come back to a page after at least this share of all that they read, but for a few of the reads,
/// go round in one order. Of single documents read at random, half would be read again sooner.
const ROUND_SHARE: f64 = 0.5;
const SOONER_SHARE_MAX: f64 = 0.05;
/// Jobs that read a collection in key order, as currentOp calls them.
const SCAN_KINDS: [&str; 5] = [
    "index build",
    "createIndexes",
    "initial sync",
    "clone",
    "validate",
];

/// Scans of a file in the trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scanning {
    /// Number of reads that waited for the disk.
    pub reads: u64,
    /// Waiting for the disk by these reads, s per hour.
    pub waiting_s_per_hour: f64,
    /// Why these reads are considered a scan.
    pub because: String,
    /// Whether it was a job, such as an index build, that had ended before the watch did: it does not go on every
    /// hour.
    pub has_ended: bool,
    /// Requests that reached the disk for each page read, from the page cache or not; `None` where requests
    /// were not recorded.
    pub requests_per_page: Option<f64>,
    /// Mean latency of the calls that read a page, from the page cache or not, ns.
    pub page_latency_ns: f64,
    /// Whether this is the latency of a cold scan alone: one read at a time, and pages from the disk.
    pub is_cold_and_alone: bool,
    /// Whether nearly all leaves were read. The later a page is read in a scan, the more of what was read ahead of others
    /// it finds in the page cache, so that a part of a scan does not tell how long all of it takes.
    pub is_whole: bool,
}

/// Share of the leaves that is nearly all of them.
const WHOLE_SHARE: f64 = 0.9;

/// Smallest ratio of the bytes that the disk sent to those that were asked for, of a cold scan.
const FROM_DISK: f64 = 0.9;
/// The most reads in flight at once, in the mean while there are any, of one scan.
const ALONE_MAX: f64 = 1.2;

impl Evidence<'_> {
    /// Returns the scans of a file in the trace; `None` where its reads, if any, may be of single documents.
    pub fn scanning(&self, file: &LayoutFile) -> Option<Scanning> {
        let seconds = self.traced_s()?;
        let mut files = self.trace?.files.iter();
        let traced = files.find(|traced| is_same(traced, file))?;
        let (reads, ns) = waited(traced);
        (reads >= READS_MIN).then_some(())?;
        let operation = seen_on(self, file);
        let because = by_index_build(self, file)
            .or_else(|| operation.map(by_operation))
            .or_else(|| by_steps(traced, file))
            .or_else(|| by_documents(self, file, traced, seconds))
            .or_else(|| by_coverage(self, traced, file))
            .or_else(|| by_rounds(traced, file))?;
        let (pages, requests) = (traced.reads.transfers.calls, traced.device.reads.calls);
        Some(Scanning {
            reads,
            waiting_s_per_hour: ns / 1e9 / seconds * 3600.0,
            because,
            has_ended: operation.is_some_and(|seen| is_job(seen) && seen.looks_since > 0),
            requests_per_page: (requests > 0).then(|| requests as f64 / pages.max(1) as f64),
            page_latency_ns: traced.reads.transfers.latency_ns.mean as f64,
            is_cold_and_alone: traced.device.read_amplification >= Some(FROM_DISK)
                && traced.queue_depth.mean_while_busy <= ALONE_MAX,
            is_whole: covered_share(traced, file).is_some_and(|covered| covered >= WHOLE_SHARE),
        })
    }
}

fn is_same(traced: &FileTrace, file: &LayoutFile) -> bool {
    let path = &traced.file.path;
    let ends_alike = path
        .strip_suffix(&file.file)
        .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    let named = file.namespace.is_some() && traced.file.namespace == Some(name_of(file));
    ends_alike || named
}

/// Recognises a scan that this run made itself.
fn by_index_build(evidence: &Evidence<'_>, file: &LayoutFile) -> Option<String> {
    let namespace = file.namespace.as_ref().filter(|_| file.index.is_none())?;
    let built = evidence.index_built_on(namespace)?;
    Some(format!("the index {} was built on it", built.keys))
}

/// Returns an operation on the collection that reads all of it, a query rather than a job if there are both.
fn seen_on<'a>(evidence: &Evidence<'a>, file: &LayoutFile) -> Option<&'a OperationSeen> {
    let namespace = file.namespace.as_ref().filter(|_| file.index.is_none())?;
    let operations = &evidence.examined()?.operations;
    let on_it = operations.iter();
    let on_it = on_it.filter(|operation| operation.namespace.as_ref() == Some(namespace));
    let scans = on_it.filter(|operation| {
        let plan = operation.plan.as_deref().unwrap_or_default();
        is_job(operation) || plan.starts_with("COLLSCAN")
    });
    scans.min_by_key(|operation| {
        let runs_no_more = operation.looks_since > 0 || operation.looks == 0;
        (is_job(operation), runs_no_more)
    })
}

pub(crate) fn is_job(operation: &OperationSeen) -> bool {
    SCAN_KINDS.iter().any(|word| operation.kind.contains(word))
}

fn by_operation(scan: &OperationSeen) -> String {
    let plan = scan.plan.as_deref().map(|plan| format!(" ({plan})"));
    let kind = &scan.kind;
    let article = match kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    };
    let source = match scan.looks {
        0 => "the server's log",
        _ => "currentOp",
    };
    format!(
        "{source} showed {article} {kind} on it{}",
        plan.unwrap_or_default()
    )
}

/// Recognises a thread that follows the key order: it steps to the neighbour as often as the leaves do.
fn by_steps(traced: &FileTrace, file: &LayoutFile) -> Option<String> {
    let expected = file.order.as_ref()?.sequential_share;
    let shape = traced.reads.shape.as_ref()?;
    let found = shape.thread_sequential_share;
    let telling = (TELLING_SHARE..=1.0 - TELLING_SHARE).contains(&expected)
        && (found - expected).abs() < expected / 3.0;
    telling.then(|| {
        format!(
            "its threads step to the neighbour in {} of cases, as a scan in key order does ({})",
            percent(found),
            percent(expected)
        )
    })
}

/// Recognises reads that each bring documents that are wanted together.
fn by_documents(
    evidence: &Evidence<'_>,
    file: &LayoutFile,
    traced: &FileTrace,
    seconds: f64,
) -> Option<String> {
    let per_leaf = file.documents.filter(|_| file.index.is_none())? as f64 / file.leaf_pages as f64;
    let returned = evidence.status_rate(&[DOCUMENTS_EXAMINED, "metrics.document.returned"])?;
    let per_read = returned * seconds / traced.reads.transfers.calls.max(1) as f64;
    // More than a leaf holds were wanted of other collections, too.
    let neighbours = per_leaf >= 2.0
        && (NEIGHBOURS_SHARE * per_leaf..=MORE_THAN_A_LEAF * per_leaf).contains(&per_read)
        && is_read_alone(evidence, file);
    // A cache that serves most requests also makes for many documents per read. Whoever seeks each of them asks it for a
    // page of the index and one of the collection at least; whoever goes from neighbour to neighbour for one a leaf.
    let requested = evidence.status_rate(&["wiredTiger.cache.pages requested from the cache"])?;
    let missed = evidence.status_rate(&["wiredTiger.cache.pages read into cache"])?;
    let cold = missed * per_leaf * 4.0 >= requested;
    let sought_one_by_one = requested >= returned;
    (neighbours && cold && !sought_one_by_one).then(|| {
        format!("{per_read:.0} documents were wanted per read, of {per_leaf:.0} in a leaf")
    })
}

/// Returns whether nearly all of the time that reads took was spent on this collection. The server counts the documents
/// of all of them together. True where it does not tell: MongoDB 4.4 counts next to nothing of the time of
/// aggregations.
fn is_read_alone(evidence: &Evidence<'_>, file: &LayoutFile) -> bool {
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let (mut own_ns, mut all_ns) = (0, 0);
    for collection in collections {
        let reading_ns = collection.reading_ns.unwrap_or(0);
        all_ns += reading_ns;
        if file.namespace.as_ref() == Some(&collection.namespace) {
            own_ns = reading_ns;
        }
    }
    let observed_s = evidence.observed_s().unwrap_or(0.0);
    let is_counted = all_ns as f64 / 1e9 >= COUNTED_SHARE * observed_s;
    !is_counted || own_ns as f64 >= ALONE_SHARE * all_ns as f64
}

/// Returns the share of the leaves that was read, at least once each.
fn covered_share(traced: &FileTrace, file: &LayoutFile) -> Option<f64> {
    let pattern = traced.reads.pattern.as_ref()?;
    Some(pattern.distinct_bytes as f64 / file.leaf_bytes.max(1) as f64)
}

/// Recognises a thread that read much of the file, hardly anything twice.
fn by_coverage(evidence: &Evidence<'_>, traced: &FileTrace, file: &LayoutFile) -> Option<String> {
    let pattern = traced.reads.pattern.as_ref()?;
    let covered = covered_share(traced, file)?;
    let one_thread = traced.reads.shape.as_ref()?.threads == 1;
    let users = evidence.device_use.map_or(&[][..], |found| &found.users);
    let by_application = users.iter().any(|user| {
        user.file_id == traced.file.file_id && !user.writes && user.role == ThreadRole::Application
    });
    // The server's cache keeps random reads of single documents from being read twice, too.
    let scanned = covered >= COVERED_SHARE
        && pattern.reread_share <= REREAD_SHARE_MAX
        && !steps_otherwise(traced, file)
        && !may_seek_single_documents(evidence, traced);
    (scanned && one_thread && by_application).then(|| {
        format!(
            "one thread read {} of its leaves, hardly any twice",
            percent(covered.min(1.0))
        )
    })
}

/// Returns whether its threads step to the neighbour much more rarely than a scan in key order would.
fn steps_otherwise(traced: &FileTrace, file: &LayoutFile) -> bool {
    let shares = file.order.as_ref().zip(traced.reads.shape.as_ref());
    shares.is_some_and(|(order, shape)| {
        order.sequential_share >= TELLING_SHARE
            && shape.thread_sequential_share < order.sequential_share / 2.0
    })
}

/// Returns whether the server began so many operations for each page read that each may have sought a single document.
fn may_seek_single_documents(evidence: &Evidence<'_>, traced: &FileTrace) -> bool {
    let per_s = SEEKING
        .iter()
        .filter_map(|name| evidence.status_rate(&[name]));
    let operations = per_s.sum::<f64>() * evidence.traced_s().unwrap_or(0.0);
    operations >= OPERATIONS_PER_READ * traced.reads.transfers.calls as f64
}

/// Recognises scans that were repeated: what was read is read again when most of the file was read in between.
fn by_rounds(traced: &FileTrace, file: &LayoutFile) -> Option<String> {
    let reuse = &traced.reuse;
    let distinct_bytes = traced.reads.pattern.as_ref()?.distinct_bytes as f64;
    let covered = covered_share(traced, file)?;
    let again = reuse.references.saturating_sub(reuse.first_references) as f64;
    let is_sooner = |distance_bytes: u64| (distance_bytes as f64) < ROUND_SHARE * distinct_bytes;
    let sooner: u64 = reuse
        .distances
        .iter()
        .filter(|distance| is_sooner(distance.distance_bytes))
        .map(|distance| distance.references)
        .sum();
    let rounds = again / reuse.first_references.max(1) as f64;
    let round_and_round = rounds >= COVERED_SHARE && sooner as f64 <= SOONER_SHARE_MAX * again;
    (covered >= COVERED_SHARE && round_and_round).then(|| {
        format!(
            "{} of its leaves were read {:.1} times, each time in the same order",
            percent(covered.min(1.0)),
            rounds + 1.0
        )
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::{CollectionFacts, FileRole, ScanOrder};

    use super::*;
    use crate::testing::{Call, OBSERVED_S, Recording, shuffled};

    const PAGE: u32 = 32_768;
    const DOCUMENTS_IN_LEAF: u64 = 30;

    /// Reads one random leaf of shop.orders every tenth of a second, while this many documents are returned for each,
    /// and reads of the two collections take these shares of the time.
    fn reading(per_read: f64, of_orders: f64, of_others: f64) -> Option<Scanning> {
        reading_by(40.0, per_read, of_orders, of_others)
    }

    /// The same with this many requests of pages per second.
    fn reading_by(
        requested: f64,
        per_read: f64,
        of_orders: f64,
        of_others: f64,
    ) -> Option<Scanning> {
        const READS: u32 = 600;
        let mut recording = Recording::new();
        let orders = LayoutFile {
            file: "collection-7.wt".into(),
            namespace: Some("shop.orders".into()),
            leaf_pages: 100_000,
            leaf_bytes: 100_000 * u64::from(PAGE),
            documents: Some(100_000 * DOCUMENTS_IN_LEAF),
            ..LayoutFile::default()
        };
        let file_id = recording.file(&orders.file, FileRole::Collection, Some("shop.orders"));
        let tids = ["conn1", "conn2"].map(|name| recording.thread(name));
        for (i, leaf) in shuffled(READS).into_iter().enumerate() {
            recording.miss(Call {
                tid: tids[i % 2],
                file_id,
                at_s: i as f64 / 10.0,
                offset: u64::from(leaf) * 100 * u64::from(PAGE),
                bytes: PAGE,
                latency_s: 0.005,
            });
        }
        recording.rising("metrics.document.returned", 10.0 * per_read);
        recording.rising("wiredTiger.cache.pages requested from the cache", requested);
        recording.rising("wiredTiger.cache.pages read into cache", 10.0);
        let collection = |namespace: &str, share: f64| CollectionFacts {
            namespace: namespace.into(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share"
            )]
            reading_ns: Some((share * f64::from(OBSERVED_S) * 1e9) as u64),
            ..CollectionFacts::default()
        };
        recording.examined().collections = vec![
            collection("shop.orders", of_orders),
            collection("shop.others", of_others),
        ];
        recording.examine(|evidence, _| evidence.scanning(&orders))
    }

    /// One thread reads half of the leaves in random order, each once, as the cache keeps what it has read.
    #[test]
    fn operations_that_each_read_a_page_are_no_scan() {
        let mut recording = Recording::new();
        let mut file = LayoutFile {
            file: "collection-7.wt".into(),
            leaf_pages: 1000,
            leaf_bytes: 1000 * u64::from(PAGE),
            ..LayoutFile::default()
        };
        let file_id = recording.file(&file.file, FileRole::Collection, None);
        let tid = recording.thread("conn1");
        for (i, leaf) in shuffled(1000).into_iter().take(500).enumerate() {
            recording.miss(Call {
                tid,
                file_id,
                at_s: i as f64 / 10.0,
                offset: u64::from(leaf) * u64::from(PAGE),
                bytes: PAGE,
                latency_s: 0.005,
            });
        }
        let scans = |recording: &Recording, file: &LayoutFile| {
            recording
                .examine(|evidence, _| evidence.scanning(file))
                .is_some()
        };
        assert!(scans(&recording, &file), "nothing else is known");
        file.order = Some(ScanOrder {
            sequential_share: 0.9,
            ..ScanOrder::default()
        });
        assert!(
            !scans(&recording, &file),
            "a scan would go from neighbour to neighbour"
        );
        file.order = None;
        recording.rising("opcounters.query", 0.2);
        assert!(scans(&recording, &file), "few queries");
        recording.rising("opcounters.insert", 100.0);
        assert!(!scans(&recording, &file), "each insert may have read one");
    }

    #[test]
    fn documents_of_other_collections_make_no_scan() {
        assert!(reading(28.0, 0.5, 0.0).is_some(), "whole leaves are wanted");
        assert!(reading(28.0, 0.0, 0.0).is_some(), "time is not counted");
        assert_eq!(reading(84.0, 0.5, 0.0), None, "more than a leaf holds");
        assert_eq!(reading(28.0, 0.1, 0.4), None, "others read, too");
        assert_eq!(reading(2.0, 0.5, 0.0), None, "single documents");
        let cached = reading_by(400.0, 14.0, 0.5, 0.0);
        assert_eq!(cached, None, "the cache had most of what was sought");
    }
}
