//! What recorded servers have.

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::bson::{Bson, doc};
use seekscope_run::tune::{KnobValue, KnobValues};
use seekscope_settings::{
    Catalogue, ChooseError, Discovered, KnobFile, RunMin, Runs, ServerMemory, ServerProgram,
    ServerReplies, Source, Surroundings, Unlocked, discover,
};
use seekscope_tune::space::Range;

use crate::recorded::{recorded, replies};
use crate::support::made_up_host;

const ALL: Unlocked = Unlocked {
    durability: true,
    availability: true,
    restart: true,
    reload: true,
};

fn found(version: &str, unlocked: Unlocked) -> Discovered {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        unlocked,
        ..Surroundings::default()
    };
    discover(&file, &replies(version), &surroundings)
}

fn current<'a>(found: &'a Discovered, name: &str) -> (&'a KnobValue, Source) {
    let entry = found.entries.iter().find(|e| e.knob.name == name);
    let entry = entry.unwrap_or_else(|| panic!("{name}: {:?}", found.left_out));
    (&entry.knob.default, found.sources[name])
}

fn why<'a>(found: &'a Discovered, name: &str) -> &'a str {
    let left_out = found.left_out.iter().find(|(other, _)| other == name);
    &left_out.unwrap_or_else(|| panic!("{name} is there")).1
}

#[test]
fn values_come_from_the_replies_and_say_from_where() {
    let found = found("4.2", ALL);
    let whole = |name: &str| {
        let (value, source) = current(&found, name);
        (value.to_string(), source)
    };
    assert_eq!(whole("read_tickets"), ("128".into(), Source::Server));
    assert_eq!(whole("checkpoint_seconds"), ("60".into(), Source::Server));
    assert_eq!(
        whole("journal_commit_interval"),
        ("100".into(), Source::Server)
    );
    assert_eq!(whole("cache_size"), ("256".into(), Source::Server));
    // The runtime configuration reads back empty, and nothing is configured.
    assert_eq!(
        whole("eviction_dirty_trigger"),
        ("20".into(), Source::Documented)
    );
    assert_eq!(
        whole("eviction_checkpoint_target"),
        ("1".into(), Source::Documented)
    );
    assert_eq!(
        whole("journal_compressor"),
        ("snappy".into(), Source::Documented)
    );
    assert_eq!(whole("tcmalloc_decommit"), ("0".into(), Source::Server));
    assert_eq!(whole("sort_memory"), ("33554432".into(), Source::Server));
    assert!(why(&found, "concurrency_algorithm").contains("this is 4.2"));
    assert!(why(&found, "eviction_updates_trigger").contains("4.4 and later"));
    assert!(why(&found, "index_builds_max").contains("no parameter maxNumActiveUserIndexBuilds"));
    assert!(why(&found, "read_ahead_kb").contains("server's host"));
}

#[test]
fn old_versions_have_their_own_rows() {
    let found = found("3.4", ALL);
    let text = |name: &str| current(&found, name).0.to_string();
    assert_eq!(text("eviction_checkpoint_target"), "5");
    // In 3.4 the parameter does not move WiredTiger's checkpoints; its own key does.
    let checkpoint = found
        .entries
        .iter()
        .find(|e| e.knob.name == "checkpoint_seconds")
        .unwrap();
    assert_eq!(
        checkpoint.set.in_words(),
        "wiredTigerEngineRuntimeConfig checkpoint.wait"
    );
    assert!(why(&found, "journal_commit_interval").contains("3.6 and later"));
    assert!(why(&found, "io_capacity").contains("this is 3.4"));
}

