//! The least that a login, and the program itself, must be allowed: a single list from which come both the role
//! to create and the remedy wherever something was refused.

use std::fmt::Write as _;

/// What a right applies to, in the server's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Cluster,
    /// All collections of all databases except the system's own.
    AnyCollection,
    /// Buckets of time series, which are system collections.
    TimeSeriesBuckets,
    /// Collections of functions, which the catalogue lists like all others.
    StoredFunctions,
    Oplog,
    /// What a sharded cluster records of itself.
    ClusterConfig,
}

/// A right of the server and what an examination lacks without it.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    pub resource: Resource,
    /// The server's name for it.
    pub action: &'static str,
    /// The part of the report that needs it.
    pub section: &'static str,
    /// The first server release that knows the resource or action, if not all do.
    pub since: Option<&'static str>,
}

/// A capability of Linux and what needs it.
#[derive(Debug, Clone, Copy)]
pub struct Capability {
    pub name: &'static str,
    pub section: &'static str,
}

const fn right(resource: Resource, action: &'static str, section: &'static str) -> Right {
    Right {
        resource,
        action,
        section,
        since: None,
    }
}

/// Every right that is used.
pub const RIGHTS: &[Right] = &[
    right(
        Resource::Cluster,
        "serverStatus",
        "counters, cache, checkpoints, tickets; the counters of other members",
    ),
    right(
        Resource::Cluster,
        "replSetGetStatus",
        "members, their replication lag, the progress of an initial sync",
    ),
    right(Resource::Cluster, "listShards", "shards, behind a mongos"),
    right(
        Resource::Cluster,
        "getShardMap",
        "shards, where they cannot be listed",
    ),
    right(
        Resource::Cluster,
        "listDatabases",
        "collections: which exist",
    ),
    right(
        Resource::Cluster,
        "top",
        "collections: which are busy, and how long operations on them take",
    ),
    right(
        Resource::Cluster,
        "inprog",
        "running operations, collection scans, index builds",
    ),
    right(
        Resource::Cluster,
        "getCmdLineOpts",
        "settings of the configuration file, the data directory",
    ),
    right(
        Resource::Cluster,
        "getParameter",
        "server parameters, the feature compatibility version",
    ),
    right(
        Resource::Cluster,
        "getLog",
        "start-up warnings, operations that the log reports as slow",
    ),
    right(
        Resource::AnyCollection,
        "listCollections",
        "collections: which exist",
    ),
    right(
        Resource::AnyCollection,
        "collStats",
        "collections: sizes, free space, what moves in and out of the cache",
    ),
    right(
        Resource::AnyCollection,
        "indexStats",
        "indexes: their keys and how often they are used",
    ),
    right(
        Resource::AnyCollection,
        "listIndexes",
        "indexes: their keys, where their use is not reported; names of files",
    ),
    Right {
        since: Some("5.0"),
        ..right(
            Resource::TimeSeriesBuckets,
            "collStats",
            "time series: sizes, free space, what moves in and out of the cache",
        )
    },
    Right {
        since: Some("5.0"),
        ..right(
            Resource::TimeSeriesBuckets,
            "indexStats",
            "indexes of time series: their keys and how often they are used",
        )
    },
    Right {
        since: Some("5.0"),
        ..right(
            Resource::TimeSeriesBuckets,
            "listIndexes",
            "names of the files of time series",
        )
    },
    Right {
        since: Some("5.0"),
        ..right(
            Resource::TimeSeriesBuckets,
            "listCollections",
            "names of all files at once, from 6.0 on",
        )
    },
    Right {
        since: Some("6.0"),
        ..right(
            Resource::StoredFunctions,
            "listCollections",
            "names of all files at once ($listCatalog requires it)",
        )
    },
    Right {
        since: Some("6.0"),
        ..right(
            Resource::StoredFunctions,
            "listIndexes",
            "names of all files at once ($listCatalog requires it)",
        )
    },
    right(Resource::Oplog, "collStats", "the oplog's size"),
    right(Resource::Oplog, "find", "the oplog's window"),
    right(
        Resource::ClusterConfig,
        "find",
        "sharded collections, their chunks, the balancer; behind a mongos",
    ),
];

/// Capabilities of Linux needed for what the server does not report.
pub const CAPABILITIES: &[Capability] = &[
    Capability {
        name: "CAP_BPF",
        section: "tracing of system calls and disk requests (Linux 5.8 and later)",
    },
    Capability {
        name: "CAP_PERFMON",
        section: "tracing of system calls and disk requests (Linux 5.8 and later)",
    },
    Capability {
        name: "CAP_SYS_ADMIN",
        section: "tracing, on kernels before 5.8 only",
    },
    Capability {
        name: "CAP_SYS_PTRACE",
        section: "the server's open files, limits and I/O counters in /proc",
    },
    Capability {
        name: "CAP_DAC_READ_SEARCH",
        section: "layout of the data files, the server's diagnostic files",
    },
];

