//! Adds what the server's log tells of slow operations to what was seen of running ones: each look is a moment, and the log
//! has all of those that took long.

use std::time::Instant;

use mongodb::bson::Document;
use seekscope_run::LoggedOperations;

use super::{Alike, DIFFERENT_MAX, Looks};
use crate::examination::asking::Asker;
use crate::examination::rights;
use crate::replies::{at, number};
use crate::slow_operations::{self, SlowOperation, SlowOperations};

/// When the watch began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    /// The time by the server's clock, ms since 1970.
    server_ms: i64,
    here: Instant,
}

impl Looks {
    /// Notes the server's time in `serverStatus`, from which on the log will be read.
    pub(in crate::examination) fn note_begin(&mut self, status: &Document) {
        let time = status.get_datetime("localTime").ok();
        self.begin = time.map(|time| Begin {
            server_ms: time.timestamp_millis(),
            here: Instant::now(),
        });
    }

    /// Reads the log. Returns how much of the watch it tells of, s; `None` if it was not read.
    pub(in crate::examination) async fn read_log(&mut self, asker: &mut Asker) -> Option<f64> {
        let begin = self.begin?;
        let what = "which operations its log reports as slow";
        let reply = match asker.ask("admin", slow_operations::command()).await {
            Ok(reply) => reply,
            Err(error) => {
                asker.note(what, &error, rights::remedy("getLog"));
                return None;
            }
        };
        let watched_s = begin.here.elapsed().as_secs_f64();
        let slow = SlowOperations::read(&reply, begin.server_ms)?;
        let lost_ms = slow.complete_since_ms.saturating_sub(begin.server_ms);
        self.add_logged(&slow);
        Some((watched_s - lost_ms as f64 / 1e3).max(1e-3))
    }

    fn add_logged(&mut self, slow: &SlowOperations) {
        let all = slow.operations.iter();
        for operation in all.filter(|operation| operation.ended_ms >= slow.complete_since_ms) {
            let Some(alike) = alike(operation) else {
                continue;
            };
            if self.seen.len() >= DIFFERENT_MAX && !self.seen.contains_key(&alike) {
                continue;
            }
            let seen = self.seen.entry(alike.clone()).or_default();
            seen.kind = alike.kind;
            (seen.namespace, seen.plan) = (alike.namespace, alike.plan);
            seen.filter = alike.filter;
            let told = figures(operation, slow.complete_since_ms);
            seen.logged.get_or_insert_default().add(&told);
        }
    }
}

/// Returns what makes it like others, named as `currentOp` names it. `None` for what has no plan, and for what waits for
/// news.
fn alike(operation: &SlowOperation) -> Option<Alike> {
    let told = &operation.told;
    let text = |name: &str| told.get_str(name).unwrap_or_default();
    let command = told.get_document("command").ok()?;
    let opened_by = told.get_document("originatingCommand").unwrap_or(command);
    let follows = opened_by.get_bool("awaitData").unwrap_or(false)
        || at(opened_by, &["pipeline"])
            .and_then(|stages| stages.as_array()?.first()?.as_document())
            .is_some_and(|stage| stage.contains_key("$changeStream"));
    if follows || text("planSummary").is_empty() {
        return None;
    }
    let name = command.keys().next().map(String::as_str);
    let op = match (text("type"), name) {
        ("command", Some("find")) => "query",
        ("command", Some("getMore")) => "getmore",
        (kind, _) => kind,
    };
    let mut as_running = told.clone();
    as_running.insert("op", op);
    let mut alike = Alike::of(&as_running);
    if operation.is_cut_off {
        // What is left would be taken for all that it asks for.
        alike.filter = None;
    }
    Some(alike)
}

/// Returns the figures of one, of its time the part that lies in the watch.
fn figures(operation: &SlowOperation, since_ms: i64) -> LoggedOperations {
    let of = |path: &[&str]| at(&operation.told, path).and_then(number).unwrap_or(0);
    let took_ms = of(&["durationMillis"]);
    let since_begin_ms = operation.ended_ms.saturating_sub(since_ms);
    let in_watch_ms = took_ms.min(u64::try_from(since_begin_ms).unwrap_or(0));
    let results = ["nreturned", "nMatched", "ndeleted"].map(|name| of(&[name]));
    LoggedOperations {
        count: 1,
        took_us: in_watch_ms.saturating_mul(1000),
        longest_us: took_ms.saturating_mul(1000),
        documents_examined: of(&["docsExamined"]),
        keys_examined: of(&["keysExamined"]),
        results: results.into_iter().fold(0, u64::saturating_add),
        first_batches: u64::from(is_first_batch(&operation.told)),
        read_bytes: of(&["storage", "data", "bytesRead"]),
        reading_us: of(&["storage", "data", "timeReadingMicros"]),
    }
}

