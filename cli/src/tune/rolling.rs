//! The members of a replica set whose settings are made: all, which are restarted in turn, or the primary alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use seekscope_run::units::format_list;
use seekscope_server::Server;
use seekscope_settings::apply::Means;
use seekscope_settings::{
    Applier, Appliers, KnobEntry, LockError, Originals, Restart, Route, TunerLock,
};

use super::knobs;
use super::server_arena::means;
use crate::bench::Target;
use crate::exit::Usage;
use crate::unrestored::{self, ORIGINALS_OF};

/// Time limit for connecting to a member.
const PATIENCE: Duration = Duration::from_secs(5);
/// What stands for a member's host and port in the configuration file's name and in the command.
const HOST: &str = "{host}";
const PORT: &str = "{port}";
/// The most members that are named.
const NAMES_SHOWN: usize = 10;

/// Whose settings are made in a set of which nothing is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of trials: the load goes to the primary.
    OfPrimary,
    /// Those of a change that is to last: any member may be the next primary.
    OfAll,
}

/// The members of a set whose settings are made. Each is reached directly: who is the primary may change.
#[derive(Debug)]
pub struct Members {
    /// The members' names in the set, `host:port`; the primary comes first.
    names: Vec<String>,
    /// How each is restarted; without it they are set while they run.
    restart: Option<Restart>,
}

impl Members {
    /// Returns the members that hold data; only the primary if nothing is to be restarted and `whose` says so; `None`
    /// where the connection string means one server.
    ///
    /// # Errors
    /// Refuses a set whose members are not told apart, or whose primary may not step down.
    pub async fn find(
        server: &Server,
        restart: Option<Restart>,
        allow_stepdown: bool,
        whose: Whose,
    ) -> Result<Option<Self>> {
        if server.is_direct() {
            return Ok(None);
        }
        let hello = server.hello().await?;
        let count = hello.data_members.len() + hello.arbiters.len();
        let Some(set) = hello.set.filter(|_| count > 1) else {
            return Ok(None);
        };
        let mut names = match (&restart, whose) {
            (None, Whose::OfPrimary) => hello.me.iter().cloned().collect(),
            _ => hello.data_members,
        };
        names.sort_by_key(|name| (Some(name) != hello.me.as_ref(), name.clone()));
        let uri = server.shown_uri();
        let means = format!("{uri} means the replica set {set} with {count} members");
        if restart.is_some() && !allow_stepdown {
            return Err(Usage(format!(
                "{means}, and a restart is of one: name the member that --restart-command restarts, with \
                 directConnection=true, or a server of its own; or have all members restarted in turn, for which the \
                 primary has to step down each time: --allow-stepdown, with {HOST} or {PORT} in --config-file and \
                 --restart-command; without --config-file, knobs that take effect at run time can be set on the set's \
                 primary"
            ))
            .into());
        }
        if let Some(strange) = names.iter().find(|name| host_and_port(name).is_none()) {
            return Err(Usage(format!(
                "{means}, and the name of one of them is not a plain host:port: {strange:?}"
            ))
            .into());
        }
        let members = Self { names, restart };
        if members.are_mixed_up() {
            return Err(Usage(format!(
                "{means}, each with a configuration file and a restart of its own: {HOST} or {PORT} in both \
                 --config-file and --restart-command stand for those of a member ({})",
                format_list(&members.names, NAMES_SHOWN, ", ")
            ))
            .into());
        }
        Ok(Some(members))
    }

    /// Returns whether two members would have the same file or command.
    fn are_mixed_up(&self) -> bool {
        let names = self.names.iter();
        let restarts = names.filter_map(|name| self.restart_of(name));
        let restarts: Vec<Restart> = restarts.collect();
        restarts.iter().enumerate().any(|(n, one)| {
            let same = |other: &Restart| {
                other.config_file == one.config_file || other.command == one.command
            };
            restarts[..n].iter().any(same)
        })
    }

    fn restart_of(&self, name: &str) -> Option<Restart> {
        let restart = self.restart.as_ref()?;
        Some(of_member(restart, name))
    }

    /// Returns the members, as they are named in the set.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether they are restarted, for which the primary steps down.
    pub fn are_restarted(&self) -> bool {
        self.restart.is_some()
    }

    /// Saves the original settings of each member in a folder of its own below `folder`. What is set on the host and not
    /// on a server is set once. The entries have the values of the first member, the primary.
    pub async fn begin(
        &self,
        target: &Target,
        entries: &[KnobEntry],
        folder: &Path,
    ) -> Result<Appliers> {
        let mut appliers = Vec::new();
        for (n, name) in self.names.iter().enumerate() {
            let member = target.member(name, PATIENCE).await?;
            let own = match n {
                0 => entries.to_vec(),
                _ => {
                    let own = entries.iter().filter(|entry| is_set_on_each(entry));
                    knobs::as_set_on(&member, own.cloned().collect())
                        .await?
                        .entries
                }
            };
            let place = folder.join(format!("{ORIGINALS_OF}{name}"));
            std::fs::create_dir_all(&place)
                .with_context(|| format!("cannot make {}", place.display()))?;
            let means = means(&member, self.restart_of(name))?;
            appliers.push((name.clone(), Applier::begin(&own, means, &place)?));
        }
        Ok(Appliers::of_set(appliers))
    }
}

