//! A mongos keeps no data.

use seekscope_bench::deployment::Topology;

use crate::running::shared;
use crate::support::{Bench, assert_fails};

#[test]
fn commands_about_files_and_disks_name_the_members_of_its_shards() {
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    let mongos = cluster.member("mongos").uri();
    let members = ["shard-0", "shard-1"].map(|name| {
        let uri = cluster.member(name).uri();
        let rest = uri.split_once("://").unwrap().1;
        rest.split(['/', '?']).next().unwrap().to_string()
    });
    for arguments in [
        vec!["collect", &mongos, "--for", "2s", "--out", "bundle.tar.zst"],
        vec!["prefetch", &mongos, "router.orders"],
    ] {
        let output = bench.seekscope(&arguments).output().unwrap();
        println!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let words = ["a mongos, which keeps no data", &members[0], &members[1]];
        assert_fails(&output, 3, &words);
        assert!(!bench.path("seekscope-runs").exists(), "{arguments:?}");
    }
}
