//! Chooses the client that fits a connection string.

use seekscope_run::ClientKind;

use crate::ClientError;
use crate::wire::RawTarget;

/// The client that the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Our own client, unless the connection string asks for something that it cannot do.
    #[default]
    Auto,
    Raw,
    Driver,
}

/// A client and the reason for choosing it.
#[derive(Debug, Clone)]
pub struct Choice {
    pub kind: ClientKind,
    /// Set if `kind` is `Raw`.
    pub raw: Option<Box<RawTarget>>,
    /// The reason, for people, e.g. "the connection string asks for TLS".
    pub reason: String,
}

/// Chooses by the connection string alone, without connecting.
pub fn choose(uri: &str, database: &str, wanted: Wanted) -> Result<Choice, ClientError> {
    let driver = |reason: String| Choice {
        kind: ClientKind::Driver,
        raw: None,
        reason,
    };
    if wanted == Wanted::Driver {
        return Ok(driver("asked for".into()));
    }
    match RawTarget::parse(uri, database) {
        Ok(target) => Ok(Choice {
            kind: ClientKind::Raw,
            raw: Some(Box::new(target)),
            reason: if wanted == Wanted::Raw {
                "asked for".into()
            } else {
                "the connection string asks for nothing that it cannot do".into()
            },
        }),
        Err(why) if wanted == Wanted::Auto => Ok(driver(why)),
        Err(why) => Err(ClientError::Uri {
            text: format!("{why}, which `--client raw` cannot do; use `--client driver`"),
        }),
    }
}
