//! Which sectors asynchronous copies request, and layouts of shared memory for which they request each once.
//!
//! A copy from global to shared memory (`cp.async`) passes through the first-level cache without staying there. A
//! warp's instruction requests a sector once for each line of shared memory that receives bytes of it, where a line
//! is a row of all banks. On an H200, a copy of 16 bytes for each lane whose sectors go to two lines each transfers
//! twice the bytes from the second-level cache, and takes twice the time where the cache is the bottleneck (ncu:
//! `l1tex__m_xbar2l1tex_read_bytes`). Bank conflicts do not show this: they depend on which bytes share a bank, not
//! on which share a line.
//!
//! # The count
//!
//! The sector of an element and the line that it goes to are both linear in the element's number, up to what shares
//! both. So the number of requests of an instruction follows from the rank of the joint map, over the span of its
//! lanes and registers.
//!
//! # The choice
//!
//! A layout of shared memory is a basis of the tensor, offset bit 0 first: the bits of a copy, the bits within a
//! line, and the *segments*, one for each bit of the line's number. Which accesses conflict depends on the span of
//! the segments alone (see `llopt_layout::plan`), so any complement of it may be what lies in a line, as long as the
//! bits of a copy stay what they are. [`Copies::with_lines`] takes for the line as many neighbours in global memory
//! as lie in no segment.

use llopt_layout::f2::Echelon;
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

use crate::global_access::Groups;
use crate::tensor::TensorType;

/// Copies of a tensor to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Copies<'t> {
    /// What is copied, and which thread copies what.
    pub tensor: &'t TensorType,
    /// What each instruction moves. Elements that come next along the same dimension are taken to come next in
    /// global memory.
    pub groups: &'t Groups,
    /// Bytes of a line of shared memory, a power of two.
    pub line: u32,
}

