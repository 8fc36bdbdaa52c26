//! What a benchmark found: a table for people, JSON for programs.

use std::fmt;

use serde_json::{Map, Value, json};

/// Settings and rows. Column names carry their unit at the end and are the keys of the JSON form.
#[derive(Clone, Debug, Default)]
pub struct Report {
    bench: &'static str,
    settings: Vec<(&'static str, Value)>,
    rows: Vec<Row>,
}

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub struct Row(Vec<(&'static str, Value)>);

impl Report {
    pub fn new(bench: &'static str) -> Self {
        Self { bench, ..Self::default() }
    }

    pub fn setting(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn to_json(&self) -> Value {
        let settings: Map<String, Value> =
            self.settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        json!({ "bench": self.bench, "settings": settings, "rows": rows })
    }
}

impl Row {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, column: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((column, value.into()));
        self
    }

    /// A measured number: three digits after the point below ten, fewer above.
    pub fn measured(self, column: &'static str, value: f64) -> Self {
        let places = match value.abs() {
            v if v < 10.0 => 1000.0,
            v if v < 1000.0 => 10.0,
            _ => 1.0,
        };
        let rounded = (value * places).round() / places;
        match rounded.fract() == 0.0 {
            true => self.with(column, rounded as i64),
            false => self.with(column, rounded),
        }
    }

    fn to_json(&self) -> Value {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>().into()
    }

    fn cell(&self, column: &str) -> String {
        match self.0.iter().find(|(name, _)| *name == column) {
            Some((_, Value::String(text))) => text.clone(),
            Some((_, value)) => value.to_string(),
            None => "-".to_owned(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        writeln!(f, "{}: {}", self.bench, settings.join(" "))?;
        let mut columns: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.0) {
            if !columns.contains(name) {
                columns.push(name);
            }
        }
        let mut lines = vec![columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| columns.iter().map(|column| row.cell(column)).collect()));
        let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        for line in &lines {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
            writeln!(f, "{}", cells.join("  "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_table_is_aligned_and_marks_missing_values() {
        let mut report = Report::new("launch").setting("agents", 2);
        report.push(Row::new().with("run", 1).measured("tasks_per_s", 1234.56).measured("p50_ms", 0.12345));
        report.push(Row::new().with("run", 10).measured("tasks_per_s", 99.96));
        let lines = [
            "launch: agents=2",
            "run  tasks_per_s  p50_ms",
            "  1         1235   0.123",
            " 10          100       -",
        ];
        assert_eq!(report.to_string(), lines.join("\n") + "\n");
        assert_eq!(report.to_json()["rows"][0]["tasks_per_s"], 1235);
    }
}
