//! What a server is doing, folded over many looks, and what its log tells of operations that were slow. Only an operation's kind, where it works, the key names of
//! its plan and filter, and its progress are kept: never a value, never a document.

mod logged;

use std::collections::HashMap;
use std::time::Instant;

use mongodb::bson::{Bson, Document, doc};
use seekscope_run::{FilterSeen, OperationSeen};

use super::asking::{Asker, NoAnswer};
use super::filters::filter;
use super::rights;
use crate::replies::{at, number};
use crate::server::APPLICATION;

/// The number of different operations that are distinguished, and the number kept in the end.
const DIFFERENT_MAX: usize = 1_000;
const KEPT_MAX: usize = 100;
/// The most operations read in one look.
const OPERATIONS_MAX: usize = 20_000;
const TEXT_MAX_CHARS: usize = 300;

/// The properties that make two operations alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Alike {
    kind: String,
    namespace: Option<String>,
    plan: Option<String>,
    filter: Option<FilterSeen>,
}

impl Alike {
    fn of(operation: &Document) -> Self {
        let plan = operation.get_str("planSummary").unwrap_or_default();
        Self {
            kind: kind(operation),
            namespace: namespace(operation),
            plan: (!plan.is_empty()).then(|| plan_without_values(plan)),
            filter: filter(operation),
        }
    }
}

/// Not an operation that the server lists: its members' state tells of it.
const INITIAL_SYNC: &str = "initial sync";

/// The running operations that were seen, summed up over all looks.
#[derive(Debug, Default)]
pub(super) struct Looks {
    seen: HashMap<Alike, OperationSeen>,
    /// Samples that were answered, and those of them in which `db.fsyncLock()` was in force.
    count: u32,
    fsync_lock_count: u32,
    is_refused: bool,
    /// `None` where the server's time is not known, so that the lines of its log cannot be told apart.
    begin: Option<logged::Begin>,
    default: DefaultWriteConcern,
    /// When each operation of the last sample that the server does not time was seen first, by the server's number of it.
    untimed_since: HashMap<String, Instant>,
}

/// Who has to acknowledge a write that does not say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum DefaultWriteConcern {
    /// The server that makes it; also where the default is not known.
    #[default]
    Itself,
    /// Other members, too: since MongoDB 5.0 that is so where nothing else was set.
    Others,
}

/// One running operation.
#[derive(Debug, PartialEq)]
struct Running {
    alike: Alike,
    /// The server's number of it; that of a cluster has its shard in front.
    id: Option<String>,
    running_us: u64,
    is_waiting: bool,
    progress: Option<(u64, u64)>,
}

impl Looks {
    /// Notes what `serverStatus` says of the default write concern (MongoDB 4.4 and later).
    pub(super) fn note_default(&mut self, status: &Document) {
        let by = at(status, &["defaultRWConcern", "defaultWriteConcern", "w"]);
        self.default = match by.is_some_and(is_by_others) {
            true => DefaultWriteConcern::Others,
            false => DefaultWriteConcern::Itself,
        };
    }

    /// Asks once what is running. Once refused, it does not ask again.
    pub(super) async fn look(&mut self, asker: &mut Asker) {
        if self.is_refused {
            return;
        }
        // A session whose transaction is open between two statements is not active.
        let looked_for = [
            doc! { "active": true },
            doc! { "transaction": { "$exists": true } },
        ];
        let command = doc! { "currentOp": 1, "$or": looked_for.to_vec() };
        match asker.ask("admin", command).await {
            Ok(reply) => self.add(&reply, Instant::now()),
            Err(error) => {
                self.is_refused =
                    matches!(error, NoAnswer::NotAllowed { .. }) || error.is_unknown();
                let remedy = rights::remedy("currentOp");
                asker.note("which operations the server is running", &error, remedy);
            }
        }
    }

