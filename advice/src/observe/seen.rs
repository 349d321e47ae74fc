//! Counts the queries that are seen by their shape, and learns how many documents they look for, how many values their
//! lists hold and after how many documents they stop. Queries that differ in these numbers have one shape, with the means:
//! what queries read grows with them, so that the mean query reads as much as the queries do on average.

use std::collections::BTreeMap;

use bson::Document;
use seekscope_run::{LeftOutQueries, QueryShape, ShapeSource};
use seekscope_server::number;

use super::Observed;
use crate::left_out;
use crate::shape::{NoShape, of_command};

/// The most different shapes that are kept.
pub(super) const SHAPES_MAX: usize = 100;
/// The operation of the profile that goes on with an answer.
pub(super) const GET_MORE: &str = "getmore";

/// Returns the documents that an operation of the profile examined.
fn examined(entry: &Document) -> f64 {
    entry.get("docsExamined").and_then(number).unwrap_or(0) as f64
}

/// Returns the documents that an operation of the profile looked for; `None` if they are not known. Of an answer that is
/// counted or grouped that is what was examined, unless everything was.
fn looked_for(entry: &Document) -> Option<f64> {
    let count = |name: &str| entry.get(name).and_then(number);
    let command = entry.get_document("originatingCommand");
    let command = command.or_else(|_| entry.get_document("command"));
    let is_find = command.is_ok_and(|command| command.contains_key("find"));
    let answer = match is_find {
        true => count("nreturned"),
        false => count("nMatched").or_else(|| count("ndeleted")),
    };
    let scans_all = entry
        .get_str("planSummary")
        .is_ok_and(|plan| plan == "COLLSCAN");
    let mut examined = ["docsExamined", "keysExamined"]
        .into_iter()
        .filter_map(count);
    let examined = examined.find(|count| *count > 0 && !is_find && !scans_all);
    answer.or(examined).map(|count| count as f64)
}

/// Numbers in which queries of one shape may differ.
#[derive(Debug, Default)]
struct Numbers {
    /// Values of lists, by field.
    values: BTreeMap<String, f64>,
    limit: Option<f64>,
}

impl Numbers {
    /// Takes the numbers out of a shape, of which it is left that it has a limit.
    fn out_of(shape: &mut QueryShape) -> Self {
        let limit = shape.limit;
        shape.limit = limit.map(|_| 0.0);
        Self {
            values: std::mem::take(&mut shape.one_of_values),
            limit,
        }
    }
}

/// A shape and how often it was seen.
#[derive(Debug)]
struct Sighted {
    /// The shape, without its numbers.
    shape: QueryShape,
    times: u64,
    /// Means over those times.
    means: Numbers,
    /// Those times of which it is known what they looked for, and the documents that they looked for together.
    known: u64,
    documents: f64,
    /// Documents that they examined together, as far as they have ended.
    examined: f64,
}

/// Queries of one kind that no trial can ask.
#[derive(Debug)]
struct Strange {
    described: String,
    why: NoShape,
    source: ShapeSource,
    times: u64,
    examined: f64,
}

impl Sighted {
    /// Counts one more query, which has these numbers.
    fn count(&mut self, numbers: &Numbers) {
        self.times += 1;
        let times = self.times as f64;
        let take_in = |mean: &mut f64, number: f64| *mean += (number - *mean) / times;
        for (field, values) in &numbers.values {
            take_in(self.means.values.entry(field.clone()).or_default(), *values);
        }
        if let Some(limit) = numbers.limit {
            take_in(self.means.limit.get_or_insert(0.0), limit);
        }
    }
}

/// Shapes with how often they were seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    shapes: Vec<Sighted>,
    strange: Vec<Strange>,
}

impl Seen {
    pub(super) fn add(&mut self, command: &Document, source: ShapeSource) {
        match of_command(command) {
            Ok(shape) => {
                if let Some((sighted, numbers)) = self.sighted(shape, source) {
                    sighted.count(&numbers);
                }
            }
            Err(why) => self.leave_out(command, why, source, (1, 0.0)),
        }
    }

    /// Adds an operation that has ended, as the profile holds it.
    pub(super) fn add_ended(&mut self, entry: &Document, source: ShapeSource) {
        let goes_on = entry.get_str("op").is_ok_and(|op| op == GET_MORE);
        let command = if goes_on {
            "originatingCommand"
        } else {
            "command"
        };
        let Ok(command) = entry.get_document(command) else {
            return;
        };
        let shape = match of_command(command) {
            Ok(shape) => shape,
            Err(why) => {
                let counted = (u64::from(!goes_on), examined(entry));
                return self.leave_out(command, why, source, counted);
            }
        };
        let Some((sighted, numbers)) = self.sighted(shape, source) else {
            return;
        };
        let documents = looked_for(entry);
        sighted.examined += examined(entry);
        sighted.documents += documents.unwrap_or(0.0);
        if !goes_on {
            sighted.count(&numbers);
            sighted.known += u64::from(documents.is_some());
        }
    }

