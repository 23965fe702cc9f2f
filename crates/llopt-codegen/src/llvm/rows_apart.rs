//! Pointers to equally distant rows, of which a loop without registers keeps one.
//!
//! A thread loads several rows of a tile by a pointer each, and a loop advances them together, or adds the same number to each. Each
//! takes two registers throughout, eighty for 40 rows, though a row is as far from the next one as that is from the one behind it:
//!
//! ```text
//!   p0 = phi start,              p0 + step            p0 = phi start, p0 + step
//!   p1 = phi start + 8 * row,    p1 + step      →     p1 = p0 + 8 * row
//!   p2 = phi start + 16 * row,   p2 + step            p2 = p1 + 8 * row
//! ```
//!
//! That takes as many additions, and registers for one pointer and the distance. But each pointer waits for the one before it, so it
//! is done where the values of the loop do not fit into registers, for an assembler that allocates them.
//!
//! # How distances are found
//!
//! What a pointer is before the loop is read as a polynomial: a sum of products of values that are opaque, with numbers modulo `2^64`.
//! Sums, products, shifts, and ors of which both sides have no bit in common are expanded, also where they are widened and do not
//! overflow. Two pointers have a known distance if their polynomials differ in one product alone.
//!
//! # What keeps it
//!
//! LLVM's strength reduction would see that all pointers are sums of a start and what the loop has advanced by, and keep the starts. So
//! the first pointer of a row of them is hidden by `llvm.launder.invariant.group`, as in [`super::recurrences`].
//!
//! On an H100 (2026-11-28) attention of 128 rows by four warps takes 0.86 of the time with a register pair for each pointer (5.43
//! instead of 6.28 ms, 408 instead of 560 bytes in memory), and a feed-forward layer with factors of 160 KiB 0.86 (13.9 instead of
//! 16.1 microseconds, none instead of 284 bytes).

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{
    BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, IntValue,
    PhiValue, PointerValue,
};
use llopt_target::Target;

use crate::llvm::addresses;
use crate::llvm::block_order::scarce;
use crate::llvm::instructions::{integer_operand, pointer_operand, replace_operand, users};
use crate::llvm::liveness::Flow;
use crate::llvm::recurrences::{Hides, Recurrence};
use crate::targets::back_end::BackEnd;

/// The most steps from a pointer back to what it is computed from.
const DEPTH: u32 = 16;
/// The bits of a pointer.
const WIDE: u32 = 64;
/// The most products of a polynomial.
const MOST_TERMS: usize = 16;

/// An opaque value, by the order in which values are read, widened or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Factor {
    value: usize,
    widened: Widened,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Widened {
    Not,
    Signed,
    Unsigned,
}

/// The factors of a product, in order.
type Monomial = Vec<Factor>;

/// A sum of products with their numbers, of which none is zero.
type Polynomial = BTreeMap<Monomial, i64>;

/// Reads values as polynomials.
#[derive(Default)]
struct Reader<'ctx> {
    /// The values of factors.
    values: Vec<BasicValueEnum<'ctx>>,
    numbers: HashMap<BasicValueEnum<'ctx>, usize>,
    /// What was read already.
    known: HashMap<(BasicValueEnum<'ctx>, Widened), Polynomial>,
}

fn sum(mut one: Polynomial, other: &Polynomial, factor: i64) -> Polynomial {
    for (monomial, number) in other {
        let of = one.entry(monomial.clone()).or_insert(0);
        *of = of.wrapping_add(number.wrapping_mul(factor));
    }
    one.retain(|_, number| *number != 0);
    one
}

fn product(one: &Polynomial, other: &Polynomial) -> Polynomial {
    let mut all = Polynomial::new();
    for (first, number) in one {
        for (second, factor) in other {
            let mut monomial = [&first[..], &second[..]].concat();
            monomial.sort_unstable();
            all = sum(
                all,
                &Polynomial::from([(monomial, number.wrapping_mul(*factor))]),
                1,
            );
        }
    }
    all
}

impl<'ctx> Reader<'ctx> {
    /// A value as a polynomial, by `expand` if that finds one.
    fn read(
        &mut self,
        value: BasicValueEnum<'ctx>,
        widened: Widened,
        expand: impl FnOnce(&mut Self) -> Option<Polynomial>,
    ) -> Polynomial {
        if let Some(known) = self.known.get(&(value, widened)) {
            return known.clone();
        }
        let found = expand(self).filter(|found| found.len() <= MOST_TERMS);
        let found = found.unwrap_or_else(|| {
            let value = *self.numbers.entry(value).or_insert_with(|| {
                self.values.push(value);
                self.values.len() - 1
            });
            Polynomial::from([(vec![Factor { value, widened }], 1)])
        });
        self.known.insert((value, widened), found.clone());
        found
    }

