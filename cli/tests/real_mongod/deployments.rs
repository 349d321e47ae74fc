//! The deployments themselves: what all other tests rely on.

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;

use crate::running::{own, shared};
use crate::support::{runtime, shared_machine, until};

#[test]
fn every_topology_takes_writes() {
    let _machine = shared_machine();
    for topology in [
        Topology::Standalone,
        Topology::StandaloneWithPassword,
        Topology::StandaloneWithTls,
        Topology::ReplicaSet { members: 1 },
        Topology::ReplicaSet { members: 3 },
        Topology::Sharded { shards: 2 },
    ] {
        let running = shared(topology);
        let insert = doc! { "insert": "written", "documents": [{ "by": "us" }] };
        let reply = running.command("deployments", insert);
        assert_eq!(reply.get_i32("n").unwrap(), 1, "{topology:?}: {reply}");
        println!("{topology:?}: {}", running.version());
    }
}

#[test]
fn a_set_has_its_members_and_a_cluster_its_shards() {
    let _machine = shared_machine();
    let set = shared(Topology::ReplicaSet { members: 3 });
    assert_eq!(set.members(), ["member-0", "member-1", "member-2"]);
    let status = set.command("admin", doc! { "replSetGetStatus": 1 });
    let members = status.get_array("members").unwrap();
    let states = members.iter().map(|one| one.as_document().unwrap());
    let states: Vec<&str> = states.map(|one| one.get_str("stateStr").unwrap()).collect();
    assert_eq!(states, ["PRIMARY", "SECONDARY", "SECONDARY"]);

    let cluster = shared(Topology::Sharded { shards: 2 });
    assert_eq!(
        cluster.members(),
        ["config", "shard-0", "shard-1", "mongos"]
    );
    let shards = cluster.command("admin", doc! { "listShards": 1 });
    assert_eq!(shards.get_array("shards").unwrap().len(), 2, "{shards}");
}

#[test]
fn nobody_is_let_in_without_the_password() {
    let running = shared(Topology::StandaloneWithPassword);
    let without = running.member("standalone").uri();
    let refused = runtime().block_on(async {
        let server = seekscope_server::Server::connect(&without).await.unwrap();
        server.command("admin", doc! { "serverStatus": 1 }).await
    });
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn one_of_a_tests_own_takes_arguments_and_records_diagnostic_data() {
    let _machine = shared_machine();
    let running = own(Topology::Standalone, &["--syncdelay", "7"]);
    let said = running.command("admin", doc! { "getParameter": 1, "syncdelay": 1 });
    assert_eq!(said.get_f64("syncdelay").unwrap(), 7.0, "{said}");
    until(|| running.data_directory().join("diagnostic.data").exists());
    let (pid, data) = (running.pid(), running.data_directory().to_owned());
    drop(running);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!data.exists());
}
