//! Finds the identifying names in a run: of databases, collections, indexes, fields, hosts and folders.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use seekscope_run::{FileRecord, MemberRecord, Phase, RunDocument, SORT_FILES, TEMPORARY_FOLDER};

/// Names that every server has; hashing them would hide what is going on.
const COMMON: [&str; 49] = [
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
    "memory",
    "memory.limit_in_bytes",
    "memory.max",
    "system.slice",
    "mongod.service",
    "io",
    "doctor",
    "seekscope",
    "seekscope-runs",
    "mongodb.log",
    "mongod.log",
];

/// Files that every server with WiredTiger has, and the tables in them.
const OF_THE_ENGINE: [&str; 17] = [
    "WiredTiger",
    "WiredTiger.wt",
    "WiredTiger.turtle",
    "WiredTiger.turtle.set",
    "WiredTiger.basecfg",
    "WiredTiger.lock",
    "WiredTiger.backup",
    "WiredTigerHS.wt",
    "WiredTigerLAS.wt",
    "_mdb_catalog",
    "_mdb_catalog.wt",
    "sizeStorer",
    "sizeStorer.wt",
    "mongod.lock",
    "storage.bson",
    "secantus_index_entries.wt",
    "metrics.interim",
];
/// Prefixes of such names, which end in counters or dates.
const NUMBERED: [&str; 8] = [
    "WiredTigerLog.",
    "WiredTigerPreplog.",
    "WiredTigerTmplog.",
    "collection-",
    "index-",
    "inode ",
    "secantus_documents_sh",
    "metrics.",
];
/// Values of a field in a key pattern.
const KINDS_OF_KEYS: [&str; 6] = [
    "text",
    "hashed",
    "2d",
    "2dsphere",
    "geoHaystack",
    "columnstore",
];
/// Options of a connection string that contain names.
const URI_NAMES: [&str; 3] = ["replicaSet", "authSource", "appName"];
/// Characters around a name in a sentence or a setting.
const MARKS: [char; 15] = [
    ' ', '\n', '\t', ',', ';', '"', '\'', '`', '(', ')', '[', ']', '{', '}', '=',
];

