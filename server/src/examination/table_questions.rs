//! Finds which files a collection and its indexes are in, for a server that does not provide its catalogue at
//! once (`$listCatalog`, from 6.0 on): `collStats` names them, one collection at a time.

use std::collections::HashSet;
use std::time::Duration;

use mongodb::bson::doc;

use super::asking::{Asker, NoAnswer};
use super::collections::{Top, top};
use super::listing::{Scope, list};
use crate::data_files::Unnamed;
use crate::namespace::Namespace;
use crate::replies::{self, TableUse};
use crate::server::Server;

/// The time limit for all questions together.
const TIME: Duration = Duration::from_secs(3);
/// Each costs the server little if the files are open, and some reads if they are not.
const COLLECTIONS_ASKED_MAX: usize = 200;

/// Questions under way.
#[derive(Debug)]
pub(crate) struct TableQuestions {
    asker: Asker,
    asked: usize,
    was_late: bool,
    unnamed: Unnamed,
}

impl TableQuestions {
    pub(crate) fn begin(server: &Server) -> Self {
        Self {
            asker: Asker::new(server, None, TIME),
            asked: 0,
            was_late: false,
            unnamed: Unnamed::default(),
        }
    }

    /// Returns every collection that has files and is not `known`; if there are more than are asked about, the most
    /// used since the server started first.
    pub(crate) async fn unknown_collections(&mut self, known: &HashSet<String>) -> Vec<Namespace> {
        let mut unknown = list(&mut self.asker, Scope::All, false).await;
        if let Some(refused) = self.asker.missing.first() {
            self.unnamed.why.get_or_insert(refused.why.clone());
            self.unnamed.is_refused |= !self.asker.untold.is_empty();
        }
        unknown.retain(|namespace| !known.contains(&namespace.to_string()));
        if unknown.len() <= COLLECTIONS_ASKED_MAX {
            return unknown;
        }
        // The answer is about all collections of the server, some kilobytes for each. Some servers do not say how busy
        // collections are; only the order depends on that.
        busiest_first(unknown, &top(&mut self.asker).await)
    }

    /// Returns whether another question is within the limits of number and time.
    pub(crate) fn may_go_on(&self) -> bool {
        self.asked < COLLECTIONS_ASKED_MAX && !self.was_late && self.asker.has_time()
    }

    /// Returns the tables of one collection; `None` if the server does not name them.
    pub(crate) async fn tables(&mut self, namespace: &Namespace) -> Option<Vec<TableUse>> {
        self.asked += 1;
        let command = doc! { "collStats": namespace.collection() };
        match self.asker.ask(namespace.database(), command).await {
            Ok(stats) => {
                let tables = replies::collection_stats_tables(&stats, &namespace.to_string());
                (!tables.is_empty()).then_some(tables)
            }
            Err(error) => {
                self.was_late |= error.is_late();
                self.unnamed.is_refused |= matches!(error, NoAnswer::NotAllowed { .. });
                self.unnamed.why.get_or_insert(error.to_string());
                self.unnamed.collections += 1;
                None
            }
        }
    }

    /// Returns whether the server still has a table of a collection; `None` if it does not say.
    pub(crate) async fn has_table(&mut self, namespace: &Namespace, ident: &str) -> Option<bool> {
        let command = doc! { "collStats": namespace.collection() };
        let stats = self.asker.ask(namespace.database(), command).await.ok()?;
        let tables = replies::collection_stats_tables(&stats, &namespace.to_string());
        let has_it = tables.iter().any(|table| table.ident == ident);
        (has_it || replies::names_all_tables(&stats)).then_some(has_it)
    }

    /// Records that this many collections were not asked about.
    pub(crate) fn left_out(&mut self, count: usize) {
        self.unnamed.collections += count;
        self.unnamed.why.get_or_insert_with(|| {
            format!(
                "the server has very many collections, and is asked about at most \
                 {COLLECTIONS_ASKED_MAX} of them at a time, for at most {} s",
                TIME.as_secs()
            )
        });
    }

    pub(crate) fn end(self) -> Unnamed {
        self.unnamed
    }
}

/// Sorts by use, the busiest first; equally busy ones keep their order.
fn busiest_first(mut all: Vec<Namespace>, top: &Top) -> Vec<Namespace> {
    let busy_us = |name: &Namespace| top.get(&name.to_string()).map_or(0, |busy| busy.total_us);
    all.sort_by_cached_key(|name| std::cmp::Reverse(busy_us(name)));
    all
}

#[cfg(test)]
mod tests {
    use super::super::collections::Busy;
    use super::*;

    #[test]
    fn what_is_used_most_is_asked_about_first() {
        let all = ["a.x", "a.y", "local.oplog.rs"].map(|name| name.parse::<Namespace>().unwrap());
        let busy = |total_us| Busy {
            total_us,
            ..Busy::default()
        };
        let top = Top::from([("local.oplog.rs".into(), busy(9)), ("a.y".into(), busy(7))]);
        let sorted = busiest_first(all.to_vec(), &top);
        let names: Vec<String> = sorted.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["local.oplog.rs", "a.y", "a.x"]);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_leaves_all_unnamed_and_says_why() {
        let uri = "mongodb://127.0.0.1:1/?directConnection=true";
        let server = Server::unasked(uri).await.unwrap();
        let mut questions = TableQuestions::begin(&server);
        assert!(
            questions
                .unknown_collections(&HashSet::new())
                .await
                .is_empty()
        );
        let namespace = "a.x".parse().unwrap();
        assert!(questions.tables(&namespace).await.is_none());
        questions.left_out(2);
        let unnamed = questions.end();
        assert_eq!(unnamed.collections, 3);
        assert!(unnamed.why.is_some() && !unnamed.is_refused, "{unnamed:?}");
    }
}
