//! Defines the tracks, from top to bottom.

use super::device_seconds::Requests;
use super::reader::{Points, Reader};
use crate::html::charts::Scale;

/// Labels with their points.
pub(super) type Lines = Vec<(&'static str, Points)>;

/// A track: its id, its heading, its axis, and how its lines are read.
pub(super) type Plan = (&'static str, &'static str, Scale, fn(&Reader<'_>) -> Lines);

pub(super) const PLANS: [Plan; 7] = [
    (
        "operations",
        "Operations per second",
        Scale::Rate,
        |reader| {
            vec![
                ("reads", reader.operations(&["query", "getmore"])),
                ("writes", reader.operations(&["insert", "update", "delete"])),
            ]
        },
    ),
    (
        "latency",
        "Mean time of an operation",
        Scale::LatencyNs,
        |reader| {
            vec![
                ("reads", reader.latency("reads")),
                ("writes", reader.latency("writes")),
            ]
        },
    ),
    (
        "requests",
        "Disk: requests per second",
        Scale::Rate,
        |reader| {
            let count: fn(&Requests) -> Option<f64> = |requests| Some(requests.count as f64);
            vec![
                ("reads", reader.disk(0, "reads", count)),
                ("writes", reader.disk(1, "writes", count)),
            ]
        },
    ),
    ("bytes", "Disk: bytes per second", Scale::Bytes, |reader| {
        let bytes: fn(&Requests) -> Option<f64> = |requests| Some(requests.bytes as f64);
        vec![
            ("read", reader.disk(0, "read_bytes", bytes)),
            ("written", reader.disk(1, "write_bytes", bytes)),
        ]
    }),
    (
        "disk-latency",
        "Disk: mean time of a request",
        Scale::LatencyNs,
        |reader| {
            vec![
                ("reads", reader.disk_latency(0, "read_ms", "reads")),
                ("writes", reader.disk_latency(1, "write_ms", "writes")),
            ]
        },
    ),
    (
        "cache",
        "The server's cache, of what it may hold",
        Scale::Share,
        |reader| {
            vec![
                ("filled", reader.cache_share("bytes currently in the cache")),
                (
                    "dirty",
                    reader.cache_share("tracked dirty bytes in the cache"),
                ),
            ]
        },
    ),
    (
        "pressure",
        "Time in which some task of the host waited",
        Scale::Share,
        |reader| {
            vec![
                (
                    "for the disk",
                    reader.host_rate("pressure", "io.some_us", 1e-6),
                ),
                (
                    "for a CPU",
                    reader.host_rate("pressure", "cpu.some_us", 1e-6),
                ),
            ]
        },
    ),
];