#[test]
fn what_is_locked_says_what_unlocks_it() {
    let found = found("4.2", Unlocked::default());
    assert!(why(&found, "checkpoint_seconds").contains("--allow-durability"));
    assert!(why(&found, "yield_iterations").contains("--allow-availability"));
    assert!(why(&found, "journal_compressor").contains("--restart-command"));
    assert!(why(&found, "block_compressor").contains("--reload"));
    let chosen = found.choose(&[]).unwrap();
    let names: Vec<&str> = chosen
        .entries
        .iter()
        .map(|e| e.knob.name.as_str())
        .collect();
    assert!(
        names.starts_with(&["eviction_dirty_trigger", "eviction_dirty_target"]),
        "{names:?}"
    );
    assert!(!names.contains(&"insert_batch"));
    let error = found.choose(&["checkpoint_seconds".into()]).unwrap_err();
    assert!(
        matches!(&error, ChooseError::NotHere { why, .. } if why.contains("--allow-durability"))
    );
    let error = found.choose(&["eviction_diry_trigger".into()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("did you mean eviction_dirty_trigger"),
        "{error}"
    );
    let presets: Vec<&str> = chosen.presets.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        presets,
        ["expert 2018, checkpoints as they are", "write-heavy"]
    );
    assert!(
        chosen
            .left_out
            .iter()
            .any(|(name, _)| name == "preset expert 2018")
    );
}

#[test]
fn a_share_of_what_is_not_tuned_is_a_share_of_its_value() {
    let found = found("4.2", Unlocked::default());
    let chosen = found.choose(&["eviction_target".into()]).unwrap();
    let words = chosen.entries[0].range_in_words();
    // 50 to 97 % of 95.
    assert_eq!(words, "48 to 92");
    let both = ["eviction_target".into(), "eviction_trigger".into()];
    let chosen = found.choose(&both).unwrap();
    assert_eq!(
        chosen.entries[1].range_in_words(),
        "50 to 97 % of eviction_trigger"
    );
}

#[test]
fn odd_current_values_widen_the_range_and_configured_ones_count() {
    let mut replies = replies("4.2");
    replies
        .parameters
        .insert("wiredTigerConcurrentReadTransactions", 1024);
    replies
        .parameters
        .insert("wiredTigerSessionCloseIdleTimeSecs", 0);
    replies
        .parameters
        .insert("internalInsertMaxBatchSize", "many");
    let text = "eviction=(threads_max=2,threads_min=2),eviction_dirty_trigger=50,eviction_dirty_target=1,log=(file_max=1GB)";
    replies.options = doc! { "parsed": { "storage": { "wiredTiger": {
        "engineConfig": { "configString": text, "journalCompressor": "none" },
        "collectionConfig": { "blockCompressor": "odd" },
    } } } };
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        unlocked: ALL,
        ..Surroundings::default()
    };
    let found = discover(&file, &replies, &surroundings);
    let pair = |name: &str| (current(&found, name).0.to_string(), current(&found, name).1);
    assert_eq!(pair("read_tickets"), ("1024".into(), Source::Server));
    assert_eq!(
        pair("eviction_threads_max"),
        ("2".into(), Source::Configured)
    );
    assert_eq!(pair("log_file_max"), ("1024".into(), Source::Configured));
    assert_eq!(
        pair("journal_compressor"),
        ("none".into(), Source::Configured)
    );
    assert_eq!(pair("block_compressor"), ("odd".into(), Source::Configured));
    assert_eq!(pair("session_close_idle_time").0, "0");
    assert!(why(&found, "insert_batch").contains("of another kind"));
    assert_eq!(
        found.configured["storage.wiredTiger.engineConfig.configString"],
        text
    );
    // A target below its share of the trigger is a value of its own.
    let chosen = found.choose(&[]).unwrap();
    assert_eq!(
        chosen.space.default_configuration().0["eviction_dirty_target"],
        KnobValue::Integer(1)
    );
}

#[test]
fn newer_servers_are_found_by_their_names() {
    let mut replies = replies("4.2");
    replies.build_info.insert("version", "7.0.5");
    for name in [
        "wiredTigerConcurrentReadTransactions",
        "wiredTigerConcurrentWriteTransactions",
    ] {
        replies.parameters.remove(name);
    }
    replies
        .parameters
        .insert("storageEngineConcurrentReadTransactions", 0);
    replies.parameters.insert(
        "storageEngineConcurrencyAdjustmentAlgorithm",
        "throughputProbing",
    );
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        unlocked: ALL,
        ..Surroundings::default()
    };
    let found = discover(&file, &replies, &surroundings);
    let names = [
        "concurrency_algorithm".to_owned(),
        "read_tickets".to_owned(),
    ];
    let chosen = found.choose(&names).unwrap();
    // Tickets exist only while the server does not choose their number itself.
    assert!(
        !chosen
            .space
            .default_configuration()
            .0
            .contains_key("read_tickets")
    );
    let error = found.choose(&names[1..]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("depends on concurrency_algorithm"),
        "{error}"
    );
    assert!(why(&found, "write_tickets").contains("no parameter executionControlConcurrentWrite"));
}

