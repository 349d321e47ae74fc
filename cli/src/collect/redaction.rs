//! Replaces names with salted hashes: the same name has the same hash everywhere in a bundle.

use std::collections::BTreeSet;

use anyhow::Result;
use seekscope_run::{CounterSample, FileRecord, MemberRun, RunDocument};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::stripping::without_uri_options;

/// Length of a hash: enough that no two of a run's names collide.
const HASH_BYTES: usize = 5;
/// Parts of the document that contain names. The rest is numbers and words of ours.
const PARTS: [&str; 9] = [
    "arguments",
    "outcome_reason",
    "device",
    "target",
    "limitations",
    "phases",
    "layout",
    "examination",
    "findings",
];
/// Fields with words of ours, which may also be names of collections.
const OWN_WORDS: [&str; 15] = [
    "state",
    "deployment",
    "kind",
    "change",
    "compressor",
    "confidence",
    "unit",
    "names",
    "id",
    "disk",
    "device",
    "filesystem",
    "variant",
    "backend",
    "lacking",
];
/// Fields with the names that we give to the folders of members' runs; elsewhere they hold folders of the user.
const FOLDERS: [&str; 2] = ["folder", "run"];
/// Lists of settings, whose names come from the server.
const SETTINGS: [&str; 2] = ["options", "parameters"];

/// Replaces names with hashes.
pub struct Redaction {
    /// Name → hash, the longest name first. `None`: names are kept.
    hashes: Option<Vec<(String, String)>>,
}

impl Redaction {
    /// Returns a redaction that changes nothing.
    pub fn none() -> Self {
        Self { hashes: None }
    }

    /// Returns a redaction for the names of a run, or of several: what one of them says of another has names of both.
    pub fn hashing(names: BTreeSet<String>, salt: &[u8]) -> Self {
        let hash = |name: String| {
            let hash = Sha256::new()
                .chain_update(salt)
                .chain_update(&name)
                .finalize();
            let digits: String = hash
                .iter()
                .take(HASH_BYTES)
                .map(|b| format!("{b:02x}"))
                .collect();
            (name, format!("x{digits}"))
        };
        let mut hashes: Vec<(String, String)> = names.into_iter().map(hash).collect();
        hashes.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self {
            hashes: Some(hashes),
        }
    }

    /// Replaces names wherever they occur as separate words.
    fn text(&self, text: &str) -> String {
        let Some(hashes) = &self.hashes else {
            return text.to_string();
        };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut after_word = false;
        while let Some(first) = rest.chars().next() {
            let found = (!after_word)
                .then(|| hashes.iter().find(|(name, _)| begins(rest, name)))
                .flatten();
            if let Some((name, hash)) = found {
                out.push_str(hash);
                rest = &rest[name.len()..];
                after_word = true;
            } else {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                after_word = is_of_word(first);
            }
        }
        out
    }

    /// Redacts the document, if anything is replaced at all.
    pub fn document(&self, document: &mut RunDocument) -> Result<()> {
        if self.hashes.is_none() {
            return Ok(());
        }
        let mut value = serde_json::to_value(&*document)?;
        for part in PARTS {
            if let Some(value) = value.get_mut(part) {
                self.value(value, false);
            }
        }
        *document = serde_json::from_value(value)?;
        Ok(())
    }

    fn value(&self, value: &mut Value, is_setting: bool) {
        match value {
            Value::String(text) => *text = self.text(&without_uri_options(text)),
            Value::Array(values) => values.iter_mut().for_each(|v| self.value(v, is_setting)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_ours =
                        |folder: &Value| folder.as_str().is_some_and(MemberRun::is_folder);
                    let own = OWN_WORDS.contains(&name.as_str())
                        || (is_setting && name == "name")
                        || (FOLDERS.contains(&name.as_str()) && is_ours(value));
                    // Only words are spared, not the contents of a field of the same name.
                    if !(own && value.is_string()) {
                        self.value(value, SETTINGS.contains(&name.as_str()));
                    }
                }
            }
            _ => {}
        }
    }

    pub fn file(&self, file: &mut FileRecord) {
        file.path = self.text(&file.path);
        for name in [&mut file.namespace, &mut file.member]
            .into_iter()
            .flatten()
        {
            *name = self.text(name);
        }
    }

    /// Redacts counters of other members, whose sources contain their names.
    pub fn counter(&self, sample: &mut CounterSample) {
        if sample.source.contains('@') {
            sample.source = self.text(&sample.source);
        }
    }
}

