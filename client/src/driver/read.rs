//! Requests that read through a cursor.

use bson::{RawDocument, RawDocumentBuf};

use super::commands::{Aggregate, Find, parse};
use super::sender::Sender;
use crate::{Failure, OwnedReply, Request};

/// Runs an action that creates a cursor, and reads it to its end; see [`in_session!`].
macro_rules! read_all {
    ($action:expr, $session:expr, $reply:expr) => {
        match &mut $session {
            None => {
                let mut cursor = $action.await?;
                while cursor.advance().await? {
                    note(cursor.current(), $reply);
                }
            }
            Some(session) => {
                let mut cursor = $action.session(&mut *session).await?;
                while cursor.advance(session).await? {
                    note(cursor.current(), $reply);
                }
            }
        }
    };
}

impl Sender {
    pub(super) async fn find(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        let find: Find = parse(request.body.bytes())?;
        let collection = self.collection(&find.collection);
        let (filter, options) = find.split();
        let done: mongodb::error::Result<()> = async {
            let action = collection.find(filter).with_options(options);
            read_all!(action, self.session, reply);
            Ok(())
        }
        .await;
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
        let done: mongodb::error::Result<()> = async {
            let action = collection.aggregate(pipeline).with_options(options);
            let action = action.with_type::<RawDocumentBuf>();
            read_all!(action, self.session, reply);
            Ok(())
        }
        .await;
        done.map_err(|error| self.failed(&error, request))
    }
}

fn note(document: &RawDocument, reply: &mut OwnedReply) {
    reply.returned += 1;
    reply.bytes += document.as_bytes().len() as u64;
    if reply.first.is_none() {
        reply.first = Some(document.to_owned());
    }
}
