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
        Self::with(bench, target, job, &[])
    }

    /// The same, with native histograms in place of the classic ones.
    pub fn with_native_histograms(bench: &Bench, target: SocketAddr) -> Self {
        Self::with(bench, target, "", &["--enable-feature=native-histograms"])
    }

    fn with(bench: &Bench, target: SocketAddr, job: &str, arguments: &[&str]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let folder = bench.path(&format!("prometheus-{}", address.port()));
        std::fs::create_dir(&folder).unwrap();
        let config = folder.join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n  - job_name: seekscope\n    scrape_interval: 1s\n    static_configs:\n      - targets: ['{target}']\n{job}"
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new(prometheus_tool("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            address: address.to_string(),
        }
    }

    /// The values that a query finds.
    pub fn query(&self, query: &str) -> Option<Vec<f64>> {
        let query = query.replace('"', "%22").replace(' ', "%20");
        let query = query.replace('+', "%2B");
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

    /// The value of a query that finds one.
    pub fn value(&self, query: &str) -> Option<f64> {
        match self.query(query)?.as_slice() {
            [value] => Some(*value),
            _ => None,
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
