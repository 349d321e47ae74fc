//! Parses `cql://user:password@host:port,host2/keyspace?consistency=one`: which cluster to use, and how.

use std::fmt;
use std::num::NonZeroUsize;

use percent_encoding::percent_decode_str;
use scylla::statement::Consistency;

use crate::CqlError;
use crate::session::{CqlSession, malformed};

/// Prefix of such connection strings.
pub const SCHEME: &str = "cql://";
/// Cassandra's default client port.
pub const DEFAULT_PORT: u16 = 9042;
/// Longest name of a keyspace that Cassandra accepts.
const NAME_BYTES_MAX: usize = 48;
const HOSTS_MAX: usize = 64;
/// Prefix of the server's own keyspaces.
const RESERVED: &str = "system";

/// A parsed connection string. Its formatted form omits user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct CqlTarget {
    /// The contact points, as `host:port`.
    pub hosts: Vec<String>,
    pub keyspace: String,
    pub(crate) credentials: Option<(String, String)>,
    /// Consistency of reads and writes; QUORUM unless specified, as in YCSB's binding.
    pub(crate) consistency: Consistency,
    /// Copies of each row if the keyspace is created: 1 or more.
    pub replication: u8,
    /// TCP connections to each node. Each carries many requests at once.
    pub connections: NonZeroUsize,
    /// Kind that indexes are built `USING`; the server's default unless specified.
    pub index: Option<IndexKind>,
}

/// Kinds of Cassandra's secondary indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// Storage-attached, since 5.0.
    Sai,
    /// A hidden local table.
    Legacy,
}

impl IndexKind {
    pub(crate) fn cql(self) -> &'static str {
        match self {
            Self::Sai => "sai",
            Self::Legacy => "legacy_local_table",
        }
    }
}

impl CqlTarget {
    /// Parses a connection string; `keyspace` is used if it names none. Does not connect.
    pub fn parse(uri: &str, keyspace: &str) -> Result<Self, CqlError> {
        let bad = |why: String| CqlError::Uri { why };
        let rest = uri
            .strip_prefix(SCHEME)
            .ok_or_else(|| bad(format!("it does not begin with {SCHEME}")))?;
        // A password may contain the separators of other parts; the last @ ends it.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let keyspace = if path.is_empty() { keyspace } else { path };
        check_keyspace(keyspace).map_err(bad)?;
        let mut target = Self {
            hosts: parse_hosts(hosts).map_err(bad)?,
            keyspace: keyspace.into(),
            credentials: user.map(parse_credentials).transpose().map_err(bad)?,
            consistency: Consistency::Quorum,
            replication: 1,
            connections: NonZeroUsize::MIN,
            index: None,
        };
        for option in options.split('&').filter(|o| !o.is_empty()) {
            target.set(option).map_err(bad)?;
        }
        Ok(target)
    }

    /// Returns the name of the consistency in CQL.
    pub fn consistency_name(&self) -> String {
        self.consistency.to_string()
    }

    /// Connects and returns the server's release, e.g. "5.0.5".
    pub async fn release(&self) -> Result<String, CqlError> {
        let failed = || CqlError::request("connecting");
        let session = CqlSession::connect(self).await.map_err(failed())?;
        let asked = session.setup_rows("SELECT release_version FROM system.local", ());
        let answer = asked.await.map_err(failed())?;
        let row = answer.maybe_first_row::<(String,)>();
        let row = row.map_err(|error| failed()(malformed(&error)))?;
        Ok(row.map_or(String::new(), |(release,)| release))
    }

    /// Returns name and port if there is only one contact point.
    pub fn only_host(&self) -> Option<(&str, u16)> {
        let [host] = self.hosts.as_slice() else {
            return None;
        };
        let (name, port) = host.rsplit_once(':')?;
        Some((name, port.parse().ok()?))
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option
            .split_once('=')
            .ok_or("an option has no \"=value\"")?;
        let known = "consistency, replication, connections, index";
        match name {
            "consistency" => self.consistency = parse_consistency(value)?,
            "replication" => {
                let copies = value.parse().ok().filter(|&n: &u8| n > 0);
                self.replication = copies.ok_or("replication is not a number from 1 to 255")?;
            }
            "connections" => {
                let count = value
                    .parse()
                    .ok()
                    .filter(|n: &NonZeroUsize| n.get() <= 1024);
                self.connections = count.ok_or("connections is not a number from 1 to 1024")?;
            }
            "index" => {
                self.index = Some(match value {
                    "sai" => IndexKind::Sai,
                    "legacy" => IndexKind::Legacy,
                    _ => return Err("index is neither sai nor legacy".into()),
                });
            }
            "tls" | "ssl" => return Err("seekscope does not support TLS for Cassandra".into()),
            // The name might be half a password, so it is not shown.
            _ => return Err(format!("an option is not one of {known}")),
        }
        Ok(())
    }
}

