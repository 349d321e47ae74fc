//! Formats numbers for people, beside `seekscope_run::units`.

pub use seekscope_doctor::wording::counted;
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};

/// Formats a share as a percentage that never rounds to "none" or "all" unless it is.
pub fn format_share(share: f64) -> String {
    match share {
        s if !s.is_finite() => "unknown".into(),
        s if s > 0.0 && s < 0.001 => "< 0.1 %".into(),
        s if s > 0.999 && s < 1.0 => "> 99.9 %".into(),
        s => format!("{:.1} %", s * 100.0),
    }
}

/// Formats with three significant digits; whole numbers and thousands stay readable.
pub(crate) fn format_number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "unknown".into(),
        v if v >= 100.0 || v == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

/// Formats a rate without its unit: `28,213`, `415`, `0.52`.
pub fn format_rate(per_s: f64) -> String {
    if per_s.is_finite() && per_s >= 999.5 {
        format_count(whole(per_s))
    } else {
        format_number(per_s)
    }
}

/// Formats bytes per second in the unit that disks are sold by (10^6 bytes): `899`, `4.72`.
pub(crate) fn format_mb(bytes_per_s: f64) -> String {
    match bytes_per_s / 1e6 {
        mb if mb > 0.0 && mb < 0.01 => "< 0.01".into(),
        mb => format_rate(mb),
    }
}

/// Formats a ratio: `26`, `1.9`.
pub(crate) fn format_times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "unknown".into(),
        r if r >= 9.95 => format_count(whole(r)),
        r if r >= 0.95 => format!("{r:.1}"),
        r => format_number(r),
    }
}

/// Formats like `4 KiB`: sizes of blocks are whole, so without decimals.
pub(crate) fn format_block(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format_bytes(bytes)
}

/// Applies [`format_ns`] to means.
pub(crate) fn format_mean_ns(ns: f64) -> String {
    format_ns(whole(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_ratios_keep_what_matters() {
        assert_eq!(format_rate(28_213.4), "28,213");
        assert_eq!(format_rate(999.6), "1,000");
        assert_eq!(format_rate(4.719), "4.72");
        assert_eq!(format_mb(977_000_000.0), "977");
        assert_eq!(format_times(26.1), "26");
        assert_eq!(format_times(1.94), "1.9");
        assert_eq!(format_times(0.147), "0.15");
        assert_eq!(format_times(1600.0), "1,600");
        assert_eq!(format_times(f64::INFINITY), "unknown");
        assert_eq!((whole(-1.0), whole(f64::NAN), whole(1.5)), (0, 0, 2));
    }

    #[test]
    fn blocks_have_no_needless_decimals() {
        assert_eq!(format_block(4096), "4 KiB");
        assert_eq!(format_block(1 << 20), "1 MiB");
        assert_eq!(format_block(1536), "1.50 KiB");
        assert_eq!(format_block(512), "512 B");
    }

    #[test]
    fn shares_do_not_round_away() {
        assert_eq!(format_share(0.0), "0.0 %");
        assert_eq!(format_share(1.0), "100.0 %");
        assert_eq!(format_share(0.99999), "> 99.9 %");
        assert_eq!(format_share(0.00001), "< 0.1 %");
        assert_eq!(format_share(0.254), "25.4 %");
        assert_eq!(format_share(f64::NAN), "unknown");
    }

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(format_number(12.345), "12.3");
        assert_eq!(format_number(0.51), "0.51");
        assert_eq!(format_number(1234.5), "1234");
        assert_eq!(format_number(-3.0), "-3.00");
    }
}
