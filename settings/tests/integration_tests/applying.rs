//! Setting a mongod that answers as recorded, and putting it back.

use mongodb::bson::{Bson, Document, doc};
use seekscope_settings::originals::Originals;
use seekscope_settings::{
    Applier, Appliers, ApplyError, Catalogue, KnobEntry, Means, OriginalsError, ServerProgram,
    ServerReplies, Surroundings, Traffic, Unlocked, discover,
};

use crate::mongod::Mongod;
use crate::support::{configuration, knob};

const RUNTIME: &str = "wiredTigerEngineRuntimeConfig";

async fn entries(mongod: &Mongod, names: &[&str]) -> (Vec<KnobEntry>, Means) {
    let server = mongod.connect().await;
    let replies = ServerReplies::ask(&server).await.unwrap();
    assert_eq!(replies.refused, []);
    let unlocked = Unlocked {
        durability: true,
        ..Unlocked::default()
    };
    let surroundings = Surroundings {
        unlocked,
        ..Surroundings::default()
    };
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let found = discover(&file, &replies, &surroundings);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let means = Means {
        server: Some(server),
        ..Means::default()
    };
    (found.choose(&names).unwrap().entries, means)
}

fn set(name: &str, value: impl Into<Bson>) -> Document {
    doc! { "setParameter": 1, name: value.into() }
}

#[tokio::test]
async fn types_are_kept_and_engine_keys_travel_together() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let names = [
        "eviction_dirty_trigger",
        "eviction_dirty_target",
        "eviction_threads_max",
        "eviction_threads_min",
        "read_tickets",
        "checkpoint_seconds",
    ];
    let (entries, means) = entries(&mongod, &names).await;
    let mut applier = Applier::begin(&entries, means, folder.path()).unwrap();
    // What is as it was is not set: documented defaults might be wrong for this server.
    applier.apply(&configuration(&[])).await.unwrap();
    assert_eq!(mongod.set(), []);
    let values = configuration(&[
        ("eviction_dirty_trigger", 60),
        ("eviction_dirty_target", 50),
        ("eviction_threads_max", 8),
        ("read_tickets", 64),
        ("checkpoint_seconds", 120),
    ]);
    let applied = applier.apply(&values).await.unwrap();
    assert!(!applied.restarted && applied.local.is_empty());
    let engine = "eviction_dirty_trigger=60,eviction_dirty_target=50,eviction=(threads_max=8)";
    assert_eq!(
        mongod.set(),
        [
            set("wiredTigerConcurrentReadTransactions", 64),
            set("syncdelay", 120.0),
            set(RUNTIME, engine),
        ]
    );
    // Back to the baseline: what was touched is set, what is as wanted is not set again.
    applier
        .apply(&configuration(&[("read_tickets", 64)]))
        .await
        .unwrap();
    let back = "eviction_dirty_trigger=20,eviction_dirty_target=5,eviction=(threads_max=4)";
    assert_eq!(
        mongod.set()[3..],
        [set("syncdelay", 60.0), set(RUNTIME, back)]
    );

    let restored = applier.restore().await;
    assert!(
        restored.is_complete() && restored.not_noted.is_none(),
        "{restored:?}"
    );
    assert_eq!(restored.knobs.len(), 5);
    assert_eq!(
        mongod.parameter("wiredTigerConcurrentReadTransactions"),
        Bson::Int32(128)
    );
    assert_eq!(restored.put_back["read_tickets"], "put back from 64 to 128");
    let sent = mongod.set().len();
    let again = applier.restore().await;
    assert_eq!(again.knobs, restored.knobs);
    assert!(
        again.is_complete() && again.put_back.is_empty(),
        "{again:?}"
    );
    assert_eq!(mongod.set().len(), sent);
}

