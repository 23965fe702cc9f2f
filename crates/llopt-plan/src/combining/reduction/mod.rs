//! Reductions: any combine region, several operands, any layout, any axis.
//!
//! # How
//!
//! Write an element's number as `(rest, a)`: its position outside of the axis, and its coordinate along it. A thread
//! holds the elements `L(r) ^ L(t)` for its registers `r`. Three steps bring the elements of one `rest` together,
//! each as far as the layout allows and each after duplicates were dropped:
//!
//! 1. *In the thread*: registers with the same `rest` are combined. What is left is one value per `rest`,
//!    a *key*, which stands for a coset of the subspace `S` of the axis.
//! 2. *In the warp*: a mask `m` of lane bits is useful if lane `t ^ m` holds the same keys (`rest(L(m))` is
//!    the `rest` of some registers) with other coordinates along the axis. Then key `k` is combined with
//!    key `k ^ rest(L(m))` of that lane, and `S` grows by a dimension.
//! 3. *In memory*: if `S` is not the whole axis yet, `2^p` partial results are left for each `rest`, in different
//!    warps, or in different blocks of a cluster. They are combined through shared memory ([`memory`]): one of the
//!    threads that hold a partial result writes it at `rest * 2^p + q`, where `q` numbers the cosets (`places`).
//!
//! # Copies of a result
//!
//! After the second step several lanes hold the value of a key, and each has combined the same elements in an order of
//! its own: `t` its own value with that of `t ^ m`, and `t ^ m` its own with that of `t`. Sums have the same bits
//! either way, but not every region gives the same bits when its arguments change places
//! ([`combination::Combination`]), and threads that hold copies must agree: all of them may write the same place of
//! shared memory, and decide by the value where to go. So for other regions there is one lane of each group from
//! which the others take the value, a shuffle more ([`warp`]). Lanes whose elements repeat those of other lanes belong
//! to the group, since they may have the elements in other registers. Where copies are further away ([`warp::Repeats`]), the
//! result goes through shared memory, written by one thread and read by all, as partial results do.
//!
//! Rejected: to order the two arguments of each combination by a bit of the lane's number. It takes two selects for
//! each operand and step, where a value that comes from another lane takes one shuffle for each operand.
//!
//! # Blocks of a cluster
//!
//! Blocks whose numbers differ by a mask `d` hold the same `rest`s if `rest(L(d))` is the `rest` of some registers,
//! lanes and warps; these masks form a space `D`. Some of them only repeat what the blocks hold (`L(d)` is an element
//! that registers, lanes and warps reach); `E` is a complement of these in `D`. So the blocks `b ^ e` for `e` in `E`
//! together hold every partial result of the `rest`s of block `b`, each once, and each block writes what it holds to
//! the memory of exactly these blocks, itself included. Every block then finishes by itself what it needs, and
//! repeated blocks never communicate.
//!
//! Writing to other blocks instead of reading from them has two advantages. A store waits for nothing, whereas a load
//! from another block's memory takes several times as long as one from the block's own, and each partial result
//! crosses once instead of once for each reader. Also, the cluster barrier that has to come first (no block may write
//! where another still reads) is begun before the steps in the thread and in the warp, and waited for after them.
//! Rejected: to finish in each block first, and exchange one value for each block. It writes fewer values to other
//! blocks, by a factor of the number of warps, but takes one more barrier and one more trip through memory.

mod axis;
pub mod combination;
pub mod kind;
pub mod memory;
mod places;
mod price;
pub mod warp;

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;

use crate::element::Element;
use crate::tensor::TensorType;
pub use axis::Axis;
use combination::Combination;
use memory::Work;
use places::{Places, RestNumbers};
pub use price::{ReductionPrice, price};
use warp::{Kept, LaneStep, Lanes, Repeats};

