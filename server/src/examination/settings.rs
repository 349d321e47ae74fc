//! Reads the settings of a server that bear on the disk from its configuration and parameters.
//!
//! Only listed settings are kept: the rest can hold secrets, paths of keys, names of hosts.

use mongodb::bson::{Bson, Document, doc};
use seekscope_run::NamedValue;

use super::asking::Asker;
use crate::replies::at;

const VALUES_MAX: usize = 300;
const TEXT_MAX_CHARS: usize = 1_000;
const DEPTH_MAX: usize = 8;
const WARNINGS_MAX: usize = 50;

/// Prefixes of the options that are kept.
const OPTIONS: [&str; 12] = [
    "storage.",
    "replication.",
    "sharding.clusterRole",
    "operationProfiling.",
    "processManagement.",
    "net.port",
    "net.bindIp",
    "net.maxIncomingConnections",
    "net.compression.",
    "security.authorization",
    "security.enableEncryption",
    "systemLog.path",
];
/// Words in the names of options that hold keys, which are never kept.
const NEVER: [&str; 2] = ["key", "password"];
/// The prefix of `setParameter` options in the flattened configuration.
const SET_PARAMETER: &str = "setParameter.";

/// Prefixes of the parameters that bear on the disk.
const PARAMETERS: [&str; 32] = [
    "batchUserMultiDeletes",
    "cachePressure",
    "collectionClonerBatchSize",
    "diagnosticDataCollection",
    "enableFlowControl",
    "eviction",
    "executionControl",
    "flowControl",
    "initialSync",
    "internalQueryExecYield",
    "internalQueryMaxBlockingSort",
    "internalQueryExecMaxBlockingSort",
    "journalCommitInterval",
    "lowPriorityAdmission",
    "maxIndexBuild",
    "maxNumActiveUserIndexBuilds",
    "maxTargetSnapshotHistoryWindow",
    "minSnapshotHistoryWindow",
    "oplogBatchDelay",
    "oplogFetcher",
    "replBatchLimit",
    "replWriter",
    "storageEngineConcurren",
    "storageGlobalParams",
    "syncdelay",
    "tcmalloc",
    "throughputProbing",
    "ttlMonitor",
    "ttlIndexDelete",
    "wiredTiger",
    "writePeriodicNoops",
    "notablescan",
];

/// The contents of the reply to `getParameter`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parameters {
    pub(super) values: Vec<NamedValue>,
    pub(super) compatibility_version: Option<String>,
}

/// Returns the options from the reply to `getCmdLineOpts`, flattened with dots.
pub(super) fn options(reply: &Document) -> Vec<NamedValue> {
    let mut values = Vec::new();
    if let Ok(parsed) = reply.get_document("parsed") {
        flatten(parsed, "", 0, &mut values);
    }
    values
}

fn flatten(document: &Document, prefix: &str, depth: usize, values: &mut Vec<NamedValue>) {
    for (name, value) in document {
        let path = format!("{prefix}{name}");
        match value {
            Bson::Document(inner) if depth < DEPTH_MAX => {
                flatten(inner, &format!("{path}."), depth + 1, values);
            }
            _ if is_wanted_option(&path) => push(values, &path, value),
            _ => {}
        }
    }
}

fn is_wanted_option(path: &str) -> bool {
    if let Some(parameter) = path.strip_prefix(SET_PARAMETER) {
        return is_wanted_parameter(parameter);
    }
    let lower = path.to_ascii_lowercase();
    OPTIONS.iter().any(|beginning| path.starts_with(beginning))
        && NEVER.iter().all(|word| !lower.contains(word))
}

