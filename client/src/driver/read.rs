//! Requests that read through a cursor.

use bson::{RawDocument, RawDocumentBuf};
use mongodb::{Cursor, SessionCursor};

use super::commands::{Aggregate, Find, parse};
use super::sender::Sender;
use crate::{Failure, OwnedReply, Request};

impl Sender {
    pub(super) async fn find(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let find: Find = parse(request.body.bytes())?;
        let collection = self.collection(&find.collection);
        let (filter, options) = find.split();
        let action = collection.find(filter).with_options(options);
        let done = match &mut self.session {
            None => match action.await {
                Ok(cursor) => read_all(cursor, reply).await,
                Err(error) => Err(error),
            },
            Some(session) => match action.session(&mut *session).await {
                Ok(cursor) => read_all_in(session, cursor, reply).await,
                Err(error) => Err(error),
            },
        };
        done.map_err(|error| self.failed(&error, request))
    }

    pub(super) async fn aggregate(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let aggregate: Aggregate = parse(request.body.bytes())?;
        let collection = self.collection(&aggregate.collection);
        let (pipeline, options) = aggregate.split();
        let action = collection.aggregate(pipeline).with_options(options);
        let action = action.with_type::<RawDocumentBuf>();
        let done = match &mut self.session {
            None => match action.await {
                Ok(cursor) => read_all(cursor, reply).await,
                Err(error) => Err(error),
            },
            Some(session) => match action.session(&mut *session).await {
                Ok(cursor) => read_all_in(session, cursor, reply).await,
                Err(error) => Err(error),
            },
        };
        done.map_err(|error| self.failed(&error, request))
    }
}

type DriverResult = Result<(), mongodb::error::Error>;

async fn read_all(mut cursor: Cursor<RawDocumentBuf>, reply: &mut OwnedReply) -> DriverResult {
    while cursor.advance().await? {
        note(cursor.current(), reply);
    }
    Ok(())
}

async fn read_all_in(
    session: &mut mongodb::ClientSession,
    mut cursor: SessionCursor<RawDocumentBuf>,
    reply: &mut OwnedReply,
) -> DriverResult {
    while cursor.advance(session).await? {
        note(cursor.current(), reply);
    }
    Ok(())
}

fn note(document: &RawDocument, reply: &mut OwnedReply) {
    reply.returned += 1;
    reply.bytes += document.as_bytes().len() as u64;
    if reply.first.is_none() {
        reply.first = Some(document.to_owned());
    }
}
