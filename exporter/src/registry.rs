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
const LIMITATION_MAX: usize = 240;
/// Series about the exporter itself.
const OWN_SERIES: usize = 6;
/// Less than this, seconds, is the difference of two measurements and not what counting costs.
const CALL_DELAY_MIN_S: f64 = 1e-8;
/// The share of a server's series that its layout may take: one in this many.
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
    /// `None` where its programs added nothing that could be measured.
    call_delay_s: Option<f64>,
    lost_calls: Rising,
    files: Files,
    layout: Vec<FileLayout>,
    problems: Vec<FoundProblem>,
    /// What is not exported, and why.
    limitations: Vec<(String, String)>,
    /// The room for series that is too small for those of files.
    files_left_out: Option<usize>,
}

/// What a trace has cost and lost since it was attached.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TraceUse {
    /// How much longer a system call of the host that is not counted took after its programs were attached than
    /// before.
    pub call_delay_s: f64,
    pub lost_calls: u64,
}

impl Registry {
    /// Creates a registry for at most `series_max` series.
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

    /// Replaces what is known of the layout of a server's files, after they were walked.
    pub fn walked(&mut self, name: &str, at_unix_s: f64, files: Vec<FileLayout>) {
        self.server(name).walked_at_unix_s = Some(at_unix_s);
        self.replace_layout(name, files);
    }

    /// Replaces the same without a walk: files that were walked are gone, or are called otherwise.
    pub fn replace_layout(&mut self, name: &str, files: Vec<FileLayout>) {
        self.server(name).layout = files;
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
        self.room_for_files(&self.fixed_page())
    }

    /// Returns the same beside this page. Findings come and go; the room for them is kept free, so that files do not
    /// come and go with them.
    fn room_for_files(&self, fixed: &Page) -> usize {
        let free = self.servers.values().map(|figures| {
            findings::SERIES_MAX.saturating_sub(findings::series(&figures.problems))
        });
        self.room_beside(fixed.series() + free.sum::<usize>())
    }

    /// Returns an equal part for each server of the series that are left beside this many.
    fn room_beside(&self, series: usize) -> usize {
        let taken = OWN_SERIES + series;
        self.series_max.saturating_sub(taken) / self.servers.len().max(1)
    }

    /// Returns the samples whose number does not depend on files. Many servers have equal parts of the room.
    fn fixed_page(&self) -> Page {
        let mut of_host = Page::default();
        self.pressure.add_to(&mut of_host);
        let room = self.room_beside(of_host.series());
        let mut page = Page::default();
        for (name, figures) in &self.servers {
            page.append(figures.page(name, room));
        }
        page.append(of_host);
        page
    }

    /// Notes of which servers there is no room for the figures of files. Returns whether that has changed.
    fn note_left_out(&mut self, room: usize) -> bool {
        let mut has_changed = false;
        for figures in self.servers.values_mut() {
            let least = figures.files.series_of_others() + layout::series(&figures.layout);
            let left_out = (least > room).then_some(room);
            has_changed |= left_out != std::mem::replace(&mut figures.files_left_out, left_out);
        }
        has_changed
    }

    /// Returns by how much the host's other calls take longer while those of any server are counted, as it was measured
    /// for the first of them.
    fn call_delay_s(&self) -> Option<f64> {
        let servers = || self.servers.values();
        let is_tracing = servers().any(|figures| figures.is_tracing);
        let delays = servers().filter_map(|figures| figures.call_delay_s);
        delays.filter(|_| is_tracing).reduce(f64::max)
    }

    /// Returns all samples of this moment.
    pub fn page(&mut self, own: OwnUse) -> Page {
        let mut page = self.fixed_page();
        if self.note_left_out(self.room_beside(page.series())) {
            page = self.fixed_page();
        }
        let room = self.room_for_files(&page);
        self.fit(room);
        let without_reserve = self.room_beside(page.series());
        for (name, figures) in &self.servers {
            let series = figures.files.series() + layout::series(&figures.layout);
            // The sum of all files without series of their own may alone be more than there is room for; what is kept
            // free for findings is given up for it.
            if series <= without_reserve {
                figures.files.add_to(&mut page, name);
            }
        }
        for (name, figures) in &self.servers {
            layout::add_to(&mut page, name, &figures.layout);
        }
        let version = vec![("version", self.version.to_string())];
        page.add(&m::BUILD_INFO, version, 1.0);
        page.add(&m::OWN_CPU_SECONDS, Vec::new(), own.cpu_s);
        if let Some(bytes) = own.memory_bytes {
            page.add(&m::OWN_MEMORY, Vec::new(), bytes as f64);
        }
        if let Some(seconds) = self.call_delay_s() {
            page.add(&m::CALL_DELAY, Vec::new(), seconds);
        }
        page.add(&m::SERIES_MAX, Vec::new(), self.series_max as f64);
        // With itself.
        let series = page.series() + 1;
        page.add(&m::SERIES, Vec::new(), series as f64);
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
        // Once anything traces the host's calls, they take no longer for another that does: that is no zero.
        if used.call_delay_s >= CALL_DELAY_MIN_S {
            self.call_delay_s = Some(used.call_delay_s);
        }
        self.lost_calls.read(used.lost_calls as f64);
    }

    /// Replaces what cannot be exported of it, each with the reason.
    pub fn limit<'a>(&mut self, limitations: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let cut = |text: &str| match text.char_indices().nth(LIMITATION_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        let limitations = limitations.into_iter();
        let mut limitations: Vec<_> = limitations
            .map(|(what, why)| (cut(what), cut(why)))
            .collect();
        limitations.sort();
        limitations.dedup_by(|a, b| a.0 == b.0);
        limitations.truncate(LIMITATIONS_MAX);
        self.limitations = limitations;
    }

    /// Returns what does not depend on files, as much as there is room for.
    fn page(&self, name: &str, series_max: usize) -> Page {
        let mut page = self.page_with(name, None);
        if page.series() > series_max {
            let why = format!("--series allows {series_max} series for each server");
            page = self.page_with(name, Some(("figures of the server are left out", &why)));
            page.truncate(series_max);
        }
        page
    }

    fn page_with(&self, name: &str, limitation: Option<(&str, &str)>) -> Page {
        let mut page = Page::default();
        let labels = || vec![("server", name.to_string())];
        page.add(&m::UP, labels(), f64::from(u8::from(self.is_up)));
        let limitations = self.limitations.iter();
        let limitations = limitations.map(|(what, why)| (what.as_str(), why.as_str()));
        let room = self
            .files_left_out
            .map(|room| format!("--series allows {room} series for each server"));
        let left_out = room
            .as_deref()
            .map(|why| ("figures of files are left out", why));
        let limitations = left_out.into_iter().chain(limitations);
        for (what, why) in limitation.into_iter().chain(limitations) {
            let mut labels = labels();
            labels.push(("what", what.into()));
            labels.push(("why", why.into()));
            page.add(&m::LIMITATION, labels, 1.0);
        }
        page.add(&m::TRACING, labels(), f64::from(u8::from(self.is_tracing)));
        self.counters
            .add_to(&mut page, name, self.device.as_deref());
        if self.lost_calls.was_read() {
            page.add(&m::LOST_CALLS, labels(), self.lost_calls.total());
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
        findings::add_to(&mut page, name, &self.problems);
        let others = self.files.among_others();
        page.add(&m::FILES_IN_OTHER, labels(), others as f64);
        page
    }
}

#[cfg(test)]
mod tests;
