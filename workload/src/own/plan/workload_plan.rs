//! Builds the whole workload, checked and ready to run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bson::Document;
use seekscope_client::BsonWriter;

use super::changes::Changes;
use super::fields::Fields;
use super::indexes::create_command;
use super::records::{Records, Slice};
use super::role::{RolePlan, actions};
use super::step::{Steps, collection_of};
use crate::collection_name;
use crate::own::error::{Fault, OwnError};
use crate::own::language::{self, Action, Arrivals, RateShare, Source, When, WorkloadFile};
use crate::own::values::{Context, Shape};
use crate::sharding::LoadedCollection;

/// Settings of a run in addition to a workload's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanOptions {
    /// Factor on every collection's `records`; the result is at least 1.
    pub scale: f64,
    /// The number of this process among those that run it together.
    pub slice: Slice,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            scale: 1.0,
            slice: Slice {
                number: 0,
                count: 1,
            },
        }
    }
}

/// A workload, checked and ready to run.
#[derive(Debug)]
pub struct Plan {
    pub name: String,
    pub description: String,
    pub seed: u64,
    pub collections: Vec<CollectionPlan>,
    pub phases: Vec<PhasePlan>,
}

/// A collection, its documents and its indexes.
#[derive(Debug)]
pub struct CollectionPlan {
    pub name: String,
    pub(crate) document: Arc<Shape>,
    pub(crate) records: Arc<Records>,
    /// `createIndexes` commands to run before the first phase.
    pub indexes_before: Vec<Document>,
    /// `createIndexes` commands to run after phase number `.0`, which loads the collection.
    pub indexes_after: Vec<(usize, Document)>,
    pub(crate) changes: Changes,
}

impl CollectionPlan {
    /// Returns what loading inserts, over all processes.
    pub fn loaded(&self) -> LoadedCollection<'_> {
        let write = |record, writer: &mut BsonWriter| self.write_document(record, writer);
        LoadedCollection::written(&self.name, self.records(), write)
    }

    /// Returns how many records loading inserts, over all processes.
    pub fn records(&self) -> u64 {
        self.records.loaded
    }

    /// Appends the document that is inserted for a record.
    pub fn write_document(&self, record: u64, writer: &mut BsonWriter) {
        self.document
            .write_document(Context { record, draw: 0 }, writer);
    }

    /// Returns the largest possible size of a document, bytes.
    pub fn document_bytes_max(&self) -> u64 {
        self.document.bytes_max()
    }
}

/// Roles that run at the same time.
#[derive(Debug)]
pub struct PhasePlan {
    pub name: String,
    pub pause: Duration,
    pub roles: Vec<RolePlan>,
}

impl Plan {
    /// Parses and checks a text.
    pub fn parse(source: Source<'_>, options: PlanOptions) -> Result<Self, OwnError> {
        let file = source.parse()?;
        Self::new(&file, options).map_err(|fault| source.error(&fault))
    }

    fn new(file: &WorkloadFile, options: PlanOptions) -> Result<Self, Fault> {
        check_names(file)?;
        let scaled = |name: &str| {
            let records = file
                .collections
                .get(name)
                .map_or(0, |collection| collection.records);
            scale(records, options.scale)
        };
        let mut fields = Fields::new(file, &scaled);
        let (mut records, mut documents) = (HashMap::new(), HashMap::new());
        for (name, _) in file.collections.iter() {
            let grows = uses(
                file,
                name,
                |action| matches!(action, Action::Insert(insert) if !insert.again),
            );
            let of_collection = Records::new(scaled(name), options.slice, grows);
            records.insert(name.clone(), Arc::new(of_collection));
            documents.insert(name.clone(), Arc::new(fields.document(name, true)?));
        }
        let mut steps = Steps {
            fields: &mut fields,
            records: &records,
            documents: &documents,
            slice: options.slice,
        };
        let phases = file.phases.iter().enumerate();
        let phases = phases
            .map(|(index, phase)| phase_plan(phase, index, file, &mut steps))
            .collect::<Result<_, Fault>>()?;
        let mut collections = Vec::new();
        for (name, collection) in file.collections.iter() {
            let (indexes_before, indexes_after) = indexes(file, name, collection)?;
            collections.push(CollectionPlan {
                name: name.clone(),
                document: Arc::clone(&documents[name]),
                records: Arc::clone(&records[name]),
                indexes_before,
                indexes_after,
                changes: Changes::of(file, name),
            });
        }
        Ok(Self {
            name: file.name.clone(),
            description: file.description.clone(),
            seed: file.seed,
            collections,
            phases,
        })
    }
}