impl Copies<'_> {
    /// The bits of an element's number along the dimension in which a group's elements are neighbours: those within a
    /// group, and those of the rest of the dimension; `None` if each instruction moves one element.
    fn run(&self) -> Option<(u32, std::ops::Range<u32>)> {
        let group = self.groups.groups.first().filter(|group| group.len() > 1)?;
        let step = self.tensor.element_in(group[0]) ^ self.tensor.element_in(group[1]);
        let dims = 0..self.tensor.shape.len();
        let along = dims
            .map(|dim| self.tensor.bits_of_dim(dim))
            .find(|(low, _)| step == 1 << low)?;
        let (low, bits) = along;
        let width = group.len().ilog2();
        Some((low, low + width..low + bits))
    }

    fn bytes(&self) -> u32 {
        self.tensor.element.memory_bits() / 8
    }

    /// log2 of the number of elements in so many bytes.
    fn elements_log2(&self, bytes: u32) -> usize {
        (bytes / self.bytes()).max(1).ilog2() as usize
    }

    /// How many sectors the instructions request beyond each sector once, if the copies go to such a layout of
    /// memory.
    #[must_use]
    pub fn asked_again(&self, memory: &LinearLayout, target: Target) -> u32 {
        let (Some((low, _)), Ok(places)) = (
            self.run(),
            memory.row_major().and_then(|memory| memory.invert()),
        ) else {
            return 0;
        };
        let tensor = self.tensor;
        let sector = self.elements_log2(target.global_costs().sector_bytes);
        let in_sector = ((1u32 << sector) - 1) << low;
        let line = self.elements_log2(self.line);
        let first = tensor.element_in(self.groups.groups[0][0]);
        let of_group = self.groups.groups[0]
            .iter()
            .map(|register| tensor.element_in(*register) ^ first);
        let lanes = tensor.layout().flat_bases_of(Dim::LANE).iter().copied();
        let moved: Vec<u32> = lanes.chain(of_group).collect();
        let (mut sectors, mut lines) = (Echelon::new(), Echelon::new());
        // A sum that stays in one sector but leaves the line is one more line.
        for element in &moved {
            if let Some(recipe) = sectors.insert(element & !in_sector) {
                let sum = moved.iter().enumerate();
                let sum = sum
                    .filter(|(at, _)| recipe >> at & 1 == 1)
                    .fold(0, |sum, (_, element)| sum ^ element);
                let _ = lines.insert(places.apply_flat(sum) >> line);
            }
        }
        let of_each = 1u32 << sectors.rank();
        self.groups.groups.len() as u32 * of_each * ((1u32 << lines.rank()) - 1)
    }

    /// The same memory with other lines: neighbours in global memory share a line as far as possible.
    ///
    /// Requires: `memory` is a layout of this tensor that the copies can go to. Ensures: the elements of a copy stay
    /// where they were, the segments are the same, and so are the conflicts.
    #[must_use]
    pub fn with_lines(&self, memory: &LinearLayout) -> LinearLayout {
        self.lined(memory).unwrap_or_else(|| memory.clone())
    }

    /// A layout of the same tensor as if it were stored line by line: each thread has what one copy moves, and
    /// neighbouring lanes have what is next in global memory. A layout of memory without conflicts for such stores
    /// keeps neighbours together, since none of them is in a segment.
    #[must_use]
    pub fn in_lines(&self) -> Option<LinearLayout> {
        let (low, further) = self.run()?;
        let tensor = self.tensor;
        let chunk = low..further.start;
        let all: u32 = (0..tensor.shape.len())
            .map(|dim| tensor.bits_of_dim(dim).1)
            .sum();
        let others = (0..all).filter(|bit| !chunk.contains(bit) && !further.contains(bit));
        let mut threads: Vec<u32> = further.clone().chain(others).collect();
        let lanes = tensor.layout().in_dim_size_log2(Dim::LANE) as usize;
        let warps = tensor.layout().in_dim_size_log2(Dim::WARP) as usize;
        let rest = threads.split_off((lanes + warps).min(threads.len()));
        let of_warps = threads.split_off(lanes.min(threads.len()));
        let places = |bits: &mut dyn Iterator<Item = u32>, at_least: usize| -> Vec<Vec<u32>> {
            let moving = bits.map(|bit| {
                let dims = 0..tensor.shape.len();
                dims.map(|dim| {
                    let (low, count) = tensor.bits_of_dim(dim);
                    match (low..low + count).contains(&bit) {
                        true => 1 << (bit - low),
                        false => 0,
                    }
                })
                .collect()
            });
            let mut places: Vec<Vec<u32>> = moving.collect();
            // More threads than there are copies have what others have.
            places.resize(at_least.max(places.len()), vec![0; tensor.shape.len()]);
            places
        };
        let bases = [
            (Dim::REGISTER, places(&mut chunk.chain(rest), 0)),
            (Dim::LANE, places(&mut threads.into_iter(), lanes)),
            (Dim::WARP, places(&mut of_warps.into_iter(), warps)),
            (Dim::BLOCK, Vec::new()),
        ];
        let bases: Vec<(Dim, &[Vec<u32>])> = bases
            .iter()
            .map(|(dim, bases)| (*dim, &bases[..]))
            .collect();
        let extents = tensor.shape.iter().enumerate();
        let outs: Vec<(Dim, u32)> = extents
            .map(|(dim, extent)| (Dim::tensor(dim), *extent))
            .collect();
        let layout = LinearLayout::from_bases(&bases, &outs).ok()?;
        layout.transpose_outs(tensor.layout().out_dims()).ok()
    }

    fn lined(&self, memory: &LinearLayout) -> Option<LinearLayout> {
        let (_, further) = self.run()?;
        let order: Vec<Dim> = memory.out_dims().to_vec();
        let memory = memory.row_major().ok()?;
        let places = memory.invert().ok()?;
        let offsets = memory.flat_bases_of(Dim::OFFSET);
        let chunk = self.groups.width.ilog2() as usize;
        let line = self.elements_log2(self.line).min(offsets.len());
        if chunk >= line {
            return None;
        }
        let mut span = Echelon::new();
        for vector in offsets[..chunk].iter().chain(&offsets[line..]) {
            let _ = span.insert(*vector);
        }
        // Within a chunk an element stays where it is only if the new vectors have no part in it.
        let neighbours = further
            .map(|bit| 1u32 << bit)
            .filter(|vector| places.apply_flat(*vector) & ((1 << chunk) - 1) == 0);
        let mut within = Vec::with_capacity(line - chunk);
        for vector in neighbours.chain(offsets[chunk..line].iter().copied()) {
            if within.len() < line - chunk && span.insert(vector).is_none() {
                within.push(vector);
            }
        }
        let vectors = offsets[..chunk]
            .iter()
            .chain(&within)
            .chain(&offsets[line..]);
        let coordinates = |flat: &u32| -> Vec<u32> {
            memory
                .unflatten_output(*flat)
                .iter()
                .map(|(_, at)| *at)
                .collect()
        };
        let offsets: Vec<Vec<u32>> = vectors.map(coordinates).collect();
        let blocks: Vec<Vec<u32>> = memory
            .flat_bases_of(Dim::BLOCK)
            .iter()
            .map(coordinates)
            .collect();
        let outs: Vec<(Dim, u32)> = memory
            .out_dims()
            .iter()
            .map(|dim| (*dim, memory.out_dim_size(*dim) as u32))
            .collect();
        let bases = [(Dim::OFFSET, &offsets[..]), (Dim::BLOCK, &blocks[..])];
        let lined = LinearLayout::from_bases(&bases, &outs).ok()?;
        lined.transpose_outs(&order).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::element::Element;
    use crate::global_access::choose_groups;

    const ROWS: u32 = 64;
    const COLUMNS: u32 = 128;

    fn layout(bases: &[(Dim, &[Vec<u32>])]) -> LinearLayout {
        let outs = [(Dim::tensor(0), ROWS), (Dim::tensor(1), COLUMNS)];
        LinearLayout::from_bases(bases, &outs).unwrap()
    }

    /// By columns, 16 bits each: a lane has eight elements of a column, eight lanes make a column, a warp has four
    /// columns.
    fn by_columns() -> (TensorType, Groups) {
        let column = |bit: u32| vec![0, 1 << bit];
        let row = |bit: u32| vec![1 << bit, 0];
        let registers: Vec<Vec<u32>> = (0..3).map(row).chain((4..7).map(column)).collect();
        let lanes: Vec<Vec<u32>> = (3..6).map(row).chain((0..2).map(column)).collect();
        let warps: Vec<Vec<u32>> = (2..4).map(column).collect();
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let tensor = TensorType::new(Element::F16, vec![ROWS, COLUMNS], &layout(&bases)).unwrap();
        let groups = choose_groups(&tensor, 8, &|dim| if dim == 0 { 64 } else { 1 });
        (tensor, groups)
    }

    /// A layout of memory whose lines hold eight columns each: no conflicts, but two lines for each sector.
    fn across() -> LinearLayout {
        let offsets = [
            [1, 0],
            [2, 0],
            [4, 0],
            [0, 1],
            [0, 2],
            [0, 4],
            [8, 1],
            [16, 2],
            [32, 4],
            [0, 8],
            [0, 16],
            [0, 32],
            [0, 64],
        ];
        let offsets: Vec<Vec<u32>> = offsets.iter().map(|basis| basis.to_vec()).collect();
        layout(&[(Dim::OFFSET, &offsets), (Dim::BLOCK, &[])])
    }

    /// Pairs of a sector and a line, and sectors, counted one by one.
    fn counted(copies: &Copies<'_>, memory: &LinearLayout) -> (usize, usize) {
        let places = memory.row_major().unwrap().invert().unwrap();
        let lanes = copies.tensor.layout().flat_bases_of(Dim::LANE);
        let (mut pairs, mut sectors) = (0, 0);
        for group in &copies.groups.groups {
            let mut asked = BTreeSet::new();
            for lane in 0..1u32 << lanes.len() {
                let own = (0..lanes.len()).filter(|bit| lane >> bit & 1 == 1);
                let own = own.fold(0, |sum, bit| sum ^ lanes[bit]);
                for register in group {
                    let element = copies.tensor.element_in(*register) ^ own;
                    let (row, column) = (element / COLUMNS, element % COLUMNS);
                    let sector = (column * ROWS + row) * 2 / 32;
                    asked.insert((sector, places.apply_flat(element) * 2 / copies.line));
                }
            }
            pairs += asked.len();
            sectors += asked
                .iter()
                .map(|(sector, _)| sector)
                .collect::<BTreeSet<_>>()
                .len();
        }
        (pairs, sectors)
    }

    #[test]
    fn sectors_of_two_lines_are_asked_for_twice() {
        let target = Target::parse("cuda:90").unwrap();
        let (tensor, groups) = by_columns();
        let copies = Copies {
            tensor: &tensor,
            groups: &groups,
            line: 128,
        };
        let memory = across();
        let (pairs, sectors) = counted(&copies, &memory);
        assert_eq!(pairs, 2 * sectors);
        assert_eq!(
            copies.asked_again(&memory, target) as usize,
            pairs - sectors
        );
    }

    #[test]
    fn neighbours_share_a_line_where_the_segments_allow_it() {
        let target = Target::parse("cuda:90").unwrap();
        let (tensor, groups) = by_columns();
        let copies = Copies {
            tensor: &tensor,
            groups: &groups,
            line: 128,
        };
        let (memory, lined) = (across(), copies.with_lines(&across()));
        let (pairs, sectors) = counted(&copies, &lined);
        assert_eq!((pairs, copies.asked_again(&lined, target)), (sectors, 0));
        let bases = |memory: &LinearLayout, from: u32, to: u32| -> Vec<u32> {
            (from..to).map(|bit| memory.apply_flat(1 << bit)).collect()
        };
        assert_eq!(
            bases(&memory, 0, 3),
            bases(&lined, 0, 3),
            "what a copy moves"
        );
        assert_eq!(bases(&memory, 6, 13), bases(&lined, 6, 13), "the segments");
        assert!(lined.is_invertible());
    }

    #[test]
    fn in_lines_the_lanes_of_a_warp_hold_what_comes_next_in_global_memory() {
        let (tensor, groups) = by_columns();
        let copies = Copies {
            tensor: &tensor,
            groups: &groups,
            line: 128,
        };
        let layout = copies.in_lines().unwrap();
        let rows = |dim: Dim, count: u32| -> Vec<u32> {
            let bits = 0..count;
            bits.map(|bit| layout.basis_entry(dim, bit, Dim::tensor(0)))
                .collect()
        };
        assert_eq!(rows(Dim::REGISTER, 3), [1, 2, 4]);
        assert_eq!(rows(Dim::LANE, 3), [8, 16, 32]);
        // The same elements, once each.
        assert!(layout.is_invertible());
        assert_eq!(layout.out_dims(), tensor.layout().out_dims());
    }
}
