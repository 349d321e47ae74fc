//! Counters of a real server and this host, also while the server is frozen.

use mongodb::bson::{Document, doc};
use rustix::process::{Pid, Signal, kill_process};
use seekscope_run::{CounterSample, DeviceFacts};
use seekscope_server::{ProcFs, Sampler, Server, directory_bytes, storage_facts};

use crate::support::{start, wait_until, workspace};

fn value(samples: &[CounterSample], source: &str, name: &str) -> Option<f64> {
    let mut samples = samples.iter();
    let sample = samples.find(|s| s.source == source && s.name == name)?;
    Some(sample.value)
}

#[tokio::test]
async fn counters_follow_what_happens_and_a_frozen_server_hides_only_its_own() {
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let server = Server::connect(&local.uri()).await.unwrap();
    let device = DeviceFacts::of_path("/".as_ref(), &workspace.data_directory()).unwrap();
    let disk = device.disk_device.expect("the build lies on a disk");
    let mut sampler = Sampler::new(&server, &ProcFs::host(), Some(local.pid()), Some(&disk));
    let before = sampler.sample().await;
    let collection = server.database("s").collection::<Document>("c");
    let documents = (0..500).map(|n| doc! { "_id": n, "text": "x".repeat(1000) });
    collection.insert_many(documents).await.unwrap();
    let after = sampler.sample().await;
    for (source, name, least) in [
        ("serverStatus", "opcounters.insert", 1.0),
        ("serverStatus", "opLatencies.writes.ops", 1.0),
        (
            "serverStatus",
            "wiredTiger.log.log bytes written",
            100_000.0,
        ),
        ("process", "write_calls", 1.0),
        ("client", "cpu_ns", 1.0),
        ("diskstats", "writes", 0.0),
        ("cgroup", "cpu_ns", 1.0),
    ] {
        let read = |samples| value(samples, source, name).unwrap_or_else(|| panic!("{name}"));
        assert!(read(&after) - read(&before) >= least, "{source} {name}");
    }
    assert!(value(&after, "process", "rss_bytes").unwrap() > 1e6);
    assert!(after.len() < 400, "{} rows a second", after.len());
    assert!(after.iter().all(|s| s.t_ns > before[0].t_ns));

    let pid = Pid::from_raw(i32::try_from(local.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // On a busy host a thread may run on for a moment.
    wait_until("the server is frozen", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", local.pid())).unwrap();
        stat.rsplit_once(')').unwrap().1.starts_with(" T")
    });
    let frozen = sampler.sample().await;
    let again = sampler.sample().await;
    kill_process(pid, Signal::CONT).unwrap();
    for samples in [&frozen, &again] {
        assert!(value(samples, "process", "rss_bytes").is_some());
        assert!(samples.iter().all(|s| s.source != "serverStatus"));
    }
    let mut thawed = sampler.sample().await;
    while value(&thawed, "serverStatus", "opcounters.insert").is_none() {
        thawed = sampler.sample().await;
    }
    let pid = local.pid();
    drop(local);
    let gone = sampler.sample().await;
    assert_eq!(value(&gone, "process", "cpu_ns"), None, "{pid}");
    assert!(value(&gone, "client", "cpu_ns").is_some());
}

#[tokio::test]
async fn what_collections_take() {
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let server = Server::connect(&local.uri()).await.unwrap();
    let collection = server.database("s").collection::<Document>("c");
    let documents = (0..500).map(|n| doc! { "_id": n, "text": "x".repeat(1000) });
    collection.insert_many(documents).await.unwrap();
    let facts = storage_facts(&server, "s", &["c", "nothing"])
        .await
        .unwrap();
    assert_eq!(facts.documents, 500);
    assert!((500_000..600_000).contains(&facts.data_bytes), "{facts:?}");
    assert!(facts.storage_bytes > 0 && facts.index_bytes > 0);
    assert!(directory_bytes(&workspace.data_directory()).unwrap() > 0);
}

/// Ends with the first error of whoever takes the samples.
#[tokio::test]
async fn samples_come_each_second() {
    let (_root, workspace) = workspace();
    let local = start(&workspace).await;
    let server = Server::connect(&local.uri()).await.unwrap();
    let mut sampler = Sampler::new(&server, &ProcFs::host(), Some(local.pid()), None);
    let mut times = Vec::new();
    let ended = sampler.every_second(|samples| {
        times.push(samples[0].t_ns);
        if times.len() < 3 {
            Ok(())
        } else {
            Err("enough")
        }
    });
    assert_eq!(ended.await.unwrap_err(), "enough");
    assert!(times[2] - times[0] > 1_000_000_000);
}
