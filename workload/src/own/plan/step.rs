//! Converts operations as written to requests ready to be filled in.

use std::collections::HashMap;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use seekscope_client::OperationId;
use seekscope_client::request::Verb;

use super::fields::{DOCUMENT_BYTES_MAX, Fields, length};
use super::holes::{Scope, written, written_document};
use super::{Records, Slice, indexes};
use crate::own::error::Fault;
use crate::own::keys::Chooser;
use crate::own::language::{
    Action, Aggregate, Delete, Find, FindOne, Insert, Keys, Load, Operation, Ordered, Update,
};
use crate::own::values::{self, Entry, Shape, ShapeBuilder, Value};

/// The most bytes of one insert; servers accept messages of 48,000,000.
pub(crate) const BATCH_BYTES_MAX: u64 = 44 << 20;

/// A single request, or several, that count as one operation of a role.
#[derive(Debug)]
pub(crate) struct TransactionPlan {
    /// The operation that the whole counts as.
    pub(crate) operation: OperationId,
    pub(crate) steps: Vec<Step>,
    /// Set for a multi-document transaction.
    pub(crate) atomic: Option<Ends>,
    /// True if the rest is done even after a step failed.
    pub(crate) go_on: bool,
}

/// The operations that the ends of a multi-document transaction count as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) commit: OperationId,
    pub(crate) abort: OperationId,
}

/// One kind of request, and how often it is sent.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) operation: OperationId,
    pub(crate) records: Option<Arc<Records>>,
    pub(crate) chooser: Chooser,
    pub(crate) repeat: u32,
    pub(crate) action: StepAction,
    /// True if finding nothing is an error.
    pub(crate) must_find: bool,
}

#[derive(Debug)]
pub(crate) enum StepAction {
    Load {
        head: Shape,
        document: Arc<Shape>,
        batch: u64,
    },
    /// Inserts new records, or (`again`) the chosen one.
    Insert {
        head: Shape,
        document: Arc<Shape>,
        batch: u64,
        again: bool,
    },
    /// A single statement: updates and deletes.
    Statement {
        verb: Verb,
        head: Shape,
        statement: Shape,
    },
    Body {
        verb: Verb,
        body: Shape,
    },
}

/// State shared by all steps of a workload while they are created.
pub(super) struct Steps<'a, 'f> {
    pub(super) fields: &'a mut Fields<'f>,
    pub(super) records: &'a HashMap<String, Arc<Records>>,
    pub(super) documents: &'a HashMap<String, Arc<Shape>>,
    pub(super) slice: Slice,
}

/// A step that is not yet among a role's operations.
pub(super) struct Made {
    pub(super) records: Option<Arc<Records>>,
    pub(super) chooser: Chooser,
    pub(super) action: StepAction,
    pub(super) must_find: bool,
}

impl Steps<'_, '_> {
    /// Creates a step. `path` is the operation's; `is_first` says that no earlier step has chosen a record.
    pub(super) fn make(
        &mut self,
        path: &str,
        operation: &Operation,
        is_first: bool,
    ) -> Result<Made, Fault> {
        let (collection, keys) = collection_of(&operation.action);
        let path = format!("{path}.{}", kind_of(&operation.action));
        if let Some(collection) = collection.filter(|name| !self.records.contains_key(*name)) {
            let message = format!("there is no collection {collection:?}");
            return Err(Fault::new(format!("{path}.collection"), message));
        }
        let mut parameters = Vec::new();
        for (name, field) in operation.parameters.iter() {
            parameters.push(Arc::new(self.fields.field(&path, name, field, 0)?));
        }
        let scope = Scope {
            collection,
            parameters: &parameters,
        };
        let keys = keys.unwrap_or(if is_first { Keys::Uniform } else { Keys::Same });
        if is_first && keys == Keys::Same {
            return Err(Fault::new(
                format!("{path}.keys"),
                "\"same\" needs a step before this one",
            ));
        }
        let (action, must_find) = self.action(&path, operation, &scope)?;
        let records = collection.and_then(|name| self.records.get(name)).cloned();
        let loaded = records.as_ref().map_or(0, |records| records.loaded);
        // Not the path's key: the same records are hot for all operations on a collection.
        let seed = values::key_of(self.fields.seed(), collection.unwrap_or_default());
        let chooser = Chooser::new(keys, loaded, seed).ok_or_else(|| {
            Fault::new(
                format!("{path}.keys"),
                "records cannot be chosen in this way",
            )
        })?;
        Ok(Made {
            records,
            chooser,
            action,
            must_find,
        })
    }

