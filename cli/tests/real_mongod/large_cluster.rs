//! `doctor` of a cluster of 50 shards with three members each, which no test can start: a proxy for each of its servers
//! passes on what the members of one set and the mongos of a small cluster answer, under the names of the large one.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Bson, Document, doc};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use seekscope_bench::child_usage;
use seekscope_bench::deployment::Topology;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::shared;
use crate::schemas::assert_valid;
use crate::support::{Bench, machine, runtime, until};

const SHARDS: usize = 50;
const MEMBERS: usize = 3;
const ROUTER_PORT: u16 = 27_017;
const MEMBER_PORT: u16 = 27_100;
/// The addresses of two hosts, which are network namespaces of this test: that of the cluster, and that of seekscope.
const SERVERS: &str = "10.77.0.1";
const OPERATOR: &str = "10.77.0.2";

const OP_REPLY: i32 = 1;
const OP_MSG: i32 = 2013;

/// A network namespace, which goes with the process that holds it.
struct Host(Child);

impl Host {
    fn new() -> Self {
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sleep", "600"]).stdin(Stdio::null());
        let host = Self(holder.spawn().unwrap());
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", host.0.id());
        until(|| std::fs::read_link(&theirs).is_ok_and(|net| net != own));
        host
    }

    fn namespace(&self) -> OwnedFd {
        let path = format!("/proc/{}/ns/net", self.0.id());
        std::fs::File::open(path).unwrap().into()
    }

