//! Chooses the client that sends a benchmark's operations.

use std::sync::Arc;

use anyhow::Result;
use seekscope_cassandra::{CqlFactory, CqlTarget};
use seekscope_client::{ClientSpec, DriverTarget, Wanted};
use seekscope_run::ClientKind;

use super::target::is_cassandra;
use crate::args::ClientName;
use crate::exit::Usage;

/// A client and the reason it was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub spec: ClientSpec,
    pub reason: String,
}

impl Chosen {
    pub fn name(&self) -> &'static str {
        name_of(self.spec.kind())
    }
}

/// Returns the client's name as used in results and arguments.
pub fn name_of(kind: ClientKind) -> &'static str {
    kind.into()
}

/// Converts the command-line choice to the client crate's type.
pub fn wanted(name: ClientName) -> Wanted {
    match name {
        ClientName::Raw => Wanted::Raw,
        ClientName::Driver => Wanted::Driver,
        ClientName::Auto => Wanted::Auto,
    }
}

/// Chooses a client by the connection string; connects to nothing yet. `primary`: that of the set that the string means,
/// if it is known.
pub fn choose(uri: &str, primary: Option<&str>, database: &str, wanted: Wanted) -> Result<Chosen> {
    if is_cassandra(uri) {
        return cassandra(uri, database, wanted);
    }
    let choice = seekscope_client::choose(uri, database, wanted)?;
    let spec = match (choice.kind, choice.raw) {
        (ClientKind::Raw, Some(mut raw)) => {
            if let Some(primary) = primary {
                raw.try_first(primary);
            }
            ClientSpec::Raw(raw)
        }
        _ => ClientSpec::Async(Arc::new(DriverTarget::new(uri, database))),
    };
    Ok(Chosen {
        spec,
        reason: choice.reason,
    })
}

fn cassandra(uri: &str, keyspace: &str, wanted: Wanted) -> Result<Chosen> {
    if wanted != Wanted::Auto {
        let text = "--client is for MongoDB; Cassandra has a client of its own";
        return Err(Usage(text.into()).into());
    }
    let factory = CqlFactory::new(CqlTarget::parse(uri, keyspace)?);
    Ok(Chosen {
        spec: ClientSpec::Async(Arc::new(factory)),
        reason: "the connection string is Cassandra's".into(),
    })
}
