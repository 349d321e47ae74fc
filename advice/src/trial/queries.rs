//! The queries of a shape: drawn from the sample, planned once for a way, and asked.

use std::time::{Duration, Instant};

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::QueryShape;
use seekscope_run::units::{nanoseconds, whole};
use seekscope_server::{Server, number};

use super::{DATABASE, Questions, SAMPLED, counters};
use crate::AdviceError;
use crate::values::{date_ms, decoded, value_at};
use crate::way::{SAMPLES, Way};

const QUERY_LIMIT: Duration = Duration::from_secs(60);
/// So many documents in a row tell what one more takes, and hardly what a query takes once.
const IN_A_ROW: i64 = 1_000;
/// A value that no document has.
const NOWHERE: &str = "seekscope: no document has this value";

/// One query of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    equality: Vec<(String, Bson)>,
    /// The range of the first field of which a range is asked; without an end it goes on to the last document.
    range: Option<(String, Bson, Option<Bson>)>,
    /// Further fields of which a range is asked: all their values.
    more_ranges: Vec<String>,
    sort: Document,
    /// The fields that it asks for; `None` for whole documents.
    projection: Option<Document>,
    limit: Option<i64>,
}

/// Draws so many queries, each around a random document of the sample.
pub(super) async fn draw(
    server: &Server,
    shape: &QueryShape,
    count: u64,
) -> Result<Vec<Query>, AdviceError> {
    let size = i64::try_from(count).unwrap_or(i64::MAX);
    let failed = |error| server.error("aggregate", &error);
    let sampled = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(SAMPLED);
    let documents = sampled
        .aggregate([doc! { "$sample": { "size": size } }])
        .with_type::<RawDocumentBuf>()
        .await
        .map_err(failed)?;
    let documents: Vec<RawDocumentBuf> = documents.try_collect().await.map_err(failed)?;
    let mut drawn = Vec::new();
    for document in documents.iter().filter_map(|raw| decoded(raw)) {
        let mut query = Query::around(&document, shape);
        query.end_range(server, shape).await?;
        drawn.push(query);
    }
    Ok(drawn)
}

/// Returns each query once: the same again would find its blocks in the cache.
pub(super) fn different(queries: &[Query]) -> Vec<Query> {
    let mut different: Vec<Query> = Vec::new();
    for query in queries {
        if !different.contains(query) {
            different.push(query.clone());
        }
    }
    different
}

/// Has queries end after so many documents: those of the shape return no more, although more match.
pub(super) fn end_after(queries: &mut [Query], returned: f64) {
    for query in queries {
        query.limit = Some(limit(returned));
    }
}

/// Returns how many documents of the sample a query returns on average.
pub(super) async fn mean_returned(server: &Server, queries: &[Query]) -> Result<f64, AdviceError> {
    let mut returned = 0;
    for query in queries {
        let count = doc! { "count": SAMPLED, "query": query.filter() };
        let reply = server.command(DATABASE, count).await?;
        returned += reply.get("n").and_then(number).unwrap_or(0);
    }
    Ok(returned as f64 / queries.len().max(1) as f64)
}

impl Query {
    fn around(document: &Document, shape: &QueryShape) -> Self {
        let value = |field: &String| value_at(document, field).unwrap_or(Bson::Null);
        let equality = shape
            .equality
            .iter()
            .map(|field| (field.clone(), value(field)));
        let mut ranges = shape.range.iter();
        let direction = |descending| if descending { -1 } else { 1 };
        let sort = shape
            .sort
            .iter()
            .map(|s| (s.field.clone(), Bson::Int32(direction(s.descending))));
        let sort: Document = sort.collect();
        let returned = shape.returned.map(limit);
        Self {
            equality: equality.collect(),
            range: ranges
                .next()
                .map(|field| (field.clone(), value(field), None)),
            more_ranges: ranges.cloned().collect(),
            limit: returned.filter(|_| !sort.is_empty()),
            projection: projection(shape),
            sort,
        }
    }

    /// Ends the range so that the query returns as many documents as those of its shape do. Where too few follow, it
    /// begins earlier.
    async fn end_range(&mut self, server: &Server, shape: &QueryShape) -> Result<(), AdviceError> {
        let Some((field, ..)) = self.range.clone() else {
            return Ok(());
        };
        let returned = limit(shape.returned.unwrap_or(QueryShape::RANGE_RETURNS));
        let end = value_after(server, self.filter(), &field, 1, returned).await?;
        if end.is_none() {
            if let Some((_, from, _)) = &mut self.range {
                *from = Bson::MinKey;
            }
            let last = value_after(server, self.filter(), &field, -1, returned - 1).await?;
            if let (Some(last), Some((_, from, _))) = (last, &mut self.range) {
                *from = last;
            }
        }
        if let Some((.., until)) = &mut self.range {
            *until = end;
        }
        Ok(())
    }