    fn run(&self, line: &str) {
        let pid = self.0.id().to_string();
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &pid, "--net"])
            .args(line.split(' '));
        let output = command.output().expect("nsenter; `./x test` installs it");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {told}");
    }

    /// Two hosts with a cable between them.
    fn two() -> (Self, Self) {
        let (servers, operator) = (Self::new(), Self::new());
        let other = operator.0.id();
        servers.run(&format!(
            "ip link add cable type veth peer name cable netns {other}"
        ));
        for (host, address) in [(&servers, SERVERS), (&operator, OPERATOR)] {
            host.run(&format!("ip address add {address}/24 dev cable"));
            host.run("ip link set cable up");
            host.run("ip link set lo up");
        }
        (servers, operator)
    }

    /// Listeners on this host for the rest of this process, which is on another.
    fn listen(&self, ports: Vec<u16>) -> Vec<TcpListener> {
        let namespace = self.namespace();
        let listeners = std::thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            let listen = |port: &u16| TcpListener::bind((SERVERS, *port)).unwrap();
            ports.iter().map(listen).collect()
        });
        listeners.join().unwrap()
    }

    /// Runs the command there.
    fn at<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let namespace = self.namespace();
        let enter = move || {
            let kind = Some(LinkNameSpaceType::Network);
            Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
        };
        // SAFETY: setns(2) may be called between fork and exec.
        unsafe { command.pre_exec(enter) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn member_port(shard: usize, member: usize) -> u16 {
    MEMBER_PORT + u16::try_from(shard * MEMBERS + member).unwrap()
}

fn member_name(shard: usize, member: usize) -> String {
    format!("{SERVERS}:{}", member_port(shard, member))
}

fn shard_name(shard: usize) -> String {
    format!("shard{shard:02}")
}

/// The shards as a mongos lists them.
fn listed_shards() -> Vec<Bson> {
    let shard = |shard: usize| {
        let name = shard_name(shard);
        let members: Vec<String> = (0..MEMBERS).map(|m| member_name(shard, m)).collect();
        let host = format!("{name}/{}", members.join(","));
        Bson::from(doc! { "_id": name, "host": host, "state": 1 })
    };
    (0..SHARDS).map(shard).collect()
}

/// The names of the large cluster, by those that they replace.
type Names = HashMap<String, String>;

fn rename(value: &mut Bson, names: &Names) {
    match value {
        Bson::String(text) => {
            if let Some(name) = names.get(text) {
                text.clone_from(name);
            }
        }
        Bson::Array(values) => values.iter_mut().for_each(|value| rename(value, names)),
        Bson::Document(document) => rename_in(document, names),
        _ => {}
    }
}

fn rename_in(document: &mut Document, names: &Names) {
    for (_, value) in document.iter_mut() {
        rename(value, names);
    }
}

/// An answer under the names of the large cluster.
fn renamed(answer: &[u8], names: &Names) -> Vec<u8> {
    let number = |at: usize| i32::from_le_bytes(answer[at..at + 4].try_into().unwrap());
    let document_at = match number(12) {
        OP_REPLY => 36,
        OP_MSG => 21,
        other => panic!("an answer of kind {other}"),
    };
    let mut document = Document::from_reader(&answer[document_at..]).unwrap();
    rename_in(&mut document, names);
    if document.contains_key("shards") {
        document.insert("shards", listed_shards());
    }
    let mut message = answer[..document_at].to_vec();
    if number(12) == OP_MSG {
        message[16] &= !1; // no checksum follows
    }
    message.extend(document.to_vec().unwrap());
    let length = i32::try_from(message.len()).unwrap();
    message[..4].copy_from_slice(&length.to_le_bytes());
    message
}

async fn pass_on(client: TcpStream, real: SocketAddr, names: Arc<Names>) -> io::Result<()> {
    let (mut questions, mut to_client) = client.into_split();
    let (mut answers, mut to_server) = TcpStream::connect(real).await?.into_split();
    let there = tokio::io::copy(&mut questions, &mut to_server);
    let back = async {
        loop {
            let mut answer = vec![0; 4];
            answers.read_exact(&mut answer).await?;
            let length = u32::from_le_bytes(answer[..4].try_into().unwrap());
            answer.resize(usize::try_from(length).unwrap(), 0);
            answers.read_exact(&mut answer[4..]).await?;
            to_client.write_all(&renamed(&answer, &names)).await?;
        }
    };
    tokio::select! {
        ended = there => ended.map(|_| ()),
        ended = back => ended,
    }
}

async fn serve(listener: TcpListener, real: SocketAddr, names: Arc<Names>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((client, _)) = listener.accept().await {
        // A connection that ends is no failure.
        tokio::spawn(pass_on(client, real, Arc::clone(&names)));
    }
}

/// Starts the proxies; they go with the runtime.
fn start_proxies(servers: &Host) -> tokio::runtime::Runtime {
    let set = shared(Topology::ReplicaSet { members: MEMBERS });
    let cluster = shared(Topology::Sharded { shards: 2 });
    let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let real: Vec<SocketAddr> = (0..MEMBERS)
        .map(|member| local(set.member(&format!("member-{member}")).port()))
        .collect();
    let mut ports = vec![ROUTER_PORT];
    let members = (0..SHARDS).flat_map(|shard| (0..MEMBERS).map(move |member| (shard, member)));
    ports.extend(
        members
            .clone()
            .map(|(shard, member)| member_port(shard, member)),
    );
    let mut listeners = servers.listen(ports).into_iter();
    let runtime = runtime();
    let router = local(cluster.member("mongos").port());
    runtime.spawn(serve(listeners.next().unwrap(), router, Arc::default()));
    for ((shard, member), listener) in members.zip(listeners) {
        let mut names: Names = (0..MEMBERS)
            .map(|member| (real[member].to_string(), member_name(shard, member)))
            .collect();
        names.insert("seekscope".into(), shard_name(shard));
        runtime.spawn(serve(listener, real[member], Arc::new(names)));
    }
    runtime
}

/// The proxies take most of a small machine.
#[test]
fn fifty_shards_are_asked_in_time_and_shown_on_a_page_that_can_be_read() {
    const WATCHED: Duration = Duration::from_secs(10);
    let _machine = machine();
    let bench = Bench::new();
    let (servers, operator) = Host::two();
    let proxies = start_proxies(&servers);
    let uri = format!("mongodb://{SERVERS}:{ROUTER_PORT}/");
    let mut doctor = bench.seekscope(&["doctor", &uri, "--for", "10s", "--out", "run", "--json"]);
    let printed = std::fs::File::create(bench.path("printed.json")).unwrap();
    let told = std::fs::File::create(bench.path("told")).unwrap();
    let began = Instant::now();
    let doctor = operator.at(doctor.stdout(printed).stderr(told)).spawn();
    let (status, usage) = child_usage::wait(doctor.unwrap().id()).unwrap();
    let took = began.elapsed();
    proxies.shutdown_background();
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    assert!(status.success(), "{told}");
    println!("{took:?}, {} MB", usage.rss_bytes / 1_000_000);
    assert!(took < WATCHED + Duration::from_secs(30), "{took:?}: {told}");
    assert!(usage.rss_bytes < 300_000_000, "{}", usage.rss_bytes);

    let document: Value =
        serde_json::from_slice(&std::fs::read(bench.path("printed.json")).unwrap()).unwrap();
    assert_valid("doctor", &document);
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
    let members = document["examination"]["members"].as_array().unwrap();
    assert_eq!(members.len(), SHARDS * MEMBERS + 1);
    let silent = members
        .iter()
        .filter(|member| !member["not_asked"].is_null());
    assert_eq!(silent.count(), 0, "{told}");
    for shard in 0..SHARDS {
        let name = shard_name(shard);
        let of_shard = members.iter().filter(|member| member["shard"] == *name);
        let states: Vec<&str> = of_shard.map(|m| m["state"].as_str().unwrap()).collect();
        let count = |state: &str| states.iter().filter(|other| **other == state).count();
        assert_eq!((count("primary"), count("secondary")), (1, 2), "{name}");
    }
    // Members that are alike give one line, not one each.
    let limitations = document["limitations"].as_array().unwrap();
    assert!(limitations.len() < 20, "{limitations:#?}");
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() < 20, "{findings:#?}");
    let page = std::fs::metadata(bench.path("run/report.html")).unwrap();
    println!("a page of {} KB", page.len() / 1_000);
    assert!(page.len() < 2_000_000, "{}", page.len());
    let shown = bench.seekscope(&["doctor", "run"]).output().unwrap();
    let lines = String::from_utf8(shown.stdout).unwrap().lines().count();
    assert!(lines < 400, "{lines} lines");
}
