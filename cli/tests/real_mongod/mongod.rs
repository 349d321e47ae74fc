//! A mongod of a test's own, which can be killed and started again on the same port.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_server::Server;

use crate::running::programs;
use crate::support::{Bench, runtime, send, until, wait};

/// Dropping it kills it.
pub struct Mongod {
    child: Child,
    arguments: Vec<String>,
    port: u16,
    data: PathBuf,
}

impl Mongod {
    /// Starts one with its data in a folder of this name, and waits until it answers.
    pub fn start(bench: &Bench, name: &str, more: &[&str]) -> Self {
        let data = bench.path(name);
        std::fs::create_dir(&data).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let port_text = port.to_string();
        let own = [
            "--dbpath",
            data.to_str().unwrap(),
            "--port",
            &port_text,
            "--bind_ip",
            "127.0.0.1",
            "--wiredTigerCacheSizeGB",
            "0.25",
        ];
        let arguments = own.iter().chain(more).map(|text| (*text).to_owned());
        let arguments: Vec<String> = arguments.collect();
        let mongod = Self {
            child: spawn(&arguments),
            arguments,
            port,
            data,
        };
        until(|| runtime().block_on(Server::connect(&mongod.uri())).is_ok());
        mongod
    }

    /// Starts a primary and a secondary that cannot become one. Returns their set's connection string too.
    pub fn set_of_two(bench: &Bench) -> (Self, Self, String) {
        let start =
            |name: &str| Self::start(bench, name, &["--replSet", "rs", "--oplogSize", "50"]);
        let (primary, secondary) = (start("first"), start("second"));
        let member = |id: i32, mongod: &Self, priority: i32| {
            doc! { "_id": id, "host": mongod.address(), "priority": priority }
        };
        let members = [member(0, &primary, 1), member(1, &secondary, 0)];
        let config = doc! { "_id": "rs", "members": members.to_vec() };
        primary.command("admin", doc! { "replSetInitiate": config });
        until(|| {
            let hello = secondary.command("admin", doc! { "isMaster": 1 });
            hello.get_bool("secondary").unwrap()
        });
        let (first, second) = (primary.address(), secondary.address());
        let uri = format!("mongodb://{first},{second}/?replicaSet=rs");
        (primary, secondary, uri)
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Leads to it alone.
    pub fn uri(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.address())
    }

    pub fn data(&self) -> &str {
        self.data.to_str().unwrap()
    }

    /// Runs a command, which must succeed.
    pub fn command(&self, database: &str, command: Document) -> Document {
        let reply = async {
            let server = Server::connect(&self.uri()).await.unwrap();
            server.command(database, command).await.unwrap()
        };
        runtime().block_on(reply)
    }

    /// Sends a signal without waiting for its effect.
    pub fn signal(&self, signal: i32) {
        send(&self.child, signal);
    }

    /// Ends it with this signal.
    pub fn end(&mut self, signal: i32) {
        self.signal(signal);
        wait(&mut self.child, Duration::from_secs(60));
    }

    pub fn start_again(&mut self) {
        self.child = spawn(&self.arguments);
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(arguments: &[String]) -> Child {
    let mut mongod = Command::new(&programs().mongod.path);
    mongod.args(arguments).stdout(Stdio::null());
    mongod.spawn().unwrap()
}