/// The steps of a reduction; pure arithmetic on the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionPlan {
    /// The keys, each with the registers that are combined for it.
    pub keys: Vec<(u32, Vec<usize>)>,
    /// The steps between the lanes of a warp.
    pub lane_steps: Vec<LaneStep>,
    /// Which threads hold the same elements, or elements that other threads have combined.
    pub repeats: Repeats,
    /// log2 of the partial results per element that different warps and blocks hold.
    pub partial_bits: u32,
    /// log2 of the elements of the result that a block holds.
    pub rest_bits: u32,
    /// How these are numbered.
    rest_numbers: RestNumbers,
    /// What each key adds to the position of a partial result.
    pub key_places: Vec<u32>,
    /// What each bit of the thread's number adds to it.
    pub thread_places: Vec<u32>,
    /// What each bit of the block's number adds to it.
    pub block_places: Vec<u32>,
    /// Generators of the distances in the cluster (masks of the block's number) at which a partial result is
    /// wanted; empty if every block needs its own only.
    pub exchanges: Vec<u32>,
}

/// The places in memory that threads write; they sum up, as all are linear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writers {
    /// What each key that lane 0 has kept adds to the place.
    pub key_places: Vec<u32>,
    /// What each bit of the thread's number adds to it.
    pub thread_places: Vec<u32>,
    /// Bits of the thread's number with which it writes nothing: other threads have the same.
    pub idle: u32,
}

/// The relations among threads, by elimination with masks of threads: modulo what registers reach, and then along
/// the axis modulo what a thread combines (`in_thread`).
fn repeats(tensor: &TensorType, axis: Axis, registers: &Vectors, in_thread: &Echelon) -> Repeats {
    let only_axis = axis.mask();
    let threads = tensor.thread_bases();
    let lanes = (1u32 << tensor.thread_bits().0) - 1;
    let highest = |vector: u32| 1u32 << (31 - vector.leading_zeros());
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let mut repeats = Repeats::default();
    for (i, basis) in threads.iter().enumerate() {
        let mut vector = registers.reduce_high(joined(axis, *basis), only_axis);
        let mut mask = 1u32 << i;
        for is_along in [false, true] {
            let field = if is_along { only_axis } else { !only_axis };
            if is_along {
                vector = in_thread.reduce(vector);
            }
            for (row, row_mask) in rows.iter().filter(|(row, _)| highest(*row) & field != 0) {
                if vector & highest(*row) != 0 {
                    vector ^= row;
                    mask ^= row_mask;
                }
            }
            if vector & field != 0 {
                break;
            }
        }
        let element = (0..threads.len())
            .filter(|bit| mask >> bit & 1 == 1)
            .fold(0, |all, bit| all ^ threads[bit]);
        let is_in_warp = mask & !lanes == 0;
        let changes_key = axis.rest(element) != 0;
        if vector != 0 {
            // The lane has other elements: of another row, or of the same row and then a step combines them.
            repeats.is_far |= vector & !only_axis == 0 && is_in_warp && changes_key;
            rows.push((vector, mask));
        } else if is_in_warp && !changes_key {
            repeats.lanes.push(mask);
            repeats.is_in_other_order |= element != 0;
        } else {
            // Whole warps that repeat each other agree lane by lane.
            repeats.is_far |= mask & lanes != 0 || element != 0;
        }
    }
    repeats
}

/// The registers of each place outside of the axis, in the order of the first of them. A bit of the register's number either adds a
/// place that lower ones do not, which doubles the keys, or it doubles the registers of each key: the sum of the bits that make
/// the same place says where the key is.
fn keys_of(tensor: &TensorType, axis: Axis) -> Vec<(u32, Vec<usize>)> {
    // Of the bits so far: a register with what it adds to the place, and the number of its key.
    let mut registers = vec![(0, 0, 0)];
    let mut of_bits = Vec::new();
    let (mut rests, mut keys) = (Echelon::new(), 1);
    let bits = (0..tensor.registers().trailing_zeros()).map(|bit| 1 << bit);
    for bit in bits.filter(|register| tensor.is_canonical(*register)) {
        let rest = axis.rest(tensor.element_in(bit));
        let key = match rests.insert(rest) {
            None => {
                keys *= 2;
                keys / 2
            }
            Some(same) => (0..)
                .zip(&of_bits)
                .filter(|(at, _)| same >> at & 1 == 1)
                .fold(0, |sum, (_, key)| sum ^ key),
        };
        of_bits.push(key);
        for at in 0..registers.len() {
            let (register, of_rest, of_key) = registers[at];
            registers.push((register | bit, of_rest ^ rest, of_key ^ key));
        }
    }
    let each = registers.len() / keys;
    let mut found: Vec<_> = (0..keys).map(|_| (0, Vec::with_capacity(each))).collect();
    for (register, rest, key) in registers {
        let (of_key, of_place): &mut (u32, Vec<usize>) = &mut found[key];
        *of_key = rest;
        of_place.push(register);
    }
    found
}

