//! A running exporter, and what a scraper gets from it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use crate::support::{Bench, send, until, wait};

/// Dropping it kills it.
pub struct Exporter {
    pub child: Child,
    pub address: SocketAddr,
    stderr: BufReader<ChildStderr>,
}

/// The answer to a request.
pub struct Answer {
    pub status: u16,
    /// The header lines, in lower case.
    pub head: String,
    pub body: String,
}

/// Values by series, as they stand on the page.
#[derive(Debug)]
pub struct Metrics(pub BTreeMap<String, f64>);

impl Exporter {
    /// Starts it on a free port; it has served something when this returns.
    pub fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut command = bench.seekscope(&["exporter", "--listen", "127.0.0.1:0"]);
        command.args(arguments).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            said.clear();
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended at once");
            if let Some(url) = said.trim().strip_prefix("serving metrics at ") {
                let (_, rest) = url.split_once("://").unwrap();
                break rest.strip_suffix("/metrics").unwrap().parse().unwrap();
            }
        };
        Self {
            child,
            address,
            stderr,
        }
    }

    /// Reads what it says until a line holds `part`, and returns that line.
    pub fn until_said(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it ended");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Sends the head of a request as it is, and reads the answer to its end.
    pub fn request(&self, head: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(head.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(Answer::read(&bytes))
    }

    pub fn get(&self, path: &str, accept: &str) -> Answer {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        self.request(&head).unwrap()
    }

    pub fn metrics(&self) -> Metrics {
        Metrics::read(&self.get("/metrics", "text/plain").body)
    }

    /// Waits until the metrics are as wanted, and returns them.
    pub fn until(&self, wanted: impl Fn(&Metrics) -> bool) -> Metrics {
        let found = std::cell::RefCell::new(None);
        until(|| {
            let metrics = self.metrics();
            let is_wanted = wanted(&metrics);
            found.replace(Some(metrics));
            is_wanted
        });
        found.into_inner().unwrap()
    }

    /// Ends it as a service manager does.
    pub fn end(mut self) {
        send(&self.child, libc::SIGTERM);
        let status = wait(&mut self.child, Duration::from_secs(20));
        assert_eq!(status.code(), Some(0), "{status:?}");
    }
}

impl Answer {
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Self {
            status: status.unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.into(),
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Metrics {
    pub fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Self(values.collect())
    }

    /// The only series of this metric with all these labels, such as `op="read"`.
    pub fn of(&self, metric: &str, labels: &[&str]) -> Option<f64> {
        let found: Vec<f64> = self
            .0
            .iter()
            .filter(|(series, _)| series.split('{').next() == Some(metric))
            .filter(|(series, _)| labels.iter().all(|label| series.contains(label)))
            .map(|(_, value)| *value)
            .collect();
        assert!(found.len() <= 1, "{metric} {labels:?}: {found:?}");
        found.first().copied()
    }
}
