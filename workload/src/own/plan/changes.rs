//! Determines what a workload may change in a collection's documents, so that the rest can be verified.

use std::collections::BTreeSet;

use seekscope_client::READING_COMMANDS;

use crate::own::language::{Action, WorkloadFile};

use super::role::actions;
use super::step::collection_of;

/// The changes that a workload makes, by field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// Fields that updates write.
    pub(crate) fields: BTreeSet<String>,
    /// Any field except `_id` may differ.
    pub(crate) any_field: bool,
    /// Documents may be added and removed in ways that are not counted.
    pub(crate) any_document: bool,
}

impl Changes {
    pub(super) fn of(file: &WorkloadFile, collection: &str) -> Self {
        let mut changes = Self::default();
        let roles = file.phases.iter().flat_map(|phase| &phase.roles);
        for action in roles.flat_map(actions) {
            changes.add(action, collection);
        }
        changes
    }

    fn add(&mut self, action: &Action, collection: &str) {
        let is_here = collection_of(action).0 == Some(collection);
        match action {
            Action::Update(update) if is_here => {
                let names = update.set.iter().chain(update.inc.iter());
                let first = |name: &str| name.split('.').next().unwrap_or_default().to_string();
                self.fields.extend(names.map(|(name, _)| first(name)));
                self.any_field |= update.update.is_some() || update.replace || update.upsert;
                self.any_document |= update.upsert;
            }
            Action::Delete(_) if is_here => self.any_document = true,
            Action::Insert(insert) if is_here => self.any_document |= insert.again,
            Action::Command(command) => {
                let text = match &command.command {
                    toml::Value::Table(table) => table.keys().next().cloned().unwrap_or_default(),
                    other => other.to_string(),
                };
                let text = text.trim_start_matches(['{', '\'', '"', ' ', '\\', '\n']);
                let name = text.split(|c: char| !c.is_ascii_alphanumeric()).next();
                let reads = name.is_some_and(|name| READING_COMMANDS.contains(&name));
                self.any_document |= !reads;
            }
            Action::Aggregate(aggregate) => {
                let text = aggregate.pipeline.to_string();
                self.any_document |= text.contains("$out") || text.contains("$merge");
            }
            _ => {}
        }
    }
}