/// Returns whether it returned only the first of its results, after it had examined more than it took for these: a sort or
/// an aggregation whose cursor stayed open. A plain `find` examines what the rest takes when that is asked for.
fn is_first_batch(told: &Document) -> bool {
    let cursor = told.get("cursorid");
    let is_open = cursor.is_some_and(|id| number(id) != Some(0));
    let flag = |name: &str| told.get_bool(name).unwrap_or(false);
    let command = told.get_document("command").ok();
    let begins = |name: &str| command.is_some_and(|command| command.contains_key(name));
    is_open && !begins("getMore") && (flag("hasSortStage") || begins("aggregate"))
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;
    use seekscope_run::OperationSeen;

    use super::*;

    const BEGUN_MS: i64 = 1_000_000;

    fn find(ended_ms: i64, field: &str) -> SlowOperation {
        SlowOperation {
            ended_ms,
            is_cut_off: false,
            told: doc! { "type": "command", "ns": "shop.orders", "planSummary": "COLLSCAN",
            "command": { "find": "orders", "filter": { field: 7 }, "$db": "shop" },
            "docsExamined": 9_000, "keysExamined": 0, "nreturned": 3, "durationMillis": 200,
            "storage": { "data": { "bytesRead": 4_096_i64, "timeReadingMicros": 150 } } },
        }
    }

    fn seen(looks: &mut Looks, operations: Vec<SlowOperation>) -> Vec<OperationSeen> {
        looks.add_logged(&SlowOperations {
            operations,
            complete_since_ms: BEGUN_MS,
        });
        looks.seen()
    }

    #[test]
    fn what_ran_and_what_the_log_tells_of_are_one() {
        let mut looks = Looks::default();
        let running = doc! { "active": true, "op": "query", "ns": "shop.orders", "planSummary": "COLLSCAN",
        "command": { "find": "orders", "filter": { "a": 1 } }, "microsecs_running": 50_000 };
        looks.add(&doc! { "inprog": [running] }, Instant::now());
        let ends = [BEGUN_MS + 50, BEGUN_MS + 900, BEGUN_MS - 5];
        let all = ends.map(|ended_ms| find(ended_ms, "a"));
        let all = all.into_iter().chain([find(BEGUN_MS + 800, "b")]);
        let all = seen(&mut looks, all.collect());
        assert_eq!(all.len(), 2, "{all:#?}");
        let both = all.iter().find(|seen| seen.looks == 1).unwrap();
        let logged = both.logged.unwrap();
        assert_eq!(
            (logged.count, logged.took_us),
            (2, 250_000),
            "50 ms of the first"
        );
        assert_eq!((logged.longest_us, logged.results), (200_000, 6));
        assert_eq!(
            (logged.documents_examined, logged.read_bytes),
            (18_000, 8_192)
        );
        let alone = all.iter().find(|seen| seen.looks == 0).unwrap();
        let filter = alone.filter.as_ref().unwrap();
        assert_eq!(
            (alone.kind.as_str(), &filter.equal),
            ("query", &vec!["b".to_owned()])
        );
        assert!(!format!("{alone:?}").contains('7'), "a value was kept");
    }

    /// A regression: a sort whose cursor stayed open was said to have 101 results, and the client got 700,000.
    #[test]
    fn the_first_batch_of_a_sort_is_not_all_of_its_results() {
        let logged = |command: Document, more: Document| {
            let mut sort = find(BEGUN_MS + 500, "a");
            sort.told.insert("command", command);
            sort.told.extend(more);
            let [one] = seen(&mut Looks::default(), vec![sort]).try_into().unwrap();
            one.logged.unwrap().first_batches
        };
        let open = || doc! { "cursorid": 3_087_418_194_381_173_826_i64 };
        let sorted = || doc! { "cursorid": 3_087_418_194_381_173_826_i64, "hasSortStage": true };
        let query = || doc! { "find": "orders", "filter": {}, "$db": "shop" };
        let pipeline =
            || doc! { "aggregate": "orders", "pipeline": [], "cursor": {}, "$db": "shop" };
        let following = doc! { "getMore": 5_i64, "collection": "orders", "$db": "shop" };
        assert_eq!(logged(query(), sorted()), 1);
        assert_eq!(logged(pipeline(), open()), 1);
        assert_eq!(logged(pipeline(), doc! {}), 0, "all at once");
        assert_eq!(logged(query(), open()), 0, "it reads on as it is asked");
        assert_eq!(logged(following, sorted()), 0, "what it returned counts");
    }

    #[test]
    fn conditions_of_a_line_that_is_cut_off_are_not_known() {
        let cut = SlowOperation {
            is_cut_off: true,
            ..find(BEGUN_MS + 500, "a")
        };
        let [one] = seen(&mut Looks::default(), vec![cut]).try_into().unwrap();
        assert_eq!((one.filter, one.logged.unwrap().count), (None, 1));
    }

    #[test]
    fn jobs_and_what_waits_for_news_are_left_out() {
        let mut job = find(BEGUN_MS + 500, "a");
        job.told.remove("planSummary");
        let mut follower = find(BEGUN_MS + 500, "a");
        follower
            .told
            .insert("command", doc! { "getMore": 5_i64, "collection": "orders" });
        let originating = doc! { "find": "orders", "tailable": true, "awaitData": true };
        follower.told.insert("originatingCommand", originating);
        let mut stream = find(BEGUN_MS + 500, "a");
        let pipeline = doc! { "aggregate": "orders", "pipeline": [{ "$changeStream": {} }] };
        stream.told.insert("command", pipeline);
        let none = seen(&mut Looks::default(), vec![job, follower, stream]);
        assert_eq!(none, []);
    }

    #[test]
    fn a_reply_of_any_kind_is_no_panic() {
        let strange = SlowOperation {
            ended_ms: i64::MAX,
            is_cut_off: false,
            told: doc! { "type": 7, "command": { "find": 1 }, "planSummary": "COLLSCAN", "durationMillis": i64::MAX,
            "docsExamined": -1, "storage": { "data": "x" } },
        };
        let mut looks = Looks::default();
        let twice = vec![strange, find(i64::MIN, "a")];
        let [one] = seen(&mut looks, twice).try_into().unwrap();
        assert_eq!(one.logged.unwrap().documents_examined, 0);
    }
}
