//! Maps a server's error code to a kind of failure, for all clients alike.
//!
//! Codes: MongoDB's `src/mongo/base/error_codes.yml`; which of them mean that the member is not the primary:
//! the specification "Server Discovery and Monitoring", section "not writable primary and node is recovering".

use crate::FailureKind;

/// The label of errors that may pass when the whole transaction is resent.
const TRANSIENT_LABEL: &str = "TransientTransactionError";

/// Returns the kind of an error that the server gave, by its code, labels and message.
pub(crate) fn kind_of_server_error<'a>(
    code: i32,
    labels: impl IntoIterator<Item = &'a str>,
    message: &str,
) -> FailureKind {
    match code {
        11000 | 11001 | 12582 => FailureKind::Duplicate,
        // InterruptedAtShutdown, ShutdownInProgress, PrimarySteppedDown, NotWritablePrimary,
        // InterruptedDueToReplStateChange, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, LegacyNotPrimary
        11600 | 91 | 189 | 10107 | 11602 | 13435 | 13436 | 10058 => FailureKind::NotPrimary,
        // Unauthorized, AuthenticationFailed
        13 | 18 => FailureKind::Unauthorised,
        // OutOfDiskSpace
        14031 => FailureKind::NoSpace,
        // WriteConflict
        112 => FailureKind::Transient,
        // WriteConcernFailed, UnsatisfiableWriteConcern
        64 | 100 => FailureKind::WriteConcern,
        // HostUnreachable, HostNotFound, NetworkTimeout, NetworkInterfaceExceededTimeLimit, SocketException: a mongos
        // has lost its shard, which may have done the write
        6 | 7 | 89 | 202 | 9001 => FailureKind::Connection,
        _ if labels.into_iter().any(|label| label == TRANSIENT_LABEL) => FailureKind::Transient,
        _ if message.contains("No space left on device") => FailureKind::NoSpace,
        _ => FailureKind::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_before_labels_and_labels_before_text() {
        let kind =
            |code, labels: &[&str], text| kind_of_server_error(code, labels.iter().copied(), text);
        assert_eq!(kind(11000, &[], "E11000"), FailureKind::Duplicate);
        assert_eq!(kind(189, &[], ""), FailureKind::NotPrimary);
        assert_eq!(kind(251, &[TRANSIENT_LABEL], ""), FailureKind::Transient);
        let text = "28: No space left on device";
        assert_eq!(kind(8, &[], text), FailureKind::NoSpace);
        assert_eq!(kind(2, &["Other"], "bad value"), FailureKind::Server);
    }

    #[test]
    fn a_write_to_a_shard_that_was_lost_is_in_doubt() {
        let text = "Write results unavailable from h:1 :: caused by :: Connection reset by peer";
        let kind = kind_of_server_error(6, [], text);
        let failure = crate::Failure::of(kind, "HostUnreachable", text);
        assert!(failure.leaves_doubt(), "{failure:?}");
    }
}
