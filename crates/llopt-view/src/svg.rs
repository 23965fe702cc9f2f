//! Grids as SVG.

use ::svg::Document;
use ::svg::node::element::{Group, Line, Rectangle, Style, Text};

use crate::Grid;

const CELL_HEIGHT: f64 = 22.0;
const CHARACTER: f64 = 6.7;
const MARGIN: f64 = 16.0;
const TITLE: f64 = 44.0;

const STYLE: &str = "\
text { font: 11px ui-monospace, 'DejaVu Sans Mono', monospace; text-anchor: middle; fill: #1a1a1a }
.title { font: bold 13px system-ui, sans-serif; text-anchor: start }
.note { font: 11px system-ui, sans-serif; text-anchor: start; fill: #666 }
.label { fill: #666 }
.row { text-anchor: end; fill: #666 }
rect { stroke: #fff; stroke-width: 1 }
line { stroke: #1a1a1a; stroke-width: 1.5 }";

/// One picture with the grids below each other.
#[must_use]
pub fn draw(grids: &[Grid]) -> String {
    let mut document = Document::new().add(Style::new(STYLE));
    let mut top = MARGIN;
    let mut right: f64 = 0.0;
    let mut parts = Vec::new();
    for grid in grids {
        let (part, width, height) = draw_grid(grid, top);
        parts.push(part);
        top += height + MARGIN;
        right = right.max(width);
    }
    let (width, height) = (right + 2.0 * MARGIN, top);
    document = document
        .set("viewBox", (0, 0, width.ceil() as i64, height.ceil() as i64))
        .set("width", width.ceil())
        .set("height", height.ceil())
        .add(
            Rectangle::new()
                .set("width", "100%")
                .set("height", "100%")
                .set("fill", "#fff"),
        );
    for part in parts {
        document = document.add(part);
    }
    format!("{document}\n")
}

/// The longest of some texts in characters.
fn longest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(|text| text.chars().count()).max().unwrap_or(0) as f64
}

/// Where the cells of a grid are.
struct Frame {
    /// Left edge of the cells.
    left: f64,
    /// Upper edge of the grid, with its title.
    top: f64,
    /// Upper edge of the cells.
    upper: f64,
    cell_width: f64,
}

impl Frame {
    /// Left edge of a column.
    fn x(&self, column: usize) -> f64 {
        self.left + column as f64 * self.cell_width
    }

    /// Upper edge of a row.
    fn y(&self, row: usize) -> f64 {
        self.upper + row as f64 * CELL_HEIGHT
    }
}

/// The title of a grid, its legend, and the names of its columns.
fn draw_names(grid: &Grid, frame: &Frame, legend: &str) -> Group {
    let mut group = Group::new()
        .add(
            label(&grid.title)
                .set("class", "title")
                .set("x", MARGIN)
                .set("y", frame.top + 8.0),
        )
        .add(
            label(legend)
                .set("class", "note")
                .set("x", MARGIN)
                .set("y", frame.top + 26.0),
        );
    for (column, name) in &grid.column_groups {
        group = group.add(
            label(name)
                .set("class", "note")
                .set("x", frame.x(*column) + 2.0)
                .set("y", frame.upper - 1.5 * CELL_HEIGHT),
        );
    }
    for (column, name) in grid.columns.iter().enumerate() {
        group = group.add(
            label(name)
                .set("class", "label")
                .set("x", frame.x(column) + frame.cell_width / 2.0)
                .set("y", frame.upper - CELL_HEIGHT / 2.0),
        );
    }
    group
}

/// The rows of a grid: each its name, then its cells with their texts.
fn draw_rows(grid: &Grid, frame: &Frame, mut group: Group) -> Group {
    let columns = grid.columns.len();
    for (row, name) in grid.rows.iter().enumerate() {
        group = group.add(
            label(name)
                .set("class", "row")
                .set("x", frame.left - 6.0)
                .set("y", frame.y(row) + CELL_HEIGHT / 2.0),
        );
        for column in 0..columns {
            let cell = &grid.cells[row * columns + column];
            group = group.add(
                Rectangle::new()
                    .set("x", frame.x(column))
                    .set("y", frame.y(row))
                    .set("width", frame.cell_width)
                    .set("height", CELL_HEIGHT)
                    .set("fill", colour(cell.hue, cell.depth)),
            );
            if !cell.text.is_empty() {
                group = group.add(
                    label(&cell.text)
                        .set("x", frame.x(column) + frame.cell_width / 2.0)
                        .set("y", frame.y(row) + CELL_HEIGHT / 2.0),
                );
            }
        }
    }
    group
}

/// The lines around a grid, between owners, and at its breaks.
fn draw_lines(grid: &Grid, frame: &Frame, mut group: Group) -> Group {
    let columns = grid.columns.len();
    let rows = grid.rows.len();
    let x = |column: usize| frame.x(column);
    let y = |row: usize| frame.y(row);
    for row in 0..rows {
        for column in 0..columns {
            let owner = |row: usize, column: usize| grid.cells[row * columns + column].owner;
            if column > 0 && owner(row, column) != owner(row, column - 1) {
                group = group.add(line(x(column), y(row), x(column), y(row + 1)));
            }
            if row > 0 && owner(row, column) != owner(row - 1, column) {
                group = group.add(line(x(column), y(row), x(column + 1), y(row)));
            }
        }
    }
    group = group
        .add(line(x(0), y(0), x(columns), y(0)))
        .add(line(x(0), y(0), x(0), y(rows)));
    for &row in grid.row_breaks.iter().chain([&rows]) {
        group = group.add(line(x(0), y(row), x(columns), y(row)));
    }
    for &column in grid.column_breaks.iter().chain([&columns]) {
        group = group.add(line(x(column), y(0), x(column), y(rows)));
    }
    group
}

/// A grid whose upper edge is at `top`, with its width and height.
fn draw_grid(grid: &Grid, top: f64) -> (Group, f64, f64) {
    let columns = grid.columns.len();
    let label_width = longest(grid.rows.iter().map(String::as_str)) * CHARACTER + 10.0;
    let texts = grid.cells.iter().map(|cell| cell.text.as_str());
    let names = grid.columns.iter().map(String::as_str);
    let cell_width = (longest(texts.chain(names)) * CHARACTER + 8.0).max(CELL_HEIGHT);
    let header = if grid.column_groups.is_empty() {
        CELL_HEIGHT
    } else {
        2.0 * CELL_HEIGHT
    };
    let (left, upper) = (MARGIN + label_width, top + TITLE + header);
    let legend = match grid.colours {
        "" => grid.legend.to_owned(),
        colours => format!("{}; {colours}", grid.legend),
    };
    let frame = Frame {
        left,
        top,
        upper,
        cell_width,
    };
    let group = draw_names(grid, &frame, &legend);
    let group = draw_rows(grid, &frame, group);
    let mut group = draw_lines(grid, &frame, group);
    let rows = grid.rows.len();
    let mut height = TITLE + header + rows as f64 * CELL_HEIGHT;
    if (rows, columns) != grid.whole {
        let note = format!(
            "{rows}x{columns} of {}x{} shown",
            grid.whole.0, grid.whole.1
        );
        group = group.add(
            label(&note)
                .set("class", "note")
                .set("x", MARGIN)
                .set("y", top + height + CELL_HEIGHT / 2.0),
        );
        height += CELL_HEIGHT;
    }
    let heading = (longest([grid.title.as_str()].into_iter()) * 8.0)
        .max(longest([legend.as_str()].into_iter()) * 6.0);
    (
        group,
        (label_width + columns as f64 * cell_width).max(heading),
        height,
    )
}

/// A text that is centred vertically without `dominant-baseline`, which not all renderers support.
fn label(text: &str) -> Text {
    Text::new(text).set("dy", "0.35em")
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new()
        .set("x1", x1)
        .set("y1", y1)
        .set("x2", x2)
        .set("y2", y2)
}

/// A colour on which dark text is readable.
fn colour(hue: Option<f64>, depth: f64) -> String {
    match hue {
        None => "#f4f4f4".to_owned(),
        Some(hue) => format!(
            "hsl({:.0}, 70%, {:.0}%)",
            hue * 360.0,
            96.0 - 36.0 * depth.clamp(0.0, 1.0)
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{View, Window, grids, read};

    #[test]
    fn every_cell_and_every_name_is_drawn() {
        let layout = read("(2,4):(4,1)", None).unwrap();
        for view in [View::Tensor, View::Hardware, View::Matrix] {
            let grids = grids(&layout, view, None, Window::ALL).unwrap();
            let picture = super::draw(&grids);
            let cells: usize = grids.iter().map(|grid| grid.cells.len()).sum();
            assert_eq!(picture.matches("<rect").count(), cells + 1, "{view:?}");
            for text in grids.iter().flat_map(|grid| &grid.columns) {
                assert!(
                    picture.contains(&format!("\n{text}\n")),
                    "{view:?}: no {text}"
                );
            }
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        }
    }
}
