//! Gives up what the exporter does not need: it runs for a year, and answers strangers.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};

/// What is needed again whenever a server is restarted: to load the programs, to see a server's open files, and to read
/// its data directory. `SYS_ADMIN` is given up where the two finer ones are there, from Linux 5.8 on.
const NEEDED: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Drops all other capabilities of this process. Call it while there is only one thread. `writes_files` keeps the
/// right to write into a folder of another user, such as that of node_exporter.
///
/// What the kernel refuses is no failure: whoever has no capabilities has none to drop.
pub fn drop_others(writes_files: bool) {
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    let finer = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let mut kept = NEEDED;
    kept.set(CapabilitySet::DAC_OVERRIDE, writes_files);
    kept.set(CapabilitySet::SYS_ADMIN, !sets.permitted.contains(finer));
    sets.permitted &= kept;
    sets.effective &= kept;
    sets.inheritable &= kept;
    let _ = set_capabilities(None, sets);
    let _ = set_no_new_privs(true);
}