    fn action(
        &mut self,
        path: &str,
        operation: &Operation,
        scope: &Scope<'_>,
    ) -> Result<(StepAction, bool), Fault> {
        let body = |verb, body: Shape| StepAction::Body { verb, body };
        Ok(match &operation.action {
            Action::Load(load) => (self.load(path, load, scope)?, false),
            Action::Insert(insert) => (self.insert(path, insert, scope)?, false),
            Action::FindOne(find) => (
                body(Verb::Find, self.find_one(path, find, scope)?),
                find.filter.is_none(),
            ),
            Action::Find(find) => (body(Verb::Find, self.find(path, find, scope)?), false),
            Action::Update(update) => {
                let must_find = update.filter.is_none() && !update.upsert;
                (self.update(path, update, scope)?, must_find)
            }
            Action::Delete(delete) => (self.delete(path, delete, scope)?, delete.filter.is_none()),
            Action::Aggregate(aggregate) => (
                body(Verb::Aggregate, self.aggregate(path, aggregate, scope)?),
                false,
            ),
            Action::Distinct(distinct) => {
                let filter = match &distinct.filter {
                    Some(filter) => written_document(filter, &format!("{path}.filter"))?,
                    None => Document::new(),
                };
                let command = doc! { "distinct": &distinct.collection, "key": &distinct.field, "query": filter };
                (
                    body(Verb::Command, self.command(path, command, scope)?),
                    false,
                )
            }
            Action::Command(command) => {
                let path = format!("{path}.command");
                let document = written_document(&command.command, &path)?;
                if document.is_empty() {
                    return Err(Fault::new(path, "names no command"));
                }
                (
                    body(Verb::Command, self.command(&path, document, scope)?),
                    false,
                )
            }
            Action::CreateIndex(create) => {
                let command = indexes::create_command(
                    &create.collection,
                    &create.index,
                    &format!("{path}.index"),
                )?;
                (
                    body(Verb::Command, self.command(path, command, scope)?),
                    false,
                )
            }
            Action::DropIndex(drop) => {
                let command = doc! { "dropIndexes": &drop.collection, "index": &drop.index };
                (
                    body(Verb::Command, self.command(path, command, scope)?),
                    false,
                )
            }
            Action::Transaction(_) => {
                return Err(Fault::new(path, "a transaction cannot hold another"));
            }
        })
    }

    fn delete(
        &mut self,
        path: &str,
        delete: &Delete,
        scope: &Scope<'_>,
    ) -> Result<StepAction, Fault> {
        let q = self.filter(path, delete.filter.as_ref(), scope)?;
        let limit = Bson::Int32(i32::from(!delete.many));
        let statement = self.shape_of(vec![("q", q), ("limit", constant(limit, path)?)]);
        let command = doc! { "delete": &delete.collection, "ordered": true };
        Ok(StepAction::Statement {
            verb: Verb::Delete,
            head: self.command(path, command, scope)?,
            statement,
        })
    }

    fn aggregate(
        &mut self,
        path: &str,
        aggregate: &Aggregate,
        scope: &Scope<'_>,
    ) -> Result<Shape, Fault> {
        let path_of_pipeline = format!("{path}.pipeline");
        let pipeline = written(&aggregate.pipeline, &path_of_pipeline)?;
        if !matches!(pipeline, Bson::Array(_)) {
            let why = "must be an array, or a JSON array in a string";
            return Err(Fault::new(path_of_pipeline, why));
        }
        let command =
            doc! { "aggregate": &aggregate.collection, "pipeline": pipeline, "cursor": {} };
        self.command(path, command, scope)
    }

    fn command(
        &mut self,
        path: &str,
        command: Document,
        scope: &Scope<'_>,
    ) -> Result<Shape, Fault> {
        scope.shape(&command, path, self.fields)
    }

    fn load(&mut self, path: &str, load: &Load, scope: &Scope<'_>) -> Result<StepAction, Fault> {
        let document = self.batch(path, &load.collection, load.batch)?;
        if self.records[&load.collection].loaded == 0 {
            let path = format!("collections.{}", load.collection);
            return Err(Fault::new(
                path,
                "records is 0, so there is nothing to load",
            ));
        }
        let head = self.command(
            path,
            doc! { "insert": &load.collection, "ordered": load.ordered },
            scope,
        )?;
        Ok(StepAction::Load {
            head,
            document,
            batch: load.batch.into(),
        })
    }

