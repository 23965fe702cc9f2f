//! Pictures of a layout as grids of cells, independent of the output format (text or SVG).
//!
//! Three views: by the tensor (the places that hold each element), by the hardware (the element that each place
//! holds), and the matrix of bits.

use std::collections::HashMap;

use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A cell per element of the tensor, which says where it lies.
    Tensor,
    /// A cell per place of the hardware or memory, which says what lies there.
    Hardware,
    /// The layout's matrix over F2, a column per input bit and a row per output bit.
    Matrix,
}

/// The banks of a memory's cells, which determine the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banks {
    /// The number of banks.
    pub count: u64,
    /// The width of a bank in bits.
    pub bits: u64,
    /// The width of an element in bits.
    pub element_bits: u64,
}

impl Banks {
    /// The banks of a target's shared memory, for elements of this many bits.
    #[must_use]
    pub fn of(target: Target, element_bits: u32) -> Self {
        let model = target.banks();
        Self {
            count: 1 << model.banks_log2,
            bits: 8 << model.bank_bytes_log2,
            element_bits: u64::from(element_bits),
        }
    }

    /// The bank of an element's first bit.
    fn bank_of(self, offset: u64) -> u64 {
        offset * self.element_bits / self.bits.max(1) % self.count.max(1)
    }

    /// Elements (at least one) in one word of every bank.
    fn line(self) -> usize {
        (self.count * self.bits / self.element_bits.max(1)).clamp(1, 1 << 16) as usize
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The text in it; empty for none.
    pub text: String,
    /// The colour, a turn of the colour wheel; `None` for white.
    pub hue: Option<f64>,
    /// How dark the colour is, 0 to 1.
    pub depth: f64,
    /// The owner; an outline is drawn where it changes.
    pub owner: u32,
}

/// A picture: labelled rows and columns of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The title.
    pub title: String,
    /// How to read the cells.
    pub legend: &'static str,
    /// What their colours mean; empty for nothing.
    pub colours: &'static str,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Names over several columns: the first column and the name.
    pub column_groups: Vec<(usize, String)>,
    /// Cells row by row.
    pub cells: Vec<Cell>,
    /// Rows before which a thicker line is drawn.
    pub row_breaks: Vec<usize>,
    /// Columns before which a thicker line is drawn.
    pub column_breaks: Vec<usize>,
    /// Rows and columns of the whole; the grid may show only the first ones.
    pub whole: (usize, usize),
}

/// The most rows and columns that a grid may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

impl Window {
    /// No limit.
    pub const ALL: Window = Window {
        rows: usize::MAX,
        columns: usize::MAX,
    };
}

/// The most places of a layout that are enumerated, as log2.
const MAX_PLACES_LOG2: u32 = 24;
/// The most grids of one picture.
const MAX_GRIDS: usize = 16;

/// The layout has too many places for a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("2^{places_log2} places are too many to draw; at most 2^{MAX_PLACES_LOG2} are")]
pub struct TooLarge {
    places_log2: u32,
}

/// The grids of a view; several where the tensor has more than two dimensions.
///
/// # Errors
/// When the layout has too many places to enumerate.
pub fn grids(
    layout: &LinearLayout,
    view: View,
    banks: Option<Banks>,
    window: Window,
) -> Result<Vec<Grid>, TooLarge> {
    if view == View::Matrix {
        return Ok(vec![matrix(layout)]);
    }
    let places_log2 = layout.total_in_size_log2();
    if places_log2.max(layout.total_out_size_log2()) > MAX_PLACES_LOG2 {
        return Err(TooLarge { places_log2 });
    }
    Ok(match view {
        View::Tensor => tensor(layout, banks, window),
        _ => vec![hardware(layout, banks, window)],
    })
}

/// The matrix of bits: column `i` is the image of input bit `i`.
fn matrix(layout: &LinearLayout) -> Grid {
    let mut rows = Vec::new();
    let mut row_breaks = Vec::new();
    for &dim in layout.out_dims() {
        row_breaks.push(rows.len());
        rows.extend((0..layout.out_dim_size_log2(dim)).map(|bit| format!("{dim} {}", 1u64 << bit)));
    }
    let mut columns = Vec::new();
    let mut column_breaks = Vec::new();
    let mut column_groups = Vec::new();
    for &dim in layout.in_dims() {
        if layout.in_dim_size_log2(dim) > 0 {
            column_breaks.push(columns.len());
            column_groups.push((columns.len(), dim.to_string()));
        }
        columns.extend((0..layout.in_dim_size_log2(dim)).map(|bit| (1u64 << bit).to_string()));
    }
    let block = |breaks: &[usize], at: usize| breaks.iter().filter(|&&first| first <= at).count();
    let mut cells = Vec::new();
    for row in 0..rows.len() {
        for column in 0..columns.len() {
            let one = layout.flat_bases()[column] >> row & 1 == 1;
            let hue =
                block(&column_breaks, column) as f64 / 4.0 + block(&row_breaks, row) as f64 / 13.0;
            cells.push(Cell {
                text: if one { "1" } else { "" }.to_owned(),
                hue: Some(hue.fract()),
                depth: if one { 0.8 } else { 0.05 },
                owner: 0,
            });
        }
    }
    Grid {
        title: "matrix over F2".to_owned(),
        legend: "a column per input bit, a row per output bit",
        colours: "",
        whole: (rows.len(), columns.len()),
        rows,
        columns,
        column_groups,
        cells,
        row_breaks,
        column_breaks,
    }
}

