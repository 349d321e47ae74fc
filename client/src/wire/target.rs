//! Reads what a connection string asks for, where our own client can do it.

use std::time::Duration;

use bson::Document;
use mongodb::options::{Acknowledgment, ConnectionString, HostInfo, ReadPreference, ServerAddress};
use seekscope_server::driver_error::plain;
use seekscope_server::redact_text;

/// The default of drivers.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const APP_NAME: &str = "seekscope";
/// Servers refuse longer application names.
const APP_NAME_BYTES_MAX: usize = 128;

/// Options, in lower case, that our own client supports.
const FOLLOWED: [&str; 9] = [
    "appname",
    "connecttimeoutms",
    "directconnection",
    "journal",
    "readconcernlevel",
    "readpreference",
    "serverselectiontimeoutms",
    "w",
    "wtimeoutms",
];
/// Options of pools and monitors, which are meaningless with one connection per virtual user.
const IDLE: [&str; 9] = [
    "heartbeatfrequencyms",
    "localthresholdms",
    "maxconnecting",
    "maxidletimems",
    "maxpoolsize",
    "minpoolsize",
    "servermonitoringmode",
    "uuidrepresentation",
    "waitqueuetimeoutms",
];
/// Options that need the driver only if they enable something.
const SWITCHES: [(&str, &str); 5] = [
    ("tls", "TLS"),
    ("ssl", "TLS"),
    ("loadbalanced", "a load balancer"),
    ("retrywrites", "retryable writes"),
    ("retryreads", "retryable reads"),
];
const DRIVERS: [(&str, &str); 4] = [
    ("replicaset", "a named replica set"),
    ("compressors", "compression"),
    ("authmechanism", "authentication"),
    ("authsource", "authentication"),
];

/// A server and how to talk to it, from a connection string.
#[derive(Debug, Clone)]
pub struct RawTarget {
    pub(super) database: String,
    pub(super) hosts: Vec<ServerAddress>,
    pub(super) app_name: String,
    /// The time limit for finding a server.
    pub(super) connect_limit: Duration,
    pub(super) write_concern: Option<Document>,
    pub(super) read_concern: Option<Document>,
    /// The read preference; `None` for the primary.
    pub(super) read_preference: Option<Document>,
}

impl RawTarget {
    /// Reads a connection string; requests go to `database`, whatever database the string names. The error says
    /// what in the string needs the official driver, as the end of "the connection string …".
    pub fn parse(uri: &str, database: &str) -> Result<Self, String> {
        check_options(uri)?;
        let parsed = ConnectionString::parse(uri)
            .map_err(|error| format!("is not valid: {}", redact_text(&plain(&error), uri)))?;
        let HostInfo::HostIdentifiers(hosts) = parsed.host_info else {
            return Err("names its servers by DNS (mongodb+srv)".into());
        };
        if parsed.credential.is_some() {
            return Err("holds credentials".into());
        }
        let no_answers = parsed
            .write_concern
            .as_ref()
            .is_some_and(|concern| concern.w == Some(Acknowledgment::Nodes(0)));
        if no_answers {
            return Err("asks for unacknowledged writes (w=0)".into());
        }
        let mut app_name = parsed.app_name.unwrap_or_else(|| APP_NAME.into());
        while app_name.len() > APP_NAME_BYTES_MAX {
            app_name.pop();
        }
        let write = |error| format!("has a read or write concern that cannot be sent: {error}");
        Ok(Self {
            database: database.into(),
            hosts,
            app_name,
            connect_limit: parsed
                .server_selection_timeout
                .or(parsed.connect_timeout)
                .unwrap_or(CONNECT_LIMIT),
            write_concern: parsed
                .write_concern
                .map(|concern| bson::serialize_to_document(&concern))
                .transpose()
                .map_err(write)?,
            read_concern: parsed
                .read_concern
                .map(|concern| bson::serialize_to_document(&concern))
                .transpose()
                .map_err(write)?,
            read_preference: parsed
                .read_preference
                .filter(|preference| !matches!(preference, ReadPreference::Primary))
                .map(|preference| bson::serialize_to_document(&preference))
                .transpose()
                .map_err(write)?,
        })
    }
}

