//! Provides the parts that every HTML report is made of.
//!
//! All tables are made here, so a browser without scripts still shows a report; the figures are drawn by the
//! script bundled from `web/`. See `shell` for how a page is kept safe.

pub(crate) mod charts;
pub(crate) mod facts;
pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod percentiles;
pub(crate) mod points;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod tracks;
