//! The present figures of all servers, and the page made of them.

use std::collections::BTreeMap;

use seekscope_run::CounterSample;

use crate::files::{FileCalls, Files};
use crate::findings::{self, FoundProblem};
use crate::layout::{self, FileLayout};
use crate::metrics as m;
use crate::page::Page;
use crate::rising::Rising;
use crate::server_counters::{Pressure, ServerCounters};

/// Limitations that are exported of one server.
const LIMITATIONS_MAX: usize = 8;
/// Characters of a limitation, and of its reason, that are kept.
const LIMITATION_MAX: usize = 160;
/// The share of a server's series that its layout may take: one in so many.
const LAYOUT_SHARE: usize = 4;

/// Everything that is exported.
#[derive(Debug)]
pub struct Registry {
    servers: BTreeMap<String, ServerFigures>,
    pressure: Pressure,
    series_max: usize,
    version: &'static str,
}

/// What the exporter itself uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnUse {
    pub cpu_s: f64,
    /// `None` if the kernel does not say.
    pub memory_bytes: Option<u64>,
}

/// The figures of one server.
#[derive(Debug, Default)]
pub struct ServerFigures {
    pub is_up: bool,
    /// Whether the kernel counts its calls.
    pub is_tracing: bool,
    /// The whole disk under its data, e.g. "vda".
    pub device: Option<String>,
    /// Time that the last reading took, seconds.
    pub reading_s: Option<f64>,
    /// When it was read, seconds since 1970.
    pub read_at_unix_s: Option<f64>,
    /// When its files were walked, seconds since 1970.
    pub walked_at_unix_s: Option<f64>,
    counters: ServerCounters,
    kernel_s: Rising,
    lost_calls: Rising,
    files: Files,
    layout: Vec<FileLayout>,
    problems: Vec<FoundProblem>,
    /// What is not exported, and why.
    limitations: Vec<(String, String)>,
}

/// What a trace has cost and lost since it was attached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TraceUse {
    pub kernel_s: f64,
    pub lost_calls: u64,
}

impl Registry {
    /// Creates a registry for at most `series_max` series, without those about the exporter itself.
    pub fn new(series_max: usize, version: &'static str) -> Self {
        Self {
            servers: BTreeMap::new(),
            pressure: Pressure::default(),
            series_max,
            version,
        }
    }

    /// Returns a server's figures; it is shown from now on.
    pub fn server(&mut self, name: &str) -> &mut ServerFigures {
        self.servers.entry(name.into()).or_default()
    }

    /// Shows a server no longer.
    pub fn forget(&mut self, name: &str) {
        self.servers.remove(name);
    }

    pub fn servers(&self) -> impl Iterator<Item = (&str, &ServerFigures)> {
        self.servers
            .iter()
            .map(|(name, figures)| (name.as_str(), figures))
    }

    /// Adds a reading of a server's counters, and of those of its host.
    pub fn read(&mut self, name: &str, samples: &[CounterSample]) {
        self.pressure.read(samples);
        self.server(name).counters.read(samples);
    }

    /// Adds what was counted of a server's files. `now_ns` is CLOCK_MONOTONIC.
    pub fn count(&mut self, name: &str, now_ns: u64, counted: impl IntoIterator<Item = FileCalls>) {
        // A new server shares the room from now on.
        self.server(name);
        let room = self.room_for_each();
        let figures = self.server(name);
        let for_files = room.saturating_sub(layout::series(&figures.layout));
        figures.files.add(now_ns, counted, for_files);
        self.fit(room);
    }

    /// Replaces what is known of the layout of a server's files.
    pub fn walked(&mut self, name: &str, at_unix_s: f64, files: Vec<FileLayout>) {
        let figures = self.server(name);
        figures.walked_at_unix_s = Some(at_unix_s);
        figures.layout = files;
        let room = self.room_for_each();
        self.fit(room);
    }

    /// Keeps the bound, of `room` for each server, after a server or series of its own came in, which leaves less to the
    /// others.
    fn fit(&mut self, room: usize) {
        for figures in self.servers.values_mut() {
            let files = std::mem::take(&mut figures.layout);
            figures.layout = layout::bounded(files, room / LAYOUT_SHARE);
            let room = room.saturating_sub(layout::series(&figures.layout));
            figures.files.shrink_to(room);
        }
    }

    /// Returns the series that the files of each server may have: an equal part of what the figures of servers leave.
    fn room_for_each(&self) -> usize {
        let fixed = self.fixed_page().series();
        self.series_max.saturating_sub(fixed) / self.servers.len().max(1)
    }

    /// Returns the samples whose number does not depend on files.
    fn fixed_page(&self) -> Page {
        let mut page = Page::default();
        for (name, figures) in &self.servers {
            figures.add_to(&mut page, name);
        }
        self.pressure.add_to(&mut page);
        page
    }

    /// Returns all samples of this moment.
    pub fn page(&self, own: OwnUse) -> Page {
        let mut page = self.fixed_page();
        for (name, figures) in &self.servers {
            figures.files.add_to(&mut page, name);
        }
        for (name, figures) in &self.servers {
            layout::add_to(&mut page, name, &figures.layout);
        }
        let series = page.series();
        let version = vec![("version", self.version.to_string())];
        page.add(&m::BUILD_INFO, version, 1.0);
        page.add(&m::OWN_CPU_SECONDS, Vec::new(), own.cpu_s);
        if let Some(bytes) = own.memory_bytes {
            page.add(&m::OWN_MEMORY, Vec::new(), bytes as f64);
        }
        page.add(&m::SERIES, Vec::new(), series as f64);
        page.add(&m::SERIES_MAX, Vec::new(), self.series_max as f64);
        page
    }
}

