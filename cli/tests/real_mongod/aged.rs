//! A collection that has lost its order on disk, and cold scans of it on limited disks.

use std::path::Path;
use std::time::{Duration, Instant};

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use seekscope_run::DeviceFacts;
use seekscope_server::{CgroupTree, SlowDisk, SlowDiskSpec};

use crate::running::Running;

pub const DATABASE: &str = "opinion";
const DOCUMENT_BYTES: usize = 4_000;
/// Rounds of updates, each followed by a checkpoint, and one document in so many that each updates.
const ROUNDS: u64 = 4;
const ONE_IN: u64 = 8;
/// Hardly more than a cache of 8 MiB holds when its eviction rests, at 80 %.
const FORGOTTEN_BYTES: i64 = 7 << 20;

/// Numbers in no order, the same each time.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns bytes that do not compress.
    fn bytes(&mut self) -> Bson {
        let bytes = (0..DOCUMENT_BYTES / 8).flat_map(|_| self.next().to_le_bytes());
        Bson::Binary(Binary {
            subtype: BinarySubtype::Generic,
            bytes: bytes.collect(),
        })
    }
}

/// In [`DATABASE`], a collection that was updated here and there, `aged`, and its copy in order, `fresh`.
pub fn prepare(server: &Running, documents: u64) {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let ids: Vec<i64> = (0..i64::try_from(documents).unwrap()).collect();
    let inserts = ids.chunks(1000).map(|ids| {
        let documents = ids
            .iter()
            .map(|id| doc! { "_id": *id, "pad": draws.bytes() });
        let documents: Vec<Document> = documents.collect();
        doc! { "insert": "aged", "documents": documents }
    });
    server.commands(DATABASE, inserts);
    // Less than the collection, so that eviction writes pages in no order, as on a server at work.
    set_cache(server, "32M");
    for _ in 0..ROUNDS {
        let mut drawn: Vec<&i64> = ids
            .iter()
            .filter(|_| draws.next().is_multiple_of(ONE_IN))
            .collect();
        drawn.sort_by_cached_key(|_| draws.next());
        let updates = drawn.chunks(500).map(|ids| {
            let updates = ids.iter().map(|id| {
                doc! { "q": { "_id": **id }, "u": { "$set": { "pad": draws.bytes() } } }
            });
            let updates: Vec<Document> = updates.collect();
            doc! { "update": "aged", "updates": updates }
        });
        server.commands(DATABASE, updates);
        server.command("admin", doc! { "fsync": 1 });
    }
    let in_order = vec![doc! { "$sort": { "_id": 1 } }, doc! { "$out": "fresh" }];
    let copy =
        doc! { "aggregate": "aged", "pipeline": in_order, "cursor": {}, "allowDiskUse": true };
    server.command(DATABASE, copy);
    server.command("admin", doc! { "fsync": 1 });
}

fn set_cache(server: &Running, size: &str) {
    let option = format!("cache_size={size}");
    let set = doc! { "setParameter": 1, "wiredTigerEngineRuntimeConfig": option };
    server.command("admin", set);
}

/// Neither the server nor the kernel keeps anything of the collections.
pub fn forget(server: &Running) {
    set_cache(server, "8M");
    // Eviction works in the background. What it cannot evict is little, and not waited for.
    let begun = Instant::now();
    while cached_bytes(server) > FORGOTTEN_BYTES && begun.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
    }
    set_cache(server, "256M");
    server.reset_page_cache();
}

/// What the server's cache holds.
fn cached_bytes(server: &Running) -> i64 {
    let status = server.command("admin", doc! { "serverStatus": 1 });
    let cache = status.get_document("wiredTiger").unwrap();
    let cache = cache.get_document("cache").unwrap();
    let bytes = cache.get("bytes currently in the cache").unwrap();
    bytes.as_i64().or(bytes.as_i32().map(i64::from)).unwrap()
}

/// Reads all of a collection; seconds.
pub fn scan(server: &Running, collection: &str) -> f64 {
    let begun = Instant::now();
    let all = vec![doc! { "$match": { "absent": { "$exists": true } } }];
    let read = doc! { "aggregate": collection, "pipeline": all, "cursor": {} };
    server.command(DATABASE, read);
    begun.elapsed().as_secs_f64()
}

/// [`scan`] where nothing of it is in memory.
pub fn cold_scan(server: &Running, collection: &str) -> f64 {
    forget(server);
    scan(server, collection)
}

/// Makes the server read from a disk with these limits.
pub fn limited(server: &Running, spec: &SlowDiskSpec) -> SlowDisk {
    let device = DeviceFacts::of_path(Path::new("/"), server.data_directory()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    // Other tests limit their servers at the same time.
    let name = format!("seekscope-aged-test-{}", server.pid());
    let mut slow = SlowDisk::create(&tree, spec, &device, &name).unwrap();
    slow.add_process(server.pid()).unwrap();
    slow
}
