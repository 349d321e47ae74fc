//! What the driver saw of each server while it looked for one that it could use. The driver's own error is a
//! dump of all it knows about the topology; from these sightings a single sentence can say what is wrong and
//! what to do.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mongodb::error::{Error, ErrorKind};
use mongodb::event::EventHandler;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::{ClientOptions, Tls};
use seekscope_run::MemberState;
use seekscope_run::units::format_list;

use crate::driver_error::{of_io, plain};
use crate::hello::Hello;

/// The oldest wire version that the driver supports: MongoDB 4.4.
pub const WIRE_VERSION_MIN: u64 = 9;
/// The number of servers that are described one by one.
const DESCRIBED_MAX: usize = 4;
/// How long a driver waits if it is not configured.
const USUAL_LIMIT: Duration = Duration::from_secs(30);

/// What was last seen of each server. Clones share the sightings.
#[derive(Debug, Clone, Default)]
pub struct Sightings {
    seen: Arc<Mutex<BTreeMap<String, Sighting>>>,
    /// Whether any of them was a primary at any time.
    saw_primary: Arc<AtomicBool>,
    /// The replica set that the connection string names.
    set: Option<String>,
    uses_tls: bool,
    limit: Duration,
}

#[derive(Debug, Clone)]
enum Sighting {
    Answered(Box<Hello>),
    Failed(Error),
}

/// The reason why no server could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoServer {
    pub kind: NoServerKind,
    pub why: String,
}

/// What is wrong, as far as it determines what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoServerKind {
    /// Nothing listens there.
    Away,
    /// Nothing is received.
    Silent,
    UnknownName,
    /// It ends the connection at once, and TLS is not asked for.
    ClosesPlain,
    /// It ends the connection at once, or answers with something other than TLS, where TLS is asked for.
    ClosesTls,
    /// Its certificate is not trusted.
    Untrusted,
    /// Its certificate is that of an authority, as `openssl req -x509` makes it.
    OwnAuthority,
    /// Its certificate is for another name.
    OtherName,
    /// It requires a certificate from us.
    WantsCertificate,
    /// A file of certificates cannot be read.
    TlsFile,
    TooOld,
    OtherSet,
    NoPrimary,
    Other,
}

impl NoServerKind {
    /// Returns what to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Away => "check the host and the port, and that the server is running",
            Self::Silent => {
                "check the host and the port, that no firewall drops the packets, and that the \
                 server does not hang"
            }
            Self::UnknownName => {
                "check the spelling of the host name, and that this host can resolve it"
            }
            Self::ClosesPlain => {
                "if the server requires TLS, add tls=true to the connection string, and \
                 tlsCAFile=FILE if its certificate is not signed by a public authority"
            }
            Self::ClosesTls => {
                "if the server does not use TLS, remove tls=true from the connection string"
            }
            Self::Untrusted => {
                "with tlsCAFile=FILE, name the certificate of the authority that signed the \
                 server's certificate"
            }
            Self::OwnAuthority => {
                "its certificate is that of an authority, which is not accepted as a server's: \
                 give the server a certificate that an authority has signed \
                 (basicConstraints=CA:FALSE), or trust any server that answers with \
                 tlsAllowInvalidCertificates=true"
            }
            Self::OtherName => "connect by a name that the server's certificate contains",
            Self::WantsCertificate => "name a client certificate with tlsCertificateKeyFile=FILE",
            Self::TlsFile => "name a PEM file that can be read",
            Self::TooOld => {
                "`seekscope trace -p PID`, `seekscope top --pid PID`, `seekscope layout DBPATH` and \
                 `seekscope prefetch DBPATH COLLECTION` need no connection and work with it"
            }
            Self::OtherSet => "name its replica set with replicaSet=NAME, or remove the option",
            Self::NoPrimary => {
                "wait until the set has elected one, or name one member and add directConnection=true"
            }
            Self::Other => {
                "check the host, the port and the TLS options, and that the server is running"
            }
        }
    }
}

