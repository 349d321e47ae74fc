//! Sets keys of WiredTiger's connection, all in one command: the engine checks them against each other.

use mongodb::bson::{Bson, doc};
use seekscope_run::tune::KnobValue;
use seekscope_server::{Server, ServerError};

use super::{Applier, ApplyError, no_means, parameter};
use crate::discovery::{RUNTIME_CONFIG, value_of};
use crate::engine_string;
use crate::knob_file::Route;
use crate::originals::Target;

/// The cache size is the only key whose value a server reports.
const CACHE_SIZE: &str = "cache_size";
const MIB: f64 = (1 << 20) as f64;

impl Applier {
    /// Sets the keys. If the engine rejects them, each is put back alone: it may have accepted some, and a
    /// key that it rejects even then is unknown to it.
    pub(super) async fn apply_engine_keys(
        &mut self,
        changed: &[(Target, KnobValue)],
    ) -> Result<(), ApplyError> {
        self.note_engine_text(changed).await?;
        let result = self.apply_engine(changed).await;
        let keys = changed.iter().filter(|(target, _)| is_engine(target));
        match &result {
            Ok(()) => {
                for (target, _) in keys {
                    self.note(&target.name, Ok(()))?;
                }
            }
            Err(error) if error.is_refusal() => {
                for (target, _) in keys {
                    let original = [(target.clone(), target.baseline.clone())];
                    let back = self.apply_engine(&original).await;
                    // The first rejection is the one to report.
                    let _ = self.note(&target.name, back);
                }
            }
            Err(_) => {}
        }
        result
    }

    pub(super) async fn apply_engine(
        &self,
        changed: &[(Target, KnobValue)],
    ) -> Result<(), ApplyError> {
        let mut settings = Vec::new();
        let mut names = Vec::new();
        for (target, value) in changed {
            if let Route::Engine { key, suffix } = &target.set {
                let text = engine_string::value_text(value, suffix);
                let text = text.map_err(|why| no_means(&target.name, &why))?;
                settings.push((key.clone(), text));
                names.push(target.name.clone());
            }
        }
        if settings.is_empty() {
            return Ok(());
        }
        let names = names.join(", ");
        let text = engine_string::set_all("", &settings).map_err(|why| no_means(&names, &why))?;
        let server = self.needed_server(&names)?;
        let command = doc! { "setParameter": 1, RUNTIME_CONFIG: &text };
        let refused = |error| parameter::refused(&names, error);
        server.command("admin", command).await.map_err(refused)?;
        // Up to 4.2 at least it reads back empty: there is nothing to compare.
        let said = engine_text(server).await.map_err(refused)?;
        for (key, wanted) in &settings {
            if let Some(found) = engine_string::lookup(&said, key)
                && found != *wanted
            {
                return Err(not_applied(key, wanted, &found));
            }
        }
        self.check_cache(changed).await
    }

    /// Records the runtime configuration's text, before any key is set.
    async fn note_engine_text(
        &mut self,
        changed: &[(Target, KnobValue)],
    ) -> Result<(), ApplyError> {
        let mut keys = (changed.iter()).filter(|(target, _)| is_engine(target));
        let Some((first, _)) = keys.next().filter(|_| self.originals.engine_text.is_none()) else {
            return Ok(());
        };
        let server = self.needed_server(&first.name)?;
        let text = engine_text(server)
            .await
            .map_err(|error| parameter::refused(&first.name, error))?;
        self.originals.engine_text = Some(text);
        Ok(self.originals.save(&self.folder)?)
    }

    /// Restores the runtime configuration's text to what it was before the first key was set. The keys have
    /// been put back: only the text is left, which newer servers keep, and setting it sets the keys that it
    /// names to their earlier values. A server that rejects it, for instance an empty one, keeps the text of
    /// the keys, which does no harm.
    pub(super) async fn restore_engine_text(&self) {
        let (Some(text), Some(server)) = (&self.originals.engine_text, &self.means.server) else {
            return;
        };
        if engine_text(server).await.is_ok_and(|now| now != *text) {
            let command = doc! { "setParameter": 1, RUNTIME_CONFIG: text };
            let _ = server.command("admin", command).await;
        }
    }

    async fn check_cache(&self, changed: &[(Target, KnobValue)]) -> Result<(), ApplyError> {
        let cache = changed
            .iter()
            .find_map(|(target, value)| match &target.set {
                Route::Engine { key, suffix } if key == CACHE_SIZE && suffix == "MB" => {
                    Some((target, value.number()?))
                }
                _ => None,
            });
        let Some((target, wanted)) = cache else {
            return Ok(());
        };
        let server = self.needed_server(&target.name)?;
        let reply = server.command("admin", doc! { "serverStatus": 1 }).await;
        let reply = reply.map_err(|error| parameter::refused(&target.name, error))?;
        let found = reply
            .get_document("wiredTiger")
            .and_then(|engine| engine.get_document("cache"))
            .ok()
            .and_then(|cache| cache.get("maximum bytes configured"))
            .and_then(|bytes: &Bson| value_of(bytes)?.number());
        match found {
            Some(bytes) if (bytes / MIB - wanted).abs() >= 1.0 => Err(not_applied(
                &target.name,
                &format!("{wanted} MiB"),
                &format!("{} MiB", bytes / MIB),
            )),
            _ => Ok(()),
        }
    }
}

pub(super) fn is_engine(target: &Target) -> bool {
    matches!(target.set, Route::Engine { .. })
}

/// Returns the runtime configuration's text.
pub(super) async fn engine_text(server: &Server) -> Result<String, ServerError> {
    let command = doc! { "getParameter": 1, RUNTIME_CONFIG: 1 };
    let reply = server.command("admin", command).await?;
    Ok(reply.get_str(RUNTIME_CONFIG).unwrap_or_default().to_owned())
}

fn not_applied(knob: &str, wanted: &str, found: &str) -> ApplyError {
    ApplyError::NotApplied {
        knob: knob.into(),
        wanted: wanted.into(),
        found: found.into(),
    }
}
