//! The form of the file: `web.yml` of Prometheus' exporter-toolkit. What it says is either done or refused by name.
//!
//! The file holds hashes of passwords and perhaps a key, so no message repeats a value, and none of the YAML reader's
//! own, which quote what they did not expect, is passed on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bcrypt::HashParts;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use yaml_serde::{Mapping, Value};

/// A login takes twice as long with each step of a hash's cost. With more than these 4 s or so Prometheus, which waits
/// for 10 s, would have given up before it is let in.
const COST_MAX: u32 = 16;
const COST_MIN: u32 = 4;

const TLS: &str = "tls_server_config";
const HTTP: &str = "http_server_config";
const HEADERS: &str = "http_server_config.headers";
const USERS: &str = "basic_auth_users";

/// The headers that may be set, and the values that the format allows, where they are numbered.
const ALLOWED_HEADERS: [(&str, &[&str]); 5] = [
    ("Content-Security-Policy", &[]),
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
];

const CLIENT_AUTH: [(&str, ClientAuth); 5] = [
    ("NoClientCert", ClientAuth::NotAsked),
    ("RequestClientCert", ClientAuth::Asked),
    ("RequireAnyClientCert", ClientAuth::Any),
    ("VerifyClientCertIfGiven", ClientAuth::VerifiedIfGiven),
    ("RequireAndVerifyClientCert", ClientAuth::Verified),
];

/// Why a file is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error("it is not a single YAML document, or it contains a name twice{}", place(*at))]
    NotYaml { at: Option<(usize, usize)> },
    #[error("{within} must not have a field {name}; the known fields are {}", known.join(", "))]
    Unknown {
        within: &'static str,
        name: String,
        known: Vec<&'static str>,
    },
    /// A field, what is wrong with it and what to do.
    #[error("{field} {why}")]
    Field { field: String, why: String },
}

fn place(at: Option<(usize, usize)>) -> String {
    at.map(|(line, column)| format!(" (line {line}, column {column})"))
        .unwrap_or_default()
}

fn wrong(field: impl Into<String>, why: impl Into<String>) -> FormError {
    FormError::Field {
        field: field.into(),
        why: why.into(),
    }
}

/// What a file says.
pub struct Form {
    pub tls: Option<TlsForm>,
    /// Hashes by user.
    pub users: BTreeMap<String, String>,
    pub headers: HeaderMap,
}

/// What it says of TLS.
pub struct TlsForm {
    pub cert: Pem,
    pub key: Pem,
    pub client_ca: Option<Pem>,
    pub client_auth: ClientAuth,
    pub min_version: TlsVersion,
    pub max_version: TlsVersion,
}

/// Where something in PEM stands.
pub enum Pem {
    File(PathBuf),
    /// The text itself, in the field of this name.
    Inline(&'static str, String),
}

/// What is wanted of clients' certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientAuth {
    NotAsked,
    /// Whoever has one shows it; nobody looks who has signed it.
    Asked,
    /// It has to be there; nobody looks who has signed it.
    Any,
    VerifiedIfGiven,
    Verified,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

impl Form {
    /// Reads the text of a file in `folder`, which relative paths begin at.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, FormError> {
        let root: Value = yaml_serde::from_str(text).map_err(|error| FormError::NotYaml {
            at: error.location().map(|at| (at.line(), at.column())),
        })?;
        let mut root = Section::of("the file", root)?;
        root.refuse(
            "rate_limit",
            "is not supported: the numbers of connections and logins are always limited",
        )?;
        let form = Self {
            tls: match root.section(TLS)? {
                Some(section) => Some(tls(section, folder)?),
                None => None,
            },
            users: users(root.section(USERS)?)?,
            headers: match root.section(HTTP)? {
                Some(section) => http(section)?,
                None => HeaderMap::new(),
            },
        };
        root.end()?;
        Ok(form)
    }
}

