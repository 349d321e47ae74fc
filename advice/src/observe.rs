//! Watches the queries on a collection: by the server's profile where it is on, else by what its log tells of slow ones
//! and by looking at running operations, and by its own counts of reads and writes. It only reads.

mod seen;

use std::time::{Duration, Instant};

use bson::{DateTime, Document, doc};
use seekscope_run::{CollectionUse, LeftOutQueries, Limitation, QueryShape, ShapeSource, visible};
use seekscope_server::{
    Hello, Namespace, Server, ServerError, SlowOperation, SlowOperations, number, slow_operations,
};

use crate::left_out;
use crate::usage::Usage;
use crate::values::date_ms;
use seen::{GET_MORE, SHAPES_MAX, Seen};

/// Time between two looks at the running operations.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The most entries of the profile that are read.
const PROFILE_MAX: usize = 20_000;
/// Operations of the profile that look for documents; the last one goes on with an answer.
const PROFILED: [&str; 5] = ["query", "command", "update", "remove", GET_MORE];
/// Share of the time watched that the profile must cover for nothing to be said.
const COVERED_MIN: f64 = 0.9;
/// Reads that the watching itself can be counted as.
const OWN_READS: u64 = 2;

/// Watches one collection.
#[derive(Debug)]
pub struct Observer<'a> {
    server: &'a Server,
    namespace: &'a Namespace,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// The most frequent first.
    pub shapes: Vec<QueryShape>,
    /// Those that no trial can ask, or that are too many, the most frequent first.
    pub left_out: Vec<LeftOutQueries>,
    /// What the server did for the collection meanwhile; `None` if it does not say.
    pub used: Option<CollectionUse>,
    /// Share of the pages asked for that it had to read; `None` if it does not say, or if too few were asked for.
    pub missed_share: Option<f64>,
    pub watched_s: f64,
    pub limitations: Vec<Limitation>,
    /// Whether running operations, and whether all that ran, in the profile, could be seen.
    pub saw_running: bool,
    pub saw_profile: bool,
    /// Whether a router was asked, which has no profile.
    pub is_router: bool,
    /// Whether other members of its set may answer queries, too.
    pub has_fellows: bool,
}