    fn add(&mut self, reply: &Document, now: Instant) {
        self.count = self.count.saturating_add(1);
        // Beside the operations: the thread that holds the lock looks like one that has nothing to do.
        let is_locked = reply.get_bool("fsyncLock").unwrap_or(false);
        self.fsync_lock_count += u32::from(is_locked);
        let running = reply.get_array("inprog").into_iter().flatten();
        let running = running.take(OPERATIONS_MAX).filter_map(Bson::as_document);
        let mut running_now: HashMap<Alike, (u32, bool)> = HashMap::new();
        let before = std::mem::take(&mut self.untimed_since);
        let default = self.default;
        for mut operation in running.filter_map(|operation| Running::read(operation, default)) {
            operation.running_us = operation
                .running_us
                .max(self.seen_for_us(&operation, &before, now));
            if self.seen.len() >= DIFFERENT_MAX && !self.seen.contains_key(&operation.alike) {
                continue;
            }
            let (at_once, is_waiting) = running_now.entry(operation.alike.clone()).or_default();
            *at_once += 1;
            *is_waiting |= operation.is_waiting;
            let alike = operation.alike.clone();
            let seen = self.seen.entry(operation.alike).or_default();
            seen.kind = alike.kind;
            (seen.namespace, seen.plan) = (alike.namespace, alike.plan);
            seen.filter = alike.filter;
            seen.running_us = seen.running_us.max(operation.running_us);
            seen.progress = operation.progress.or(seen.progress);
        }
        let listed = self.seen.iter_mut();
        for (alike, seen) in listed.filter(|(alike, _)| alike.kind != INITIAL_SYNC) {
            let Some((at_once, is_waiting)) = running_now.get(alike) else {
                seen.looks_since = seen.looks_since.saturating_add(1);
                continue;
            };
            seen.looks += 1;
            seen.looks_since = 0;
            seen.at_once = seen.at_once.max(*at_once);
            seen.sightings = seen.sightings.saturating_add(*at_once);
            seen.waiting_looks += u32::from(*is_waiting);
        }
    }

    /// Returns for how long an operation was seen that the server does not time, µs; 0 for all others. mongod 4.4 shows
    /// an insert with the time that it took to make it, however long it waits afterwards, and no time of the thread that
    /// deletes what has expired.
    fn seen_for_us(
        &mut self,
        operation: &Running,
        before: &HashMap<String, Instant>,
        now: Instant,
    ) -> u64 {
        let kind = operation.alike.kind.as_str();
        let is_untimed = [
            OperationSeen::UNACKNOWLEDGED_WRITE,
            OperationSeen::TTL_MONITOR,
        ]
        .contains(&kind);
        let Some(id) = operation.id.as_ref().filter(|_| is_untimed) else {
            return 0;
        };
        let since = before.get(id).copied().unwrap_or(now);
        self.untimed_since.insert(id.clone(), since);
        u64::try_from((now - since).as_micros()).unwrap_or(u64::MAX)
    }

    /// Records an initial sync, which the server does not list as an operation: bytes copied and in total.
    pub(super) fn initial_sync(&mut self, progress: Option<(u64, u64)>) {
        if progress.is_some() {
            let alike = Alike {
                kind: INITIAL_SYNC.into(),
                ..Alike::default()
            };
            let seen = self.seen.entry(alike.clone()).or_default();
            seen.kind = alike.kind;
            seen.looks += 1;
            seen.at_once = 1;
            seen.progress = progress;
        }
    }

    /// Returns what was seen, the longest first, and begins anew.
    pub(super) fn take(&mut self) -> Vec<OperationSeen> {
        let seen = self.seen();
        self.seen.clear();
        seen
    }

    /// Returns the number of samples.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of samples in which `db.fsyncLock()` kept all writes out; `None` without any.
    pub(super) fn fsync_lock_count(&self) -> Option<u32> {
        (self.fsync_lock_count > 0).then_some(self.fsync_lock_count)
    }