fn tls(mut section: Section, folder: &Path) -> Result<TlsForm, FormError> {
    for (name, why) in [
        (
            "cipher_suites",
            "cannot be chosen: all supported ones are secure",
        ),
        (
            "curve_preferences",
            "cannot be chosen: all supported ones are secure",
        ),
        (
            "prefer_server_cipher_suites",
            "cannot be chosen: all supported cipher suites are secure",
        ),
        (
            "client_allowed_sans",
            "is not supported: sign the clients' certificates with a separate authority, and name \
             it in client_ca_file",
        ),
    ] {
        section.refuse(name, why)?;
    }
    let lacking = |name: &str| {
        let why = format!(
            "has neither {name} nor {name}_file: add one of them, or remove the whole section"
        );
        wrong(TLS, why)
    };
    let cert = section.pem("cert", "cert_file", folder)?;
    let key = section.pem("key", "key_file", folder)?;
    let client_ca = section.pem("client_ca", "client_ca_file", folder)?;
    let client_auth = client_auth(&mut section)?;
    let min_version = section.version("min_version")?;
    let max_version = section.version("max_version")?;
    section.end()?;
    let form = TlsForm {
        cert: cert.ok_or_else(|| lacking("cert"))?,
        key: key.ok_or_else(|| lacking("key"))?,
        client_ca,
        client_auth,
        min_version: min_version.unwrap_or(TlsVersion::Tls12),
        max_version: max_version.unwrap_or(TlsVersion::Tls13),
    };
    if form.min_version > form.max_version {
        let why = "is above max_version, so that no version is left";
        return Err(wrong(format!("{TLS}.min_version"), why));
    }
    match (client_auth, &form.client_ca) {
        (ClientAuth::VerifiedIfGiven | ClientAuth::Verified, None) => Err(wrong(
            format!("{TLS}.client_auth_type"),
            "requires the authority that signs the clients' certificates: name it in \
             client_ca_file",
        )),
        (ClientAuth::NotAsked, Some(_)) => Err(wrong(
            format!("{TLS}.client_ca_file"),
            "has no effect without client_auth_type: RequireAndVerifyClientCert",
        )),
        _ => Ok(form),
    }
}

fn client_auth(section: &mut Section) -> Result<ClientAuth, FormError> {
    const FIELD: &str = "client_auth_type";
    let Some(word) = section.text(FIELD)? else {
        return Ok(ClientAuth::NotAsked);
    };
    let named = CLIENT_AUTH.iter().find(|(name, _)| *name == word);
    named.map(|(_, auth)| *auth).ok_or_else(|| {
        let words = CLIENT_AUTH.map(|(name, _)| name).join(", ");
        section.wrong(FIELD, format!("is not one of {words}"))
    })
}

fn http(mut section: Section) -> Result<HeaderMap, FormError> {
    const HTTP2: &str = "http2";
    if section.flag(HTTP2)? == Some(true) {
        let why = "cannot be true: the exporter supports only HTTP/1.1, as does every Prometheus; remove \
             it, or set it to false";
        return Err(section.wrong(HTTP2, why));
    }
    let mut headers = HeaderMap::new();
    if let Some(mut wanted) = section.section("headers")? {
        wanted.path = HEADERS;
        for (name, values) in ALLOWED_HEADERS {
            let Some(value) = wanted.text(name)? else {
                continue;
            };
            if !values.is_empty() && !values.contains(&value.as_str()) {
                return Err(wanted.wrong(name, format!("must be one of: {}", values.join(", "))));
            }
            let value = HeaderValue::from_str(&value)
                .map_err(|_| wanted.wrong(name, "is not a valid header value"))?;
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| wanted.wrong(name, "is not a valid header name"))?;
            headers.insert(name, value);
        }
        wanted.end()?;
    }
    section.end()?;
    Ok(headers)
}

