//! Makes the plan of `bench ycsb` from arguments and property files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::Limitation;
use seekscope_server::Namespace;
use seekscope_workload::ownership::is_reserved;
use seekscope_workload::sharding::KeyField;
use seekscope_workload::ycsb::settings::histogram_file;
use seekscope_workload::ycsb::{Edition, Properties, YcsbSettings, known, workload};

use crate::args::{EditionName, KeyHashName, WorkloadName, YcsbArgs, YcsbPhase};
use crate::bench::sending::{Defaults, Sending};
use crate::bench::sharding::Sharding;
use crate::exit::{Unreadable, Usage};

const RECORDS: u64 = 100_000;
const DURATION: Duration = Duration::from_secs(30);
const PROPERTY_FILE_BYTES_MAX: u64 = 16 << 20;
/// Name of a workload that is described by properties alone.
const UNNAMED: &str = "ycsb";

/// A workload to be run.
#[derive(Debug, Clone)]
pub struct Letter {
    /// "a", or "ycsb" for a workload described by properties.
    pub name: String,
    pub settings: YcsbSettings,
}

/// One of the parts that make up a run, in order.
#[derive(Debug, Clone)]
pub enum Part {
    /// Drops existing data and loads, under this name.
    Load(&'static str),
    Run(Box<Letter>),
}

/// The plan of a run of `bench ycsb`.
#[derive(Debug)]
pub struct Plan {
    pub parts: Vec<Part>,
    /// Settings of the data.
    pub data: YcsbSettings,
    pub edition: Edition,
    pub uri: Option<String>,
    /// Operations of each run, over all clients.
    pub operations: Option<u64>,
    pub duration: Option<Duration>,
    pub sending: Sending,
    /// How the collection is to be sharded, if it is.
    pub sharding: Option<Sharding>,
    pub limitations: Vec<Limitation>,
}

impl Plan {
    /// Makes the plan; refuses invalid combinations before anything is created.
    pub fn new(args: &YcsbArgs) -> Result<Self> {
        let edition = match args.edition {
            EditionName::Ycsb => Edition::Ycsb,
            EditionName::Corrected => Edition::Corrected,
        };
        let given = given(args)?;
        let letters = letters(args, &given)?;
        let mut all = Vec::new();
        for name in letters {
            let properties = properties(args, &given, &name)?;
            all.push(Letter {
                settings: settings(&properties, edition)?,
                name,
            });
        }
        if args.send.clients.is_some_and(|(_, count)| count > 1) && all.len() > 1 {
            let why = "several clients (--clients) run one workload at a time: name one";
            return Err(Usage(why.into()).into());
        }
        let Some(first) = all.first().cloned() else {
            return Err(Usage("--workload names nothing".into()).into());
        };
        let defaults = Defaults {
            in_flight: given.get("threadcount").map(|_| first.settings.in_flight),
            per_s: first.settings.target_per_s.filter(|_| !args.send.find_max),
        };
        let operations = first
            .settings
            .operation_count
            .filter(|_| !is_count_overruled(args));
        let duration = args.send.duration.or(first.settings.max_execution);
        let uri = args.target.uri.clone();
        let uri = uri.or_else(|| given.get("mongodb.url").map(String::from));
        let sharding = Sharding::new(&args.sharding, uri.as_deref())?;
        if let Some(sharding) = &sharding {
            check_key(sharding.key(), &all)?;
        }
        Ok(Self {
            data: first.settings.clone(),
            parts: parts(args, all),
            edition,
            uri,
            sharding,
            duration: duration.or(operations.is_none().then_some(DURATION)),
            operations,
            sending: Sending::new(&args.send, defaults)?,
            limitations: limitations(args, &given),
        })
    }
}

/// Returns whether --for stands in for a number of operations that only properties name. One that was typed beside --for
/// holds as in YCSB: the run ends with whichever comes first.
fn is_count_overruled(args: &YcsbArgs) -> bool {
    args.send.duration.is_some() && args.operations.is_none()
}

/// Refuses a shard key that operations change: servers do not let them.
fn check_key(key: &KeyField, letters: &[Letter]) -> Result<()> {
    let changes = |letter: &&Letter| {
        let [_, update, _, _, read_modify_write] = letter.settings.proportions;
        let fields = &letter.settings.field_names;
        update + read_modify_write > 0.0 && fields.iter().any(|field| field == key.root())
    };
    match letters.iter().find(changes) {
        None => Ok(()),
        Some(letter) => Err(Usage(format!(
            "--shard-key {key}: workload {} updates this field, which servers do not allow for a shard key; leave \
             the option out to shard by _id",
            letter.name
        ))
        .into()),
    }
}

/// Returns the properties of files and arguments, without the core workload's own.
fn given(args: &YcsbArgs) -> Result<Properties> {
    let mut given = Properties::default();
    for path in &args.property_files {
        given.extend(Properties::parse(&text_of(path)?)?);
    }
    for (name, value) in &args.properties {
        given.set(name, value);
    }
    Ok(given)
}

fn text_of(path: &Path) -> Result<String> {
    let facts = fs::metadata(path).map_err(Unreadable::at(path))?;
    if !facts.is_file() || facts.len() > PROPERTY_FILE_BYTES_MAX {
        return Err(Usage(format!("{} is no property file", path.display())).into());
    }
    // Java reads them as ISO 8859-1, in which every byte is a character.
    let bytes = fs::read(path).map_err(Unreadable::at(path))?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| e.into_bytes().into_iter().map(char::from).collect()))
}

