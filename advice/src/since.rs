//! Whether what was advised has come true: what a read costs the server now, against what it cost before.
//!
//! The prediction is of blocks read with cold caches, and the server's count is of what its caches lacked. Fewer blocks
//! also leave more room in the cache, so that a reduction may be larger than predicted; it should not be smaller.

use seekscope_run::{AdviceRecord, AdviceSince, CollectionUse, QueryShape, StoringWay, WayKind};

/// Where fewer pages were read before, hardly anything could be saved.
const PAGES_MIN: u64 = 100;
/// Where the share of writes has changed by more than this, other pages are read for them.
const WRITE_SHARE_CHANGE_MAX: f64 = 0.2;

/// What is known of the collection now.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    pub used: Option<CollectionUse>,
    /// The queries that were seen.
    pub shapes: &'a [QueryShape],
    /// Key patterns of the indexes as JSON.
    pub indexes: &'a [String],
    /// The compressor of its blocks; `None` if the server does not say.
    pub compressor: Option<&'a str>,
    /// The table that its documents are in; `None` if the server does not say.
    pub table: Option<&'a str>,
}

/// Returns the way that a run advised, other than to leave everything as it is.
pub fn advised(earlier: &AdviceRecord) -> Option<&StoringWay> {
    let verdict = earlier.verdict.as_ref()?;
    earlier.ways.get(verdict.way).filter(|_| verdict.way > 0)
}

/// Compares what `way` was to save with what reads cost now. The record lacks which run it was and when.
pub fn compare(earlier: &AdviceRecord, way: &StoringWay, now: Now<'_>) -> AdviceSince {
    let present = earlier.ways.first().and_then(|way| way.blocks_per_query);
    let predicted = present.zip(way.blocks_per_query);
    let before = earlier.collection.used;
    let measured = measured_saved(earlier, way, now);
    AdviceSince {
        way: way.name.clone(),
        predicted_saved: predicted
            .map_or(0.0, |(now, then)| 1.0 - then / now.max(f64::MIN_POSITIVE)),
        before,
        measured_saved: measured.as_ref().ok().copied(),
        cannot_tell: measured.err(),
        ..AdviceSince::default()
    }
}

fn unknown(when: &str) -> String {
    format!(
        "{when} the server did not say how often the collection was used, or was restarted meanwhile"
    )
}

/// Returns what reads cost when an earlier run gave its advice.
///
/// # Errors
/// Fails with the reason if nothing can be compared with that, whatever reads cost now.
pub fn compared_with(earlier: &AdviceRecord) -> Result<CollectionUse, String> {
    let before = earlier.collection.used.ok_or_else(|| unknown("then"))?;
    if let Some(why) = before.too_few_reads("then") {
        return Err(why);
    }
    match before.pages_read {
        Some(pages) if pages < PAGES_MIN => Err(
            "nearly everything was in the server's cache then, so there was little to save".into(),
        ),
        _ => Ok(before),
    }
}

/// Returns the share of the pages per read that are no longer read, or why it cannot be told.
fn measured_saved(earlier: &AdviceRecord, way: &StoringWay, now: Now<'_>) -> Result<f64, String> {
    let mut needed = way.keys.iter().chain(&way.more_keys);
    if let Some(keys) = needed.find(|keys| !now.indexes.contains(keys)) {
        return Err(format!(
            "there is no index {keys}, so it is not stored so yet"
        ));
    }
    if let (Some(wanted), Some(has)) = (way.compressor.as_deref(), now.compressor)
        && wanted != has
    {
        return Err(format!(
            "its blocks are not compressed by {wanted}, so it is not stored so yet"
        ));
    }
    if !way.kind.keeps_file()
        && now.table.is_some()
        && now.table == earlier.collection.table.as_deref()
    {
        return Err(format!(
            "its documents are in the file in which they were then ({}), so it is not stored so yet; what a script has \
             stored as another collection is asked about under that name",
            now.table.unwrap_or_default()
        ));
    }
    let before = compared_with(earlier)?;
    let used_now = now.used.ok_or_else(|| unknown("now"))?;
    if let Some(why) = used_now.too_few_reads("now") {
        return Err(why);
    }
    let pages = before.pages_per_read().zip(used_now.pages_per_read());
    let (pages_before, pages_now) =
        pages.ok_or("the server does not say how many pages it reads for the collection")?;
    let write_share =
        |used: CollectionUse| used.writes as f64 / (used.reads + used.writes).max(1) as f64;
    let (then, share) = (write_share(before), write_share(used_now));
    if (share - then).abs() > WRITE_SHARE_CHANGE_MAX {
        return Err(format!(
            "writes were {:.0} % of the operations then and are {:.0} % now, and they read pages as well",
            then * 100.0,
            share * 100.0
        ));
    }
    if !are_mostly_alike(earlier, way, now.shapes) {
        return Err(
            "most of the queries that were seen now are not those that it was advised for".into(),
        );
    }
    Ok(1.0 - pages_now / pages_before)
}

