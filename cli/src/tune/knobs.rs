//! Chooses what may be changed: from the catalogue or a file, as far as the place has it and the user permits
//! it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{HostFacts, KnobValue, KnobValues, RunDirectory};
use seekscope_server::{ProcFs, ServerBinary, ServerKind, processors_allowed};
use seekscope_settings::discovery::{Discovered, Surroundings, discover, read_scripts};
use seekscope_settings::{
    Catalogue, ChooseError, Chosen, HostFiles, KnobEntry, KnobFile, Route, Runs, ServerMemory,
    ServerProgram, ServerReplies, Unlocked,
};
use seekscope_tune::session::Preset;
use seekscope_tune::space::{Configuration, Range, Space};

use super::arena::Place;
use super::local_arena::start_args;
use super::measurement::Load;
use crate::args::{TuneKnobArgs, TuneLocalArgs, TuneSessionArgs};
use crate::bench::{Stage, Target};
use crate::environment::Environment;
use crate::exit::{Unreadable, Usage};

/// Knob files are written by hand: a larger one is a mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Time limit for a knob's `read` command.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// What is tuned.
pub struct Choice {
    pub entries: Vec<KnobEntry>,
    pub space: Space,
    pub presets: Vec<Preset>,
    pub also: Vec<Preset>,
    pub left_out: Vec<(String, String)>,
    /// The knobs were asked for by a file of the user's.
    pub is_of_file: bool,
    /// The knobs were asked for by their names.
    pub is_named: bool,
    /// See [`Discovered::configured`].
    pub configured: BTreeMap<String, String>,
    /// Cautions about the tuned knobs: what they risk, what bounds them, and which of them no run can judge.
    pub cautions: Vec<(String, String)>,
}

impl Choice {
    /// Returns the knobs with their values at the start, as a file.
    pub fn file(&self) -> KnobFile {
        KnobFile {
            knobs: self.entries.clone(),
            ..KnobFile::default()
        }
    }
}

/// Finds which of the requested knobs the place has.
pub async fn choose(
    args: &TuneSessionArgs,
    place: &Place<'_>,
    load: &Load,
    stage: &Stage,
    environment: &Environment,
) -> Result<Choice> {
    let whose = Whose::of(place, &args.local, environment)?;
    let Wanted {
        file,
        names,
        is_file,
    } = wanted(&args.knobs, &whose)?;
    let unlocked = Unlocked {
        durability: args.knobs.allow_durability,
        availability: args.knobs.allow_availability,
        restart: args.knobs.config_file.is_some() || matches!(whose, Whose::Ours { .. }),
        reload: args.knobs.reload,
    };
    let runs = Some(load.runs());
    let found = found(&file, &whose, unlocked, args.knobs.host, &args.local, runs);
    let mut found = stage.interruption.or(found).await?;
    leave_out_unreached(&mut found, &whose, load);
    let is_named = !names.is_empty();
    let chosen = match is_file {
        true => choose_of_file(&mut found, names),
        false => found.choose(&names),
    };
    let chosen = chosen.map_err(|error| Usage(error.to_string()))?;
    let presets = chosen.presets.iter().map(|preset| Preset {
        name: preset.name.clone(),
        values: Configuration(preset.values.clone()),
    });
    let mut presets: Vec<Preset> = presets.collect();
    let also = args
        .knobs
        .also
        .iter()
        .map(|text| also(text, &chosen.entries, &presets));
    let also: Vec<Preset> = also.collect::<Result<_>>()?;
    let is_also = |preset: &Preset| also.iter().any(|other| other.name == preset.name);
    presets.retain(|preset| !args.knobs.no_presets && !is_also(preset));
    if let Some(run) = &args.knobs.begin_with {
        presets.push(earlier_best(run, &chosen.entries)?);
    }
    Ok(Choice {
        cautions: cautions(&found, &chosen.entries),
        entries: chosen.entries,
        space: chosen.space,
        presets,
        also,
        left_out: chosen.left_out,
        is_of_file: is_file,
        is_named,
        configured: found.configured,
    })
}

