//! Names of collections, as a user may choose them.

/// Longest name, bytes. With the database's it stays below the 255 that servers from 4.4 allow.
const BYTES_MAX: usize = 190;

/// Returns whether a collection of this name can be made and written to; the server keeps names that begin with
/// "system." to itself.
pub(crate) fn can_be_written(name: &str) -> bool {
    let is_allowed = !name.contains(['$', '\0']) && !name.starts_with("system.");
    !name.is_empty() && name.len() <= BYTES_MAX && is_allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_keeps_to_itself_cannot() {
        for name in ["usertable", "a.b", "system", "é"] {
            assert!(can_be_written(name), "{name}");
        }
        let long = "a".repeat(BYTES_MAX + 1);
        for name in ["", "a$b", "a\0", "system.profile", &long] {
            assert!(!can_be_written(name), "{name}");
        }
    }
}
