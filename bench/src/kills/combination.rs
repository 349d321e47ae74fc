//! Which command is at work, who is killed meanwhile, and how the command may end then.

use std::process::ExitStatus;

use clap::ValueEnum;
use rustix::process::Signal;
use seekscope_server::ServerKind;

/// The command that is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum During {
    /// `reorder --apply` of the collection that others write to
    Reorder,
    /// `bench ycsb` beside it
    Bench,
    /// `bench index` beside it, which loads, builds and drops indexes
    BenchIndex,
    /// `tune` by settings that the running server takes
    Tune,
    /// `tune` by the configuration files of all members, which are restarted in turn
    TuneRestarts,
}

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Victim {
    /// Of the replica set, or of the shards in turn
    Primary,
    Secondary,
    Mongos,
    Seekscope,
}

/// Which servers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub kind: ServerKind,
    /// Members of the replica set.
    pub members: usize,
    /// Shards of the cluster; 0 if there is none.
    pub shards: usize,
}

impl During {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reorder => "reorder",
            Self::Bench => "bench",
            Self::BenchIndex => "bench-index",
            Self::Tune => "tune",
            Self::TuneRestarts => "tune-restarts",
        }
    }

    pub fn is_tune(self) -> bool {
        matches!(self, Self::Tune | Self::TuneRestarts)
    }

    /// The database that it makes beside the user's.
    pub fn own_database(self) -> Option<&'static str> {
        match self {
            Self::Reorder => None,
            Self::Bench | Self::BenchIndex => Some("seekscope_bench"),
            Self::Tune | Self::TuneRestarts => Some("seekscope_tune"),
        }
    }
}

impl Victim {
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
            Self::Mongos => "mongos",
            Self::Seekscope => "seekscope",
        }
    }

    /// The signal of this kill: a server gets no warning, seekscope is asked in two of four.
    pub fn signal(self, number: u64) -> Signal {
        match (self, number % 4) {
            (Self::Seekscope, 1) => Signal::INT,
            (Self::Seekscope, 3) => Signal::TERM,
            _ => Signal::KILL,
        }
    }
}

/// Why the two do not go together on these servers; `None` if they do.
pub fn mismatch(during: During, victim: Victim, shape: Shape) -> Option<&'static str> {
    let is_cluster = shape.shards > 0;
    match (during, victim) {
        (_, Victim::Mongos) if !is_cluster => Some("there is no mongos without --shards"),
        (_, Victim::Secondary) if is_cluster || shape.members < 2 => {
            Some("there is no secondary without --members")
        }
        (During::Tune | During::TuneRestarts, _) if is_cluster => Some("tune refuses a mongos"),
        (During::TuneRestarts, _) if shape.members < 2 => {
            Some("there are no members to be restarted in turn without --members")
        }
        _ => None,
    }
}

/// How the command may end if not with 0: by README's table, in which 3 is a server that is gone, and 1 operations of a benchmark,
/// or of the load of a session, that failed.
fn allowed(during: During, victim: Victim, signal: Signal) -> &'static [i32] {
    match (victim, during) {
        (Victim::Seekscope, _) if signal == Signal::KILL => &[],
        (Victim::Seekscope, _) => &[130],
        // The majority is there all the time.
        (Victim::Secondary, During::TuneRestarts) => &[3],
        (Victim::Secondary, _) => &[],
        (_, During::Bench | During::BenchIndex) => &[1, 3],
        (_, During::Reorder) => &[3],
        // Settings of a server that is away cannot be put back, which is told as inconsistent.
        (_, During::Tune) => &[1, 3, 5],
        (_, During::TuneRestarts) => &[3, 5],
    }
}

/// What is wrong with how it ended; `None` if nothing is. What `had_ended` before the kill must have ended well.
pub fn wrong_status(
    (during, victim, signal): (During, Victim, Signal),
    status: ExitStatus,
    had_ended: bool,
) -> Option<String> {
    let is_right = match status.code() {
        _ if had_ended => status.success(),
        None => victim == Victim::Seekscope && signal == Signal::KILL,
        Some(0) => true,
        Some(code) => allowed(during, victim, signal).contains(&code),
    };
    (!is_right).then(|| match had_ended {
        true => format!("it had ended with {status} before the kill"),
        false => format!("it ended with {status}"),
    })
}

/// What is wrong with what it said last: one sentence for people is wanted, not a dump of some structure.
pub fn wrong_message(text: &str) -> Option<String> {
    const DUMPS: [&str; 7] = [
        "Error {",
        "kind: ",
        "Some(",
        "Err(",
        "Ok(",
        "labels: {",
        "{ type",
    ];
    let last = text.lines().last().unwrap_or_default().trim();
    if last.is_empty() {
        return Some("it says nothing".into());
    }
    let dump = DUMPS.into_iter().find(|dump| text.contains(dump))?;
    Some(format!("it dumps a structure ({dump})"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_command_ends_as_the_table_of_exit_codes_says() {
        let ended = |during, victim: Victim, number, code: i32| {
            let killed = (during, victim, victim.signal(number));
            wrong_status(killed, ExitStatus::from_raw(code << 8), false)
        };
        assert_eq!(ended(During::Bench, Victim::Primary, 0, 3), None);
        assert_eq!(ended(During::Reorder, Victim::Seekscope, 1, 130), None);
        assert!(ended(During::Reorder, Victim::Primary, 0, 5).is_some());
        assert!(ended(During::Bench, Victim::Secondary, 0, 1).is_some());
        let killed = (During::Tune, Victim::Seekscope, Signal::KILL);
        assert_eq!(wrong_status(killed, ExitStatus::from_raw(9), false), None);
        assert!(wrong_status(killed, ExitStatus::from_raw(1 << 8), true).is_some());
    }

    #[test]
    fn a_dump_is_no_message() {
        assert_eq!(wrong_message("warning\nError: it is gone\n"), None);
        assert!(wrong_message("").is_some());
        assert!(wrong_message("Error: Error { kind: Io }").is_some());
    }

    #[test]
    fn only_what_is_there_can_be_killed() {
        let set = Shape {
            kind: ServerKind::Mongod,
            members: 3,
            shards: 0,
        };
        assert!(mismatch(During::Bench, Victim::Mongos, set).is_some());
        assert_eq!(mismatch(During::Tune, Victim::Secondary, set), None);
        let cluster = Shape { shards: 2, ..set };
        assert!(mismatch(During::Tune, Victim::Primary, cluster).is_some());
        assert_eq!(mismatch(During::Reorder, Victim::Mongos, cluster), None);
    }
}
