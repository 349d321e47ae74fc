//! A real Prometheus that scrapes an exporter.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::support::{Bench, prometheus_tool};

/// Debian's Prometheus. Dropping it kills it.
pub struct Prometheus {
    child: std::process::Child,
    address: String,
}

impl Prometheus {
    /// Scrapes this address each second; `job` is further lines of its configuration, each indented by four.
    pub fn scraping(bench: &Bench, target: SocketAddr, job: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let config = bench.path("prometheus.yml");
        let text = format!(
            "scrape_configs:\n  - job_name: seekscope\n    scrape_interval: 1s\n    static_configs:\n      - targets: ['{target}']\n{job}"
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new(prometheus_tool("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                bench.path("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    /// The values that a query finds.
    pub fn query(&self, query: &str) -> Option<Vec<f64>> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let reply: serde_json::Value = serde_json::from_str(body).ok()?;
        let found = reply["data"]["result"].as_array()?.iter();
        found
            .map(|one| one["value"][1].as_str()?.parse().ok())
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