/// The right that a command needs, where its name differs from the command's.
const NEEDED: &[(&str, &str)] = &[
    ("$listCatalog", "listIndexes"),
    ("currentOp", "inprog"),
    ("aggregate", "collStats"),
    ("find", "find"),
    ("count", "find"),
];

/// The action alone, on the database, is enough to shard a collection by a hash.
const SHARDING: &str = "clusterManager, or a role with the action enableSharding on the database";

/// A write that the validator of its collection is not asked about (`bypassDocumentValidation`).
pub const WRITE_PAST_VALIDATOR: &str = "write with bypassDocumentValidation";

/// Built-in roles that allow commands which an examination does not use.
const ROLES: &[(&str, &str)] = &[
    ("find", "read on the database"),
    ("count", "read on the database"),
    ("insert", "readWrite on the database"),
    ("update", "readWrite on the database"),
    ("delete", "readWrite on the database"),
    (WRITE_PAST_VALIDATOR, "dbAdmin on the database"),
    ("create", "readWrite on the database"),
    ("createIndexes", "readWrite on the database"),
    ("dropIndexes", "readWrite on the database"),
    ("drop", "readWrite on the database"),
    ("dropDatabase", "dbAdmin on the database"),
    ("renameCollection", "readWriteAnyDatabase"),
    ("fsync", "hostManager"),
    ("setParameter", "hostManager"),
    ("shardingState", "clusterMonitor"),
    ("enableSharding", SHARDING),
    ("shardCollection", SHARDING),
    ("split", "clusterManager"),
    ("moveChunk", "clusterManager"),
];

fn of_command(command: &str) -> Option<&'static Right> {
    let needed = NEEDED.iter().find(|(name, _)| *name == command);
    let action = needed.map_or(command, |(_, action)| action);
    RIGHTS.iter().find(|right| right.action == action)
}

/// Returns what to do when a command of an examination was refused.
pub(super) fn remedy(command: &str) -> String {
    match of_command(command) {
        Some(right) => remedy_on(right.resource, right.action),
        None => "make sure that the server answers in time, and try again".into(),
    }
}

/// Returns what to do when an action on a resource was refused.
pub(super) fn remedy_on(resource: Resource, action: &str) -> String {
    format!(
        "grant the action {action} on {} (`seekscope doctor --print-role` prints the whole role)",
        resource.described()
    )
}

/// What to do where a server asks for a login, and none was given.
pub(super) const LOG_IN: &str = "put a user and a password into the connection string";

/// Returns which right to grant for a command that the server does not let the user run, or nobody without a login.
pub(crate) fn grant(command: &str, has_user: bool) -> String {
    if !has_user {
        return LOG_IN.into();
    }
    if let Some((_, role)) = ROLES.iter().find(|(name, _)| *name == command) {
        return format!("grant the user the built-in role {role}");
    }
    match of_command(command) {
        Some(_) => "grant the user the role that `seekscope doctor --print-role` prints".into(),
        None => "grant the user a role that allows this".into(),
    }
}

impl Resource {
    fn described(self) -> &'static str {
        match self {
            Self::Cluster => "the cluster",
            Self::AnyCollection => "all collections",
            Self::TimeSeriesBuckets => "the buckets of time series",
            Self::StoredFunctions => "the collections system.js",
            Self::Oplog => "local.oplog.rs",
            Self::ClusterConfig => "the database config",
        }
    }

    /// Returns the resource in mongosh's form.
    fn document(self) -> &'static str {
        match self {
            Self::Cluster => "{ cluster: true }",
            Self::AnyCollection => r#"{ db: "", collection: "" }"#,
            Self::TimeSeriesBuckets => r#"{ db: "", system_buckets: "" }"#,
            Self::StoredFunctions => r#"{ db: "", collection: "system.js" }"#,
            Self::Oplog => r#"{ db: "local", collection: "oplog.rs" }"#,
            Self::ClusterConfig => r#"{ db: "config", collection: "" }"#,
        }
    }
}

const RESOURCES: [Resource; 6] = [
    Resource::Cluster,
    Resource::AnyCollection,
    Resource::TimeSeriesBuckets,
    Resource::StoredFunctions,
    Resource::Oplog,
    Resource::ClusterConfig,
];

/// Returns the release from which on all servers know a resource; `None` if all do.
fn since(resource: Resource) -> Option<&'static str> {
    let mut rights = RIGHTS.iter().filter(|right| right.resource == resource);
    rights.find_map(|right| right.since)
}

fn major(version: &str) -> u32 {
    let number = version.split('.').next().and_then(|text| text.parse().ok());
    number.unwrap_or(0)
}

/// Returns the privilege in mongosh's form, each right with its purpose.
fn privilege(resource: Resource, indent: &str) -> String {
    let mut text = format!("{indent}{{ resource: {}, actions: [\n", resource.document());
    for right in RIGHTS.iter().filter(|right| right.resource == resource) {
        let action = format!("\"{}\",", right.action);
        let _ = writeln!(text, "{indent}  {action:<20} // {}", right.section);
    }
    let _ = writeln!(text, "{indent}] }},");
    text
}

