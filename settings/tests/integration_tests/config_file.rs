//! A configuration file is edited, a server is restarted with it, and the file is put back byte for byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_server::Server;
use seekscope_settings::originals::Originals;
use seekscope_settings::{
    Applier, Appliers, ApplyError, ByRestart, KeptEdits, KnobEntry, Means, Restart,
};

use crate::secantusd::RestartedServer;
use crate::support::{configuration, knob};

const CONF: &str = "# kept by hand\nstorage:\n    dbPath: /data   # here\n    wiredTiger:\n        engineConfig: {cacheSizeGB: 1}\nsecurity: {keyFile: /secret}\n";

fn files(text: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (conf, folder) = (root.path().join("mongod.conf"), root.path().join("run"));
    fs::create_dir(&folder).unwrap();
    fs::write(&conf, text).unwrap();
    (root, conf, folder)
}

/// Returns a file to which each restart adds a line, and the means of restarting.
fn counting_restarts(root: &tempfile::TempDir, conf: &Path) -> (PathBuf, Means) {
    let started = root.path().join("started");
    let restart = Restart {
        config_file: conf.into(),
        command: format!("echo x >> {}", started.display()),
        limit: Duration::from_secs(20),
    };
    let means = Means {
        restart: Some(restart),
        ..Means::default()
    };
    (started, means)
}

fn entries() -> Vec<KnobEntry> {
    vec![
        knob("period", "{ option = \"storage.syncPeriodSecs\" }"),
        knob(
            "log",
            "{ option = \"storage.wiredTiger.engineConfig.configString\", key = \"log.file_max\", suffix = \"MB\" }",
        ),
    ]
}

#[tokio::test]
async fn edited_and_put_back_byte_for_byte() {
    let (root, conf, folder) = files(CONF);
    let (started, means) = counting_restarts(&root, &conf);
    let restarts = || fs::read_to_string(&started).map_or(0, |text| text.lines().count());
    let mut applier = Applier::begin(&entries(), means, &folder).unwrap();
    // The baseline is the file as it is: nothing to write, nothing to restart.
    let applied = applier.apply(&configuration(&[])).await.unwrap();
    assert!(!applied.restarted && restarts() == 0);
    let applied = applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    assert!(applied.restarted);
    let text = fs::read_to_string(&conf).unwrap();
    let set = r#"{ cacheSizeGB: 1, configString: "log=(file_max=32MB)" }"#;
    assert!(text.contains(set), "{text}");
    for kept in [
        "# kept by hand\n",
        "dbPath: /data   # here\n",
        "security: {keyFile: /secret}\n",
    ] {
        assert!(text.contains(kept), "{kept} is gone:\n{text}");
    }
    assert!(
        text.contains("cacheSizeGB: 1") && !text.contains("syncPeriodSecs"),
        "{text}"
    );
    // The same again needs no restart; back to the baseline does.
    assert!(
        !applier
            .apply(&configuration(&[("log", 32)]))
            .await
            .unwrap()
            .restarted
    );
    assert!(applier.apply(&configuration(&[])).await.unwrap().restarted);
    assert_eq!(fs::read_to_string(&conf).unwrap(), CONF);
    applier
        .apply(&configuration(&[("period", 120)]))
        .await
        .unwrap();
    assert_eq!(restarts(), 3);
    drop(applier);
    // A process that was killed between putting the file back and the restart.
    fs::write(&conf, CONF).unwrap();

    // A later process has neither the text nor the command but for what is recorded.
    let json = fs::read_to_string(folder.join("originals.json")).unwrap();
    assert!(!json.contains("/secret"), "{json}");
    let mut later = Applier::resume(&folder, Means::default()).unwrap().unwrap();
    let restored = later.restore().await;
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), CONF);
    assert_eq!(restarts(), 4);
    assert!(!folder.join("originals.mongod.conf").exists());
    assert!(Originals::load(&folder).unwrap().unwrap().restored);
    let mut again = Applier::resume(&folder, Means::default()).unwrap().unwrap();
    assert!(again.restore().await.is_complete());
    assert_eq!(restarts(), 4);
}

#[tokio::test]
async fn what_others_have_edited_in_the_file_stays_and_what_was_set_goes() {
    let (root, conf, folder) = files(CONF);
    let (started, means) = counting_restarts(&root, &conf);
    let mut applier = Applier::begin(&entries(), means.clone(), &folder).unwrap();
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    let theirs = "replication: {replSetName: a}\n";
    let edited = fs::read_to_string(&conf).unwrap() + theirs;
    fs::write(&conf, &edited).unwrap();
    fs::remove_file(&started).unwrap();
    let mut later = Applier::resume(&folder, means.clone()).unwrap().unwrap();
    assert!(later.restore().await.is_complete());
    assert_eq!(fs::read_to_string(&conf).unwrap(), CONF.to_owned() + theirs);
    assert!(started.exists(), "it was not restarted");
    assert!(!folder.join("originals.mongod.conf").exists());
}

