//! Requests that write.
//!
//! The driver has no call for several updates or deletes in one command; such requests are sent as the commands
//! that they are, with the connection string's write concern, and the driver does not retry them.

use bson::Document;
use mongodb::options::{InsertManyOptions, InsertOneOptions, ReplaceOptions};
use mongodb::results::UpdateResult;

use super::commands::{DeleteStatement, UpdateStatement, Write, documents, parse};
use super::sender::{Sender, count, raw};
use crate::server_codes::kind_of_server_error;
use crate::{BsonWriter, Failure, OwnedReply, Request};

impl Sender {
    pub(super) async fn insert(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let write: Write = parse(request.body.bytes())?;
        let mut statements = documents(request.statements.bytes())?;
        let collection = self.collection(&write.collection);
        let inserted = statements.len() as u64;
        let single = if inserted == 1 {
            statements.pop()
        } else {
            None
        };
        let done = if let Some(document) = single {
            let mut options = InsertOneOptions::default();
            options.bypass_document_validation = write.bypass_document_validation;
            options.comment = write.comment;
            let action = collection.insert_one(document).with_options(options);
            in_session!(action, self.session).map(drop)
        } else {
            let mut options = InsertManyOptions::default();
            options.ordered = Some(write.ordered);
            options.bypass_document_validation = write.bypass_document_validation;
            options.comment = write.comment;
            let action = collection.insert_many(statements).with_options(options);
            in_session!(action, self.session).map(drop)
        };
        done.map_err(|error| self.insert_failed(&error, request, write.ordered))?;
        reply.matched = inserted;
        Ok(())
    }

    /// Returns the failure of an insert. An ordered insert ends at the first refused document, whose number the
    /// driver gives.
    fn insert_failed(
        &self,
        error: &mongodb::error::Error,
        request: &Request,
        ordered: bool,
    ) -> Failure {
        let mut failure = self.failed(error, request);
        if let mongodb::error::ErrorKind::InsertMany(e) = error.kind.as_ref()
            && let Some(first) = e.write_errors.as_ref().and_then(|errors| errors.first())
            && ordered
        {
            failure.done = first.index as u64;
        }
        failure
    }

    pub(super) async fn update(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let write: Write = parse(request.body.bytes())?;
        if request.statement_count != 1 {
            return self.several(request, &write, "updates", reply).await;
        }
        let statement: UpdateStatement = parse(request.statements.bytes())?;
        let result = self.update_by(write, statement).await;
        let result = result.map_err(|error| self.failed(&error, request))?;
        reply.matched = result.matched_count + u64::from(result.upserted_id.is_some());
        reply.modified = result.modified_count;
        Ok(())
    }

    async fn update_by(
        &mut self,
        write: Write,
        statement: UpdateStatement,
    ) -> mongodb::error::Result<UpdateResult> {
        let collection = self.collection(&write.collection);
        let mut options = statement.options();
        options.bypass_document_validation = write.bypass_document_validation;
        options.comment = write.comment;
        if let Some(document) = statement.replacement() {
            let mut replace = ReplaceOptions::default();
            replace.upsert = options.upsert;
            replace.hint = options.hint;
            replace.collation = options.collation;
            replace.bypass_document_validation = options.bypass_document_validation;
            replace.comment = options.comment;
            let action = collection.replace_one(statement.q, document);
            let action = action.with_options(replace);
            return in_session!(action, self.session);
        }
        let action = if statement.multi {
            collection.update_many(statement.q, statement.u)
        } else {
            collection.update_one(statement.q, statement.u)
        };
        let action = action.with_options(options);
        in_session!(action, self.session)
    }

    pub(super) async fn delete(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let write: Write = parse(request.body.bytes())?;
        if request.statement_count != 1 {
            return self.several(request, &write, "deletes", reply).await;
        }
        let statement: DeleteStatement = parse(request.statements.bytes())?;
        let collection = self.collection(&write.collection);
        let is_single = statement.limit == 1;
        let (filter, mut options) = statement.split();
        options.comment = write.comment;
        let action = if is_single {
            collection.delete_one(filter)
        } else {
            collection.delete_many(filter)
        };
        let action = action.with_options(options);
        let result = in_session!(action, self.session);
        let result = result.map_err(|error| self.failed(&error, request))?;
        reply.matched = result.deleted_count;
        Ok(())
    }

    async fn several(
        &mut self,
        request: &Request,
        write: &Write,
        array: &str,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let statements = documents(request.statements.bytes())?;
        let mut command = BsonWriter::default();
        let elements = request.body.bytes();
        command.begin().raw(&elements[4..elements.len() - 1]);
        command.begin_array(array);
        for (index, statement) in statements.iter().enumerate() {
            command.document(&index.to_string(), statement.as_bytes());
        }
        command.end();
        if self.session.is_none()
            && let Some(concern) = self.write_concern()
            && let Ok(concern) = bson::serialize_to_vec(&concern)
        {
            command.document("writeConcern", &concern);
        }
        command.end();
        let action = self
            .database
            .run_raw_command(raw(command.bytes().to_vec())?);
        let answer = in_session!(action, self.session);
        let answer = answer.map_err(|error| self.failed(&error, request))?;
        reply.matched = count(&answer, "n");
        reply.modified = count(&answer, "nModified");
        self.check(&answer, write.ordered, statements.len() as u64)
    }

    /// Checks a reply: a command of several statements succeeds although some were refused.
    fn check(&self, answer: &Document, ordered: bool, statements: u64) -> Result<(), Failure> {
        let refused = answer
            .get_array("writeErrors")
            .map_or(&[][..], Vec::as_slice);
        let text = |d: &Document, name: &str| d.get_str(name).unwrap_or_default().to_string();
        if let Some(first) = refused.first().and_then(bson::Bson::as_document) {
            let code = first.get_i32("code").unwrap_or(0);
            let message = text(first, "errmsg");
            let kind = kind_of_server_error(code, [], &message);
            let name = first.get_str("codeName").ok();
            let done = if ordered {
                count(first, "index")
            } else {
                statements.saturating_sub(refused.len() as u64)
            };
            return Err(Failure {
                done,
                ..self.failures.server_failure(kind, code, name, &message)
            });
        }
        match answer.get_document("writeConcernError") {
            Ok(e) => Err(self.failures.write_concern(
                e.get_i32("code").unwrap_or(0),
                &text(e, "codeName"),
                &text(e, "errmsg"),
                statements,
            )),
            Err(_) => Ok(()),
        }
    }
}