/// They say 0 for a number that nobody has set, and take no 0 back.
#[test]
fn tickets_of_newer_servers_are_those_in_use() {
    let mut replies = replies("4.2");
    replies.build_info.insert("version", "8.0.4");
    let algorithm = "storageEngineConcurrencyAdjustmentAlgorithm";
    replies
        .parameters
        .insert(algorithm, "fixedConcurrentTransactions");
    for kind in ["Read", "Write"] {
        let name = |prefix: &str| format!("{prefix}Concurrent{kind}Transactions");
        replies.parameters.remove(name("wiredTiger"));
        replies.parameters.insert(name("storageEngine"), 0);
    }
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        unlocked: ALL,
        ..Surroundings::default()
    };
    let tickets = |replies: &ServerReplies| {
        let found = discover(&file, replies, &surroundings);
        ["read_tickets", "write_tickets"].map(|name| {
            let chosen = found.choose(&[name.into()]).unwrap();
            let knob = &chosen.entries[0].knob;
            (knob.default.clone(), knob.special.len())
        })
    };
    let queue = |total: i32| doc! { "out": 0, "available": total, "totalTickets": total };
    let queues = doc! { "execution": { "read": queue(16), "write": queue(24) } };
    replies.status.insert("queues", queues);
    let (read, write) = (KnobValue::Integer(16), KnobValue::Integer(24));
    assert_eq!(tickets(&replies), [(read, 0), (write, 0)]);
    replies.status.remove("queues");
    replies
        .status
        .get_document_mut("wiredTiger")
        .unwrap()
        .remove("concurrentTransactions");
    // Nobody could put them back.
    let found = discover(&file, &replies, &surroundings);
    assert!(!why(&found, "read_tickets").is_empty());
}

#[test]
fn other_servers_and_hostile_replies_leave_knobs_out() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let empty = discover(
        &file,
        &ServerReplies::default(),
        &Surroundings {
            unlocked: ALL,
            ..Surroundings::default()
        },
    );
    assert_eq!(empty.entries, []);
    assert!(why(&empty, "eviction_target").contains("no parameter wiredTigerEngineRuntimeConfig"));
    assert!(why(&empty, "cache_size").contains("memory"));
    assert!(matches!(
        empty.choose(&[]),
        Err(ChooseError::Nothing { .. })
    ));

    let real = replies("4.2");
    for odd in [
        Bson::Null,
        Bson::Double(f64::NAN),
        Bson::Int64(i64::MIN),
        Bson::String("a\0".into()),
        doc! {}.into(),
    ] {
        let mut hostile = real.clone();
        for (_, value) in hostile.parameters.iter_mut() {
            *value = odd.clone();
        }
        hostile.host = doc! { "system": { "memSizeMB": odd.clone() } };
        hostile.status =
            doc! { "wiredTiger": { "cache": { "maximum bytes configured": odd.clone() } } };
        hostile.options = doc! { "parsed": { "storage": odd.clone() } };
        let found = discover(
            &file,
            &hostile,
            &Surroundings {
                unlocked: ALL,
                ..Surroundings::default()
            },
        );
        let _ = found.choose(&[]);
    }
}

#[test]
fn files_of_the_host_are_read() {
    let root = tempfile::tempdir().unwrap();
    let host = made_up_host(root.path());
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let surroundings = Surroundings {
        host: Some(&host),
        ..Surroundings::default()
    };
    let found = discover(&file, &replies("4.2"), &surroundings);
    assert_eq!(
        current(&found, "read_ahead_kb"),
        (&KnobValue::Integer(128), Source::HostFile)
    );
    assert_eq!(current(&found, "io_scheduler").0.to_string(), "mq-deadline");
    let scheduler = found
        .entries
        .iter()
        .find(|e| e.knob.name == "io_scheduler")
        .unwrap();
    assert_eq!(scheduler.range_in_words(), "none, mq-deadline, kyber");
    assert_eq!(scheduler.set.in_words(), "/sys/block/sdz/queue/scheduler");
    assert!(why(&found, "nr_requests").contains("this kernel does not have it"));
    let chosen = found.choose(&["dirty_background_ratio".into()]).unwrap();
    assert_eq!(chosen.entries[0].range_in_words(), "1 to 18");
}