    fn insert(
        &mut self,
        path: &str,
        insert: &Insert,
        scope: &Scope<'_>,
    ) -> Result<StepAction, Fault> {
        let document = self.batch(path, &insert.collection, insert.batch)?;
        if insert.again && insert.batch != 1 {
            return Err(Fault::new(
                format!("{path}.batch"),
                "only one record at a time can be inserted again",
            ));
        }
        let head = self.command(
            path,
            doc! { "insert": &insert.collection, "ordered": true },
            scope,
        )?;
        Ok(StepAction::Insert {
            head,
            document,
            batch: insert.batch.into(),
            again: insert.again,
        })
    }

    fn batch(&mut self, path: &str, collection: &str, batch: u32) -> Result<Arc<Shape>, Fault> {
        let document = Arc::clone(&self.documents[collection]);
        let most = document.bytes_max().saturating_mul(batch.into());
        if !(1..=100_000).contains(&batch) || (most > BATCH_BYTES_MAX && batch > 1) {
            let fit = (BATCH_BYTES_MAX / document.bytes_max().max(1)).clamp(1, 100_000);
            return Err(Fault::new(
                format!("{path}.batch"),
                format!("1 to {fit} of these documents fit into a request"),
            ));
        }
        Ok(document)
    }

    fn filter(
        &mut self,
        path: &str,
        filter: Option<&toml::Value>,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let path = format!("{path}.filter");
        let filter = match filter {
            Some(filter) => written_document(filter, &path)?,
            None => doc! { "_id": "@key" },
        };
        Ok(Value::Document(scope.shape(&filter, &path, self.fields)?))
    }

    fn find_one(&mut self, path: &str, find: &FindOne, scope: &Scope<'_>) -> Result<Shape, Fault> {
        let filter = self.filter(path, find.filter.as_ref(), scope)?;
        let mut parts = vec![
            ("find", constant(find.collection.as_str().into(), path)?),
            ("filter", filter),
        ];
        if let Some(projection) = &find.projection {
            parts.push((
                "projection",
                self.option(path, "projection", projection, scope)?,
            ));
        }
        parts.push(("limit", constant(Bson::Int32(1), path)?));
        parts.push(("singleBatch", constant(Bson::Boolean(true), path)?));
        Ok(self.shape_of(parts))
    }

