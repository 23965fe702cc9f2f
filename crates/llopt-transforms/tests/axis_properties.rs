//! Axis facts against concrete tensors: random programs are evaluated element by element, and
//! every fact claimed for an intermediate value must hold of it.
//!
//! Two regimes: in 64 bits with small numbers nothing wraps and all claims must hold as written; in
//! 8 bits everything wraps, and what memory accesses and masks rely on must hold all the same:
//! aligned contiguity, divisibility, constancy, the constant value.

use llopt_transforms::axis::integer::{self, Binary, Comparison};
use llopt_transforms::axis::{AxisFacts, Pow2, address, shape};
use proptest::prelude::*;

/// A tensor with its elements in row-major order, and the facts claimed of it.
#[derive(Clone, Debug)]
struct Known {
    shape: Vec<u64>,
    width: u32,
    values: Vec<u64>,
    facts: AxisFacts,
}

fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

fn signed(value: u64, width: u32) -> i64 {
    ((value << (64 - width.min(64))) as i64) >> (64 - width.min(64))
}

/// The first claim that does not hold of the tensor, in words.
fn broken_claim(known: &Known, wraps: bool) -> Option<String> {
    let Known {
        shape,
        width,
        values,
        facts,
    } = known;
    let total = values.len();
    if facts.rank() != shape.len() {
        return Some(format!("rank {} for shape {shape:?}", facts.rank()));
    }
    if let Some(constant) = facts.constant
        && values.iter().any(|&value| value != constant)
    {
        return Some(format!("constant {constant}"));
    }
    if facts.non_negative && values.iter().any(|&value| signed(value, *width) < 0) {
        return Some("non-negative".into());
    }
    let mut stride = total;
    for (dim, &size) in shape.iter().enumerate() {
        stride /= size as usize;
        let claimed = facts.dims[dim];
        let contiguity = if wraps {
            claimed.aligned_contiguity(facts.step)
        } else {
            claimed.contiguity
        };
        for position in 0..total {
            let index = (position / stride % size as usize) as u64;
            let begin = |run: Pow2| position - (index % run.get()) as usize * stride;
            let first = values[begin(contiguity)];
            let expected = first.wrapping_add(index % contiguity.get() * facts.step.get());
            if values[position] != expected {
                return Some(format!("contiguity along {dim} at {position}"));
            }
            if values[position] != values[begin(claimed.constancy)] {
                return Some(format!("constancy along {dim} at {position}"));
            }
            if index.is_multiple_of(claimed.contiguity.get())
                && Pow2::dividing(values[position]) < claimed.divisibility
            {
                return Some(format!("divisibility along {dim} at {position}"));
            }
        }
    }
    None
}

const BINARY: [Binary; 20] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::DivSigned,
    Binary::DivFloor,
    Binary::DivCeilSigned,
    Binary::DivUnsigned,
    Binary::DivCeilUnsigned,
    Binary::RemSigned,
    Binary::RemUnsigned,
    Binary::And,
    Binary::Or,
    Binary::Xor,
    Binary::ShiftLeft,
    Binary::ShiftRightSigned,
    Binary::ShiftRightUnsigned,
    Binary::MinSigned,
    Binary::MinUnsigned,
    Binary::MaxSigned,
    Binary::MaxUnsigned,
];

const COMPARISONS: [Comparison; 10] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::LessSigned,
    Comparison::LessEqualSigned,
    Comparison::GreaterSigned,
    Comparison::GreaterEqualSigned,
    Comparison::LessUnsigned,
    Comparison::LessEqualUnsigned,
    Comparison::GreaterUnsigned,
    Comparison::GreaterEqualUnsigned,
];

