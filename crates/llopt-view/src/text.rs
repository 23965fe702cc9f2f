//! Grids and bases as text.

use std::fmt::Write;

use llopt_layout::LinearLayout;

use crate::Grid;

/// The basis vectors, one line per input dimension, and the sizes of the output.
#[must_use]
pub fn bases(layout: &LinearLayout) -> String {
    let mut text = String::new();
    let width = layout
        .in_dims()
        .iter()
        .map(|dim| dim.to_string().len())
        .max()
        .unwrap_or(0);
    for &dim in layout.in_dims() {
        let vectors: Vec<String> = (0..layout.in_dim_size_log2(dim))
            .map(|bit| {
                let basis = layout.basis(dim, bit).unwrap_or_default();
                let entries: Vec<String> = basis.iter().map(u32::to_string).collect();
                format!("({})", entries.join(", "))
            })
            .collect();
        let vectors = if vectors.is_empty() {
            "-".to_owned()
        } else {
            vectors.join(" ")
        };
        let _ = writeln!(
            text,
            "{:width$} {:>5}  {vectors}",
            dim.to_string(),
            layout.in_dim_size(dim)
        );
    }
    let outs: Vec<String> = layout
        .out_dims()
        .iter()
        .map(|&dim| format!("{dim} {}", layout.out_dim_size(dim)))
        .collect();
    let _ = writeln!(text, "-> {}", outs.join(", "));
    text
}

/// A grid with aligned columns.
#[must_use]
pub fn grid(grid: &Grid) -> String {
    let mut text = format!("{} ({})\n", grid.title, grid.legend);
    let label = grid.rows.iter().map(String::len).max().unwrap_or(0);
    let columns = grid.columns.len();
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = grid.cells.iter().skip(column).step_by(columns.max(1));
            cells
                .map(|cell| cell.text.len().max(1))
                .chain([grid.columns[column].len()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    make_room_for_groups(grid, &mut widths);
    text.push_str(&group_line(grid, label, &widths));
    let mut line = format!("{:label$}", "");
    for (column, name) in grid.columns.iter().enumerate() {
        if column > 0 && grid.column_breaks.contains(&column) {
            line.push_str("  |");
        }
        let _ = write!(line, "  {name:>width$}", width = widths[column]);
    }
    let _ = writeln!(text, "{}", line.trim_end());
    for (row, name) in grid.rows.iter().enumerate() {
        if row > 0 && grid.row_breaks.contains(&row) {
            text.push('\n');
        }
        let mut line = format!("{name:>label$}");
        for (column, &width) in widths.iter().enumerate() {
            if column > 0 && grid.column_breaks.contains(&column) {
                line.push_str("  |");
            }
            let cell = &grid.cells[row * columns + column].text;
            let cell = if cell.is_empty() { "." } else { cell };
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if (grid.rows.len(), columns) != grid.whole {
        let (rows, all_columns) = grid.whole;
        let _ = writeln!(
            text,
            "({}x{columns} of {rows}x{all_columns} shown)",
            grid.rows.len()
        );
    }
    text
}

/// Widens the last column of each group so that the group's name fits above it.
fn make_room_for_groups(grid: &Grid, widths: &mut [usize]) {
    for (first, last, name) in groups(grid) {
        let room = widths[first..=last]
            .iter()
            .map(|width| width + 2)
            .sum::<usize>()
            - 2;
        widths[last] += name.len().saturating_sub(room);
    }
}

/// First and last column and the name of each group.
fn groups(grid: &Grid) -> impl Iterator<Item = (usize, usize, &str)> {
    grid.column_groups
        .iter()
        .enumerate()
        .map(|(at, (first, name))| {
            let next = grid.column_groups.get(at + 1);
            let end = next.map_or(grid.columns.len(), |(first, _)| *first);
            (*first, end - 1, name.as_str())
        })
}

/// The line with the names of groups of columns; empty when there are none.
fn group_line(grid: &Grid, label: usize, widths: &[usize]) -> String {
    if grid.column_groups.is_empty() {
        return String::new();
    }
    let mut line = " ".repeat(label);
    for (first, last, name) in groups(grid) {
        if first > 0 && grid.column_breaks.contains(&first) {
            line.push_str("  |");
        }
        let room = widths[first..=last]
            .iter()
            .map(|width| width + 2)
            .sum::<usize>()
            - 2;
        let _ = write!(line, "  {name:room$}");
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use crate::{View, Window, grids, read};

    #[test]
    fn the_matrix_has_its_blocks_apart() {
        let layout = read(
            r#"{"in":[{"name":"register","bases":[[0,1]]},{"name":"lane","bases":[[1,0],[2,1]]}],
                "out":[{"name":"dim0","size":4},{"name":"dim1","size":2}]}"#,
            None,
        )
        .unwrap();
        let matrix = &grids(&layout, View::Matrix, None, Window::ALL).unwrap()[0];
        let expected = "\
matrix over F2 (a column per input bit, a row per output bit)
        register  |  lane
               1  |  1  2
dim0 1         .  |  1  .
dim0 2         .  |  .  1

dim1 1         1  |  .  1
";
        assert_eq!(super::grid(matrix), expected);
        let bases = "register     2  (0, 1)\nlane         4  (1, 0) (2, 1)\n-> dim0 4, dim1 2\n";
        assert_eq!(super::bases(&layout), bases);
    }
}
