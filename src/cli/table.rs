//! A table that fits the terminal: where it is too narrow, columns that matter less go first, then the widest text is
//! cut. Into a pipe or a file everything is written.

use console::{Alignment, measure_text_width, pad_str, truncate_str};

/// The least that is left of a text that is cut, in columns.
const LEAST: usize = 6;
/// What stands between two columns.
const GAP: &str = "  ";

/// One column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its heading.
    head: &'static str,
    /// What stands in it, the same number in each column.
    cells: Vec<String>,
    align: Alignment,
    /// Which goes first where there is no room; what has no rank stays.
    rank: Option<u8>,
    /// How far it may be cut before other columns go, in columns of the terminal.
    least: Option<usize>,
    /// Whether it may be cut at all.
    whole: bool,
}

impl Column {
    /// A column of words. It may be cut, and it stays.
    pub fn words(head: &'static str, cells: Vec<String>) -> Self {
        Self { head, cells, align: Alignment::Left, rank: None, least: None, whole: false }
    }
    /// A column of words that are good for nothing in part. It is never cut, and it stays.
    pub fn names(head: &'static str, cells: Vec<String>) -> Self {
        Self { whole: true, ..Self::words(head, cells) }
    }
    /// A column of numbers. It is never cut, and it stays.
    pub fn numbers(head: &'static str, cells: Vec<String>) -> Self {
        Self { align: Alignment::Right, ..Self::names(head, cells) }
    }
    /// The same column, which is cut down to this before other columns go.
    #[must_use]
    pub fn cut_to(mut self, least: usize) -> Self {
        self.least = Some(least);
        self
    }
    /// The same column, which goes before those of a higher rank and those that stay.
    #[must_use]
    pub fn goes(mut self, rank: u8) -> Self {
        self.rank = Some(rank);
        self
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| measure_text_width(cell));
        cells.chain([self.head.len()]).max().unwrap_or_default()
    }
}

/// The table, in at most `width` columns where that can be.
pub fn table(mut columns: Vec<Column>, width: Option<usize>) -> String {
    let sum = |widths: &[usize]| widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    let mut wide: Vec<usize> = columns.iter().map(Column::width).collect();
    if let Some(width) = width {
        let needed = |column: &Column| column.least.map_or(column.width(), |least| column.width().min(least));
        while sum(&columns.iter().map(needed).collect::<Vec<_>>()) > width {
            let first = columns.iter().enumerate().filter_map(|(at, column)| Some((column.rank?, at))).min();
            let Some((_, at)) = first else { break };
            columns.remove(at);
        }
        wide = columns.iter().map(Column::width).collect();
        while sum(&wide) > width {
            let cut = columns.iter().zip(&mut wide).filter(|(column, _)| !column.whole);
            match cut.map(|(_, wide)| wide).max_by_key(|wide| **wide).filter(|wide| **wide > LEAST) {
                Some(widest) => *widest -= 1,
                None => break,
            }
        }
    }
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or_default();
    let mut text = String::new();
    for row in 0..=rows {
        let cells = columns.iter().zip(&wide).map(|(column, wide)| {
            let cell = match row.checked_sub(1) {
                None => column.head,
                Some(row) => column.cells.get(row).map_or("", String::as_str),
            };
            pad_str(&truncate_str(cell, *wide, "…"), *wide, column.align, None).into_owned()
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let cells = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect();
        vec![
            Column::words("MODEL", cells(&["claude-opus-4-1-20250805", "漢字"])),
            Column::numbers("CALLS", cells(&["12", "1,234"])).goes(1),
            Column::numbers("COST", cells(&["$1.20", ""])),
        ]
    }

    #[test]
    fn a_table_fits_where_it_can_and_is_whole_in_a_pipe() {
        let whole = "MODEL                     CALLS   COST\n\
                     claude-opus-4-1-20250805     12  $1.20\n\
                     漢字                      1,234\n";
        assert_eq!(table(columns(), None), whole);
        assert_eq!(table(columns(), Some(38)), whole);
        assert_eq!(table(columns(), Some(37)).lines().next(), Some("MODEL                      COST"));
        assert_eq!(table(columns(), Some(20)), "MODEL           COST\nclaude-opus-…  $1.20\n漢字\n");
        assert_eq!(table(columns(), Some(1)), "MODEL    COST\nclaud…  $1.20\n漢字\n");
        assert_eq!(table(Vec::new(), Some(80)), "\n");
        // What may be cut is cut before others go.
        let mut columns = columns();
        columns[0] = columns[0].clone().cut_to(10);
        assert_eq!(table(columns.clone(), Some(24)).lines().next(), Some("MODEL       CALLS   COST"));
        assert_eq!(table(columns, Some(23)).lines().next(), Some("MODEL              COST"));
    }
}