fn scale(records: u64, by: f64) -> u64 {
    if records == 0 || by == 1.0 {
        return records;
    }
    crate::generators::floor_u64((records as f64 * by.max(0.0)).round()).max(1)
}

fn check_names(file: &WorkloadFile) -> Result<(), Fault> {
    if file.name.trim().is_empty() {
        return Err(Fault::new("name", "must not be empty"));
    }
    for (name, collection) in file.collections.iter() {
        let path = format!("collections.{name}");
        if !collection_name::can_be_written(name) {
            return Err(Fault::new(
                path,
                "is not the name of a collection that can be written to",
            ));
        }
        if collection.records >= 1 << 53 {
            return Err(Fault::new(
                format!("{path}.records"),
                "at most 2^53 - 1 records are possible",
            ));
        }
    }
    let mut phases = HashSet::new();
    for (index, phase) in file.phases.iter().enumerate() {
        if !phases.insert(&phase.name) {
            return Err(Fault::new(
                format!("phases[{index}].name"),
                "another phase already has this name",
            ));
        }
        let mut roles = HashSet::new();
        for (place, role) in phase.roles.iter().enumerate() {
            if !roles.insert(&role.name) {
                let path = format!("phases[{index}].roles[{place}].name");
                return Err(Fault::new(
                    path,
                    "another role of the phase already has this name",
                ));
            }
        }
        if !phase.roles.is_empty() && phase.roles.iter().all(|role| role.background) {
            let message = "all roles run in the background, so the phase would never end";
            return Err(Fault::new(format!("phases[{index}].roles"), message));
        }
    }
    Ok(())
}

/// Returns whether any operation on the collection matches.
fn uses(file: &WorkloadFile, collection: &str, is_meant: impl Fn(&Action) -> bool) -> bool {
    let mut actions = file
        .phases
        .iter()
        .flat_map(|phase| &phase.roles)
        .flat_map(actions);
    actions.any(|action| collection_of(action).0 == Some(collection) && is_meant(action))
}

fn phase_plan(
    phase: &language::Phase,
    index: usize,
    file: &WorkloadFile,
    steps: &mut Steps<'_, '_>,
) -> Result<PhasePlan, Fault> {
    let mut roles = Vec::new();
    for (place, role) in phase.roles.iter().enumerate() {
        let path = format!("phases[{index}].roles[{place}]");
        if let Arrivals::Share(share) = &role.arrivals {
            check_share(share, &file.phases[..index])
                .map_err(|why| Fault::new(format!("{path}.arrivals.share"), why))?;
        }
        roles.push(RolePlan::new(role, &path, phase, steps)?);
    }
    Ok(PhasePlan {
        name: phase.name.clone(),
        pause: phase.pause.0,
        roles,
    })
}

fn check_share(share: &RateShare, earlier: &[language::Phase]) -> Result<(), String> {
    let phase = earlier.iter().find(|phase| phase.name == share.phase);
    let phase = phase.ok_or_else(|| format!("no earlier phase is called {:?}", share.phase))?;
    match &share.role {
        Some(name) if !phase.roles.iter().any(|role| role.name == *name) => {
            Err(format!("phase {:?} has no role {name:?}", share.phase))
        }
        None if phase.roles.len() != 1 => Err(format!(
            "phase {:?} has several roles; name one of them",
            share.phase
        )),
        _ => Ok(()),
    }
}

type Indexes = (Vec<Document>, Vec<(usize, Document)>);

fn indexes(
    file: &WorkloadFile,
    name: &str,
    collection: &language::Collection,
) -> Result<Indexes, Fault> {
    let loads = |action: &Action| matches!(action, Action::Load(load) if load.collection == name);
    let loading = file
        .phases
        .iter()
        .rposition(|phase| phase.roles.iter().flat_map(actions).any(loads));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (place, index) in collection.indexes.iter().enumerate() {
        let path = format!("collections.{name}.indexes[{place}]");
        let command = create_command(name, index, &path)?;
        match (index.when, loading) {
            (When::BeforeLoad, _) => before.push(command),
            (When::AfterLoad, Some(phase)) => after.push((phase, command)),
            (When::AfterLoad, None) => {
                return Err(Fault::new(
                    format!("{path}.when"),
                    "no phase loads this collection",
                ));
            }
        }
    }
    Ok((before, after))
}