/// What its owner has started since is not ours to set, though it is the same server at the same address.
#[tokio::test]
async fn what_has_ended_with_its_process_is_not_set_in_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let (entries, means) = entries(&mongod, &["read_tickets", "eviction_dirty_trigger"]).await;
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    let changed = configuration(&[("read_tickets", 64), ("eviction_dirty_trigger", 60)]);
    applier.apply(&changed).await.unwrap();
    mongod.restart();
    // By a later process, which knows only what is on the disk.
    let applier = Applier::resume(folder.path(), means.clone());
    let mut applier = Appliers::from(applier.unwrap().unwrap());
    assert!(applier.is_outstanding());
    assert_eq!(applier.set_by_others().await, []);
    let sent = mongod.set().len();
    let restored = applier.restore().await;
    assert!(
        restored.is_complete() && applier.is_restored(),
        "{restored:?}"
    );
    assert_eq!(mongod.set().len(), sent);
    for knob in ["read_tickets", "eviction_dirty_trigger"] {
        let said = &restored.put_back[knob];
        assert!(said.starts_with("not set"), "{said}");
    }
}

/// A session goes on with a server that has been restarted: what is set from then on is the next process's.
#[tokio::test]
async fn what_is_set_in_the_next_process_is_put_back_there() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let (entries, means) = entries(&mongod, &["read_tickets"]).await;
    let mut applier = Applier::begin(&entries, means, folder.path()).unwrap();
    for tickets in [64, 32] {
        let changed = configuration(&[("read_tickets", tickets)]);
        applier.apply(&changed).await.unwrap();
        mongod.restart();
    }
    let changed = configuration(&[("read_tickets", 16)]);
    applier.apply(&changed).await.unwrap();
    let restored = applier.restore().await;
    assert_eq!(restored.put_back["read_tickets"], "put back from 16 to 128");
    assert_eq!(
        mongod.parameter("wiredTigerConcurrentReadTransactions"),
        Bson::Int32(128)
    );
}

#[tokio::test]
async fn the_engines_configuration_reads_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    mongod.keep_engine_text();
    let (entries, means) = entries(&mongod, &["eviction_dirty_trigger"]).await;
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    let changed = configuration(&[("eviction_dirty_trigger", 60)]);
    applier.apply(&changed).await.unwrap();
    let text = Bson::from("eviction_dirty_trigger=60");
    assert_eq!(mongod.parameter(RUNTIME), text);
    // By a later process, which knows only what is on the disk.
    let mut applier = Applier::resume(folder.path(), means).unwrap().unwrap();
    assert!(applier.restore().await.is_complete());
    let sent = mongod.set();
    let back = [set(RUNTIME, "eviction_dirty_trigger=20"), set(RUNTIME, "")];
    assert!(sent.ends_with(&back), "the keys first: {sent:?}");
    assert_eq!(mongod.parameter(RUNTIME), Bson::from(""));
}

#[tokio::test]
async fn what_others_have_set_since_is_left_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    mongod.keep_engine_text();
    let names = [
        "eviction_dirty_trigger",
        "eviction_threads_max",
        "eviction_threads_min",
        "read_tickets",
        "checkpoint_seconds",
    ];
    let (entries, means) = entries(&mongod, &names).await;
    let changed = configuration(&[
        ("eviction_dirty_trigger", 60),
        ("eviction_threads_max", 8),
        ("read_tickets", 64),
        ("checkpoint_seconds", 120),
    ]);
    let mut applier: Appliers = Applier::begin(&entries, means.clone(), folder.path())
        .unwrap()
        .into();
    applier.apply(&changed).await.unwrap();
    assert_eq!(applier.set_by_others().await, []);

    let server = mongod.connect().await;
    let theirs = "eviction=(threads_max=6),eviction_target=70";
    for command in [
        set("wiredTigerConcurrentReadTransactions", 32),
        set(RUNTIME, theirs),
    ] {
        server.command("admin", command).await.unwrap();
    }
    let mut applier: Appliers = Applier::resume(folder.path(), means)
        .unwrap()
        .unwrap()
        .into();
    let others = applier.set_by_others().await;
    let said: Vec<_> = others
        .iter()
        .map(|other| (other.knob.as_str(), other.found.as_str()))
        .collect();
    assert_eq!(
        said,
        [("eviction_threads_max", "6"), ("read_tickets", "32")]
    );
    applier.leave(&others).await;
    assert_eq!(applier.outstanding_in_words().len(), 2);
    assert!(applier.restore().await.is_complete());
    assert_eq!(
        mongod.parameter("wiredTigerConcurrentReadTransactions"),
        Bson::Int32(32)
    );
    assert_eq!(mongod.parameter("syncdelay"), Bson::Double(60.0));
    let sent = mongod.set();
    let back = [
        set(RUNTIME, "eviction_dirty_trigger=20"),
        set(RUNTIME, theirs),
    ];
    assert!(
        sent.ends_with(&back) || sent[..sent.len() - 1].ends_with(&back),
        "{sent:?}"
    );
    assert!(Originals::load(folder.path()).unwrap().unwrap().restored);
}

