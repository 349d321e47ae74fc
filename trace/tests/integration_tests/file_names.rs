//! Files that are deleted, renamed or opened during the trace.

use seekscope_run::PathState;
use seekscope_trace::BackendChoice;

use crate::support::{alone, trace};

#[test]
fn files_keep_their_identity_while_names_change() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (_, traced, _) = trace("come_and_go", folder.path(), BackendChoice::Auto);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let state = |path: &str| {
        traced
            .files
            .values()
            .find(|f| f.path == path)
            .map(|f| f.path_state)
    };
    assert_eq!(state(&path("deleted.dat")), Some(PathState::Deleted));
    assert_eq!(state(&path("new-name.dat")), Some(PathState::Known));
    assert_eq!(state(&path("late.dat")), Some(PathState::Known));
    assert_eq!(traced.events_on(&path("deleted.dat")).count(), 2);
    assert_eq!(traced.events_on(&path("new-name.dat")).count(), 2);
    assert_eq!(traced.events_on(&path("late.dat")).count(), 2);
    // The file that lived for microseconds may or may not be named, but nothing on it is missing.
    assert_eq!((traced.events.len(), traced.files.len()), (8, 4));
}
