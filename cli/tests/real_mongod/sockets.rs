//! A server that is named by its Unix socket is one on this host.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::exporter_process::{Exporter, Metrics};
use crate::running::programs;
use crate::support::{Bench, json, load_documents, shared_machine, until};

/// A mongod that listens on a socket, too. Dropping it kills the server.
struct WithSocket {
    server: Child,
    port: u16,
    folder: PathBuf,
}

impl WithSocket {
    fn start(folder: &Path) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let data = folder.join("data");
        std::fs::create_dir(&data).unwrap();
        let server = Command::new(programs().mongod.path)
            .args([
                "--bind_ip",
                "127.0.0.1",
                "--wiredTigerCacheSizeGB",
                "0.25",
                "--port",
            ])
            .arg(port.to_string())
            .arg("--dbpath")
            .arg(data)
            .arg("--unixSocketPrefix")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self {
            server,
            port,
            folder: folder.into(),
        };
        until(|| started.socket().exists());
        started
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(format!("mongodb-{}.sock", self.port))
    }

    fn uri(&self) -> String {
        let escaped = self.socket().display().to_string().replace('/', "%2F");
        format!("mongodb://{escaped}/")
    }
}

impl Drop for WithSocket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn its_process_and_its_files_are_found_and_each_has_a_name() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let folders = ["one", "two"].map(|name| bench.path(name));
    let servers = folders.each_ref().map(|folder| {
        std::fs::create_dir(folder).unwrap();
        WithSocket::start(folder)
    });
    let uri = servers[0].uri();
    load_documents(&uri, &"sockets.orders".parse().unwrap(), 2_000);
    let doctor = json(&mut bench.seekscope(&["doctor", &uri, "--for", "2s"]));
    assert_eq!(
        doctor["target"]["pid"],
        servers[0].server.id(),
        "{doctor:#}"
    );
    let limitations = doctor["limitations"].to_string();
    assert!(!limitations.contains("another host"), "{limitations}");

    let second = servers[1].uri();
    let arguments = [uri.as_str(), &second, "--every", "1s", "--no-layout"];
    let exporter = Exporter::start(&bench, &arguments);
    let up = |metrics: &Metrics| {
        let all = metrics
            .0
            .iter()
            .filter(|(s, _)| s.starts_with("seekscope_up{"));
        all.map(|(_, value)| *value).sum::<f64>()
    };
    let metrics = exporter.until(|metrics| up(metrics) >= 2.0);
    for server in &servers {
        let name = format!("server=\"{}\"", server.socket().display());
        assert_eq!(metrics.of("seekscope_up", &[&name]), Some(1.0));
    }
    exporter.end();
}
