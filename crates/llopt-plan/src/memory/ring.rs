//! How a tensor passes through shared memory between its load and its use some iterations later.
//!
//! The data that a loop loads ahead wait in a ring of buffers. Where the target has asynchronous copies, each moves
//! bytes that are contiguous in global memory, and no thread waits for it or stores it; but all bytes of one copy
//! have to be contiguous in the buffer too. Otherwise registers are loaded, waited for, and stored. So the layout of
//! the buffer has several candidates: the best one for the readers, the best one that copies can write, and the order
//! of the load. There may be two of the second kind: one that keeps apart what one instruction of the loads' layout
//! copies, and one that keeps apart what makes up lines ([`Copies::in_lines`]), so that copies ask for no sector
//! twice.

use std::collections::HashMap;

use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{Chunk, SharedAccess, SwizzleRequest, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

use crate::conversion::moved_bits;
use crate::copy_sectors::Copies;
use crate::global_access::Groups;
use crate::operand_words;
use crate::shared_access::{self, Buffer, PAIRED_BITS};
use crate::tensor::TensorType;

/// The alignment of a buffer in bytes: a row of all banks.
pub const ROW: u32 = 128;
/// Bytes of the widest asynchronous copy.
const WIDEST_COPY: u32 = 16;
/// The kinds of instructions that may read a buffer.
const KINDS: [Option<InstructionKind>; 3] = [
    None,
    Some(InstructionKind::Matrix),
    Some(InstructionKind::MatrixTransposed),
];
const VECTOR: Option<InstructionKind> = Some(InstructionKind::Vector);

/// A tensor that is loaded ahead.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'t> {
    /// What is loaded, in the layout of its load.
    pub stored: &'t TensorType,
    /// The groups of registers that one copy each may move, if there are copies.
    pub copied: Option<&'t Groups>,
    /// The groups of registers that one access of global memory each brings, side by side, if that is known.
    pub brought: Option<&'t Groups>,
    /// Bits of the numbers of elements that tell parts apart which the readers take one after the other
    /// ([`SwizzleRequest::parts`]).
    pub parts: u32,
    /// Whether the readers are factors of matrix units, so that words that are read apart from those that they are
    /// multiplied with have to be moved ([`operand_words::price_of_pairs`]).
    pub pairs: bool,
    /// The target.
    pub target: Target,
}

/// A layout of the buffers.
#[derive(Clone, Debug)]
pub struct Buffers {
    /// Where each element is.
    pub memory: LinearLayout,
    /// Whether asynchronous copies write it.
    pub is_copied: bool,
    /// The cost, for a warp, of moving a tensor there and back.
    pub cost: f32,
}

