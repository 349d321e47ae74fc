//! The queries of a shape, drawn from the sample, and how much more of the whole they ask for.

use std::time::Duration;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::QueryShape;
use seekscope_run::units::whole;
use seekscope_server::{Server, number};

use super::{DATABASE, SAMPLED};
use crate::AdviceError;
use crate::predict::matching_of_whole;
use crate::values::{date_ms, decoded, value_at};
use crate::way::{SAMPLES, Way};

const QUERY_LIMIT: Duration = Duration::from_secs(60);
/// Queries that find fewer documents for each of their values find one, as by a key.
const ONE_EACH: f64 = 1.5;

/// One query of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    /// The fields that are compared, each with one value or with several different ones.
    equality: Vec<(String, Vec<Bson>)>,
    /// The range of the first field of which a range is asked; without an end it goes on to the last document.
    range: Option<(String, Bson, Option<Bson>)>,
    /// Further fields of which a range is asked: all their values.
    more_ranges: Vec<String>,
    sort: Document,
    /// The fields that it asks for; `None` for whole documents.
    projection: Option<Document>,
    pub(super) limit: Option<i64>,
}

/// Draws this many queries, each around a random document of the sample; the further values of its lists are those of
/// others.
pub(super) async fn draw(
    server: &Server,
    shape: &QueryShape,
    count: u64,
) -> Result<Vec<Query>, AdviceError> {
    let longest = shape.equality.iter().map(|field| listed(shape, field));
    let others = longest.max().unwrap_or(1) - 1;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let size = count.saturating_mul(others + 1);
    let size = i64::try_from(size).unwrap_or(i64::MAX);
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
    let documents: Vec<Document> = documents.iter().filter_map(|raw| decoded(raw)).collect();
    let mut drawn = Vec::new();
    for (number, document) in documents.iter().take(count).enumerate() {
        let mut query = Query::around(document, shape);
        // From other documents for each query, as far as there are so many.
        let from = documents.iter().cycle().skip(count + number * others);
        query.fill_lists(shape, from.take(documents.len()));
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

/// Makes queries end after this many documents: those of the shape return no more, although more match.
pub(super) fn end_after(queries: &mut [Query], returned: f64) {
    for query in queries {
        query.limit = Some(limit(returned));
    }
}

/// Returns how many documents of the sample match a query on average, also beyond those after which it stops.
pub(super) async fn mean_matching(server: &Server, queries: &[Query]) -> Result<f64, AdviceError> {
    let mut matching = 0;
    for query in queries {
        let count = doc! { "count": SAMPLED, "query": query.filter() };
        let reply = server.command(DATABASE, count).await?;
        matching += reply.get("n").and_then(number).unwrap_or(0);
    }
    Ok(matching as f64 / queries.len().max(1) as f64)
}

/// Returns how many values the longest list of a query holds on average; 1 without lists.
pub(super) fn mean_values(queries: &[Query]) -> f64 {
    let values: usize = queries.iter().map(Query::values).sum();
    (values as f64 / queries.len().max(1) as f64).max(1.0)
}

impl Query {
    pub(super) fn around(document: &Document, shape: &QueryShape) -> Self {
        let value = |field: &String| value_at(document, field).unwrap_or(Bson::Null);
        let equality = shape
            .equality
            .iter()
            .map(|field| (field.clone(), vec![value(field)]));
        let mut ranges = shape.range.iter();
        let direction = |descending| if descending { -1 } else { 1 };
        let sort = shape
            .sort
            .iter()
            .map(|s| (s.field.clone(), Bson::Int32(direction(s.descending))));
        let sort: Document = sort.collect();
        // The first documents in an order are asked for by their number.
        let returned = shape.returned.filter(|_| !sort.is_empty());
        Self {
            equality: equality.collect(),
            range: ranges
                .next()
                .map(|field| (field.clone(), value(field), None)),
            more_ranges: ranges.cloned().collect(),
            limit: shape.limit.or(returned).map(limit),
            projection: projection(shape),
            sort,
        }
    }

    /// Makes it ask for as many values of each list as those of its shape do: the further ones are those of other
    /// documents, as far as they have different ones.
    fn fill_lists<'a>(
        &mut self,
        shape: &QueryShape,
        others: impl Iterator<Item = &'a Document> + Clone,
    ) {
        for (field, values) in &mut self.equality {
            let most = listed(shape, field);
            for value in others
                .clone()
                .filter_map(|document| value_at(document, field))
            {
                if values.len() >= most {
                    break;
                }
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
    }

    /// Returns how many values its longest list holds; 1 without lists.
    fn values(&self) -> usize {
        let lists = self.equality.iter().map(|(_, values)| values.len());
        lists.max().unwrap_or(1)
    }

    /// Ends the range so that as many documents match the query as match those of its shape. Where too few follow, it
    /// begins earlier.
    async fn end_range(&mut self, server: &Server, shape: &QueryShape) -> Result<(), AdviceError> {
        let Some((field, ..)) = self.range.clone() else {
            return Ok(());
        };
        let matching = shape.range_matches();
        let matching = limit(matching.unwrap_or_else(|| shape.range_taken_to_match()));
        let end = value_after(server, self.filter(), &field, 1, matching).await?;
        if end.is_none() {
            if let Some((_, from, _)) = &mut self.range {
                *from = Bson::MinKey;
            }
            let last = value_after(server, self.filter(), &field, -1, matching - 1).await?;
            if let (Some(last), Some((_, from, _))) = (last, &mut self.range) {
                *from = last;
            }
        }
        if let Some((.., until)) = &mut self.range {
            *until = end;
        }
        Ok(())
    }

    /// Returns the conditions of the fields that are compared.
    fn compared(&self) -> Document {
        let conditions = self.equality.iter().map(|(field, values)| {
            let condition = match values.as_slice() {
                [value] => value.clone(),
                values => doc! { "$in": values.to_vec() }.into(),
            };
            (field.clone(), condition)
        });
        conditions.collect()
    }

    fn filter(&self) -> Document {
        let mut filter = self.compared();
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
        let mut filter = self.compared();
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

    /// Returns how many buckets may match that hold nothing of the answer: of each key those at the two ends of the range.
    /// Each of the others holds something.
    fn buckets_beside(&self) -> i64 {
        let lists = self.equality.iter().map(|(_, values)| values.len());
        let keys = lists.fold(1, usize::saturating_mul);
        i64::try_from(keys.saturating_mul(2)).unwrap_or(i64::MAX)
    }

    pub(super) fn find(&self, collection: &str, way: &Way, hint: Option<&Bson>) -> Document {
        let filter = match way {
            Way::Buckets { span_ms, .. } => self.bucket_filter(*span_ms),
            _ => self.filter(),
        };
        let mut find = doc! { "find": collection, "filter": filter };
        if !self.sort.is_empty() {
            find.insert("sort", self.sort.clone());
        }
        let is_plain = !matches!(way, Way::Buckets { .. });
        if let Some(limit) = self.limit {
            let most = match is_plain {
                true => limit,
                false => limit.saturating_add(self.buckets_beside()),
            };
            find.insert("limit", most);
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
    pub(super) fn counted(&self, document: &Document, way: &Way) -> u64 {
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

/// Returns how many documents a query of the whole reads for each one that a query of the trial read that sorts all that
/// matches. The query was drawn around so many documents as it asks for values.
pub(super) fn more_sorted(shape: &QueryShape, examined: f64, values: f64, whole: f64) -> f64 {
    let examined = examined.max(1.0);
    more_values(shape) * matching_of_whole(examined, values, whole.max(1.0)) / examined
}

/// Returns how many documents a query of the whole returns for each one that a query of the trial returned, which asked for
/// so many values: as many more as are known to be returned, else as many as there are more documents where values are
/// compared that several have. A range is taken to match a number, as far as the whole has so many. An order alone bounds
/// nothing, and a limit everything.
pub(super) fn more_returned(shape: &QueryShape, returned: f64, values: f64, whole: f64) -> f64 {
    let more = match shape.returned {
        Some(known) => known / returned.max(f64::MIN_POSITIVE).min(known.max(1.0)),
        None if !shape.range.is_empty() => {
            // The whole has more of those that the sample lacks.
            let wanted = shape.range_taken_to_match() / returned.max(1.0);
            wanted.clamp(1.0, whole.max(1.0))
        }
        None if returned < ONE_EACH * values => more_values(shape),
        None => whole * more_values(shape),
    };
    let most = shape.limit.map(|limit| limit / returned.max(1.0));
    more.min(most.map_or(f64::INFINITY, |most| most.max(1.0)))
}

/// Returns how many values a query of the shape asks for, for each one that a query of the trial asks for: more where its
/// lists are longer than those of the trial may be. What the sample lacks of shorter ones the whole lacks, too.
pub(super) fn more_values(shape: &QueryShape) -> f64 {
    let more = shape.one_of_values.values();
    more.map(|values| (values / QueryShape::LISTED_MAX).max(1.0))
        .product()
}

/// Returns how many values of a field a query of the trial asks for at most.
fn listed(shape: &QueryShape, field: &str) -> usize {
    let values = shape.values_of(field).clamp(1.0, QueryShape::LISTED_MAX);
    usize::try_from(whole(values)).unwrap_or(1)
}

/// Returns the projection of a shape. Of one that only counts documents the first field of its index is asked for,
/// which takes no document either.
pub(super) fn projection(shape: &QueryShape) -> Option<Document> {
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
        let limit = |query: &Query, way: &Way| query.find("c", way, None).get_i64("limit").ok();
        assert_eq!(limit(&query, &Way::Present), Some(5));
        // Those at both ends may hold nothing of the range.
        assert_eq!(limit(&query, &buckets), Some(7));
        query.equality[0].1.push(8.into());
        assert_eq!(limit(&query, &buckets), Some(9), "of each of two keys");
        query.limit = None;
        assert_eq!(limit(&query, &buckets), None);
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
    fn as_many_values_of_a_list_are_asked_for_as_the_sample_has() {
        let filter = |query: &str, others: &[Document]| {
            let shape = told(query).unwrap();
            let mut query = Query::around(&doc! { "d": 1, "e": 7 }, &shape);
            query.fill_lists(&shape, others.iter());
            (query.filter(), query.values())
        };
        let others = [1, 2, 2, 3, 4].map(|d| doc! { "d": d, "e": 8 });
        let three = r#"{"d": {"$in": ["?", "?", "?"]}, "e": "?"}"#;
        let expected = doc! { "d": { "$in": [1, 2, 3] }, "e": 7 };
        assert_eq!(filter(three, &others), (expected, 3));
        // Documents without the field have no value to ask for.
        let two = [doc! { "e": 8 }, doc! { "d": 5 }];
        let expected = doc! { "d": { "$in": [1, 5] }, "e": 7 };
        assert_eq!(filter(three, &two), (expected, 2));
        let unknown = r#"{"d": {"$in": "?"}, "e": "?"}"#;
        let one = (doc! { "d": 1, "e": 7 }, 1);
        assert_eq!(filter(unknown, &others), one);
    }

    #[test]
    fn a_trial_asks_for_no_more_than_so_many_values() {
        let mut shape = told(r#"{"d": {"$in": ["?"]}}"#).unwrap();
        assert_eq!((listed(&shape, "d"), more_values(&shape)), (1, 1.0));
        shape.one_of_values.insert("d".into(), 500.0);
        assert_eq!((listed(&shape, "d"), more_values(&shape)), (100, 5.0));
        assert_eq!(listed(&shape, "e"), 1);
        // Of a key the sample has one document for each value, and the whole for each of five times as many.
        assert_eq!(more_returned(&shape, 100.0, 100.0, 20.0), 5.0);
        assert_eq!(more_returned(&shape, 300.0, 100.0, 20.0), 100.0);
        // What is known of all values is not multiplied by their number.
        shape.returned = Some(600.0);
        assert_eq!(more_returned(&shape, 300.0, 100.0, 20.0), 2.0);
    }

    #[test]
    fn a_limit_is_held_with_an_order_and_without() {
        let find = |query: &str| {
            let query = Query::around(&doc! { "a": 1, "b": 2 }, &told(query).unwrap());
            query.find("c", &Way::Present, None).get_i64("limit").ok()
        };
        assert_eq!(find(r#"{"filter": {"a": 1}, "limit": 10}"#), Some(10));
        let sorted = r#"{"filter": {"a": 1}, "sort": {"b": 1}, "limit": 10, "returns": 4}"#;
        assert_eq!(find(sorted), Some(10));
        assert_eq!(find(r#"{"filter": {"a": 1}, "returns": 4}"#), None);
        let more =
            |query: &str, returned| more_returned(&told(query).unwrap(), returned, 1.0, 20.0);
        // Of more that match it returns no more.
        assert_eq!(more(r#"{"filter": {"a": 1}, "limit": 10}"#, 10.0), 1.0);
        assert_eq!(more(r#"{"filter": {"a": 1}, "limit": 10}"#, 5.0), 2.0);
        assert_eq!(more(r#"{"filter": {"a": 1}, "limit": 500}"#, 5.0), 20.0);
    }

    #[test]
    fn an_order_without_a_number_returns_all_that_there_are() {
        let more = |query: &str| more_returned(&told(query).unwrap(), 5.0, 1.0, 20.0);
        assert_eq!(more(r#"{"filter": {"a": 1}, "sort": {"b": 1}}"#), 20.0);
        assert_eq!(
            more(r#"{"filter": {"a": 1}, "sort": {"b": 1}, "returns": 10}"#),
            2.0
        );
        // Taken to match a hundred, of which the sample has five of this value.
        let range = r#"{"a": 1, "b": {"$gt": 1}}"#;
        assert_eq!(more(range), 20.0);
        assert_eq!(more_returned(&told(range).unwrap(), 100.0, 1.0, 20.0), 1.0);
    }
}