impl Sightings {
    /// Makes the driver report what it sees.
    pub fn watch(options: &mut ClientOptions) -> Self {
        let sightings = Self {
            seen: Arc::default(),
            saw_primary: Arc::default(),
            set: options.repl_set_name.clone(),
            uses_tls: matches!(options.tls, Some(Tls::Enabled(_))),
            limit: options.server_selection_timeout.unwrap_or(USUAL_LIMIT),
        };
        let seen = Arc::clone(&sightings.seen);
        let saw_primary = Arc::clone(&sightings.saw_primary);
        let note = move |event| {
            let (address, sighting) = match event {
                SdamEvent::ServerHeartbeatSucceeded(event) => {
                    let hello = Hello::read(&event.reply);
                    if hello.state == MemberState::Primary {
                        saw_primary.store(true, Ordering::Relaxed);
                    }
                    (event.server_address, Sighting::Answered(hello.into()))
                }
                SdamEvent::ServerHeartbeatFailed(event) => {
                    (event.server_address, Sighting::Failed(event.failure))
                }
                _ => return,
            };
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(address.to_string(), sighting);
        };
        options.sdam_event_handler = Some(EventHandler::callback(note));
        sightings
    }

    /// Returns why none of the servers that were seen could be used.
    pub fn why_none(&self) -> NoServer {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<(&String, NoServer)> = seen
            .iter()
            .map(|(address, sighting)| (address, self.judge(sighting)))
            .collect();
        match found.as_slice() {
            [] => self.silence(),
            [(_, only)] => only.clone(),
            several => {
                // A server that answers tells more than one that does not.
                let answered = |no: &NoServer| {
                    matches!(
                        no.kind,
                        NoServerKind::TooOld | NoServerKind::OtherSet | NoServerKind::NoPrimary
                    )
                };
                let first = several.iter().find(|(_, no)| answered(no));
                let kind = first.or(several.first()).map(|(_, no)| no.kind);
                let texts: Vec<String> = several
                    .iter()
                    .map(|(address, no)| format!("{address}: {}", no.why))
                    .collect();
                NoServer {
                    kind: kind.unwrap_or(NoServerKind::Other),
                    why: format_list(&texts, DESCRIBED_MAX, "; "),
                }
            }
        }
    }