    /// What a pointer points to, in bytes.
    fn pointer(&mut self, pointer: PointerValue<'ctx>, depth: u32) -> Polynomial {
        self.read(pointer.into(), Widened::Not, |reader| {
            let made = pointer.as_instruction().filter(|_| depth > 0)?;
            let (base, index) = (pointer_operand(made, 0)?, index(made)?);
            let size = bytes(made.get_gep_source_element_type().ok()?)?;
            let base = reader.pointer(base, depth - 1);
            Some(sum(base, &reader.index(index, depth - 1), size))
        })
    }

    /// A number of elements, which addresses take with its sign.
    fn index(&mut self, index: IntValue<'ctx>, depth: u32) -> Polynomial {
        let widened = match index.get_type().get_bit_width() {
            WIDE => Widened::Not,
            _ => Widened::Signed,
        };
        self.integer(index, widened, depth)
    }

    /// An integer of 64 bits, or one that is widened to it.
    fn integer(&mut self, value: IntValue<'ctx>, widened: Widened, depth: u32) -> Polynomial {
        let constant = match widened {
            Widened::Unsigned => value.get_zero_extended_constant().map(u64::cast_signed),
            Widened::Not | Widened::Signed => value.get_sign_extended_constant(),
        };
        if let Some(constant) = constant {
            let of = Polynomial::from([(Monomial::new(), constant)]);
            return sum(Polynomial::new(), &of, 1);
        }
        self.read(value.into(), widened, |reader| {
            reader.expanded(value, widened, depth)
        })
    }

    fn expanded(
        &mut self,
        value: IntValue<'ctx>,
        widened: Widened,
        depth: u32,
    ) -> Option<Polynomial> {
        use InstructionOpcode as Op;
        let made = value.as_instruction().filter(|_| depth > 0)?;
        let mut read =
            |index| Some(self.integer(integer_operand(made, index)?, widened, depth - 1));
        // Whether the widened result is that of the widened operands.
        let commutes = || match widened {
            Widened::Not => true,
            Widened::Signed => made.get_no_signed_wrap_flag() == Ok(true),
            Widened::Unsigned => made.get_no_unsigned_wrap_flag() == Ok(true),
        };
        match made.get_opcode() {
            Op::Add if commutes() => Some(sum(read(0)?, &read(1)?, 1)),
            Op::Sub if commutes() => Some(sum(read(0)?, &read(1)?, -1)),
            Op::Mul if commutes() => Some(product(&read(0)?, &read(1)?)),
            // The sign of what is widened with it may be in either operand.
            Op::Or if made.get_disjoint_flag() == Ok(true) && widened != Widened::Signed => {
                Some(sum(read(0)?, &read(1)?, 1))
            }
            Op::Shl if commutes() => {
                let by = integer_operand(made, 1)?.get_zero_extended_constant()?;
                let factor = 1i64.checked_shl(u32::try_from(by).ok()?)?;
                Some(sum(Polynomial::new(), &read(0)?, factor))
            }
            Op::ZExt if widened == Widened::Not => {
                let inner = integer_operand(made, 0)?;
                Some(self.integer(inner, Widened::Unsigned, depth - 1))
            }
            Op::SExt if widened == Widened::Not => {
                let inner = integer_operand(made, 0)?;
                Some(self.integer(inner, Widened::Signed, depth - 1))
            }
            _ => None,
        }
    }

    /// The value of a product with a number, computed here; `None` if it is no integer.
    fn build(
        &self,
        builder: &Builder<'ctx>,
        wide: IntType<'ctx>,
        monomial: &Monomial,
        number: i64,
    ) -> Option<IntValue<'ctx>> {
        let mut value = wide.const_int(number.cast_unsigned(), true);
        for factor in monomial {
            let BasicValueEnum::IntValue(of) = *self.values.get(factor.value)? else {
                return None;
            };
            let of = match factor.widened {
                Widened::Not => of,
                Widened::Signed => builder.build_int_s_extend(of, wide, "").ok()?,
                Widened::Unsigned => builder.build_int_z_extend(of, wide, "").ok()?,
            };
            value = builder.build_int_mul(of, value, "").ok()?;
        }
        Some(value)
    }
}

