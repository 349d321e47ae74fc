//! Numbers for people, beside those of `seekscope_run::units`.

/// A share as a percentage that never rounds to "none" or "all" what is not.
pub(crate) fn format_share(share: f64) -> String {
    match share {
        s if !s.is_finite() => "unknown".into(),
        s if s > 0.0 && s < 0.001 => "< 0.1 %".into(),
        s if s > 0.999 && s < 1.0 => "> 99.9 %".into(),
        s => format!("{:.1} %", s * 100.0),
    }
}

/// Three significant digits; whole numbers and thousands stay readable.
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

#[cfg(test)]
mod tests {
    use super::*;

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
