//! The queries of a shape as a way is asked them: planned by the server once, or for each row where an index serves some of
//! them only.

use std::time::Instant;

use bson::{Bson, Document, RawDocumentBuf, doc};
use seekscope_run::QueryShape;
use seekscope_run::units::nanoseconds;
use seekscope_server::{Server, number};

use super::queries::{Query, projection};
use super::{DATABASE, counters};
use crate::AdviceError;
use crate::values::decoded;
use crate::way::Way;

/// The number of documents in a row: enough to show the cost of one more, with little of a query's fixed cost.
const IN_A_ROW: i64 = 1_000;
/// A value that no document has.
const NOWHERE: &str = "seekscope: no document has this value";
/// Where a range ends, a query reads the key behind it.
const KEY_BEHIND: u64 = 1;
/// What plans call the first key of a wildcard index.
const WILDCARD_PATH: &str = "$_path";

/// An index that a plan reads: its name, and its keys.
type UsedIndex = (String, Vec<String>);

/// What a query reads as the server plans it, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub(super) is_collection_scan: bool,
    /// Documents and keys of indexes.
    pub(super) examined: f64,
    pub(super) keys: f64,
    /// Leaves of the index; 0 if none is used.
    pub(super) index_leaves: f64,
    /// Whether all that matches is read before anything is returned, because no index has the order.
    pub(super) sorts: bool,
    /// Whether the index has none of the fields of which a range is asked: documents are read to see whether they are in it.
    pub(super) lacks_range: bool,
}

/// What the server says that it does for one query.
struct Explained {
    index: Option<UsedIndex>,
    examined: u64,
    keys: u64,
    sorts: bool,
}

impl Explained {
    /// Returns whether it does no more than another plan. The sample may have so few documents of a value that all of them
    /// are in the range that is asked for: then the server takes any index that has the value, while of the whole it takes
    /// the one that has the range as well.
    fn examines_no_more(&self, other: &Self) -> bool {
        self.examined <= other.examined
            && self.keys <= other.keys + KEY_BEHIND
            && (other.sorts || !self.sorts)
    }
}

async fn explain(server: &Server, mut find: Document) -> Result<Explained, AdviceError> {
    find.remove("maxTimeMS");
    let explain = doc! { "explain": find, "verbosity": "executionStats" };
    let reply = server.command(DATABASE, explain).await?;
    let stats = reply.get_document("executionStats").ok();
    let count = |name: &str| {
        let count = stats.and_then(|stats| number(stats.get(name)?));
        count.unwrap_or(0)
    };
    let planner = reply.get_document("queryPlanner").ok();
    let plan = planner.and_then(|planner| planner.get_document("winningPlan").ok());
    Ok(Explained {
        index: plan.and_then(index_of),
        examined: count("totalDocsExamined"),
        keys: count("totalKeysExamined"),
        sorts: plan.is_some_and(has_sort),
    })
}

/// The queries of a shape as they are asked of a way.
#[derive(Debug)]
pub(super) struct Asked {
    collection: String,
    way: Way,
    /// The index that the server chose, by name, or the natural order.
    hint: Bson,
    open: Document,
    pub(super) plan: Plan,
    /// Queries of the row that the server plans otherwise than the first, by number: they are not asked.
    left_out: Vec<usize>,
}

impl Asked {
    /// Makes the server choose an index for a row of queries before they are measured, so that trying several is not.
    /// Where plans vary, an index serves some of the queries only, and for others it would lose documents: none is then
    /// named to the server while it chooses, and what it chose is used for those queries alone for which it did.
    /// `serving` is the name of the index that serves the shape best, where all queries may use it.
    pub(super) async fn plan(
        server: &Server,
        collection: &str,
        way: &Way,
        shape: &QueryShape,
        row: &[Query],
        (plans_vary, serving): (bool, Option<&str>),
    ) -> Result<Self, AdviceError> {
        let (mut examined, mut keys, mut sorts) = (0, 0, false);
        let mut index: Option<UsedIndex> = None;
        let mut left_out = Vec::new();
        for (number, query) in row.iter().enumerate() {
            let known = index.as_ref().filter(|_| !plans_vary);
            let hint = known.map(|(name, _)| Bson::from(name.as_str()));
            let mut of_query = explain(server, query.find(collection, way, hint.as_ref())).await?;
            if let Some(serving) = serving.filter(|_| hint.is_none()) {
                let served = query.find(collection, way, Some(&serving.into()));
                let served = explain(server, served).await?;
                if served.examines_no_more(&of_query) {
                    of_query = served;
                }
            }
            if plans_vary && number > 0 && of_query.index != index {
                left_out.push(number);
                continue;
            }
            examined += of_query.examined;
            keys += of_query.keys;
            sorts |= of_query.sorts;
            index = index.or(of_query.index);
        }
        let explained = (row.len() - left_out.len()).max(1) as f64;
        let index_leaves = match &index {
            Some((name, _)) => {
                let pages = counters::index(server, DATABASE, collection, name).await?;
                pages.leaves
            }
            None => 0.0,
        };
        let hint = match &index {
            Some((name, _)) => Bson::from(name.as_str()),
            None => doc! { "$natural": 1 }.into(),
        };
        let used = index.as_ref().map(|(_, keys)| keys.as_slice());
        let first_key = used.and_then(|keys| keys.first()).map(String::as_str);
        let lacks_range = used.is_some_and(|keys| !shape.range.iter().any(|f| keys.contains(f)));
        Ok(Self {
            collection: collection.into(),
            way: way.clone(),
            open: opening(collection, &hint, shape, first_key),
            hint,
            plan: Plan {
                is_collection_scan: index.is_none(),
                examined: examined as f64 / explained,
                keys: keys as f64 / explained,
                index_leaves,
                sorts,
                lacks_range: lacks_range && !shape.range.is_empty(),
            },
            left_out,
        })
    }

