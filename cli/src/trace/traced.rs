//! Finds the processes whose I/O is recorded, from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::units::format_list;
use seekscope_run::{DeviceFacts, Limitation, TargetFacts};
use seekscope_server::examination::refuse_router;
use seekscope_server::process::ProcessIdentity;
use seekscope_server::{ProcFs, Server, redact_uri};
use seekscope_trace::{Followed, TraceError};

use super::record::Ended;
use super::started_command::StartedCommand;
use crate::args::WhoArgs;
use crate::exit::{BrokenOff, NotPermitted, Usage};
use crate::file_names::FileNames;
use crate::layout::seen_from_here;
use crate::local_members::{LocalMembers, limitation_of};
use crate::progress::Progress;
use crate::session::Session;

/// Where control groups are mounted; the second is systemd's, beside groups of version 1.
const CGROUP_ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd"];
/// Units are not nested deeper than this (user@1000.service/app.slice/…).
const UNIT_DEPTH_MAX: usize = 6;
/// The number of processes whose ends are named in the reason for a partial run; all of them are limitations.
const ENDS_NAMED_MAX: usize = 3;

/// The processes to be traced.
pub struct Traced {
    pub followed: Followed,
    /// Description for people: "process 4711 (mongod)".
    pub name: String,
    /// Named processes; a trace ends with the last of them. Empty for a control group.
    processes: Vec<NamedProcess>,
    /// The command that was started for the trace, stopped until [`StartedCommand::go_on`].
    pub command: Option<StartedCommand>,
    named_by: Vec<NamedBy>,
}

/// A process that is traced by its id.
struct NamedProcess {
    identity: ProcessIdentity,
    /// Description for people, of a member with its label in front.
    name: String,
    /// The member's label, where there are several.
    label: Option<String>,
    /// How long after the beginning its end was noticed.
    ended_after: Option<Duration>,
}

impl NamedProcess {
    fn find(pid: u32) -> Result<Self> {
        let found = ProcFs::host().identity(pid);
        Ok(Self {
            identity: found.map_err(|_| TraceError::NoSuchProcess { pid })?,
            name: process_name(pid),
            label: None,
            ended_after: None,
        })
    }

    /// Returns what is missing because it ended early; `None` if it has not ended.
    fn limitation(&self, asked: Option<Duration>) -> Option<Limitation> {
        let BrokenOff(end) = BrokenOff::ended_early(&self.name, self.ended_after?, asked);
        Some(Limitation {
            what: format!(
                "{end}, and the trace does not include anything that was started in its place"
            ),
            why: "a trace follows the processes that it began with, and a restarted process \
                  is a new one"
                .into(),
            remedy: "trace again, without ending or restarting any of them".into(),
        })
    }
}

/// A server that knows which of its files is which collection.
struct NamedBy {
    /// The member's label, where there are several.
    label: Option<String>,
    server: Server,
    data: Option<PathBuf>,
}

impl NamedBy {
    async fn names(&self) -> FileNames {
        FileNames::find(Some(&self.server), self.data.as_deref(), &[]).await
    }
}

impl Traced {
    /// Finds the processes; with a target, also learns which file is which collection.
    pub async fn find(args: &WhoArgs, session: &mut Session, progress: Progress) -> Result<Self> {
        if let Some(uri) = &args.target {
            let _step = progress.step("connecting");
            return server(uri, session).await;
        }
        if let Some(command) = &args.command {
            let command = StartedCommand::start(command)?;
            let followed = Followed::Processes {
                pids: vec![command.pid()],
                children: true,
            };
            let name = format!("{} and its children", command.name());
            return Self::of_processes(followed, &[command.pid()], name).map(|traced| Self {
                command: Some(command),
                ..traced
            });
        }
        if let Some(unit) = &args.unit {
            let folder = unit_folder(unit)?;
            return Ok(Self::of_group(folder, format!("the unit {unit}")));
        }
        if let Some(path) = &args.cgroup {
            let folder = group_folder(path)?;
            let name = format!("the control group {}", folder.display());
            return Ok(Self::of_group(folder, name));
        }
        match args.pid.as_slice() {
            [] => Err(Usage(
                "nothing to trace is named; name a process (-p PID), a --command, a --unit, a \
                 --cgroup, or a --target"
                    .into(),
            )
            .into()),
            [pid] => Self::of_processes(Followed::Process(*pid), &[*pid], process_name(*pid)),
            pids => {
                let followed = Followed::Processes {
                    pids: pids.to_vec(),
                    children: true,
                };
                let names: Vec<String> = pids.iter().map(|pid| process_name(*pid)).collect();
                Self::of_processes(followed, pids, names.join(", "))
            }
        }
    }

