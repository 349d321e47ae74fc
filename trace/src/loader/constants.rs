//! What the programs are told before they load: which calls, which processes, which files.

use crate::disks::function_addresses;
use crate::groups::{Group, Plan};

use super::system_calls::{self, OPEN_CALLS};
use super::{Settings, types};

/// Not a [`seekscope_run::IoOp`]: the call gives a file its name (`OP_OPEN` in bpf/record.h).
const OPEN: u8 = 255;
/// Not one either: the call submits or collects requests of libaio (`OP_AIO_CALL`).
const AIO_CALL: u8 = 254;

/// Number of io_pgetevents(2), which the C library's binding lacks.
const IO_PGETEVENTS: libc::c_long = if cfg!(target_arch = "x86_64") {
    333
} else {
    292
};

pub(super) fn fill(constants: &mut types::rodata, settings: &Settings) {
    let mut note = |number: libc::c_long, op: u8| {
        let place = usize::try_from(number)
            .ok()
            .and_then(|n| constants.op_of_syscall.get_mut(n));
        if let Some(place) = place {
            *place = op;
        }
    };
    for call in system_calls::of_kinds(&settings.kinds) {
        note(call.number, call.op as u8);
    }
    // Needed even if no plain calls are wanted, because events of other groups also need names.
    OPEN_CALLS
        .into_iter()
        .for_each(|(number, _)| note(number, OPEN));
    if settings.groups.has(Group::Aio) {
        AIO_CALLS
            .into_iter()
            .for_each(|number| note(number, AIO_CALL));
        constants.nr_io_submit = u32::try_from(libc::SYS_io_submit).unwrap_or(u32::MAX);
    }
    constants.target_tgid = settings.target.tgid;
    constants.target_is_set = u32::from(settings.is_set);
    if let Some(namespace) = settings.target.namespace {
        constants.target_pidns_device = namespace.device;
        constants.target_pidns_inode = namespace.inode;
    }
    constants.slot_mask = settings.start_slots - 1;
    constants.wakeup_bytes = u64::from(settings.ring_bytes / 2);
    constants.o_direct = libc::O_DIRECT.cast_unsigned();
    constants.only_totals = u32::from(settings.only_totals);
    let filter = &settings.filter;
    constants.filters_paths = u32::from(!filter.wanted.is_empty());
    constants.own_requests_only = u32::from(settings.own_requests_only);
    constants.latency_min_ns = filter.latency_min_ns;
    constants.sample_one_in = filter.sample_one_in;
    constants.sample_region_shift = filter.sample_region_shift;
    for (place, device) in constants.device_filter.iter_mut().zip(&filter.devices) {
        *place = *device;
        constants.device_filters += 1;
    }
    fill_groups(constants, &settings.groups);
}

fn fill_groups(constants: &mut types::rodata, groups: &Plan) {
    constants.page_bytes = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    if groups.has(Group::Block) {
        [constants.iomap_dio_end_io, constants.bio_chain_end_io] =
            function_addresses(["iomap_dio_bio_end_io", "bio_chain_endio"]);
    }
}

/// Calls of libaio. Results that are collected without a call are not seen.
const AIO_CALLS: [libc::c_long; 3] = [libc::SYS_io_submit, libc::SYS_io_getevents, IO_PGETEVENTS];

#[cfg(test)]
mod tests {
    use seekscope_run::IoKind;

    use super::*;

    #[test]
    fn every_kind_of_call_has_its_numbers() {
        let kinds = [IoKind::Read, IoKind::Write, IoKind::Sync];
        assert!(
            kinds
                .map(|kind| system_calls::of_kinds(&[kind]).count())
                .iter()
                .all(|n| *n > 0)
        );
        let mut numbers: Vec<_> = system_calls::of_kinds(&kinds)
            .map(|call| call.number)
            .collect();
        numbers.extend(OPEN_CALLS.map(|(number, _)| number));
        numbers.extend(AIO_CALLS);
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "no call stands twice");
        assert!(
            numbers.iter().all(|n| (0..512).contains(n)),
            "they fit the programs' table"
        );
    }
}