    /// Returns the queries of the row that are asked, each with its number in the row.
    pub(super) fn of_row<'a>(&self, row: &'a [Query]) -> Vec<(usize, &'a Query)> {
        let queries = row.iter().enumerate();
        let asked = queries.filter(|(number, _)| !self.left_out.contains(number));
        asked.collect()
    }

    /// Returns the name of the index that the queries use.
    pub(super) fn index_name(&self) -> Option<&str> {
        self.hint.as_str()
    }

    /// Asks a query that finds nothing, or one document where no index is used; returns its time in ns, which is that of
    /// any query whatever it finds.
    pub(super) async fn ask_nothing(&self, server: &Server) -> Result<u64, AdviceError> {
        let begun = Instant::now();
        server.command(DATABASE, self.open.clone()).await?;
        Ok(nanoseconds(begun.elapsed()))
    }

    /// Returns the time that each further document of an answer takes with everything cached, ns: of many that follow one
    /// another in the index of the queries, asked for a second time. `None` if no index is used, or if it cannot be read
    /// from its beginning.
    pub(super) async fn each_ns(&self, server: &Server, shape: &QueryShape) -> Option<f64> {
        if self.plan.is_collection_scan {
            return None;
        }
        let mut find = doc! { "find": &self.collection, "filter": {}, "hint": self.hint.clone(),
        "limit": IN_A_ROW };
        let is_plain = !matches!(self.way, Way::Buckets { .. });
        if let Some(projection) = projection(shape).filter(|_| is_plain) {
            find.insert("projection", projection);
        }
        let mut each_ns = None;
        for _ in 0..2 {
            let begun = Instant::now();
            let database = server.database(DATABASE);
            let mut cursor = database.run_cursor_command(find.clone()).await.ok()?;
            let mut found = 0_u32;
            while cursor.advance().await.ok()? {
                found += 1;
            }
            let ns = nanoseconds(begun.elapsed()) as f64;
            each_ns = (found > 1).then(|| ns / f64::from(found));
        }
        each_ns
    }

    /// Asks a query; returns the documents of the sample in its answer, and its time in ns.
    pub(super) async fn ask(
        &self,
        server: &Server,
        query: &Query,
    ) -> Result<(u64, u64), AdviceError> {
        let find = query.find(&self.collection, &self.way, Some(&self.hint));
        let begun = Instant::now();
        let failed = |error| server.error("find", &error);
        let mut cursor = server
            .database(DATABASE)
            .run_cursor_command(find)
            .await
            .map_err(failed)?;
        let mut returned = 0;
        let mut answers: Vec<RawDocumentBuf> = Vec::new();
        while cursor.advance().await.map_err(failed)? {
            match self.way {
                Way::Buckets { .. } => answers.push(cursor.current().to_owned()),
                _ => returned += 1,
            }
        }
        let ns = nanoseconds(begun.elapsed());
        for answer in &answers {
            let answer = decoded(answer).unwrap_or_default();
            returned += query.counted(&answer, &self.way);
        }
        // Whoever reads buckets stops at as many.
        let most = query.limit.and_then(|limit| u64::try_from(limit).ok());
        Ok((returned.min(most.unwrap_or(u64::MAX)), ns))
    }
}