fn letters(args: &YcsbArgs, given: &Properties) -> Result<Vec<String>> {
    use WorkloadName::{A, All, B, C, D, E, F};
    let letter = |name: &WorkloadName| match name {
        A => "a",
        B => "b",
        C => "c",
        D => "d",
        E => "e",
        F => "f",
        All => "all",
    };
    if args.workload.contains(&All) {
        if args.workload.len() > 1 {
            return Err(Usage("--workload all stands alone".into()).into());
        }
        // YCSB's own order: the workloads that insert come last.
        return Ok(["a", "b", "c", "f", "d", "e"].map(String::from).to_vec());
    }
    let mut names: Vec<String> = Vec::new();
    for name in args.workload.iter().map(letter) {
        if names.iter().any(|n| n == name) {
            return Err(Usage(format!(
                "workload {name} is named twice; --vs with --pairs repeats"
            ))
            .into());
        }
        names.push(name.into());
    }
    match (names.is_empty(), given.iter().next()) {
        (false, _) => Ok(names),
        // Properties such as recordcount alone do not describe a workload.
        (true, Some(_)) if describes_workload(given) => Ok(vec![UNNAMED.into()]),
        (true, _) => Ok(vec!["a".into()]),
    }
}

fn describes_workload(given: &Properties) -> bool {
    given
        .iter()
        .any(|(name, _)| name == "workload" || name.ends_with("proportion"))
}

/// Merges the properties, from the core workload's to the arguments': later ones win.
fn properties(args: &YcsbArgs, given: &Properties, name: &str) -> Result<Properties> {
    let mut properties = Properties::default();
    if let (Some(letter), 1) = (name.chars().next(), name.len()) {
        // YCSB's files count to 1000, which says nothing about a server.
        let core = workload(letter)?;
        let own = core
            .iter()
            .filter(|(name, _)| !["recordcount", "operationcount"].contains(name));
        own.for_each(|(name, value)| properties.set(name, value));
        properties.set("recordcount", RECORDS.to_string());
    }
    properties.extend(given.clone());
    let typed = [
        ("recordcount", args.records),
        ("operationcount", args.operations),
        ("seed", Some(args.send.seed)),
    ];
    for (name, value) in typed {
        if let Some(value) = value {
            properties.set(name, value.to_string());
        }
    }
    if args.keyhash == KeyHashName::Go {
        properties.set("keyhash", "go");
    }
    Ok(properties)
}