/// Returns whether most of the queries that were seen, if any were, have shapes of the earlier run.
fn are_mostly_alike(earlier: &AdviceRecord, way: &StoringWay, seen: &[QueryShape]) -> bool {
    // What a query asks for of a bucket, or of an ordered collection, makes no difference.
    let covers = way.kind == WayKind::Covering;
    let is_alike = |known: &QueryShape, seen: &QueryShape| {
        known.equality == seen.equality
            && known.range == seen.range
            && known.sort == seen.sort
            && (!covers || known.projection == seen.projection)
    };
    let is_known = |shape: &&QueryShape| earlier.shapes.iter().any(|known| is_alike(known, shape));
    let rate = |shape: &QueryShape| shape.per_s.unwrap_or(1.0);
    let all: f64 = seen.iter().map(rate).sum();
    let known: f64 = seen.iter().filter(is_known).map(rate).sum();
    known >= all / 2.0
}

#[cfg(test)]
mod tests {
    use seekscope_run::{AdviceVerdict, AdvisedCollection};

    use super::*;

    const KEYS: &str = r#"{ "a": 1 }"#;

    fn used(reads: u64, writes: u64, pages: u64) -> Option<CollectionUse> {
        Some(CollectionUse {
            elapsed_s: 60.0,
            reads,
            writes,
            reads_s: 1.0,
            pages_read: Some(pages),
        })
    }

    fn shape(field: &str) -> QueryShape {
        QueryShape {
            equality: vec![field.into()],
            ..QueryShape::default()
        }
    }

    fn earlier(before: Option<CollectionUse>) -> AdviceRecord {
        let way = |kind, blocks, keys: Option<&str>| StoringWay {
            kind,
            blocks_per_query: Some(blocks),
            keys: keys.map(Into::into),
            ..StoringWay::default()
        };
        AdviceRecord {
            collection: AdvisedCollection {
                used: before,
                ..AdvisedCollection::default()
            },
            shapes: vec![shape("a")],
            ways: vec![
                way(WayKind::Present, 100.0, None),
                way(WayKind::Index, 5.0, Some(KEYS)),
            ],
            verdict: Some(AdviceVerdict {
                way: 1,
                also: Vec::new(),
            }),
            ..AdviceRecord::default()
        }
    }

    fn compared(
        before: Option<CollectionUse>,
        after: Option<CollectionUse>,
        seen: &[QueryShape],
        indexes: &[String],
    ) -> AdviceSince {
        let earlier = earlier(before);
        let now = Now {
            used: after,
            shapes: seen,
            indexes,
            compressor: None,
            table: None,
        };
        compare(&earlier, advised(&earlier).unwrap(), now)
    }

