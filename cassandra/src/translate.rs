//! Translates requests to CQL. Pure: nothing is sent here.

use bson::{RawBsonRef, RawDocument};
use seekscope_client::request::Verb;
use seekscope_client::{Failure, FailureKind, Request};

use crate::document::{Bound, KEY_COLUMN, column_of};
use crate::table::quoted;

/// A statement to prepare, and its bound values.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) cql: String,
    pub(crate) values: Vec<Bound<'a>>,
}

/// The translation of a request.
#[derive(Debug)]
pub(crate) enum Plan<'a> {
    Read {
        table: &'a str,
        statement: Statement<'a>,
    },
    /// Statements sent one by one: their keys are on different nodes, where a batch would be slower.
    Write {
        table: &'a str,
        /// A whole document, for which the table is created if it is missing.
        model: Option<&'a RawDocument>,
        statements: Vec<Statement<'a>>,
    },
    CreateIndexes {
        table: &'a str,
        /// Name and column of each index.
        indexes: Vec<(String, String)>,
    },
    DropIndex {
        name: String,
    },
    DropTable {
        table: &'a str,
    },
    Count {
        table: &'a str,
    },
}

/// Translates for tables of `keyspace`; see the crate's description for what is supported.
pub(crate) fn translate<'a>(request: &'a Request, keyspace: &str) -> Result<Plan<'a>, Failure> {
    let body = RawDocument::from_bytes(request.body.bytes()).map_err(malformed)?;
    let (command, table) = match body.into_iter().next() {
        Some(Ok((command, RawBsonRef::String(table)))) => (command.as_str(), table),
        _ => return Err(unsupported("a command that names no collection")),
    };
    let place = format!("{}.{}", quoted(keyspace), quoted(table));
    match (request.verb, command) {
        (Verb::Find, "find") => Ok(Plan::Read {
            table,
            statement: find(body, &place)?,
        }),
        (Verb::Insert, "insert") => write(request, table, |d| Ok((upsert(d, &place)?, Some(d)))),
        (Verb::Update, "update") => write(request, table, |s| update(s, &place)),
        (Verb::Delete, "delete") => write(request, table, |s| delete(s, &place)),
        (Verb::Command, "createIndexes") => create_indexes(body, table),
        (Verb::Command, "dropIndexes") => Ok(Plan::DropIndex {
            name: index_name(table, body.get_str("index").map_err(malformed)?),
        }),
        (Verb::Command, "drop") => Ok(Plan::DropTable { table }),
        (Verb::Command, "count") if is_absent_or_empty(body, "query")? => Ok(Plan::Count { table }),
        _ => Err(unsupported(&format!("the command {command}"))),
    }
}

fn find<'a>(body: &'a RawDocument, place: &str) -> Result<Statement<'a>, Failure> {
    let mut columns = "*".to_string();
    let mut limit = None;
    let mut filter = None;
    let mut is_sorted = false;
    for element in body.into_iter().skip(1) {
        let (name, value) = element.map_err(malformed)?;
        match (name.as_str(), value) {
            ("filter", RawBsonRef::Document(document)) => filter = Some(document),
            ("projection", RawBsonRef::Document(document)) => columns = projected(document)?,
            ("sort", RawBsonRef::Document(document)) => {
                is_sorted = matches!(only(document), Some(("_id", direction)) if is_one(direction));
                if !is_sorted {
                    return Err(unsupported("any order other than that of _id"));
                }
            }
            ("limit", value @ (RawBsonRef::Int32(_) | RawBsonRef::Int64(_))) => {
                limit = Some(Bound(value));
            }
            ("singleBatch" | "batchSize" | "comment", _) => {}
            (other, _) => return Err(unsupported(&format!("find's {other}"))),
        }
    }
    let (field, wanted) = filter.and_then(only).ok_or_else(|| no_key("find"))?;
    let key = quoted(column_of(field));
    match wanted {
        // A row by its key, or the rows that an index finds.
        value if is_plain(value) => {
            let limit = limit.filter(|_| field != "_id");
            let tail = if limit.is_some() { " LIMIT ?" } else { "" };
            let values = [Some(Bound(value)), limit];
            Ok(Statement {
                cql: format!("SELECT {columns} FROM {place} WHERE {key} = ?{tail}"),
                values: values.into_iter().flatten().collect(),
            })
        }
        RawBsonRef::Document(range) if field == "_id" && is_sorted => {
            let (Some(("$gte", from)), Some(limit)) = (only(range), limit) else {
                return Err(no_key("find"));
            };
            Ok(Statement {
                cql: format!(
                    "SELECT {columns} FROM {place} WHERE token({key}) >= token(?) LIMIT ?"
                ),
                values: vec![Bound(from), limit],
            })
        }
        _ => Err(no_key("find")),
    }
}

/// Returns the columns that a projection includes.
fn projected(projection: &RawDocument) -> Result<String, Failure> {
    let mut columns = vec![quoted(KEY_COLUMN)];
    for element in projection {
        let (field, included) = element.map_err(malformed)?;
        match (field.as_str(), is_one(included)) {
            ("_id", true) => {}
            ("_id", false) => {
                columns.remove(0);
            }
            (field, true) => columns.push(quoted(field)),
            (_, false) => return Err(unsupported("a projection that leaves fields out")),
        }
    }
    if columns.is_empty() {
        return Err(unsupported("a projection without fields"));
    }
    Ok(columns.join(", "))
}

/// A statement, and the whole document that it writes, if any.
type Change<'a> = (Statement<'a>, Option<&'a RawDocument>);

