//! Which names a run holds that tell whose it is: of databases, collections, indexes, fields, hosts,
//! folders.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use seekscope_run::{FileRecord, MemberRecord, RunDocument};

/// Names that everybody's server has; hashing them would hide what is going on.
const COMMON: [&str; 44] = [
    "admin",
    "config",
    "local",
    "oplog.rs",
    "system",
    "_id_",
    "_id",
    "localhost",
    "127.0.0.1",
    "::1",
    "0.0.0.0",
    "data",
    "db",
    "var",
    "lib",
    "mongo",
    "mongodb",
    "mongod",
    "journal",
    "diagnostic.data",
    "index",
    "collection",
    "home",
    "root",
    "mnt",
    "srv",
    "opt",
    "tmp",
    "log",
    "etc",
    "usr",
    "dev",
    "proc",
    "sys",
    "run",
    "fs",
    "cgroup",
    "blkio",
    "io",
    "doctor",
    "seekscope",
    "seekscope-runs",
    "mongodb.log",
    "mongod.log",
];

/// See the module.
pub fn names(document: &RunDocument, files: &[FileRecord]) -> BTreeSet<String> {
    let mut names = Names::default();
    let examination = document.examination.as_ref();
    for member in examination.iter().flat_map(|e| &e.members) {
        names.member(member);
    }
    if let Some(ftdc) = examination.and_then(|e| e.ftdc.as_ref()) {
        names.path(&ftdc.folder);
    }
    let host = examination.and_then(|e| e.host.as_ref());
    for limit in host.iter().flat_map(|host| &host.surroundings.io_limits) {
        names.path(&limit.cgroup);
    }
    if let Some(target) = &document.target {
        names.uri(&target.uri);
        target.dbpath.iter().for_each(|path| names.path(path));
    }
    document
        .arguments
        .iter()
        .for_each(|text| names.argument(text));
    if let Some(device) = &document.device {
        names.path(&device.path);
    }
    for phase in &document.phases {
        phase.namespace.iter().for_each(|n| names.namespace(n));
    }
    if let Some(layout) = &document.layout {
        names.path(&layout.path);
        layout.named.iter().for_each(|n| names.namespace(n));
        for file in &layout.files {
            names.path(&file.file);
            file.namespace.iter().for_each(|n| names.namespace(n));
            file.index.iter().for_each(|index| names.add(index));
        }
    }
    for file in files {
        names.path(&file.path);
        file.namespace.iter().for_each(|n| names.joined(n));
    }
    names.0
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// Numbers tell nothing of anybody.
    fn add(&mut self, name: &str) {
        let tells = name.chars().any(char::is_alphabetic);
        if tells && !COMMON.contains(&name) && !is_of_the_engine(name) {
            self.0.insert(name.to_string());
        }
    }

    fn member(&mut self, member: &MemberRecord) {
        self.host(&member.name);
        member.shard.iter().for_each(|shard| self.add(shard));
        self.uri(&member.target.uri);
        member.target.dbpath.iter().for_each(|path| self.path(path));
        for option in member.options.iter().chain(&member.parameters) {
            self.value(&option.name, &option.value);
        }
        for collection in &member.collections {
            self.namespace(&collection.namespace);
            for index in &collection.indexes {
                self.add(&index.name);
                self.fields(&index.keys);
            }
        }
        for operation in &member.operations {
            operation.namespace.iter().for_each(|n| self.namespace(n));
            operation.plan.iter().for_each(|plan| self.fields(plan));
        }
    }

    /// The database, the collection, and the parts between its dots.
    fn namespace(&mut self, namespace: &str) {
        let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
        self.add(database);
        self.add(collection);
        collection.split('.').for_each(|part| self.add(part));
    }

    /// Of a file that several share: "a.x, a.y/index and 3 more".
    fn joined(&mut self, text: &str) {
        let text = text.rsplit_once(" and ").map_or(text, |(names, _)| names);
        for name in text.split(", ") {
            match name.split_once('/') {
                Some((namespace, index)) => {
                    self.namespace(namespace);
                    self.add(index);
                }
                None => self.namespace(name),
            }
        }
    }

    /// Of a key pattern in JSON or a plan such as `IXSCAN { a: 1 }`: what stands before a colon.
    fn fields(&mut self, text: &str) {
        let parts: Vec<&str> = text.split(':').collect();
        for before in parts.iter().take(parts.len().saturating_sub(1)) {
            let name = before.rsplit(['{', ',']).next().unwrap_or(before);
            let name = name.trim().trim_matches('"');
            self.add(name);
            name.split('.').for_each(|part| self.add(part));
        }
    }

    fn host(&mut self, address: &str) {
        let host = match address.rsplit_once(':') {
            Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
            _ => address,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<std::net::IpAddr>().is_ok() && !COMMON.contains(&host) {
            // A number tells whose it is, where it is an address.
            self.0.insert(host.to_string());
        }
        self.add(host);
        if let Some((first, _)) = host.split_once('.') {
            self.add(first);
        }
    }

    /// Credentials are not in it.
    fn uri(&mut self, uri: &str) {
        let Some((_, rest)) = uri.split_once("://") else {
            return;
        };
        let (hosts, rest) = rest.split_once('/').unwrap_or((rest, ""));
        hosts.split(',').for_each(|host| self.host(host));
        let (database, options) = rest.split_once('?').unwrap_or((rest, ""));
        self.add(database);
        for option in options.split('&') {
            if let Some((_, value)) = option.split_once('=')
                && option.starts_with("replicaSet=")
            {
                self.add(value);
            }
        }
    }

    /// Folders and files, but for those that every server has.
    fn path(&mut self, path: &str) {
        for part in Path::new(path).components() {
            if let Component::Normal(name) = part {
                self.add(&name.to_string_lossy());
            }
        }
    }

    fn argument(&mut self, text: &str) {
        if text.contains("://") {
            self.uri(text);
        } else if text.contains('/') {
            self.path(text);
        }
    }

    /// Of a setting: what is no number and names a place, a host or a set.
    fn value(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        if value.starts_with('/') {
            self.path(value);
        } else if name.ends_with("bindip") || name.ends_with("host") {
            value.split(',').for_each(|host| self.host(host.trim()));
        } else if ["replset", "replsetname", "clusterrole", "configdb"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            let (set, hosts) = value.split_once('/').unwrap_or((value, ""));
            self.add(set);
            hosts.split(',').for_each(|host| self.host(host));
        }
    }
}

/// Files of WiredTiger and of the servers on it, whose names come from counters.
fn is_of_the_engine(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let numbered = |prefix: &str| {
        let rest = stem.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '-'))
    };
    name.starts_with("WiredTiger")
        || name.starts_with("secantus_")
        || name.starts_with("metrics.")
        || ["_mdb_catalog", "sizeStorer", "mongod", "storage"].contains(&stem)
        || numbered("collection-")
        || numbered("index-")
        || numbered("inode ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_found_and_those_of_the_engine_left() {
        let mut names = Names::default();
        names.namespace("shop.orders.2024");
        names.joined("crm.people, crm.people/mail_1 and 3 more");
        names.fields(r#"{"customer.mail":1,"_id":-1}"#);
        names.fields("IXSCAN { city: 1, born: -1 }");
        names.uri("mongodb://db1.example.com:27017,10.0.0.7/crm2?replicaSet=payroll&w=1");
        names.path("/var/lib/mongodb/acme/collection-7--12.wt");
        names.path("/d/acme-index/index-12-3.wt");
        names.value("storage.wiredTiger.engineConfig.cacheSizeGB", "4");
        names.value("replication.replSetName", "rs-acme");
        let found: Vec<&str> = names.0.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "10.0.0.7",
                "acme",
                "acme-index",
                "born",
                "city",
                "crm",
                "crm2",
                "customer",
                "customer.mail",
                "d",
                "db1",
                "db1.example.com",
                "mail",
                "mail_1",
                "orders",
                "orders.2024",
                "payroll",
                "people",
                "rs-acme",
                "shop",
            ]
        );
    }
}
