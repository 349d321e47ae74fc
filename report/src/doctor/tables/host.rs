//! Shows settings of host and server beside those that the load needs.

use seekscope_doctor::answers::HostAnswer;

use super::super::DoctorReportInput;
use super::{NONE, ROWS_MAX, UNKNOWN};
use crate::numbers::format_rate;
use crate::table::{Cell, Table};

/// Returns the settings, those that do not fit first, by cost.
pub(in super::super) fn host(input: &DoctorReportInput<'_>) -> Option<Table> {
    let mut settings: Vec<&HostAnswer> = input.answers().host.iter().collect();
    let loss = |answer: &HostAnswer| answer.loss_s_per_hour.unwrap_or(0.0);
    settings.sort_by(|a, b| a.fits.cmp(&b.fits).then(loss(b).total_cmp(&loss(a))));
    let columns = [
        "setting",
        "",
        "has",
        "wants",
        "why",
        "to change it",
        "loss now, s/h",
    ];
    let mut table = Table::new(6, &columns);
    for setting in settings.into_iter().take(ROWS_MAX) {
        table.row(row(setting));
    }
    table.or_nothing()
}

fn row(setting: &HostAnswer) -> [Cell; 7] {
    let command = (!setting.command.is_empty()).then(|| setting.command.clone());
    [
        setting.setting.as_str().into(),
        match (setting.wants.as_str(), setting.fits) {
            ("", _) => "cannot be told",
            (_, true) => "✓\u{a0}fits",
            (_, false) => "✗\u{a0}change",
        }
        .into(),
        setting.has.as_str().into(),
        Cell::or(
            (!setting.wants.is_empty()).then(|| setting.wants.clone()),
            UNKNOWN,
        ),
        setting.why.as_str().into(),
        Cell::or(command, NONE),
        Cell::or(setting.loss_s_per_hour.map(format_rate), NONE),
    ]
}
