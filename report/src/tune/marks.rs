//! Marks of the figures: told apart by shape, so that colour is not needed.

use maud::{Markup, html};
use seekscope_run::tune::TrialStatus;

use super::plot::px;

/// What a mark looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Dot,
    Square,
    Plus,
    Triangle,
    Diamond,
    Cross,
}

impl Shape {
    /// How a run that gave no ordinary figure is marked; `None` if it did.
    pub(super) fn of_status(status: TrialStatus) -> Option<Self> {
        match status {
            TrialStatus::Measured => None,
            TrialStatus::EndedEarly => Some(Self::Triangle),
            TrialStatus::ConstraintMissed => Some(Self::Diamond),
            TrialStatus::Failed => Some(Self::Cross),
        }
    }

    fn outline(self, x: f64, y: f64) -> String {
        const R: f64 = 4.5;
        let p = |dx: f64, dy: f64| format!("{} {}", px(x + dx * R), px(y + dy * R));
        match self {
            Self::Dot => format!(
                "M{} A{R} {R} 0 1 1 {} A{R} {R} 0 1 1 {}Z",
                p(-1.0, 0.0),
                p(1.0, 0.0),
                p(-1.0, 0.0)
            ),
            Self::Square => format!(
                "M{} L{} L{} L{}Z",
                p(-0.9, -0.9),
                p(0.9, -0.9),
                p(0.9, 0.9),
                p(-0.9, 0.9)
            ),
            Self::Plus => format!(
                "M{} L{} M{} L{}",
                p(-1.2, 0.0),
                p(1.2, 0.0),
                p(0.0, -1.2),
                p(0.0, 1.2)
            ),
            Self::Triangle => format!("M{} L{} L{}Z", p(-1.1, -0.8), p(1.1, -0.8), p(0.0, 1.1)),
            Self::Diamond => format!(
                "M{} L{} L{} L{}Z",
                p(0.0, -1.3),
                p(1.3, 0.0),
                p(0.0, 1.3),
                p(-1.3, 0.0)
            ),
            Self::Cross => format!(
                "M{} L{} M{} L{}",
                p(-1.0, -1.0),
                p(1.0, 1.0),
                p(-1.0, 1.0),
                p(1.0, -1.0)
            ),
        }
    }

    fn class(self, colour: usize) -> String {
        let filled = match self {
            Self::Triangle | Self::Diamond => " open",
            _ => "",
        };
        format!("mark line-{colour}{filled}")
    }
}

/// The mark, with what it says when it is pointed at.
pub(super) fn mark(shape: Shape, (x, y): (f64, f64), colour: usize, tip: &str) -> Markup {
    html! { path class=(shape.class(colour)) d=(shape.outline(x, y)) { title { (tip) } } }
}

/// A legend's entry for a mark.
pub(super) fn key(shape: Shape, colour: usize, label: &str) -> Markup {
    html! {
        svg.key viewBox="0 0 14 14" aria-hidden="true" {
            path class=(shape.class(colour)) d=(shape.outline(7.0, 7.0)) {}
        }
        " " bdi { (label) }
    }
}

/// A legend's entry for a line.
pub(super) fn line_key(class: &str, label: &str) -> Markup {
    html! {
        svg.key.wide viewBox="0 0 26 14" aria-hidden="true" {
            line class=(class) x1="0" y1="7" x2="26" y2="7" {}
        }
        " " bdi { (label) }
    }
}