/// The only index of an address, of at most 64 bits.
fn index(address: InstructionValue<'_>) -> Option<IntValue<'_>> {
    let is_sum =
        address.get_opcode() == InstructionOpcode::GetElementPtr && address.get_num_operands() == 2;
    let index = integer_operand(address, 1).filter(|_| is_sum)?;
    (index.get_type().get_bit_width() <= WIDE).then_some(index)
}

/// The bytes of an element that addresses count.
fn bytes(element: BasicTypeEnum<'_>) -> Option<i64> {
    let bits = match element {
        BasicTypeEnum::IntType(of) => of.get_bit_width(),
        BasicTypeEnum::FloatType(of) => of.get_bit_width(),
        _ => return None,
    };
    Some(i64::from(bits / 8)).filter(|_| bits.is_multiple_of(8))
}

/// Keeps one of the pointers to equally distant rows in the innermost loops whose values do not fit into registers.
pub(crate) fn advance_one(module: &Module<'_>, target: Target, back_end: &dyn BackEnd) {
    let Some(hides) = Hides::of(module) else {
        return;
    };
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        let Some(threads) = back_end.threads(function) else {
            continue;
        };
        for inner in scarce_loops(function, target.registers_of_each(threads)) {
            let Some(in_front) = inner.in_front() else {
                continue;
            };
            for row in rows(&inner) {
                row.apply(&builder, &hides, in_front);
            }
        }
    }
}

/// The innermost loops at a place of which more words are live than there are registers.
fn scarce_loops(function: FunctionValue<'_>, registers: u32) -> Vec<Loop<'_>> {
    let flow = Flow::of(function.get_basic_blocks());
    let of_blocks = |numbers: Vec<usize>| {
        let blocks = numbers.iter().map(|&block| flow.blocks[block]).collect();
        (numbers, Loop { blocks })
    };
    let loops = flow.innermost_loops().into_iter().map(of_blocks);
    let loops: Vec<_> = loops
        .filter(|(_, inner)| inner.pointers().len() > 1)
        .collect();
    scarce(&flow, registers, loops)
}

/// A loop, its first block first.
struct Loop<'ctx> {
    blocks: Vec<BasicBlock<'ctx>>,
}

impl<'ctx> Loop<'ctx> {
    /// The pointers that the first block makes of pointers from outside.
    fn pointers(&self) -> Vec<Pointer<'ctx>> {
        let all = self.blocks[0].get_instructions();
        all.filter_map(|made| match made.get_opcode() {
            InstructionOpcode::Phi => Pointer::advanced(made),
            InstructionOpcode::GetElementPtr => self.sum(made),
            _ => None,
        })
        .collect()
    }

    /// The end of the only block from which the loop is entered.
    fn in_front(&self) -> Option<InstructionValue<'ctx>> {
        let phi = PhiValue::try_from(self.blocks[0].get_first_instruction()?).ok()?;
        let from = phi.get_incomings().map(|(_, from)| from);
        let mut outside = from.filter(|from| !self.blocks.contains(from));
        let front = outside.next()?;
        let is_only = outside.next().is_none();
        front.get_terminator().filter(|_| is_only)
    }

    fn has(&self, value: BasicValueEnum<'ctx>) -> bool {
        let block = value
            .as_instruction_value()
            .and_then(|made| made.get_parent());
        block.is_some_and(|block| self.blocks.contains(&block))
    }

    /// A pointer from outside to which a number of the loop is added.
    fn sum(&self, made: InstructionValue<'ctx>) -> Option<Pointer<'ctx>> {
        let (start, index) = (pointer_operand(made, 0)?, index(made)?);
        let varies = !self.has(start.into()) && self.has(index.into());
        varies.then_some(Pointer {
            made,
            start,
            element: made.get_gep_source_element_type().ok()?,
            step: index,
            advances: None,
        })
    }
}

/// A pointer of a loop that is a pointer from outside plus what is the same for others.
struct Pointer<'ctx> {
    made: InstructionValue<'ctx>,
    /// That from outside.
    start: PointerValue<'ctx>,
    /// The number of elements that it advances by, or is behind `start`, and their type.
    step: IntValue<'ctx>,
    element: BasicTypeEnum<'ctx>,
    /// If the loop advances it, what it is next, which nothing else takes.
    advances: Option<(Recurrence<'ctx>, InstructionValue<'ctx>)>,
}