fn write<'a>(
    request: &'a Request,
    table: &'a str,
    translate: impl Fn(&'a RawDocument) -> Result<Change<'a>, Failure>,
) -> Result<Plan<'a>, Failure> {
    let changes = documents(request)?.into_iter().map(translate);
    let (statements, models): (Vec<_>, Vec<_>) =
        changes.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok(Plan::Write {
        table,
        model: models.into_iter().flatten().next(),
        statements,
    })
}

fn upsert<'a>(document: &'a RawDocument, place: &str) -> Result<Statement<'a>, Failure> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for element in document {
        let (field, value) = element.map_err(malformed)?;
        columns.push(quoted(column_of(field.as_str())));
        values.push(Bound(value));
    }
    let marks = vec!["?"; values.len()].join(", ");
    Ok(Statement {
        cql: format!(
            "INSERT INTO {place} ({}) VALUES ({marks})",
            columns.join(", ")
        ),
        values,
    })
}

/// Translates `{q: {_id: …}, u: {$set: {…}}}`, which like every update in Cassandra creates the row if it
/// does not exist; `u` may also be a whole document.
fn update<'a>(statement: &'a RawDocument, place: &str) -> Result<Change<'a>, Failure> {
    let key = key_of(statement)?;
    let change = statement.get_document("u").map_err(malformed)?;
    if change.get("_id").map_err(malformed)? == Some(key.0) {
        return Ok((upsert(change, place)?, Some(change)));
    }
    let Some(("$set", RawBsonRef::Document(fields))) = only(change) else {
        return Err(unsupported(
            "an update that is neither $set nor a whole document",
        ));
    };
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for element in fields {
        let (field, value) = element.map_err(malformed)?;
        columns.push(format!("{} = ?", quoted(field.as_str())));
        values.push(Bound(value));
    }
    values.push(key);
    let key = quoted(KEY_COLUMN);
    let cql = format!("UPDATE {place} SET {} WHERE {key} = ?", columns.join(", "));
    Ok((Statement { cql, values }, None))
}

fn delete<'a>(statement: &'a RawDocument, place: &str) -> Result<Change<'a>, Failure> {
    let key = quoted(KEY_COLUMN);
    let cql = format!("DELETE FROM {place} WHERE {key} = ?");
    let values = vec![key_of(statement)?];
    Ok((Statement { cql, values }, None))
}

/// Returns the value of `{q: {_id: value}}`.
fn key_of(statement: &RawDocument) -> Result<Bound<'_>, Failure> {
    let filter = statement.get_document("q").map_err(malformed)?;
    match only(filter) {
        Some(("_id", value)) if is_plain(value) => Ok(Bound(value)),
        _ => Err(no_key("a write")),
    }
}

fn create_indexes<'a>(body: &'a RawDocument, table: &'a str) -> Result<Plan<'a>, Failure> {
    let mut indexes = Vec::new();
    for index in body.get_array("indexes").map_err(malformed)? {
        let RawBsonRef::Document(index) = index.map_err(malformed)? else {
            return Err(unsupported("an index that is not a document"));
        };
        let keys = index.get_document("key").map_err(malformed)?;
        let (Some((field, direction)), false) =
            (only(keys), matches!(index.get_bool("unique"), Ok(true)))
        else {
            return Err(unsupported("an index on several fields, or a unique one"));
        };
        if !is_one(direction) && direction.as_i32() != Some(-1) {
            return Err(unsupported(
                "an index that is neither ascending nor descending",
            ));
        }
        let name = index_name(table, index.get_str("name").map_err(malformed)?);
        indexes.push((name, column_of(field).to_string()));
    }
    Ok(Plan::CreateIndexes { table, indexes })
}

/// Returns an index's name: indexes share one namespace in a keyspace, of letters, digits and underscores.
fn index_name(table: &str, name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = format!("{table}_{name}");
    name.chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

fn documents(request: &Request) -> Result<Vec<&RawDocument>, Failure> {
    let mut rest = request.statements.bytes();
    let mut documents = Vec::new();
    while let Some(length) = rest.first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((document, after)) = rest.split_at_checked(length.max(5)) else {
            return Err(unsupported("a truncated list of statements"));
        };
        documents.push(RawDocument::from_bytes(document).map_err(malformed)?);
        rest = after;
    }
    Ok(documents)
}

/// Returns a document's only element.
fn only(document: &RawDocument) -> Option<(&str, RawBsonRef<'_>)> {
    let mut elements = document.into_iter();
    let (name, value) = elements.next()?.ok()?;
    elements.next().is_none().then_some((name.as_str(), value))
}

fn is_one(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Boolean(value) => value,
        RawBsonRef::Int32(number) => number == 1,
        RawBsonRef::Int64(number) => number == 1,
        RawBsonRef::Double(number) => number == 1.0,
        _ => false,
    }
}

fn is_plain(value: RawBsonRef<'_>) -> bool {
    !matches!(
        value,
        RawBsonRef::Document(_) | RawBsonRef::Array(_) | RawBsonRef::RegularExpression(_)
    )
}

fn is_absent_or_empty(body: &RawDocument, name: &str) -> Result<bool, Failure> {
    Ok(match body.get(name).map_err(malformed)? {
        None => true,
        Some(RawBsonRef::Document(document)) => document.is_empty(),
        Some(_) => false,
    })
}

fn no_key(what: &str) -> Failure {
    unsupported(&format!(
        "{what} other than by _id, or from an _id onwards with a limit"
    ))
}

fn unsupported(what: &str) -> Failure {
    Failure::of(
        FailureKind::Unsupported,
        "Unsupported",
        format!("{what} has no counterpart on Cassandra"),
    )
}

fn malformed(error: impl std::error::Error) -> Failure {
    Failure::of(FailureKind::Unsupported, "Unsupported", error.to_string())
}

#[cfg(test)]
#[path = "translate_tests.rs"]
mod tests;