/// Returns a query that opens the index with this first key: one that finds nothing where it has a condition on that key,
/// else one for any document, since an index that has the order alone would be read from end to end in vain.
fn opening(collection: &str, hint: &Bson, shape: &QueryShape, first_key: Option<&str>) -> Document {
    let mut open = doc! { "find": collection, "filter": {}, "limit": 1, "projection": { "_id": 1 },
    "hint": hint.clone() };
    let fields = || shape.equality.iter().chain(&shape.range);
    // A wildcard index has the path of any field as its first key, and is not read without a condition.
    let has_condition =
        |key: &str| key == WILDCARD_PATH || fields().any(|field| field.as_str() == key);
    if first_key.is_some_and(has_condition) {
        let nowhere = fields().map(|field| (field.clone(), Bson::from(NOWHERE)));
        open.insert("filter", nowhere.collect::<Document>());
    }
    open
}

/// Returns whether a plan sorts what it has read.
fn has_sort(plan: &Document) -> bool {
    let is_sort = plan
        .get_str("stage")
        .is_ok_and(|stage| stage.starts_with("SORT") && stage != "SORT_MERGE");
    let inner = ["inputStage", "queryPlan"];
    is_sort
        || inner
            .iter()
            .any(|name| plan.get_document(*name).is_ok_and(has_sort))
}

/// Returns the name of the index that a plan reads, and its keys; `None` if it reads the collection alone.
fn index_of(plan: &Document) -> Option<UsedIndex> {
    if let Ok(name) = plan.get_str("indexName") {
        let keys = plan.get_document("keyPattern").into_iter();
        return Some((
            name.into(),
            keys.flat_map(Document::keys).cloned().collect(),
        ));
    }
    if plan.get_str("stage").is_ok_and(|stage| stage == "IDHACK") {
        return Some(("_id_".into(), vec!["_id".into()]));
    }
    let inner = plan.get_document("inputStage").ok().and_then(index_of);
    inner
        .or_else(|| {
            let stages = plan.get_array("inputStages").into_iter().flatten();
            stages.filter_map(Bson::as_document).find_map(index_of)
        })
        .or_else(|| plan.get_document("queryPlan").ok().and_then(index_of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::told;

    #[test]
    fn an_index_is_opened_by_a_query_that_finds_nothing() {
        let shape = told(r#"{"filter": {"a": 1, "b": {"$gt": 1}}, "sort": {"c": 1}}"#).unwrap();
        let nowhere = doc! { "a": NOWHERE, "b": NOWHERE };
        for (first_key, filter) in [
            (Some("b"), nowhere.clone()),
            (Some(WILDCARD_PATH), nowhere),
            (Some("c"), doc! {}),
            (None, doc! {}),
        ] {
            let open = opening("way0", &"index".into(), &shape, first_key);
            let asked = open.get_document("filter").unwrap();
            assert_eq!(asked, &filter, "{first_key:?}");
        }
    }

    #[test]
    fn queries_that_the_server_plans_otherwise_are_not_asked() {
        let shape = told(r#"{"d": "?"}"#).unwrap();
        let row = [1, 2, 3].map(|d| Query::around(&doc! { "d": d }, &shape));
        let mut asked = Asked {
            collection: "way0".into(),
            way: Way::Present,
            hint: "partial".into(),
            open: Document::new(),
            plan: Plan {
                is_collection_scan: false,
                examined: 1.0,
                keys: 1.0,
                index_leaves: 1.0,
                sorts: false,
                lacks_range: false,
            },
            left_out: vec![1],
        };
        assert_eq!(asked.of_row(&row), [(0, &row[0]), (2, &row[2])]);
        asked.left_out.clear();
        assert_eq!(asked.of_row(&row).len(), 3);
    }

    #[test]
    fn of_two_plans_that_do_as_much_the_one_with_the_range_may_be_taken() {
        let plan = |examined, keys| Explained {
            index: None,
            examined,
            keys,
            sorts: false,
        };
        assert!(plan(5, 6).examines_no_more(&plan(5, 5)));
        assert!(!plan(5, 9).examines_no_more(&plan(5, 5)), "it leaps");
        assert!(!plan(6, 6).examines_no_more(&plan(5, 6)));
        let sorting = Explained {
            sorts: true,
            ..plan(5, 5)
        };
        assert!(!sorting.examines_no_more(&plan(5, 5)));
    }

    #[test]
    fn the_index_is_found_in_any_plan() {
        let scan =
            doc! { "stage": "IXSCAN", "indexName": "a_1_b_1", "keyPattern": { "a": 1, "b": 1 } };
        let found = |name: &str, keys: &[&str]| {
            let keys = keys.iter().map(|key| (*key).to_owned());
            Some((name.to_owned(), keys.collect()))
        };
        let plan = doc! { "stage": "FETCH", "inputStage": scan };
        assert_eq!(index_of(&plan), found("a_1_b_1", &["a", "b"]));
        assert_eq!(index_of(&doc! { "stage": "COLLSCAN" }), None);
        let of_id = doc! { "stage": "IDHACK" };
        assert_eq!(index_of(&of_id), found("_id_", &["_id"]));
    }
}