    fn of_group(folder: PathBuf, name: String) -> Self {
        Self {
            followed: Followed::Cgroup(folder),
            name,
            processes: Vec::new(),
            command: None,
            named_by: Vec::new(),
        }
    }

    fn of_processes(followed: Followed, pids: &[u32], name: String) -> Result<Self> {
        let processes = pids.iter().map(|pid| NamedProcess::find(*pid));
        Ok(Self {
            processes: processes.collect::<Result<_>>()?,
            followed,
            name,
            command: None,
            named_by: Vec::new(),
        })
    }

    /// Queries the names at the end too, as collections may be created during a trace.
    pub async fn learn_names(&self, session: &mut Session) {
        if self.named_by.is_empty() {
            // Where nobody is asked, the files' own names still tell what most of them are for.
            session.file_map.get_or_insert_default();
        }
        for named_by in &self.named_by {
            let newer = named_by.names().await.map;
            match &named_by.label {
                Some(label) => session.members.update(label, newer),
                None => session.file_map.get_or_insert_default().update(newer),
            }
        }
    }

    /// Returns whether any of the processes is left that could do I/O.
    pub fn is_alive(&self) -> bool {
        match &self.followed {
            Followed::Cgroup(folder) => folder.exists(),
            _ => self
                .processes
                .iter()
                .any(|process| ProcFs::host().is_alive(&process.identity)),
        }
    }

    /// Notes which of the processes have ended by now, this long `after` the beginning.
    pub fn note_ends(&mut self, after: Duration) {
        let running = self.processes.iter_mut();
        for process in running.filter(|process| process.ended_after.is_none()) {
            if !ProcFs::host().is_alive(&process.identity) {
                process.ended_after = Some(after);
            }
        }
    }

    /// Returns the processes that ended while others were still traced. The last to end is none of them: its end is that
    /// of the trace.
    fn ended_before_others(&self) -> impl Iterator<Item = &NamedProcess> {
        let ends = || self.processes.iter().map(|process| process.ended_after);
        let is_one_left = ends().any(|end| end.is_none());
        let last = ends().max().flatten();
        self.processes.iter().filter(move |process| {
            process.ended_after.is_some() && (is_one_left || process.ended_after < last)
        })
    }

    /// Returns the labels of the members whose processes ended while others were still traced; an empty text stands for a
    /// process without one.
    pub fn ended_early(&self) -> Vec<String> {
        let ended = self.ended_before_others();
        let labels = ended.map(|process| process.label.clone().unwrap_or_default());
        labels.collect()
    }

    /// Returns what is missing because processes ended while others were still traced.
    pub fn limitations_of_ends(&self, asked: Option<Duration>) -> Vec<Limitation> {
        let ended = self.ended_before_others();
        let limitations = ended.filter_map(|process| process.limitation(asked));
        limitations.collect()
    }

    /// Returns how a recording ended in view of these processes. Without a time that was asked for, it ends as asked with
    /// the last of them.
    pub fn with_ends(&self, ended: Ended, asked: Option<Duration>) -> Ended {
        let limitations = self.limitations_of_ends(asked);
        let is_whole = limitations.is_empty() || (asked.is_none() && !self.is_alive());
        if ended != Ended::AsAsked || is_whole {
            return ended;
        }
        let ends: Vec<String> = limitations.into_iter().map(|l| l.what).collect();
        Ended::Early(format_list(&ends, ENDS_NAMED_MAX, "; "))
    }

    /// Returns what they are, briefly: a connection string stands for its server.
    pub fn who(&self) -> &str {
        match self.named_by.as_slice() {
            [] => &self.name,
            [_] => "the server",
            _ => "the last of the servers",
        }
    }

    /// Returns the processes whose counters accompany the trace: all that are followed, unless there may be others.
    pub fn counted(&self) -> Vec<u32> {
        match &self.followed {
            Followed::Process(pid) => vec![*pid],
            Followed::Processes {
                pids,
                children: false,
            } => pids.clone(),
            _ => Vec::new(),
        }
    }
}

fn process_name(pid: u32) -> String {
    match ProcFs::host().exe_name(pid) {
        Ok(name) => format!("process {pid} ({name})"),
        Err(_) => format!("process {pid}"),
    }
}