fn is_set_on_each(entry: &KnobEntry) -> bool {
    matches!(
        entry.set,
        Route::Engine { .. } | Route::Parameter { .. } | Route::Option { .. }
    )
}

/// Goes on where a process ended that had set a server, or the members of a set. `None` if nothing had been changed.
pub fn resume(folder: &Path, means: Means) -> Result<Option<Appliers>> {
    let members = members_of(folder);
    if members.is_empty() {
        let recorded = Originals::load(folder)?;
        let recorded = recorded.as_ref().and_then(Originals::member);
        let server = match (means.server, recorded) {
            // The set was named, and it may have another primary now.
            (Some(server), Some(name)) if !server.is_direct() => {
                Some(server.member(name, PATIENCE)?)
            }
            (server, _) => server,
        };
        let means = Means { server, ..means };
        return Ok(Applier::resume(folder, means)?.map(Appliers::from));
    }
    let mut appliers = Vec::new();
    for (name, place) in members {
        let server = means.server.as_ref();
        let own = Means {
            server: server.map(|s| s.member(&name, PATIENCE)).transpose()?,
            restart: means.restart.as_ref().map(|one| of_member(one, &name)),
            ..means.clone()
        };
        let applier = Applier::resume(&place, own)?;
        appliers.extend(applier.map(|applier| (name, applier)));
    }
    Ok(Some(Appliers::of_set(appliers)))
}

/// Returns the members whose originals are below the folder, with their folders.
pub fn members_of(folder: &Path) -> Vec<(String, PathBuf)> {
    let folders = unrestored::folders_below(folder).into_iter();
    let named = folders.filter_map(|place| {
        let name = place.file_name()?.to_str()?.strip_prefix(ORIGINALS_OF)?;
        host_and_port(name)?;
        Some((name.to_owned(), place))
    });
    named.collect()
}

/// Locks a server, or a set and each of its members.
pub fn lock(
    locks: &Path,
    server: &Server,
    members: &[String],
) -> Result<Vec<TunerLock>, LockError> {
    let members = members.iter().filter_map(|name| host_and_port(name));
    let members = members.map(|(host, port)| vec![(host.to_owned(), port)]);
    let all: Vec<Vec<(String, u16)>> = std::iter::once(server.addresses().to_vec())
        .chain(members)
        .collect();
    TunerLock::servers(locks, &all)
}

/// Returns how one member is restarted.
fn of_member(restart: &Restart, name: &str) -> Restart {
    let Some((host, port)) = host_and_port(name) else {
        return restart.clone();
    };
    let filled = |text: &str| {
        let port = port.to_string();
        text.replace(HOST, host).replace(PORT, &port)
    };
    let file = restart.config_file.to_str().map(|path| filled(path).into());
    Restart {
        config_file: file.unwrap_or_else(|| restart.config_file.clone()),
        command: filled(&restart.command),
        limit: restart.limit,
    }
}

/// Returns the parts of a member's name, which come from its set's configuration and are put into a path and a command;
/// `None` for anything but a plain name or address.
fn host_and_port(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let begins_plainly = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':');
    (begins_plainly && host.chars().all(is_plain)).then_some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restart(config_file: &str, command: &str) -> Restart {
        Restart {
            config_file: config_file.into(),
            command: command.into(),
            limit: Duration::from_secs(1),
        }
    }

    #[test]
    fn each_member_has_its_own_file_and_command() {
        let template = restart(
            "/etc/mongod-{port}.conf",
            "ssh {host} systemctl restart m{port}",
        );
        let of = |name| of_member(&template, name);
        assert_eq!(
            of("db1:27018"),
            restart("/etc/mongod-27018.conf", "ssh db1 systemctl restart m27018")
        );
        assert_eq!(of("[::1]:7").command, "ssh ::1 systemctl restart m7");
        let rolling = |restart: Restart, names: &[&str]| Members {
            names: names.iter().map(ToString::to_string).collect(),
            restart: Some(restart),
        };
        let (one_host, two_hosts) = (["h:1", "h:2"], ["a:1", "b:1"]);
        assert!(!rolling(template.clone(), &one_host).are_mixed_up());
        assert!(rolling(template, &two_hosts).are_mixed_up());
        let plain = restart("/etc/mongod.conf", "systemctl restart m{port}");
        assert!(rolling(plain, &one_host).are_mixed_up());
    }

    #[test]
    fn what_a_set_calls_its_members_is_no_command() {
        assert_eq!(
            host_and_port("db-1.example.com:27017"),
            Some(("db-1.example.com", 27017))
        );
        assert_eq!(host_and_port("[fe80::1]:1"), Some(("fe80::1", 1)));
        for strange in [
            "db1",
            "db1:x",
            "db1:70000",
            ":1",
            "..:1",
            "-rf:1",
            "a b:1",
            "$(x):1",
            "a;b:1",
            "../x:1",
        ] {
            assert_eq!(host_and_port(strange), None, "{strange}");
        }
    }
}