/// One step of a random program; operands are picked from what exists, modulo how many there are.
#[derive(Clone, Debug)]
enum Step {
    Range {
        start: u8,
        log2: u8,
    },
    Constant {
        value: u8,
        negative: bool,
    },
    Dense {
        seed: u64,
        log2_run: u8,
    },
    Binary {
        op: usize,
        x: usize,
        y: usize,
    },
    Compare {
        op: usize,
        x: usize,
        y: usize,
    },
    Select {
        condition: usize,
        x: usize,
        y: usize,
    },
    Meet {
        x: usize,
        y: usize,
        second: bool,
    },
    Grow {
        x: usize,
        axis: u8,
        log2: u8,
    },
    Transpose {
        x: usize,
    },
    Reshape {
        x: usize,
        split: u8,
    },
    Join {
        x: usize,
        y: usize,
    },
    Split {
        x: usize,
        second: bool,
    },
    Extend {
        x: usize,
        signed: bool,
    },
    Address {
        offset: usize,
        base: u8,
        log2: u8,
    },
    Advance {
        pointer: usize,
        offset: usize,
    },
    Recast {
        pointer: usize,
        log2: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let pick = || any::<usize>();
    prop_oneof![
        2 => (any::<u8>(), 0..6u8).prop_map(|(start, log2)| Step::Range { start, log2 }),
        3 => (any::<u8>(), any::<bool>())
            .prop_map(|(value, negative)| Step::Constant { value, negative }),
        1 => (any::<u64>(), 0..4u8).prop_map(|(seed, log2_run)| Step::Dense { seed, log2_run }),
        8 => (0..BINARY.len(), pick(), pick()).prop_map(|(op, x, y)| Step::Binary { op, x, y }),
        2 => (0..COMPARISONS.len(), pick(), pick())
            .prop_map(|(op, x, y)| Step::Compare { op, x, y }),
        1 => (pick(), pick(), pick())
            .prop_map(|(condition, x, y)| Step::Select { condition, x, y }),
        1 => (pick(), pick(), any::<bool>())
            .prop_map(|(x, y, second)| Step::Meet { x, y, second }),
        2 => (pick(), any::<u8>(), 0..3u8).prop_map(|(x, axis, log2)| Step::Grow { x, axis, log2 }),
        1 => pick().prop_map(|x| Step::Transpose { x }),
        2 => (pick(), any::<u8>()).prop_map(|(x, split)| Step::Reshape { x, split }),
        1 => (pick(), pick()).prop_map(|(x, y)| Step::Join { x, y }),
        1 => (pick(), any::<bool>()).prop_map(|(x, second)| Step::Split { x, second }),
        1 => (pick(), any::<bool>()).prop_map(|(x, signed)| Step::Extend { x, signed }),
        2 => (pick(), any::<u8>(), 0..4u8)
            .prop_map(|(offset, base, log2)| Step::Address { offset, base, log2 }),
        2 => (pick(), pick()).prop_map(|(pointer, offset)| Step::Advance { pointer, offset }),
        1 => (pick(), 0..4u8).prop_map(|(pointer, log2)| Step::Recast { pointer, log2 }),
    ]
}

/// Whether the elements are addresses; integer operations are not for those.
fn is_address(known: &Known) -> bool {
    known.width == ADDRESS
}

/// The width that marks addresses: 64 bits, and none of the widths of the integers here.
const ADDRESS: u32 = 65;

/// `pointer + s · offset`, elementwise, with the offset read as a signed number.
fn advance(pointers: &[u64], step: Pow2, offset: &Known) -> Vec<u64> {
    let bytes = |&value: &u64| (signed(value, offset.width) as u64).wrapping_mul(step.get());
    pointers
        .iter()
        .zip(&offset.values)
        .map(|(pointer, value)| pointer.wrapping_add(bytes(value)))
        .collect()
}

/// The operand picked by `index`, and another one of the same shape and width picked by `other`.
fn pair(values: &[Known], index: usize, other: usize) -> Option<(&Known, &Known)> {
    let x = values.get(index % values.len().max(1))?;
    let alike: Vec<&Known> = values
        .iter()
        .filter(|y| y.shape == x.shape && y.width == x.width)
        .collect();
    Some((x, alike[other % alike.len()]))
}

/// Performs one step. `None` if it has no operands of the right kind or no defined result.
#[expect(clippy::too_many_lines, reason = "one match over the kinds of steps")]
fn perform(step: &Step, values: &[Known], width: u32) -> Option<Known> {
    let some = |index: usize| values.get(index % values.len().max(1));
    let with = |known: &Known, values: Vec<u64>, facts: AxisFacts| Known {
        values,
        facts,
        ..known.clone()
    };
    match *step {
        Step::Range { start, log2 } => {
            // Multiples of a power of two make the interesting starts likely.
            let length = 1u64 << log2;
            let start = u64::from(start & if width == 8 { 0x1f } else { 0x7f });
            let start = if start % 3 == 0 {
                start
            } else {
                start * length
            };
            (start + length <= 128).then(|| Known {
                shape: vec![length],
                width,
                values: (start..start + length).collect(),
                facts: shape::make_range(start as u32, length),
            })
        }
        Step::Constant { value, negative } => {
            let like = values.last()?;
            let value = match value % 4 {
                0 => 1 << (value / 4 % 6),
                1 => (1 << (value / 4 % 6)) - 1,
                _ => u64::from(value / 4),
            };
            let value = if negative {
                value.wrapping_neg()
            } else {
                value
            } & mask(width);
            let scalar = AxisFacts::constant(value, width, &[1]);
            (like.width == width).then(|| {
                with(
                    like,
                    vec![value; like.values.len()],
                    shape::splat(&scalar, &like.shape),
                )
            })
        }
        Step::Dense { seed, log2_run } => {
            let like = values.last().filter(|like| like.width == width)?;
            let mut state = seed;
            let elements: Vec<u64> = (0..like.values.len() as u64)
                .map(|position| {
                    if position % (1 << log2_run) == 0 {
                        state = state
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(seed | 1);
                    }
                    let first = (state >> 60) << log2_run;
                    let within = if seed & 1 == 0 {
                        position % (1 << log2_run)
                    } else {
                        0
                    };
                    (first + within) & mask(width)
                })
                .collect();
            let facts = shape::dense(&elements, width, &like.shape);
            Some(with(like, elements, facts))
        }
        Step::Binary { op, x, y } => {
            let (x, y) = pair(values, x, y).filter(|(x, _)| !is_address(x))?;
            let op = BINARY[op];
            let result: Option<Vec<u64>> = x
                .values
                .iter()
                .zip(&y.values)
                .map(|(&a, &b)| integer::evaluate(op, a, b, x.width))
                .collect();
            let result = result?;
            if width == 64
                && result
                    .iter()
                    .any(|&v| signed(v, x.width).unsigned_abs() > 1 << 40)
            {
                return None;
            }
            Some(with(
                x,
                result,
                integer::binary(op, &x.facts, &y.facts, x.width),
            ))
        }
        Step::Compare { op, x, y } => {
            let (x, y) = pair(values, x, y).filter(|(x, _)| !is_address(x))?;
            let op = COMPARISONS[op];
            let result = x
                .values
                .iter()
                .zip(&y.values)
                .map(|(&a, &b)| u64::from(integer::compare(op, a, b, x.width)))
                .collect();
            let facts = integer::comparison(op, &x.facts, &y.facts, x.width);
            Some(Known {
                width: 1,
                ..with(x, result, facts)
            })
        }
        Step::Select { condition, x, y } => {
            let (x, y) = pair(values, x, y)?;
            let conditions: Vec<&Known> = values
                .iter()
                .filter(|c| c.width == 1 && c.shape == x.shape)
                .collect();
            let condition = conditions.get(condition % conditions.len().max(1))?;
            let result = (0..x.values.len())
                .map(|i| {
                    if condition.values[i] != 0 {
                        x.values[i]
                    } else {
                        y.values[i]
                    }
                })
                .collect();
            let facts = integer::select(&condition.facts, &x.facts, &y.facts);
            Some(with(x, result, facts))
        }
        Step::Meet { x, y, second } => {
            let (x, y) = pair(values, x, y)?;
            let taken = if second { y } else { x };
            Some(with(x, taken.values.clone(), x.facts.meet(&y.facts)))
        }
        Step::Grow { x, axis, log2 } => {
            let x = some(x)?;
            let axis = usize::from(axis) % (x.shape.len() + 1);
            let size = 1u64 << log2;
            if x.values.len() as u64 * size > 128 {
                return None;
            }
            let mut one = x.shape.clone();
            one.insert(axis, 1);
            let mut grown = one.clone();
            grown[axis] = size;
            let inner: usize = grown[axis + 1..].iter().product::<u64>() as usize;
            let total = x.values.len() * size as usize;
            let result = (0..total)
                .map(|p| x.values[p / (inner * size as usize) * inner + p % inner])
                .collect();
            let facts = shape::broadcast(&shape::expand_dims(&x.facts, axis), &one, &grown);
            Some(Known {
                shape: grown,
                ..with(x, result, facts)
            })
        }
        Step::Transpose { x } => {
            let x = some(x)?;
            let [rows, columns] = x.shape[..] else {
                return None;
            };
            let result = (0..x.values.len() as u64)
                .map(|p| x.values[(p % rows * columns + p / rows) as usize])
                .collect();
            let facts = shape::transpose(&x.facts, &[1, 0]);
            Some(Known {
                shape: vec![columns, rows],
                ..with(x, result, facts)
            })
        }
        Step::Reshape { x, split } => {
            let x = some(x)?;
            let bits = x.values.len().ilog2() as u8;
            let inner = split % (bits + 1);
            let middle = (split / 16) % (bits - inner + 1);
            let to = vec![1 << (bits - inner - middle), 1 << middle, 1 << inner];
            let to = if split & 8 == 0 { vec![1 << bits] } else { to };
            let facts = shape::reshape(&x.facts, &x.shape, &to);
            Some(Known {
                shape: to,
                ..with(x, x.values.clone(), facts)
            })
        }
        Step::Join { x, y } => {
            let (x, y) = pair(values, x, y)?;
            let result = x
                .values
                .iter()
                .zip(&y.values)
                .flat_map(|(&a, &b)| [a, b])
                .collect();
            let mut to = x.shape.clone();
            to.push(2);
            Some(Known {
                shape: to,
                ..with(x, result, shape::join(&x.facts, &y.facts))
            })
        }
        Step::Split { x, second } => {
            let x = some(x).filter(|x| x.shape.len() > 1 && x.shape.last() == Some(&2))?;
            let skip = usize::from(second);
            let result = x.values.iter().skip(skip).step_by(2).copied().collect();
            let to = x.shape[..x.shape.len() - 1].to_vec();
            Some(Known {
                shape: to,
                ..with(x, result, shape::split(&x.facts))
            })
        }
        Step::Extend { x, signed: sign } => {
            // There and back, so that the widths of all values stay the same.
            let x = some(x).filter(|x| x.width == 8)?;
            let (narrow, wide) = (8, 16);
            let result = x.values.iter().map(|&value| {
                let extended = if sign {
                    signed(value, narrow) as u64
                } else {
                    value
                };
                extended.wrapping_mul(3) & mask(wide) & mask(narrow)
            });
            let extended = match sign {
                true => integer::sign_extend(&x.facts, narrow, wide),
                false => integer::zero_extend(&x.facts, narrow),
            };
            let three = shape::splat(&AxisFacts::constant(3, wide, &[1]), &x.shape);
            let product = integer::binary(Binary::Mul, &extended, &three, wide);
            Some(with(
                x,
                result.collect(),
                integer::truncate(&product, narrow),
            ))
        }
        Step::Address { offset, base, log2 } => {
            let offset = some(offset).filter(|offset| !is_address(offset))?;
            // An address that is promised to be a multiple of some power of two, and is.
            let promise = 1u64 << (base % 6);
            let base = u64::from(base / 6 + 1) * promise;
            let pointer =
                address::unknown_address(1, 1 << log2).with_promises(&[], &[promise], &[]);
            let pointer = shape::splat(&pointer, &offset.shape);
            let addresses = advance(&vec![base; offset.values.len()], pointer.step, offset);
            let facts = address::add_offset(&pointer, &offset.facts);
            Some(Known {
                width: ADDRESS,
                ..with(offset, addresses, facts)
            })
        }
        Step::Advance { pointer, offset } => {
            let pointer = some(pointer).filter(|pointer| is_address(pointer))?;
            let offsets: Vec<&Known> = values
                .iter()
                .filter(|offset| !is_address(offset) && offset.shape == pointer.shape)
                .collect();
            let offset = offsets.get(offset % offsets.len().max(1))?;
            let addresses = advance(&pointer.values, pointer.facts.step, offset);
            let facts = address::add_offset(&pointer.facts, &offset.facts);
            Some(with(pointer, addresses, facts))
        }
        Step::Recast { pointer, log2 } => {
            let pointer = some(pointer).filter(|pointer| is_address(pointer))?;
            let facts = address::with_step(&pointer.facts, Pow2::from_log2(u32::from(log2)));
            Some(with(pointer, pointer.values.clone(), facts))
        }
    }
}

/// Runs the program and checks every value as it comes into being.
fn check(program: &[Step], width: u32) -> Result<(), TestCaseError> {
    let wraps = width < 64;
    let mut values: Vec<Known> = Vec::new();
    for step in program {
        let Some(mut known) = perform(step, &values, width) else {
            continue;
        };
        if wraps {
            // The sign is claimed for arithmetic that does not overflow; where it did, drop it.
            known.facts.non_negative &= known.values.iter().all(|&v| signed(v, known.width) >= 0);
        }
        if let Some(claim) = broken_claim(&known, wraps) {
            return Err(TestCaseError::fail(format!(
                "{claim} of {:?} {:?}: {}\nafter {step:?}\nfrom {values:#?}",
                known.shape, known.values, known.facts
            )));
        }
        values.push(known);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn all_claims_hold_where_nothing_wraps(program in prop::collection::vec(step(), 2..24)) {
        check(&program, 64)?;
    }

    #[test]
    fn accesses_and_masks_may_rely_on_their_claims_even_if_arithmetic_wraps(
        program in prop::collection::vec(step(), 2..24),
    ) {
        check(&program, 8)?;
    }
}
