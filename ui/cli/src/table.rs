//! Aligned tables for a terminal, and text made safe for it.
//!
//! Names come from strangers: control characters are shown, never sent to the terminal.

use comfy_table::{ContentArrangement, Table, presets};

/// A table without lines; the widths follow the terminal when there is one.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.into_iter().map(|cell| printable(&cell)).collect::<Vec<_>>());
    }
    table.trim_fmt()
}

/// The text with control characters made visible.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(printable("tälk"), "tälk");
    }
}
