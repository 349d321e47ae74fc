#![no_main]
//! Configuration texts.

use libfuzzer_sys::fuzz_target;
use seekscope_wiredtiger::{FileConfig, config};

fuzz_target!(|text: &str| {
    for pair in config::pairs(text) {
        let Ok((key, value)) = pair else { break };
        let _ = (key.text(), value.size_bytes(), value.pairs().count());
    }
    if let Ok(config) = FileConfig::parse(text) {
        let _ = config.newest_checkpoint();
    }
});
