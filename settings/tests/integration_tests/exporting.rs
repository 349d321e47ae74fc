//! Texts to copy: what YAML and shells read in them is what was meant.

use std::collections::BTreeMap;

use seekscope_run::tune::{KnobValue, KnobValues};
use seekscope_settings::{
    Catalogue, KnobEntry, KnobFile, ServerProgram, Surroundings, Unlocked, discover, exports,
};
use yaml_serde::Value;

use crate::recorded::replies;
use crate::support::{made_up_host, values};

fn entries(names: &[&str]) -> Vec<KnobEntry> {
    let root = tempfile::tempdir().unwrap();
    let host = made_up_host(root.path());
    let unlocked = Unlocked {
        durability: true,
        restart: true,
        ..Unlocked::default()
    };
    let surroundings = Surroundings {
        unlocked,
        host: Some(&host),
        ..Surroundings::default()
    };
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let found = discover(&file, &replies("4.2"), &surroundings);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    found.choose(&names).unwrap().entries
}

#[test]
fn the_change_and_its_undo() {
    let entries = entries(&[
        "eviction_dirty_trigger",
        "eviction_threads_max",
        "eviction_threads_min",
        "cache_size",
        "read_tickets",
        "checkpoint_seconds",
        "journal_compressor",
        "log_file_max",
        "read_ahead_kb",
        "io_scheduler",
    ]);
    let engine = "storage.wiredTiger.engineConfig.configString";
    let configured = BTreeMap::from([(
        engine.to_owned(),
        "eviction=(threads_min=2),mmap=false".to_owned(),
    )]);
    let baseline: KnobValues = entries
        .iter()
        .map(|e| (e.knob.name.clone(), e.knob.default.clone()))
        .collect();
    let mut recommended = baseline.clone();
    recommended.extend(values(&[
        ("eviction_dirty_trigger", 50),
        ("eviction_threads_max", 8),
        ("cache_size", 512),
        ("read_tickets", 64),
        ("checkpoint_seconds", 120),
        ("log_file_max", 200),
        ("read_ahead_kb", 16),
    ]));
    recommended.insert("journal_compressor".into(), KnobValue::Text("none".into()));
    let texts = exports(&entries, &configured, &baseline, &recommended);
    println!(
        "{texts:#?}\n{}\n{}",
        texts.mongod_conf, texts.undo_mongod_conf
    );
    let conf: Value = yaml_serde::from_str(&texts.mongod_conf).unwrap();
    let engine = &conf["storage"]["wiredTiger"]["engineConfig"];
    assert_eq!(
        engine["configString"],
        Value::from(
            "mmap=false,eviction_dirty_trigger=50,eviction=(threads_min=2,threads_max=8),log=(file_max=200MB)"
        )
    );
    assert_eq!(engine["cacheSizeGB"], Value::from(0.5));
    assert_eq!(engine["journalCompressor"], Value::from("none"));
    assert_eq!(conf["storage"]["syncPeriodSecs"], Value::from(120));
    assert_eq!(
        conf["setParameter"]["wiredTigerConcurrentReadTransactions"],
        Value::from(64)
    );
    assert_eq!(
        texts.set_parameter,
        [
            "db.adminCommand({ setParameter: 1, wiredTigerConcurrentReadTransactions: 64 })",
            "db.adminCommand({ setParameter: 1, syncdelay: 120 })",
            "db.adminCommand({ setParameter: 1, wiredTigerEngineRuntimeConfig: \"eviction_dirty_trigger=50,eviction=(threads_max=8),cache_size=512MB\" })",
        ]
    );
    assert_eq!(
        texts.shell,
        ["echo 16 | sudo tee /sys/block/sdz/queue/read_ahead_kb"]
    );
    assert_eq!(
        texts.undo_shell,
        ["echo 128 | sudo tee /sys/block/sdz/queue/read_ahead_kb"]
    );
    let undo: Value = yaml_serde::from_str(&texts.undo_mongod_conf).unwrap();
    assert_eq!(undo["storage"]["syncPeriodSecs"], Value::from(60));
    assert_eq!(texts.risks.len(), 2, "{:?}", texts.risks);
    assert!(texts.risks.iter().any(|risk| {
        risk.contains("checkpoint_seconds from 60 to 120 s risks durability: a crash may lose more")
    }));
}

#[test]
fn nothing_changed_is_nothing_to_copy() {
    let entries = entries(&["read_tickets"]);
    let same = values(&[("read_tickets", 128)]);
    assert_eq!(
        exports(&entries, &BTreeMap::new(), &same, &same),
        Default::default()
    );
    assert_eq!(
        exports(&entries, &BTreeMap::new(), &same, &KnobValues::new()),
        Default::default()
    );
}

#[test]
fn hostile_texts_are_quoted() {
    let nasty = "a: b\\n'; $(reboot) #";
    let text = format!(
        "[[knob]]\nname = \"option\"\ntype = \"categorical\"\nchoices = [\"plain\", {nasty:?}]\ndefault = \"plain\"\nset = {{ option = \"net.x\" }}\n\
         [[knob]]\nname = \"script\"\ntype = \"categorical\"\nchoices = [\"plain\", {nasty:?}]\ndefault = \"plain\"\nset = {{ command = \"printf %s {{value}}\" }}\n"
    );
    let entries = KnobFile::parse(&text).unwrap().knobs;
    let values = |text: &str| -> KnobValues {
        ["option", "script"]
            .map(|name| (name.to_owned(), KnobValue::Text(text.into())))
            .into()
    };
    let texts = exports(&entries, &BTreeMap::new(), &values("plain"), &values(nasty));
    let conf: Value = yaml_serde::from_str(&texts.mongod_conf).unwrap();
    assert_eq!(conf["net"]["x"], Value::from(nasty));
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(&texts.shell[0])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), nasty);
}