/// Returns what people should know about the tuned knobs.
fn cautions(found: &Discovered, tuned: &[KnobEntry]) -> Vec<(String, String)> {
    let mut cautions = Vec::new();
    for entry in tuned {
        let name = &entry.knob.name;
        let of_runs = found.short_runs.get(name);
        let of_runs =
            of_runs.map(|why| format!("what is found of it holds for no longer runs: {why}"));
        let bounds = [&found.memory_risks, &found.cpu_bounds];
        let said = bounds
            .into_iter()
            .filter_map(|said| said.get(name).cloned());
        cautions.extend(said.chain(of_runs).map(|said| (name.clone(), said)));
    }
    cautions
}

/// Removes knobs that would be tuned but never set.
fn leave_out_unreached(found: &mut Discovered, whose: &Whose<'_>, load: &Load) {
    let why = |route: &Route| match (route, whose, load) {
        (Route::Environment { .. }, _, Load::Workload(_)) => {
            Some("it is a variable for --command, and a workload is run")
        }
        (
            Route::Option { .. } | Route::File { .. } | Route::Command { .. },
            Whose::Ours { .. },
            _,
        ) => Some("a private server can be given start options only"),
        _ => None,
    };
    let Discovered {
        entries, left_out, ..
    } = found;
    entries.retain(|entry| {
        let why = why(&entry.set);
        left_out.extend(why.map(|why| (entry.knob.name.clone(), why.to_string())));
        why.is_none()
    });
}

/// Returns all that the catalogue has for a server, including what a session would have to unlock.
pub async fn offered(whose: &Whose<'_>, local: &TuneLocalArgs) -> Result<Discovered> {
    let unlocked = Unlocked {
        durability: true,
        availability: true,
        restart: true,
        reload: true,
    };
    found(&whose.catalogue()?, whose, unlocked, true, local, None).await
}

/// Knobs that the command line asks for.
struct Wanted {
    file: KnobFile,
    /// The names wanted from it; none means those worth a search.
    names: Vec<String>,
    /// Whether it is the user's own file, not the catalogue.
    is_file: bool,
}

/// Chooses the knobs of a file. Those that cannot be tuned here are left out with the reason: a file of `tune init` has all
/// that the server has, and what is to be permitted is for the command line to say.
fn choose_of_file(found: &mut Discovered, mut names: Vec<String>) -> Result<Chosen, ChooseError> {
    names.retain(|name| found.left_out.iter().all(|(other, _)| other != name));
    loop {
        match found.choose(&names) {
            Err(ChooseError::NotHere { name, why }) => {
                names.retain(|other| *other != name);
                found.entries.retain(|entry| entry.knob.name != name);
                found.left_out.push((name, why));
            }
            chosen => return chosen,
        }
    }
}

/// Returns what the command line asks for.
fn wanted(args: &TuneKnobArgs, whose: &Whose<'_>) -> Result<Wanted> {
    let (file, names) = match &args.knobs {
        Some(path) if path.ends_with(".toml") || Path::new(path).is_file() => {
            let file = read(Path::new(path))?;
            let names = file.knobs.iter().map(|entry| entry.knob.name.clone());
            return Ok(Wanted {
                names: names.collect(),
                file,
                is_file: true,
            });
        }
        Some(names) => {
            let names = names.split(',').map(|name| name.trim().to_string());
            (whose.catalogue()?, names.collect())
        }
        None => (whose.catalogue()?, Vec::new()),
    };
    Ok(Wanted {
        file,
        names,
        is_file: false,
    })
}

fn read(path: &Path) -> Result<KnobFile> {
    let facts = fs::metadata(path).map_err(Unreadable::at(path))?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return Err(Usage(format!("{} is no knob file", path.display())).into());
    }
    let text = fs::read_to_string(path).map_err(Unreadable::at(path))?;
    let file =
        KnobFile::parse(&text).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
    if file.knobs.is_empty() {
        let remedy = "`seekscope tune init` writes one with the knobs of a server";
        return Err(Usage(format!("{} holds no knob; {remedy}", path.display())).into());
    }
    Ok(file)
}

/// Owner of the knobs.
pub enum Whose<'a> {
    /// A private server, running or not.
    Ours {
        kind: ServerKind,
        target: Option<&'a Target>,
    },
    Theirs(&'a Target),
    /// The user alone, without a server.
    Nobodys,
}

