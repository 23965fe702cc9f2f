//! The search for an order in which each lane has to provide one register per round.

use crate::InlineList;
use crate::f2::{Echelon, Subspace, WORD, low_mask, ones};
use crate::plan::endpoint::{Endpoint, Vectors};

/// The source of each bit of the result's place, arranged in rounds.
pub(super) struct Fetch {
    /// `P`: for each register bit of the result the registers of the operand, as coordinates.
    pub registers: Vectors,
    /// `S`: for each register bit of the result the lane.
    pub register_lanes: Vectors,
    /// `L`: for each lane bit the lane that is read in round 0.
    pub lanes: Vectors,
    /// `G`: for each lane bit the registers of the result by which the lane is ahead.
    pub ahead: Vectors,
    /// `H`: for each lane bit of the operand, how its registers are exchanged.
    pub rotate: Vectors,
    /// For each warp bit and each block bit: the lane, and how registers are exchanged.
    pub warps: InlineList<(u32, u32), WORD>,
    pub blocks: InlineList<(u32, u32), WORD>,
}

/// The solver of `A(register, lane) = vector`, registers preferred.
struct Places {
    echelon: Echelon,
    /// Only the registers, for elements that can stay in their lane.
    registers: Echelon,
    count: u32,
    /// Nontrivial places that map to zero: lanes that repeat the elements of others.
    repeats: InlineList<(u32, u32), WORD>,
}

impl Places {
    fn new(source: &Endpoint) -> Option<Places> {
        let count = source.registers.len() as u32;
        if source.registers.len() + source.lanes.len() > WORD {
            return None;
        }
        let registers = Echelon::of(&source.registers);
        let mut echelon = registers;
        let mut repeats = InlineList::new();
        for &lane in &source.lanes {
            if let Some(recipe) = echelon.insert(lane) {
                repeats.add(split(recipe, count));
            }
        }
        Some(Places {
            echelon,
            registers,
            count,
            repeats,
        })
    }

    /// Whether lanes may be asked for one register each. What lanes get in one round is a complement `C` of the span of
    /// the result's registers in that of the result. Of `C`, lane 0 offers one register, so that no other register of
    /// its is in `C`, unless a lane that repeats it has that one. So what both registers and result span may not be
    /// larger than the span of the result's registers, but by those lanes.
    ///
    /// Ensures: where this does not hold, the search finds nothing.
    fn serve(&self, target: &Endpoint) -> bool {
        let registers = Subspace::span(&target.registers);
        let mut result = registers;
        for &lane in &target.lanes {
            result.add(lane);
        }
        let mut own = Subspace::ZERO;
        for vector in self.registers.vectors() {
            own.add(vector);
        }
        let both = own.intersection(&result).dimension();
        both <= registers.dimension() + self.repeats.len() as u32
    }

    /// Register coordinates and lane.
    fn solve(&self, vector: u32) -> Option<(u32, u32)> {
        self.echelon
            .solve(vector)
            .map(|recipe| split(recipe, self.count))
    }
}

fn split(recipe: u32, registers: u32) -> (u32, u32) {
    (
        recipe & low_mask(registers),
        recipe.checked_shr(registers).unwrap_or(0),
    )
}

/// The choice for one lane bit of the result.
#[derive(Clone, Copy, Default)]
struct Choice {
    lane: u32,
    register: u32,
    ahead: u32,
}

/// The largest number of choices that the search tries; far more than it has ever needed.
const SEARCH_BUDGET: u32 = 4096;

struct Search<'a> {
    source: &'a Endpoint,
    target: &'a Endpoint,
    places: &'a Places,
    budget: u32,
    choices: InlineList<Choice, WORD>,
}

impl Search<'_> {
    /// Extends the choices to all lane bits, `chosen` being the lanes read so far.
    fn extend(&mut self, chosen: &Echelon) -> bool {
        let bit = self.choices.len();
        let Some(&own) = self.target.lanes.get(bit) else {
            return true;
        };
        let registers = self.target.registers.len() as u32;
        // First with `ahead` zero, then with one register bit, then with any.
        for ahead in ahead_by_weight(registers) {
            let vector = self.target.register_vector(ahead) ^ own;
            if self.attempt(chosen, bit, vector, ahead) {
                return true;
            }
            if self.budget == 0 {
                return false;
            }
        }
        false
    }

    fn attempt(&mut self, chosen: &Echelon, bit: usize, vector: u32, ahead: u32) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        // The lane itself, if the element is there.
        if let Some(register) = self.places.registers.solve(vector ^ self.source.lanes[bit]) {
            let choice = Choice {
                lane: 1 << bit,
                register,
                ahead,
            };
            if self.accept(chosen, choice) {
                return true;
            }
        }
        let Some((register, lane)) = self.places.solve(vector) else {
            return false;
        };
        if self.accept(
            chosen,
            Choice {
                lane,
                register,
                ahead,
            },
        ) {
            return true;
        }
        // The same element in another lane.
        let repeats = self.places.repeats;
        for choice in 1..1u32 << repeats.len() {
            let (mut register, mut lane) = (register, lane);
            for i in ones(choice) {
                register ^= repeats[i as usize].0;
                lane ^= repeats[i as usize].1;
            }
            if self.accept(
                chosen,
                Choice {
                    lane,
                    register,
                    ahead,
                },
            ) {
                return true;
            }
        }
        false
    }

    /// Takes the choice if the requested register is a function of the requested lane, and continues.
    fn accept(&mut self, chosen: &Echelon, choice: Choice) -> bool {
        if let Some(recipe) = chosen.solve(choice.lane) {
            let known = ones(recipe).fold(0, |acc, i| acc ^ self.choices[i as usize].register);
            if known != choice.register {
                return false;
            }
        }
        let mut next = *chosen;
        let _ = next.insert(choice.lane);
        self.choices.add(choice);
        if self.extend(&next) {
            return true;
        }
        let len = self.choices.len();
        self.choices.truncate(len - 1);
        false
    }
}