impl<'ctx> Pointer<'ctx> {
    fn advanced(phi: InstructionValue<'ctx>) -> Option<Self> {
        let recurrence = Recurrence::of(phi)?;
        let next = recurrence.next()?;
        let is_alone = users(next).all(|user| user == Some(phi));
        is_alone.then_some(Self {
            made: phi,
            start: recurrence.before,
            element: next.get_gep_source_element_type().ok()?,
            step: index(next)?,
            advances: Some((recurrence, next)),
        })
    }

    /// Whether it is made of others in the same way.
    fn is_like(&self, other: &Self) -> bool {
        (self.element, self.step) == (other.element, other.step)
            && self.advances.is_some() == other.advances.is_some()
    }

    fn next(&self) -> Option<InstructionValue<'ctx>> {
        self.advances.as_ref().map(|(_, next)| *next)
    }

    /// The first instruction in front of which others like this one may be computed.
    fn begin(&self) -> Option<InstructionValue<'ctx>> {
        let head = self.made.get_parent()?;
        let index = match self.advances {
            Some(_) => None,
            None => self.step.as_instruction(),
        };
        let mut begin = match index.filter(|index| index.get_parent() == Some(head)) {
            Some(index) => index.get_next_instruction()?,
            None => head.get_first_instruction()?,
        };
        while begin.get_opcode() == InstructionOpcode::Phi {
            begin = begin.get_next_instruction()?;
        }
        Some(begin)
    }
}

/// Pointers to rows of which each is as far behind the one before it, the first one first.
struct Row<'ctx> {
    pointers: Vec<Pointer<'ctx>>,
    reader: Rc<Reader<'ctx>>,
    /// The distance: a product, and how many times it is taken.
    monomial: Monomial,
    distance: i64,
}

/// A pointer, and how many times a product it is behind another one.
type Behind<'ctx> = (i64, Pointer<'ctx>);

/// The rows of a loop.
fn rows<'ctx>(of: &Loop<'ctx>) -> Vec<Row<'ctx>> {
    let mut reader = Reader::default();
    let mut read: Vec<(Polynomial, Pointer)> = Vec::new();
    for pointer in of.pointers() {
        read.push((reader.pointer(pointer.start, DEPTH), pointer));
    }
    let reader = Rc::new(reader);
    let mut rows = Vec::new();
    while let Some((first, pointer)) = read.pop() {
        // The only product in which a pointer differs from the first one, and the number of it.
        let apart = |of: &Polynomial| {
            let difference = sum(of.clone(), &first, -1);
            let mut terms = difference.into_iter();
            let (monomial, number) = terms.next()?;
            (terms.next().is_none() && !monomial.is_empty()).then_some((monomial, number))
        };
        let product = read
            .iter()
            .filter(|(_, other)| other.is_like(&pointer))
            .find_map(|(of, _)| Some(apart(of)?.0));
        let Some(product) = product else { continue };
        let mut family: Vec<Behind> = Vec::new();
        let mut others = Vec::new();
        for (of, other) in read {
            let is_apart = |monomial: &Monomial| *monomial == product && other.is_like(&pointer);
            match apart(&of).filter(|(monomial, _)| is_apart(monomial)) {
                Some((_, number)) => family.push((number, other)),
                None => others.push((of, other)),
            }
        }
        family.push((0, pointer));
        read = others;
        family.sort_by_key(|(number, _)| *number);
        for (distance, pointers) in chains(family) {
            rows.push(Row {
                pointers,
                reader: reader.clone(),
                monomial: product.clone(),
                distance,
            });
        }
    }
    rows
}

/// Divides sorted pointers where the distance is not the smallest one. Answers those of at least two.
fn chains(family: Vec<Behind<'_>>) -> Vec<(i64, Vec<Pointer<'_>>)> {
    let pairs = family
        .windows(2)
        .map(|pair| pair[1].0.wrapping_sub(pair[0].0));
    let Some(least) = pairs.filter(|&distance| distance > 0).min() else {
        return Vec::new();
    };
    let mut chains: Vec<Vec<Pointer>> = Vec::new();
    let mut before: Option<i64> = None;
    for (number, pointer) in family {
        match (chains.last_mut(), before) {
            (Some(chain), Some(before)) if number.wrapping_sub(before) == least => {
                chain.push(pointer)
            }
            _ => chains.push(vec![pointer]),
        }
        before = Some(number);
    }
    chains.retain(|chain| chain.len() > 1);
    chains.into_iter().map(|chain| (least, chain)).collect()
}