    /// Returns why a server could not be used, if any was tried in vain.
    pub fn failure(&self) -> Option<NoServer> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.values().find_map(|sighting| match sighting {
            Sighting::Answered(_) => None,
            Sighting::Failed(error) => Some(self.failure_of(error)),
        })
    }

    /// Returns why no server can be used if each was tried last in vain, and not for want of an answer, which may still
    /// come.
    pub fn all_fail(&self) -> Option<NoServer> {
        let each_fails = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let fails = |sighting: &Sighting| match sighting {
                Sighting::Answered(_) => false,
                Sighting::Failed(error) => self.failure_of(error).kind != NoServerKind::Silent,
            };
            !seen.is_empty() && seen.values().all(fails)
        };
        each_fails.then(|| self.why_none())
    }

    /// Returns what the only server said that was seen, if it is a secondary and never was anything else.
    pub fn only_secondary(&self) -> Option<Hello> {
        if self.saw_primary.load(Ordering::Relaxed) {
            return None;
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = seen.values().map(|sighting| match sighting {
            Sighting::Answered(hello) => Some(hello),
            Sighting::Failed(_) => None,
        });
        let (only, None) = (answers.next()??, answers.next()) else {
            return None;
        };
        (only.state == MemberState::Secondary).then(|| Hello::clone(only))
    }

    fn silence(&self) -> NoServer {
        NoServer {
            kind: NoServerKind::Silent,
            why: format!("it did not answer within {} s", self.limit.as_secs_f64()),
        }
    }

    fn judge(&self, sighting: &Sighting) -> NoServer {
        let answer = match sighting {
            Sighting::Answered(answer) => answer,
            Sighting::Failed(error) => return self.failure_of(error),
        };
        let (kind, why) = if answer.wire_version < WIRE_VERSION_MIN {
            let (wire, release) = (answer.wire_version, release_of(answer.wire_version));
            let why = format!(
                "its wire version is {wire}, which is that of MongoDB {release}, and seekscope can \
                 connect to MongoDB 4.4 or later only"
            );
            (NoServerKind::TooOld, why)
        } else if let Some(other_set) = self.other_set(answer) {
            return other_set;
        } else if answer.set.is_some() && !answer.is_writable {
            let why = "it answers, but is not the primary of its replica set".into();
            (NoServerKind::NoPrimary, why)
        } else if answer.set.is_none() && answer.is_writable {
            // Alone, or a mongos, it fits whatever is asked for; the driver drops one whose connection breaks off.
            let why = "it answered before, but its connections have been broken since".into();
            (NoServerKind::Away, why)
        } else {
            let why = "it answers, but does not fit what the connection string asks for".into();
            (NoServerKind::Other, why)
        };
        NoServer { kind, why }
    }

    /// Returns what is wrong with a server that does not belong to the replica set that the connection string names.
    pub fn other_set(&self, answer: &Hello) -> Option<NoServer> {
        let wanted = self.set.as_ref();
        let wanted = wanted.filter(|set| answer.set.as_ref() != Some(set))?;
        let why = match &answer.set {
            Some(set) => format!("it belongs to the replica set {set}, not to {wanted}"),
            None => format!(
                "it does not belong to a replica set, and the connection string names {wanted}"
            ),
        };
        let kind = NoServerKind::OtherSet;
        Some(NoServer { kind, why })
    }

    fn failure_of(&self, error: &Error) -> NoServer {
        let (kind, why) = match error.kind.as_ref() {
            ErrorKind::Io(e) => self.broken(e),
            ErrorKind::InvalidTlsConfig { .. } => (NoServerKind::TlsFile, plain(error)),
            ErrorKind::DnsResolve { .. } => (NoServerKind::UnknownName, plain(error)),
            _ => (NoServerKind::Other, plain(error)),
        };
        NoServer { kind, why }
    }

    fn broken(&self, error: &io::Error) -> (NoServerKind, String) {
        use io::ErrorKind as Io;
        let text = of_io(error);
        let says = |word: &str| text.contains(word);
        match error.kind() {
            Io::ConnectionRefused => (NoServerKind::Away, "nothing listens there".into()),
            Io::TimedOut => {
                let silence = self.silence();
                (silence.kind, silence.why)
            }
            _ if says("lookup address") || says("resolve") => {
                let why = text.rsplit_once(": ").map_or(text.as_str(), |(_, why)| why);
                let why = format!("its name cannot be resolved ({why})");
                (NoServerKind::UnknownName, why)
            }
            _ if says("NotValidForName") || says("not valid for name") => {
                (NoServerKind::OtherName, text)
            }
            _ if says("CertificateRequired") || says("received fatal alert") => {
                (NoServerKind::WantsCertificate, text)
            }
            _ if says("CaUsedAsEndEntity") => (NoServerKind::OwnAuthority, text),
            _ if says("certificate") => (NoServerKind::Untrusted, text),
            Io::NotFound | Io::PermissionDenied if self.uses_tls => (NoServerKind::TlsFile, text),
            Io::UnexpectedEof | Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe
                if !self.uses_tls =>
            {
                let why = "it closes the connection without an answer".into();
                (NoServerKind::ClosesPlain, why)
            }
            Io::UnexpectedEof | Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe => {
                let why = "it closes the connection during the TLS handshake".into();
                (NoServerKind::ClosesTls, why)
            }
            Io::InvalidData if self.uses_tls => {
                let why = format!("its answer is not TLS ({text})");
                (NoServerKind::ClosesTls, why)
            }
            _ => (NoServerKind::Other, text),
        }
    }
}

