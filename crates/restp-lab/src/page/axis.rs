//! One axis of a figure: from values to places, and where the marks stand.

/// A linear or logarithmic axis over the values it was given.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    logarithmic: bool,
    low: f64,
    high: f64,
    /// Values with a mark.
    pub marks: Vec<f64>,
}

impl Axis {
    /// An axis that holds all of `values`. A linear one begins at zero; a logarithmic one with whole decades, and has
    /// no place for what is not above zero.
    pub fn over(values: &[f64], logarithmic: bool) -> Axis {
        let usable = values
            .iter()
            .copied()
            .filter(|value| value.is_finite() && (!logarithmic || *value > 0.0));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match (low.is_finite(), logarithmic) {
            (false, _) => Axis::linear(1.0),
            (true, true) => Axis::decades(low, high),
            (true, false) => Axis::linear(high),
        }
    }

    fn linear(high: f64) -> Axis {
        let high = if high > 0.0 { high } else { 1.0 };
        let step = step(high / 5.0);
        let steps = (high / step - 1e-9).ceil() as u32;
        Axis {
            logarithmic: false,
            low: 0.0,
            high: f64::from(steps) * step,
            marks: (0..=steps).map(|i| f64::from(i) * step).collect(),
        }
    }

    fn decades(low: f64, high: f64) -> Axis {
        let first = (low.log10() + 1e-9).floor() as i32;
        let last = ((high.log10() - 1e-9).ceil() as i32).max(first + 1);
        Axis {
            logarithmic: true,
            low: f64::from(first),
            high: f64::from(last),
            marks: (first..=last).map(|exponent| 10f64.powi(exponent)).collect(),
        }
    }

    /// Where `value` stands between the ends, 0 to 1; what lies outside stands at the end.
    pub fn place(&self, value: f64) -> f64 {
        let value = match (self.logarithmic, value > 0.0) {
            (false, _) => value,
            (true, true) => value.log10(),
            (true, false) => self.low,
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Has it a place for this value?
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite() && (!self.logarithmic || value > 0.0)
    }

    /// What is written at a mark.
    pub fn label(&self, mark: f64) -> String {
        if !self.logarithmic {
            let text = format!("{mark:.6}");
            return text.trim_end_matches('0').trim_end_matches('.').to_owned();
        }
        match mark.log10().round() as i32 {
            exponent @ -2..=3 => format!("{:.*}", (-exponent).max(0) as usize, mark),
            exponent => format!("10{}", raised(exponent)),
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn step(least: f64) -> f64 {
    let decade = 10f64.powi(least.log10().floor() as i32);
    let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    nice.into_iter()
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * decade)
}

fn raised(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    exponent.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_number() {
        let axis = Axis::over(&[9.38, 0.4], false);
        assert_eq!(axis.marks, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!((axis.place(5.0), axis.place(12.0)), (0.5, 1.0));
        assert_eq!(Axis::over(&[0.9], false).label(0.2), "0.2");
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades_and_no_place_for_zero() {
        let axis = Axis::over(&[0.0, 1e-7, 1e-2], true);
        assert_eq!(axis.marks.len(), 6);
        assert!((axis.place(1e-7), axis.holds(0.0)) == (0.0, false));
        assert_eq!(
            [1e-7, 0.01, 100.0].map(|mark| axis.label(mark)),
            ["10⁻⁷", "0.01", "100"]
        );
    }

    #[test]
    fn no_values_make_an_empty_axis() {
        assert_eq!(Axis::over(&[], true).marks.first(), Some(&0.0));
        assert_eq!(Axis::over(&[0.0], false).place(0.5), 0.5);
    }
}
