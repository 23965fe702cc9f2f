//! An edge on which costs are moved to its ends ([`super::relaxation`]).
//!
//! # Rows
//!
//! The pairs of an edge are a matrix, by the labels of its smaller node and of its larger one, some five by five on average, and
//! each pass goes through all of them. Rows have a whole number of [`LANES`] entries, so that no loop over a row has a remainder
//! and several entries are taken at once. Entries behind the last label are infinite, so that no minimum is one of them:
//!
//! ```text
//!              columns      lanes
//!            4  0  8  8  9 | inf inf inf
//!   rows     0  4  8  8  9 | inf inf inf        least of a row, or of all rows: that of the entries
//!            8  8  0  4  9 | inf inf inf
//! ```
//!
//! # Numbers
//!
//! Costs are whole numbers, as floating-point numbers: processors have a minimum of several of these at once, and none of
//! 64-bit integers. All of them and their sums are below `2^53`, so that they are exact ([`super::relaxation::Units`]).

use super::edges::EdgeCosts;

/// How many entries of a row are taken at once.
const LANES: usize = 4;

/// So many entries that all columns fit into a whole number of lanes.
fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// Entries that are taken at once. Functions of them are of values, so that compilers find the instructions for several numbers.
type Lanes = [f64; LANES];

/// Entries of padded rows.
fn lanes(entries: &[f64]) -> &[Lanes] {
    entries.as_chunks().0
}

