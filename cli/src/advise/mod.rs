//! `seekscope advise`: how a collection should be stored, tried with a sample on a server of our own.
//!
//! `trying` stores and measures the ways; `seconds` says what the blocks cost on the disk; `traced` reads what a trace
//! saw of the collection; `earlier` compares with an earlier run's advice; `results` shows what the records say.

mod earlier;
mod results;
mod seconds;
mod traced;
mod trying;

use earlier::Earlier;
pub use results::show;
use traced::Traced;

use std::path::Path;

use anyhow::Result;
use mongodb::bson::Document;
use seekscope_advice::collection::FileFacts;
use seekscope_advice::left_out::rate_of_all;
use seekscope_advice::observe::Observed;
use seekscope_advice::since::Now;
use seekscope_advice::{Observer, ToldQuery, collection};
use seekscope_doctor::wording::SOME_ROUTER;
use seekscope_reorder::{By, Definition, ReorderError};
use seekscope_run::{
    AdviceRecord, AdvisedCollection, CollectionUse, HostFacts, LeftOutQueries, Limitation,
    QueryShape, RunDocument, visible,
};
use seekscope_server::examination::refuse_router;
use seekscope_server::{
    Namespace, NamespaceError, ProcFs, Server, ServerError, ServerFacts, storage_facts,
};

use crate::args::AdviseArgs;
use crate::environment::Environment;
use crate::exit::{Elsewhere, Usage};
use crate::interruption::Interruption;
use crate::layout::ScanDisk;
use crate::progress::Progress;
use crate::session::{Session, limit};
use crate::{disk, ending};

/// Shapes beyond these cost time, and rarely change the advice.
const SHAPES_MAX: usize = 5;
/// The most kinds of queries that are said to be left out one by one.
const LEFT_OUT_MAX: usize = 5;
/// What to do about queries that no trial can ask.
const BY_HAND: &str = "look at them by hand: explain(\"executionStats\") shows what one examines";

/// Runs the command.
pub async fn run(
    mut args: AdviseArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let namespace: Namespace = args
        .collection
        .parse()
        .map_err(|error: NamespaceError| Usage(error.to_string()))?;
    refuse_untried(&args.query)?;
    let earlier = args.since.as_deref();
    let earlier = earlier
        .map(|run| Earlier::load(run, &namespace))
        .transpose()?;
    let traced = args.trace.as_deref();
    let traced = traced
        .map(|run| Traced::load(run, &namespace))
        .transpose()?;
    disk::measure_first(&mut args.disk, args.output, environment, &arguments).await?;
    let interruption = Interruption::listen();
    let progress = Progress::new(args.output.quiet);
    let server = {
        let _step = progress.step("connecting");
        interruption
            .or(async { Ok(Server::connect(&args.uri).await?) })
            .await?
    };
    let definition = interruption.or(definition_of(&server, &namespace)).await?;
    let mut session = Session::begin("advise", arguments, args.out.as_deref())?;
    let advise = Advise {
        args: &args,
        environment,
        server: &server,
        namespace: &namespace,
        definition: &definition,
        indexes: collection::as_written(definition.indexes(), definition.options()),
        traced,
        progress,
    };
    let worked = match earlier {
        Some(earlier) => {
            interruption
                .or(advise.follow_up(&mut session, &earlier))
                .await
        }
        None => interruption.or(advise.work(&mut session)).await,
    };
    ending::end(&mut session, worked, progress, |session| {
        show(session, &args.output, progress)
    })
}

/// The running command.
struct Advise<'a> {
    args: &'a AdviseArgs,
    environment: &'a Environment,
    server: &'a Server,
    namespace: &'a Namespace,
    definition: &'a Definition,
    indexes: Vec<Document>,
    /// What a trace saw of the collection, where one is given.
    traced: Option<Traced>,
    progress: Progress,
}

