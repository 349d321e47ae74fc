//! Contains the formulas.

use super::Truth;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn hump(x: f64, middle: f64, width: f64) -> f64 {
    if x > 0.0 {
        (-((x / middle).ln() / width).powi(2) / 2.0).exp()
    } else {
        0.0
    }
}

/// Returns the choice at a level.
fn choose<const N: usize>(of: [f64; N], level: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "levels of categories are small whole numbers; get() checks"
    )]
    of.get(level as usize).copied().unwrap_or(f64::NAN)
}

pub(super) fn wt8(x: &[f64]) -> Truth {
    let &[
        cache,
        trigger,
        share,
        syncdelay,
        threads,
        compressor,
        tickets,
        readahead,
    ] = x
    else {
        return MALFORMED;
    };
    let cpu = choose([1.0, 1.04, 1.35, 1.15], compressor);
    let io = choose([1.0, 0.62, 0.40, 0.42], compressor);
    let effective = cache + 0.30 * (16.0 - 1.5 - cache).max(0.0) / io;
    let miss = (-effective / 9.0).exp();
    let pressure = 1.0 / (1.0 + 0.35 * (cache - 12.0).max(0.0).powi(2));
    let mut s = 0.45 + 0.55 * sigmoid((trigger.ln() - 26f64.ln()) * 3.0);
    s *= 1.0 / (1.0 + 0.8 * (syncdelay / 260.0).powi(2) * (trigger / 55.0).powi(2));
    s *= 1.0 - 0.55 * (-syncdelay / 45.0).exp();
    s *= (1.0 - 0.22 * (1.0 - share).powi(2)) * (1.0 - 0.25 * sigmoid((share - 0.93) * 40.0));
    s *= 0.72 + 0.28 * hump(threads * (0.5 + 0.5 * share), 8.0, 0.8);
    s *= 0.6 + 0.4 * hump(tickets, 70.0, 1.1);
    let cost = 0.35 * cpu + 2.2 * miss * io * (1.0 + 0.9 * (readahead / 128.0).powf(0.6)) * 0.5;
    Truth {
        throughput: 300e3 * s * pressure / cost,
        fails: cache > 17.0 || (cache > 13.0 && tickets > 300.0),
        noise: 0.10,
    }
}

pub(super) fn sparse20(x: &[f64]) -> Truth {
    if x.len() != 20 {
        return MALFORMED;
    }
    let mut v = 0.5 + 0.5 * sigmoid((x[0].log10() - 0.8) * 3.0);
    v *= if x[1] == 0.0 {
        1.15
    } else {
        0.75 + 0.3 * hump(x[1], 300.0, 0.7)
    };
    v *= 0.7 + 0.3 * (1.0 - ((x[2] - 0.72).abs() / 0.25).min(1.0));
    let together = 0.3 + 0.7 * sigmoid((x[2] - 0.5) * 12.0);
    v *= (1.0 + 0.9 * hump(x[3], 48.0, 0.9) * together) / 1.9;
    v *= 1.0 - 0.35 * sigmoid((x[4] - 0.35) * 18.0);
    for j in 0..5 {
        let from_best = x[5 + j] - 0.2 - 0.12 * j as f64;
        v *= 1.0 - 0.035 * (from_best.abs() / 0.5).min(1.0);
    }
    Truth {
        throughput: 100e3 * v,
        fails: x[0] > 300.0 && x[3] > 100.0,
        noise: 0.15,
    }
}

pub(super) fn deceptive12(x: &[f64]) -> Truth {
    let &[
        algo,
        sched,
        compress,
        alloc,
        depth,
        page,
        memory,
        interval,
        threads,
        low,
        gap,
        batch,
    ] = x
    else {
        return MALFORMED;
    };
    let wide = hump(depth, 16.0, 1.4) * (0.6 + 0.4 * hump(threads, 6.0, 1.0));
    let better = 1.9
        * sigmoid((depth.ln() - 40f64.ln()) * 3.0)
        * (0.5 + 0.5 * hump(threads, 20.0, 0.7))
        * choose([0.15, 1.0, 0.75], algo)
        * choose([1.0, 0.75, 0.9], sched);
    let mut v = wide.max(better) + 0.15 * wide.min(better);
    v *= choose(
        [
            choose([1.0, 0.97, 0.75, 0.85], compress),
            choose([0.9, 1.0, 0.8, 1.05], compress),
            choose([0.9, 1.0, 0.85, 1.0], compress),
        ],
        algo,
    );
    v *= 0.75 + 0.25 * hump(page, if compress == 0.0 { 12.0 } else { 48.0 }, 0.8);
    v *= (1.0 - 1.6 * (memory - 0.62).powi(2) - (memory - 0.78).max(0.0) * 3.0).max(0.1);
    v *= 0.8 + 0.2 * sigmoid((interval.ln() - 30f64.ln()) * 2.0)
        - 0.1 * sigmoid((interval.ln() - 600f64.ln()) * 6.0);
    v *= 0.8 + 0.2 * hump((low + gap).min(1.0), 0.4, 0.5);
    v *= 0.9 + 0.1 * sigmoid((gap.ln() - 0.06f64.ln()) * 3.0);
    v *= 0.85 + 0.15 * hump(batch, if algo == 2.0 { 600.0 } else { 120.0 }, 1.2);
    let throughput = (80e3 * v * choose([1.0, 1.06], alloc)).max(500.0);
    Truth {
        throughput,
        fails: (memory > 0.8 && page > 128.0)
            || low + gap > 0.8
            || (depth > 128.0 && threads > 32.0)
            || (algo == 2.0 && sched == 1.0 && batch > 1500.0)
            || memory > 0.87,
        noise: 0.10 + 0.15 * (1.0 - throughput / 150e3).clamp(0.0, 1.0),
    }
}

/// Returned if the number of levels is not the number of knobs.
const MALFORMED: Truth = Truth {
    throughput: f64::NAN,
    fails: true,
    noise: 0.0,
};
