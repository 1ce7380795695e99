//! Tables in columns, as data frames want them.

/// Rows of equal length under names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its columns, in the order to show.
    pub columns: Vec<(&'static str, Column)>,
}

/// The values of one name.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers that count.
    Integer(Vec<i64>),
    /// Numbers that measure; NaN where there is none.
    Float(Vec<f64>),
    /// Words of a few: of each row its place in the list.
    Word(Vec<i32>, Vec<String>),
}

impl Column {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Integer(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Word(values, _) => values.len(),
        }
    }

    /// Has it no row?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let (_, column) = self.columns.iter().find(|(known, _)| *known == name)?;
        Some(column)
    }
}