#[test]
fn a_local_servers_start_options() {
    let file = Catalogue::of(ServerProgram::Secantusd).unwrap();
    let local: KnobValues = [("cache_size".to_owned(), KnobValue::Integer(64))].into();
    let surroundings = |unlocked| Surroundings {
        local: Some(&local),
        memory_mib: Some(4096),
        unlocked,
        ..Surroundings::default()
    };
    let plain = discover(
        &file,
        &ServerReplies::default(),
        &surroundings(Unlocked::default()),
    );
    assert_eq!(
        current(&plain, "cache_size"),
        (&KnobValue::Integer(64), Source::StartOption)
    );
    assert_eq!(current(&plain, "write_tickets").1, Source::Documented);
    assert!(why(&plain, "block_compressor").contains("--reload"));
    assert!(why(&plain, "oplog_async").contains("--allow-durability"));
    let everything = discover(&file, &ServerReplies::default(), &surroundings(ALL));
    let names: Vec<String> = ["sync_on_commit", "block_compressor", "write_tickets"]
        .map(String::from)
        .into();
    assert_eq!(everything.choose(&names).unwrap().entries.len(), 3);
    let theirs = discover(&file, &ServerReplies::default(), &Surroundings::default());
    assert!(why(&theirs, "write_tickets").contains("a server of our own"));
}

#[test]
fn users_read_commands_count() {
    let text = "[[knob]]\nname = \"depth\"\ntype = \"integer\"\nlow = 1\nhigh = 64\ndefault = 8\n\
                set = { command = \"./set {value}\", read = \"./get\" }\n";
    let file = KnobFile::parse(text).unwrap();
    let with = |printed: Result<String, String>| {
        let scripts = BTreeMap::from([("depth".to_owned(), printed)]);
        discover(
            &file,
            &ServerReplies::default(),
            &Surroundings {
                scripts,
                ..Surroundings::default()
            },
        )
    };
    assert_eq!(
        current(&with(Ok(" 16\n".into())), "depth"),
        (&KnobValue::Integer(16), Source::Script)
    );
    assert_eq!(why(&with(Err("no".into())), "depth"), "no");
    assert!(why(&with(Ok("sixteen".into())), "depth").contains("of another kind"));
}

#[test]
fn limits_count_what_is_not_tuned() {
    let text = "[[limit]]\nname = \"memory\"\nweights = { index_build_memory = 1.0, cache_size = 1.0 }\nat_most = 1000\n";
    let mut file = Catalogue::of(ServerProgram::Mongod).unwrap();
    file.merge(KnobFile::parse(text).unwrap());
    let surroundings = Surroundings {
        seen: Some(ServerMemory::default()),
        ..Surroundings::default()
    };
    let found = discover(&file, &replies("4.2"), &surroundings);
    // 500 of the 1000 are what index builds may use; it is not tuned here.
    let chosen = found.choose(&["cache_size".into()]).unwrap();
    let with = |mib: i64| {
        chosen
            .space
            .complete(&crate::support::configuration(&[("cache_size", mib)]))
    };
    assert!(with(500).is_ok() && with(501).is_err());
}

/// A server with a cache of 256 MiB, of which 200 are taken, on a host with 24,104 MiB.
fn bounded(file: &KnobFile, seen: Option<ServerMemory>) -> (String, String) {
    let mut replies = replies("4.2");
    replies.host = doc! { "system": { "memSizeMB": 24_104, "memLimitMB": 24_104 } };
    let cache = doc! {
        "maximum bytes configured": 256_i64 << 20,
        "bytes currently in the cache": 200_i64 << 20,
    };
    replies.status = doc! { "wiredTiger": { "cache": cache } };
    let surroundings = Surroundings {
        seen,
        ..Surroundings::default()
    };
    let found = discover(file, &replies, &surroundings);
    assert_eq!(current(&found, "cache_size").0, &KnobValue::Integer(256));
    let chosen = found.choose(&["cache_size".into()]).unwrap();
    let said = found.memory_risks.get("cache_size").cloned();
    (chosen.entries[0].range_in_words(), said.unwrap_or_default())
}