fn edit_originals(folder: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let recorded = folder.join("originals.json");
    let mut json = serde_json::from_str(&fs::read_to_string(&recorded).unwrap()).unwrap();
    edit(&mut json);
    fs::write(&recorded, json.to_string()).unwrap();
}

/// Others edit it between two trials, and after a process was killed while it restarted the server.
#[tokio::test]
async fn what_others_edit_during_a_session_stays_in_the_file() {
    let (root, conf, folder) = files(CONF);
    let (started, means) = counting_restarts(&root, &conf);
    let restarts = || fs::read_to_string(&started).map_or(0, |text| text.lines().count());
    let mut applier: Appliers = Applier::begin(&entries(), means.clone(), &folder)
        .unwrap()
        .into();
    let log = |mib| configuration(&[("log", mib)]);
    applier.apply(&log(32)).await.unwrap();
    let edit = |theirs: &str| {
        let text = fs::read_to_string(&conf).unwrap();
        fs::write(&conf, text.replace("# kept by hand", theirs)).unwrap();
    };
    edit("# theirs");
    // What is set already needs no restart, and theirs is in force when they want it to be.
    let before = restarts();
    applier.apply(&log(32)).await.unwrap();
    assert_eq!(restarts(), before);
    let kept = KeptEdits {
        path: conf.clone(),
        are_in_force: false,
    };
    assert_eq!(applier.take_kept_edits(), [kept]);
    applier.apply(&log(64)).await.unwrap();
    let text = fs::read_to_string(&conf).unwrap();
    assert!(
        text.contains("# theirs") && text.contains("file_max=64MB"),
        "{text}"
    );
    edit_originals(&folder, |json| json["applying"] = json["applied"].take());
    let mut later = Applier::resume(&folder, means.clone()).unwrap().unwrap();
    assert!(later.restore().await.is_complete());
    let put_back = fs::read_to_string(&conf).unwrap();
    assert_eq!(put_back, CONF.replace("# kept by hand", "# theirs"));
}

#[tokio::test]
async fn the_restart_that_puts_back_is_told_before_and_puts_edits_of_others_into_force() {
    let (root, conf, folder) = files(CONF);
    let (started, means) = counting_restarts(&root, &conf);
    let mut applier = Applier::begin(&entries(), means, &folder).unwrap();
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    drop(applier);
    let resumed = || -> Appliers {
        let applier = Applier::resume(&folder, Means::default()).unwrap();
        applier.unwrap().into()
    };
    let mut expected = ByRestart {
        member: String::new(),
        config_file: conf.clone(),
        is_possible: true,
        command: Some(format!("echo x >> {}", started.display())),
        is_edited: false,
    };
    assert_eq!(resumed().restore_by_restarts(), [expected.clone()]);
    let theirs = fs::read_to_string(&conf).unwrap() + "replication: {replSetName: a}\n";
    fs::write(&conf, theirs).unwrap();
    expected.is_edited = true;
    assert_eq!(resumed().restore_by_restarts(), [expected]);
    let mut applier = resumed();
    assert!(applier.restore().await.is_complete());
    let kept = KeptEdits {
        path: conf.clone(),
        are_in_force: true,
    };
    assert_eq!(applier.take_kept_edits(), [kept]);
    assert_eq!(resumed().restore_by_restarts(), []);
}

#[tokio::test]
async fn a_command_that_was_not_kept_is_told_to_be_missing() {
    let (root, conf, folder) = files(CONF);
    let (_, means) = counting_restarts(&root, &conf);
    let mut applier = Applier::begin(&entries(), means, &folder).unwrap();
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    drop(applier);
    edit_originals(&folder, |json| {
        json["config"]["command"] = serde_json::Value::Null
    });
    let applier = Applier::resume(&folder, Means::default()).unwrap().unwrap();
    let restarts = Appliers::from(applier).restore_by_restarts();
    assert_eq!(restarts.len(), 1);
    assert!(!restarts[0].is_possible && restarts[0].command.is_none());
    assert_eq!(restarts[0].config_file, conf);
}

/// Versions before this one did not record what they had applied.
#[tokio::test]
async fn a_file_of_which_nobody_knows_what_was_written_is_the_original_again() {
    let (root, conf, folder) = files(CONF);
    let (_, means) = counting_restarts(&root, &conf);
    let mut applier = Applier::begin(&entries(), means.clone(), &folder).unwrap();
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    edit_originals(&folder, |json| json["applied"] = serde_json::Value::Null);
    let mut later = Applier::resume(&folder, means.clone()).unwrap().unwrap();
    assert!(later.restore().await.is_complete());
    assert_eq!(fs::read_to_string(&conf).unwrap(), CONF);
}