    #[test]
    fn what_reads_cost_is_compared() {
        let indexes = [KEYS.to_owned()];
        let since = compared(used(100, 10, 9_000), used(200, 20, 900), &[], &indexes);
        assert!((since.predicted_saved - 0.95).abs() < 1e-9);
        assert!(
            (since.measured_saved.unwrap() - 0.95).abs() < 1e-9,
            "{since:?}"
        );
        assert_eq!(since.cannot_tell, None);
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let indexes = [KEYS.to_owned()];
        let many = used(100, 10, 9_000);
        for (before, after, seen, indexes, words) in [
            (many, many, vec![], &[][..], "there is no index"),
            (None, many, vec![], &indexes, "then the server did not say"),
            (many, used(3, 0, 0), vec![], &indexes, "3 reads in 60 s now"),
            (
                used(100, 0, 5),
                many,
                vec![],
                &indexes,
                "server's cache then",
            ),
            (
                many,
                used(100, 900, 90),
                vec![],
                &indexes,
                "9 % of the operations then and are 90 %",
            ),
            (many, many, vec![shape("b")], &indexes, "are not those"),
        ] {
            let since = compared(before, after, &seen, indexes);
            let why = since.cannot_tell.unwrap();
            assert!(why.contains(words), "{why}");
            assert_eq!(since.measured_saved, None);
        }
    }

    #[test]
    fn what_can_never_be_compared_is_known_before_anything_is_watched() {
        for (before, words) in [
            (None, "did not say"),
            (used(3, 10, 9_000), "3 reads in 60 s then are too few"),
            (used(100, 0, 5), "server's cache then"),
        ] {
            let why = compared_with(&earlier(before)).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert!(compared_with(&earlier(used(50, 0, 100))).is_ok());
    }

    #[test]
    fn an_index_that_covers_one_query_covers_no_other() {
        let asked = |fields: &[&str]| QueryShape {
            projection: Some(fields.iter().map(|field| (*field).to_owned()).collect()),
            ..shape("a")
        };
        let mut record = earlier(None);
        record.shapes = vec![asked(&["b"])];
        let alike = |kind, seen: &[QueryShape]| {
            let way = StoringWay {
                kind,
                ..StoringWay::default()
            };
            are_mostly_alike(&record, &way, seen)
        };
        assert!(alike(WayKind::Covering, &[]) && alike(WayKind::Covering, &[asked(&["b"])]));
        assert!(!alike(WayKind::Covering, &[asked(&["c"])]));
        assert!(alike(WayKind::Order, &[asked(&["c"])]));
        assert!(!alike(
            WayKind::Order,
            &[shape("x"), shape("y"), asked(&["b"])]
        ));
    }

    #[test]
    fn another_compressor_must_be_there() {
        let mut record = earlier(used(100, 10, 9_000));
        record.ways[1].keys = None;
        record.ways[1].compressor = Some("zstd".into());
        let with = |compressor| {
            let now = Now {
                used: used(100, 10, 900),
                shapes: &[],
                indexes: &[],
                compressor: Some(compressor),
                table: None,
            };
            compare(&record, &record.ways[1], now)
        };
        assert!(
            with("snappy")
                .cannot_tell
                .unwrap()
                .contains("not compressed by zstd")
        );
        assert!(with("zstd").measured_saved.is_some());
    }

    /// A regression: data that had come into the cache was certified as what buckets had saved.
    #[test]
    fn a_file_that_was_to_be_written_anew_must_be_another() {
        let mut record = earlier(used(100, 10, 9_000));
        record.collection.table = Some("collection-7-1".into());
        record.ways[1].kind = WayKind::Buckets;
        let in_table = |table| {
            let now = Now {
                used: used(100, 10, 900),
                shapes: &[],
                indexes: &[KEYS.to_owned()],
                compressor: None,
                table,
            };
            compare(&record, &record.ways[1], now).cannot_tell
        };
        assert!(
            in_table(Some("collection-7-1"))
                .unwrap()
                .contains("not stored so yet")
        );
        assert_eq!(in_table(Some("collection-9-1")), None);
        assert_eq!(in_table(None), None);
    }

    #[test]
    fn where_nothing_was_advised_nothing_is_compared() {
        let mut nothing = earlier(None);
        nothing.verdict = Some(AdviceVerdict::default());
        assert_eq!(advised(&nothing), None);
        assert_eq!(advised(&AdviceRecord::default()), None);
    }
}
