//! Defines why a setting was not applied.

use seekscope_run::{ErrorKind, Kinded};
use seekscope_server::ServerError;

use crate::host_files::HostFileError;
use crate::originals::OriginalsError;
use crate::script::ScriptError;

/// Why a setting was not applied, or cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("there is no knob `{0}` in this session")]
    UnknownKnob(String),
    #[error("knob `{knob}` cannot be set: {why}")]
    NoMeans { knob: String, why: String },
    #[error("{knob} was set to {wanted}, but is {found}")]
    NotApplied {
        knob: String,
        wanted: String,
        found: String,
    },
    #[error("{knobs} not set: {source}")]
    Refused { knobs: String, source: ServerError },
    #[error(transparent)]
    Server(ServerError),
    #[error("{knob}: {source}")]
    HostFile { knob: String, source: HostFileError },
    #[error("{knob}: {source}")]
    Script { knob: String, source: ScriptError },
    #[error("{path}: {why}")]
    ConfigFile { path: String, why: String },
    #[error(
        "the server did not come back: {why}; {}",
        if *put_back {
            "with the original configuration file it runs again"
        } else {
            "the original configuration file is in place, but it does not run with that either: look at its log"
        }
    )]
    DidNotComeBack { why: String, put_back: bool },
    #[error(
        "--restart-command does not restart the server: {why}. No setting was changed; the server is as that command left it"
    )]
    DoesNotRestart { why: String },
    #[error("{member} is not restarted: {why}")]
    NotSpared { member: String, why: String },
    #[error(
        "{member} is neither primary nor secondary after {limit_s} s, and no other member of the set is restarted while it is down"
    )]
    MemberDown { member: String, limit_s: u64 },
    #[error("the set has no primary: {why}")]
    NoPrimary { why: String },
    #[error(transparent)]
    Originals(#[from] OriginalsError),
}

impl ApplyError {
    /// Returns whether the server rejected the command that was to change something, so that nothing is changed.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. } | Self::Server(ServerError::NotAuthorised { .. })
        )
    }
}

impl Kinded for ApplyError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Server(error) => error.kind(),
            Self::DidNotComeBack { .. }
            | Self::DoesNotRestart { .. }
            | Self::NotSpared { .. }
            | Self::MemberDown { .. }
            | Self::NoPrimary { .. } => Some(ErrorKind::Target),
            // Their causes say it themselves.
            _ => None,
        }
    }
}