/// Only they can say what holds; once they have, the rest is done.
#[tokio::test]
async fn a_file_in_which_others_have_edited_what_was_set_is_theirs_to_put_right() {
    let (root, conf, folder) = files(CONF);
    let (_, means) = counting_restarts(&root, &conf);
    let mut applier = Applier::begin(&entries(), means.clone(), &folder).unwrap();
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    let written = fs::read_to_string(&conf).unwrap();
    let edited = written.replace("file_max=32MB", "file_max=48MB");
    assert_ne!(edited, written);
    fs::write(&conf, &edited).unwrap();
    let resume = || Applier::resume(&folder, means.clone()).unwrap().unwrap();
    let restored = resume().restore().await;
    assert!(!restored.is_complete(), "{restored:?}");
    let why = restored
        .knobs
        .iter()
        .find_map(|(_, result)| result.as_ref().err());
    assert!(why.unwrap().contains("by hand"), "{why:?}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), edited);

    let by_hand = CONF.to_owned() + "# theirs\n";
    fs::write(&conf, &by_hand).unwrap();
    assert!(resume().restore().await.is_complete());
    assert_eq!(fs::read_to_string(&conf).unwrap(), by_hand);
}

#[tokio::test]
async fn a_restart_that_fails_puts_the_file_back() {
    let (root, conf, folder) = files(CONF);
    // A server that does not start with what the trial wrote.
    let command = format!("! grep -q file_max=64MB {}", conf.display());
    let restart = Restart {
        config_file: conf.clone(),
        command,
        limit: Duration::from_secs(20),
    };
    let means = Means {
        restart: Some(restart),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries(), means, &folder).unwrap();
    let error = applier
        .apply(&configuration(&[("log", 64)]))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ApplyError::DidNotComeBack { put_back: true, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("it runs again"), "{error}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), CONF);
    applier.apply(&configuration(&[("log", 32)])).await.unwrap();
    assert!(applier.restore().await.is_complete());
    drop(root);
}

#[tokio::test]
async fn what_is_no_configuration_file_is_refused_before_any_change() {
    let (_root, conf, folder) = files("storage: 5\n");
    let restart = Restart {
        config_file: conf.clone(),
        command: "false".into(),
        limit: Duration::from_secs(1),
    };
    let means = Means {
        restart: Some(restart),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries(), means.clone(), &folder).unwrap();
    let error = applier
        .apply(&configuration(&[("period", 9)]))
        .await
        .unwrap_err();
    assert!(matches!(error, ApplyError::ConfigFile { .. }), "{error}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), "storage: 5\n");
    drop(applier);
    fs::remove_file(&conf).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(Applier::begin(&entries(), means, elsewhere.path()).is_err());
}

#[tokio::test]
async fn a_real_server_is_restarted_and_waited_for() {
    let real = RestartedServer::start().await;
    let server = Server::connect(&real.uri()).await.unwrap();
    let (_root, conf, folder) = files("x: 1\n");
    let restart = Restart {
        config_file: conf.clone(),
        command: real.restart_command(),
        limit: Duration::from_secs(60),
    };
    let means = Means {
        server: Some(server),
        restart: Some(restart.clone()),
        ..Means::default()
    };
    let first = real.pid();
    let mut applier = Applier::begin(&entries(), means.clone(), &folder).unwrap();
    assert!(
        applier
            .apply(&configuration(&[("period", 9)]))
            .await
            .unwrap()
            .restarted
    );
    assert_ne!(real.pid(), first);
    assert!(applier.server().is_some());
    let restored = applier.restore().await;
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), "x: 1\n");

    // A command that restarts nothing is found out, and so is one that only stops.
    let elsewhere = tempfile::tempdir().unwrap();
    let limit = Duration::from_secs(3);
    let still = Restart {
        command: "true".into(),
        limit,
        ..restart.clone()
    };
    let means = Means {
        restart: Some(still),
        ..means.clone()
    };
    let mut applier = Applier::begin(&entries(), means, elsewhere.path()).unwrap();
    let error = applier
        .apply(&configuration(&[("period", 7)]))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("the one from before"), "{error}");
    assert_eq!(fs::read_to_string(&conf).unwrap(), "x: 1\n");
    let gone = Restart {
        command: real.stop_command(),
        limit,
        ..restart
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let server = Some(Server::connect(&real.uri()).await.unwrap());
    let means = Means {
        server,
        restart: Some(gone),
        ..Means::default()
    };
    let mut applier = Applier::begin(&entries(), means, elsewhere.path()).unwrap();
    let error = applier
        .apply(&configuration(&[("period", 7)]))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ApplyError::DidNotComeBack {
                put_back: false,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&conf).unwrap(), "x: 1\n");
}
