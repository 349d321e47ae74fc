//! A real Cassandra of one node on free loopback ports, from the jars that `./x` fetches.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(900);
const READY: &str = "Starting listening for CQL clients";
/// What Cassandra 5 reaches into on Java 17.
const OPENS: [&str; 17] = [
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
    "jdk.compiler/com.sun.tools.javac",
];
const EXPORTS: [&str; 11] = [
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/java.lang.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.attach/sun.tools.attach",
];
const LOGBACK: &str = r#"<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %d{HH:mm:ss} %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="console"/></root>
</configuration>
"#;

/// Dropping it kills the server and removes its data.
pub(crate) struct CassandraServer {
    pub(crate) port: u16,
    pid: u32,
    /// Ended: the server is dead.
    keeper: Option<std::thread::JoinHandle<()>>,
    folder: tempfile::TempDir,
}

/// One server for all tests that use it at the same time; each has a keyspace of its own.
pub(crate) fn shared() -> Arc<CassandraServer> {
    static SERVER: Mutex<Weak<CassandraServer>> = Mutex::new(Weak::new());
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    server.upgrade().unwrap_or_else(|| {
        let started = Arc::new(CassandraServer::start());
        *server = Arc::downgrade(&started);
        started
    })
}

impl CassandraServer {
    /// Starts it and waits until it accepts clients.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (storage_port, port) = (free_port(), free_port());
        write_configuration(folder.path(), storage_port, port);
        let command = command_line(folder.path());
        let (started, has_started) = mpsc::channel();
        // The kernel kills the server when the thread that started it ends: if the tests are killed, too.
        let keeper = std::thread::spawn(move || keep(command, &started));
        let pid = has_started.recv().unwrap();
        let server = Self {
            port,
            pid,
            keeper: Some(keeper),
            folder,
        };
        server.wait_until_ready();
        server
    }

    /// Returns a URI for [`seekscope_cassandra::CqlTarget`].
    pub(crate) fn uri(&self, keyspace: &str, options: &str) -> String {
        format!("cql://127.0.0.1:{}/{keyspace}?{options}", self.port)
    }

    /// Kills the server at once, as a crash would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        keeper.join().unwrap();
    }

    fn wait_until_ready(&self) {
        let log = self.folder.path().join("server.log");
        let begun = Instant::now();
        while begun.elapsed() < START_LIMIT {
            let text = fs::read_to_string(&log).unwrap_or_default();
            // It says so a moment before it listens.
            let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
            if text.contains(READY) && listens() {
                return;
            }
            let ended = self.keeper.as_ref().is_none_or(|k| k.is_finished());
            assert!(!ended, "Cassandra ended at its start:\n{text}");
            std::thread::sleep(Duration::from_millis(200));
        }
        let text = fs::read_to_string(&log).unwrap_or_default();
        panic!("Cassandra is not ready after {START_LIMIT:?}:\n{text}");
    }
}

impl Drop for CassandraServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn keep(mut command: Command, started: &mpsc::Sender<u32>) {
    let mut child: Child = command
        .spawn()
        .expect("setpriv (util-linux) and Java 17: './x setup' installs them");
    started.send(child.id()).unwrap();
    child.wait().unwrap();
}

/// The folder with Cassandra's jars: SEEKSCOPE_TEST_CASSANDRA, else the one in seekscope's cache.
fn jars() -> PathBuf {
    let folder = std::env::var_os("SEEKSCOPE_TEST_CASSANDRA").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME is set");
            Path::new(&home).join(".cache/seekscope/cassandra-5.0.5")
        },
        PathBuf::from,
    );
    let lib = folder.join("lib");
    assert!(
        lib.is_dir(),
        "no jars in {}: set SEEKSCOPE_TEST_CASSANDRA or run './x setup'",
        lib.display()
    );
    lib
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn write_configuration(folder: &Path, storage_port: u16, port: u16) {
    let data = folder.join("data");
    let data = data.display();
    let yaml = format!(
        "cluster_name: seekscope
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: \"127.0.0.1:{storage_port}\"
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: {storage_port}
native_transport_port: {port}
start_native_transport: true
commitlog_sync: periodic
commitlog_sync_period: 10000ms
auto_snapshot: false
commitlog_directory: {data}/commitlog
data_file_directories: [{data}/data]
saved_caches_directory: {data}/saved_caches
hints_directory: {data}/hints
cdc_raw_directory: {data}/cdc_raw
"
    );
    fs::create_dir(folder.join("conf")).unwrap();
    fs::write(folder.join("conf/cassandra.yaml"), yaml).unwrap();
    fs::write(folder.join("conf/logback.xml"), LOGBACK).unwrap();
}

fn command_line(folder: &Path) -> Command {
    let lib = jars();
    let log = fs::File::create(folder.join("server.log")).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "java", "-Xms512M", "-Xmx512M"]);
    command.args(["-XX:+UseG1GC", "-Djdk.attach.allowAttachSelf=true"]);
    command.arg(format!(
        "-javaagent:{}",
        lib.join("jamm-0.4.0.jar").display()
    ));
    command.arg("-Dio.netty.tryReflectionSetAccessible=true");
    command.arg(format!(
        "-Dcassandra.config=file://{}",
        at("conf/cassandra.yaml")
    ));
    command.arg(format!("-Dcassandra.storagedir={}", at("data")));
    command.arg(format!("-Dcassandra.logdir={}", at("logs")));
    command.arg(format!(
        "-Dlogback.configurationFile={}",
        at("conf/logback.xml")
    ));
    command.args([
        "-Dcassandra-foreground=yes",
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.ring_delay_ms=0",
    ]);
    for package in OPENS {
        command.args(["--add-opens", &format!("{package}=ALL-UNNAMED")]);
    }
    for package in EXPORTS {
        command.args(["--add-exports", &format!("{package}=ALL-UNNAMED")]);
    }
    command.arg("-cp");
    command.arg(format!("{}:{}/*", at("conf"), lib.display()));
    command.arg("org.apache.cassandra.service.CassandraDaemon");
    command.stdin(Stdio::null());
    command.stdout(log.try_clone().unwrap()).stderr(log);
    command
}
