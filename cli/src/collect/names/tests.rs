use seekscope_run::{ClusterRecord, ShardOnDisk, ShardShare, SpreadCollection};

use super::*;

#[test]
fn names_of_others_are_found_and_those_of_the_engine_left() {
    let mut names = Names::default();
    names.namespace("shop.orders.2024");
    names.joined("crm.people, crm.people/mail_1 and 3 more");
    names.fields(r#"{"customer.mail":1,"_id":-1}"#);
    names.fields("IXSCAN { city: 1, born: -1 }");
    names.uri("mongodb://db1.example.com:27017,10.0.0.7/crm2?replicaSet=payroll&w=1");
    names.path("/var/lib/mongodb/acme/collection-7--12.wt");
    names.path("/d/acme-index/index-12-3.wt");
    names.value("storage.wiredTiger.engineConfig.cacheSizeGB", "4");
    names.value("replication.replSetName", "rs-acme");
    let found: Vec<&str> = names.0.iter().map(String::as_str).collect();
    assert_eq!(
        found,
        [
            "10.0.0.7",
            "acme",
            "acme-index",
            "born",
            "city",
            "crm",
            "crm2",
            "customer",
            "customer.mail",
            "d",
            "db1",
            "db1.example.com",
            "mail",
            "mail_1",
            "orders",
            "orders.2024",
            "payroll",
            "people",
            "rs-acme",
            "shop",
        ]
    );
}

#[test]
fn names_of_shards_and_sharded_collections_are_found() {
    let mut document = RunDocument::begin("doctor", Vec::new());
    let share = ShardShare {
        shard: "berlin".into(),
        ..ShardShare::default()
    };
    let cluster = ClusterRecord {
        collections: vec![SpreadCollection {
            namespace: "shop.orders".into(),
            key: r#"{"customer":1}"#.into(),
            shards: vec![share],
            zones: vec!["europe".into()],
            moved_from: vec!["rome".into()],
            ..SpreadCollection::default()
        }],
        shards: vec![ShardOnDisk {
            shard: "paris".into(),
            databases: vec!["crm".into()],
            ..ShardOnDisk::default()
        }],
        ..ClusterRecord::default()
    };
    document.examination.get_or_insert_default().cluster = Some(cluster);
    let found: Vec<String> = names(&document, &[]).into_iter().collect();
    assert_eq!(
        found,
        [
            "berlin", "crm", "customer", "europe", "orders", "paris", "rome", "shop"
        ]
    );
}

#[test]
fn the_primary_of_a_plan_is_a_name() {
    let mut document = RunDocument::begin("reorder", Vec::new());
    let record = document.reorder.get_or_insert_default();
    let plan = record.plan.get_or_insert_default();
    plan.blocking.primary = Some("db7.example.com:27017".into());
    assert!(names(&document, &[]).contains("db7.example.com"));
}

fn found(collect: impl Fn(&mut Names)) -> Vec<String> {
    let mut names = Names::default();
    collect(&mut names);
    names.0.into_iter().collect()
}

#[test]
fn what_is_called_like_a_file_of_the_engine_is_not_spared() {
    assert_eq!(
        found(|names| names.host("mongod.acme.com:27017")),
        ["mongod.acme.com"]
    );
    assert_eq!(
        found(|names| names.host("storage.acme.com")),
        ["storage", "storage.acme.com"]
    );
    let path = "/srv/mongod.acme-prod/WiredTiger.wt";
    assert_eq!(found(|names| names.path(path)), ["mongod.acme-prod"]);
    for name in [
        "/mongod.acme-prod",
        "/storage.acme",
        "/WiredTigerAcme",
        "/metrics.acme",
        "/collection-7.acme",
        "/secantus_acme.wt",
    ] {
        assert_eq!(found(|names| names.path(name)), [&name[1..]]);
    }
    for own in [
        "/data/WiredTigerLog.0000000012",
        "/data/metrics.2026-09-01T10-00-00Z-00000",
        "/data/_mdb_catalog.wt",
        "inode 12",
    ] {
        assert_eq!(found(|names| names.path(own)), [""; 0], "{own}");
    }
    assert_eq!(found(|names| names.namespace("_mdb_catalog")), [""; 0]);
}

#[test]
fn options_of_connection_strings_name_sets_users_and_files() {
    let uri = "mongodb://h/?authSource=acme&tlsCAFile=/etc/tls/corp.pem&appName=till&w=1";
    assert_eq!(
        found(|names| names.uri(uri)),
        ["acme", "corp.pem", "h", "till", "tls"]
    );
    assert_eq!(
        found(|names| names.uri("mongodb://DB1/")),
        ["DB1", "db1"],
        "as a driver shows it"
    );
}

#[test]
fn what_was_typed_is_found_by_its_option() {
    let typed = [
        "doctor",
        "--collection",
        "a.b1",
        "--collection=c",
        "--index",
        r#"{"ssn":1}"#,
        "--out",
        "acme",
        "--since",
        "acme-before",
        "--for",
        "60s",
    ];
    assert_eq!(
        found(|names| names.arguments(&typed.map(String::from))),
        ["a", "acme", "acme-before", "b1", "c", "ssn"]
    );
}

#[test]
fn names_with_marks_of_ours_in_them_are_found() {
    assert_eq!(
        found(|names| names.joined("shop.black and white")),
        ["black and white", "shop"]
    );
    assert_eq!(
        found(|names| names.fields("IXSCAN { x1,y1: 1, z1: -1 }, IXSCAN { q1: \"text\" }")),
        ["q1", "x1", "y1", "z1"]
    );
}

#[test]
fn errors_settings_and_filters_name_places() {
    let error = "cannot read /srv/acme/x.wt: dns error of db9.acme.com:27018, see /proc/12/maps";
    let names = found(|names| {
        names.sentence(error);
        names.addresses(error);
    });
    assert_eq!(names, ["acme", "db9", "db9.acme.com", "x.wt"]);
    let extension = "eviction=(threads_min=4),extensions=[/opt/acme/x.so]";
    assert_eq!(
        found(|names| names.value("wiredTigerEngineRuntimeConfig", extension)),
        ["acme", "x.so"]
    );
    assert_eq!(
        found(|names| names.value("storage.dbPath", "acme")),
        ["acme"]
    );
    assert_eq!(
        found(|names| names.places("only files at or below acme/db1, /srv/b1")),
        ["acme", "b1", "db1"]
    );
}

/// A regression: the finding on sorts that spill goes by the names of their files.
#[test]
fn temporary_files_of_the_server_keep_their_names() {
    for file in ["extsort-sort-executor.3", "extsort-index.0", "extsort.12"] {
        let path = format!("/srv/acme/_tmp/{file}");
        assert_eq!(found(|names| names.path(&path)), ["acme"], "{file}");
    }
    let path = "/srv/acme/_tmp/extsort-Acme 2021";
    assert_eq!(
        found(|names| names.path(path)),
        ["acme", "extsort-Acme 2021"]
    );
}
