//! Says what the balancer of a sharded cluster did.

use seekscope_run::units::format_count;

/// Says whether it was on, and whether chunks were moved, during some work.
pub(crate) fn sentence(on: Option<bool>, moved_chunks: Option<u64>, work: &str) -> String {
    let balancer = match on {
        Some(true) => "The balancer was on",
        Some(false) => "The balancer was off",
        None => "Whether the balancer was on is not known",
    };
    let moved = match moved_chunks {
        Some(0) => "no chunk was moved between shards".to_string(),
        Some(1) => "ONE CHUNK WAS MOVED between shards".to_string(),
        Some(moved) => format!("{} CHUNKS WERE MOVED between shards", format_count(moved)),
        None => "whether chunks were moved between shards is not known".into(),
    };
    format!("{balancer}, and {moved} during {work}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_balancer_did_is_said() {
        let said = |on, moved_chunks| sentence(on, moved_chunks, "the step");
        assert_eq!(
            said(Some(true), Some(0)),
            "The balancer was on, and no chunk was moved between shards during the step."
        );
        assert!(said(Some(false), Some(3)).contains("off, and 3 CHUNKS WERE MOVED"));
        assert!(said(None, None).contains("not known, and whether chunks"));
    }
}