/// Returns text for mongosh that creates the role, with the purpose of each right, followed by the capabilities
/// of Linux as comments. A server refuses a role with unknown resources, so only those that `version` knows are
/// included; if the version is not known, the text finds it out itself.
pub fn role_script(version: Option<&str>) -> String {
    let mut text = String::from(
        "// The smallest role with which seekscope doctor can do all of its work. Leaving a privilege out turns\n\
         // off the part that is named beside it, and nothing else. Run this in mongosh as a user administrator.\n\
         db.getSiblingDB(\"admin\").createRole({\n  role: \"seekscope\",\n  privileges: [\n",
    );
    let is_known = |resource: &Resource| match (since(*resource), version) {
        (None, _) => true,
        (Some(since), Some(version)) => major(version) >= major(since),
        (Some(_), None) => false,
    };
    let (known, others): (Vec<Resource>, Vec<Resource>) = RESOURCES.into_iter().partition(is_known);
    for resource in known {
        text.push_str(&privilege(resource, "    "));
    }
    text.push_str("  ],\n  roles: [],\n});\n");
    for resource in others.into_iter().filter(|_| version.is_none()) {
        let first = since(resource).unwrap_or_default();
        let _ = write!(
            text,
            "// What only MongoDB {first} and later have:\n\
             if (parseInt(db.version()) >= {}) {{\n\
             \x20 db.getSiblingDB(\"admin\").grantPrivilegesToRole(\"seekscope\", [\n{}  ]);\n}}\n",
            major(first),
            privilege(resource, "    "),
        );
    }
    text.push_str(
        "// db.getSiblingDB(\"admin\").createUser({ user: \"seekscope\", pwd: passwordPrompt(), \
         roles: [\"seekscope\"] });\n\
         // The users of a mongos do not exist on its shards: for a sharded cluster, run all of this on a mongos\n\
         // and on the primary of each shard.\n\n\
         // What Linux must allow on the server's host in addition to the login; root has all of it.\n",
    );
    for capability in CAPABILITIES {
        let _ = writeln!(text, "//   {:<20} {}", capability.name, capability.section);
    }
    let names = CAPABILITIES.iter().map(|c| c.name.to_ascii_lowercase());
    let wanted: Vec<String> = names.filter(|name| name != "cap_sys_admin").collect();
    let _ = writeln!(
        text,
        "// sudo setcap {}=ep \"$(command -v seekscope)\"",
        wanted.join(",")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(script: &str) -> usize {
        let rows = script.lines().filter(|line| line.starts_with("      \""));
        rows.count()
    }

    #[test]
    fn the_role_names_every_right_once_with_its_use() {
        for script in [role_script(None), role_script(Some("8.0.4"))] {
            for right in RIGHTS {
                let action = format!("\"{}\"", right.action);
                assert!(script.contains(&action), "{right:?}");
                assert!(script.contains(right.section), "{right:?}");
            }
            assert_eq!(actions(&script), RIGHTS.len());
            let count = |signs: [char; 3]| script.matches(signs).count();
            assert_eq!(count(['{', '[', '(']), count(['}', ']', ')']));
            let capabilities = "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search=ep";
            assert!(script.contains(capabilities));
        }
    }

    #[test]
    fn a_server_is_not_told_of_what_it_does_not_know() {
        let old = role_script(Some("4.4.6"));
        assert!(!old.contains("system_buckets"), "{old}");
        let buckets = RIGHTS.iter().filter(|right| right.since.is_some());
        assert_eq!(actions(&old), RIGHTS.len() - buckets.count());
        let new = role_script(Some("5.0.0"));
        assert!(
            new.contains("system_buckets") && !new.contains("if ("),
            "{new}"
        );
        assert!(!new.contains("system.js"), "{new}");
        assert!(role_script(Some("6.0.1")).contains("system.js"));
        let any = role_script(None);
        let (role, rest) = any.split_once("});").unwrap();
        assert!(!role.contains("system_buckets"), "{role}");
        assert!(
            rest.contains("if (parseInt(db.version()) >= 5) {"),
            "{rest}"
        );
    }

    #[test]
    fn remedies_name_the_right() {
        assert!(remedy("currentOp").starts_with("grant the action inprog on the cluster"));
        assert!(remedy("aggregate").contains("collStats on all collections"));
        assert!(remedy("find").contains("find on local.oplog.rs"));
        assert!(!remedy("buildInfo").contains("grant"));
        assert!(grant("serverStatus", true).contains("--print-role"));
        assert!(grant("createIndexes", true).contains("readWrite"));
        assert_eq!(
            grant("else", true),
            "grant the user a role that allows this"
        );
        assert_eq!(grant("serverStatus", false), LOG_IN);
    }
}