/// The smaller one of two numbers.
#[inline]
fn smaller(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

/// The smaller ones of two numbers in each lane.
#[inline]
fn smaller_of(one: Lanes, other: Lanes) -> Lanes {
    std::array::from_fn(|lane| smaller(one[lane], other[lane]))
}

/// What is left in each lane.
#[inline]
fn less(one: Lanes, other: Lanes) -> Lanes {
    std::array::from_fn(|lane| one[lane] - other[lane])
}

/// The least of all lanes.
#[inline]
fn least_of(costs: Lanes) -> f64 {
    let [a, b, c, d] = costs;
    smaller(smaller(a, c), smaller(b, d))
}

/// An edge with what has been moved to its ends, for the labels that are left.
pub(super) struct Link<'p, 'f> {
    pub(super) ends: [usize; 2],
    pub(super) costs: &'p EdgeCosts<'f>,
    rows: usize,
    columns: usize,
    /// What pairs cost at least, row by row.
    table: Vec<f64>,
    /// What each label of the smaller node and of the larger one has received from this edge.
    moved: [Vec<f64>; 2],
    /// The same before the last two passes.
    before: [Vec<f64>; 2],
    /// What was left for each label of the smaller node and of the larger one at the last look.
    least: [Vec<f64>; 2],
    /// How many prices are asked for at once, when the bound rests on one that is not known: twice as many each time.
    pub(super) at_once: usize,
}

/// The pair of labels of which least is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cheapest {
    pub(super) left: f64,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl<'p, 'f> Link<'p, 'f> {
    /// An edge from which nothing has been moved, with so many labels of its smaller and of its larger node, and what pairs
    /// cost at least, row by row.
    pub(super) fn new(
        ends: [usize; 2],
        costs: &'p EdgeCosts<'f>,
        [rows, columns]: [usize; 2],
        mut least: impl Iterator<Item = f64>,
    ) -> Self {
        let stride = padded(columns);
        let mut table = Vec::with_capacity(rows * stride);
        for _ in 0..rows {
            table.extend(least.by_ref().take(columns));
            table.resize(table.len() + stride - columns, f64::INFINITY);
        }
        Self {
            ends,
            costs,
            rows,
            columns,
            table,
            moved: [vec![0.0; rows], vec![0.0; stride]],
            before: [Vec::new(), Vec::new()],
            least: [Vec::with_capacity(rows), Vec::with_capacity(stride)],
            at_once: 1,
        }
    }

    /// The entries of a row and of the lanes behind it.
    fn stride(&self) -> usize {
        padded(self.columns)
    }

    /// How many pairs there are.
    pub(super) fn pairs(&self) -> usize {
        self.rows * self.columns
    }

    /// What the pairs of a label of the smaller node cost, by the labels of the larger one.
    fn row(&self, row: usize) -> &[f64] {
        &self.table[row * self.stride()..][..self.columns]
    }

    /// What the pairs of a label of the larger node cost, by the labels of the smaller one.
    fn column(&self, column: usize) -> impl Iterator<Item = &f64> {
        let from = self.table.get(column..).unwrap_or_default();
        from.iter().step_by(self.stride().max(1))
    }

    /// Adds what pairs cost with a label of one end to the costs of the labels of the other end.
    pub(super) fn add_costs(&self, end: usize, label: usize, costs: &mut [f64]) {
        match end {
            0 => {
                for (cost, more) in costs.iter_mut().zip(self.row(label)) {
                    *cost += more;
                }
            }
            _ => {
                for (cost, more) in costs.iter_mut().zip(self.column(label)) {
                    *cost += more;
                }
            }
        }
    }

    /// Takes what labels of one end have received off these costs of them.
    pub(super) fn subtract_moved(&self, end: usize, costs: &mut [f64]) {
        for (cost, moved) in costs.iter_mut().zip(&self.moved[end]) {
            *cost -= moved;
        }
    }

    /// Takes a share of what each label of one end costs back to the edge.
    pub(super) fn take(&mut self, end: usize, shares: &[f64], costs: &mut [f64]) {
        let labels = self.moved[end].iter_mut().zip(costs).zip(shares);
        for ((moved, cost), share) in labels {
            *moved -= share;
            *cost -= share;
        }
    }

    /// Keeps what has been moved until now, before passes that move more.
    pub(super) fn keep_moved(&mut self) {
        for (before, moved) in self.before.iter_mut().zip(&self.moved) {
            before.clone_from(moved);
        }
    }

    /// Moves costs to the labels of one end so many times as far again as since that was kept, but none by more than `most`.
    pub(super) fn move_on(&mut self, end: usize, times: f64, most: f64, costs: &mut [f64]) {
        let labels = self.moved[end].iter_mut().zip(&self.before[end]);
        for ((moved, before), cost) in labels.zip(costs) {
            let more = (times * (*moved - before)).clamp(-most, most);
            *moved += more;
            *cost += more;
        }
    }

    /// Sends all that pairs cost to one end; `room` is for what that is.
    pub(super) fn send(&mut self, end: usize, costs: &mut [f64], room: &mut Vec<f64>) {
        let stride = self.stride();
        room.clear();
        match end {
            0 => {
                for row in 0..self.rows {
                    let costs = lanes(&self.table[row * stride..][..stride]);
                    let pairs = costs.iter().zip(lanes(&self.moved[1]));
                    let left = pairs.map(|(costs, moved)| less(*costs, *moved));
                    room.push(least_of(left.fold([f64::INFINITY; LANES], smaller_of)));
                }
            }
            _ => {
                room.resize(stride, f64::INFINITY);
                for (row, moved) in self.moved[0].iter().enumerate() {
                    let costs = lanes(&self.table[row * stride..][..stride]);
                    for (least, costs) in room.as_chunks_mut().0.iter_mut().zip(costs) {
                        *least = smaller_of(*least, less(*costs, [*moved; LANES]));
                    }
                }
            }
        }
        let labels = self.moved[end].iter_mut().zip(costs).zip(&*room);
        for ((moved, cost), least) in labels {
            *cost += least - *moved;
            *moved = *least;
        }
    }

    /// Looks at what is left of the pairs: for each label, and the pair of which least is left, the first of equal ones.
    pub(super) fn look(&mut self) -> Option<Cheapest> {
        let stride = self.stride();
        let [of_rows, of_columns] = &mut self.least;
        of_rows.clear();
        of_columns.clear();
        of_columns.resize(stride, f64::INFINITY);
        let mut best = (f64::INFINITY, 0);
        for (row, of_row) in self.moved[0].iter().enumerate() {
            let costs = lanes(&self.table[row * stride..][..stride]).iter();
            let of_columns = of_columns.as_chunks_mut().0;
            let mut least = [f64::INFINITY; LANES];
            for ((costs, moved), of_columns) in costs.zip(lanes(&self.moved[1])).zip(of_columns) {
                let left = less(less(*costs, [*of_row; LANES]), *moved);
                *of_columns = smaller_of(*of_columns, left);
                least = smaller_of(least, left);
            }
            let least = least_of(least);
            of_rows.push(least);
            if least < best.0 {
                best = (least, row);
            }
        }
        let (left, row) = best;
        if self.rows == 0 {
            return None;
        }
        let column = (0..self.columns).find(|&column| self.left(row, column) == left)?;
        Some(Cheapest { left, row, column })
    }

    /// What is left of the cost of a pair.
    fn left(&self, row: usize, column: usize) -> f64 {
        self.table[row * self.stride() + column] - self.moved[0][row] - self.moved[1][column]
    }

    /// What is left of the costs of all pairs.
    pub(super) fn all_left(&self) -> impl Iterator<Item = Cheapest> + '_ {
        (0..self.rows).flat_map(move |row| {
            (0..self.columns).map(move |column| Cheapest {
                left: self.left(row, column),
                row,
                column,
            })
        })
    }

    /// What was left for each label of an end at the last look.
    pub(super) fn least(&self, end: usize) -> &[f64] {
        let labels = [self.rows, self.columns][end];
        &self.least[end][..labels]
    }

    /// Sets the price of a pair.
    pub(super) fn set(&mut self, row: usize, column: usize, cost: f64) {
        let stride = self.stride();
        self.table[row * stride + column] = cost;
    }

    /// Forgets the labels that are not kept.
    pub(super) fn retain(&mut self, [rows, columns]: [&[bool]; 2]) {
        let count = |is_kept: &[bool]| is_kept.iter().filter(|kept| **kept).count();
        let (before, after) = (self.stride(), padded(count(columns)));
        let mut end = 0;
        for (row, _) in rows.iter().enumerate().filter(|(_, kept)| **kept) {
            let begin = end;
            for (column, _) in columns.iter().enumerate().filter(|(_, kept)| **kept) {
                self.table[end] = self.table[row * before + column];
                end += 1;
            }
            // Where rows stay as wide as they were, these are infinite already.
            let padding = begin + after;
            if end < padding {
                self.table[end..padding].fill(f64::INFINITY);
            }
            end = padding;
        }
        self.table.truncate(end);
        for moved in [&mut self.moved, &mut self.before] {
            for (moved, is_kept) in moved.iter_mut().zip([rows, columns]) {
                let mut is_kept = is_kept.iter();
                moved.retain(|_| is_kept.next() == Some(&true));
            }
        }
        self.moved[1].resize(after, 0.0);
        [self.rows, self.columns] = [rows, columns].map(count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Rows without labels that were dropped are those of an edge that never had these, whatever was moved before.
        #[test]
        fn what_is_left_is_what_it_would_be_without_the_labels_that_are_dropped(
            costs in prop::collection::vec(prop::collection::vec(0..50u32, 7), 1..6),
            shares in prop::collection::vec(0..9u32, 13),
            kept in prop::collection::vec(any::<bool>(), 13),
        ) {
            let (rows, columns) = (costs.len(), 7);
            let none = EdgeCosts::of_table(0, std::iter::empty());
            let at = |row: usize, column: usize| f64::from(costs[row][column]);
            let pairs = (0..rows).flat_map(|row| (0..columns).map(move |column| at(row, column)));
            let mut link = Link::new([0, 1], &none, [rows, columns], pairs);
            let mut own = [vec![0.0; rows], vec![0.0; columns]];
            let shares: Vec<f64> = shares.into_iter().map(f64::from).collect();
            let mut room = Vec::new();
            link.take(0, &shares[..rows], &mut own[0]);
            link.send(1, &mut own[1], &mut room);
            for (column, sent) in own[1].iter().enumerate() {
                let least = (0..rows).map(|row| at(row, column) + shares[row]).fold(f64::INFINITY, f64::min);
                prop_assert_eq!(*sent, least);
            }
            link.keep_moved();
            link.take(1, &shares[6..], &mut own[1]);
            link.send(0, &mut own[0], &mut room);
            for (end, own) in own.iter_mut().enumerate() {
                link.move_on(end, 2.0, 20.0, own);
            }
            let left = |row: usize, column: usize| at(row, column) - own[0][row] - own[1][column];
            let (kept_rows, kept_columns) = (&kept[..rows], &kept[6..]);
            link.retain([kept_rows, kept_columns]);
            let of_rows: Vec<usize> = (0..rows).filter(|row| kept_rows[*row]).collect();
            let of_columns: Vec<usize> = (0..columns).filter(|column| kept_columns[*column]).collect();
            let mut best: Option<Cheapest> = None;
            for (row, &of_row) in of_rows.iter().enumerate() {
                for (column, &of_column) in of_columns.iter().enumerate() {
                    let left = left(of_row, of_column);
                    if best.is_none_or(|best| left < best.left) {
                        best = Some(Cheapest { left, row, column });
                    }
                }
            }
            prop_assert_eq!(link.look(), best);
            if best.is_some() {
                for (row, &of_row) in of_rows.iter().enumerate() {
                    let least = of_columns.iter().map(|&column| left(of_row, column)).fold(f64::INFINITY, f64::min);
                    prop_assert_eq!(link.least(0)[row], least);
                }
                for (column, &of_column) in of_columns.iter().enumerate() {
                    let least = of_rows.iter().map(|&row| left(row, of_column)).fold(f64::INFINITY, f64::min);
                    prop_assert_eq!(link.least(1)[column], least);
                }
            }
            prop_assert_eq!(link.all_left().count(), of_rows.len() * of_columns.len());
        }
    }
}