impl Advise<'_> {
    async fn work(&self, session: &mut Session) -> Result<()> {
        let facts = self.server.facts(&ProcFs::host()).await;
        let place = self.trial_place(session, facts.target.pid).await?;
        let file = self.begin(session, facts).await?;
        if let Some(traced) = &self.traced {
            if let Some(caution) = traced.caution(&session.document) {
                session.limit(caution);
            }
            record(&mut session.document).traced = Some(traced.reads.clone());
        }
        if file.page_bytes.is_none() {
            session.limit(unknown_pages());
        }
        let shapes = self.shapes(session).await?;
        self.unused_indexes(&mut session.document, &shapes).await;
        session.save()?;
        let disk = self.disk(&session.document)?;
        let advice = record(&mut session.document);
        advice.shapes.clone_from(&shapes);
        advice.disk = Some(disk.model.disk.clone());
        advice.disk_measured = disk.measured;
        session.document.device = disk.device.clone();
        session.save()?;
        self.try_ways(session, place, &shapes, file, &disk.model)
            .await
    }

    /// Watches what reads cost now, and compares it with what an earlier run predicted.
    async fn follow_up(&self, session: &mut Session, earlier: &Earlier) -> Result<()> {
        let facts = self.server.facts(&ProcFs::host()).await;
        let file = self.begin(session, facts).await?;
        if let Some(caution) = earlier.caution(&session.document) {
            session.limit(caution);
        }
        let observed = self.watch(session).await?;
        leave_out(session, observed.left_out, BY_HAND);
        let advice = record(&mut session.document);
        advice.shapes = observed.shapes;
        advice.since = Some(earlier.compare(Now {
            used: advice.collection.used,
            shapes: &advice.shapes,
            indexes: &advice.collection.indexes,
            compressor: file.compressor.as_deref(),
            table: file.table.as_deref(),
        }));
        Ok(())
    }

    /// Records which server and collection are asked. Returns what is known of the collection's file.
    async fn begin(&self, session: &mut Session, facts: ServerFacts) -> Result<FileFacts> {
        session.document.advice = Some(AdviceRecord {
            namespace: self.namespace.to_string(),
            ..AdviceRecord::default()
        });
        session.save()?;
        for missing in facts.missing {
            session.limit(missing);
        }
        if facts.target.pid.is_some() {
            session.document.host = Some(HostFacts::read(Path::new("/")));
        }
        session.document.target = Some(facts.target);
        if self.definition.is_on_shards() {
            session.limit(indexes_alone());
        }
        record(&mut session.document).write_uri = self.write_uri().await?;
        let file = collection::file_facts(self.server, self.namespace, self.definition.options());
        let file = file.await?;
        record(&mut session.document).collection = self.collection(&file).await?;
        Ok(file)
    }

    /// Returns where writes are to be sent; `None` if the server itself takes them.
    async fn write_uri(&self) -> Result<Option<String>> {
        if self.definition.is_on_shards() {
            return Ok(Some(SOME_ROUTER.into()));
        }
        let hello = self.server.hello().await?;
        let primary = hello.primary.filter(|_| !hello.is_writable);
        Ok(primary.map(|address| self.server.uri_of(&address)))
    }

    async fn collection(&self, file: &FileFacts) -> Result<AdvisedCollection> {
        let (database, collection) = (self.namespace.database(), self.namespace.collection());
        let facts = storage_facts(self.server, database, &[collection]).await?;
        let keys = self.indexes.iter();
        let keys = keys.filter_map(|index| index.get_document("key").ok());
        Ok(AdvisedCollection {
            documents: facts.documents,
            data_bytes: facts.data_bytes,
            storage_bytes: facts.storage_bytes,
            index_bytes: facts.index_bytes,
            indexes: keys.map(ToString::to_string).collect(),
            missed_share: file.missed_share_since_start(),
            page_bytes: file.page_bytes,
            table: file.table.clone(),
            ..AdvisedCollection::default()
        })
    }

    /// Returns the queries that were told, or else those that are seen.
    async fn shapes(&self, session: &mut Session) -> Result<Vec<QueryShape>> {
        if !self.args.query.is_empty() {
            let (shapes, left_out) = told(&self.args.query);
            leave_out(session, left_out, BY_HAND);
            return Ok(shapes);
        }
        let mut observed = self.watch(session).await?;
        if observed.shapes.is_empty() {
            return Err(Elsewhere(observed.why_none(self.namespace)).into());
        }
        observed.keep_most_frequent(SHAPES_MAX);
        leave_out(session, observed.left_out, BY_HAND);
        Ok(observed.shapes)
    }

    /// Watches the queries, and records how often the collection is used.
    async fn watch(&self, session: &mut Session) -> Result<Observed> {
        let _step = self.progress.step("watching the queries");
        let observer = Observer::new(self.server, self.namespace);
        let observed = observer.watch(self.args.duration).await?;
        for limitation in &observed.limitations {
            session.limit(limitation.clone());
        }
        let collection = &mut record(&mut session.document).collection;
        collection.watched_s = observed.watched_s;
        collection.missed_share = observed.missed_share;
        collection.used = observed.used;
        collection.reads_per_s = observed.used.as_ref().map(CollectionUse::reads_per_s);
        collection.writes_per_s = observed.used.as_ref().map(CollectionUse::writes_per_s);
        Ok(observed)
    }

    async fn unused_indexes(&self, document: &mut RunDocument, shapes: &[QueryShape]) {
        let unused = collection::unused_indexes(self.server, self.namespace, &self.indexes, shapes);
        match unused.await {
            Ok(unused) => {
                let advice = record(document);
                advice.unused_indexes = unused.keys;
                advice.unused_for_s = unused.for_s;
                advice.unused_counted_by = unused.counted_by;
                if let Some(why) = unused.left_out {
                    limit(document, unknown_shard_key(&why));
                }
            }
            Err(error) => limit(
                document,
                Limitation {
                    what: "whether there are unused indexes is not known".into(),
                    why: error.to_string(),
                    remedy:
                        "the privilege indexStats on the collection, and every member of its set up"
                            .into(),
                },
            ),
        }
    }

    /// Returns the disk under the target's data, where they are on this host.
    fn disk(&self, document: &RunDocument) -> Result<ScanDisk> {
        let target = document.target.as_ref();
        let path = target.and_then(|target| target.dbpath.as_deref());
        ScanDisk::choose(&self.args.disk, Path::new(path.unwrap_or_default()))
    }
}

