//! A matrix product whose matrices lie in the registers of warps, divided into instructions.
//!
//! # The problem
//!
//! `C[b][m][n] += A[b][m][k] * B[b][k][n]`, where three layouts say which element each (register, lane, warp, block)
//! holds. An instruction multiplies small matrices `D[i][j] += X[i][l] * Y[l][j]`, and three more layouts, its
//! *fragments*, say which element of these each (register, lane) holds. Which registers of the tensors must be passed
//! to which instruction, so that all instructions together make the product?
//!
//! An instruction may be placed anywhere: its rows may be any rows of `C`, as long as `X` and `D` agree. So an
//! instruction that fits is three linear maps, `rows: i -> m`, `columns: j -> n`, `depths: l -> k`, with
//!
//! * `C(register, lane) = (rows(i), columns(j))` wherever the fragment of `D` says `(i, j)`, up to an offset;
//! * `A(register, lane) = (rows(i), depths(l))` wherever the fragment of `X` says `(i, l)`;
//! * `B(register, lane) = (depths(l), columns(j))` wherever the fragment of `Y` says `(l, j)`.
//!
//! # The solution
//!
//! Lanes leave no choice: what bit `l0` of the lane adds in `A` *is* `depths` of the bit of `l` that the fragment
//! assigns to `l0`. The bits of an instruction that registers hold are free: any vector in the span of the registers
//! of both matrices is possible, and the first ones are taken, which keeps elements together that were loaded
//! together. The remaining register bits repeat the instruction: over the rows and columns of `C`, and over `k`.
//! Lanes that the instruction does not know (all of them, for a multiply-add of a thread), warps and blocks must work
//! on their own part of `C`, so `A` has to be spread over them as the rows of `C` are, `B` as its columns.
//!
//! Along `m` and `n` a tensor may be smaller than the instruction: rows are then computed more than once. Along
//! `k` no element may be counted twice. Where lanes hold copies, all but one of them must count as zero
//! ([`Division::repeating_lanes`]); where registers are too few, the rest are zero (`None` in
//! [`Division::a`]).
//!
//! # Example
//!
//! A fragment of 16x8 results has two columns per lane in register bit 0 and rows eight apart in register bit 1.
//! With `C` of 32x8 whose registers are, from bit 0 on, `n = 1`, `m = 8`, `m = 16`, there are two tiles,
//! registers 0-3 and 4-7.
//!
//! # Alternatives rejected
//!
//! Code that asks for the encoding of the tensors and knows the loops of each needs a new case for every new layout.
//! Dividing the layouts by the fragments as they stand ([`LinearLayout::divide_left`]) allows neither `k` to be
//! permuted, which is how operands are loaded in wider pieces, nor layouts that result from other ops.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::f2::Echelon;
use crate::{Dim, LinearLayout};

/// The layouts of the matrices of a product, or the fragments of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a> {
    /// The first operand: batches, m, k.
    pub a: &'a LinearLayout,
    /// The second operand: batches, k, n.
    pub b: &'a LinearLayout,
    /// The result: batches, m, n.
    pub c: &'a LinearLayout,
}

/// One instruction: indices into the lists of a [`Division`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The part of the result that is added to.
    pub tile: u32,
    /// The part of the first operand.
    pub a: u32,
    /// The part of the second operand.
    pub b: u32,
}

/// A product as instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// For each part of the result the registers that the instruction reads and writes, in the order of its fragment.
    /// A register may occur twice, if rows or columns are computed twice.
    pub tiles: Vec<Vec<u32>>,
    /// For each part of the first operand its registers; `None` stands for zero.
    pub a: Vec<Vec<Option<u32>>>,
    /// For each part of the second operand its registers; `None` stands for zero.
    pub b: Vec<Vec<Option<u32>>>,
    /// The instructions: for the first k those of all parts of the result, then those for the next k.
    pub steps: Vec<Step>,
    /// For each register of the result: its tile, and its position in the tile's list.
    pub results: Vec<(u32, u32)>,
    /// Operands count as zero in lanes with any of these bits.
    pub repeating_lanes: u32,
}