impl Ring<'_> {
    /// The basis vectors that one copy moves.
    fn chunk(&self) -> Option<Chunk> {
        self.part_of(self.copied?, WIDEST_COPY)
    }

    /// The vectors of the first so many bytes of a group of registers.
    fn part_of(&self, groups: &Groups, bytes: u32) -> Option<Chunk> {
        let group = groups.groups.first()?;
        let first = self.stored.element_in(*group.first()?);
        let bits = moved_bits(self.stored.element);
        let widest = (bytes * 8 / bits).clamp(1, group.len() as u32).ilog2();
        let vectors = (0..widest).map(|bit| self.stored.element_in(group[1 << bit]) ^ first);
        Some(vectors.collect())
    }

    fn copies(&self) -> Option<Copies<'_>> {
        self.copied.map(|groups| Copies {
            tensor: self.stored,
            groups,
            line: ROW,
        })
    }

    /// The layouts that buffers may have for readers of these layouts: the best ones for each.
    fn layouts(&self, readers: &[&TensorType]) -> Vec<LinearLayout> {
        let copies = self.copies();
        let own = self.stored.layout();
        let by_line = copies.and_then(|copies| copies.in_lines());
        let free = Chunk::default();
        let mut ways: Vec<(&LinearLayout, &TensorType, Option<InstructionKind>, Chunk)> =
            Vec::new();
        for &loaded in readers {
            ways.extend(KINDS.map(|load| (own, loaded, load, free)));
            if let Some(chunk) = self.chunk() {
                for from in [Some(own), by_line.as_ref()].into_iter().flatten() {
                    ways.extend(KINDS.map(|load| (from, loaded, load, chunk)));
                }
            }
            // Stores that need no moves.
            for bytes in [WIDEST_COPY, PAIRED_BITS / 8] {
                let chunk = self.brought.and_then(|groups| self.part_of(groups, bytes));
                ways.extend(chunk.map(|chunk| (own, loaded, VECTOR, chunk)));
            }
        }
        ways.push((own, self.stored, VECTOR, free));
        let mut layouts: Vec<LinearLayout> = Vec::new();
        for (from, to, load, chunk) in ways {
            let memory = self.synthesized(from, to, load, chunk);
            layouts.extend(memory.filter(|memory| !layouts.contains(memory)));
        }
        // Conflicts do not depend on what lies in a line, but the number of times that copies request a sector does.
        let lined: Vec<LinearLayout> = copies
            .iter()
            .flat_map(|copies| layouts.iter().map(|memory| copies.with_lines(memory)))
            .filter(|memory| !layouts.contains(memory))
            .collect();
        lined.into_iter().chain(layouts).collect()
    }

    fn synthesized(
        &self,
        from: &LinearLayout,
        to: &TensorType,
        load: Option<InstructionKind>,
        store_chunk: Chunk,
    ) -> Option<LinearLayout> {
        let request = SwizzleRequest {
            store: VECTOR,
            load,
            store_chunk,
            parts: self.parts,
        };
        let bits = moved_bits(self.stored.element);
        let plan = synthesize(from, to.layout(), bits, &self.target.machine(), request);
        let plan = plan.ok().filter(|plan| plan.rounds.is_empty())?;
        let outs: Vec<Dim> = (0..self.stored.shape.len()).map(Dim::tensor).collect();
        plan.memory.transpose_outs(&outs).ok()
    }

    /// The layout of the buffers that makes it cheapest to move the loaded tensor into registers of this layout;
    /// `None` if nothing fits.
    #[must_use]
    pub fn to_registers(&self, loaded: &TensorType) -> Option<Buffers> {
        self.to_readers(&[loaded])
    }

    /// The layout of the buffers that makes it cheapest to move the loaded tensor into registers of each of these layouts;
    /// `None` if nothing fits.
    #[must_use]
    pub fn to_readers(&self, readers: &[&TensorType]) -> Option<Buffers> {
        let priced = self.layouts(readers).into_iter();
        let priced = priced.filter_map(|memory| self.priced(readers, memory));
        let best = priced.min_by(|one, other| one.cost.total_cmp(&other.cost));
        // An operand that cannot be read in parts is read as a whole.
        let whole = || Self { parts: 0, ..*self }.to_readers(readers);
        best.or_else(|| (self.parts != 0).then(whole)?)
    }

    /// An upper estimate of that cost for a warp if copies write the buffers; `None` if they cannot.
    #[must_use]
    pub fn estimate(&self, loaded: &TensorType) -> Option<f32> {
        let copies = self.copies()?;
        // Where each copy moves an element, no order of them has more in a line.
        let by_line = copies.in_lines();
        let from = by_line.as_ref().unwrap_or(self.stored.layout());
        let memory = self.synthesized(from, loaded, None, self.chunk()?)?;
        let buffers = self.priced(&[loaded], copies.with_lines(&memory))?;
        buffers.is_copied.then_some(buffers.cost)
    }

    fn priced(&self, readers: &[&TensorType], memory: LinearLayout) -> Option<Buffers> {
        let loads = readers
            .iter()
            .map(|loaded| self.loaded_from(&memory, loaded));
        let loads: f32 = loads.sum::<Option<f32>>()?;
        let is_copied = self.is_copied_to(&memory);
        let brought = match is_copied {
            true => self.asked_again(&memory),
            false => self.stored_to(&memory)?,
        };
        Some(Buffers {
            is_copied,
            memory,
            cost: loads + brought,
        })
    }

    /// The cost, for a warp, of reading a buffer to registers of this layout; `None` if there is no plan, or none that reads
    /// in parts.
    #[must_use]
    pub fn loaded_from(&self, memory: &LinearLayout, loaded: &TensorType) -> Option<f32> {
        let target = self.target;
        let buffer = Buffer {
            layout: memory,
            element: self.stored.element,
            max_bits: u32::MAX,
        };
        let load = shared_access::access(loaded, &buffer, Access::Load, None, 1, target).ok()?;
        let slots = 0..1u32 << load.instruction.registers_log2();
        let moved = |slot| loaded.element_in(load.register(0, slot) as usize);
        let mut slots = slots.into_iter();
        let is_whole = slots.any(|slot| (moved(slot) ^ moved(0)) & self.parts != 0);
        let moved = match self.pairs {
            true => operand_words::price_of_pairs(&load, target),
            false => 0.0,
        };
        (!is_whole).then(|| self.price(&load) + moved)
    }

    /// What an access takes a warp. While layouts of products are chosen no access is known that brings registers: matrix
    /// instructions are not counted then, and to count two reads as one would be in favour of many small ones.
    fn price(&self, access: &SharedAccess) -> f32 {
        match self.brought {
            Some(_) => shared_access::price_in_pairs(access, self.target),
            None => shared_access::price(access, self.target),
        }
    }

    /// What it costs a warp that copies ask for sectors more than once.
    fn asked_again(&self, memory: &LinearLayout) -> f32 {
        let again = self
            .copies()
            .map_or(0, |copies| copies.asked_again(memory, self.target));
        again as f32 * self.target.global_costs().sector
    }

    /// The cost, for a warp, of copying the tensor to a buffer asynchronously; `None` if that is not possible.
    #[must_use]
    pub fn to_memory(&self, memory: &LinearLayout) -> Option<f32> {
        self.is_copied_to(memory).then(|| self.asked_again(memory))
    }

    /// The cost, for a warp, of waiting for registers and storing them; `None` if there is no plan.
    #[must_use]
    pub fn stored_to(&self, memory: &LinearLayout) -> Option<f32> {
        let costs = self.target.global_costs();
        let buffer = Buffer {
            layout: memory,
            element: self.stored.element,
            max_bits: u32::MAX,
        };
        let store = shared_access::store(self.stored, &buffer, VECTOR, 1, self.target);
        // Data that come through registers are waited for once more.
        let waited = self
            .copied
            .map_or(0.0, |groups| groups.groups.len() as f32 * costs.wait);
        let store = store.ok()?;
        let moved = self.moves(&store) as f32 * self.target.movement_costs().permute;
        Some(self.price(&store) + moved + waited)
    }

    /// Moves of words for a store: the words of an instruction are in registers side by side, and so are those that one
    /// access has brought. Where they are not the same ones, a store keeps at most one run of them in place.
    fn moves(&self, store: &SharedAccess) -> u32 {
        let Some(brought) = self.brought else {
            return 0;
        };
        let per_word = (u32::BITS / moved_bits(self.stored.element)).max(1) as usize;
        let mut words: HashMap<usize, (usize, usize)> = HashMap::new();
        for (number, group) in brought.groups.iter().enumerate() {
            let first = group.iter().step_by(per_word).enumerate();
            words.extend(first.map(|(word, register)| (*register, (number, word))));
        }
        let slots = 1u32 << store.instruction.registers_log2();
        let all = (0..store.instructions).map(|repeat| {
            let registers = (0..slots)
                .step_by(per_word)
                .map(|slot| store.register(repeat, slot) as usize);
            let places: Option<Vec<(usize, usize)>> = registers
                .map(|register| words.get(&register).copied())
                .collect();
            // Words that are packed of others come into new registers.
            places.map_or(0, |places| places.len() - longest_run(&places)) as u32
        });
        all.sum()
    }

    /// Whether so many elements of each group stand side by side in memory, at a multiple of their number. Where few lanes
    /// have elements of their own, narrower accesses are as fast, so the cheapest one does not tell.
    fn is_in_runs(&self, memory: &LinearLayout, elements: u32) -> bool {
        let places = memory.row_major().and_then(|memory| memory.invert());
        let (Ok(places), Some(groups)) = (places, self.copied) else {
            return false;
        };
        let tensor = self.stored;
        let place = |register: &usize| places.apply_flat(tensor.element_in(*register));
        let mut threads = [Dim::LANE, Dim::WARP]
            .into_iter()
            .flat_map(|dim| tensor.layout().flat_bases_of(dim).iter());
        let mut runs = groups
            .groups
            .iter()
            .flat_map(|group| group.chunks(elements as usize));
        threads.all(|basis| places.apply_flat(*basis) % elements == 0)
            && runs.all(|run| {
                let first = place(&run[0]);
                let is_next = |(next, register)| place(register) == first + next;
                first % elements == 0 && (0..).zip(run).all(is_next)
            })
    }

    /// Whether asynchronous copies can write a layout of memory: the elements of each copy must be contiguous there
    /// as they are in global memory, as the groups of registers say.
    #[must_use]
    pub fn is_copied_to(&self, memory: &LinearLayout) -> bool {
        let Some(groups) = self.copied else {
            return false;
        };
        let bits = moved_bits(self.stored.element);
        let bytes = (groups.width as u32 * bits / 8).min(WIDEST_COPY);
        let buffer = Buffer {
            layout: memory,
            element: self.stored.element,
            max_bits: bytes * 8,
        };
        let access =
            shared_access::access(self.stored, &buffer, Access::Store, VECTOR, 1, self.target);
        let Ok(access) = access else {
            return false;
        };
        let slots = 1u32 << access.instruction.registers_log2();
        let moves_all = slots * bits / 8 == bytes;
        (moves_all || self.is_in_runs(memory, (bytes * 8 / bits).max(1)))
            && (0..access.instructions).all(|repeat| {
                let piece: Vec<usize> = (0..slots)
                    .map(|slot| access.register(repeat, slot) as usize)
                    .collect();
                let mut parts = groups
                    .groups
                    .iter()
                    .flat_map(|group| group.windows(piece.len()));
                parts.any(|part| part == piece)
            })
    }
}

