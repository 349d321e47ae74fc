use std::collections::BTreeSet;

use seekscope_tune::space::{ChangeCost, Configuration, Knob, Range, Risk, Space};

use super::*;
use crate::knob_file::{KnobEntry, Route};
use crate::version::Version;

const VERSIONS: [&str; 9] = [
    "3.4", "3.6", "4.0", "4.2", "4.4", "5.0", "6.0", "7.0", "8.0",
];

fn both() -> [KnobFile; 2] {
    [ServerProgram::Mongod, ServerProgram::Secantusd].map(|program| Catalogue::of(program).unwrap())
}

/// Returns the first row of each name for the version.
fn rows<'a>(file: &'a KnobFile, version: &str) -> Vec<&'a KnobEntry> {
    let version = Version::parse(version);
    let mut names = BTreeSet::new();
    let rows = file.knobs.iter();
    rows.filter(|e| e.versions.include(version) && names.insert(e.knob.name.as_str()))
        .collect()
}

fn space(file: &KnobFile, version: &str) -> Space {
    let knobs: Vec<Knob> = rows(file, version).iter().map(|e| e.knob.clone()).collect();
    Space::new(knobs, file.limits.clone()).unwrap_or_else(|error| panic!("{version}: {error}"))
}

#[test]
fn every_version_has_a_space_and_its_presets_fit() {
    for file in both() {
        let mut tried = BTreeSet::new();
        for version in VERSIONS {
            let space = space(&file, version);
            assert!(space.knobs().len() > 5);
            for preset in &file.presets {
                if preset.versions.include(Version::parse(version)) {
                    let values = Configuration(preset.values.clone());
                    let complete = space.complete(&values);
                    assert!(complete.is_ok(), "{version} {}: {complete:?}", preset.name);
                    tried.insert(preset.name.as_str());
                }
            }
        }
        assert!(
            file.presets
                .iter()
                .all(|preset| tried.contains(preset.name.as_str()))
        );
    }
}

#[test]
fn the_experts_setting_starts_on_every_version() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    for (version, target) in [("4.2", 50), ("4.4", 50), ("5.0", 49), ("8.0", 49)] {
        let expert = file.presets.iter().find(|preset| {
            preset.name == "expert 2018" && preset.versions.include(Version::parse(version))
        });
        let values = &expert.unwrap().values;
        assert_eq!(
            values["eviction_dirty_target"].to_string(),
            target.to_string()
        );
        assert!(
            space(&file, version)
                .complete(&Configuration(values.clone()))
                .is_ok()
        );
    }
    let late = space(&file, "5.0");
    let equal = [
        ("eviction_dirty_trigger", 50),
        ("eviction_dirty_target", 50),
    ]
    .map(|(name, value)| {
        (
            name.to_owned(),
            seekscope_run::tune::KnobValue::Integer(value),
        )
    });
    assert!(late.complete(&Configuration(equal.into())).is_err());
}

#[test]
fn coupled_knobs_are_shares() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    for (target, trigger) in [
        ("eviction_dirty_target", "eviction_dirty_trigger"),
        ("eviction_target", "eviction_trigger"),
        ("eviction_threads_min", "eviction_threads_max"),
        ("dirty_background_ratio", "dirty_ratio"),
    ] {
        for entry in file.find(target).unwrap() {
            assert_eq!(entry.knob.share_of.as_deref(), Some(trigger));
        }
    }
    // Whatever is drawn satisfies the engine's own rule.
    let space = space(&file, "7.0");
    for trigger in 85..=99i64 {
        let values = |target: i64| {
            let pair = [("eviction_trigger", trigger), ("eviction_target", target)];
            let pair =
                pair.map(|(n, v)| (n.to_owned(), seekscope_run::tune::KnobValue::Integer(v)));
            space.complete(&Configuration(pair.into()))
        };
        assert!(
            values(trigger).is_err() && values(trigger - 4).is_ok(),
            "{trigger}"
        );
    }
}

#[test]
fn every_row_says_what_it_costs_and_what_it_risks() {
    let locked = |file: &KnobFile, risk| {
        let names: BTreeSet<_> = (file.knobs.iter())
            .filter(|entry| entry.knob.risk == risk)
            .map(|entry| entry.knob.name.clone())
            .collect();
        names
    };
    let [mongod, secantusd] = both();
    for name in [
        "checkpoint_seconds",
        "journal_commit_interval",
        "checkpoint_log_size",
    ] {
        assert!(locked(&mongod, Risk::Durability).contains(name), "{name}");
    }
    for name in [
        "sync_on_commit",
        "data_nonlogged",
        "oplog_nonlogged",
        "oplog_async",
        "checkpoint_seconds",
    ] {
        assert!(
            locked(&secantusd, Risk::Durability).contains(name),
            "{name}"
        );
    }
    assert!(locked(&mongod, Risk::Availability).len() >= 5);
    for file in [&mongod, &secantusd] {
        for entry in &file.knobs {
            let (name, change) = (&entry.knob.name, entry.knob.change);
            assert!(!entry.why.is_empty(), "{name}");
            let expected = match &entry.set {
                Route::File { .. } => change == ChangeCost::Host,
                Route::Engine { .. } => change == ChangeCost::Runtime,
                Route::Option { .. } | Route::Local { .. } => {
                    matches!(change, ChangeCost::Restart | ChangeCost::Reload)
                }
                Route::Parameter { .. } => {
                    matches!(change, ChangeCost::Restart | ChangeCost::Runtime)
                }
                Route::Command { .. } | Route::Environment { .. } => false,
            };
            assert!(expected, "{name}: {change:?}");
        }
        assert!(!file.pinned.is_empty());
        for pinned in &file.pinned {
            assert!(matches!(
                file.find(&pinned.name),
                Err(KnobFileError::Pinned { .. })
            ));
        }
    }
}

#[test]
fn what_is_tuned_unasked_is_the_short_list() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let unasked = |version: &str| {
        let rows = rows(&file, version)
            .into_iter()
            .filter(|entry| entry.search);
        let rows = rows.filter(|e| !matches!(e.knob.risk, Risk::Durability | Risk::Availability));
        rows.filter(|e| e.knob.change != ChangeCost::Reload).count()
    };
    assert!((10..=24).contains(&unasked("4.2")), "{}", unasked("4.2"));
}

#[test]
fn written_and_read_again_it_is_the_same() {
    for file in both() {
        let text = file.to_toml();
        let again = KnobFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again, file);
    }
}

#[test]
fn ranges_read_well() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let words = |name: &str| file.find(name).unwrap()[0].range_in_words();
    assert_eq!(words("eviction_dirty_trigger"), "3 to 80, logarithmic");
    assert_eq!(
        words("eviction_dirty_target"),
        "5 to 100 % of eviction_dirty_trigger"
    );
    assert_eq!(
        words("read_ahead_kb"),
        "4, 8, 16, 32, 64, 128, 256, 512, 1024, or 0"
    );
    assert!(
        file.knobs
            .iter()
            .all(|e| !matches!(e.knob.range, Range::Ordinal { .. }) || e.is_logarithmic())
    );
}

/// WiredTiger aborts at any other size of a hash table.
#[test]
fn hash_tables_have_a_power_of_two_of_buckets() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    for name in ["hash_buckets", "hash_dhandle_buckets"] {
        for entry in file.find(name).unwrap() {
            let Range::Ordinal { values } = &entry.knob.range else {
                panic!("{name} takes any number");
            };
            let expected: Vec<f64> = (7..=16).map(|n| f64::from(1_u32 << n)).collect();
            assert_eq!(values, &expected, "{name}");
        }
    }
}