/// An element as (rest, along), the rest in the high bits.
fn joined(axis: Axis, element: u32) -> u32 {
    axis.rest(element) << axis.bits() | axis.along(element)
}

/// The vectors that a thread's registers reach, as (rest, along): elimination by the highest bit then tells which rests the
/// registers have, and what is left of the axis where there is none.
fn register_vectors(tensor: &TensorType, axis: Axis) -> Vectors {
    let mut registers = Vectors::default();
    for bit in 0..tensor.registers().trailing_zeros() {
        registers.insert(joined(axis, tensor.element_in(1 << bit)));
    }
    registers
}

/// The space `S` after the first step: what registers with the same rest differ by.
fn combined_in_thread(axis: Axis, registers: &Vectors) -> Echelon {
    let mut combined = Echelon::new();
    let rows = registers.rows.iter();
    for vector in rows.filter(|vector| *vector & !axis.mask() == 0) {
        combined.insert(*vector);
    }
    combined
}

/// The combinations between lanes, which extend what is `combined` of the axis already: a kernel of the lanes' rests
/// modulo those of registers, by elimination with masks of lanes.
fn lane_steps(
    tensor: &TensorType,
    axis: Axis,
    registers: &Vectors,
    combined: &mut Echelon,
) -> Vec<LaneStep> {
    let only_axis = axis.mask();
    let lanes = tensor.layout().flat_bases_of(Dim::LANE);
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let mut lane_steps = Vec::new();
    for (i, basis) in lanes.iter().enumerate() {
        let mut vector = registers.reduce_high(joined(axis, *basis), only_axis);
        let mut mask = 1u32 << i;
        for (row, row_mask) in &rows {
            let pivot = 1u32 << (31 - (row & !only_axis).leading_zeros());
            if vector & pivot != 0 {
                vector ^= row;
                mask ^= row_mask;
            }
        }
        if vector & !only_axis != 0 {
            rows.push((vector, mask));
        } else if combined.insert(vector).is_none() {
            let all = (0..lanes.len())
                .filter(|lane| mask >> lane & 1 == 1)
                .fold(0, |all, lane| all ^ lanes[lane]);
            lane_steps.push(LaneStep {
                lanes: mask,
                rest: axis.rest(all),
            });
        }
    }
    lane_steps
}

impl ReductionPlan {
    /// The plan for reducing `tensor` along `axis`.
    pub fn new(tensor: &TensorType, axis: usize) -> Self {
        let axis = Axis::of(tensor, axis);
        let keys = keys_of(tensor, axis);
        let registers = register_vectors(tensor, axis);
        let mut combined = combined_in_thread(axis, &registers);
        let repeats = repeats(tensor, axis, &registers, &combined);
        let lane_steps = lane_steps(tensor, axis, &registers, &mut combined);
        let places = Places::new(tensor, axis, combined);
        let blocks = tensor.block_bases();
        Self {
            key_places: places.of_keys(tensor, &keys),
            thread_places: places.of_elements(&tensor.thread_bases()),
            block_places: places.of_elements(blocks),
            keys,
            lane_steps,
            repeats,
            partial_bits: places.partial_bits(),
            rest_bits: places.rest_bits(),
            exchanges: places.exchanges(blocks),
            rest_numbers: places.numbers,
        }
    }