/// Returns whether `text` begins with the name as a separate word.
fn begins(text: &str, name: &str) -> bool {
    let after = text.strip_prefix(name);
    after.is_some_and(|after| !after.starts_with(is_of_word))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::super::names::names;
    use super::*;

    fn redaction(names: &[(&str, &str)]) -> Redaction {
        let mut hashes: Vec<(String, String)> = names
            .iter()
            .map(|(name, hash)| (name.to_string(), hash.to_string()))
            .collect();
        hashes.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Redaction {
            hashes: Some(hashes),
        }
    }

    #[test]
    fn whole_words_are_replaced_the_longest_first() {
        let redaction = redaction(&[
            ("orders", "x1"),
            ("orders.2024", "x2"),
            ("shop", "x3"),
            ("db1.example.com", "x4"),
            ("orders_1", "x5"),
        ]);
        for (text, expected) in [
            ("shop.orders.2024/orders_1", "x3.x2/x5"),
            (
                "`shop.orders` of mongodb://db1.example.com:27017/",
                "`x3.x1` of mongodb://x4:27017/",
            ),
            ("reorders workshop shopping", "reorders workshop shopping"),
            ("größe shop", "größe x3"),
        ] {
            assert_eq!(redaction.text(text), expected);
        }
    }

    /// A set that only `hello` names, and that otherwise occurs in a limitation alone.
    #[test]
    fn the_set_is_hashed_where_only_a_limitation_tells_it() {
        let mut document = RunDocument::begin("doctor", Vec::new());
        document.examination.get_or_insert_default().set = Some("rs-acme".into());
        document.limitations.push(seekscope_run::Limitation {
            what: "no trace".into(),
            why: "it is the primary of rs-acme, from which 2 others replicate".into(),
            remedy: "see `seekscope doctor mongodb://localhost/?appName=acme`".into(),
        });
        let redaction = Redaction::hashing(names(&document, &[]), b"salt");
        redaction.document(&mut document).unwrap();
        let text = serde_json::to_string(&document).unwrap();
        assert!(!text.contains("acme"), "{text}");
        assert!(text.contains("it is the primary of x"), "{text}");
    }

    /// The folder of the diagnostic files lies below the data, whose path is hashed wherever else it stands.
    #[test]
    fn no_folder_of_the_user_stays() {
        let mut document = RunDocument::begin("doctor", Vec::new());
        let examination = document.examination.get_or_insert_default();
        examination.ftdc.get_or_insert_default().folder = "/srv/acme/db/diagnostic.data".into();
        examination.member_runs.push(MemberRun {
            folder: MemberRun::folder_of(1),
            ..MemberRun::default()
        });
        let redaction = Redaction::hashing(names(&document, &[]), b"salt");
        redaction.document(&mut document).unwrap();
        let text = serde_json::to_string(&document).unwrap();
        assert!(!text.contains("acme"), "{text}");
        assert_eq!(
            document.examination.unwrap().member_runs[0].folder,
            "member-1"
        );
    }

    #[test]
    fn words_of_ours_stay() {
        let redaction = redaction(&[("primary", "x1"), ("storage", "x2")]);
        let mut value = serde_json::json!({
            "state": "primary",
            "name": "primary:27017",
            "options": [{ "name": "storage.dbPath", "value": "/storage" }],
        });
        redaction.value(&mut value, false);
        assert_eq!(value["state"], "primary");
        assert_eq!(value["name"], "x1:27017");
        assert_eq!(value["options"][0]["name"], "storage.dbPath");
        assert_eq!(value["options"][0]["value"], "/x2");
    }
}