    fn filter(&self) -> Document {
        let mut filter: Document = self.equality.iter().cloned().collect();
        if let Some((field, from, until)) = &self.range {
            let mut range = doc! { "$gte": from.clone() };
            if let Some(until) = until {
                range.insert("$lt", until.clone());
            }
            filter.insert(field.clone(), range);
        }
        for field in &self.more_ranges {
            filter.insert(field.clone(), doc! { "$gte": Bson::MinKey });
        }
        filter
    }

    /// Returns the filter for buckets: those that begin in the stretch, and the one that holds its beginning.
    fn bucket_filter(&self, span_ms: i64) -> Document {
        let mut filter: Document = self.equality.iter().cloned().collect();
        if let Some((field, from, until)) = &self.range {
            let start = date_ms(from).map(|ms| ms - ms.rem_euclid(span_ms.max(1)));
            let start = start.map_or_else(|| from.clone(), |ms| DateTime::from_millis(ms).into());
            let mut range = doc! { "$gte": start };
            if let Some(until) = until {
                range.insert("$lt", until.clone());
            }
            filter.insert(field.clone(), range);
        }
        filter
    }

    fn find(&self, collection: &str, way: &Way, hint: Option<&Bson>) -> Document {
        let filter = match way {
            Way::Buckets { span_ms, .. } => self.bucket_filter(*span_ms),
            _ => self.filter(),
        };
        let mut find = doc! { "find": collection, "filter": filter };
        if !self.sort.is_empty() {
            find.insert("sort", self.sort.clone());
        }
        // Of buckets fewer are needed, and how many depends on what is in them.
        let is_plain = !matches!(way, Way::Buckets { .. });
        if let Some(limit) = self.limit.filter(|_| is_plain) {
            find.insert("limit", limit);
        }
        if let Some(projection) = self.projection.as_ref().filter(|_| is_plain) {
            find.insert("projection", projection.clone());
        }
        if let Some(hint) = hint {
            find.insert("hint", hint.clone());
        }
        find.insert(
            "maxTimeMS",
            i64::try_from(QUERY_LIMIT.as_millis()).unwrap_or(i64::MAX),
        );
        find
    }

    /// Returns how many documents of the collection that was sampled a document of the answer stands for.
    fn counted(&self, document: &Document, way: &Way) -> u64 {
        let Way::Buckets { time, .. } = way else {
            return 1;
        };
        let samples = document
            .get_array(SAMPLES)
            .into_iter()
            .flatten()
            .filter_map(Bson::as_document);
        let within = |sample: &&Document| {
            let Some((_, from, until)) = &self.range else {
                return true;
            };
            let at = value_at(sample, time).as_ref().and_then(date_ms);
            at >= date_ms(from) && until.as_ref().is_none_or(|until| at < date_ms(until))
        };
        samples.filter(within).count() as u64
    }
}

/// The queries of a shape as they are asked of a way.
#[derive(Debug)]
pub(super) struct Asked {
    collection: String,
    way: Way,
    /// The index that the server chose, by name, or the natural order.
    hint: Bson,
    open: Document,
    pub(super) is_collection_scan: bool,
    /// Documents and keys of indexes that a query reads, on average.
    pub(super) examined: f64,
    pub(super) keys: f64,
    /// Leaves of the index; 0 if none is used.
    pub(super) index_leaves: f64,
    /// Whether all that matches is read before anything is returned, because no index has the order.
    pub(super) sorts: bool,
}

