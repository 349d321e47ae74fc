//! `connections.short-lived`: clients open a connection for a few operations, and close it again.
//!
//! Each connection costs the server a thread, a handshake and, with a user, key derivation (SCRAM), which takes longer
//! than most operations. Drivers keep connections in a pool for as long as the client object lives.

use seekscope_run::Finding;
use seekscope_run::units::{format_count, whole};

use super::Detector;
use crate::wording::mongosh;
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["connections.short-lived"],
    detect,
};

/// Connections per second from which on they cost anything.
const OPENED_PER_S_MIN: f64 = 20.0;
/// A client object makes a few calls for each connection, and two more connections that watch the server.
const CALLS_EACH_MAX: f64 = 20.0;

fn detect(evidence: &Evidence<'_>, _: &Answers) -> Vec<Finding> {
    let rate = |name: &str| evidence.status_rate(&[name]);
    let Some((opened, calls)) = rate("connections.totalCreated").zip(rate("network.numRequests"))
    else {
        return Vec::new();
    };
    if opened < OPENED_PER_S_MIN || calls > opened * CALLS_EACH_MAX {
        return Vec::new();
    }
    let open = evidence.status(&["connections.current"]);
    let open = open.and_then(|series| series.points.last().map(|(_, open)| *open));
    let open = open.map_or(String::new(), |open| {
        format!(", and {} were open at the end", format_count(whole(open)))
    });
    vec![Finding {
        id: "connections.short-lived".into(),
        title: format!(
            "Clients open {} connections per second, one for every {:.1} requests",
            format_count(whole(opened)),
            (calls / opened).max(1.0)
        ),
        evidence: vec![
            format!(
                "The server accepted {opened:.1} connections and {calls:.0} requests per second{open} (serverStatus)."
            ),
            "A handshake, a thread and, where users log in, a derived key cost the server more than most operations. A \
             program that keeps one client object for as long as it runs has a pool of connections that last."
                .into(),
        ],
        confidence: "high".into(),
        risk: "The programs that connect have to be changed.".into(),
        command: mongosh(evidence.uri(), "db.serverStatus().connections"),
        ..Finding::default()
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Recording;

    fn connecting(opened: f64, requests: f64) -> Vec<Finding> {
        let mut recording = Recording::new();
        recording.rising("connections.totalCreated", opened);
        recording.rising("network.numRequests", requests);
        recording.steady("connections.current", 7.0);
        recording.findings(&DETECTOR)
    }

    #[test]
    fn ill() {
        let found = connecting(1400.0, 2300.0);
        assert!(
            found[0].title.contains("1,400 connections per second"),
            "{found:?}"
        );
        assert!(found[0].evidence[0].contains("7 were open"), "{found:?}");
    }

    #[test]
    fn healthy() {
        assert_eq!(connecting(5.0, 10.0), []);
        assert_eq!(connecting(50.0, 20_000.0), []);
        assert_eq!(Recording::new().findings(&DETECTOR), []);
    }
}
