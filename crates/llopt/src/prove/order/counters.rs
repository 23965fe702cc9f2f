//! Counters that grow without end, but only whose remainders matter.
//!
//! A loop may count its iterations, also those of the loops around it, and take the number of a buffer as the remainder by
//! the depth of the ring, the parity of the phase as that of the quotient. All uses of such a counter then are
//! functions of its remainder by one modulus, the product of all divisors. So two states are equal if these remainders are.

use std::collections::{HashMap, HashSet};

use super::skeleton::{Event, Function, Instruction, Skeleton, Slot};

/// Moduli above this one make too many states.
const LARGEST: i64 = 4096;

/// The values of which only the remainder by a modulus matters, and the modulus.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) slots: HashSet<Slot>,
    pub(super) modulus: i64,
}

/// A use of a value.
enum Use {
    /// Only its remainder by this number matters.
    Remainder(i64),
    /// It is used like the result, if only a remainder of the result matters.
    Like(Slot),
    /// Its quotient by this number is used like the result.
    Quotient(i64, Slot),
    Otherwise,
}

impl Counters {
    pub(super) fn of(skeleton: &Skeleton) -> Self {
        let uses = uses(skeleton);
        let mut slots: HashSet<Slot> = uses.keys().copied().collect();
        // A quotient is no counter itself: by how much it grows with the counter depends on its divisor.
        let is_remainder_only = |slot: &Slot| {
            let of = uses.get(slot).into_iter().flatten();
            of.clone().all(|of| matches!(of, Use::Remainder(_)))
        };
        loop {
            let before = slots.len();
            let keeps = |slot: &Slot, slots: &HashSet<Slot>| {
                uses[slot].iter().all(|of| match of {
                    Use::Remainder(_) => true,
                    Use::Like(to) => slots.contains(to) || !uses.contains_key(to),
                    Use::Quotient(_, to) => is_remainder_only(to),
                    Use::Otherwise => false,
                })
            };
            slots = slots
                .iter()
                .copied()
                .filter(|slot| keeps(slot, &slots))
                .collect();
            if slots.len() == before {
                break;
            }
        }
        let mut divisors: Vec<i64> = Vec::new();
        for slot in &slots {
            for of in &uses[slot] {
                match of {
                    Use::Remainder(by) => divisors.push(*by),
                    Use::Quotient(by, to) => {
                        let of_quotient = uses.get(to).into_iter().flatten();
                        divisors.extend(of_quotient.filter_map(|of| match of {
                            Use::Remainder(of) => by.checked_mul(*of),
                            _ => None,
                        }));
                    }
                    Use::Like(_) | Use::Otherwise => {}
                }
            }
        }
        let modulus = divisors.into_iter().fold(1, least_common_multiple);
        match modulus <= LARGEST {
            true => Self { slots, modulus },
            false => Self::default(),
        }
    }
}

fn least_common_multiple(x: i64, y: i64) -> i64 {
    let (mut greatest, mut rest) = (x.max(1), y.max(1));
    while rest != 0 {
        (greatest, rest) = (rest, greatest % rest);
    }
    (x.max(1) / greatest).saturating_mul(y.max(1))
}

/// The uses of each value that is needed.
fn uses(skeleton: &Skeleton) -> HashMap<Slot, Vec<Use>> {
    let mut constants: HashMap<Slot, i64> = HashMap::new();
    for instruction in &skeleton.code {
        if let Instruction::Constant { to, value } = instruction {
            constants.insert(*to, *value);
        }
    }
    let mut all: HashMap<Slot, Vec<Use>> = HashMap::new();
    let mut add = |slot: Slot, of: Use| all.entry(slot).or_default().push(of);
    for instruction in &skeleton.code {
        match instruction {
            Instruction::Compute { to, function, from } if skeleton.needed[*to] => {
                let constant = from.get(1).and_then(|slot| constants.get(slot)).copied();
                match (function, &from[..], constant) {
                    (Function::RemS | Function::RemU, [x, _], Some(by)) if by > 0 => {
                        add(*x, Use::Remainder(by));
                    }
                    (Function::And, [x, _], Some(mask)) if mask >= 0 && (mask + 1) & mask == 0 => {
                        add(*x, Use::Remainder(mask + 1));
                    }
                    (Function::DivS | Function::DivU, [x, _], Some(by)) if by > 0 => {
                        add(*x, Use::Quotient(by, *to));
                    }
                    (Function::Add | Function::Sub, [x, _], Some(_)) => add(*x, Use::Like(*to)),
                    (Function::Same, [x], _) => add(*x, Use::Like(*to)),
                    _ => from.iter().for_each(|&slot| add(slot, Use::Otherwise)),
                }
            }
            Instruction::Move(moves) => {
                for &(from, to) in moves.iter().filter(|(_, to)| skeleton.needed[*to]) {
                    add(from, Use::Like(to));
                }
            }
            Instruction::Fork { partitions, .. } => {
                for &(from, to) in partitions.iter().flat_map(|(_, moves)| moves) {
                    add(from, Use::Like(to));
                }
            }
            Instruction::Enter { bounds, .. } => {
                bounds
                    .iter()
                    .flatten()
                    .for_each(|&slot| add(slot, Use::Otherwise));
            }
            Instruction::Branch { condition, .. } => add(*condition, Use::Otherwise),
            Instruction::Index { index, .. } => add(*index, Use::Otherwise),
            Instruction::Event { event, .. } => match event {
                Event::Wait { phase, pred, .. } => {
                    // Only the parity counts.
                    add(*phase, Use::Remainder(2));
                    pred.iter().for_each(|&slot| add(slot, Use::Otherwise));
                }
                Event::Arrive { pred, .. } | Event::BulkLoad { pred, .. } => {
                    pred.iter().for_each(|&slot| add(slot, Use::Otherwise));
                }
                _ => {}
            },
            _ => {}
        }
    }
    all
}
