//! A request in MongoDB's terms, written into reused buffers.

use crate::BsonWriter;
use crate::wire::elements::Elements;

/// Commands that add, change and remove no documents; any other may.
pub const READING_COMMANDS: [&str; 18] = [
    "ping",
    "count",
    "distinct",
    "find",
    "explain",
    "collStats",
    "collstats",
    "dbStats",
    "dbstats",
    "serverStatus",
    "listIndexes",
    "listCollections",
    "createIndexes",
    "dropIndexes",
    "hello",
    "buildInfo",
    "validate",
    "currentOp",
];

/// One command, without what belongs to the connection (`$db`, `lsid`, `txnNumber`, `$clusterTime`, read and
/// write concern), which clients add.
#[derive(Debug, Default)]
pub struct Request {
    /// What it does; clients need not read the body to know.
    pub verb: Verb,
    /// The command as a BSON document, its first element the command's name:
    /// `{find: "usertable", filter: {_id: "user1"}, limit: 1, singleBatch: true}`. Insert, update and
    /// delete commands hold no statements; these are in `statements`.
    pub body: BsonWriter,
    /// Documents of an insert, or statements of an update (`{q, u, upsert, multi}`) or delete
    /// (`{q, limit}`), one BSON document after the other.
    pub statements: BsonWriter,
    /// How many documents or statements there are.
    pub statement_count: u32,
    pub in_transaction: Transaction,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verb {
    /// Reads documents through a cursor: `find` and `aggregate`. Rows beyond the first batch are
    /// fetched before the reply is given, unless the body says `singleBatch`.
    #[default]
    Find,
    Aggregate,
    Insert,
    Update,
    Delete,
    /// Any other command that has no cursor, such as `distinct`.
    Command,
}

/// The request's part in a multi-document transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transaction {
    #[default]
    None,
    /// The first statement of a new transaction.
    Start,
    Continue,
    /// `body` is `{commitTransaction: 1}` or `{abortTransaction: 1}`.
    End,
}

impl Request {
    /// Empties it; the buffers keep their capacity.
    pub fn clear(&mut self) {
        self.verb = Verb::default();
        self.body.clear();
        self.statements.clear();
        self.statement_count = 0;
        self.in_transaction = Transaction::default();
    }

    /// Returns the statements as they are sent; none if the count is zero.
    pub(crate) fn sequence(&self) -> &[u8] {
        if self.statement_count == 0 {
            return &[];
        }
        self.statements.bytes()
    }

    /// Returns whether a lost reply leaves it unknown what was written: of writes, of the end of a transaction, and
    /// of commands unless they are known to read only.
    pub(crate) fn is_write(&self) -> bool {
        match self.verb {
            Verb::Insert | Verb::Update | Verb::Delete => true,
            Verb::Find | Verb::Aggregate => false,
            Verb::Command => {
                let is_known = |name: &[u8]| READING_COMMANDS.iter().any(|n| n.as_bytes() == name);
                self.in_transaction == Transaction::End
                    || !self.command_name().is_some_and(is_known)
            }
        }
    }

    /// Returns the name of the body's first element.
    fn command_name(&self) -> Option<&[u8]> {
        let first = Elements::of(self.body.bytes()).ok()?.next()?;
        Some(first.ok()?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_writes_unless_it_is_known_to_read() {
        let mut request = Request {
            verb: Verb::Command,
            ..Request::default()
        };
        let mut is_write = |name: &str| {
            request.body.clear();
            request.body.begin().string(name, "orders").end();
            request.is_write()
        };
        assert!(is_write("findAndModify") && is_write("bulkWrite") && is_write("unheardOf"));
        assert!(!is_write("distinct") && !is_write("find") && !is_write("createIndexes"));
        request.in_transaction = Transaction::End;
        assert!(request.is_write());
    }
}