/// Why an instruction cannot compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotDivisible {
    /// Ranks or extents do not match.
    Shapes,
    /// What a lane's bit adds is not what the instruction requires.
    Lane {
        /// The matrix: 0 and 1 for the operands, 2 for the result.
        matrix: u8,
        /// The bit.
        bit: u32,
    },
    /// Lanes, warps or blocks are not spread over an operand as they are over the result.
    Spread {
        /// The operand, 0 or 1.
        matrix: u8,
        /// The dimension of the layouts.
        dim: Dim,
        /// The bit.
        bit: u32,
    },
    /// Threads do not hold all of an operand that their part of the result needs.
    Missing {
        /// The operand, 0 or 1.
        matrix: u8,
    },
}

impl fmt::Display for NotDivisible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |matrix: u8| {
            ["the first operand", "the second operand", "the result"][usize::from(matrix.min(2))]
        };
        match self {
            Self::Shapes => f.write_str("the shapes of the matrices do not belong together"),
            Self::Lane { matrix, bit } => write!(
                f,
                "bit {bit} of the lane stands elsewhere in {} than in the instruction",
                name(*matrix)
            ),
            Self::Spread { matrix, dim, bit } => write!(
                f,
                "bit {bit} of {dim} is not spread over {} as it is over the result",
                name(*matrix)
            ),
            Self::Missing { matrix } => write!(
                f,
                "threads do not hold all of {} that their part of the result needs",
                name(*matrix)
            ),
        }
    }
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// An index of the product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    M,
    N,
    K,
}

/// The axes of the last two dimensions of each matrix.
const AXES: [[Axis; 2]; 3] = [[Axis::M, Axis::K], [Axis::K, Axis::N], [Axis::M, Axis::N]];

/// The positions of k, n, m and the batches in a number that combines them.
struct Space {
    /// The lowest bits of k, n and m.
    low: [u32; 3],
    /// The masks of k, n, m and the batches.
    k: u32,
    n: u32,
    m: u32,
    batch: u32,
}

impl Space {
    fn of(matrices: &Matrices<'_>) -> Option<Space> {
        let rank = matrices.c.out_dims().len();
        if rank < 2 {
            return None;
        }
        let layouts = [matrices.a, matrices.b, matrices.c];
        if layouts.iter().any(|layout| layout.out_dims().len() != rank) {
            return None;
        }
        let size = |matrix: usize, dim: usize| layouts[matrix].out_dim_size_log2(Dim::tensor(dim));
        let (row, column) = (rank - 2, rank - 1);
        let fits = size(A, row) == size(C, row)
            && size(B, column) == size(C, column)
            && size(A, column) == size(B, row)
            && (0..row).all(|dim| size(A, dim) == size(C, dim) && size(B, dim) == size(C, dim));
        let (k, n, m) = (size(A, column), size(C, column), size(C, row));
        let batch: u32 = (0..row).map(|dim| size(C, dim)).sum();
        if !fits || k + n + m + batch > 32 {
            return None;
        }
        let mask = |low: u32, bits: u32| (((1u64 << bits) - 1) << low) as u32;
        Some(Space {
            low: [0, k, k + n],
            k: mask(0, k),
            n: mask(k, n),
            m: mask(k + n, m),
            batch: mask(k + n + m, batch),
        })
    }

    /// What the registers of both factors hold along k.
    fn depths_in_both(&self, registers: &[Vec<u32>; 3]) -> Vec<u32> {
        let mut depths = within(&registers[A], self.k);
        let in_b = Echelon::of(&within(&registers[B], self.k));
        depths.retain(|vector| in_b.contains(*vector));
        depths
    }