impl RawTarget {
    /// Makes the client try the primary before the hosts of the connection string, which need not name it. One that
    /// asks for other members by a read preference keeps its order.
    pub fn try_first(&mut self, primary: &str) {
        if let Ok(address) = ServerAddress::parse(primary)
            && self.read_preference.is_none()
        {
            self.hosts.retain(|host| *host != address);
            self.hosts.insert(0, address);
        }
    }
}

/// Checks the options by their names; the driver's own parser would skip those that it does not know.
fn check_options(uri: &str) -> Result<(), String> {
    let options = uri.split_once('?').map_or("", |(_, options)| options);
    for option in options
        .split(['&', ';'])
        .filter(|option| !option.is_empty())
    {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = name.to_ascii_lowercase();
        let find = |known: &[(&str, &'static str)]| {
            known
                .iter()
                .find(|(option, _)| *option == name)
                .map(|(_, what)| *what)
        };
        if let Some(what) = find(&SWITCHES) {
            if !value.eq_ignore_ascii_case("false") {
                return Err(format!("asks for {what}"));
            }
        } else if let Some(what) = find(&DRIVERS) {
            return Err(format!("asks for {what}"));
        } else if !FOLLOWED.contains(&name.as_str()) && !IDLE.contains(&name.as_str()) {
            return Err("has options that only the official driver supports".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(uri: &str) -> String {
        RawTarget::parse(uri, "db").unwrap_err()
    }

    #[test]
    fn plain_strings_are_ours() {
        let uri = "mongodb://127.0.0.1:4000,[::1]:4001,%2Ftmp%2Fm.sock/other?directConnection=true\
                   &w=majority&journal=true&wtimeoutMS=5&readConcernLevel=local&maxPoolSize=3\
                   &retryWrites=false&tls=false&readPreference=secondaryPreferred&appName=x";
        let target = RawTarget::parse(uri, "db").unwrap();
        assert_eq!((target.database.as_str(), target.hosts.len()), ("db", 3));
        assert_eq!(target.app_name, "x");
        let concern = target.write_concern.unwrap();
        assert_eq!(concern.get("w"), Some(&"majority".into()));
        assert_eq!(concern.get("j"), Some(&true.into()));
        assert!(concern.contains_key("wtimeout"));
        assert_eq!(target.read_concern, Some(bson::doc! { "level": "local" }));
        let preference = target.read_preference.unwrap();
        assert_eq!(preference.get("mode"), Some(&"secondaryPreferred".into()));
        let plain = RawTarget::parse("mongodb://h", "db").unwrap();
        assert_eq!(plain.read_preference, None);
        assert_eq!(plain.write_concern, None);
    }

    #[test]
    fn the_primary_comes_first() {
        let hosts = |uri: &str| -> Vec<String> {
            let mut target = RawTarget::parse(uri, "db").unwrap();
            target.try_first("b:2");
            target.hosts.iter().map(ToString::to_string).collect()
        };
        assert_eq!(hosts("mongodb://a:1,b:2/"), ["b:2", "a:1"]);
        assert_eq!(hosts("mongodb://a:1/"), ["b:2", "a:1"]);
        assert_eq!(hosts("mongodb://a:1/?readPreference=secondary"), ["a:1"]);
    }

    #[test]
    fn what_needs_the_driver_is_named() {
        assert!(why("mongodb://u:secret@h/").contains("credentials"));
        assert!(!why("mongodb://u:secret@h/?x").contains("secret"));
        assert!(why("mongodb://h/?tls=true").contains("TLS"));
        assert!(why("mongodb://h/?replicaSet=rs0").contains("replica set"));
        assert!(why("mongodb://h/?loadBalanced=true").contains("balancer"));
        assert!(why("mongodb://h/?retryWrites=true").contains("retryable writes"));
        assert!(why("mongodb://h/?compressors=zstd").contains("compression"));
        assert!(why("mongodb://h/?readPreferenceTags=a:b").contains("only the official driver"));
        assert!(why("mongodb://h/?w=0").contains("unacknowledged"));
        assert!(why("mongodb+srv://cluster.example.org/").contains("DNS"));
        assert!(why("nonsense").contains("not valid"));
    }
}
