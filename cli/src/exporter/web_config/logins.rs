//! Basic authentication. Hashing a password is slow on purpose, so it is done once for a pair of name and password that
//! passes, one at a time, away from the threads that answer scrapes, and for failures with pauses.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bcrypt::HashParts;
use hyper::header::HeaderValue;
use rustls::crypto::ring::default_provider;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

/// Pairs that have passed and are kept. Prometheus has one.
const PASSED_MAX: usize = 128;
/// After a failure, no password is hashed for this many times as long as that took: whatever strangers send, hashing
/// takes a tenth of one core.
const PAUSE: u32 = 9;
/// How long a login waits for its turn.
const TURN_LIMIT: Duration = Duration::from_secs(10);

/// Who may log in.
#[derive(Default)]
pub struct Users {
    hashes: BTreeMap<String, String>,
    /// What passwords of unknown users are compared with, so that they take as long.
    nobody: String,
}

impl Users {
    /// Takes hashes by user, all of them checked.
    pub fn new(hashes: BTreeMap<String, String>) -> Self {
        let costs = hashes.values().filter_map(|hash| {
            let parts: HashParts = hash.parse().ok()?;
            Some(parts.get_cost())
        });
        let cost = costs.max().unwrap_or_default();
        // A salt and a hash of zeros.
        let nobody = format!("$2b${cost:02}${}", ".".repeat(53));
        Self { hashes, nobody }
    }

    /// Returns whether there are none, and so everybody is let in.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

/// What became of a login.
#[derive(Debug, PartialEq, Eq)]
pub enum Login {
    Passed,
    Refused,
    /// Too many others were waiting.
    Busy,
}

/// The pairs that have passed, and the turn to hash the next one.
pub struct Logins {
    /// A random key, without which nobody can tell which pairs share a place.
    key: [u8; 32],
    passed: Mutex<HashSet<[u8; 32]>>,
    turn: Arc<Semaphore>,
}

impl Logins {
    /// # Errors
    ///
    /// Fails where the system has no random bytes.
    pub fn new() -> Result<Self> {
        let mut key = [0; 32];
        let filled = default_provider().secure_random.fill(&mut key);
        filled.map_err(|_| anyhow!("the operating system returns no random bytes"))?;
        Ok(Self {
            key,
            passed: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// Checks the value of a request's `Authorization`.
    pub async fn check(&self, users: &Users, authorization: Option<&HeaderValue>) -> Login {
        if users.is_empty() {
            return Login::Passed;
        }
        let Some((name, password)) = authorization.and_then(name_and_password) else {
            return Login::Refused;
        };
        let known = users.hashes.get(&name);
        let hash = known.unwrap_or(&users.nobody);
        let pair = self.digest(&name, hash, &password);
        if self.passed().contains(&pair) {
            return Login::Passed;
        }
        let turn = timeout(TURN_LIMIT, Arc::clone(&self.turn).acquire_owned());
        let Ok(Ok(turn)) = turn.await else {
            return Login::Busy;
        };
        // It may have passed meanwhile, for another connection.
        if self.passed().contains(&pair) {
            return Login::Passed;
        }
        let (is_known, hash) = (known.is_some(), hash.clone());
        let (tell, told) = oneshot::channel();
        // A client that goes away does not give its turn to the next one while the hash is still being computed.
        tokio::spawn(async move {
            let began = Instant::now();
            let matches = spawn_blocking(move || bcrypt::verify(password, &hash)).await;
            let passes = is_known && matches!(matches, Ok(Ok(true)));
            let took = began.elapsed();
            let _ = tell.send(passes);
            if !passes {
                sleep(took * PAUSE).await;
            }
            drop(turn);
        });
        if !told.await.unwrap_or(false) {
            return Login::Refused;
        }
        let mut passed = self.passed();
        if passed.len() >= PASSED_MAX {
            passed.clear();
        }
        passed.insert(pair);
        Login::Passed
    }

    fn passed(&self) -> MutexGuard<'_, HashSet<[u8; 32]>> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands for a pair without telling it. It holds the hash, so a password that was changed is another pair.
    fn digest(&self, name: &str, hash: &str, password: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new_with_prefix(self.key);
        for part in [name.as_bytes(), hash.as_bytes(), password] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

/// Reads `Basic BASE64`. A name that is no UTF-8 is no user's.
fn name_and_password(authorization: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = authorization.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let name = String::from_utf8(pair.get(..colon)?.to_vec()).ok()?;
    Some((name, pair.get(colon + 1..)?.to_vec()))
}

#[cfg(test)]
mod tests;