/// Returns what the collection is, if it can be advised on: what cannot be copied as it is cannot be tried either.
async fn definition_of(server: &Server, namespace: &Namespace) -> Result<Definition> {
    let no_advice = |why: &str| {
        let namespace = visible(&namespace.to_string());
        format!("there is no advice on {namespace}: {why}")
    };
    let refused = |why: &str| Elsewhere(no_advice(why));
    let definition = match Definition::read(server, namespace).await {
        Err(ReorderError::Refused { why, .. }) => return Err(refused(&why).into()),
        Err(ReorderError::NoCollection { .. }) => {
            return Err(Usage(no_advice("there is no collection of that name")).into());
        }
        definition => definition?,
    };
    let is_shard = definition.is_on_shards() && !server.hello().await?.is_router();
    match definition.refusal(&By::Natural, true).filter(|_| !is_shard) {
        None => {}
        Some(_) if definition.is_on_shards() => {
            return Err(refused(&sharded(refuse_router(server).await)).into());
        }
        Some(why) => {
            return Err(refused(&format!("a copy of it could not take its place: {why}")).into());
        }
    }
    if server
        .count(namespace.database(), namespace.collection())
        .await?
        == 0
    {
        return Err(refused("it holds no documents").into());
    }
    Ok(definition)
}

/// Says whom to ask about a sharded collection, where asking its router was refused.
fn sharded(refusal: Result<(), ServerError>) -> String {
    let asked = match refusal {
        Err(ServerError::Unsuitable { remedy, .. }) => remedy,
        _ => "sh.status() in mongosh lists them".into(),
    };
    format!(
        "it is sharded: ask a server of one of its shards, which has a part of it, with directConnection=true in its \
         connection string; {asked}"
    )
}

/// Returns what is to be said of unused indexes on a shard whose key is not known.
fn unknown_shard_key(why: &str) -> Limitation {
    Limitation {
        what: "unused indexes are not named: any of them may begin with the shard key, which the shard needs"
            .into(),
        why: format!("the shard key of the collection is not known: {why}"),
        remedy: "compare db.collection.getIndexes() with the shard key that sh.status() shows on a mongos; reading it here \
                 takes the privilege find on config.cache.collections"
            .into(),
    }
}

/// Refuses to try queries none of which a trial can ask.
fn refuse_untried(queries: &[ToldQuery]) -> Result<()> {
    let (tried, left_out) = told(queries);
    match left_out.first().filter(|_| tried.is_empty()) {
        None => Ok(()),
        Some(first) => Err(Usage(format!(
            "advise cannot try {}: {}; it tries fields that are compared with values or lists, ranges and orders. What such \
             a query examines, explain(\"executionStats\") of it shows",
            visible(&first.shape),
            first.why
        ))
        .into()),
    }
}

