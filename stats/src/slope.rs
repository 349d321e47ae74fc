//! The slope of a line through points, some of which may be far off.

use crate::median;

/// Returns the median of the slopes between all pairs of points (x, y) (Theil 1950; Sen, "Estimates of the
/// regression coefficient based on Kendall's tau", Journal of the American Statistical Association 1968).
/// Returns `None` if there are no two different x. The time grows with the square of their number.
pub fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (nth, (x, y)) in points.iter().enumerate() {
        let later = points[nth + 1..].iter().filter(|(other, _)| other != x);
        slopes.extend(later.map(|(other_x, other_y)| (other_y - y) / (other_x - x)));
    }
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_far_off_does_not_turn_the_line() {
        let mut points: Vec<(f64, f64)> = (0..9)
            .map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x)))
            .collect();
        points[8].1 = 1000.0;
        assert_eq!(median_slope(&points), Some(2.0));
        assert_eq!(median_slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(median_slope(&[]), None);
    }
}