/// Nothing was set, so nothing is to be put back, by whomever.
#[tokio::test]
async fn a_user_without_the_right_changes_nothing_and_leaves_nothing_to_restore() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    mongod.forbid();
    let names = ["eviction_dirty_trigger", "read_tickets"];
    let (entries, means) = entries(&mongod, &names).await;
    for changed in names {
        let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
        let error = applier.try_right().await.unwrap_err();
        assert!(matches!(error, ApplyError::Server(_)), "{error}");
        let values = configuration(&[(changed, 64)]);
        let error = applier.apply(&values).await.unwrap_err();
        assert!(matches!(error, ApplyError::Server(_)), "{error}");
        let mut later = Applier::resume(folder.path(), means.clone())
            .unwrap()
            .unwrap();
        let restored = later.restore().await;
        assert!(restored.is_complete(), "{changed}: {restored:?}");
        assert_eq!(mongod.set(), []);
    }
}

/// Setting it to the value that it has tells whether the login may.
#[tokio::test]
async fn the_right_is_tried_without_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let (entries, means) = entries(&mongod, &["read_tickets"]).await;
    let applier = Applier::begin(&entries, means, folder.path()).unwrap();
    applier.try_right().await.unwrap();
    let tickets = "wiredTigerConcurrentReadTransactions";
    assert_eq!(mongod.set(), [set(tickets, 128)]);
    assert!(applier.originals().outstanding().is_empty());
}

#[tokio::test]
async fn refusals_are_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let server = mongod.connect().await;
    let means = Means {
        server: Some(server),
        ..Means::default()
    };
    let knobs = [
        knob("updates", "{ engine = \"eviction_updates_target\" }"),
        knob("deaf", "{ parameter = \"ttlMonitorSleepSecs\" }"),
        knob("odd", "{ parameter = \"authenticationMechanisms\" }"),
    ];
    mongod.make_deaf("ttlMonitorSleepSecs");
    let mut applier = Applier::begin(&knobs, means, folder.path()).unwrap();
    let error = applier
        .apply(&configuration(&[("updates", 10)]))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("updates not set")
            && error.to_string().contains("Invalid argument"),
        "{error}"
    );
    let error = applier
        .apply(&configuration(&[("odd", 30)]))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::NoMeans { .. }), "{error}");
    let error = applier
        .apply(&configuration(&[("other", 1)]))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::UnknownKnob(_)), "{error}");
    let error = applier
        .apply(&configuration(&[("deaf", 30)]))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ApplyError::NotApplied { wanted, found, .. } if wanted == "30" && found == "60"),
        "{error}"
    );
    // What cannot be put back is named, with what it was.
    let restored = applier.restore().await;
    assert!(!restored.is_complete());
    let failed = restored.knobs.iter().filter(|(_, result)| result.is_err());
    let failed: Vec<_> = failed.collect();
    // The server never took the others.
    assert!(failed.len() == 1 && failed[0].0 == "deaf", "{failed:?}");
    let result = &failed[0].1;
    assert!(
        result.as_ref().unwrap_err().contains("it was 8"),
        "{result:?}"
    );
    assert!(!Originals::load(folder.path()).unwrap().unwrap().restored);
}

