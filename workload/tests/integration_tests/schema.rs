//! Every way of storing the same samples gives the same answers.

use std::path::Path;
use std::time::Duration;

use seekscope_run::{DeviceFacts, SchemaShape};
use seekscope_server::{
    CgroupTree, LocalServerOptions, PrivateServer, SlowDisk, SlowDiskSpec, Workspace,
};
use seekscope_workload::schema::{
    IndexOrder, LabOptions, LabServer, SampleOptions, Samples, Shape, ValueKind, Variant,
    experiments, measure, recommendation,
};

use crate::support::{Fixture, server_binary};

/// Returns samples with holes and late arrivals, over more than a year.
fn samples(per_day: u32) -> Samples {
    Samples::new(SampleOptions {
        metrics: 2,
        clients: 3,
        days: if per_day == 1 { 400 } else { 2 },
        per_day,
        missing_share: 0.1,
        late_share: 0.1,
        values: ValueKind::Random,
        ..SampleOptions::default()
    })
}

fn options() -> LabOptions {
    LabOptions {
        batch_samples: 100,
        queries: 1,
        slow_stretch: Duration::from_millis(200),
        ..LabOptions::default()
    }
}

fn private_lab_server(root: &Path, slow: bool) -> LabServer {
    let mut workspace = Workspace::create(root, &root.join("leases")).unwrap();
    let slow_disk = slow.then(|| {
        let device = DeviceFacts::of_path(Path::new("/"), root).unwrap();
        let tree = CgroupTree::discover(Path::new("/proc"));
        SlowDisk::create(
            &tree,
            &SlowDiskSpec::hdd(),
            &device,
            workspace.unique_name(),
        )
        .unwrap()
    });
    workspace
        .record_cgroup(slow_disk.as_ref().map(SlowDisk::group))
        .unwrap();
    let options = LocalServerOptions::new(server_binary(), workspace.data_directory(), 32 << 20);
    LabServer::Private(Box::new(PrivateServer::new(workspace, options, slow_disk)))
}

async fn measured(
    lab_server: &mut LabServer,
    samples: &Samples,
    variant: &Variant,
) -> Vec<SchemaShape> {
    let shapes = measure(lab_server, samples, variant, &options(), &|_| ())
        .await
        .unwrap();
    for shape in &shapes {
        assert_eq!(shape.wrong_answers, 0, "{shape:?}");
        assert_eq!(shape.year_read_ns.len(), 1, "{shape:?}");
    }
    shapes
}

#[tokio::test]
async fn every_shape_of_daily_samples_gives_the_same_answer() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut lab_server = private_lab_server(root.path(), false);
    let samples = samples(1);
    let mut all = Variant::all(&samples, 20);
    all.push(Variant {
        order: IndexOrder::DateFirst,
        ..Variant::new(Shape::Month)
    });
    let mut shapes = Vec::new();
    for variant in &all {
        shapes.extend(measured(&mut lab_server, &samples, variant).await);
    }
    let expected: u64 = (0..6)
        .map(|series| samples.answer(series, 0, 400).samples)
        .sum();
    for shape in &shapes {
        assert_eq!(shape.samples, expected, "{shape:?}");
        assert!(shape.cold && shape.reads_per_query.is_some(), "{shape:?}");
        assert!(shape.insert_per_s.len() == 10 && shape.insert_per_s[9].0 == expected);
        let storage = shape.storage.as_ref().unwrap();
        assert!(storage.documents > 0 && storage.directory_bytes.is_some());
        assert_eq!(shape.preallocation_ns.is_some(), shape.preallocated);
    }
    assert_eq!(shapes.len(), all.len());
    let native = shapes.iter().find(|s| s.name == "time-series collection");
    // What such a collection stores are the server's buckets: at least one for each series, and fewer than
    // the samples, which the answers have counted.
    let buckets = native.unwrap().storage.as_ref().unwrap().documents;
    assert!((6..expected).contains(&buckets), "{buckets}");
    let names: Vec<String> = experiments(&shapes).into_iter().map(|e| e.name).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(
        recommendation(&shapes)
            .unwrap()
            .starts_with("On the plain disk: ")
    );
}

#[tokio::test]
async fn buckets_of_minutes_and_hours_hold_what_was_sampled_each_minute() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut lab_server = private_lab_server(root.path(), false);
    let samples = samples(1440);
    for variant in Variant::all(&samples, 100) {
        if matches!(variant.shape, Shape::TimeBucket(_) | Shape::SizeBucket(_)) {
            let shape = measured(&mut lab_server, &samples, &variant)
                .await
                .remove(0);
            let documents = shape.storage.as_ref().unwrap().documents;
            assert!(documents < shape.samples / 20, "{shape:?}");
        }
    }
}

#[tokio::test]
async fn an_emulated_disk_has_results_of_its_own_and_is_lifted() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut lab_server = private_lab_server(root.path(), true);
    let shapes = measured(&mut lab_server, &samples(1), &Variant::new(Shape::Sample)).await;
    let disks: Vec<&str> = shapes.iter().map(|s| s.disk.as_str()).collect();
    assert_eq!(disks.len(), 2);
    assert!(disks[1].contains("emulated hdd"), "{disks:?}");
    let read = |shape: &SchemaShape| shape.read_bytes_per_query.unwrap();
    assert!(
        shapes.iter().all(|shape| read(shape) > 0.0),
        "cold queries read from the disk"
    );
    assert_eq!(shapes[1].insert_per_s.len(), 10);
}

#[tokio::test]
async fn a_foreign_server_is_measured_warm_and_left_empty() {
    let fixture = Fixture::start().await;
    let mut lab_server = fixture.foreign_lab_server();
    let samples = samples(1);
    let shapes = measured(&mut lab_server, &samples, &Variant::new(Shape::Month)).await;
    let storage = shapes[0].storage.as_ref().unwrap();
    assert!(!shapes[0].cold && storage.directory_bytes.is_none());
    assert!(
        shapes[0].limitations[0].what.contains("warm"),
        "{:?}",
        shapes[0].limitations
    );
    let database = fixture.server.database("seekscope_bench");
    assert!(database.list_collection_names().await.unwrap().is_empty());

    let refused = Variant {
        preallocated: true,
        ..Variant::new(Shape::Native)
    };
    let shapes = measure(&mut lab_server, &samples, &refused, &options(), &|_| ())
        .await
        .unwrap();
    assert_eq!(shapes[0].samples, 0);
    assert!(shapes[0].limitations[0].what.contains("not measured"));
}
