//! Random quantities of traffic models. Logarithm and exponential are series of + - * / over IEEE doubles, because
//! those of the platform differ in the last bits and two machines must agree.

use restp_base::random::Stream;

/// Natural logarithm of a positive, finite number: x = m · 2^e with m in √½ .. √2, ln m = 2 · artanh((m-1)/(m+1)).
pub fn ln(x: f64) -> f64 {
    debug_assert!(
        x.is_normal() && x > 0.0,
        "the logarithm of {x} is not needed here"
    );
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let (square, mut power, mut sum) = (z * z, z, 0.0);
    // |z| < 0.172: the terms beyond z^23 / 23 vanish in a double.
    for odd in (1..=23).step_by(2) {
        sum += power / f64::from(odd);
        power *= square;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

/// e^x for |x| < 700: x = k · ln 2 + r with |r| <= ln 2 / 2, then the series of e^r.
pub fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() < 700.0, "e^{x} is not needed here");
    let whole = (x / std::f64::consts::LN_2).round();
    let rest = x - whole * std::f64::consts::LN_2;
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..=18 {
        term *= rest / f64::from(n);
        sum += term;
    }
    sum * f64::from_bits(((whole as i64 + 1023) as u64) << 52)
}

/// Exponential with this mean.
pub fn exponential(stream: &mut Stream, mean: f64) -> f64 {
    -mean * ln(1.0 - stream.unit())
}

/// Log-normal by mean and standard deviation of the quantity itself, drawn again until it lies within bounds.
#[derive(Clone, Copy, Debug)]
pub struct LogNormal {
    mu: f64,
    sigma: f64,
    least: f64,
    most: f64,
}

impl LogNormal {
    /// sigma² = ln(1 + (sd / mean)²), mu = ln(mean) - sigma² / 2.
    pub fn new(mean: f64, deviation: f64, least: f64, most: f64) -> Self {
        let variance = ln(1.0 + deviation / mean * (deviation / mean));
        LogNormal {
            mu: ln(mean) - variance / 2.0,
            sigma: variance.sqrt(),
            least,
            most,
        }
    }

    /// One value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        loop {
            let value = exp(self.mu + self.sigma * normal(stream));
            if (self.least..=self.most).contains(&value) {
                return value;
            }
        }
    }
}

/// Standard normal by the polar method (Marsaglia and Bray 1964); its second value is not used.
fn normal(stream: &mut Stream) -> f64 {
    loop {
        let (u, v) = (2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0);
        let s = u * u + v * v;
        if s < 1.0 && s > f64::MIN_POSITIVE {
            return u * (-2.0 * ln(s) / s).sqrt();
        }
    }
}

/// Pareto, drawn again until at most `most`.
pub fn truncated_pareto(stream: &mut Stream, scale: f64, shape: f64, most: f64) -> f64 {
    loop {
        let value = scale * exp(-ln(1.0 - stream.unit()) / shape);
        if value <= most {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_those_of_mathematics() {
        for x in [1e-300, 1e-16, 0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 10710.0, 1e300] {
            assert!(
                (ln(x) - x.ln()).abs() <= 2e-15 * x.ln().abs().max(1e-3),
                "ln {x}: {}",
                ln(x)
            );
        }
        for x in [-600.0, -20.5, -1.0, -1e-9, 0.0, 0.3, 1.0, 8.346, 600.0f64] {
            assert!((exp(x) / x.exp() - 1.0).abs() < 2e-13, "e^{x}: {}", exp(x));
        }
    }

    /// ResTP experiments, E2: mu 8.346, sigma 1.366 for main objects, 6.166 and 2.363 for embedded ones.
    #[test]
    fn parameters_follow_from_mean_and_deviation() {
        for (mean, deviation, mu, sigma) in [
            (10_710.0, 25_032.0, 8.346, 1.366),
            (7_758.0, 126_168.0, 6.166, 2.363),
        ] {
            let model = LogNormal::new(mean, deviation, 0.0, f64::MAX);
            assert!(
                (model.mu - mu).abs() < 1e-3 && (model.sigma - sigma).abs() < 1e-3,
                "{model:?}"
            );
        }
    }

    #[test]
    fn an_exponential_has_its_mean_and_its_median() {
        let mut stream = Stream::named(1, "exponential");
        let mut values: Vec<f64> = (0..100_000).map(|_| exponential(&mut stream, 130.0)).collect();
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean - 130.0).abs() < 1.5, "{mean}");
        assert!(
            (values[50_000] - 130.0 * 2f64.ln()).abs() < 1.5,
            "{}",
            values[50_000]
        );
    }
}