/// Zero, then the single bits, then all other words of `bits` bits.
fn ahead_by_weight(bits: u32) -> impl Iterator<Item = u32> {
    let singles = (0..bits).map(|bit| 1u32 << bit);
    let others = (3..=low_mask(bits)).filter(|word| word.count_ones() > 1);
    core::iter::once(0).chain(singles).chain(others)
}

impl Endpoint {
    /// The vector in lane 0 for coordinates over the registers.
    fn register_vector(&self, coordinates: u32) -> u32 {
        ones(coordinates).fold(0, |acc, i| acc ^ self.registers[i as usize])
    }
}

impl Fetch {
    pub fn solve(source: &Endpoint, target: &Endpoint) -> Option<Fetch> {
        let places = Places::new(source)?;
        if target
            .lanes
            .iter()
            .any(|&lane| !places.echelon.contains(lane))
        {
            return None;
        }
        // A warp whose result has only a part of the warp's elements may have to request more than one register of
        // one lane per round. Then it takes additional rounds, as if the result had the missing part too, in
        // registers that are dropped.
        let mut extended = target.clone();
        let mut wanted = Echelon::of(&target.registers);
        for &lane in &target.lanes {
            let _ = wanted.insert(lane);
        }
        let mut missing = source.registers.iter().chain(&source.lanes);
        loop {
            if let Some(fetch) = Fetch::solve_exactly(source, &extended, &places) {
                return Some(fetch);
            }
            let &vector = missing.find(|&&v| !wanted.contains(v))?;
            let _ = wanted.insert(vector);
            extended.registers.push(vector).ok()?;
            extended.register_masks.push(0).ok()?;
        }
    }

    fn solve_exactly(source: &Endpoint, target: &Endpoint, places: &Places) -> Option<Fetch> {
        let (mut registers, mut register_lanes) = (Vectors::new(), Vectors::new());
        for &vector in &target.registers {
            let (register, lane) = places.solve(vector)?;
            registers.add(register);
            register_lanes.add(lane);
        }
        if target
            .lanes
            .iter()
            .any(|&lane| !places.echelon.contains(lane))
        {
            return None;
        }
        let mut outer = [InlineList::<(u32, u32), WORD>::new(); 2];
        for (own, (wanted, there)) in outer.iter_mut().zip([
            (&target.warps, &source.warps),
            (&target.blocks, &source.blocks),
        ]) {
            for (&wanted, &there) in wanted.iter().zip(there) {
                own.add(places.solve(wanted ^ there)?);
            }
        }

        if !places.serve(target) {
            return None;
        }
        let mut search = Search {
            source,
            target,
            places,
            budget: SEARCH_BUDGET,
            choices: InlineList::new(),
        };
        if !search.extend(&Echelon::new()) {
            return None;
        }
        let choices = search.choices;
        let (lanes, ahead): (Vectors, Vectors) = (
            choices.iter().map(|c| c.lane).collect(),
            choices.iter().map(|c| c.ahead).collect(),
        );

        // H is given on the lanes that are read; elsewhere it does not matter and is zero.
        let mut known = Echelon::of(&lanes);
        let count = lanes.len();
        for bit in 0..count {
            if !known.contains(1 << bit) {
                let _ = known.insert(1 << bit);
            }
        }
        let rotation = |lane: u32| {
            ones(known.solve(lane).unwrap_or(0) & low_mask(count as u32))
                .fold(0, |acc, i| acc ^ choices[i as usize].register)
        };
        let rotate: Vectors = (0..count).map(|bit| rotation(1 << bit)).collect();
        // A warp's contribution (register, lane) becomes (lane, register + H lane).
        let [warps, blocks] = outer.map(|list| {
            list.iter()
                .map(|&(register, lane)| (lane, register ^ rotation(lane)))
                .collect()
        });
        Some(Fetch {
            registers,
            register_lanes,
            lanes,
            ahead,
            rotate,
            warps,
            blocks,
        })
    }

    pub fn is_register_only(&self) -> bool {
        let zero = |list: &[u32]| list.iter().all(|&v| v == 0);
        zero(&self.register_lanes)
            && zero(&self.ahead)
            && zero(&self.rotate)
            && self.has_identical_lanes()
            && self
                .warps
                .iter()
                .chain(&self.blocks)
                .all(|&pair| pair == (0, 0))
    }

    /// Whether the lane of the result alone is the lane that is asked.
    pub(super) fn has_identical_lanes(&self) -> bool {
        let mut images = self.lanes.iter().enumerate();
        images.all(|(i, &lane)| lane == 1 << i)
    }

    /// The register coordinates of the operand for a register index of the result.
    pub fn register_of_fold(&self, target: &Endpoint, index: u32) -> u32 {
        self.registers
            .iter()
            .zip(&target.register_masks)
            .filter(|&(_, &mask)| index & mask != 0)
            .fold(0, |acc, (&register, _)| acc ^ register)
    }

    /// `(P + H S) s` for the unit vector `s`: the register offered in that round.
    pub fn offered(&self, bit: usize) -> u32 {
        let lane = self.register_lanes[bit];
        ones(lane).fold(self.registers[bit], |acc, i| acc ^ self.rotate[i as usize])
    }
}