#[tokio::test]
async fn a_later_process_puts_back_what_a_killed_one_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let (entries, means) = entries(&mongod, &["read_tickets", "write_tickets"]).await;
    assert!(
        Applier::resume(folder.path(), means.clone())
            .unwrap()
            .is_none()
    );
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    applier
        .apply(&configuration(&[("read_tickets", 16)]))
        .await
        .unwrap();
    // Nothing of it runs any more, as after SIGKILL.
    std::mem::forget(applier);
    let originals = Originals::load(folder.path()).unwrap().unwrap();
    assert_eq!(originals.outstanding(), ["read_tickets"]);
    assert!(originals.server.starts_with("mongodb://127.0.0.1:"));
    let error = Applier::begin(&entries, means.clone(), folder.path()).unwrap_err();
    assert!(
        matches!(
            error,
            ApplyError::Originals(OriginalsError::Unrestored { .. })
        ),
        "{error}"
    );

    let other = Mongod::start().await;
    let others = Means {
        server: Some(other.connect().await),
        ..Means::default()
    };
    let error = Applier::resume(folder.path(), others).unwrap_err();
    assert!(
        matches!(
            error,
            ApplyError::Originals(OriginalsError::OtherServer { .. })
        ),
        "{error}"
    );

    let mut later = Applier::resume(folder.path(), means.clone())
        .unwrap()
        .unwrap();
    let restored = later.restore().await;
    assert_eq!(restored.knobs, [("read_tickets".to_owned(), Ok(()))]);
    assert_eq!(restored.put_back["read_tickets"], "put back from 16 to 128");
    assert_eq!(
        mongod.parameter("wiredTigerConcurrentReadTransactions"),
        Bson::Int32(128)
    );
    // Now another session may begin there.
    Applier::begin(&entries, means, folder.path()).unwrap();
}

/// A server's own restart undoes what was set at run time.
#[tokio::test]
async fn what_has_its_original_value_again_is_not_said_to_be_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start().await;
    let (entries, means) = entries(&mongod, &["read_tickets", "write_tickets"]).await;
    let mut applier = Applier::begin(&entries, means.clone(), folder.path()).unwrap();
    applier
        .apply(&configuration(&[("read_tickets", 16)]))
        .await
        .unwrap();
    drop(applier);
    let server = mongod.connect().await;
    let command = set("wiredTigerConcurrentReadTransactions", 128);
    server.command("admin", command).await.unwrap();
    let sent = mongod.set().len();
    let mut later = Applier::resume(folder.path(), means).unwrap().unwrap();
    let restored = later.restore().await;
    assert_eq!(restored.knobs, [("read_tickets".to_owned(), Ok(()))]);
    assert!(restored.put_back.is_empty(), "{restored:?}");
    assert_eq!(mongod.set().len(), sent);
}

#[tokio::test]
async fn originals_that_others_may_write_are_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    Applier::begin(
        &[knob("x", "{ command = \"true {value}\" }")],
        Means::default(),
        folder.path(),
    )
    .unwrap();
    let file = folder.path().join("originals.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(
        Originals::load(folder.path()),
        Err(OriginalsError::Io { .. })
    ));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("true {value}", "rm x");
    std::fs::write(&file, text).unwrap();
    assert!(matches!(
        Originals::load(folder.path()),
        Err(OriginalsError::Invalid { .. })
    ));
}

#[tokio::test]
async fn an_idle_server_is_not_busy() {
    let mongod = Mongod::start().await;
    let traffic = Traffic::of(&mongod.connect().await).await.unwrap();
    assert!(!traffic.is_busy());
}
