//! Aligned tables of cells, each with text, sort key and tone.

use std::cmp::Ordering;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{Tone, printable};

/// Between two columns.
const GAP: &str = "  ";

/// One field of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    order: Order,
    tone: Tone,
}

#[derive(Clone, Debug, PartialEq)]
enum Order {
    ByText,
    /// Also written against the right edge of its column.
    By(f64),
}

impl Cell {
    pub fn text(text: impl AsRef<str>) -> Self {
        Self { text: printable(text.as_ref()), order: Order::ByText, tone: Tone::Plain }
    }

    /// A text that stands for a number.
    pub fn number(text: impl Into<String>, number: f64) -> Self {
        Self { text: printable(&text.into()), order: Order::By(number), tone: Tone::Plain }
    }

    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (&self.order, &other.order) {
            (Order::By(one), Order::By(other)) => one.total_cmp(other),
            (Order::ByText | Order::By(_), Order::ByText | Order::By(_)) => self.text.cmp(&other.text),
        }
    }
}

/// Rows under headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(headers: &[&'static str], rows: Vec<Vec<Cell>>) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == headers.len()));
        Self { headers: headers.to_vec(), rows }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The order of the rows when sorted by the column.
    pub fn order(&self, column: usize, descending: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let compare = |a: &usize, b: &usize| self.rows[*a][column].compare(&self.rows[*b][column]);
        // Stable in both directions: equal rows keep their order.
        match descending {
            false => order.sort_by(compare),
            true => order.sort_by(|a, b| compare(b, a)),
        }
        order
    }

    /// The rows in this order.
    pub fn arrange(&mut self, order: &[usize]) {
        self.rows = order.iter().map(|index| self.rows[*index].clone()).collect();
    }

    /// Removes columns that are empty in all rows, except the first `keep`.
    pub fn without_empty_columns(mut self, keep: usize) -> Self {
        let silent =
            |column: usize| self.rows.iter().all(|row| matches!(row[column].text.as_str(), "" | "-"));
        let kept: Vec<usize> =
            (0..self.headers.len()).filter(|column| *column < keep || !silent(*column)).collect();
        self.headers = kept.iter().map(|column| self.headers[*column]).collect();
        for row in &mut self.rows {
            *row = kept.iter().map(|column| row[*column].clone()).collect();
        }
        self
    }

    /// One line for the headers and one for each row, without a trailing line feed.
    pub fn lines(&self, colours: bool) -> Vec<String> {
        let headers = self.headers.iter().map(|header| Cell::text(header).tone(Tone::Heading)).collect();
        let widths: Vec<usize> = (0..self.headers.len()).map(|column| self.width(column)).collect();
        let right: Vec<bool> = (0..self.headers.len()).map(|column| self.is_right(column)).collect();
        let line = |row: &Vec<Cell>| line(row, &widths, &right, colours);
        std::iter::once(&headers).chain(&self.rows).map(line).collect()
    }

    pub fn render(&self, colours: bool) -> String {
        self.lines(colours).join("\n")
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].text.width());
        cells.chain([self.headers[column].width()]).max().unwrap_or(0)
    }

    fn is_right(&self, column: usize) -> bool {
        self.rows.iter().any(|row| row[column].order != Order::ByText)
    }
}

fn line(row: &[Cell], widths: &[usize], right: &[bool], colours: bool) -> String {
    let mut line = String::new();
    for (column, cell) in row.iter().enumerate() {
        let padding = " ".repeat(widths[column].saturating_sub(cell.text.width()));
        let text = cell.tone.paint(&cell.text, colours);
        line += if column == 0 { "" } else { GAP };
        line += &if right[column] { padding + &text } else { text + &padding };
    }
    line.truncate(line.trim_end().len());
    line
}

/// The line cut to so many columns of a terminal; colour codes take no room.
pub fn cut(line: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut room = columns;
    let mut in_code = false;
    for c in line.chars() {
        let width = if in_code || c == '\x1b' { 0 } else { c.width().unwrap_or(0) };
        in_code = (in_code || c == '\x1b') && c != 'm';
        if width > room {
            room = 0; // From here on only zero-width characters are copied: the escape code that resets the colour.
            continue;
        }
        room -= width;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn table() -> Table {
        let row = |name: &str, count: f64, note: &str| {
            vec![Cell::text(name), Cell::number(format!("{count}"), count), Cell::text(note)]
        };
        Table::new(
            &["NAME", "COUNT", "NOTE"],
            vec![row("b", 10.0, ""), row("任务", 9.5, ""), row("a\n", 100.0, "")],
        )
    }

    #[test]
    fn columns_are_aligned_and_numbers_right_justified() {
        expect![[r"
            NAME  COUNT  NOTE
            b        10
            任务    9.5
            a\n     100"]]
        .assert_eq(&table().render(false));
        expect![[r"
            NAME  COUNT
            b        10
            任务    9.5
            a\n     100"]]
        .assert_eq(&table().without_empty_columns(1).render(false));
    }

    #[test]
    fn numbers_sort_as_numbers() {
        assert_eq!(table().order(1, false), [1, 0, 2]);
        assert_eq!(table().order(1, true), [2, 0, 1]);
        assert_eq!(table().order(0, false), [2, 0, 1]);
        assert_eq!(table().order(2, true), [0, 1, 2], "equal rows keep their order");
    }

    #[test]
    fn lines_are_truncated_to_the_terminal_width() {
        let rows = [
            ("abcdef", 3, "abc"),
            ("任务ab", 3, "任"),
            ("\x1b[1mabc\x1b[0m", 2, "\x1b[1mab\x1b[0m"),
            ("ab", 5, "ab"),
        ];
        for (line, columns, expected) in rows {
            assert_eq!(cut(line, columns), expected, "{line:?}");
        }
    }
}
