//! Finds limits on the server's reads: those of its control group, which the kernel reports, and an
//! unreported one that shows because reads wait long while the disk answers quickly.
//!
//! A limit of a control group holds whether or not it was reached in this run, so it counts either way.

use seekscope_run::{DeviceFacts, DeviceModel, IoLimit, TokenBucket};

use crate::Evidence;
use crate::evidence::held_back::HeldBack;

/// A thread or more waited in at least this share of the time: the observed rate is then the allowed one.
const ALWAYS_WAITING: f64 = 0.9;
/// Requests of at most this mean size were limited by number, larger ones by bytes.
const SMALL_BYTES: f64 = 64.0 * 1024.0;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Limits {
    requests_per_s: Option<f64>,
    bytes_per_s: Option<f64>,
    /// True if the kernel reports them, false if they were inferred.
    named: bool,
}

impl Limits {
    pub(super) fn of(evidence: &Evidence<'_>) -> Self {
        let settings = evidence.host_settings();
        let limits = settings.map_or(&[][..], |host| &host.surroundings.io_limits);
        let named = Self::named(limits);
        match named.requests_per_s.or(named.bytes_per_s) {
            Some(_) => named,
            None => Self::inferred(evidence).unwrap_or_default(),
        }
    }

    /// Returns the tightest limits of the server's own group and those above it.
    pub(super) fn named(limits: &[IoLimit]) -> Self {
        let tightest = |what: &str| {
            let per_s = limits.iter().filter(|limit| limit.what == what);
            per_s
                .map(|limit| limit.per_s)
                .filter(|per_s| *per_s > 0)
                .min()
        };
        Self {
            requests_per_s: tightest("read IOPS").map(|n| n as f64),
            bytes_per_s: tightest("read bytes/s").map(|n| n as f64),
            named: true,
        }
    }

    fn inferred(evidence: &Evidence<'_>) -> Option<Self> {
        let held = HeldBack::of(evidence)?;
        if held.waiting.s_per_s < ALWAYS_WAITING {
            return None;
        }
        let rate = |name| evidence.rate("diskstats", name).filter(|rate| *rate > 0.0);
        let (requests, bytes) = (rate("reads")?, rate("read_bytes")?);
        let small = bytes / requests <= SMALL_BYTES;
        Some(Self {
            requests_per_s: small.then_some(requests),
            bytes_per_s: (!small).then_some(bytes),
            named: false,
        })
    }

    /// Returns a description, e.g. "150 read requests and 150 MB per second by its control group"; `None`
    /// without limits.
    pub(super) fn describe(&self) -> Option<String> {
        let by = match self.named {
            true => "by the server's control group",
            false => "by something between the server and the disk",
        };
        let rates = super::rates_in_words(self.requests_per_s, self.bytes_per_s);
        rates.map(|rates| format!("{rates} per second {by}"))
    }

    /// Applies the limits. A limit is a fact and a typical disk's rate a guess, so the limit replaces the
    /// latter. Of a measured rate and a limit, the lower applies.
    pub(super) fn apply(
        &self,
        model: &mut DeviceModel,
        measured: bool,
        device: Option<&DeviceFacts>,
    ) {
        let tighter = |bucket: &mut Option<TokenBucket>, per_s: f64| {
            let has = bucket.filter(|has| measured && has.per_s <= per_s);
            *bucket = Some(has.unwrap_or(TokenBucket { per_s, burst: 0.0 }));
        };
        if let Some(per_s) = self.requests_per_s {
            tighter(&mut model.iops_bucket, per_s);
            // The kernel counts requests as it sends them, split at the queue's limit; cloud providers count
            // differently.
            let largest = device.and_then(|device| device.request_bytes_max);
            if let Some(bytes) = largest.filter(|_| self.named && !measured) {
                model.request_bytes_max = bytes;
            }
        }
        if let Some(per_s) = self.bytes_per_s {
            tighter(&mut model.bytes_bucket, per_s);
            if !measured {
                at_least(model, per_s);
            }
        }
    }
}

/// Raises the model's rate to what the disk was seen to move per second, whatever a typical one does.
pub(super) fn at_least(model: &mut DeviceModel, bytes_per_s: f64) {
    for rate in [
        &mut model.sequential_bytes_per_s,
        &mut model.bytes_per_s_max,
        &mut model.buffered_bytes_per_s,
    ] {
        *rate = rate.max(bytes_per_s);
    }
    model.ns_per_byte = model.ns_per_byte.min(1e9 / bytes_per_s.max(1.0));
}