    /// Returns what was seen, the longest first.
    pub(super) fn seen(&self) -> Vec<OperationSeen> {
        let mut seen: Vec<OperationSeen> = self.seen.values().cloned().collect();
        seen.sort_by(|a, b| {
            let by_time = longest_us(b).cmp(&longest_us(a));
            by_time.then_with(|| {
                let key = |o: &OperationSeen| {
                    (
                        o.kind.clone(),
                        o.namespace.clone(),
                        o.plan.clone(),
                        o.filter.clone(),
                    )
                };
                key(a).cmp(&key(b))
            })
        });
        seen.truncate(KEPT_MAX);
        seen
    }
}

/// Returns the longest time that one of them is known to have taken.
fn longest_us(seen: &OperationSeen) -> u64 {
    let logged_us = seen.logged.map_or(0, |logged| logged.longest_us);
    seen.running_us.max(logged_us)
}

/// Returns whether it is the server's thread that deletes documents that have expired. It is listed as active while it
/// does, and mongod 4.4 says neither of which collection nor for how long.
fn deletes_expired(operation: &Document) -> bool {
    let name = operation.get_str("desc");
    name.is_ok_and(|name| name == OperationSeen::TTL_MONITOR)
}

impl Running {
    /// Reads an operation; `None` for what is not work: our own questions, waiting for news, idle threads of
    /// the server.
    fn read(operation: &Document, default: DefaultWriteConcern) -> Option<Self> {
        if let Some(open) = Self::idle_transaction(operation) {
            return Some(open);
        }
        let text = |name: &str| operation.get_str(name).unwrap_or_default();
        let message = text("msg");
        let is_idle = operation
            .get_bool("active")
            .is_ok_and(|is_active| !is_active)
            || (text("op") == "none" && message.is_empty() && !deletes_expired(operation));
        let is_ours = text("appName") == APPLICATION
            || at(operation, &["clientMetadata", "application", "name"])
                .is_some_and(|name| name.as_str() == Some(APPLICATION));
        let waits_for_news = at(operation, &["cursor", "awaitData"]) == Some(&Bson::Boolean(true))
            || at(operation, &["command", "maxAwaitTimeMS"]).is_some();
        if is_idle || is_ours || waits_for_news {
            return None;
        }
        let micros = operation.get("microsecs_running").and_then(number);
        let seconds = operation.get("secs_running").and_then(number);
        let progress = |name| at(operation, &["progress", name]).and_then(number);
        Some(Self {
            alike: match is_unacknowledged(operation, default) {
                // How it found what it has written does not matter to what it waits for.
                true => Alike {
                    kind: OperationSeen::UNACKNOWLEDGED_WRITE.into(),
                    namespace: namespace(operation).or_else(|| written_to(operation)),
                    ..Alike::default()
                },
                false => Alike::of(operation),
            },
            id: operation.get("opid").map(ToString::to_string),
            running_us: micros
                .or(seconds.map(|s| s.saturating_mul(1_000_000)))
                .unwrap_or(0),
            is_waiting: is_waiting(operation),
            progress: progress("done").zip(progress("total")),
        })
    }
}

impl Running {
    /// Reads a session whose transaction is open while its client does nothing.
    fn idle_transaction(session: &Document) -> Option<Self> {
        let is_active = session.get_bool("active").unwrap_or(true);
        let open_us = at(session, &["transaction", "timeOpenMicros"]).and_then(number)?;
        (!is_active).then(|| Self {
            alike: Alike {
                kind: OperationSeen::IDLE_TRANSACTION.into(),
                ..Alike::default()
            },
            id: None,
            running_us: open_us,
            is_waiting: false,
            progress: None,
        })
    }
}

/// Returns whether it waits for a lock, for flow control, or in a queue for a ticket (MongoDB 8.0).
fn is_waiting(operation: &Document) -> bool {
    let flag = |name: &str| operation.get_bool(name).unwrap_or(false);
    flag("waitingForLock")
        || flag("waitingForFlowControl")
        || operation.get_document("currentQueue").is_ok()
}

