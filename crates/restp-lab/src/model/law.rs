//! How many packets of a round are missing, and where the first of them is.

/// `missing[e][g]`: chance that `g` of `e` packets are missing, independently (5.4).
/// `first[e][g][f]`: chance that the first of these `g`, uniform among `e`, is packet `f + 1`.
#[derive(Clone, Debug)]
pub struct Law {
    missing: Vec<Vec<f64>>,
    first: Vec<Vec<Vec<f64>>>,
}

impl Law {
    /// For rounds of at most `most` packets, each missing with chance `missing`.
    pub fn new(most: u32, missing: f64) -> Self {
        let most = most as usize;
        let choose = pascal(most);
        let count = |sent: usize| {
            (0..=sent)
                .map(|g| choose[sent][g] * missing.powi(g as i32) * (1.0 - missing).powi((sent - g) as i32))
                .collect()
        };
        let place = |sent: usize, g: usize| match g {
            0 => Vec::new(),
            _ => (1..=sent + 1 - g)
                .map(|f| choose[sent - f][g - 1] / choose[sent][g])
                .collect(),
        };
        Law {
            missing: (0..=most).map(count).collect(),
            first: (0..=most)
                .map(|sent| (0..=sent).map(|g| place(sent, g)).collect())
                .collect(),
        }
    }

    pub fn missing(&self, sent: u32) -> &[f64] {
        &self.missing[sent as usize]
    }

    pub fn first(&self, sent: u32, missing: u32) -> &[f64] {
        &self.first[sent as usize][missing as usize]
    }
}

/// Binomial coefficients up to row `most`.
fn pascal(most: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0]];
    for n in 1..=most {
        let above = &rows[n - 1];
        let row = (0..=n)
            .map(|k| above.get(k).unwrap_or(&0.0) + if k > 0 { above[k - 1] } else { 0.0 })
            .collect();
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SMT table 5.1.
    #[test]
    fn ten_packets_are_missing_as_published() {
        let law = Law::new(43, 0.03);
        for (chance, published) in law
            .missing(10)
            .iter()
            .zip([0.7374, 0.2281, 0.0317, 0.0026, 0.0001])
        {
            assert!((chance - published).abs() < 5e-5, "{chance} {published}");
        }
    }

    #[test]
    fn chances_sum_to_one() {
        let law = Law::new(43, 0.07);
        for sent in 1..=43 {
            assert!((law.missing(sent).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for missing in 1..=sent {
                assert!((law.first(sent, missing).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }
}
