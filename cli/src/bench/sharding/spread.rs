//! Asks how the documents of a collection are spread over the shards.

use anyhow::Result;
use seekscope_run::units::format_count;
use seekscope_run::{Limitation, ShardedCollection};
use seekscope_server::{Namespace, ServerError, cluster};
use seekscope_workload::count_documents;

use super::remedy_for;
use crate::bench::target::Target;

/// Returns why the shards do not hold what was loaded, if they do not.
pub(super) fn lost(found: &ShardedCollection, in_doubt: u64) -> Option<String> {
    let (expected, documents) = found.expected.zip(found.documents)?;
    let real = documents.saturating_sub(found.orphans.unwrap_or(0));
    let may_be = expected..=expected.saturating_add(in_doubt);
    (!may_be.contains(&real)).then(|| {
        format!(
            "{}: the shards together hold {} documents, and {} were loaded",
            found.name,
            format_count(real),
            format_count(expected)
        )
    })
}

/// Asks how a collection is spread. The exact count, which takes a scan, is asked for only if the shards' own counts
/// do not add up to what is expected.
pub(super) async fn spread(
    target: &Target,
    namespace: &Namespace,
    expected: Option<u64>,
) -> Result<(ShardedCollection, Vec<Limitation>)> {
    let server = target.server()?;
    let mut missing = Vec::new();
    let chunks = note(
        cluster::chunks_by_shard(server, namespace).await,
        "chunks",
        namespace,
        &mut missing,
    );
    let parts = cluster::parts_by_shard(server, namespace).await;
    let parts = note(parts, "documents", namespace, &mut missing);
    // A login that may not list the shards still hears of those that have documents.
    let shards = cluster::shares(chunks.as_ref(), parts.as_ref(), target.shard_names());
    let found = ShardedCollection {
        name: namespace.collection().into(),
        expected,
        shards,
        ..ShardedCollection::default()
    }
    .summed_up(expected);
    if found.documents.is_none() || found.documents == expected {
        return Ok((found, missing));
    }
    let exact = count_documents(server, namespace).await?;
    let found = found.summed_up(Some(exact));
    if let Some(orphans) = found.orphans.filter(|orphans| *orphans > 0) {
        missing.push(Limitation {
            what: format!(
                "the figures of {namespace} by shard, and its sizes, include {} documents that are not in it",
                format_count(orphans)
            ),
            why: "chunks were moved, and shards still hold copies that have not been deleted yet or whose move has not finished"
                .into(),
            remedy: "sh.stopBalancer() while a benchmark runs".into(),
        });
    }
    Ok((found, missing))
}

fn note<T>(
    asked: Result<T, ServerError>,
    what: &str,
    namespace: &Namespace,
    missing: &mut Vec<Limitation>,
) -> Option<T> {
    let error = match asked {
        Ok(told) => return Some(told),
        Err(error) => error,
    };
    missing.push(Limitation {
        what: format!("the {what} of {namespace} by shard are not known"),
        remedy: remedy_for(&error),
        why: error.to_string(),
    });
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_must_hold_what_was_loaded() {
        let found = |documents, orphans| ShardedCollection {
            name: "c".into(),
            expected: Some(100),
            documents,
            orphans,
            ..ShardedCollection::default()
        };
        assert_eq!(lost(&found(Some(100), Some(0)), 0), None);
        assert_eq!(lost(&found(Some(120), Some(20)), 0), None);
        assert_eq!(lost(&found(Some(103), Some(0)), 3), None);
        assert_eq!(lost(&found(None, None), 0), None);
        for wrong in [found(Some(99), None), found(Some(104), Some(0))] {
            let reason = lost(&wrong, 3).unwrap();
            assert!(reason.contains("100 were loaded"), "{reason}");
        }
    }
}