    fn low(&self, axis: Axis) -> u32 {
        match axis {
            Axis::K => self.low[0],
            Axis::N => self.low[1],
            Axis::M => self.low[2],
        }
    }

    fn mask(&self, axis: Axis) -> u32 {
        match axis {
            Axis::K => self.k,
            Axis::N => self.n,
            Axis::M => self.m,
        }
    }

    /// What each bit of a dimension adds in a matrix.
    fn bases(&self, layout: &LinearLayout, matrix: usize, dim: Dim) -> Vec<u32> {
        let row = layout.out_dims().len() - 2;
        let batches: Vec<(Dim, u32)> = (0..row)
            .rev()
            .scan(0, |low, dim| {
                let dim = Dim::tensor(dim);
                let at = *low;
                *low += layout.out_dim_size_log2(dim);
                Some((dim, at))
            })
            .collect();
        (0..layout.in_dim_size_log2(dim))
            .map(|bit| {
                let entry = |out| layout.basis_entry(dim, bit, out);
                let batch = batches
                    .iter()
                    .fold(0u64, |all, (out, low)| all | u64::from(entry(*out)) << low);
                let above = self.low[2] + self.m.count_ones();
                let matrix = (0..2).fold(0u64, |all, i| {
                    all | u64::from(entry(Dim::tensor(row + i))) << self.low(AXES[matrix][i])
                });
                (matrix | batch << above) as u32
            })
            .collect()
    }
}

/// What a bit of a fragment's register or lane means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The bit of an index.
    Index(Axis, u32),
    /// Copies.
    Copy,
}

fn parts(fragment: &LinearLayout, matrix: usize, dim: Dim) -> Option<Vec<Part>> {
    (0..fragment.in_dim_size_log2(dim))
        .map(|bit| {
            let entry = |i: usize| fragment.basis_entry(dim, bit, Dim::tensor(i));
            let (index, value) = match (entry(0), entry(1)) {
                (0, 0) => return Some(Part::Copy),
                (row, 0) => (0, row),
                (0, column) => (1, column),
                _ => return None,
            };
            value
                .is_power_of_two()
                .then(|| Part::Index(AXES[matrix][index], value.trailing_zeros()))
        })
        .collect()
}

/// The vectors within `mask` in the span of `bases`, in the order of the last basis that each needs.
fn within(bases: &[u32], mask: u32) -> Vec<u32> {
    let mut rows: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for &basis in bases {
        let value = rows.iter().fold(basis, |value, row| {
            let pivot = row & !mask;
            if value >> pivot.trailing_zeros() & 1 == 1 {
                value ^ row
            } else {
                value
            }
        });
        if value & !mask != 0 {
            // Rows keep the new pivot out of the old ones, so that one pass reduces.
            let pivot = (value & !mask).trailing_zeros();
            for row in &mut rows {
                if *row >> pivot & 1 == 1 {
                    *row ^= value;
                }
            }
            rows.push(value);
        } else if value != 0 {
            found.push(value);
        }
    }
    found
}

/// The images of an instruction's index bits in the tensors.
#[derive(Default)]
struct Images {
    of: [Vec<Option<u32>>; 3],
}

impl Images {
    fn slot(&mut self, axis: Axis, bit: u32) -> &mut Option<u32> {
        let of = &mut self.of[axis as usize];
        if of.len() <= bit as usize {
            of.resize(bit as usize + 1, None);
        }
        &mut of[bit as usize]
    }

    /// Sets the image of a bit; `false` if it has another one already.
    fn bind(&mut self, axis: Axis, bit: u32, image: u32) -> bool {
        *self.slot(axis, bit).get_or_insert(image) == image
    }

    /// All known images.
    fn known(&self, axis: Axis) -> Vec<u32> {
        self.of[axis as usize].iter().copied().flatten().collect()
    }
}