impl fmt::Display for CqlTarget {
    /// Formats without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.hosts.join(","), self.keyspace)?;
        write!(f, "?consistency={}", self.consistency_name().to_lowercase())
    }
}

impl fmt::Debug for CqlTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns whether it is made of letters, digits and underscores, as Cassandra requires even of quoted names.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(allowed)
}

fn check_keyspace(name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!(
            "the name of the keyspace does not consist of 1 to {NAME_BYTES_MAX} letters, digits \
             and underscores"
        ));
    }
    if name.to_ascii_lowercase().starts_with(RESERVED) {
        return Err("the keyspace is one of the server's own".into());
    }
    Ok(())
}

fn parse_hosts(hosts: &str) -> Result<Vec<String>, String> {
    let hosts: Vec<&str> = hosts.split(',').collect();
    if hosts.len() > HOSTS_MAX {
        return Err(format!("it names more than {HOSTS_MAX} hosts"));
    }
    hosts.into_iter().map(parse_host).collect()
}

fn parse_host(host: &str) -> Result<String, String> {
    // An IPv6 address is in brackets and contains colons.
    let name_end = host.rfind(']').map_or(0, |at| at + 1);
    let (name, port) = match host[name_end..].rfind(':') {
        Some(at) => (&host[..name_end + at], &host[name_end + at + 1..]),
        None => (host, ""),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if name.is_empty() || !name.chars().all(allowed) {
        return Err("a host is empty or not a valid host name".into());
    }
    let port = match port {
        "" => DEFAULT_PORT,
        text => text
            .parse()
            .map_err(|_| "a port is not a number up to 65535")?,
    };
    Ok(format!("{name}:{port}"))
}

fn parse_credentials(text: &str) -> Result<(String, String), String> {
    let (user, password) = text
        .split_once(':')
        .ok_or("the user name is not followed by \":password\"")?;
    let decoded = |part: &str| {
        let decoded = percent_decode_str(part).decode_utf8();
        decoded
            .map(String::from)
            .map_err(|_| "the user name or the password is not UTF-8")
    };
    Ok((decoded(user)?, decoded(password)?))
}

fn parse_consistency(name: &str) -> Result<Consistency, String> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "any" => Consistency::Any,
        "one" => Consistency::One,
        "two" => Consistency::Two,
        "three" => Consistency::Three,
        "quorum" => Consistency::Quorum,
        "all" => Consistency::All,
        "local_quorum" => Consistency::LocalQuorum,
        "each_quorum" => Consistency::EachQuorum,
        "local_one" => Consistency::LocalOne,
        _ => {
            return Err(
                "consistency is not one of any, one, two, three, quorum, all, local_quorum, \
                        each_quorum, local_one"
                    .into(),
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uri: &str) -> CqlTarget {
        CqlTarget::parse(uri, "fallback").unwrap()
    }

    #[test]
    fn hosts_keyspace_and_options_are_read() {
        let target = parsed("cql://a:1,b,[::1]:2/mine?consistency=ONE&connections=3&index=sai");
        assert_eq!(target.hosts, ["a:1", "b:9042", "[::1]:2"]);
        assert_eq!(target.keyspace, "mine");
        assert_eq!(target.consistency, Consistency::One);
        assert_eq!(target.connections.get(), 3);
        assert_eq!(target.index, Some(IndexKind::Sai));
        let plain = parsed("cql://h");
        assert_eq!(plain.keyspace, "fallback");
        assert_eq!(plain.consistency, Consistency::Quorum);
        assert_eq!(plain.replication, 1);
    }

    #[test]
    fn credentials_are_read_and_never_shown() {
        let target = parsed("cql://me:p%40ss/w?rd@h/k");
        let secret = ("me".to_string(), "p@ss/w?rd".to_string());
        assert_eq!(target.credentials, Some(secret));
        let shown = format!("{target} {target:?}");
        assert!(!shown.contains("ss/w") && !shown.contains("me:"), "{shown}");
        assert!(shown.starts_with("cql://h:9042/k?consistency=quorum"));
    }

    #[test]
    fn what_is_wrong_is_refused_without_showing_it() {
        for uri in [
            "mongodb://h",
            "cql://",
            "cql://h:99999",
            "cql://h/key-space",
            "cql://h/system_auth",
            "cql://user@h",
            "cql://h?consistency=most",
            "cql://h?secret=secret",
            "cql://h?tls=true",
            "cql://h?replication=0",
            "cql://a b",
        ] {
            let error = CqlTarget::parse(uri, "k").unwrap_err().to_string();
            assert!(
                !error.contains("secret") && !error.contains("user@"),
                "{error}"
            );
        }
    }
}
