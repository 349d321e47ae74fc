//! What draws, values and requests cost: `cargo bench -p seekscope-workload [-- MILLIONS]`, five million
//! of each unless said otherwise. One thread; CPU time, the least of five.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program of its own, on numbers of its own"
)]

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use seekscope_client::{ActorPlace, Reply, Request, Workload};
use seekscope_stats::SplitMix64;
use seekscope_workload::generators::{
    ByteOrder, Compressible, Exponential, Hotspot, JavaRandom, Permutation, ScrambledZipfian, Zipf,
    ZipfianGray, fnv1a_64_abs, printable,
};
use seekscope_workload::sysbench::{Era, SysbenchLoad};
use seekscope_workload::ycsb::{
    ClientSlice, Edition, Properties, YcsbLoad, YcsbRun, YcsbSettings, workload,
};

const ROWS: u64 = 10_000_000;

fn main() {
    let millions = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse::<u64>().ok());
    let count = millions.unwrap_or(5) * 1_000_000;
    println!(
        "{:<44} {:>10} {:>10}",
        "one thread, CPU time", "ns each", "M/s"
    );
    choosers(count);
    values(count / 10);
    requests(count / 10);
}

fn choosers(count: u64) {
    let mut random = SplitMix64::new(1);
    let places = Permutation::new(ROWS, 1);
    measure("uniform", count, || random.below(ROWS));
    for theta in [0.5, 0.99, 1.0, 1.2] {
        let zipf = Zipf::new(theta, ROWS).unwrap();
        measure(&format!("zipfian (exact, {theta}), spread"), count, || {
            places.apply(zipf.draw(&mut random))
        });
    }
    let scrambled = ScrambledZipfian::new(ROWS);
    measure("zipfian-ycsb (scrambled)", count, || {
        scrambled.draw(&mut random)
    });
    let latest = ZipfianGray::new(ROWS, 0.99);
    measure("latest (YCSB's)", count, || latest.draw(&mut random));
    let hotspot = Hotspot::new(ROWS, 0.2, 0.8);
    measure("hotspot", count, || hotspot.draw(&mut random));
    let exponential = Exponential::new(95.0, ROWS as f64).unwrap();
    measure("exponential", count, || exponential.draw(&mut random));
    let mut number = 0;
    measure("key hash (FNV-1a)", count, || {
        number += 1;
        fnv1a_64_abs(number, ByteOrder::LowFirst)
    });
    let mut java = JavaRandom::new(1);
    measure("java.util.Random nextInt(10)", count, || {
        java.next_int_below(10)
    });
}

fn values(count: u64) {
    let mut random = SplitMix64::new(1);
    let mut bytes = [0; 100];
    measure("value of 100 bytes (YCSB's)", count, || {
        printable::fill(&mut bytes, &mut random);
        bytes[99]
    });
    let compressible = Compressible::new(0.5);
    measure("value of 100 bytes (compressibility 0.5)", count, || {
        compressible.fill(&mut bytes, 8, 1, &mut random);
        bytes[99]
    });
}

/// Draws, keys and BSON of whole requests, as actors write them.
fn requests(count: u64) {
    let reply = Reply {
        returned: 1,
        matched: 1,
        ..Reply::default()
    };
    let settings = |edition, more: &str| {
        let mut properties = workload('a').unwrap();
        let text = format!("recordcount={ROWS}\n{more}");
        properties.extend(Properties::parse(&text).unwrap());
        YcsbSettings::new(&properties, edition, None).unwrap()
    };
    for edition in [Edition::Ycsb, Edition::Corrected] {
        for (name, shares) in [
            ("read", "readproportion=1\nupdateproportion=0"),
            ("update", "readproportion=0\nupdateproportion=1"),
        ] {
            let run = YcsbRun::new(settings(edition, shares), ClientSlice::default()).unwrap();
            serve(
                &format!("{name} request ({})", edition.name()),
                count,
                &run,
                &reply,
            );
        }
        let load = YcsbLoad::new(&settings(edition, ""));
        serve(
            &format!("insert request ({})", edition.name()),
            count,
            &load,
            &reply,
        );
    }
    let settings = Era::Y2013To2015.defaults();
    let reply = Reply {
        matched: 1_000,
        ..Reply::default()
    };
    let load = SysbenchLoad::new(&settings);
    serve(
        "sysbench insert of 1000 documents",
        count / 1_000,
        &load,
        &reply,
    );
}

fn serve(name: &str, count: u64, workload: &dyn Workload, reply: &Reply<'_>) {
    let mut actor = workload.actor(ActorPlace { index: 0, count: 1 });
    let mut request = Request::default();
    measure(name, count, || {
        actor.begin();
        request.clear();
        while actor.request(&mut request).is_some() {
            actor.reply(Ok(reply));
        }
        request.body.bytes().len()
    });
}

fn measure<T>(name: &str, count: u64, mut once: impl FnMut() -> T) {
    let times = (0..5).map(|_| {
        let before = cpu_ns();
        for _ in 0..count {
            black_box(once());
        }
        cpu_ns() - before
    });
    let each_ns = times.min().unwrap_or(0) as f64 / count.max(1) as f64;
    println!("{name:<44} {each_ns:>10.1} {:>10.1}", 1_000.0 / each_ns);
}

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap_or(0)
}