/// Returns the identifying names in a run.
pub fn names(document: &RunDocument, files: &[FileRecord]) -> BTreeSet<String> {
    let mut names = Names::default();
    names.examination(document);
    if let Some(target) = &document.target {
        names.uri(&target.uri);
        target.dbpath.iter().for_each(|path| names.path(path));
        for shard in &target.shards {
            let name = shard
                .split_once(" (")
                .map_or(shard.as_str(), |(name, _)| name);
            names.add(name);
            names.addresses(shard);
        }
    }
    names.arguments(&document.arguments);
    if let Some(device) = &document.device {
        names.path(&device.path);
    }
    for phase in &document.phases {
        names.phase(phase);
    }
    if let Some(layout) = &document.layout {
        match layout.members.is_empty() {
            true => names.path(&layout.path),
            false => names.uri(&layout.path),
        }
        for member in &layout.members {
            names.label(&member.member);
            names.path(&member.path);
        }
        layout.named.iter().for_each(|n| names.joined(n));
        for file in &layout.files {
            names.path(&file.file);
            file.namespace.iter().for_each(|n| names.namespace(n));
            file.index.iter().for_each(|index| names.add(index));
        }
    }
    for file in files {
        names.path(&file.path);
        file.namespace.iter().for_each(|n| names.joined(n));
        file.member.iter().for_each(|label| names.label(label));
    }
    for limitation in &document.limitations {
        let texts = [&limitation.what, &limitation.why, &limitation.remedy];
        texts.into_iter().for_each(|text| names.sentence(text));
        names.addresses(&limitation.why);
    }
    let plan = document.reorder.as_ref().and_then(|r| r.plan.as_ref());
    if let Some(primary) = plan.and_then(|plan| plan.blocking.primary.as_ref()) {
        names.addresses(primary);
    }
    if let Some(reason) = &document.outcome_reason {
        names.sentence(reason);
        names.addresses(reason);
    }
    names.0
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// Adds a name. Numbers identify nobody and are skipped.
    fn add(&mut self, name: &str) {
        let tells = name.chars().any(char::is_alphabetic);
        if tells && !COMMON.contains(&name) {
            self.0.insert(name.to_string());
        }
    }

    fn examination(&mut self, document: &RunDocument) {
        let Some(examination) = &document.examination else {
            return;
        };
        examination.set.iter().for_each(|set| self.add(set));
        for member in &examination.members {
            self.member(member);
        }
        if let Some(cluster) = &examination.cluster {
            for shard in &cluster.shards {
                self.add(&shard.shard);
                shard.databases.iter().for_each(|name| self.add(name));
            }
            for collection in &cluster.collections {
                self.namespace(&collection.namespace);
                self.fields(&collection.key);
                let shards = collection.shards.iter().map(|share| &share.shard);
                let names = shards
                    .chain(&collection.zones)
                    .chain(&collection.moved_from);
                names.for_each(|name| self.add(name));
            }
        }
        if let Some(ftdc) = &examination.ftdc {
            self.path(&ftdc.folder);
        }
        if let Some(host) = &examination.host {
            let surroundings = &host.surroundings;
            for limit in &surroundings.io_limits {
                self.path(&limit.cgroup);
            }
            let files = [
                &surroundings.memory_limit_file,
                &surroundings.cpu_quota_file,
            ];
            files.into_iter().flatten().for_each(|file| self.path(file));
        }
    }

    fn member(&mut self, member: &MemberRecord) {
        self.host(&member.name);
        member.shard.iter().for_each(|shard| self.add(shard));
        self.uri(&member.target.uri);
        member.target.dbpath.iter().for_each(|path| self.path(path));
        if let Some(why) = &member.not_asked {
            self.sentence(why);
            self.addresses(why);
        }
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
            let filters = operation.filter.iter();
            let keys = filters.clone().flat_map(|filter| &filter.keys);
            let joins = filters.clone().flat_map(|filter| &filter.joins);
            let joins = joins.flat_map(|join| [&join.collection, &join.field]);
            let fields = filters.flat_map(|filter| &filter.fields);
            for name in fields.chain(keys.map(|key| &key.field)).chain(joins) {
                self.field(name);
            }
        }
    }

    fn phase(&mut self, phase: &Phase) {
        phase.namespace.iter().for_each(|n| self.namespace(n));
        if let Some(build) = &phase.index_build {
            self.add(&build.name);
            self.fields(&build.keys);
        }
        let filters = phase.trace.iter().flat_map(|trace| &trace.filters);
        filters.for_each(|filter| self.places(filter));
    }

    /// Adds the database, the collection, and the parts between its dots.
    fn namespace(&mut self, namespace: &str) {
        if is_of_the_engine(namespace) {
            return;
        }
        let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
        self.add(database);
        self.add(collection);
        collection.split('.').for_each(|part| self.add(part));
    }

    /// Adds the names of a file that several share: "a.x, a.y/index and 3 more".
    fn joined(&mut self, text: &str) {
        let shortened = text.rsplit_once(" and ").filter(|(_, more)| {
            let count = more.strip_suffix(" more");
            count.is_some_and(|count| count.chars().all(|c| c.is_ascii_digit()))
        });
        for name in shortened.map_or(text, |(names, _)| names).split(", ") {
            match name.split_once('/') {
                Some((namespace, index)) => {
                    self.namespace(namespace);
                    self.add(index);
                }
                None => self.namespace(name),
            }
        }
    }

    /// Adds the fields of a key pattern in JSON, or of a plan such as `IXSCAN { a: 1 }`: what comes before a
    /// colon. A name may contain commas.
    fn fields(&mut self, text: &str) {
        let parts: Vec<&str> = text.split(':').collect();
        for before in parts.iter().take(parts.len().saturating_sub(1)) {
            let inside = before.rsplit('{').next().unwrap_or(before);
            for name in inside.split(',') {
                let name = name.trim().trim_matches('"');
                if !KINDS_OF_KEYS.contains(&name) {
                    self.field(name);
                }
            }
        }
    }

    /// Adds the name, and the parts between its dots.
    fn field(&mut self, name: &str) {
        self.add(name);
        name.split('.').for_each(|part| self.add(part));
    }

    fn host(&mut self, address: &str) {
        let host = match address.rsplit_once(':') {
            Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
            _ => address,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.parse::<std::net::IpAddr>().is_ok() && !COMMON.contains(&host) {
            // A number identifies its owner if it is an address.
            self.0.insert(host.to_string());
        }
        // Drivers show hosts in lower case.
        for host in [host, &host.to_lowercase()] {
            self.add(host);
            if let Some((first, _)) = host.split_once('.') {
                self.add(first);
            }
        }
    }

    /// Adds shard and host of a member's label: `shard0`, `host:port` or `shard0@host:port`.
    fn label(&mut self, label: &str) {
        let (shard, host) = match label.rsplit_once('@') {
            Some((shard, host)) => (Some(shard), Some(host)),
            None if label.contains(':') => (None, Some(label)),
            None => (Some(label), None),
        };
        shard.into_iter().for_each(|shard| self.add(shard));
        host.into_iter().for_each(|host| self.host(host));
    }

    /// Adds the names in a connection string, which holds no credentials.
    fn uri(&mut self, uri: &str) {
        let Some((_, rest)) = uri.split_once("://") else {
            return;
        };
        let (hosts, rest) = rest.split_once('/').unwrap_or((rest, ""));
        hosts.split(',').for_each(|host| self.host(host));
        let (database, options) = rest.split_once('?').unwrap_or((rest, ""));
        self.add(database);
        for (name, value) in options.split('&').filter_map(|o| o.split_once('=')) {
            if URI_NAMES.contains(&name) {
                self.add(value);
            } else if value.contains('/') {
                self.path(value);
            }
        }
    }

    /// Adds folders and files, except those that every server has.
    fn path(&mut self, path: &str) {
        let path = Path::new(path);
        let file = path.file_name();
        for part in path.components() {
            if let Component::Normal(name) = part {
                let (text, is_file) = (name.to_string_lossy(), file == Some(name));
                if !(text == TEMPORARY_FOLDER || (is_file && is_of_the_engine(&text))) {
                    self.add(&text);
                }
            }
        }
    }

    /// Adds the paths among other words.
    fn places(&mut self, text: &str) {
        let words = text.split(MARKS).filter(|word| word.contains('/'));
        words.for_each(|word| self.path(word));
    }

    /// Adds the paths in a sentence, where a slash may also separate words. The kernel's own paths are skipped.
    fn sentence(&mut self, text: &str) {
        for word in text.split(MARKS) {
            let word = word.trim_end_matches(['.', ':']);
            if word.contains("://") {
                self.uri(word);
            } else if word.starts_with('/')
                && !["/proc", "/sys"].iter().any(|k| word.starts_with(k))
            {
                self.path(word);
            }
        }
    }

    /// Adds the `host:port` in an error message.
    fn addresses(&mut self, text: &str) {
        for word in text.split(MARKS) {
            let word = word.trim_end_matches(['.', ':']);
            let port = word.rsplit_once(':').map(|(_, port)| port);
            if port.is_some_and(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit())) {
                self.host(word);
            }
        }
    }

    /// Adds names in the arguments, which may be repeated elsewhere.
    fn arguments(&mut self, arguments: &[String]) {
        let mut option = "";
        for text in arguments {
            match text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => self.argument(name, value),
                _ if text.starts_with('-') => {
                    option = text;
                    continue;
                }
                _ => self.argument(option, text),
            }
            option = "";
        }
    }

    fn argument(&mut self, option: &str, value: &str) {
        match option {
            _ if value.contains("://") => self.uri(value),
            "--collection" => self.namespace(value),
            "--index" => self.fields(value),
            "--out" | "--since" | "--dbpath" | "--disk-run" => self.path(value),
            _ if value.contains('/') => self.path(value),
            _ => {}
        }
    }

    /// Adds names in a setting's value: paths, hosts and sets, but no numbers.
    fn value(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        if ends(&["bindip", "host"]) {
            value.split(',').for_each(|host| self.host(host.trim()));
        } else if ends(&["replset", "replsetname", "clusterrole", "configdb"]) {
            let (set, hosts) = value.split_once('/').unwrap_or((value, ""));
            self.add(set);
            hosts.split(',').for_each(|host| self.host(host));
        } else if ends(&["path"]) || value.starts_with('/') {
            self.path(value);
        } else {
            self.places(value);
        }
    }
}

/// Returns whether the name is one of a file that every server has, and nothing else.
fn is_of_the_engine(name: &str) -> bool {
    let counts = |c: char| c.is_ascii_digit() || "-.:TZ".contains(c);
    let is_numbered = NUMBERED.iter().any(|beginning| {
        let rest = name.strip_prefix(beginning);
        rest.is_some_and(|rest| rest.trim_end_matches(".wt").chars().all(counts))
    });
    // By their names sorts are told from index builds.
    let of_sort = name.strip_prefix(SORT_FILES).is_some_and(|rest| {
        rest.starts_with(['-', '.']) && rest.chars().all(|c| c.is_ascii_lowercase() || counts(c))
    });
    is_numbered || of_sort || OF_THE_ENGINE.contains(&name)
}

#[cfg(test)]
mod tests;