/// Returns the shapes among the queries that were told, and those that no trial can ask, with their share where all rates
/// were told.
fn told(queries: &[ToldQuery]) -> (Vec<QueryShape>, Vec<LeftOutQueries>) {
    let (mut shapes, mut left_out) = (Vec::new(), Vec::new());
    for query in queries {
        match query {
            ToldQuery::Tried(shape) => shapes.push(shape.clone()),
            ToldQuery::LeftOut(one) => left_out.push(one.clone()),
        }
    }
    let all = rate_of_all(&shapes, &left_out);
    for one in &mut left_out {
        one.share = one.per_s.zip(all).map(|(rate, all)| rate / all);
    }
    (shapes, left_out)
}

/// Records queries that the figures leave out, and says so of the first of them.
fn leave_out(session: &mut Session, left_out: Vec<LeftOutQueries>, remedy: &str) {
    for one in left_out.iter().take(LEFT_OUT_MAX) {
        let (which, remedy) = match one.shape.is_empty() {
            true => ("queries of one kind".into(), "tell them with --query"),
            false => (format!("queries {}", visible(&one.shape)), remedy),
        };
        session.limit(Limitation {
            what: format!("{which} were left out"),
            why: one.why.clone(),
            remedy: remedy.into(),
        });
    }
    record(&mut session.document).left_out.extend(left_out);
}

/// Returns what is to be said of a collection on shards.
fn indexes_alone() -> Limitation {
    Limitation {
        what: "other ways of storing than by other indexes were not tried".into(),
        why: "the server is a shard, and no copy could take the place of the collection in its cluster".into(),
        remedy: "create the index through a mongos, which has each shard build its own".into(),
    }
}

/// Returns what is to be said where `page_bytes` is not known.
fn unknown_pages() -> Limitation {
    Limitation {
        what: "how full the collection's pages are is not known; they are assumed to be as full as new ones"
            .into(),
        why: "the server has read few of them since it started".into(),
        remedy: "ask again when it has been in use for longer".into(),
    }
}

/// Returns this command's record.
fn record(document: &mut RunDocument) -> &mut AdviceRecord {
    document.advice.get_or_insert_default()
}

#[cfg(test)]
mod tests {
    use seekscope_advice::told_or_left_out;

    use super::*;

    #[test]
    fn the_servers_of_shards_are_named_to_who_asks_a_router() {
        let refusal = ServerError::Unsuitable {
            uri: "mongodb://router/".into(),
            why: "it is a mongos, which keeps no data".into(),
            remedy: "name a member of a shard instead: db1:27018 (s1)".into(),
        };
        let said = sharded(Err(refusal));
        assert!(said.ends_with("db1:27018 (s1)"), "{said}");
        assert!(!said.contains("SHARD-SERVER"), "{said}");
        assert!(sharded(Ok(())).contains("sh.status()"));
    }

    #[test]
    fn what_no_trial_can_ask_is_no_error_beside_what_one_can() {
        let query = |text: &str| told_or_left_out(text).unwrap();
        let or = || query(r#"{"filter": {"$or": [{"a": 1}]}, "per_s": 3}"#);
        let plain = |per_s: &str| query(&format!(r#"{{"filter": {{"a": 1}}{per_s}}}"#));
        let share = |per_s: &str| told(&[or(), plain(per_s)]).1[0].share;
        assert_eq!((share(r#", "per_s": 1"#), share("")), (Some(0.75), None));
        assert!(refuse_untried(&[or(), plain("")]).is_ok() && refuse_untried(&[]).is_ok());
        let refused = refuse_untried(&[or()]).unwrap_err().to_string();
        let begins = r#"advise cannot try {"$or":[{"a":"?"}]}: $or cannot be made up for a trial"#;
        assert!(refused.starts_with(begins), "{refused}");
    }

    #[test]
    fn why_unused_indexes_of_a_shard_are_not_named_is_said() {
        let said = unknown_shard_key("it was refused");
        assert!(said.why.ends_with("it was refused"), "{said:?}");
    }
}