impl<'a> Whose<'a> {
    fn of(place: &'a Place<'_>, local: &TuneLocalArgs, environment: &Environment) -> Result<Self> {
        Ok(match (place, place.target()) {
            (Place::Local(_), target) => Self::Ours {
                kind: local_kind(local, environment)?,
                target,
            },
            (_, Some(target)) => Self::Theirs(target),
            (_, None) => Self::Nobodys,
        })
    }

    fn target(&self) -> Option<&'a Target> {
        match self {
            Self::Ours { target, .. } => *target,
            Self::Theirs(target) => Some(target),
            Self::Nobodys => None,
        }
    }

    fn catalogue(&self) -> Result<KnobFile> {
        let program = match self {
            Self::Theirs(_) => ServerProgram::Mongod,
            Self::Ours { kind, .. } => match kind {
                ServerKind::Mongod => ServerProgram::Mongod,
                ServerKind::SecantusdRs => ServerProgram::Secantusd,
            },
            Self::Nobodys => {
                let why = "without a server there is no catalogue: name a knob file with --knobs";
                return Err(Usage(why.into()).into());
            }
        };
        Ok(Catalogue::of(program)?)
    }

    /// Returns the memory of the server's process, or of one that will be started in our own memory groups.
    fn memory(&self) -> Option<ServerMemory> {
        ServerMemory::of(&ProcFs::host(), self.pid()?)
    }

    /// Returns the number of processors that the server may use; one that we start has our own limits.
    fn cpus(&self) -> Option<u32> {
        processors_allowed(&ProcFs::host(), self.pid()?)
    }

    fn pid(&self) -> Option<u32> {
        match (self, self.target()) {
            (Self::Ours { .. }, None) => Some(std::process::id()),
            (_, target) => target?.facts.pid,
        }
    }

    /// Returns this host's files, if the server runs here.
    fn host_files(&self) -> Option<HostFiles> {
        let target = self.target()?;
        target.facts.pid?;
        let device = target.device().map(|device| device.device);
        Some(HostFiles::host(device))
    }
}

/// Returns the program that a private server would run.
pub fn local_kind(local: &TuneLocalArgs, environment: &Environment) -> Result<ServerKind> {
    let binary = ServerBinary::find(
        local.server_binary.as_deref(),
        Some(&environment.search_path),
        &environment.tool_folders,
    )?;
    Ok(binary.kind)
}

/// Returns the knobs with what this server uses as their defaults, and as it bounds them. It need not be the server that
/// was tuned.
pub async fn as_set_on(target: &Target, knobs: Vec<KnobEntry>) -> Result<Discovered> {
    let file = KnobFile {
        knobs,
        presets: Vec::new(),
        limits: Vec::new(),
        pinned: Vec::new(),
    };
    let replies = ServerReplies::ask(target.server()?).await?;
    let whose = Whose::Theirs(target);
    let host_files = whose.host_files();
    let surroundings = Surroundings {
        // Whoever applies a session permits what it recommends.
        unlocked: Unlocked {
            durability: true,
            availability: true,
            restart: true,
            reload: true,
        },
        host: host_files.as_ref(),
        local: None,
        scripts: read_scripts(&file, READ_LIMIT).await,
        memory_mib: None,
        seen: whose.memory(),
        cpus: whose.cpus(),
        runs: None,
    };
    let discovered = discover(&file, &replies, &surroundings);
    match discovered.left_out.first() {
        Some((name, why)) => Err(Usage(format!(
            "{name} is not set on {}: {why}",
            target.server()?.shown_uri()
        ))
        .into()),
        None => Ok(discovered),
    }
}