impl<'ctx> Row<'ctx> {
    /// Computes all but the first pointer from the one before it, in front of the first instruction that needs it or one behind
    /// it.
    fn apply(
        self,
        builder: &Builder<'ctx>,
        hides: &Hides<'_, 'ctx>,
        in_front: InstructionValue<'ctx>,
    ) -> Option<()> {
        let first = self.pointers.first()?;
        let head = first.made.get_parent()?;
        let begin = first.begin()?;
        let places: HashMap<InstructionValue, usize> = head.get_instructions().zip(0..).collect();
        builder.position_before(&in_front);
        let wide = head.get_context().i64_type();
        let distance = self
            .reader
            .build(builder, wide, &self.monomial, self.distance)?;
        // The places of the pointers, the last one first.
        let mut before = head.get_terminator()?;
        let mut places_of = Vec::new();
        for pointer in self.pointers[1..].iter().rev() {
            let next = pointer.next();
            let needs = users(pointer.made).filter(|user| user.is_none() || *user != next);
            let needs = needs.map(|user| {
                let user = user.filter(|user| user.get_opcode() != InstructionOpcode::Phi)?;
                Some((*places.get(&user)?, user))
            });
            // Another block may need it.
            before = match needs.collect::<Option<Vec<_>>>() {
                Some(needs) => {
                    let all = needs.into_iter().chain([(places[&before], before)]);
                    all.min_by_key(|(place, _)| *place)?.1
                }
                None => begin,
            };
            places_of.push(before);
        }
        builder.position_before(&begin);
        let start = match first.advances {
            Some(_) => {
                let phi = PhiValue::try_from(first.made).ok()?;
                phi.as_basic_value().into_pointer_value()
            }
            None => addresses::behind(builder, first.element, first.start, first.step)?,
        };
        let hidden = hides.hide(builder, start)?;
        let itself = start.as_instruction().into_iter();
        let kept = itself.chain(hidden.as_instruction()).chain(first.next());
        replace_but(first.made, hidden, &kept.collect::<Vec<_>>());
        let mut pointer = hidden;
        for (other, place) in self.pointers[1..].iter().zip(places_of.into_iter().rev()) {
            builder.position_before(&place);
            let byte = head.get_context().i8_type().into();
            pointer = addresses::behind(builder, byte, pointer, distance)?;
            let next = other.next();
            replace_but(other.made, pointer, next.as_slice());
        }
        for (number, of) in self.pointers.iter().enumerate() {
            match &of.advances {
                Some(_) if number == 0 => {}
                Some((recurrence, next)) => {
                    recurrence.stop();
                    next.erase_from_basic_block();
                    of.made.erase_from_basic_block();
                }
                None => of.made.erase_from_basic_block(),
            }
        }
        Some(())
    }
}