/// Whether the inputs are threads.
fn is_distributed(layout: &LinearLayout) -> bool {
    layout.has_in_dim(Dim::LANE) || layout.has_in_dim(Dim::REGISTER)
}

/// A coordinate of a point, 0 where there is no such dimension.
fn coordinate(point: &[(Dim, u32)], dim: Dim) -> u64 {
    point
        .iter()
        .find(|&&(name, _)| name == dim)
        .map_or(0, |&(_, value)| u64::from(value))
}

/// The short name of a place: `w1t5:2` is register 2 of lane 5 of warp 1, `37` an offset.
fn place_name(layout: &LinearLayout, place: &[(Dim, u32)], with_register: bool) -> String {
    let mut name = String::new();
    let letters = [(Dim::BLOCK, 'b'), (Dim::WARP, 'w'), (Dim::LANE, 't')];
    for (dim, letter) in letters {
        if layout.in_dim_size(dim) > 1 || (dim == Dim::LANE && is_distributed(layout)) {
            name.push_str(&format!("{letter}{}", coordinate(place, dim)));
        }
    }
    for &(dim, value) in place {
        let is_letter = letters.iter().any(|&(lettered, _)| lettered == dim);
        match dim {
            Dim::REGISTER if with_register => name.push_str(&format!(":{value}")),
            Dim::REGISTER => {}
            _ if is_letter => {}
            _ => {
                if !name.is_empty() {
                    name.push(' ');
                }
                if dim != Dim::OFFSET {
                    name.push_str(&format!("{dim} "));
                }
                name.push_str(&value.to_string());
            }
        }
    }
    name
}

/// The part of the colour wheel that is used; less than all, so that its ends can be told apart.
const WHEEL: f64 = 0.88;

/// A cell for a place of an element. For threads, the hue is the lane and the darkness the warp; for memory, the hue
/// is the bank.
fn place_cell(
    layout: &LinearLayout,
    place: &[(Dim, u32)],
    copies: usize,
    banks: Option<Banks>,
) -> Cell {
    let mut text = place_name(layout, place, true);
    if copies > 0 {
        text.push_str(&format!("+{copies}"));
    }
    let share = |dim| coordinate(place, dim) as f64 / layout.in_dim_size(dim) as f64;
    let block = coordinate(place, Dim::BLOCK) * layout.in_dim_size(Dim::WARP);
    if is_distributed(layout) {
        return Cell {
            text,
            hue: Some(WHEEL * share(Dim::LANE)),
            depth: 0.15 + 0.5 * share(Dim::WARP),
            owner: (block + coordinate(place, Dim::WARP)) as u32,
        };
    }
    let bank = banks
        .map(|banks| banks.bank_of(coordinate(place, Dim::OFFSET)) as f64 / banks.count as f64);
    Cell {
        text,
        hue: bank.map(|bank| WHEEL * bank),
        depth: 0.3,
        owner: block as u32,
    }
}

/// How to read [`place_cell`]: the text and the colour.
fn place_legend(layout: &LinearLayout, banks: Option<Banks>) -> (&'static str, &'static str) {
    if is_distributed(layout) {
        (
            "b block, w warp, t lane, :register, +further places",
            "colour: lane, darker: warp",
        )
    } else {
        let colours = if banks.is_some() { "colour: bank" } else { "" };
        ("offset in elements, +further places", colours)
    }
}