    /// Counts a command that no trial can ask.
    fn leave_out(
        &mut self,
        command: &Document,
        why: NoShape,
        source: ShapeSource,
        (times, examined): (u64, f64),
    ) {
        let described = left_out::command(command);
        let is_same = |known: &Strange| {
            known.described == described && known.why == why && known.source == source
        };
        match self.strange.iter().position(is_same) {
            Some(place) => {
                let known = &mut self.strange[place];
                known.times += times;
                known.examined += examined;
            }
            None if self.strange.len() < SHAPES_MAX => self.strange.push(Strange {
                described,
                why,
                source,
                times,
                examined,
            }),
            None => {}
        }
    }

    /// Returns the shape of a command among those that are kept, and its own numbers; `None` if it is not kept.
    fn sighted(
        &mut self,
        mut shape: QueryShape,
        source: ShapeSource,
    ) -> Option<(&mut Sighted, Numbers)> {
        shape.source = source;
        let numbers = Numbers::out_of(&mut shape);
        let place = self.shapes.iter().position(|known| known.shape == shape);
        if place.is_none() && !shape.is_empty() && self.shapes.len() < SHAPES_MAX {
            self.shapes.push(Sighted {
                shape,
                times: 0,
                means: Numbers::default(),
                known: 0,
                documents: 0.0,
                examined: 0.0,
            });
            return self.shapes.last_mut().map(|sighted| (sighted, numbers));
        }
        Some((self.shapes.get_mut(place?)?, numbers))
    }

    /// What was seen running and is in the log is one shape, of which the log tells more.
    fn merge_running_into_logged(&mut self) {
        let (logged, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.shapes)
            .into_iter()
            .partition(|sighted| sighted.shape.source == ShapeSource::Log);
        self.shapes = logged;
        for other in others {
            let as_logged = QueryShape {
                source: ShapeSource::Log,
                ..other.shape.clone()
            };
            match self
                .shapes
                .iter_mut()
                .find(|known| known.shape == as_logged)
            {
                Some(known) => known.times = known.times.max(other.times),
                None => self.shapes.push(other),
            }
        }
    }

    pub(super) fn finish(mut self, observed: &mut Observed, profiled_s: f64) {
        // The answer of one that began before is gone on with.
        self.shapes.retain(|sighted| sighted.times > 0);
        self.strange.retain(|strange| strange.times > 0);
        // The profile saw whatever ran, and tells its rate.
        let is_profiled = |sighted: &Sighted| sighted.shape.source == ShapeSource::Profile;
        if self.shapes.iter().any(is_profiled) {
            self.shapes.retain(is_profiled);
        }
        let are_profiled = |strange: &Strange| strange.source == ShapeSource::Profile;
        if self.shapes.iter().any(is_profiled) || self.strange.iter().any(are_profiled) {
            self.strange.retain(are_profiled);
        }
        self.merge_running_into_logged();
        observed.left_out = self.left_out(profiled_s);
        self.shapes
            .sort_by_key(|sighted| std::cmp::Reverse(sighted.times));
        let shapes = self.shapes.into_iter().map(|sighted| {
            let mut shape = sighted.shape;
            shape.one_of_values = sighted.means.values;
            shape.limit = sighted.means.limit;
            if shape.source == ShapeSource::Profile {
                shape.per_s = Some(sighted.times as f64 / profiled_s.max(1e-3));
            }
            if shape.source != ShapeSource::Running {
                // Queries that find nothing cost something all the same.
                let mean = sighted.documents / sighted.known.max(1) as f64;
                shape.returned = Some(mean).filter(|mean| *mean > 0.0);
            }
            shape
        });
        observed.shapes = shapes.collect();
    }