/// Replaces an instruction by a pointer, but not in those users.
fn replace_but<'ctx>(
    of: InstructionValue<'ctx>,
    by: PointerValue<'ctx>,
    except: &[InstructionValue<'ctx>],
) {
    let others: Vec<InstructionValue> = users(of)
        .flatten()
        .filter(|user| !except.contains(user))
        .collect();
    for user in others {
        replace_operand(user, of, by);
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;

    /// The text of a function whose loop loads at three pointers that it advances: rows `row`, `row | 4` and `row | 8` of this
    /// many bytes, times a factor for the last one.
    fn advanced(last: &str) -> String {
        format!(
            "define void @f(ptr addrspace(1) %p, i32 %row, i64 %bytes, i64 %step, i1 %more) {{
             entry:
               %above = shl i32 %row, 4
               %first = zext i32 %above to i64
               %row.1 = or disjoint i32 %above, 4
               %second = zext i32 %row.1 to i64
               %row.2 = or disjoint i32 %above, 8
               %third = zext i32 %row.2 to i64
               %x.0 = mul i64 %first, %bytes
               %x.1 = mul i64 %second, %bytes
               %x.2 = mul i64 %third, {last}
               %s.0 = getelementptr i8, ptr addrspace(1) %p, i64 %x.0
               %s.1 = getelementptr i8, ptr addrspace(1) %p, i64 %x.1
               %s.2 = getelementptr i8, ptr addrspace(1) %p, i64 %x.2
               br label %loop
             loop:
               %p.0 = phi ptr addrspace(1) [ %s.0, %entry ], [ %n.0, %loop ]
               %p.1 = phi ptr addrspace(1) [ %s.1, %entry ], [ %n.1, %loop ]
               %p.2 = phi ptr addrspace(1) [ %s.2, %entry ], [ %n.2, %loop ]
               store i32 0, ptr addrspace(1) %p.0
               store i32 1, ptr addrspace(1) %p.1
               store i32 2, ptr addrspace(1) %p.2
               %n.0 = getelementptr i8, ptr addrspace(1) %p.0, i64 %step
               %n.1 = getelementptr i8, ptr addrspace(1) %p.1, i64 %step
               %n.2 = getelementptr i8, ptr addrspace(1) %p.2, i64 %step
               br i1 %more, label %loop, label %end
             end:
               ret void
             }}"
        )
    }

    /// The module in which rows of the only loop are computed from one another.
    fn rewritten<'ctx>(context: &'ctx Context, text: &str) -> Module<'ctx> {
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        let function = module.get_function("f").unwrap();
        let inner = scarce_loops(function, 0).pop().unwrap();
        let hides = Hides::of(&module).unwrap();
        let builder = context.create_builder();
        let in_front = inner.in_front().unwrap();
        for row in rows(&inner) {
            row.apply(&builder, &hides, in_front).unwrap();
        }
        module.verify().unwrap();
        module
    }

    fn count(module: &Module<'_>, text: &str) -> usize {
        module.to_string().matches(text).count()
    }

    #[test]
    fn equally_distant_rows_follow_from_the_first_one() {
        let context = Context::create();
        let module = rewritten(&context, &advanced("%bytes"));
        assert_eq!(count(&module, " = phi ptr"), 1);
        // Four rows, of which two pointers in the loop take the number.
        assert_eq!(count(&module, "= mul i64 %bytes, 4"), 1);
        assert_eq!(
            count(&module, "getelementptr i8, ptr addrspace(1)"),
            3 + 1 + 2
        );
    }

    #[test]
    fn a_row_of_another_size_stays() {
        let context = Context::create();
        let module = rewritten(&context, &advanced("%step"));
        assert_eq!(count(&module, " = phi ptr"), 2);
    }

    #[test]
    fn narrow_sums_that_may_wrap_have_no_distance() {
        let text = |sum: &str| {
            format!(
                "define void @f(ptr addrspace(1) %p, i32 %row, i32 %rows, i1 %more) {{
                 entry:
                   %row.1 = {sum} i32 %row, %rows
                   %s.0 = getelementptr i8, ptr addrspace(1) %p, i32 %row
                   %s.1 = getelementptr i8, ptr addrspace(1) %p, i32 %row.1
                   br label %loop
                 loop:
                   %i = phi i64 [ 0, %entry ], [ %next, %loop ]
                   %p.0 = getelementptr i8, ptr addrspace(1) %s.0, i64 %i
                   %p.1 = getelementptr i8, ptr addrspace(1) %s.1, i64 %i
                   store i32 0, ptr addrspace(1) %p.0
                   store i32 1, ptr addrspace(1) %p.1
                   %next = add i64 %i, 64
                   br i1 %more, label %loop, label %end
                 end:
                   ret void
                 }}"
            )
        };
        let context = Context::create();
        let sums = ["add nsw", "add", "add nuw"]
            .map(|sum| count(&rewritten(&context, &text(sum)), "= sext i32 %rows to i64"));
        // Addresses take the sign of an index.
        assert_eq!(sums, [1, 0, 0]);
    }

    #[test]
    fn products_of_sums_are_expanded() {
        let factor = |value| Factor {
            value,
            widened: Widened::Not,
        };
        let of = |value| Polynomial::from([(vec![factor(value)], 1)]);
        let number = |number| Polynomial::from([(Monomial::new(), number)]);
        // (1 + 4) * 2 - 1 * 2
        let moved = product(&sum(of(1), &number(4), 1), &of(2));
        let apart = sum(moved, &product(&of(2), &of(1)), -1);
        assert_eq!(apart, Polynomial::from([(vec![factor(2)], 4)]));
        assert_eq!(sum(of(1), &of(1), -1), Polynomial::new());
    }
}