fn is_wanted_parameter(name: &str) -> bool {
    PARAMETERS
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

fn push(values: &mut Vec<NamedValue>, name: &str, value: &Bson) {
    let text = match value {
        Bson::String(text) => text.clone(),
        Bson::Double(number) => number.to_string(),
        Bson::Int32(_) | Bson::Int64(_) | Bson::Boolean(_) => value.to_string(),
        _ => return,
    };
    if values.len() < VALUES_MAX {
        values.push(NamedValue {
            name: name.chars().take(TEXT_MAX_CHARS).collect(),
            value: text.chars().take(TEXT_MAX_CHARS).collect(),
        });
    }
}

/// Asks for all parameters at once, which is the cheapest way with a server that lacks some.
pub(super) async fn parameters(asker: &mut Asker) -> Parameters {
    let command = doc! { "getParameter": "*" };
    let reply = asker.ask_or_note("admin", command, "its parameters").await;
    let mut parameters = read_parameters(&reply);
    // Servers that keep few parameters may leave this one out of "all".
    if parameters.compatibility_version.is_none() && !reply.is_empty() {
        let command = doc! { "getParameter": 1, "featureCompatibilityVersion": 1 };
        if let Ok(reply) = asker.ask("admin", command).await {
            parameters.compatibility_version = compatibility_version(&reply);
        }
    }
    parameters
}

fn read_parameters(reply: &Document) -> Parameters {
    let mut parameters = Parameters {
        compatibility_version: compatibility_version(reply),
        ..Parameters::default()
    };
    for (name, value) in reply {
        if is_wanted_parameter(name) {
            push(&mut parameters.values, name, value);
        }
    }
    parameters
}

/// Reads the version, which is a text before MongoDB 3.6 and a document since.
fn compatibility_version(reply: &Document) -> Option<String> {
    const NAME: &str = "featureCompatibilityVersion";
    let version = reply
        .get_str(NAME)
        .ok()
        .or_else(|| at(reply, &[NAME, "version"])?.as_str())?;
    Some(version.chars().take(20).collect())
}

/// Returns the server's start-up warnings, without date and component.
pub(super) async fn warnings(asker: &mut Asker) -> Vec<String> {
    let command = doc! { "getLog": "startupWarnings" };
    let reply = asker
        .ask_or_note("admin", command, "its start-up warnings")
        .await;
    let lines = reply.get_array("log").into_iter().flatten();
    let lines = lines.filter_map(Bson::as_str).take(WARNINGS_MAX);
    let texts = lines.map(warning).filter(|text| !text.is_empty());
    texts.collect()
}

/// Returns the text of a warning. Since MongoDB 4.4 a log line is a JSON document; before, it was text whose
/// warning follows `[context]`.
fn warning(line: &str) -> String {
    let text = match serde_json::from_str::<serde_json::Value>(line) {
        Ok(entry) => entry["msg"].as_str().unwrap_or_default().to_string(),
        Err(_) => line
            .split_once("] ")
            .map_or(line, |(_, text)| text)
            .to_string(),
    };
    let text = text
        .trim()
        .trim_start_matches("** WARNING:")
        .trim_start_matches("**");
    text.trim().chars().take(TEXT_MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: &[NamedValue]) -> Vec<(&str, &str)> {
        let pairs = values.iter();
        pairs.map(|v| (v.name.as_str(), v.value.as_str())).collect()
    }

    #[test]
    fn options_of_mongod_without_secrets() {
        let reply = doc! { "argv": ["mongod", "--keyFile", "/k"], "parsed": {
            "net": { "bindIp": "127.0.0.1", "port": 27200, "tls": { "certificateKeyFile": "/c" } },
            "security": { "keyFile": "/k", "authorization": "enabled" },
            "storage": {
                "dbPath": "/data/db",
                "wiredTiger": { "engineConfig": { "cacheSizeGB": 0.25 } },
            },
            "setParameter": { "wiredTigerEngineRuntimeConfig": "eviction=(threads_max=8)", "ldapPassword": "x" },
        }, "ok": 1.0 };
        let expected = [
            ("net.bindIp", "127.0.0.1"),
            ("net.port", "27200"),
            ("security.authorization", "enabled"),
            ("storage.dbPath", "/data/db"),
            ("storage.wiredTiger.engineConfig.cacheSizeGB", "0.25"),
            (
                "setParameter.wiredTigerEngineRuntimeConfig",
                "eviction=(threads_max=8)",
            ),
        ];
        assert_eq!(pairs(&options(&reply)), expected);
    }

    #[test]
    fn parameters_of_two_releases() {
        let of_4_2 = doc! {
            "authenticationMechanisms": ["SCRAM-SHA-256"], "saslHostName": "db1",
            "diagnosticDataCollectionDirectoryPath": "/data/db/diagnostic.data",
            "featureCompatibilityVersion": { "version": "4.2" }, "syncdelay": 60.0,
            "wiredTigerConcurrentReadTransactions": 128, "ok": 1.0,
        };
        let parameters = read_parameters(&of_4_2);
        assert_eq!(parameters.compatibility_version.as_deref(), Some("4.2"));
        let expected = [
            (
                "diagnosticDataCollectionDirectoryPath",
                "/data/db/diagnostic.data",
            ),
            ("syncdelay", "60"),
            ("wiredTigerConcurrentReadTransactions", "128"),
        ];
        assert_eq!(pairs(&parameters.values), expected);
        let of_3_4 = doc! { "featureCompatibilityVersion": "3.4" };
        let version = compatibility_version(&of_3_4);
        assert_eq!(version.as_deref(), Some("3.4"));
        assert_eq!(read_parameters(&doc! {}), Parameters::default());
    }

    #[test]
    fn warnings_of_two_formats() {
        let old = "2026-11-21T21:28:47.594+0000 I CONTROL  [initandlisten] ** WARNING: Access control \
                   is not enabled for the database.";
        assert_eq!(
            warning(old),
            "Access control is not enabled for the database."
        );
        let new = r#"{"t":{"$date":"x"},"s":"W","c":"CONTROL","msg":"vm.max_map_count is too low","attr":{}}"#;
        assert_eq!(warning(new), "vm.max_map_count is too low");
        assert_eq!(warning("[initandlisten] \n"), "");
    }

    #[test]
    fn hostile_replies_are_survived() {
        let mut deep = doc! { "x": 1 };
        for _ in 0..100 {
            deep = doc! { "d": deep };
        }
        let many: Document = (0..1_000)
            .map(|n| (format!("n{n}"), Bson::Int32(n)))
            .collect();
        let reply = doc! { "parsed": { "storage": { "deep": deep, "many": many } } };
        assert_eq!(options(&reply).len(), VALUES_MAX);
        assert_eq!(options(&doc! { "parsed": 5 }), []);
    }
}