impl Asked {
    /// Has the server choose an index while everything is cached, so that trying several is not measured.
    pub(super) async fn plan(
        server: &Server,
        collection: &str,
        way: &Way,
        questions: &Questions,
    ) -> Result<Self, AdviceError> {
        let (mut examined, mut keys, mut explained, mut hint) = (0, 0, 0_u32, None);
        let mut first_key = None;
        let mut sorts = false;
        for query in questions.rows.first().into_iter().flatten() {
            let mut find = query.find(collection, way, hint.as_ref());
            find.remove("maxTimeMS");
            let explain = doc! { "explain": find, "verbosity": "executionStats" };
            let reply = server.command(DATABASE, explain).await?;
            let stats = reply.get_document("executionStats").ok();
            let count = |name: &str| {
                stats
                    .and_then(|s| s.get(name).and_then(number))
                    .unwrap_or(0)
            };
            examined += count("totalDocsExamined");
            keys += count("totalKeysExamined");
            explained += 1;
            let plan = reply
                .get_document("queryPlanner")
                .and_then(|p| p.get_document("winningPlan"));
            sorts |= plan.as_ref().is_ok_and(|plan| has_sort(plan));
            if let (None, Some((name, key))) = (&hint, plan.ok().and_then(index_of)) {
                (hint, first_key) = (Some(Bson::String(name)), key);
            }
        }
        let is_collection_scan = hint.is_none();
        let index_leaves = match &hint {
            Some(Bson::String(name)) => {
                let pages = counters::index(server, DATABASE, collection, name).await?;
                pages.leaves
            }
            _ => 0.0,
        };
        let hint = hint.unwrap_or_else(|| doc! { "$natural": 1 }.into());
        let mut open = doc! { "find": collection, "filter": {}, "limit": 1, "projection": { "_id": 1 },
        "hint": hint.clone() };
        let Questions { shape, .. } = questions;
        let fields = || shape.equality.iter().chain(&shape.range);
        // An index that has the order alone would be read from end to end in vain.
        if fields().any(|field| first_key.as_ref() == Some(field)) {
            let nowhere = fields().map(|field| (field.clone(), Bson::from(NOWHERE)));
            open.insert("filter", nowhere.collect::<Document>());
        }
        Ok(Self {
            collection: collection.into(),
            way: way.clone(),
            hint,
            open,
            is_collection_scan,
            examined: examined as f64 / f64::from(explained.max(1)),
            keys: keys as f64 / f64::from(explained.max(1)),
            index_leaves,
            sorts,
        })
    }

    /// Returns the name of the index that the queries use.
    pub(super) fn index_name(&self) -> Option<&str> {
        self.hint.as_str()
    }

