//! Checks that acknowledged writes are there afterwards, like [`seekscope_workload::verification`], on
//! Cassandra.

use bson::{Bson, RawBson, RawDocumentBuf};
use scylla::value::Row;
use seekscope_run::Verification;
use seekscope_stats::SplitMix64;
use seekscope_workload::{ExpectedData, VerificationOptions};

use crate::document::{Bound, KEY_COLUMN, document_of};
use crate::session::{malformed, rows};
use crate::table::quoted;
use crate::{CqlError, OwnedKeyspace};

/// Counts every row and reads a sample back. The figures are sums over all tables.
pub async fn verify(
    keyspace: &OwnedKeyspace,
    expected: &[&dyn ExpectedData],
    options: &VerificationOptions,
) -> Result<Verification, CqlError> {
    let failed = || CqlError::request("verifying");
    let mut found = Verification {
        in_doubt: options.in_doubt,
        ..Verification::default()
    };
    let mut random = SplitMix64::new(options.seed);
    for data in expected {
        if let Some(count) = data.expected_count() {
            let place = place(keyspace, data.collection());
            let counted = keyspace.session.count(&place, &quoted(KEY_COLUMN)).await;
            found.add_count(count, counted.map_err(failed())?);
        }
        for _ in 0..options.samples {
            let Some(id) = data.sample(&mut random) else {
                break;
            };
            found.sampled += 1;
            let document = read(keyspace, data.collection(), &id).await;
            match document.map_err(failed())? {
                None => found.missing += 1,
                Some(document) if !data.matches(&id, &document) => found.different += 1,
                Some(_) => {}
            }
        }
    }
    Ok(found)
}

async fn read(
    keyspace: &OwnedKeyspace,
    table: &str,
    id: &Bson,
) -> Result<Option<RawDocumentBuf>, seekscope_client::Failure> {
    let session = &keyspace.session;
    let key = quoted(KEY_COLUMN);
    let select = format!("SELECT * FROM {} WHERE {key} = ?", place(keyspace, table));
    let prepared = session.prepared(table, &select).await?;
    let id = RawBson::try_from(id.clone()).map_err(|error| malformed(&error))?;
    let result = session.execute(&prepared, (Bound(id.as_raw_bson_ref()),));
    let found = rows(result.await?)?;
    let row = found.maybe_first_row::<Row>();
    let columns = found.column_specs();
    let names = columns.iter().map(|column| column.name());
    Ok(row
        .map_err(|error| malformed(&error))?
        .map(|row| document_of(names, row, &prepared.binary)))
}

fn place(keyspace: &OwnedKeyspace, table: &str) -> String {
    format!(
        "{}.{}",
        quoted(&keyspace.session.target.keyspace),
        quoted(table)
    )
}