/// Where the elements lie.
fn tensor(layout: &LinearLayout, banks: Option<Banks>, window: Window) -> Vec<Grid> {
    let sizes: Vec<usize> = layout
        .out_dims()
        .iter()
        .map(|&dim| layout.out_dim_size(dim) as usize)
        .collect();
    // The last dimension is the columns, the one before the rows; a vector is folded.
    let columns = sizes.last().copied().unwrap_or(1);
    let (rows, columns) = match sizes.len() {
        0 | 1 => (columns.div_ceil(32), columns.min(32)),
        rank => (sizes[rank - 2], columns),
    };
    let outer: usize = sizes.iter().rev().skip(2).product();
    let shown_rows = rows.min(window.rows);
    let shown_columns = columns.min(window.columns);
    let shown_outer = outer.clamp(1, MAX_GRIDS);

    // The smallest place of each shown element, and how many there are.
    let mut places: HashMap<(usize, usize, usize), (u32, usize)> = HashMap::new();
    for input in 0..1u32 << layout.total_in_size_log2() {
        let element = layout.unflatten_output(layout.apply_flat(input));
        let index = |at: usize| element.get(at).map_or(0, |&(_, value)| value as usize);
        let (outer, row, column) = match sizes.len() {
            0 | 1 => (0, index(0) / columns, index(0) % columns),
            rank => {
                let outer = (0..rank - 2).fold(0, |sum, at| sum * sizes[at] + index(at));
                (outer, index(rank - 2), index(rank - 1))
            }
        };
        if outer < shown_outer && row < shown_rows && column < shown_columns {
            places.entry((outer, row, column)).or_insert((input, 0)).1 += 1;
        }
    }
    let (legend, colours) = place_legend(layout, banks);
    let mut result = Vec::new();
    for slice in 0..shown_outer {
        let mut cells = Vec::new();
        for row in 0..shown_rows {
            for column in 0..shown_columns {
                cells.push(match places.get(&(slice, row, column)) {
                    None => Cell {
                        text: String::new(),
                        hue: None,
                        depth: 0.0,
                        owner: u32::MAX,
                    },
                    Some(&(input, count)) => {
                        place_cell(layout, &layout.unflatten_input(input), count - 1, banks)
                    }
                });
            }
        }
        let mut title = "where each element lies".to_owned();
        if sizes.len() > 2 {
            let mut rest = slice;
            let mut outer_index: Vec<String> = Vec::new();
            for at in (0..sizes.len() - 2).rev() {
                outer_index.push(format!("dim{at} = {}", rest % sizes[at]));
                rest /= sizes[at];
            }
            outer_index.reverse();
            title.push_str(&format!(", {}", outer_index.join(", ")));
        }
        result.push(Grid {
            title,
            legend,
            colours,
            rows: (0..shown_rows)
                .map(|row| if sizes.len() < 2 { row * columns } else { row }.to_string())
                .collect(),
            columns: (0..shown_columns)
                .map(|column| column.to_string())
                .collect(),
            column_groups: Vec::new(),
            cells,
            row_breaks: Vec::new(),
            column_breaks: Vec::new(),
            whole: (rows, columns),
        });
    }
    result
}

/// The same layout with its registers, or its offsets, first: these are the columns of a table.
fn columns_first(layout: &LinearLayout) -> LinearLayout {
    let is_column = |dim: &Dim| matches!(*dim, Dim::REGISTER | Dim::OFFSET);
    let (mut order, others): (Vec<Dim>, Vec<Dim>) =
        layout.in_dims().iter().copied().partition(is_column);
    order.extend(others);
    layout
        .transpose_ins(&order)
        .unwrap_or_else(|_| layout.clone())
}