#[test]
fn a_cache_fits_into_the_servers_memory_groups() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let group = |limit_mib, resident_mib| {
        let seen = ServerMemory {
            limit_mib,
            resident_mib: Some(resident_mib),
        };
        bounded(&file, Some(seen))
    };
    // Without a limit it is the share of the host's memory.
    let (range, said) = group(None, 280);
    assert_eq!(
        (range.as_str(), said.as_str()),
        ("256 to 18078, logarithmic", "")
    );
    // The least is left beside the cache, or what is resident beyond it.
    let (range, said) = group(Some(619), 280);
    assert_eq!(range, "61 to 363, logarithmic");
    assert!(
        said.contains("619 MiB") && said.contains("256 MiB are left"),
        "{said}"
    );
    let (range, said) = group(Some(2000), 1200);
    assert_eq!(range, "200 to 1000, logarithmic");
    assert!(said.contains("1000 MiB are left"), "{said}");
    // What it is set to works; it is not raised.
    let (range, said) = group(Some(300), 280);
    assert_eq!(
        (range.as_str(), said.as_str()),
        ("30 to 256, logarithmic", "")
    );
    // A limit beyond the host's memory is none.
    assert_eq!(group(Some(99_999), 280).0, "256 to 18078, logarithmic");
}

#[test]
fn where_memory_groups_cannot_be_seen_a_cache_is_raised_by_a_knob_file_alone() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let (range, said) = bounded(&file, None);
    assert_eq!(range, "64 to 256, logarithmic");
    assert!(
        said.contains("cannot be seen") && said.contains("not raised above 256 MiB"),
        "{said}"
    );
    let text = "[[knob]]\nname = \"cache_size\"\ntype = \"integer\"\nlow = 100\nhigh = 2000\ndefault = 256\n\
                set = { engine = \"cache_size\", suffix = \"MB\" }\n";
    let own = KnobFile::parse(text).unwrap();
    let (range, said) = bounded(&own, None);
    assert_eq!(range, "100 to 2000");
    assert!(said.contains("nothing but its range bounds it"), "{said}");
    // A group that can be seen bounds what a file says, too.
    let seen = ServerMemory {
        limit_mib: Some(619),
        resident_mib: None,
    };
    assert_eq!(bounded(&own, Some(seen)).0, "100 to 363");
}

#[test]
fn tickets_begin_where_a_server_takes_them() {
    let found = found("4.2", ALL);
    for name in ["read_tickets", "write_tickets"] {
        let chosen = found.choose(&[name.into()]).unwrap();
        let words = chosen.entries[0].range_in_words();
        assert_eq!(words, "5 to 512, logarithmic", "{name}");
    }
}

/// What is tuned unasked, and what is left out, with runs of this many seconds.
fn unasked(length_s: Option<u64>) -> (Discovered, Vec<String>, Vec<(String, String)>) {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let runs = Runs {
        length: length_s.map(Duration::from_secs),
        remedy: "--trial-for makes them longer",
    };
    let surroundings = Surroundings {
        unlocked: ALL,
        runs: Some(runs),
        ..Surroundings::default()
    };
    let found = discover(&file, &replies("4.2"), &surroundings);
    let chosen = found.choose(&[]).unwrap();
    let names = chosen.entries.iter().map(|entry| entry.knob.name.clone());
    (found, names.collect(), chosen.left_out)
}

#[test]
fn what_runs_are_too_short_for_is_not_searched() {
    let dirty = ["eviction_dirty_trigger", "eviction_dirty_target"];
    let files = ["close_idle_time", "close_scan_interval"];
    let has = |names: &[String], all: &[&str]| {
        let has = all.iter().map(|one| names.iter().any(|name| name == one));
        has.collect::<Vec<_>>()
    };
    // A checkpoint is every 60 s.
    for length_s in [None, Some(20), Some(60)] {
        let (found, names, left_out) = unasked(length_s);
        assert_eq!(has(&names, &dirty), [false, false], "{names:?}");
        let why = left_out.iter().find(|(name, _)| name == dirty[0]).unwrap();
        assert!(
            why.1.contains("more than 60 s (checkpoint_seconds)") && why.1.contains("--trial-for"),
            "{why:?}"
        );
        // Named it is tuned; that its runs are too short stands in the plan.
        assert!(found.choose(&[dirty[0].into()]).is_ok());
        assert!(found.short_runs.contains_key(dirty[0]));
    }
    let (_, names, left_out) = unasked(Some(100));
    assert_eq!(has(&names, &dirty), [true, true], "{names:?}");
    assert_eq!(has(&names, &["checkpoint_seconds"]), [false]);
    assert_eq!(has(&names, &files), [false, false]);
    let why = |name| &left_out.iter().find(|(other, _)| other == name).unwrap().1;
    assert!(why("checkpoint_seconds").contains("more than 120 s"));
    assert!(why("close_idle_time").contains("more than 100000 s"));
}