fn settings(properties: &Properties, edition: Edition) -> Result<YcsbSettings> {
    let histogram = match histogram_file(properties) {
        Some(file) => Some(text_of(Path::new(file))?),
        None => None,
    };
    Ok(YcsbSettings::new(
        properties,
        edition,
        histogram.as_deref(),
    )?)
}

fn parts(args: &YcsbArgs, letters: Vec<Letter>) -> Vec<Part> {
    let loads = args.phase.contains(&YcsbPhase::Load);
    let runs = args.phase.contains(&YcsbPhase::Run);
    let is_all = args.workload.contains(&WorkloadName::All);
    let mut parts = Vec::new();
    if loads {
        parts.push(Part::Load("load"));
    }
    for letter in letters.into_iter().filter(|_| runs) {
        // D has inserted, so E gets fresh data, as in YCSB's own order.
        if is_all && loads && letter.name == "e" {
            parts.push(Part::Load("reload"));
        }
        parts.push(Part::Run(Box::new(letter)));
    }
    parts
}

fn limitations(args: &YcsbArgs, given: &Properties) -> Vec<Limitation> {
    let one = |(name, why): (String, &'static str)| Limitation {
        what: format!("the property {name} has no effect"),
        why: why.into(),
        remedy: String::new(),
    };
    let mut found: Vec<Limitation> = known::without_effect(given).into_iter().map(one).collect();
    if matches!(args.edition, EditionName::Ycsb) && given.get("compressibility").is_some() {
        let why = "the values of YCSB's own edition are random; the corrected edition's can be compressed";
        found.push(one(("compressibility".into(), why)));
    }
    if is_count_overruled(args) && given.get("operationcount").is_some() {
        let why =
            "--for says when the run ends; with --operations it ends with whichever comes first";
        found.push(one(("operationcount".into(), why)));
    }
    let database = &args.target.database;
    let url = given.get("mongodb.url").and_then(database_of);
    if let Some(named) = url.filter(|named| named != database) {
        found.push(Limitation {
            what: format!("the database {named} of mongodb.url is not the one that is used"),
            why: format!("benchmarks write to a database of their own, here {database}"),
            remedy: format!("--database {named}, if nothing else is in it"),
        });
    }
    found
}

/// Returns the database that a connection string names for data, if any. The server's own databases are
/// excluded: they hold the user that logs in. Text that may be part of a password is never taken for a
/// database.
fn database_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
    let (_, path) = hosts.split_once('/')?;
    let name = path.split('?').next().unwrap_or_default();
    let is_meant = Namespace::new(name, "any").is_ok() && !is_reserved(name);
    is_meant.then_some(name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: YcsbArgs,
    }

    #[test]
    fn a_count_and_a_time_hold_together_where_both_are_typed() {
        let plan = |words: &str| {
            let words = ["x"].into_iter().chain(words.split(' '));
            Plan::new(&Typed::parse_from(words).args).unwrap()
        };
        let ends = |plan: &Plan| (plan.operations, plan.duration.map(|time| time.as_secs()));
        assert_eq!(ends(&plan("--operations 10")), (Some(10), None));
        assert_eq!(ends(&plan("--operations 10 --for 1s")), (Some(10), Some(1)));
        assert_eq!(ends(&plan("-p operationcount=10")), (Some(10), None));
        let overruled = plan("-p operationcount=10 --for 1s");
        assert_eq!(ends(&overruled), (None, Some(1)));
        let told = &overruled.limitations[0].what;
        assert!(told.contains("operationcount has no effect"), "{told}");
    }

    #[test]
    fn the_database_of_a_connection_string() {
        for (url, expected) in [
            ("mongodb://h1:1,h2/ycsb?w=1", Some("ycsb")),
            ("mongodb://u:p@h/ycsb", Some("ycsb")),
            // Whether it holds the user or data, it is not written to.
            ("mongodb://u:p@h/admin", None),
            ("mongodb+srv://u:pa/ss@h/?w=1", None),
            ("mongodb://h", None),
            ("mongodb://h/", None),
            ("h:27017/ycsb", None),
        ] {
            assert_eq!(database_of(url), expected, "{url}");
        }
    }
}