/// How many of some words stand side by side at most: words of one group, each behind the one before.
fn longest_run(places: &[(usize, usize)]) -> usize {
    let follows = |one: &(usize, usize), next: &(usize, usize)| *next == (one.0, one.1 + 1);
    places.chunk_by(follows).map(<[_]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Element;
    use crate::global_access::choose_groups;

    const SHAPE: [u32; 2] = [32, 128];

    fn tensor(registers: &[[u32; 2]], lanes: &[[u32; 2]], warps: &[[u32; 2]]) -> TensorType {
        let vectors =
            |bases: &[[u32; 2]]| bases.iter().map(|basis| basis.to_vec()).collect::<Vec<_>>();
        let (registers, lanes, warps) = (vectors(registers), vectors(lanes), vectors(warps));
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let outs = [(Dim::tensor(0), SHAPE[0]), (Dim::tensor(1), SHAPE[1])];
        let layout = LinearLayout::from_bases(&bases, &outs).unwrap();
        TensorType::new(Element::F32, SHAPE.to_vec(), &layout).unwrap()
    }

    /// Rectangles of 2x4 singles, eight lanes below each other.
    fn rectangles() -> TensorType {
        tensor(
            &[[0, 1], [0, 2], [1, 0], [16, 0], [0, 64]],
            &[[2, 0], [4, 0], [8, 0], [0, 4], [0, 8]],
            &[[0, 16], [0, 32]],
        )
    }

    #[test]
    fn copies_fill_lines_and_readers_have_no_conflicts() {
        let target = Target::parse("cuda:90").unwrap();
        let stored = rectangles();
        let groups = choose_groups(&stored, 4, &|dim| if dim == 1 { 4 } else { 1 });
        let ring = Ring {
            stored: &stored,
            copied: Some(&groups),
            brought: None,
            parts: 0,
            pairs: false,
            target,
        };
        let found = ring.to_registers(&stored).unwrap();
        assert!(found.is_copied);
        assert_eq!(ring.to_memory(&found.memory), Some(0.0));
        // 8 loads of 128 bits, 4 passes each.
        let buffer = Buffer {
            layout: &found.memory,
            element: Element::F32,
            max_bits: u32::MAX,
        };
        let load = shared_access::access(&stored, &buffer, Access::Load, None, 1, target).unwrap();
        assert_eq!((load.instructions, load.wavefronts), (8, 32));
        // The estimate is exact here.
        assert_eq!(ring.estimate(&stored), Some(found.cost));
    }

    #[test]
    fn buffers_for_several_readers_cost_what_each_read_does() {
        let target = Target::parse("cuda:90").unwrap();
        let stored = rectangles();
        // Columns of 32 rows, four of which a thread has side by side.
        let columns = tensor(
            &[[1, 0], [2, 0], [0, 32], [0, 64], [16, 0]],
            &[[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]],
            &[[0, 8], [0, 16]],
        );
        let groups = choose_groups(&stored, 4, &|dim| if dim == 1 { 4 } else { 1 });
        let ring = Ring {
            stored: &stored,
            copied: Some(&groups),
            brought: None,
            parts: 0,
            pairs: false,
            target,
        };
        let both = ring.to_readers(&[&stored, &columns]).unwrap();
        let reads = [&stored, &columns].map(|to| ring.loaded_from(&both.memory, to).unwrap());
        assert!(both.is_copied);
        assert_eq!(both.cost, reads[0] + reads[1]);
        // No cheaper than the best buffers for each.
        let alone = [&stored, &columns].map(|to| ring.to_registers(to).unwrap().cost);
        assert!(both.cost >= alone[0] + alone[1]);
    }

    /// A row of 64 words of 64 bits as each warp needs it beside a product: four lanes have two neighbours each, all others
    /// the same ones, and each register is held twice.
    #[test]
    fn a_row_that_all_warps_need_is_copied() {
        let target = Target::parse("cuda:90").unwrap();
        let none: &[u32] = &[0, 0];
        let vectors =
            |bases: &[&[u32]]| bases.iter().map(|basis| basis.to_vec()).collect::<Vec<_>>();
        let registers = vectors(&[&[0, 1], none, &[0, 8], &[0, 16], &[0, 32]]);
        let lanes = vectors(&[&[0, 2], &[0, 4], none, none, none]);
        let warps = vectors(&[none, none, none]);
        let bases: [(Dim, &[Vec<u32>]); 4] = [
            (Dim::REGISTER, &registers),
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &[]),
        ];
        let outs = [(Dim::tensor(0), 1), (Dim::tensor(1), 64)];
        let layout = LinearLayout::from_bases(&bases, &outs).unwrap();
        let row = TensorType::new(Element::F64, vec![1, 64], &layout).unwrap();
        let groups = choose_groups(&row, 2, &|dim| if dim == 1 { 2 } else { 1 });
        let ring = Ring {
            stored: &row,
            copied: Some(&groups),
            brought: Some(&groups),
            parts: 0,
            pairs: false,
            target,
        };
        assert!(ring.to_registers(&row).unwrap().is_copied);
    }

    #[test]
    fn what_no_copy_brings_is_stored() {
        let target = Target::parse("cuda:90").unwrap();
        let stored = rectangles();
        let ring = Ring {
            stored: &stored,
            copied: None,
            brought: None,
            parts: 0,
            pairs: false,
            target,
        };
        let found = ring.to_registers(&stored).unwrap();
        assert!(!found.is_copied);
        assert_eq!(
            (ring.to_memory(&found.memory), ring.estimate(&stored)),
            (None, None)
        );
    }
}