/// Returns the process behind a connection string, or those of the members on this host.
async fn server(uri: &str, session: &mut Session) -> Result<Traced> {
    if let Some(local) = LocalMembers::find(uri, &ProcFs::host()).await? {
        return members(&local, session).await;
    }
    let server = Server::connect(uri).await?;
    refuse_router(&server).await?;
    let facts = server.facts(&ProcFs::host()).await;
    facts.missing.iter().for_each(|m| session.limit(m.clone()));
    let Some(pid) = facts.target.pid else {
        let missing = facts.missing.iter().map(|missing| missing.why.as_str());
        let whys: Vec<&str> = missing.collect();
        let shown = redact_uri(uri);
        if whys.iter().any(|why| why.contains("permission denied")) {
            return Err(NotPermitted(format!(
                "the process behind {shown} was not found among the processes whose open files \
                 this user may read: run seekscope as root"
            ))
            .into());
        }
        let why = whys.first().copied().unwrap_or("it is not on this host");
        return Err(Usage(format!(
            "the process behind {shown} is not known: {why}. Name it with -p PID"
        ))
        .into());
    };
    if let Some(dbpath) = &facts.target.dbpath {
        session.document.device = DeviceFacts::of_path(Path::new("/"), Path::new(dbpath)).ok();
    }
    let data = data_of(&facts.target, pid);
    session.document.target = Some(facts.target);
    let named_by = NamedBy {
        label: None,
        server,
        data,
    };
    let names = named_by.names().await;
    // Roles are known from the files' names in any case.
    session.file_map = Some(names.map);
    names.limitation.into_iter().for_each(|l| session.limit(l));
    let name = format!("the server {} ({})", redact_uri(uri), process_name(pid));
    let traced = Traced::of_processes(Followed::Process(pid), &[pid], name)?;
    Ok(Traced {
        named_by: vec![named_by],
        ..traced
    })
}

/// Returns the processes of the members on this host, and records what they are and whose files are where.
async fn members(local: &LocalMembers, session: &mut Session) -> Result<Traced> {
    let proc_fs = ProcFs::host();
    let (mut targets, mut named_by) = (Vec::new(), Vec::new());
    for member in &local.members {
        let facts = member.server.facts(&proc_fs).await;
        let label = member.label.as_deref();
        let missing = facts.missing.into_iter();
        missing.for_each(|m| session.limit(limitation_of(label, m)));
        let of_member = NamedBy {
            label: member.label.clone(),
            server: member.server.clone(),
            data: data_of(&facts.target, member.pid),
        };
        let names = of_member.names().await;
        let limitation = names.limitation.into_iter();
        limitation.for_each(|l| session.limit(limitation_of(label, l)));
        let data = facts.target.dbpath.as_deref().map(Path::new);
        match label {
            Some(label) => session.members.add(label, member.pid, data, names.map),
            None => session.file_map = Some(names.map),
        }
        targets.push(facts.target);
        named_by.push(of_member);
    }
    session.document.device = common_device(&targets);
    session.document.target = Some(local.target(&proc_fs, &targets).await);
    let unknown = local.missing.iter().cloned();
    let unknown = unknown.chain(local.elsewhere("traced"));
    unknown.for_each(|limitation| session.limit(limitation));
    let pids: Vec<u32> = local.members.iter().map(|member| member.pid).collect();
    let followed = match pids.as_slice() {
        [pid] => Followed::Process(*pid),
        _ => Followed::Processes {
            pids: pids.clone(),
            children: false,
        },
    };
    let mut traced = Traced::of_processes(followed, &pids, local.subject())?;
    for (process, member) in traced.processes.iter_mut().zip(&local.members) {
        process.name = format!("{} ({})", member.shown(), process.name);
        process.label.clone_from(&member.label);
    }
    Ok(Traced { named_by, ..traced })
}

/// Returns the server's data directory as accessible to this process.
fn data_of(target: &TargetFacts, pid: u32) -> Option<PathBuf> {
    let dbpath = target.dbpath.as_ref().map(PathBuf::from)?;
    seen_from_here(pid, &dbpath).ok()
}

/// Returns the disk below the data of all of them; `None` if there are several.
fn common_device(targets: &[TargetFacts]) -> Option<DeviceFacts> {
    let paths = targets.iter().map(|target| target.dbpath.as_deref());
    let devices = paths.map(|path| DeviceFacts::of_path(Path::new("/"), Path::new(path?)).ok());
    let devices: Vec<DeviceFacts> = devices.collect::<Option<_>>()?;
    let first = devices.first()?;
    let is_same = |device: &DeviceFacts| device.disk_device == first.disk_device;
    devices.iter().all(is_same).then(|| first.clone())
}