    fn find(&mut self, path: &str, find: &Find, scope: &Scope<'_>) -> Result<Shape, Fault> {
        let filter = self.filter(path, Some(&find.filter), scope)?;
        let mut parts = vec![
            ("find", constant(find.collection.as_str().into(), path)?),
            ("filter", filter),
        ];
        let options = [
            ("sort", &find.sort),
            ("projection", &find.projection),
            ("hint", &find.hint),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                parts.push((name, self.option(path, name, value, scope)?));
            }
        }
        if let Some(limit) = &find.limit {
            let path = format!("{path}.limit");
            let limit = length(limit, i32::MAX.unsigned_abs().into())
                .map_err(|why| Fault::new(path, why))?;
            parts.push(("limit", Value::Int64(limit)));
        }
        Ok(self.shape_of(parts))
    }

    /// Returns a sort, a projection or a hint.
    fn option(
        &mut self,
        path: &str,
        name: &str,
        value: &toml::Value,
        scope: &Scope<'_>,
    ) -> Result<Value, Fault> {
        let path = format!("{path}.{name}");
        if name == "hint"
            && value
                .as_str()
                .is_some_and(|text| !text.trim_start().starts_with('{'))
        {
            return values::bson_of(value)
                .and_then(super::fields::constant)
                .map_err(|why| Fault::new(path, why));
        }
        let document = written_document(value, &path)?;
        Ok(Value::Document(scope.shape(
            &document,
            &path,
            self.fields,
        )?))
    }

    fn update(
        &mut self,
        path: &str,
        update: &Update,
        scope: &Scope<'_>,
    ) -> Result<StepAction, Fault> {
        let q = self.filter(path, update.filter.as_ref(), scope)?;
        let u = self.change(path, update, scope)?;
        let statement = self.shape_of(vec![
            ("q", q),
            ("u", u),
            ("upsert", constant(Bson::Boolean(update.upsert), path)?),
            ("multi", constant(Bson::Boolean(update.many), path)?),
        ]);
        let head = self.command(
            path,
            doc! { "update": &update.collection, "ordered": true },
            scope,
        )?;
        Ok(StepAction::Statement {
            verb: Verb::Update,
            head,
            statement,
        })
    }

    /// Returns the `u` of an update statement.
    fn change(&mut self, path: &str, update: &Update, scope: &Scope<'_>) -> Result<Value, Fault> {
        let has_operators = !update.set.is_empty() || !update.inc.is_empty();
        match (&update.update, has_operators, update.replace) {
            (Some(written_update), false, false) => {
                let path = format!("{path}.update");
                let value = written(written_update, &path)?;
                let is_hole = value.as_str().is_some_and(|text| text.starts_with('@'));
                if !is_hole && !matches!(value, Bson::Document(_) | Bson::Array(_)) {
                    return Err(Fault::new(path, "must be a table or an array"));
                }
                scope.value(&value, &path, self.fields)
            }
            (None, true, false) => {
                let mut parts = Vec::new();
                for (operator, name, values) in
                    [("$set", "set", &update.set), ("$inc", "inc", &update.inc)]
                {
                    if !values.is_empty() {
                        parts.push((operator, self.fresh(&format!("{path}.{name}"), values)?));
                    }
                }
                Ok(Value::Document(self.shape_of(parts)))
            }
            (None, false, true) if !update.many => {
                let document = self.fields.document(&update.collection, false)?;
                Ok(Value::Document(document))
            }
            (None, false, true) => Err(Fault::new(
                format!("{path}.replace"),
                "only one document at a time can be replaced",
            )),
            _ => Err(Fault::new(
                path,
                "give set and inc, or update, or replace = true",
            )),
        }
    }

    fn fresh(
        &mut self,
        path: &str,
        values: &Ordered<crate::own::language::Field>,
    ) -> Result<Value, Fault> {
        // Documents may have such a field, but servers take no update of it.
        if values.get("").is_some() {
            return Err(Fault::new(path, "a field name must not be empty here"));
        }
        let shape = self.fields.shape(path, values, 0)?;
        if shape.bytes_max() > DOCUMENT_BYTES_MAX {
            return Err(Fault::new(
                path,
                format!("takes more than {DOCUMENT_BYTES_MAX} bytes"),
            ));
        }
        Ok(Value::Document(shape))
    }

    fn shape_of(&self, parts: Vec<(&str, Value)>) -> Shape {
        let mut builder = ShapeBuilder::default();
        for (name, value) in parts {
            builder.add(Entry {
                name: name.into(),
                key: 0,
                absent: 0.0,
                value,
            });
        }
        builder.finish()
    }
}

fn constant(value: Bson, path: &str) -> Result<Value, Fault> {
    super::fields::constant(value).map_err(|why| Fault::new(path, why))
}

/// Returns the field under which an action is written.
pub(super) fn kind_of(action: &Action) -> &'static str {
    match action {
        Action::Load(_) => "load",
        Action::Insert(_) => "insert",
        Action::FindOne(_) => "find_one",
        Action::Find(_) => "find",
        Action::Update(_) => "update",
        Action::Delete(_) => "delete",
        Action::Aggregate(_) => "aggregate",
        Action::Distinct(_) => "distinct",
        Action::Command(_) => "command",
        Action::CreateIndex(_) => "create_index",
        Action::DropIndex(_) => "drop_index",
        Action::Transaction(_) => "transaction",
    }
}

/// Returns the collection whose records an action chooses, and how.
pub(super) fn collection_of(action: &Action) -> (Option<&str>, Option<Keys>) {
    match action {
        Action::Load(load) => (Some(&load.collection), None),
        Action::Insert(insert) => (Some(&insert.collection), insert.keys),
        Action::FindOne(find) => (Some(&find.collection), find.keys),
        Action::Find(find) => (Some(&find.collection), find.keys),
        Action::Update(update) => (Some(&update.collection), update.keys),
        Action::Delete(delete) => (Some(&delete.collection), delete.keys),
        Action::Aggregate(aggregate) => (Some(&aggregate.collection), aggregate.keys),
        Action::Distinct(distinct) => (Some(&distinct.collection), distinct.keys),
        Action::Command(command) => (command.collection.as_deref(), command.keys),
        Action::CreateIndex(create) => (Some(&create.collection), None),
        Action::DropIndex(drop) => (Some(&drop.collection), None),
        Action::Transaction(_) => (None, None),
    }
}
