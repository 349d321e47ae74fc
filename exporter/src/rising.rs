//! A counter that never goes back, made of one that begins anew when its server is restarted.

/// The rise of a counter since it was first read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rising {
    last: Option<f64>,
    total: f64,
}

impl Rising {
    /// Takes the counter's present value. A value below the last one comes from a restart, after which the counter
    /// began at 0.
    pub fn read(&mut self, now: f64) {
        if !now.is_finite() || now < 0.0 {
            return;
        }
        if let Some(last) = self.last {
            self.total += if now >= last { now - last } else { now };
        }
        self.last = Some(now);
    }

    /// Takes the value of a counter that begins anew only with the host, and that several readers pass on, each with the
    /// value of its own moment: a lower one is merely older.
    pub(crate) fn read_of_host(&mut self, now: f64) {
        if self.last.is_none_or(|last| now > last) {
            self.read(now);
        }
    }

    pub(crate) fn was_read(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the sum of all rises.
    pub fn total(&self) -> f64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_no_step_back() {
        let mut counter = Rising::default();
        let totals = [500.0, 510.0, 4.0, f64::NAN, -1.0, 9.0].map(|now| {
            counter.read(now);
            counter.total()
        });
        assert_eq!(totals, [0.0, 10.0, 14.0, 14.0, 14.0, 19.0]);
    }

    #[test]
    fn an_older_value_of_the_host_is_no_restart() {
        let mut counter = Rising::default();
        let totals = [500.0, 510.0, 508.0, 512.0].map(|now| {
            counter.read_of_host(now);
            counter.total()
        });
        assert_eq!(totals, [0.0, 10.0, 10.0, 12.0]);
    }
}