impl Observed {
    /// Says what is not known where there is no profile.
    fn without_profile(&self) -> Limitation {
        let (why, remedy) = match self.is_router {
            true => ("a mongos has no profile", "tell them with --query"),
            false => (
                "the server's profiler is off, or records slow operations only",
                "tell them with --query, or switch the profiler on for the time that is watched: db.setProfilingLevel(2)",
            ),
        };
        Limitation {
            what: "queries were seen only while they ran, or where the log calls them slow, so their rates are not known"
                .into(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    /// Leaves out all shapes but this many.
    pub fn keep_most_frequent(&mut self, most: usize) {
        let all = left_out::rate_of_all(&self.shapes, &self.left_out);
        let rest = self.shapes.split_off(most.min(self.shapes.len()));
        self.left_out
            .extend(rest.iter().map(|shape| LeftOutQueries {
                shape: left_out::shape(shape),
                why: format!("at most {most} kinds are tried, the most frequent ones"),
                per_s: shape.per_s,
                share: shape.per_s.zip(all).map(|(rate, all)| rate / all),
                examined_share: None,
            }));
    }

    /// Returns why no shape is known, and what to do.
    pub fn why_none(&self, namespace: &Namespace) -> String {
        const TELL: &str = "say with --query what is asked of it";
        let watched_s = self.watched_s;
        if self.is_router {
            return format!(
                "no query on {namespace} was seen running in {watched_s:.0} s, and a mongos has no profile of those that ran: \
                 {TELL}, or watch it for longer with --for"
            );
        }
        if !self.saw_running && !self.saw_profile {
            return format!(
                "neither the running operations nor the profile can be seen, and so no query on {namespace}: grant the \
                 user clusterMonitor and the role read on the database and have the profiler on \
                 (db.setProfilingLevel(2)), or {TELL}"
            );
        }
        if let Some(first) = self.left_out.first() {
            let which = match first.shape.is_empty() {
                true => String::new(),
                false => format!(" ({})", visible(&first.shape)),
            };
            return format!(
                "queries on {namespace} were seen in {watched_s:.0} s, and none of them can be tried: {}{which}; judge them \
                 by hand, or {TELL}",
                first.why
            );
        }
        let reads = self.used.map_or(0, |used| used.reads);
        if !self.saw_profile && reads > OWN_READS {
            return format!(
                "{reads} reads of {namespace} were counted in {watched_s:.0} s, but none was seen running: switch the \
                 profiler on while they are watched, with db.setProfilingLevel(2), or {TELL}"
            );
        }
        let of_others = match self.has_fellows {
            true => {
                ". What other members of the set are asked is not seen: name one with directConnection=true"
            }
            false => "",
        };
        format!(
            "no query on {namespace} that can be tried was seen in {watched_s:.0} s; {TELL}, or watch it for longer with \
             --for{of_others}"
        )
    }
}

impl<'a> Observer<'a> {
    pub fn new(server: &'a Server, namespace: &'a Namespace) -> Self {
        Self { server, namespace }
    }

    /// Watches for this time.
    ///
    /// # Errors
    /// Fails if the server goes away; what it refuses is a limitation.
    pub async fn watch(&self, time: Duration) -> Result<Observed, ServerError> {
        let begun = Instant::now();
        let mut seen = Seen::default();
        let mut observed = Observed::default();
        let before = Usage::read(self.server, self.namespace).await;
        let hello = self.hello().await;
        let greeting = Hello::read(&hello);
        observed.is_router = greeting.is_router();
        observed.has_fellows = greeting.data_members.len() > 1;
        let since_ms = hello.get("localTime").and_then(date_ms);
        observed.saw_running = true;
        while begun.elapsed() < time {
            if observed.saw_running {
                match self.answered(self.running().await).await? {
                    Ok(commands) => commands
                        .iter()
                        .for_each(|c| seen.add(c, ShapeSource::Running)),
                    Err(error) => {
                        observed.limitations.push(refused(
                            "the running operations were not seen",
                            &error,
                            "the privilege inprog on the cluster",
                        ));
                        observed.saw_running = false;
                    }
                }
            }
            tokio::time::sleep(LOOK_EVERY.min(time.saturating_sub(begun.elapsed()))).await;
        }
        let watched_s = begun.elapsed().as_secs_f64();
        let after = Usage::read(self.server, self.namespace).await;
        let after = self.answered(after).await?;
        if let (Ok(before), Ok(after)) = (before, after) {
            observed.used = after.since(&before);
            observed.missed_share = after.missed_share_since(&before);
        }
        let mut profiled_s = watched_s;
        let since_profiled_ms = since_ms.filter(|_| !observed.is_router);
        match self
            .answered(self.profile(since_profiled_ms, watched_s).await)
            .await?
        {
            Ok(Some(profile)) => {
                observed.saw_profile = true;
                let entries = profile.entries.iter();
                entries.for_each(|entry| seen.add_ended(entry, ShapeSource::Profile));
                observed.limitations.extend(profile.shortened(watched_s));
                observed.limitations.extend(profile.without_lookups());
                profiled_s = profile.covered_s;
            }
            Ok(None) => observed.limitations.push(observed.without_profile()),
            Err(error) => observed.limitations.push(refused(
                "the server's profile was not read",
                &error,
                "the role read on the database, and the privilege find on system.profile",
            )),
        }
        if !observed.saw_profile {
            let slow = self.answered(self.slow(since_ms).await).await?;
            // Whoever may not read the log is told of the profile, which says more.
            for entry in slow.unwrap_or_default() {
                seen.add_ended(&entry, ShapeSource::Log);
            }
        }
        observed.watched_s = watched_s;
        seen.finish(&mut observed, profiled_s);
        Ok(observed)
    }

    /// Passes on an answer or what the server refuses.
    ///
    /// # Errors
    /// Fails if the server is gone.
    async fn answered<T>(
        &self,
        answer: Result<T, ServerError>,
    ) -> Result<Result<T, ServerError>, ServerError> {
        match answer {
            Err(error) if is_gone(&error) => return Err(error),
            // It may be slow, or gone: the driver waits for longer until it knows.
            Err(ServerError::TimeOver { .. }) => self.server.ping().await?,
            _ => {}
        }
        Ok(answer)
    }

    /// Returns what the server says of itself, its time included; empty if it does not answer.
    async fn hello(&self) -> Document {
        let hello = self.server.command_in_time("admin", doc! { "isMaster": 1 });
        hello.await.unwrap_or_default()
    }

    /// Returns whether all operations are profiled.
    async fn is_profiled(&self) -> Result<bool, ServerError> {
        let reply = self
            .server
            .command_in_time(self.namespace.database(), doc! { "profile": -1 })
            .await?;
        Ok(reply.get("was").and_then(number) == Some(2))
    }

    /// Reads what the profile holds of the time that was watched; `None` if not all operations are in it. It is small
    /// unless somebody made it larger, and loses its oldest entries first, those of other collections with them.
    async fn profile(
        &self,
        since_ms: Option<i64>,
        watched_s: f64,
    ) -> Result<Option<Profile>, ServerError> {
        let (Some(since_ms), true) = (since_ms, self.is_profiled().await?) else {
            return Ok(None);
        };
        let at = |ms: i64| DateTime::from_millis(ms);
        let filter = doc! { "ns": self.namespace.to_string(), "ts": { "$gte": at(since_ms) },
        "op": { "$in": PROFILED }, "appName": { "$ne": "seekscope" } };
        let projection = doc! { "ts": 1, "op": 1, "command": 1, "originatingCommand": 1, "planSummary": 1,
        "nreturned": 1, "nMatched": 1, "ndeleted": 1, "docsExamined": 1, "keysExamined": 1, "_id": 0 };
        let find = doc! { "find": "system.profile", "filter": filter, "projection": projection };
        let oldest =
            doc! { "find": "system.profile", "limit": 1, "projection": { "ts": 1, "_id": 0 } };
        let database = self.namespace.database();
        let ask = |find, most| self.server.documents_in_time(database, find, most);
        let entries = ask(find, PROFILE_MAX).await?;
        let oldest = ask(oldest, 1).await?;
        let looked_up = doc! { "find": "system.profile", "projection": { "_id": 1 },
        "filter": { "command.pipeline.$lookup.from": self.namespace.collection(),
            "ns": { "$ne": self.namespace.to_string() }, "ts": { "$gte": at(since_ms) },
            "appName": { "$ne": "seekscope" } } };
        let looked_up = ask(looked_up, PROFILE_MAX).await?.len();
        let profile = Profile::of(entries, oldest.first(), since_ms, watched_s);
        Ok(Some(Profile {
            looked_up,
            ..profile
        }))
    }

    /// Returns the operations that the log calls slow. A router's log has those that went through it.
    async fn slow(&self, since_ms: Option<i64>) -> Result<Vec<Document>, ServerError> {
        let Some(since_ms) = since_ms else {
            return Ok(Vec::new());
        };
        let command = slow_operations::command();
        let reply = self.server.command_in_time("admin", command).await?;
        let slow = SlowOperations::read(&reply, since_ms).unwrap_or_default();
        let namespace = self.namespace.to_string();
        let is_on_it =
            |slow: &SlowOperation| slow.told.get_str("ns").is_ok_and(|name| name == namespace);
        let on_it = slow.operations.into_iter().filter(is_on_it);
        Ok(on_it.map(as_profiled).collect())
    }

    /// Returns the commands that run on the collection now.
    async fn running(&self) -> Result<Vec<Document>, ServerError> {
        let command = doc! { "currentOp": 1, "active": true, "ns": self.namespace.to_string(), "appName": { "$ne": "seekscope" } };
        let reply = self.server.command_in_time("admin", command).await?;
        let operations = reply.get_array("inprog").into_iter().flatten();
        let commands = operations.filter_map(|operation| {
            let operation = operation.as_document()?;
            let of_cursor = operation.get_document("cursor").ok();
            let of_cursor =
                of_cursor.and_then(|cursor| cursor.get_document("originatingCommand").ok());
            of_cursor
                .or_else(|| operation.get_document("command").ok())
                .cloned()
        });
        // One that goes on with an answer does not say whose.
        let commands = commands.filter(|command| !command.contains_key("getMore"));
        Ok(commands.take(SHAPES_MAX).collect())
    }
}

/// Returns what the log says of an operation as the profile would.
fn as_profiled(operation: SlowOperation) -> Document {
    let mut told = operation.told;
    let goes_on = told
        .get_document("command")
        .is_ok_and(|command| command.contains_key("getMore"));
    told.insert("op", if goes_on { GET_MORE } else { "command" });
    if operation.is_cut_off {
        // As `currentOp` shows a query that is too long.
        told.remove("originatingCommand");
        told.insert(
            "command",
            doc! { "find": "", "filter": { "$truncated": "" } },
        );
    }
    told
}

/// Returns whether there is no server to ask any more, rather than one that refuses.
fn is_gone(error: &ServerError) -> bool {
    use ServerError::{LoginRefused, Unreachable, Unsuitable};
    matches!(
        error,
        Unreachable { .. } | Unsuitable { .. } | LoginRefused { .. }
    )
}

fn refused(what: &str, error: &ServerError, remedy: &str) -> Limitation {
    Limitation {
        what: what.into(),
        why: error.to_string(),
        remedy: remedy.into(),
    }
}

/// What the profile holds of the time that was watched.
#[derive(Debug)]
struct Profile {
    entries: Vec<Document>,
    /// The time that they are of, s.
    covered_s: f64,
    /// Pipelines on other collections of the database that read this one with `$lookup`.
    looked_up: usize,
}

impl Profile {
    fn of(
        entries: Vec<Document>,
        oldest: Option<&Document>,
        since_ms: i64,
        watched_s: f64,
    ) -> Self {
        let time_ms = |entry: &Document| entry.get("ts").and_then(date_ms);
        let begin_ms = oldest.and_then(time_ms).unwrap_or(since_ms).max(since_ms);
        let lost_s = (begin_ms - since_ms) as f64 / 1e3;
        let end_s = match entries.last().and_then(time_ms) {
            // The rest was not read.
            Some(last_ms) if entries.len() >= PROFILE_MAX => (last_ms - since_ms) as f64 / 1e3,
            _ => watched_s,
        };
        Self {
            entries,
            covered_s: (end_s - lost_s).clamp(1e-3, watched_s.max(1e-3)),
            looked_up: 0,
        }
    }

    /// Says that what `$lookup` reads for pipelines on other collections is not among the queries: the profile shows the
    /// pipeline alone.
    fn without_lookups(&self) -> Option<Limitation> {
        let what = match self.looked_up {
            0 => return None,
            1 => "what $lookup read of it for a pipeline on another collection was left out".into(),
            many => format!(
                "what $lookup read of it for {many} pipelines on other collections was left out"
            ),
        };
        Some(Limitation {
            what,
            why: "the server's profile shows the pipeline, and not what it asks of this collection"
                .into(),
            remedy: "tell it with --query, as a filter on the foreignField with its rate".into(),
        })
    }

    fn shortened(&self, watched_s: f64) -> Option<Limitation> {
        (self.covered_s < watched_s * COVERED_MIN).then(|| Limitation {
            what: format!("rates of queries are those of {:.1} s", self.covered_s),
            why: "the profile holds no more, or more than are read".into(),
            remedy: "make system.profile larger, or tell the queries with --query".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_that_of_what_kept_queries_from_being_seen() {
        let why = |saw_running, saw_profile, reads| {
            let used = CollectionUse {
                reads,
                ..CollectionUse::default()
            };
            let observed = Observed {
                saw_running,
                saw_profile,
                used: Some(used),
                watched_s: 15.0,
                ..Observed::default()
            };
            observed.why_none(&"a.b".parse().unwrap())
        };
        assert!(why(false, false, 50).contains("clusterMonitor"));
        assert!(why(true, false, 50).contains("setProfilingLevel(2), or"));
        for idle in [why(true, false, 1), why(true, true, 50)] {
            assert!(idle.contains("watch it for longer"), "{idle}");
        }
        let of_router = Observed {
            is_router: true,
            ..Observed::default()
        };
        let said = of_router.why_none(&"a.b".parse().unwrap());
        assert!(!said.contains("setProfilingLevel"), "{said}");
    }

    #[test]
    fn slow_operations_are_taken_as_the_profile_has_them() {
        let slow = |command: Document, is_cut_off| {
            let told = doc! { "command": command, "originatingCommand": { "find": "c" } };
            as_profiled(SlowOperation {
                ended_ms: 0,
                told,
                is_cut_off,
            })
        };
        let of = |told: &Document| told.get_str("op").unwrap().to_owned();
        assert_eq!(of(&slow(doc! { "find": "c" }, false)), "command");
        assert_eq!(of(&slow(doc! { "getMore": 5_i64 }, false)), GET_MORE);
        let mut seen = Seen::default();
        seen.add_ended(&slow(doc! { "find": "c" }, true), ShapeSource::Log);
        let mut observed = Observed {
            saw_running: true,
            ..Observed::default()
        };
        seen.finish(&mut observed, 1.0);
        assert_eq!(observed.shapes, []);
        assert_eq!(
            observed.left_out[0].why,
            "the query is not shown as a whole"
        );
        assert!(
            observed
                .why_none(&"a.b".parse().unwrap())
                .contains("none of them can be tried")
        );
    }

    #[test]
    fn rarer_shapes_are_left_out_with_their_share() {
        let shape = |field: &str, per_s| QueryShape {
            equality: vec![field.into()],
            per_s,
            ..QueryShape::default()
        };
        let rest = |rate| {
            let mut observed = Observed {
                shapes: vec![shape("a", Some(3.0)), shape("b", rate)],
                ..Observed::default()
            };
            observed.keep_most_frequent(1);
            assert_eq!(observed.shapes.len(), 1);
            observed.left_out[0].clone()
        };
        assert_eq!(rest(Some(1.0)).share, Some(0.25));
        assert_eq!(rest(Some(1.0)).shape, r#"{"b":"?"}"#);
        assert_eq!(rest(None).share, None);
    }

    #[test]
    fn a_server_that_is_gone_ends_the_watch_and_a_refusal_does_not() {
        let uri = || "mongodb://h/".to_owned();
        let gone = ServerError::Unreachable {
            uri: uri(),
            why: "the connection broke off".into(),
            remedy: "",
        };
        assert!(is_gone(&gone));
        let refused = ServerError::NotAuthorised {
            uri: uri(),
            command: "currentOp".into(),
            has_user: true,
        };
        assert!(!is_gone(&refused));
    }

    #[test]
    fn a_profile_that_lost_entries_covers_less() {
        let at = |ms: i64| doc! { "ts": DateTime::from_millis(ms) };
        let covered = |entries: Vec<Document>, oldest_ms| {
            Profile::of(entries, Some(&at(oldest_ms)), 10_000, 60.0).covered_s
        };
        assert_eq!(covered(vec![at(20_000)], 5_000), 60.0);
        assert_eq!(covered(vec![at(69_000)], 68_000), 2.0);
        assert_eq!(covered(vec![at(40_000); PROFILE_MAX], 5_000), 30.0);
        let short = Profile::of(vec![at(69_000)], Some(&at(68_000)), 10_000, 60.0);
        assert!(short.shortened(60.0).is_some());
    }
}