async fn found(
    file: &KnobFile,
    whose: &Whose<'_>,
    unlocked: Unlocked,
    host: bool,
    local: &TuneLocalArgs,
    runs: Option<Runs<'_>>,
) -> Result<Discovered> {
    let replies = match whose.target() {
        Some(target) => ServerReplies::ask(target.server()?).await?,
        None => ServerReplies::default(),
    };
    let host_files = whose.host_files().filter(|_| host);
    let given = given(local);
    let memory_mib = HostFacts::read(Path::new("/")).memory_bytes >> 20;
    let surroundings = Surroundings {
        unlocked,
        host: host_files.as_ref(),
        local: matches!(whose, Whose::Ours { .. }).then_some(&given),
        scripts: read_scripts(file, READ_LIMIT).await,
        memory_mib: Some(memory_mib).filter(|mib| *mib > 0),
        seen: whose.memory(),
        cpus: whose.cpus(),
        runs,
    };
    Ok(discover(file, &replies, &surroundings))
}

/// Returns the user's start options for a local server: the values that its knobs have at the start.
fn given(local: &TuneLocalArgs) -> KnobValues {
    let args = start_args(local);
    let mut given = KnobValues::new();
    let cache_mib = args.cache.unwrap_or_default() >> 20;
    given.insert(
        "cache_size".into(),
        KnobValue::Integer(i64::try_from(cache_mib).unwrap_or(i64::MAX)),
    );
    for (name, value) in &args.server_setting {
        let value = match (value.parse::<i64>(), value.parse::<bool>()) {
            (Ok(number), _) => KnobValue::Integer(number),
            (_, Ok(flag)) => KnobValue::Bool(flag),
            _ => KnobValue::Text(value.clone()),
        };
        given.insert(name.clone(), value);
    }
    given
}

/// Parses `--also`: a preset's name, or NAME=VALUE separated by commas.
fn also(text: &str, entries: &[KnobEntry], presets: &[Preset]) -> Result<Preset> {
    if let Some(preset) = presets.iter().find(|preset| preset.name == text) {
        return Ok(preset.clone());
    }
    let mut values = KnobValues::new();
    for part in text.split(',') {
        let Some((name, value)) = part.split_once('=') else {
            let names: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
            return Err(Usage(format!(
                "--also {text}: there is no such preset ({}), and NAME=VALUE is expected otherwise",
                if names.is_empty() {
                    "there are none".into()
                } else {
                    names.join(", ")
                }
            ))
            .into());
        };
        let (name, value) = (name.trim(), value.trim());
        let Some(entry) = entries.iter().find(|entry| entry.knob.name == name) else {
            let known: Vec<&str> = entries
                .iter()
                .map(|entry| entry.knob.name.as_str())
                .collect();
            return Err(Usage(format!(
                "--also {text}: {name} is not tuned; these are: {}",
                known.join(", ")
            ))
            .into());
        };
        values.insert(name.into(), value_of(entry, value));
    }
    Ok(Preset {
        name: text.into(),
        values: Configuration(values),
    })
}

/// Converts a value as the knob's range understands it; other values are refused when the plan is made.
fn value_of(entry: &KnobEntry, text: &str) -> KnobValue {
    let number = || text.parse::<f64>().map(KnobValue::Float).ok();
    let value = match &entry.knob.range {
        Range::Bool => text.parse().map(KnobValue::Bool).ok(),
        Range::Categorical { .. } => None,
        Range::Integer { .. } => text.parse().map(KnobValue::Integer).ok(),
        Range::Float { .. } => number(),
        Range::Ordinal { .. } => text.parse().map(KnobValue::Integer).ok().or_else(number),
    };
    value.unwrap_or_else(|| KnobValue::Text(text.into()))
}

/// Returns the best setting of an earlier session, for those of its knobs that are tuned now.
fn earlier_best(run: &Path, entries: &[KnobEntry]) -> Result<Preset> {
    let document = RunDirectory::read_document(run)
        .map_err(|error| Usage(format!("--begin-with: {error}")))?;
    let Some(record) = document.tune else {
        return Err(Usage(format!("--begin-with {}: no tuning session", run.display())).into());
    };
    let best = match record.recommended.is_empty() {
        true => record.best,
        false => record.recommended,
    };
    let is_tuned = |name: &String| entries.iter().any(|entry| entry.knob.name == *name);
    Ok(Preset {
        name: "earlier best".into(),
        values: Configuration(
            best.into_iter()
                .filter(|(name, _)| is_tuned(name))
                .collect(),
        ),
    })
}