    /// Opens the files that a query opens, and reads the upper pages of their trees, which a server in use has in its
    /// cache.
    pub(super) async fn open(&self, server: &Server) -> Result<(), AdviceError> {
        let first = doc! { "find": &self.collection, "limit": 1, "projection": { "_id": 1 },
        "hint": { "$natural": 1 } };
        server.command(DATABASE, first).await?;
        self.ask_nothing(server).await?;
        Ok(())
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
        if self.is_collection_scan {
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

/// Returns how many documents a query of the whole reads for each one that a query of the trial read that sorts all that
/// matches: of those that have a value beside the one document around which the query was drawn, the sample has its
/// share.
pub(super) fn more_sorted(examined: f64, whole: f64) -> f64 {
    let examined = examined.max(1.0);
    (1.0 + (examined - 1.0) * whole.max(1.0)) / examined
}

/// Returns how many documents a query of the whole returns for each one that a query of the trial returned: as many
/// more as are known to be returned, else as many as there are more documents where a value is compared that several
/// have. An order alone bounds nothing.
pub(super) fn more_returned(shape: &QueryShape, returned: f64, whole: f64) -> f64 {
    match shape.returned {
        Some(known) => known / returned.max(f64::MIN_POSITIVE).min(known.max(1.0)),
        None if !shape.range.is_empty() || returned < 1.5 => 1.0,
        None => whole,
    }
}

/// Returns the projection of a shape. Of one that only counts documents the first field of its index is asked for,
/// which takes no document either.
fn projection(shape: &QueryShape) -> Option<Document> {
    let fields = shape.projection.as_deref()?;
    let counted = shape.fields().take(usize::from(fields.is_empty()));
    let asked = fields.iter().chain(counted);
    let mut projection: Document = asked.map(|field| (field.clone(), Bson::Int32(1))).collect();
    if !projection.contains_key("_id") {
        projection.insert("_id", 0);
    }
    Some(projection)
}

/// Returns the value of the document after the first `skipped` that match, in the order of the field.
async fn value_after(
    server: &Server,
    filter: Document,
    field: &str,
    direction: i32,
    skipped: i64,
) -> Result<Option<Bson>, AdviceError> {
    let find = doc! {
        "find": SAMPLED, "filter": filter, "sort": { field: direction }, "skip": skipped, "limit": 1,
        "projection": { field: 1 },
    };
    let found = server.documents(DATABASE, find, 1).await?;
    Ok(found.first().and_then(|document| value_at(document, field)))
}

/// Returns a number of documents as commands take it.
fn limit(documents: f64) -> i64 {
    i64::try_from(whole(documents).max(1)).unwrap_or(i64::MAX)
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

/// Returns the name of the index that a plan reads, and its first key; `None` if it reads the collection alone.
fn index_of(plan: &Document) -> Option<(String, Option<String>)> {
    if let Ok(name) = plan.get_str("indexName") {
        let keys = plan.get_document("keyPattern").ok();
        return Some((
            name.into(),
            keys.and_then(|keys| keys.keys().next().cloned()),
        ));
    }
    if plan.get_str("stage").is_ok_and(|stage| stage == "IDHACK") {
        return Some(("_id_".into(), Some("_id".into())));
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
    fn queries_are_made_of_a_document() {
        let shape = told(
            r#"{"filter": {"d": "?", "ts": {"$gte": "?"}}, "sort": {"ts": -1}, "returns": 5}"#,
        )
        .unwrap();
        let at = |ms| DateTime::from_millis(ms);
        let document = doc! { "d": 7, "ts": at(150) };
        let mut query = Query::around(&document, &shape);
        assert_eq!(query.filter(), doc! { "d": 7, "ts": { "$gte": at(150) } });
        query.range.as_mut().unwrap().2 = Some(at(320).into());
        let buckets = Way::Buckets {
            keys: vec!["d".into()],
            time: "ts".into(),
            span_ms: 100,
        };
        let find = query.find("c", &buckets, None);
        assert_eq!(
            find.get_document("filter").unwrap(),
            &doc! { "d": 7, "ts": { "$gte": at(100), "$lt": at(320) } }
        );
        assert!(!find.contains_key("limit"));
        assert_eq!(
            query.find("c", &Way::Present, None).get_i64("limit").ok(),
            Some(5)
        );
        let bucket = doc! { SAMPLES: [{ "ts": at(120) }, { "ts": at(150) }, { "ts": at(319) }, { "ts": at(320) }] };
        assert_eq!(query.counted(&bucket, &buckets), 2);
    }

    #[test]
    fn what_is_asked_for_is_projected_and_buckets_are_read_whole() {
        let mut shape = told(r#"{"filter": {"d": "?"}, "projection": {"a": 1}}"#).unwrap();
        let buckets = Way::Buckets {
            keys: vec!["d".into()],
            time: "ts".into(),
            span_ms: 100,
        };
        let asked = |shape: &QueryShape, way: &Way| {
            let find = Query::around(&doc! { "d": 7 }, shape).find("c", way, None);
            find.get_document("projection").ok().cloned()
        };
        assert_eq!(
            asked(&shape, &Way::Present),
            Some(doc! { "a": 1, "_id": 1 })
        );
        assert_eq!(asked(&shape, &buckets), None);
        shape.projection = Some(Vec::new());
        assert_eq!(
            asked(&shape, &Way::Present),
            Some(doc! { "d": 1, "_id": 0 })
        );
    }

    #[test]
    fn a_query_is_asked_once_in_a_row() {
        let shape = told(r#"{"d": "?"}"#).unwrap();
        let of = |d: i32| Query::around(&doc! { "d": d }, &shape);
        assert_eq!(different(&[of(1), of(2), of(1)]), [of(1), of(2)]);
    }

    #[test]
    fn an_order_without_a_number_returns_all_that_there_are() {
        let more = |query: &str| more_returned(&told(query).unwrap(), 5.0, 20.0);
        assert_eq!(more(r#"{"filter": {"a": 1}, "sort": {"b": 1}}"#), 20.0);
        assert_eq!(
            more(r#"{"filter": {"a": 1}, "sort": {"b": 1}, "returns": 10}"#),
            2.0
        );
        assert_eq!(more(r#"{"a": 1, "b": {"$gt": 1}}"#), 1.0);
    }

    #[test]
    fn the_index_is_found_in_any_plan() {
        let scan =
            doc! { "stage": "IXSCAN", "indexName": "a_1_b_1", "keyPattern": { "a": 1, "b": 1 } };
        let found = |name: &str, key: &str| Some((name.to_string(), Some(key.to_string())));
        let plan = doc! { "stage": "FETCH", "inputStage": scan };
        assert_eq!(index_of(&plan), found("a_1_b_1", "a"));
        assert_eq!(index_of(&doc! { "stage": "COLLSCAN" }), None);
        let of_id = doc! { "stage": "IDHACK" };
        assert_eq!(index_of(&of_id), found("_id_", "_id"));
    }
}