/// A product and the instruction that is to compute it.
struct Pairing<'a> {
    space: Space,
    layouts: [&'a LinearLayout; 3],
    fragments: [&'a LinearLayout; 3],
}

impl<'a> Pairing<'a> {
    fn of(tensors: &Matrices<'a>, instruction: &Matrices<'a>) -> Result<Self, NotDivisible> {
        Ok(Self {
            space: Space::of(tensors).ok_or(NotDivisible::Shapes)?,
            layouts: [tensors.a, tensors.b, tensors.c],
            fragments: [instruction.a, instruction.b, instruction.c],
        })
    }

    /// The meanings of the bits of a dimension of a fragment.
    fn parts(&self, matrix: usize, dim: Dim) -> Result<Vec<Part>, NotDivisible> {
        parts(self.fragments[matrix], matrix, dim).ok_or(NotDivisible::Shapes)
    }

    /// What each bit of a dimension adds in a tensor.
    fn bases(&self, matrix: usize, dim: Dim) -> Vec<u32> {
        self.space.bases(self.layouts[matrix], matrix, dim)
    }

    /// The images of the bits that the instruction's lanes hold.
    fn images_of_lanes(&self) -> Result<Images, NotDivisible> {
        let mut images = Images::default();
        for matrix in [C, A, B] {
            let lanes = self.bases(matrix, Dim::LANE);
            for (bit, part) in self.parts(matrix, Dim::LANE)?.into_iter().enumerate() {
                let value = lanes.get(bit).copied().unwrap_or(0);
                let fits = match part {
                    Part::Copy => value == 0,
                    Part::Index(axis, index) => {
                        value & !self.space.mask(axis) == 0 && images.bind(axis, index, value)
                    }
                };
                if !fits {
                    return Err(NotDivisible::Lane {
                        matrix: matrix as u8,
                        bit: bit as u32,
                    });
                }
            }
        }
        Ok(images)
    }

    /// Whether the lanes that the instruction does not use, the warps and the blocks hold factors of their own
    /// results.
    fn outer_bits_agree(&self) -> Result<(), NotDivisible> {
        let space = &self.space;
        let known_lanes = self
            .fragments
            .map(|fragment| fragment.in_dim_size_log2(Dim::LANE) as usize);
        let known_lanes = *known_lanes.iter().max().unwrap_or(&0);
        for dim in [Dim::LANE, Dim::WARP, Dim::BLOCK] {
            let [a, b, c] = [A, B, C].map(|matrix| self.bases(matrix, dim));
            let skip = if dim == Dim::LANE { known_lanes } else { 0 };
            for bit in skip..a.len().max(b.len()).max(c.len()) {
                let at = |of: &[u32]| of.get(bit).copied().unwrap_or(0);
                let (a, b, c) = (at(&a), at(&b), at(&c));
                let spread = |matrix| {
                    Err(NotDivisible::Spread {
                        matrix,
                        dim,
                        bit: bit as u32,
                    })
                };
                if (a ^ c) & (space.m | space.batch) != 0 {
                    return spread(0);
                }
                if (b ^ c) & (space.n | space.batch) != 0 || (a ^ b) & space.k != 0 {
                    return spread(1);
                }
            }
        }
        Ok(())
    }

    /// Sets the images of the bits that the instruction's registers hold: for those along k `depths`, for the others
    /// what registers of the result and of the factor hold. `registers` is what each bit of a register adds.
    fn bind_registers(
        &self,
        registers: &[Vec<u32>; 3],
        depths: &[u32],
        images: &mut Images,
    ) -> Result<(), NotDivisible> {
        for (axis, from, partner) in [(Axis::M, C, A), (Axis::N, C, B), (Axis::K, A, B)] {
            let mask = self.space.mask(axis);
            let mut taken = Echelon::of(&images.known(axis));
            let candidates = match axis {
                Axis::K => depths.to_vec(),
                _ => {
                    let in_partner = Echelon::of(&within(&registers[partner], mask));
                    let mut found = within(&registers[from], mask);
                    found.retain(|vector| in_partner.contains(*vector));
                    found
                }
            };
            let mut candidates = candidates.into_iter();
            for matrix in [from, partner] {
                for part in self.parts(matrix, Dim::REGISTER)? {
                    let Part::Index(of, index) = part else {
                        continue;
                    };
                    if of != axis || images.slot(of, index).is_some() {
                        continue;
                    }
                    let next = candidates.find(|vector| taken.insert(*vector).is_none());
                    *images.slot(of, index) = match axis {
                        Axis::K => next,
                        // The same rows or columns once more.
                        _ => Some(next.unwrap_or(0)),
                    };
                }
            }
        }
        Ok(())
    }
}

/// A tensor's registers by their elements.
struct Holders {
    first: BTreeMap<u32, u32>,
    images: Vec<u32>,
}

impl Holders {
    fn of(bases: &[u32]) -> Self {
        let mut images = Vec::with_capacity(1 << bases.len());
        images.push(0);
        for &basis in bases {
            for register in 0..images.len() {
                images.push(images[register] ^ basis);
            }
        }
        let mut first = BTreeMap::new();
        for (register, &image) in (0u32..).zip(&images) {
            first.entry(image).or_insert(register);
        }
        Self { first, images }
    }
}

/// One operand's parts so far.
struct Operand {
    holders: Holders,
    /// What each register of the fragment adds; `None` where it is zero.
    fragment: Vec<Option<u32>>,
    known: BTreeMap<u32, u32>,
    parts: Vec<Vec<Option<u32>>>,
}

impl Operand {
    /// The part that begins at an element.
    fn part(&mut self, at: u32, matrix: u8) -> Result<u32, NotDivisible> {
        if let Some(part) = self.known.get(&at) {
            return Ok(*part);
        }
        let registers = self
            .fragment
            .iter()
            .map(|adds| match adds {
                None => Ok(None),
                Some(adds) => match self.holders.first.get(&(at ^ adds)) {
                    Some(register) => Ok(Some(*register)),
                    None => Err(NotDivisible::Missing { matrix }),
                },
            })
            .collect::<Result<Vec<_>, _>>()?;
        let part = self.parts.len() as u32;
        self.parts.push(registers);
        self.known.insert(at, part);
        Ok(part)
    }
}

/// The registers of a fragment: what each adds in the tensor, `None` for those whose index has no image.
fn register_images(parts: &[Part], images: &Images) -> Vec<Option<u32>> {
    let mut all = Vec::with_capacity(1 << parts.len());
    all.push(Some(0));
    for part in parts {
        let image = match part {
            Part::Copy => Some(0),
            Part::Index(axis, bit) => images.of[*axis as usize]
                .get(*bit as usize)
                .copied()
                .flatten(),
        };
        for register in 0..all.len() {
            let added: Option<u32> = all[register];
            all.push(added.zip(image).map(|(a, b)| a ^ b));
        }
    }
    all
}

/// Divides a product by an instruction.
///
/// Requires layouts with the outputs `dim0`, `dim1`, …, of rank two for the instruction's fragments, each of whose
/// bases is a single bit or zero.
///
/// Ensures: the steps together add the whole product to the registers of the result, each pair of elements
/// once for each element of the result.
///
/// # Errors
/// Why the instruction cannot compute the product.
pub fn divide(
    tensors: &Matrices<'_>,
    instruction: &Matrices<'_>,
) -> Result<Division, NotDivisible> {
    let pairing = Pairing::of(tensors, instruction)?;
    let space = &pairing.space;
    let mut images = pairing.images_of_lanes()?;
    pairing.outer_bits_agree()?;

    // Copies among the lanes along k.
    let mut depths = Echelon::new();
    let mut repeating_lanes = 0;
    for (bit, part) in pairing.parts(A, Dim::LANE)?.into_iter().enumerate() {
        if let Part::Index(Axis::K, index) = part
            && depths
                .insert(images.slot(Axis::K, index).unwrap_or(0))
                .is_some()
        {
            repeating_lanes |= 1 << bit;
        }
    }

    let registers = [A, B, C].map(|matrix| pairing.bases(matrix, Dim::REGISTER));
    let mut depth_candidates = space.depths_in_both(&registers);
    pairing.bind_registers(&registers, &depth_candidates, &mut images)?;

    // The remaining bits of k are iterated over.
    for depth in images.known(Axis::K) {
        depths.insert(depth);
    }
    depth_candidates.retain(|vector| depths.insert(*vector).is_none());
    if depths.rank() != space.k.count_ones() {
        return Err(NotDivisible::Missing { matrix: A as u8 });
    }

    let mut operands = Vec::with_capacity(2);
    for matrix in [A, B] {
        operands.push(Operand {
            holders: Holders::of(&registers[matrix]),
            fragment: register_images(&pairing.parts(matrix, Dim::REGISTER)?, &images),
            known: BTreeMap::new(),
            parts: Vec::new(),
        });
    }
    let result = Holders::of(&registers[C]);
    let within_tile: Vec<u32> = register_images(&pairing.parts(C, Dim::REGISTER)?, &images)
        .into_iter()
        .map(|image| image.unwrap_or(0))
        .collect();
    let (tiles, starts, results) = tiles_of(&result, &within_tile);

    let mut steps = Vec::with_capacity(tiles.len() << depth_candidates.len());
    for depth in 0..1u32 << depth_candidates.len() {
        let k = depth_candidates
            .iter()
            .enumerate()
            .filter(|(bit, _)| depth >> bit & 1 == 1)
            .fold(0, |all, (_, vector)| all ^ vector);
        for (tile, start) in (0u32..).zip(&starts) {
            let a = operands[A].part(start & (space.m | space.batch) | k, A as u8)?;
            let b = operands[B].part(start & (space.n | space.batch) | k, B as u8)?;
            steps.push(Step { tile, a, b });
        }
    }
    let mut operands = operands.into_iter().map(|operand| operand.parts);
    Ok(Division {
        tiles,
        a: operands.next().unwrap_or_default(),
        b: operands.next().unwrap_or_default(),
        steps,
        results,
        repeating_lanes,
    })
}

/// Divides a product among threads, each of which multiplies single elements by itself.
///
/// # Errors
/// What a thread lacks.
pub fn divide_among_threads(tensors: &Matrices<'_>) -> Result<Division, NotDivisible> {
    let one = LinearLayout::identity_1d(1, Dim::REGISTER, Dim::tensor(0))
        .map_err(|_| NotDivisible::Shapes)?;
    let single = Matrices {
        a: &one,
        b: &one,
        c: &one,
    };
    divide(tensors, &single)
}

/// The tiles of the result, the element at which each begins, and the position of each register.
#[expect(
    clippy::type_complexity,
    reason = "three lists that belong to one walk"
)]
fn tiles_of(result: &Holders, within_tile: &[u32]) -> (Vec<Vec<u32>>, Vec<u32>, Vec<(u32, u32)>) {
    let mut tiles: Vec<Vec<u32>> = Vec::new();
    let mut starts = Vec::new();
    let mut places: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for image in &result.images {
        if places.contains_key(image) {
            continue;
        }
        let tile = tiles.len() as u32;
        let mut registers = Vec::with_capacity(within_tile.len());
        for (slot, adds) in (0u32..).zip(within_tile) {
            let element = image ^ adds;
            places.entry(element).or_insert((tile, slot));
            // Registers of the result span what the instruction's registers do: all are there.
            registers.push(result.first.get(&element).copied().unwrap_or(0));
        }
        tiles.push(registers);
        starts.push(*image);
    }
    let results = result.images.iter().map(|image| places[image]).collect();
    (tiles, starts, results)
}
