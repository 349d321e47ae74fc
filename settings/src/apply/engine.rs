//! Keys of WiredTiger's connection, all in one command: the engine checks them against each other.

use mongodb::bson::{Bson, doc};
use seekscope_run::tune::KnobValue;

use super::{Applier, ApplyError, no_means, parameter};
use crate::discovery::{RUNTIME_CONFIG, value_of};
use crate::engine_string;
use crate::knob_file::Route;
use crate::originals::Target;

/// The cache is the one key whose size a server says.
const CACHE_SIZE: &str = "cache_size";
const MIB: f64 = (1 << 20) as f64;

impl Applier {
    /// Sets the keys. If the engine refuses them, each is put back alone: it may have taken some, and what it
    /// refuses even then it does not know.
    pub(super) async fn apply_engine_keys(
        &mut self,
        changed: &[(Target, KnobValue)],
    ) -> Result<(), ApplyError> {
        let result = self.apply_engine(changed).await;
        let engine = |target: &Target| matches!(target.set, Route::Engine { .. });
        let keys = changed.iter().filter(|(target, _)| engine(target));
        match &result {
            Ok(()) => {
                for (target, _) in keys {
                    self.note(&target.name, Ok(()))?;
                }
            }
            Err(ApplyError::Refused { .. }) => {
                for (target, _) in keys {
                    let original = [(target.clone(), target.baseline.clone())];
                    let back = self.apply_engine(&original).await;
                    // The first refusal is the one to be told.
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
        let reply = server
            .command("admin", doc! { "getParameter": 1, RUNTIME_CONFIG: 1 })
            .await
            .map_err(refused)?;
        // Up to 4.2 at least it reads back empty: nothing to compare there.
        let said = reply.get_str(RUNTIME_CONFIG).unwrap_or_default();
        for (key, wanted) in &settings {
            if let Some(found) = engine_string::lookup(said, key)
                && found != *wanted
            {
                return Err(not_applied(key, wanted, &found));
            }
        }
        self.check_cache(changed).await
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

fn not_applied(knob: &str, wanted: &str, found: &str) -> ApplyError {
    ApplyError::NotApplied {
        knob: knob.into(),
        wanted: wanted.into(),
        found: found.into(),
    }
}