/// Returns whether it is a write that holds no lock any more, and has to be acknowledged by other members. One that has
/// yet to begin has acquired none.
fn is_unacknowledged(operation: &Document, default: DefaultWriteConcern) -> bool {
    let by_others = match at(operation, &["command", "writeConcern", "w"]) {
        Some(by) => is_by_others(by),
        None => default == DefaultWriteConcern::Others && written_to(operation).is_some(),
    };
    let has_written = ["w", "W"].iter().any(|mode| {
        let acquired = ["lockStats", "Global", "acquireCount", mode];
        at(operation, &acquired).is_some()
    });
    let holds_none = operation
        .get_document("locks")
        .is_ok_and(Document::is_empty);
    by_others && has_written && holds_none && !is_waiting(operation)
}

/// Returns whether a write with this `w` waits for other members.
fn is_by_others(by: &Bson) -> bool {
    by.as_str().is_some() || number(by).is_some_and(|members| members > 1)
}

/// Returns the collection that a command writes to.
fn written_to(operation: &Document) -> Option<String> {
    let command = operation.get_document("command").ok()?;
    let database = command.get_str("$db").ok()?;
    const WRITES: [&str; 4] = ["insert", "update", "delete", "findAndModify"];
    let collection = WRITES.iter().find_map(|name| command.get_str(name).ok())?;
    Some(shortened(&format!("{database}.{collection}")))
}

/// Returns the collection that an operation works on, as the server names it.
fn namespace(operation: &Document) -> Option<String> {
    let name = operation.get_str("ns").unwrap_or_default();
    (!name.is_empty() && !name.contains("$cmd")).then(|| shortened(name))
}

fn kind(operation: &Document) -> String {
    let text = |name: &str| operation.get_str(name).unwrap_or_default();
    let begins = |name: &str, beginning: &str| {
        text(name)
            .to_ascii_lowercase()
            .starts_with(&beginning.to_ascii_lowercase())
    };
    let command = command_name(operation);
    if begins("msg", "Index Build") || begins("desc", "IndexBuildsCoordinator") {
        return "index build".into();
    }
    if deletes_expired(operation) {
        return OperationSeen::TTL_MONITOR.into();
    }
    match (text("op"), command.as_deref()) {
        ("command" | "query" | "none" | "", Some("createIndexes")) => "index build".into(),
        ("command", Some("compact")) => "compact".into(),
        ("command", Some(name)) => format!("command {name}"),
        ("none", _) => shortened(text("desc")),
        (op, _) => shortened(op),
    }
}

/// Returns the command's first word, if it looks like one. A long command is given as truncated text.
fn command_name(operation: &Document) -> Option<String> {
    let command = ["command", "query"]
        .iter()
        .find_map(|name| operation.get_document(name).ok())?;
    let name = match command.get_str("$truncated") {
        Ok(text) => text.trim_start_matches(['{', ' ']).split(':').next()?,
        Err(_) => command.keys().next()?,
    };
    let is_word = name.len() <= 60 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_word && !name.is_empty()).then(|| name.to_string())
}

/// Replaces everything but names: a summary of a plan such as `IXSCAN { a: 1, b: "text" }` should have key
/// names and directions, and anything else after a name is replaced.
fn plan_without_values(plan: &str) -> String {
    let mut kept = String::new();
    let mut is_value = false;
    let mut value = String::new();
    for c in shortened(plan).chars() {
        match c {
            ':' if !is_value => {
                is_value = true;
                kept.push(c);
            }
            ',' | '}' if is_value => {
                kept.push_str(&direction(&value));
                value.clear();
                is_value = false;
                kept.push(c);
            }
            _ if is_value => value.push(c),
            _ => kept.push(c),
        }
    }
    if is_value {
        kept.push_str(&direction(&value));
    }
    kept
}

/// Returns a direction or kind of an index key as it is; anything else as a question mark.
fn direction(value: &str) -> String {
    const KINDS: [&str; 5] = ["text", "hashed", "2d", "2dsphere", "columnstore"];
    let bare = value.trim().trim_matches('"');
    let is_direction = bare.parse::<f64>().is_ok_and(|n| n.abs() <= 1.0) || KINDS.contains(&bare);
    if is_direction {
        value.into()
    } else {
        let space = if value.ends_with(' ') { " " } else { "" };
        format!(" ?{space}")
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests;