/// Returns a group's folder, given the folder itself or its path below the mount point.
fn group_folder(path: &Path) -> Result<PathBuf> {
    let below = |root: &&str| Path::new(root).join(path.strip_prefix("/").unwrap_or(path));
    std::iter::once(path.to_path_buf())
        .chain(CGROUP_ROOTS.iter().map(below))
        .find(|folder| is_group(folder))
        .with_context(|| {
            format!(
                "{} is not a control group: neither it nor a folder of this name below \
                 {} has a cgroup.procs",
                path.display(),
                CGROUP_ROOTS[0]
            )
        })
        .map_err(|error| Usage(format!("{error:#}")).into())
}

fn is_group(folder: &Path) -> bool {
    folder.join("cgroup.procs").is_file()
}

/// Returns the group that systemd made for a unit, which has the unit's name.
fn unit_folder(unit: &str) -> Result<PathBuf> {
    let name = if unit.contains('.') {
        unit.to_string()
    } else {
        format!("{unit}.service")
    };
    CGROUP_ROOTS
        .iter()
        .find_map(|root| find_group(Path::new(root), &name, UNIT_DEPTH_MAX))
        .ok_or_else(|| {
            Usage(format!(
                "there is no control group of the unit {name}. Check whether it is running with \
                 systemctl status {name}; if units have no control groups here, name the process \
                 with -p PID"
            ))
            .into()
        })
}

fn find_group(folder: &Path, name: &str, depth: usize) -> Option<PathBuf> {
    let candidate = folder.join(name);
    if is_group(&candidate) {
        return Some(candidate);
    }
    if depth == 0 {
        return None;
    }
    let folders = fs::read_dir(folder).ok()?.flatten();
    folders
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find_group(&entry.path(), name, depth - 1))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn end(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn one_of_several_that_ends_is_named_and_makes_the_run_partial() {
        let (mut first, mut second) = (sleeper(), sleeper());
        let pids = [first.id(), second.id()];
        let followed = Followed::Processes {
            pids: pids.to_vec(),
            children: true,
        };
        let mut traced = Traced::of_processes(followed, &pids, "two".into()).unwrap();
        let asked = Some(Duration::from_secs(16));
        traced.note_ends(Duration::from_secs(1));
        assert!(traced.limitations_of_ends(asked).is_empty());
        assert_eq!(traced.with_ends(Ended::AsAsked, asked), Ended::AsAsked);

        end(&mut first);
        traced.processes[0].label = Some("shard0".into());
        traced.note_ends(Duration::from_millis(6_720));
        traced.note_ends(Duration::from_secs(8));
        assert!(traced.is_alive());
        assert_eq!(traced.ended_early(), ["shard0"]);
        let limitations = traced.limitations_of_ends(asked);
        assert_eq!(limitations.len(), 1, "{limitations:?}");
        let what = &limitations[0].what;
        let who = format!("process {}", pids[0]);
        for part in [
            who.as_str(),
            "ended after 6.72 s of the 16.0 s requested",
            "anything that was started in its place",
        ] {
            assert!(what.contains(part), "{part} is missing from {what}");
        }
        let early = Ended::Early(what.clone());
        assert_eq!(traced.with_ends(Ended::AsAsked, asked), early);
        assert!(
            matches!(traced.with_ends(Ended::AsAsked, None), Ended::Early(_)),
            "Ctrl-C, while the other one was still traced"
        );
        let interrupted = Ended::Interrupted("SIGINT");
        assert_eq!(traced.with_ends(interrupted.clone(), asked), interrupted);

        end(&mut second);
        traced.note_ends(Duration::from_secs(9));
        assert_eq!(traced.ended_early(), ["shard0"], "the last ends the trace");
        assert_eq!(traced.with_ends(Ended::AsAsked, None), Ended::AsAsked);
    }

    #[test]
    fn the_end_of_the_only_process_is_that_of_the_trace() {
        let mut only = sleeper();
        let pid = only.id();
        let mut traced =
            Traced::of_processes(Followed::Process(pid), &[pid], "one".into()).unwrap();
        end(&mut only);
        traced.note_ends(Duration::from_secs(3));
        assert!(!traced.is_alive());
        assert!(traced.ended_early().is_empty());
        assert!(traced.limitations_of_ends(None).is_empty());
    }

    #[test]
    fn a_unit_is_found_by_its_groups_name() {
        let root = tempfile::tempdir().unwrap();
        let unit = root.path().join("system.slice/db.slice/mongod.service");
        fs::create_dir_all(&unit).unwrap();
        assert_eq!(
            find_group(root.path(), "mongod.service", 3),
            None,
            "no group"
        );
        fs::write(unit.join("cgroup.procs"), "1\n").unwrap();
        assert_eq!(find_group(root.path(), "mongod.service", 3), Some(unit));
        assert_eq!(
            find_group(root.path(), "mongod.service", 1),
            None,
            "too deep"
        );
    }
}
