//! Predicts how long each step of a rewriting will take, from the scan time on this disk and from rates
//! measured elsewhere.

use seekscope_run::{Clustering, ReorderScan, ReorderTime, StorageFacts, WriteRate};

/// Rate of the copy, which goes through a client: documents read, sent back and inserted, bytes per second.
/// Assumed, not measured on this server; the resulting time is a rough one.
const COPY_BYTES_PER_S: f64 = 50e6;
/// Time that each document takes besides, however small: 200,000 documents of 130 bytes were copied in 2.3 s by mongod
/// 4.4.6, and 100,000 of 1 KB in 3.3 s.
const COPY_S_PER_DOCUMENT: f64 = 9e-6;
/// Time to find a document in another leaf than the one before it, and to put its `_id` into another place of the index,
/// with all of it in memory: along an index whose neighbours lie apart, the same documents took 24 to 26 µs more each.
const COPY_S_PER_LEAF: f64 = 25e-6;
/// Rate of the check, which only reads. Also assumed.
const CHECK_BYTES_PER_S: f64 = 150e6;
/// Rate at which an index build reads a copy that was just written, and so is in memory. With the time to extract a key
/// from a document, sort it and write it: 120,000 documents of 2.7 KB took mongod 4.4.6 0.6 s with one index, 40,000 of
/// about 1 KB 0.34 s with six, and 150,000 0.29 s with one.
const WARM_BYTES_PER_S: f64 = 600e6;
const INDEX_S_PER_DOCUMENT: f64 = 1.2e-6;
/// Time to apply a change by others, and the additional time per index other than that of `_id`: 3,100 changes
/// of documents of 2.5 KB were applied per second on a warm mongod 4.4 with seven such indexes, one of whose
/// keys changed. Its processor time per change was 0.18 ms without them, 0.22 ms with the seven, and 0.34 ms if
/// the keys of all seven changed.
const CHANGE_S: f64 = 250e-6;
const CHANGE_S_PER_INDEX: f64 = 10e-6;

/// Predicts the time if nobody writes meanwhile. Each step reads; the slower of the disk and the client's
/// document rate determines its time. `max_rate`: bytes of documents that may be copied per second; `along`: how far apart
/// neighbours lie in the order of the copy, if that is an index's.
pub fn alone(
    facts: &StorageFacts,
    indexes: u64,
    scan: &ReorderScan,
    max_rate: Option<u64>,
    along: Option<&Clustering>,
) -> ReorderTime {
    let (bytes, documents) = (facts.data_bytes as f64, facts.documents as f64);
    let leaves_per_document = along.map_or(0.0, |along| along.leaves_per_1000_now / 1000.0);
    let per_document_s = COPY_S_PER_DOCUMENT + leaves_per_document * COPY_S_PER_LEAF;
    let written_s = bytes / COPY_BYTES_PER_S + documents * per_document_s;
    let throttled_s = max_rate.map_or(0.0, |max| bytes / max as f64);
    ReorderTime {
        copy_s: scan.now_s.max(written_s).max(throttled_s),
        check_s: scan.ordered_s.max(bytes / CHECK_BYTES_PER_S),
        // One scan serves all indexes except `_id`'s, which the copy fills.
        indexes_s: match indexes.saturating_sub(1) {
            0 => 0.0,
            others => bytes / WARM_BYTES_PER_S + others as f64 * documents * INDEX_S_PER_DOCUMENT,
        },
        catch_up_s: Some(0.0),
        catch_up_never_ends: false,
    }
}

/// Adds the time for what others write meanwhile, if that is known: writes counted for the whole server may all
/// go elsewhere.
pub fn with_catch_up(time: ReorderTime, writes: Option<&WriteRate>, indexes: u64) -> ReorderTime {
    let own = writes.filter(|writes| writes.of_collection);
    let catch_up_s = own.map(|own| catch_up_s(own.per_second(), time.total_s(), indexes));
    ReorderTime {
        catch_up_s: catch_up_s.flatten(),
        catch_up_never_ends: catch_up_s == Some(None),
        ..time
    }
}

/// Returns the time to catch up; each round applies what came during the one before. `None` if changes come at
/// least as fast as they are applied.
fn catch_up_s(writes_per_s: f64, first_s: f64, indexes: u64) -> Option<f64> {
    let others = indexes.saturating_sub(1) as f64;
    let ratio = writes_per_s * (CHANGE_S + others * CHANGE_S_PER_INDEX);
    (ratio < 1.0).then(|| first_s * ratio / (1.0 - ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured: 24.6 MiB in 200,000 documents, and the same along an index.
    #[test]
    fn small_documents_take_their_time() {
        let facts = StorageFacts {
            documents: 200_000,
            data_bytes: 25_800_000,
            ..StorageFacts::default()
        };
        let copy_s = |max_rate, along: Option<&Clustering>| {
            alone(&facts, 2, &ReorderScan::default(), max_rate, along).copy_s
        };
        let natural = copy_s(None, None);
        assert!((natural - 2.3).abs() < 0.1, "{natural}");
        assert_eq!(copy_s(Some(2_580_000), None), 10.0);
        assert_eq!(copy_s(Some(1 << 40), None), natural);
        let scattered = Clustering {
            leaves_per_1000_now: 533.0,
            ..Clustering::default()
        };
        let along = copy_s(None, Some(&scattered));
        assert!((4.5..7.6).contains(&along), "{along}");
    }

    /// Unknown writes are neither none nor too many, and those of the whole server may all go elsewhere.
    #[test]
    fn bringing_over_is_predicted_from_the_collections_own_writes_alone() {
        let alone = ReorderTime {
            copy_s: 10.0,
            catch_up_s: Some(0.0),
            ..ReorderTime::default()
        };
        let told = |per_s: u64, of_collection: bool| {
            let writes = WriteRate {
                watched_s: 1.0,
                updates: per_s,
                of_collection,
                ..WriteRate::default()
            };
            let time = with_catch_up(alone.clone(), Some(&writes), 8);
            (time.catch_up_s, time.catch_up_never_ends)
        };
        assert_eq!(told(1_000_000, true), (None, true));
        assert_eq!(told(1_000_000, false), (None, false));
        assert_eq!(told(0, true), (Some(0.0), false));
        assert_eq!(with_catch_up(alone.clone(), None, 8).catch_up_s, None);
        // Half of the rate that can be applied: takes as long again as the first round.
        let half = 0.5 / (CHANGE_S + 2.0 * CHANGE_S_PER_INDEX);
        assert!((catch_up_s(half, 17.0, 3).unwrap() - 17.0).abs() < 1e-9);
        assert!(
            catch_up_s(half, 17.0, 8).unwrap() > 17.0,
            "more indexes take longer"
        );
        // As measured.
        assert!(catch_up_s(3_000.0, 1.0, 8).is_some() && catch_up_s(3_200.0, 1.0, 8).is_none());
    }
}
