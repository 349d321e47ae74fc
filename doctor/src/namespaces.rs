//! Tells which collections are the server's own.

/// Databases that MongoDB keeps for itself: replication, sharding, users.
const INTERNAL: [&str; 3] = ["local.", "config.", "admin."];

/// Returns true for collections that no application filled: a follower reads the whole oplog by design, and
/// the oplog's file has room for what is written next.
pub fn is_internal(namespace: &str) -> bool {
    INTERNAL
        .iter()
        .any(|database| namespace.starts_with(database))
}

#[test]
fn of_the_server_itself() {
    assert!(is_internal("local.oplog.rs") && is_internal("config.chunks"));
    assert!(!is_internal("shop.orders") && !is_internal("locals.orders"));
}