#[test]
fn no_interval_is_tried_that_would_show_in_no_run() {
    let (found, names, _) = unasked(Some(130));
    assert!(names.contains(&"checkpoint_seconds".to_owned()));
    let entry = |found: &Discovered, name: &str| {
        let mut all = found.entries.iter();
        all.find(|entry| entry.knob.name == name).unwrap().clone()
    };
    let words = entry(&found, "checkpoint_seconds").range_in_words();
    assert_eq!(words, "15 to 130, logarithmic");
    // What is set now stays possible.
    let (found, ..) = unasked(Some(20));
    let words = entry(&found, "checkpoint_seconds").range_in_words();
    assert_eq!(words, "15 to 60, logarithmic");
    // In a session's own file it is a number of seconds, for its checkpoints may not be tuned.
    let trigger = entry(&found, "eviction_dirty_trigger");
    assert_eq!(trigger.run_min, Some(RunMin::Seconds(60.0)));
}

#[test]
fn threads_are_no_more_than_processors() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let range = |of_host: i32, seen: Option<u32>| {
        let mut replies = replies("4.2");
        replies.host = doc! { "system": { "numCores": of_host } };
        let surroundings = Surroundings {
            cpus: seen,
            ..Surroundings::default()
        };
        let found = discover(&file, &replies, &surroundings);
        let both = ["eviction_threads_max", "eviction_threads_min"].map(String::from);
        let chosen = found.choose(&both).unwrap();
        let said = found.cpu_bounds.get("eviction_threads_max").cloned();
        let writes = found.presets.iter().find(|p| p.name == "write-heavy");
        let threads = &writes.unwrap().values["eviction_threads_max"];
        let entry = &chosen.entries[0].knob.range;
        let Range::Integer { high, .. } = entry else {
            panic!("{entry:?}");
        };
        assert_eq!(*threads, KnobValue::Integer(8.min(*high)));
        (chosen.entries[0].range_in_words(), said.unwrap_or_default())
    };
    let (words, said) = range(64, None);
    assert_eq!(
        (words.as_str(), said.as_str()),
        ("1 to 20, logarithmic", "")
    );
    let (words, said) = range(64, Some(6));
    assert_eq!(words, "1 to 6, logarithmic");
    assert!(said.contains("is limited to 6 processors"), "{said}");
    // What is set now stays possible.
    let (words, said) = range(2, Some(6));
    assert_eq!(words, "1 to 4, logarithmic");
    assert!(said.contains("above 4, which it is set to now"), "{said}");
}

/// The server refuses fewer at most than at least.
#[test]
fn threads_at_most_are_no_fewer_than_those_at_least() {
    let file = Catalogue::of(ServerProgram::Mongod).unwrap();
    let alone = |of_host: i32| {
        let mut replies = replies("4.2");
        replies.host = doc! { "system": { "numCores": of_host } };
        let found = discover(&file, &replies, &Surroundings::default());
        found.choose(&["eviction_threads_max".into()])
    };
    let chosen = alone(64).unwrap();
    assert_eq!(chosen.entries[0].range_in_words(), "4 to 20, logarithmic");
    let refused = alone(2).unwrap_err().to_string();
    assert!(
        refused.contains("name eviction_threads_min as well"),
        "{refused}"
    );
}

#[test]
fn the_recorded_commands_are_those_that_are_sent() {
    for version in ["3.4", "4.2"] {
        let set = recorded(version, "set-dirty");
        assert!(set.command.contains_key("wiredTigerEngineRuntimeConfig"));
        assert_eq!(set.reply.get_f64("ok").ok(), Some(1.0));
    }
}