impl ServerFigures {
    /// Notes that the server is away: what it counts is unknown until it is back.
    pub fn lose(&mut self) {
        self.is_up = false;
        self.is_tracing = false;
        self.counters.lose();
        self.problems.clear();
    }

    /// Replaces what was found to slow it down, in order of importance. What is no longer found is shown no longer.
    pub fn found(&mut self, problems: Vec<FoundProblem>) {
        self.problems = findings::bounded(problems);
    }

    /// Adds what its trace has cost and lost.
    pub fn traced(&mut self, used: TraceUse) {
        self.kernel_s.read(used.kernel_s);
        self.lost_calls.read(used.lost_calls as f64);
    }

    /// Replaces what cannot be exported of it, each with the reason.
    pub fn limit<'a>(&mut self, limitations: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let cut = |text: &str| text.chars().take(LIMITATION_MAX).collect::<String>();
        let limitations = limitations.into_iter();
        let mut limitations: Vec<_> = limitations
            .map(|(what, why)| (cut(what), cut(why)))
            .collect();
        limitations.sort();
        limitations.dedup_by(|a, b| a.0 == b.0);
        limitations.truncate(LIMITATIONS_MAX);
        self.limitations = limitations;
    }

    fn add_to(&self, page: &mut Page, name: &str) {
        let labels = || vec![("server", name.to_string())];
        page.add(&m::UP, labels(), f64::from(u8::from(self.is_up)));
        self.counters.add_to(page, name, self.device.as_deref());
        page.add(&m::TRACING, labels(), f64::from(u8::from(self.is_tracing)));
        for (what, why) in &self.limitations {
            let mut labels = labels();
            labels.push(("what", what.clone()));
            labels.push(("why", why.clone()));
            page.add(&m::LIMITATION, labels, 1.0);
        }
        for (metric, counter) in [
            (&m::KERNEL_SECONDS, self.kernel_s),
            (&m::LOST_CALLS, self.lost_calls),
        ] {
            if counter.was_read() {
                page.add(metric, labels(), counter.total());
            }
        }
        for (metric, value) in [
            (&m::READING_SECONDS, self.reading_s),
            (&m::LAST_READING_TIME, self.read_at_unix_s),
            (&m::LAYOUT_WALK_TIME, self.walked_at_unix_s),
        ] {
            if let Some(value) = value {
                page.add(metric, labels(), value);
            }
        }
        findings::add_to(page, name, &self.problems);
        let others = self.files.among_others();
        page.add(&m::FILES_IN_OTHER, labels(), others as f64);
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::IoKind;

    use super::*;
    use crate::files::{Calls, FileName};
    use crate::page::Format;

    fn reads(collection: &str, latency_ns: u64) -> FileCalls {
        let mut buckets = [0; 40];
        buckets[20] = 1;
        let calls = Calls {
            latency_ns,
            ..Calls::default()
        };
        FileCalls {
            name: FileName::of_collection(collection),
            kind: IoKind::Read,
            calls: calls.with_latencies(&buckets),
        }
    }

    #[test]
    fn many_files_of_many_servers_stay_within_the_bound() {
        let mut registry = Registry::new(400, "1.2.3");
        for second in 0..20u64 {
            for server in ["a:1", "b:1", "c:1"] {
                let files = (0..500).map(|i| reads(&format!("db.c{i}"), 1_000 * (i + 1)));
                let now_ns = second * 60_000_000_000;
                registry.count(server, now_ns, files.collect::<Vec<_>>());
                let page = registry.page(OwnUse::default());
                // Those about the exporter itself come on top.
                assert!(page.series() <= 400 + 5, "{}", page.series());
            }
        }
        let text = registry.page(OwnUse::default()).text(Format::OpenMetrics);
        assert!(
            text.contains("collection=\"db.c499\""),
            "the one waited for longest"
        );
        assert!(text.contains("collection=\"other\""));
        assert!(text.contains("seekscope_exporter_build_info{version=\"1.2.3\"} 1\n"));
    }

    #[test]
    fn a_server_that_is_away_keeps_its_counters() {
        let mut registry = Registry::new(400, "1");
        let server = registry.server("a:1");
        server.is_up = true;
        for seconds in [1.0, 4.0] {
            server.traced(TraceUse {
                kernel_s: seconds,
                lost_calls: 0,
            });
        }
        let long = format!("x{}", "y".repeat(500));
        server.limit([(long.as_str(), "a"), ("x", "b"), ("x", long.as_str())]);
        server.lose();
        let text = registry.page(OwnUse::default()).text(Format::Prometheus);
        assert!(text.contains("seekscope_up{server=\"a:1\"} 0\n"), "{text}");
        assert!(text.contains("seekscope_exporter_kernel_seconds_total{server=\"a:1\"} 3\n"));
        assert_eq!(text.matches("seekscope_exporter_limitation{").count(), 2);
        registry.forget("a:1");
        assert!(
            !registry
                .page(OwnUse::default())
                .text(Format::Prometheus)
                .contains("a:1")
        );
    }
}