/// The elements that the places hold.
fn hardware(layout: &LinearLayout, banks: Option<Banks>, window: Window) -> Grid {
    let layout = &columns_first(layout);
    let total = 1usize << layout.total_in_size_log2();
    let distributed = is_distributed(layout);
    let columns = if distributed {
        layout.in_dim_size(Dim::REGISTER) as usize
    } else {
        let first = layout
            .in_dims()
            .first()
            .map_or(1, |&dim| layout.in_dim_size(dim)) as usize;
        banks.map_or(32, Banks::line).min(first)
    };
    let rows = total / columns;
    let shown_rows = rows.min(window.rows);
    let shown_columns = columns.min(window.columns);
    let (first_dim, last_dim) = (
        layout.out_dims().first().copied().unwrap_or(Dim::tensor(0)),
        layout.out_dims().last().copied().unwrap_or(Dim::tensor(0)),
    );
    let mut cells = Vec::new();
    let mut row_names = Vec::new();
    let mut row_breaks = Vec::new();
    for row in 0..shown_rows {
        let first = (row * columns) as u32;
        let place = layout.unflatten_input(first);
        row_names.push(place_name(layout, &place, false));
        let next_group = if distributed { Dim::LANE } else { Dim::OFFSET };
        if coordinate(&place, next_group) == 0 {
            row_breaks.push(row);
        }
        for column in 0..shown_columns {
            let element = layout.unflatten_output(layout.apply_flat(first + column as u32));
            let text: Vec<String> = element.iter().map(|(_, value)| value.to_string()).collect();
            let share = |dim| coordinate(&element, dim) as f64 / layout.out_dim_size(dim) as f64;
            cells.push(Cell {
                text: text.join(","),
                hue: Some(WHEEL * share(last_dim)),
                depth: 0.15 + 0.5 * share(first_dim),
                owner: 0,
            });
        }
    }
    Grid {
        title: if distributed {
            "what each thread holds"
        } else {
            "what the memory holds"
        }
        .to_owned(),
        legend: if distributed {
            "a row per lane, a column per register"
        } else {
            "a row per line, a column per element"
        },
        colours: "colour: last dimension, darker: first",
        rows: row_names,
        columns: (0..shown_columns)
            .map(|column| column.to_string())
            .collect(),
        column_groups: Vec::new(),
        cells,
        row_breaks,
        column_breaks: Vec::new(),
        whole: (rows, columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distributed() -> LinearLayout {
        LinearLayout::from_bases(
            &[
                (Dim::REGISTER, &[[0, 1]][..]),
                (Dim::LANE, &[[1, 0], [0, 2]]),
                (Dim::WARP, &[[0, 0]]),
            ],
            &[(Dim::tensor(0), 2), (Dim::tensor(1), 4)],
        )
        .unwrap()
    }

    fn texts(grid: &Grid) -> Vec<&str> {
        grid.cells.iter().map(|cell| cell.text.as_str()).collect()
    }

    #[test]
    fn both_directions_say_the_same() {
        let layout = distributed();
        let tensor = &grids(&layout, View::Tensor, None, Window::ALL).unwrap()[0];
        assert_eq!(
            texts(tensor),
            [
                "w0t0:0+1", "w0t0:1+1", "w0t2:0+1", "w0t2:1+1", "w0t1:0+1", "w0t1:1+1", "w0t3:0+1",
                "w0t3:1+1"
            ]
        );
        let hardware = &grids(&layout, View::Hardware, None, Window::ALL).unwrap()[0];
        assert_eq!(
            hardware.rows,
            [
                "w0t0", "w0t1", "w0t2", "w0t3", "w1t0", "w1t1", "w1t2", "w1t3"
            ]
        );
        assert_eq!(
            texts(hardware)[..8],
            ["0,0", "0,1", "1,0", "1,1", "0,2", "0,3", "1,2", "1,3"]
        );
        assert_eq!(hardware.row_breaks, [0, 4]);
    }

    #[test]
    fn windows_cut_and_say_so() {
        let window = Window {
            rows: 1,
            columns: 2,
        };
        let tensor = &grids(&distributed(), View::Tensor, None, window).unwrap()[0];
        assert_eq!((tensor.cells.len(), tensor.whole), (2, (2, 4)));
        assert!(super::super::text::grid(tensor).ends_with("(1x2 of 2x4 shown)\n"));
    }

    #[test]
    fn higher_ranks_have_a_grid_per_matrix() {
        let layout = LinearLayout::from_bases(
            &[(Dim::OFFSET, &[[0, 0, 1], [0, 1, 0], [1, 0, 0]][..])],
            &[
                (Dim::tensor(0), 2),
                (Dim::tensor(1), 2),
                (Dim::tensor(2), 2),
            ],
        )
        .unwrap();
        let tensor = grids(&layout, View::Tensor, None, Window::ALL).unwrap();
        assert_eq!(tensor.len(), 2);
        assert_eq!(tensor[1].title, "where each element lies, dim0 = 1");
        assert_eq!(texts(&tensor[1]), ["4", "5", "6", "7"]);
    }

    #[test]
    fn registers_are_columns_wherever_they_stand() {
        let layout = distributed();
        let moved = layout
            .transpose_ins(&[Dim::WARP, Dim::LANE, Dim::REGISTER])
            .unwrap();
        let shown = |layout| grids(layout, View::Hardware, None, Window::ALL).unwrap();
        assert_eq!(shown(&moved)[0].columns, ["0", "1"]);
        assert_eq!(texts(&shown(&moved)[0])[..4], ["0,0", "0,1", "0,0", "0,1"]);
    }

    #[test]
    fn banks_colour_memory() {
        let banks = Banks {
            count: 2,
            bits: 32,
            element_bits: 16,
        };
        let row: Vec<u64> = (0..6).map(|offset| banks.bank_of(offset)).collect();
        assert_eq!(row, [0, 0, 1, 1, 0, 0]);
        assert_eq!(banks.line(), 4);
    }
}