/// Returns the release whose highest wire version this is.
fn release_of(wire_version: u64) -> &'static str {
    match wire_version {
        0..=2 => "2.6 or before",
        3 => "3.0",
        4 => "3.2",
        5 => "3.4",
        6 => "3.6",
        7 => "4.0",
        _ => "4.2",
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, doc};
    use mongodb::options::TlsOptions;

    use super::*;

    fn of_set(set: Option<&str>) -> Sightings {
        Sightings {
            set: set.map(String::from),
            limit: Duration::from_secs(5),
            ..Sightings::default()
        }
    }

    fn seen(sightings: &Sightings, address: &str, sighting: Sighting) {
        let mut seen = sightings.seen.lock().unwrap();
        seen.insert(address.into(), sighting);
    }

    fn failed(error: io::Error) -> Sighting {
        Sighting::Failed(Error::from(error))
    }

    fn judged(sightings: &Sightings, sighting: Sighting) -> (NoServerKind, String) {
        let no = sightings.judge(&sighting);
        (no.kind, no.why)
    }

    #[test]
    fn what_servers_say_of_themselves() {
        let answer = |reply: Document| Sighting::Answered(Hello::read(&reply).into());
        let old = answer(doc! { "ismaster": true, "maxWireVersion": 8 });
        let (kind, why) = judged(&of_set(None), old);
        assert_eq!(kind, NoServerKind::TooOld);
        assert!(why.contains("4.2") && why.contains("4.4"), "{why}");
        let alone = || answer(doc! { "isWritablePrimary": true, "maxWireVersion": 9 });
        let (kind, why) = judged(&of_set(Some("rs9")), alone());
        assert_eq!(kind, NoServerKind::OtherSet);
        assert!(
            why.contains("not belong to a replica set") && why.contains("rs9"),
            "{why}"
        );
        let member = doc! { "setName": "rs0", "secondary": true, "maxWireVersion": 9 };
        let (kind, why) = judged(&of_set(Some("rs9")), answer(member.clone()));
        assert_eq!(kind, NoServerKind::OtherSet);
        assert!(why.contains("rs0"), "{why}");
        let (kind, _) = judged(&of_set(Some("rs0")), answer(member));
        assert_eq!(kind, NoServerKind::NoPrimary);
        assert_eq!(Hello::read(&doc! { "maxWireVersion": "x" }).wire_version, 0);
    }

    #[test]
    fn how_connections_end() {
        let mut options = ClientOptions::default();
        options.tls = Some(Tls::Enabled(TlsOptions::default()));
        let (plain, tls) = (of_set(None), Sightings::watch(&mut options));
        assert!(options.sdam_event_handler.is_some());
        let kind = |sightings: &Sightings, error: io::Error| judged(sightings, failed(error)).0;
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(kind(&plain, refused), NoServerKind::Away);
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(kind(&plain, late()), NoServerKind::Silent);
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&plain, ended()), NoServerKind::ClosesPlain);
        assert_eq!(kind(&tls, ended()), NoServerKind::ClosesTls);
        let said = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_string());
        for (text, expected) in [
            (
                "invalid peer certificate: UnknownIssuer",
                NoServerKind::Untrusted,
            ),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                NoServerKind::OwnAuthority,
            ),
            (
                "invalid peer certificate: certificate not valid for name \"h\"",
                NoServerKind::OtherName,
            ),
            (
                "received fatal alert: CertificateRequired",
                NoServerKind::WantsCertificate,
            ),
            (
                "received corrupt message of type InvalidContentType",
                NoServerKind::ClosesTls,
            ),
        ] {
            assert_eq!(kind(&tls, said(text)), expected, "{text}");
        }
        let name = "failed to lookup address information: Name or service not known";
        let (kind, why) = judged(&plain, failed(io::Error::other(name)));
        assert_eq!(kind, NoServerKind::UnknownName);
        assert_eq!(
            why,
            "its name cannot be resolved (Name or service not known)"
        );
    }

    #[test]
    fn a_secondary_is_told_from_a_primary_that_stepped_down() {
        let answer = doc! { "setName": "rs0", "secondary": true, "primary": "b:1" };
        let answer = || Sighting::Answered(Hello::read(&answer).into());
        let sightings = of_set(None);
        assert_eq!(sightings.only_secondary(), None);
        seen(&sightings, "a:1", answer());
        let only = sightings.only_secondary().unwrap();
        assert_eq!(only.primary.as_deref(), Some("b:1"));
        sightings.saw_primary.store(true, Ordering::Relaxed);
        assert_eq!(sightings.only_secondary(), None);
        let several = of_set(None);
        seen(&several, "a:1", answer());
        seen(&several, "c:1", answer());
        assert_eq!(several.only_secondary(), None);
    }

    #[test]
    fn several_servers_are_told_apart() {
        let sightings = of_set(None);
        assert_eq!(sightings.why_none().kind, NoServerKind::Silent);
        seen(
            &sightings,
            "a:1",
            failed(io::ErrorKind::ConnectionRefused.into()),
        );
        assert_eq!(sightings.why_none().why, "nothing listens there");
        assert_eq!(sightings.all_fail().unwrap().kind, NoServerKind::Away);
        let silent = of_set(None);
        seen(&silent, "a:1", failed(io::ErrorKind::TimedOut.into()));
        assert_eq!(silent.all_fail(), None);
        let answer = doc! { "setName": "rs0", "secondary": true, "maxWireVersion": 9 };
        seen(
            &sightings,
            "b:1",
            Sighting::Answered(Hello::read(&answer).into()),
        );
        assert_eq!(sightings.all_fail(), None);
        let no = sightings.why_none();
        assert_eq!(no.kind, NoServerKind::NoPrimary);
        let expected = "a:1: nothing listens there; b:1: it answers, but is not the primary of its replica set";
        assert_eq!(no.why, expected);
        for n in 0..9 {
            seen(
                &sightings,
                &format!("c:{n}"),
                failed(io::ErrorKind::TimedOut.into()),
            );
        }
        assert!(sightings.why_none().why.ends_with("and 7 more"));
    }
}