    /// The position of the first partial result of an element of the result. Linear in the element's number.
    pub fn first_place(&self, rest: u32) -> u32 {
        self.rest_numbers.number(rest) << self.partial_bits
    }

    /// What is done in memory for threads that need the elements of the result which they hold.
    pub fn work<'a>(
        &self,
        lane_bits: u32,
        needed: &'a [u32],
        elements: &'a [Element],
        combination: &'a Combination,
    ) -> Work<'a> {
        let rest = |bit: u32| self.thread_places[bit as usize] >> self.partial_bits;
        Work {
            partial_bits: self.partial_bits,
            rest_bits: self.rest_bits,
            thread_bits: self.thread_places.len() as u32,
            lane_bits,
            alike: (0..lane_bits).fold(0, |all, bit| all | u32::from(rest(bit) == 0) << bit),
            needed,
            elements,
            combination,
        }
    }

    /// Whether results go through shared memory: partial results do, and results whose copies would differ otherwise.
    pub fn goes_through_memory(&self, combination: &Combination) -> bool {
        self.partial_bits > 0 || !combination.is_commutative && self.repeats.is_far
    }

    /// What the lanes of a warp combine. They have to take their results from one of them where the order of arguments
    /// matters, unless the results go through memory.
    pub fn lanes(&self, combination: &Combination) -> Lanes<'_> {
        let agree = !combination.is_commutative && !self.goes_through_memory(combination);
        Lanes {
            keys: self.keys.iter().map(|(key, _)| *key).collect(),
            steps: &self.lane_steps,
            agreement: agree.then_some(&self.repeats),
            may_divide: self.goes_through_memory(combination),
        }
    }

    /// Who writes which partial results to memory, where each lane has these after the steps in the warp.
    pub fn writers(&self, kept: &Kept) -> Writers {
        let place = |wanted: u32| {
            let found = self.keys.iter().position(|(key, _)| *key == wanted);
            found.map_or(0, |i| self.key_places[i])
        };
        let key_places: Vec<u32> = kept.keys.iter().map(|key| place(*key)).collect();
        let mut thread_places = self.thread_places.clone();
        for (of_lane, key) in thread_places.iter_mut().zip(&kept.lanes) {
            *of_lane ^= place(*key);
        }
        let mut written = Echelon::new();
        let mut is_new = |place: u32| {
            let is_new = written.reduce(place) != 0;
            if is_new {
                written.insert(place);
            }
            is_new
        };
        for place in &key_places {
            is_new(*place);
        }
        let idle = (0..).zip(&thread_places);
        let idle = idle.filter(|(_, place)| !is_new(**place));
        let idle = idle.fold(0, |all, (bit, _)| all | 1 << bit);
        Writers {
            key_places,
            thread_places,
            idle,
        }
    }

    /// Elements of shared memory per operand.
    pub fn scratch_elements(&self, combination: &Combination) -> u32 {
        if self.goes_through_memory(combination) {
            1 << (self.rest_bits + self.partial_bits)
        } else {
            0
        }
    }
}

/// Vectors in echelon form by their highest bit.
#[derive(Default)]
struct Vectors {
    rows: Vec<u32>,
}

impl Vectors {
    fn insert(&mut self, vector: u32) {
        let reduced = self.reduce_high(vector, 0);
        if reduced != 0 {
            self.rows.push(reduced);
            self.rows.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Subtracts rows that have their highest bit in `vector`, and outside of `keep`.
    fn reduce_high(&self, vector: u32, keep: u32) -> u32 {
        self.rows.iter().fold(vector, |vector, row| {
            let pivot = 1u32 << (31 - row.leading_zeros());
            if vector & pivot & !keep != 0 {
                vector ^ row
            } else {
                vector
            }
        })
    }
}

/// Bytes of shared memory of one operand, with the next operand's alignment.
pub fn operand_bytes(elements: u32, element: Element) -> u32 {
    const ALIGNMENT: u32 = 16;
    (elements * element.memory_bits() / 8).next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests;
