//! The role that `doctor --print-role` prints is taken by the server as printed, and a user who has only it
//! lacks no right.

use mongodb::bson::{Bson, Document, doc};
use seekscope_bench::deployment::Topology;

use crate::running::{Running, shared};
use crate::support::{Bench, json, shared_machine, stderr};

const PASSWORD: &str = "only-for-this-test";

/// What `createRole` of the printed text is given, as mongosh would read it.
fn printed_role(script: &str) -> Document {
    let body = script.split_once("createRole(").unwrap().1;
    let body = body.split_once(");").unwrap().0;
    let uncommented: Vec<&str> = body
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect();
    let mut json = uncommented.join(" ");
    for name in [
        "role",
        "privileges",
        "roles",
        "resource",
        "actions",
        "cluster",
        "db",
        "collection",
    ] {
        json = json.replace(&format!(" {name}:"), &format!(" \"{name}\":"));
    }
    // JavaScript allows a comma after the last one, JSON does not.
    let mut words: Vec<&str> = json.split_whitespace().collect();
    for at in 1..words.len() {
        if words[at].starts_with([']', '}']) {
            words[at - 1] = words[at - 1].trim_end_matches(',');
        }
    }
    let value: serde_json::Value = serde_json::from_str(&words.join(" ")).unwrap();
    mongodb::bson::serialize_to_document(&value).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let bench = Bench::new();
    let mut command = bench.seekscope(&["doctor", "--print-role"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!bench.path("seekscope-runs").exists());
    String::from_utf8(output.stdout).unwrap()
}

/// Creates role and user; the user's connection string.
fn user_with(running: &Running, script: &str, name: &str) -> String {
    let printed = printed_role(script);
    let role = format!("{name}_role");
    let command = doc! {
        "createRole": &role, "roles": [], "privileges": printed.get_array("privileges").unwrap().clone(),
    };
    running.command("admin", command);
    let roles = [role.as_str()].map(Bson::from).to_vec();
    running.command(
        "admin",
        doc! { "createUser": name, "pwd": PASSWORD, "roles": roles },
    );
    let uri = running.member("standalone").uri();
    uri.replace("mongodb://", &format!("mongodb://{name}:{PASSWORD}@"))
}

#[test]
fn every_release_takes_it_and_its_user_lacks_no_right() {
    let _machine = shared_machine();
    let running = shared(Topology::StandaloneWithPassword);
    running.load("role.orders", 2_000);
    for (name, arguments) in [("any", vec![]), ("own", vec![running.uri()])] {
        let uri = user_with(&running, &printed(&arguments), name);
        let bench = Bench::new();
        let document = json(&mut bench.seekscope(&["doctor", &uri, "--for", "3s", "--out", "run"]));
        let limitations = document["limitations"].as_array().unwrap();
        for limitation in limitations {
            let text = limitation.to_string();
            let speaks_of_rights = ["may not run", "not authorized", "grant", "--print-role"]
                .iter()
                .find(|word| text.contains(*word));
            assert_eq!(speaks_of_rights, None, "{limitation:#}");
        }
        let members = &document["examination"]["members"];
        let collections = members[0]["collections"].as_array().unwrap();
        let seen = collections.iter().any(|c| c["namespace"] == "role.orders");
        assert!(seen, "{collections:#?}");
    }
}
