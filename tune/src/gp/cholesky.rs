//! Operates on symmetric positive matrices, row by row so that every inner loop runs over contiguous numbers.

/// The inverse of the lower Cholesky factor of a matrix, and the logarithm of its determinant.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    size: usize,
    /// Rows of the inverse factor; row `i` has `i + 1` numbers.
    inverse: Vec<f64>,
    pub(crate) log_determinant: f64,
}

/// Returns where row `row` of a packed lower triangle begins.
pub(crate) fn row_start(row: usize) -> usize {
    row * (row + 1) / 2
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums at a time: a single one would wait for itself, because additions may not be reordered.
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = (a4.remainder().iter().zip(b4.remainder()))
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a4.zip(b4) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Computes `to += factor * from`.
fn add_scaled(to: &mut [f64], factor: f64, from: &[f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

impl Cholesky {
    /// Factorises a packed lower triangle of `size` rows; `None` if the matrix is not positive.
    pub(crate) fn of(mut matrix: Vec<f64>, size: usize) -> Option<Self> {
        let mut log_determinant = 0.0;
        for i in 0..size {
            let (above, row) = matrix.split_at_mut(row_start(i));
            for j in 0..i {
                let other = &above[row_start(j)..=row_start(j) + j];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let square = row[i] - dot(&row[..i], &row[..i]);
            if square.is_nan() || square <= 1e-12 {
                return None;
            }
            row[i] = square.sqrt();
            log_determinant += square.ln();
        }
        let mut inverse = vec![0.0; matrix.len()];
        for i in 0..size {
            let (above, row) = inverse.split_at_mut(row_start(i));
            let factor = &matrix[row_start(i)..];
            for k in 0..i {
                add_scaled(row, -factor[k], &above[row_start(k)..=row_start(k) + k]);
            }
            row[i] = 1.0;
            row[..=i].iter_mut().for_each(|value| *value /= factor[i]);
        }
        Some(Self {
            size,
            inverse,
            log_determinant,
        })
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.inverse[row_start(i)..=row_start(i) + i]
    }

    /// Returns the inverse factor times a vector.
    pub(crate) fn whiten(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size)
            .map(|i| dot(self.row(i), &vector[..=i]))
            .collect()
    }

    /// Returns the sum of squares of the whitened vector, without storing it.
    pub(crate) fn whitened_square(&self, vector: &[f64]) -> f64 {
        (0..self.size)
            .map(|i| dot(self.row(i), &vector[..=i]).powi(2))
            .sum()
    }

    /// Returns the inverse matrix times a vector.
    pub(crate) fn solve(&self, vector: &[f64]) -> Vec<f64> {
        let white = self.whiten(vector);
        let mut solved = vec![0.0; self.size];
        for (i, w) in white.iter().enumerate() {
            add_scaled(&mut solved, *w, self.row(i));
        }
        solved
    }

    /// Returns the diagonal of the inverse matrix.
    pub(crate) fn inverse_diagonal(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.size];
        for i in 0..self.size {
            for (sum, entry) in diagonal.iter_mut().zip(self.row(i)) {
                *sum += entry * entry;
            }
        }
        diagonal
    }

    /// Returns the factor times a vector: independent noise becomes noise with this covariance.
    pub(crate) fn colour(&self, vector: &[f64]) -> Vec<f64> {
        let mut coloured = Vec::with_capacity(self.size);
        for (i, value) in vector.iter().enumerate() {
            let row = self.row(i);
            let rest = dot(&row[..i], &coloured);
            coloured.push((value - rest) / row[i]);
        }
        coloured
    }

    /// Returns the lower triangle of the inverse matrix, packed.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let mut inverse = vec![0.0; self.inverse.len()];
        for k in 0..self.size {
            let row = self.row(k);
            for i in 0..=k {
                add_scaled(&mut inverse[row_start(i)..=row_start(i) + i], row[i], row);
            }
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        // [[4, 2], [2, 3]]: determinant 8, inverse [[3, -2], [-2, 4]] / 8.
        let factor = Cholesky::of(vec![4.0, 2.0, 3.0], 2).unwrap();
        assert!((factor.log_determinant - 8f64.ln()).abs() < 1e-12);
        for (found, expected) in factor.inverse().iter().zip([0.375, -0.25, 0.5]) {
            assert!((found - expected).abs() < 1e-12);
        }
        let solved = factor.solve(&[1.0, 2.0]);
        assert!((solved[0] + 0.125).abs() < 1e-12 && (solved[1] - 0.75).abs() < 1e-12);
        let square = factor.whitened_square(&[1.0, 2.0]);
        assert!((square - (-0.125 + 2.0 * 0.75)).abs() < 1e-12);
        // The factor is [[2, 0], [1, √2]].
        let coloured = factor.colour(&[1.0, 1.0]);
        assert!((coloured[0] - 2.0).abs() < 1e-12);
        assert!((coloured[1] - 1.0 - 2f64.sqrt()).abs() < 1e-12);
        assert!(Cholesky::of(vec![1.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::of(vec![f64::NAN], 1).is_none());
    }
}