/// Whoever mixes up names and hashes has hashes for names, so no name is told either.
fn users(section: Option<Section>) -> Result<BTreeMap<String, String>, FormError> {
    let mut users = BTreeMap::new();
    let fields = section.map(|section| section.fields).unwrap_or_default();
    for (n, (name, hash)) in fields.into_iter().enumerate() {
        let entry = format!("{USERS}, entry {},", n + 1);
        let Value::String(name) = name else {
            return Err(wrong(
                entry,
                "has a name that is not a string: put it in quotes",
            ));
        };
        if name.contains(':') {
            return Err(wrong(
                entry,
                "has a colon in its name, which is not possible in a login",
            ));
        }
        let Value::String(hash) = hash else {
            return Err(wrong(entry, NO_HASH));
        };
        let parts: HashParts = hash.parse().map_err(|_| wrong(&entry, NO_HASH))?;
        if !(COST_MIN..=COST_MAX).contains(&parts.get_cost()) {
            let why = format!(
                "has a hash with a cost outside {COST_MIN} to {COST_MAX}: create one with \
                 a cost of 10"
            );
            return Err(wrong(entry, why));
        }
        users.insert(name, hash);
    }
    Ok(users)
}

const NO_HASH: &str =
    "has no bcrypt hash: `htpasswd -nBC 10 USER` asks for the password and prints one";

/// A mapping whose fields are taken one by one; what is left in the end is unknown.
struct Section {
    path: &'static str,
    fields: Mapping,
    known: Vec<&'static str>,
}

impl Section {
    fn of(path: &'static str, value: Value) -> Result<Self, FormError> {
        let fields = match value {
            Value::Mapping(fields) => fields,
            Value::Null => Mapping::new(),
            _ => return Err(wrong(path, "has no fields: write `name: value` lines")),
        };
        Ok(Self {
            path,
            fields,
            known: Vec::new(),
        })
    }

    fn wrong(&self, name: &str, why: impl Into<String>) -> FormError {
        wrong(format!("{}.{name}", self.path), why)
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.fields.remove(name)
    }

    fn section(&mut self, name: &'static str) -> Result<Option<Self>, FormError> {
        let value = self.take(name);
        value.map(|value| Self::of(name, value)).transpose()
    }

    /// An empty text is none, as the format has it.
    fn text(&mut self, name: &'static str) -> Result<Option<String>, FormError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(name, "is not a string: put it in quotes")),
        }
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<bool>, FormError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(name, "is neither true nor false")),
        }
    }

    fn version(&mut self, name: &'static str) -> Result<Option<TlsVersion>, FormError> {
        match self.text(name)?.as_deref() {
            None => Ok(None),
            Some("TLS12") => Ok(Some(TlsVersion::Tls12)),
            Some("TLS13") => Ok(Some(TlsVersion::Tls13)),
            Some("TLS10" | "TLS11") => Err(self.wrong(
                name,
                "is a version that is no longer secure and not supported: use TLS12 or TLS13",
            )),
            Some(_) => Err(self.wrong(name, "is neither TLS12 nor TLS13")),
        }
    }

    fn pem(
        &mut self,
        inline: &'static str,
        file: &'static str,
        folder: &Path,
    ) -> Result<Option<Pem>, FormError> {
        match (self.text(inline)?, self.text(file)?) {
            (Some(_), Some(_)) => Err(self.wrong(
                inline,
                format!("and {file} are both present: keep only one of them"),
            )),
            (Some(text), None) => Ok(Some(Pem::Inline(inline, text))),
            (None, Some(path)) => Ok(Some(Pem::File(folder.join(path)))),
            (None, None) => Ok(None),
        }
    }

    fn refuse(&mut self, name: &str, why: &str) -> Result<(), FormError> {
        match self.fields.contains_key(name) {
            true if self.path == TLS => Err(self.wrong(name, why)),
            true => Err(wrong(name, why)),
            false => Ok(()),
        }
    }

    fn end(self) -> Result<(), FormError> {
        let Some(name) = self.fields.keys().next() else {
            return Ok(());
        };
        let is_name = |name: &&str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            name.len() <= 40 && name.chars().all(is_part)
        };
        // What does not look like a field may be a secret in the wrong place.
        let name = name.as_str().filter(is_name).unwrap_or("of that name");
        Err(FormError::Unknown {
            within: self.path,
            name: name.into(),
            known: self.known,
        })
    }
}

#[cfg(test)]
mod tests;
