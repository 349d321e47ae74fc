//! The file of `--web-config`: who may scrape, and how. `form` says what it may hold, `tls` and `logins` do what it says,
//! `rereading` notices that it has changed.

mod form;
mod logins;
mod rereading;
mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hyper::header::{HeaderMap, HeaderValue};
use rustls::ServerConfig;
use tokio::sync::watch;

use crate::exit::{Unreadable, Usage};
use form::{ClientAuth, Form, Pem};
pub use logins::Login;
use logins::Logins;
pub use rereading::Rereading;

/// Bytes of each file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the files say; by default, what holds without one.
#[derive(Default)]
pub struct WebConfig {
    /// What answers handshakes; none where plain HTTP is spoken.
    pub tls: Option<Arc<ServerConfig>>,
    users: logins::Users,
    /// Headers that every answer gets.
    pub headers: HeaderMap,
    verifies_clients: bool,
}

impl WebConfig {
    fn read(form: Form) -> Result<Self> {
        let verified = |tls: &form::TlsForm| tls.client_auth == ClientAuth::Verified;
        Ok(Self {
            verifies_clients: form.tls.as_ref().is_some_and(verified),
            tls: form.tls.as_ref().map(tls::server_config).transpose()?,
            users: logins::Users::new(form.users),
            headers: form.headers,
        })
    }

    /// Returns what whoever reaches an address should know that is open to others.
    pub fn warning(&self) -> Option<&'static str> {
        let has_users = !self.users.is_empty();
        if has_users && self.tls.is_none() {
            return Some(
                "passwords are sent over the network unencrypted; configure \
                 a certificate with --web-config",
            );
        }
        (!has_users && !self.verifies_clients).then_some(
            "everyone who can reach this address can read the names of collections; configure \
             users and a certificate with --web-config",
        )
    }

    /// Returns the protection that `before` had and this one lacks. A file that is being written lacks its end.
    fn lost_since(&self, before: &Self) -> Option<&'static str> {
        if before.tls.is_some() && self.tls.is_none() {
            Some("tls_server_config")
        } else if before.verifies_clients && !self.verifies_clients {
            Some("client_auth_type: RequireAndVerifyClientCert")
        } else if !before.users.is_empty() && self.users.is_empty() {
            Some("basic_auth_users")
        } else {
            None
        }
    }
}

/// What holds at the moment. Clones share it, and remember together who has logged in.
#[derive(Clone)]
pub struct Access {
    config: watch::Receiver<Arc<WebConfig>>,
    logins: Arc<Logins>,
}

impl Access {
    fn new(config: watch::Receiver<Arc<WebConfig>>) -> Result<Self> {
        let logins = Arc::new(Logins::new()?);
        Ok(Self { config, logins })
    }

    /// Lets everybody in, as without a file.
    pub fn open() -> Result<Self> {
        Self::new(watch::channel(Arc::default()).1)
    }

    pub fn config(&self) -> Arc<WebConfig> {
        Arc::clone(&self.config.borrow())
    }

    /// Checks a request's `Authorization`.
    pub async fn login(&self, config: &WebConfig, authorization: Option<&HeaderValue>) -> Login {
        self.logins.check(&config.users, authorization).await
    }
}

/// Reads a file that a user named, unless it is one that has no end.
fn read_file(path: &Path) -> Result<Vec<u8>> {
    let facts = fs::metadata(path).map_err(Unreadable::at(path))?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        let path = path.display();
        return Err(Usage(format!(
            "{path} is not a file of at most 1 MiB: name another one"
        ))
        .into());
    }
    Ok(fs::read(path).map_err(Unreadable::at(path))?)
}

/// Reads the form of the file at `path`.
fn read_form(path: &Path) -> Result<Form> {
    let text = String::from_utf8(read_file(path)?);
    let text = text.map_err(|_| Usage("it is not UTF-8 text".into()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Form::parse(&text, folder).map_err(|error| Usage(error.to_string()).into())
}

/// The files that a form names.
fn named_files(form: &Form) -> Vec<PathBuf> {
    let pems = form.tls.iter().flat_map(|tls| {
        let pems = [Some(&tls.cert), Some(&tls.key), tls.client_ca.as_ref()];
        pems.into_iter().flatten()
    });
    pems.filter_map(|pem| match pem {
        Pem::File(path) => Some(path.clone()),
        Pem::Inline(..) => None,
    })
    .collect()
}