    /// Returns the queries that no trial can ask, the most frequent first, with their share of all that are kept.
    fn left_out(&mut self, profiled_s: f64) -> Vec<LeftOutQueries> {
        // What was seen running and is in the log is told once, as the log counts it.
        let logged = self.strange.iter().filter(|s| s.source == ShapeSource::Log);
        let logged: Vec<String> = logged.map(|s| s.described.clone()).collect();
        self.strange
            .retain(|s| s.source != ShapeSource::Running || !logged.contains(&s.described));
        self.strange
            .sort_by_key(|strange| std::cmp::Reverse(strange.times));
        let (shapes, strange) = (&self.shapes, &self.strange);
        let sighted: u64 = shapes.iter().map(|s| s.times).sum();
        let times = sighted + strange.iter().map(|s| s.times).sum::<u64>();
        let of_shapes: f64 = shapes.iter().map(|s| s.examined).sum();
        let examined = of_shapes + strange.iter().map(|s| s.examined).sum::<f64>();
        // What a running operation will have examined is not known.
        let sources = shapes.iter().map(|s| s.shape.source);
        let mut sources = sources.chain(strange.iter().map(|s| s.source));
        let is_known = examined > 0.0 && !sources.any(|source| source == ShapeSource::Running);
        let told = strange.iter().map(|one| LeftOutQueries {
            shape: one.described.clone(),
            why: one.why.to_string(),
            per_s: (one.source == ShapeSource::Profile)
                .then(|| one.times as f64 / profiled_s.max(1e-3)),
            share: Some(one.times as f64 / times.max(1) as f64),
            examined_share: is_known.then(|| one.examined / examined),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    fn find(filter: Document, returned: i32) -> Document {
        doc! { "op": "query", "command": { "find": "c", "filter": filter }, "nreturned": returned,
        "docsExamined": 9_000 }
    }

    #[test]
    fn queries_are_counted_by_their_shape() {
        let mut seen = Seen::default();
        seen.add(
            &doc! { "find": "c", "filter": { "a": 1 } },
            ShapeSource::Running,
        );
        for entry in [
            find(doc! { "a": 1 }, 4),
            find(doc! { "a": 2 }, 8),
            find(doc! { "b": 1 }, 0),
            find(doc! { "$or": [] }, 1),
            find(doc! {}, 1),
        ] {
            seen.add_ended(&entry, ShapeSource::Profile);
        }
        let mut observed = Observed::default();
        seen.finish(&mut observed, 4.0);
        assert_eq!(observed.shapes.len(), 2, "{observed:?}");
        assert_eq!(
            (observed.shapes[0].per_s, observed.shapes[0].returned),
            (Some(0.5), Some(6.0))
        );
        assert_eq!(observed.shapes[1].returned, None, "it found nothing");
        let [left_out] = observed.left_out.as_slice() else {
            panic!("{observed:?}")
        };
        assert_eq!(left_out.shape, r#"{"$or":[]}"#);
        assert_eq!((left_out.per_s, left_out.share), (Some(0.25), Some(0.25)));
    }

    #[test]
    fn queries_that_no_trial_can_ask_are_counted_by_their_kind() {
        let regex = |field: &str| doc! { field: { "$regex": "SECRET" } };
        let mut seen = Seen::default();
        for _ in 0..3 {
            seen.add_ended(&find(regex("a"), 1), ShapeSource::Profile);
        }
        let examined = |filter: Document, documents: i32| {
            let mut entry = find(filter, 1);
            entry.insert("docsExamined", documents);
            entry
        };
        seen.add_ended(&examined(regex("b"), 0), ShapeSource::Profile);
        for _ in 0..4 {
            seen.add_ended(&examined(doc! { "c": 1 }, 2_250), ShapeSource::Profile);
        }
        // The profile has it, too.
        seen.add(
            &doc! { "find": "c", "filter": regex("a") },
            ShapeSource::Running,
        );
        let mut observed = Observed::default();
        seen.finish(&mut observed, 2.0);
        let told = observed.left_out.iter();
        let told: Vec<_> = told
            .map(|one| (one.shape.as_str(), one.per_s, one.share, one.examined_share))
            .collect();
        assert_eq!(
            told,
            [
                (
                    r#"{"a":{"$regex":"?"}}"#,
                    Some(1.5),
                    Some(0.375),
                    Some(0.75)
                ),
                (r#"{"b":{"$regex":"?"}}"#, Some(0.5), Some(0.125), Some(0.0)),
            ]
        );
        assert!(
            observed.left_out[0]
                .why
                .starts_with("$regex cannot be made up")
        );
    }

    #[test]
    fn what_is_left_out_is_told_once_where_it_ran_and_was_slow() {
        let or = || doc! { "$or": [{ "a": 1 }] };
        let mut seen = Seen::default();
        seen.add(&doc! { "find": "c", "filter": or() }, ShapeSource::Running);
        seen.add_ended(&find(or(), 1), ShapeSource::Log);
        let mut observed = Observed::default();
        seen.finish(&mut observed, 2.0);
        assert_eq!(observed.left_out.len(), 1, "{observed:?}");
        let one = &observed.left_out[0];
        assert_eq!(
            (one.per_s, one.share, one.examined_share),
            (None, Some(1.0), Some(1.0))
        );
    }

    #[test]
    fn what_ran_and_was_slow_is_one_shape_without_a_rate() {
        let mut seen = Seen::default();
        for (field, source) in [("a", ShapeSource::Running), ("b", ShapeSource::Running)] {
            seen.add(&doc! { "find": "c", "filter": { field: 1 } }, source);
        }
        for returned in [4, 8] {
            seen.add_ended(&find(doc! { "a": 1 }, returned), ShapeSource::Log);
        }
        let mut observed = Observed::default();
        seen.finish(&mut observed, 4.0);
        let [a, b] = observed.shapes.as_slice() else {
            panic!("{observed:?}")
        };
        assert_eq!(
            (a.source, a.per_s, a.returned),
            (ShapeSource::Log, None, Some(6.0))
        );
        assert_eq!((b.source, b.returned), (ShapeSource::Running, None));
    }

    #[test]
    fn queries_that_differ_in_numbers_alone_are_one_shape_with_the_means() {
        let find = |values: i32, limit: i32| {
            let list: Vec<i32> = (0..values).collect();
            doc! { "find": "c", "filter": { "a": { "$in": list } }, "limit": limit }
        };
        let mut seen = Seen::default();
        for command in [
            find(10, 0),
            find(40, 0),
            find(10, 0),
            find(3, 5),
            find(3, 10),
        ] {
            let entry = doc! { "op": "query", "command": command, "nreturned": 4 };
            seen.add_ended(&entry, ShapeSource::Profile);
        }
        let mut observed = Observed::default();
        seen.finish(&mut observed, 1.0);
        let [all, some] = observed.shapes.as_slice() else {
            panic!("{observed:?}")
        };
        assert_eq!((all.values_of("a"), all.limit), (20.0, None));
        assert_eq!((some.values_of("a"), some.limit), (3.0, Some(7.5)));
        assert_eq!((all.per_s, some.per_s), (Some(3.0), Some(2.0)));
    }

    #[test]
    fn what_ran_and_is_in_the_log_has_the_numbers_of_the_log() {
        let find = |limit: i32| doc! { "find": "c", "filter": { "a": 1 }, "limit": limit };
        let mut seen = Seen::default();
        for _ in 0..3 {
            seen.add(&find(50), ShapeSource::Running);
        }
        seen.add(
            &doc! { "find": "c", "filter": { "a": 1 } },
            ShapeSource::Running,
        );
        let entry = doc! { "op": "command", "command": find(10), "nreturned": 4 };
        seen.add_ended(&entry, ShapeSource::Log);
        let mut observed = Observed::default();
        seen.finish(&mut observed, 1.0);
        let found = observed.shapes.iter();
        let found: Vec<_> = found.map(|shape| (shape.source, shape.limit)).collect();
        assert_eq!(
            found,
            [(ShapeSource::Log, Some(10.0)), (ShapeSource::Running, None)]
        );
    }

    #[test]
    fn what_was_looked_for_is_not_always_what_was_returned() {
        let filter = || doc! { "a": 1 };
        let pipeline = || doc! { "aggregate": "c", "pipeline": [{ "$match": filter() }] };
        for (entry, expected) in [
            (
                doc! { "command": pipeline(), "nreturned": 1, "docsExamined": 50, "keysExamined": 51 },
                Some(50.0),
            ),
            (
                doc! { "command": { "count": "c", "query": filter() }, "docsExamined": 0, "keysExamined": 51 },
                Some(51.0),
            ),
            (
                doc! { "command": pipeline(), "docsExamined": 9_000, "planSummary": "COLLSCAN" },
                None,
            ),
            (
                doc! { "command": { "q": filter() }, "nMatched": 3, "docsExamined": 9_000 },
                Some(3.0),
            ),
        ] {
            assert_eq!(looked_for(&entry), expected, "{entry}");
        }
        // A find of 600 documents in two batches.
        let mut seen = Seen::default();
        seen.add_ended(&find(filter(), 101), ShapeSource::Profile);
        seen.add_ended(
            &doc! { "op": GET_MORE, "command": { "getMore": 5_i64 }, "nreturned": 499,
            "originatingCommand": { "find": "c", "filter": filter() } },
            ShapeSource::Profile,
        );
        let mut observed = Observed::default();
        seen.finish(&mut observed, 1.0);
        let shape = &observed.shapes[0];
        assert_eq!((shape.per_s, shape.returned), (Some(1.0), Some(600.0)));
    }
}
