//! Says what the balancer of a sharded cluster did.

use seekscope_run::units::format_count;

/// Says whether it was on, and whether chunks of the collections `of` were moved, during some work. Chunks of others are
/// not counted: the cluster's own move as well.
pub(crate) fn sentence(
    on: Option<bool>,
    moved_chunks: Option<u64>,
    of: &str,
    work: &str,
) -> String {
    let balancer = match on {
        Some(true) => "The balancer was on",
        Some(false) => "The balancer was off",
        None => "Whether the balancer was on is not known",
    };
    let moved = match moved_chunks {
        Some(0) => format!("no chunk of {of} was moved between shards"),
        Some(1) => format!("ONE CHUNK of {of} WAS MOVED between shards"),
        Some(moved) => {
            format!(
                "{} CHUNKS of {of} WERE MOVED between shards",
                format_count(moved)
            )
        }
        None => format!("whether chunks of {of} were moved between shards is not known"),
    };
    format!("{balancer}, and {moved} during {work}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_balancer_did_is_said() {
        let said = |on, moved_chunks| sentence(on, moved_chunks, "it", "the step");
        assert_eq!(
            said(Some(true), Some(0)),
            "The balancer was on, and no chunk of it was moved between shards during the step."
        );
        assert!(said(Some(false), Some(3)).contains("off, and 3 CHUNKS of it WERE MOVED"));
        assert!(said(None, None).contains("not known, and whether chunks"));
    }
}
