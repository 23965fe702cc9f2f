//! Exchanges of computed values become exchanges of what they are computed from.
//!
//! Where lanes store in different orders so that banks do not conflict ([`llopt_layout::plan::SharedAccess::turned`]), two
//! words change places in some lanes:
//!
//! ```text
//!   s = c ? x : y        t = c ? y : x
//! ```
//!
//! If both words are values of the same function, `x = f(p, z)` and `y = f(q, z)`, and nothing else uses them, the
//! arguments can change places instead:
//!
//! ```text
//!   s = f(c ? p : q, z)        t = f(c ? q : p, z)
//! ```
//!
//! This continues as long as both are computed alike. It pays where few words become many, as weights of four bits that are
//! widened to halves before they are stored: one word of eight becomes four. Constants are exchanged outside of the loop.
//!
//! # The search
//!
//! Values are visited from the last one of a block to the first, so all users of a value are known when it is reached. A
//! pair of instructions is *passed* if they are alike, all users of both have been passed or are the selects, and nothing
//! takes one of them without an exchange or exchanges it with a third value. What is left at the end are pairs of values that have to be exchanged. If they are
//! fewer than the words at the beginning, the operands of their users are replaced, and the first selects by the values
//! between which they chose, which now are what was chosen.

use std::collections::{BTreeMap, HashMap, HashSet};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, IntValue,
};

use crate::llvm::block_order::only_computes;
use crate::llvm::c_api::shuffle_mask;
use crate::llvm::instructions::users;

/// Exchanges values where they are fewest.
pub(crate) fn exchange_early(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            for group in groups(block) {
                if let Some(found) = Exchange::find(block, group) {
                    found.apply(&builder);
                }
            }
        }
    }
}

/// Two selects of the same two values by a condition: of the first if it holds, and of the second.
#[derive(Clone, Copy)]
struct Pair<'ctx> {
    selects: [InstructionValue<'ctx>; 2],
    values: [InstructionValue<'ctx>; 2],
}

/// The pairs of selects by one condition.
struct Group<'ctx> {
    condition: IntValue<'ctx>,
    pairs: Vec<Pair<'ctx>>,
}

/// The groups of a block.
fn groups(block: BasicBlock<'_>) -> Vec<Group<'_>> {
    let mut known: HashMap<[BasicValueEnum<'_>; 3], InstructionValue<'_>> = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for select in block.get_instructions() {
        if select.get_opcode() != InstructionOpcode::Select {
            continue;
        }
        let [Some(condition), Some(one), Some(other)] = [0, 1, 2].map(|at| operand(select, at))
        else {
            continue;
        };
        let Some(first) = known.get(&[condition, other, one]).copied() else {
            known.insert([condition, one, other], select);
            continue;
        };
        let [Some(y), Some(x)] = [one, other].map(|value| value.as_instruction_value()) else {
            continue;
        };
        let BasicValueEnum::IntValue(condition) = condition else {
            continue;
        };
        let pair = Pair {
            selects: [first, select],
            values: [x, y],
        };
        match groups.iter_mut().find(|group| group.condition == condition) {
            Some(group) => group.pairs.push(pair),
            None => groups.push(Group {
                condition,
                pairs: vec![pair],
            }),
        }
    }
    groups
}

/// An operand that is exchanged with another value.
#[derive(Clone, Copy)]
struct Taken<'ctx> {
    user: InstructionValue<'ctx>,
    index: u32,
    own: BasicValueEnum<'ctx>,
    other: BasicValueEnum<'ctx>,
}

/// An exchange that is made early.
struct Exchange<'ctx> {
    condition: IntValue<'ctx>,
    /// The selects that are no longer needed, each with what stands for it.
    replaced: Vec<(InstructionValue<'ctx>, InstructionValue<'ctx>)>,
    /// Where values are exchanged instead, each with the instruction before which it is done.
    taken: Vec<(Taken<'ctx>, InstructionValue<'ctx>)>,
}

impl<'ctx> Exchange<'ctx> {
    /// The early exchange of a group, if it is one of fewer values.
    fn find(block: BasicBlock<'ctx>, group: Group<'ctx>) -> Option<Self> {
        let instructions: Vec<InstructionValue<'ctx>> = block.get_instructions().collect();
        let places = instructions.iter().enumerate();
        let places: HashMap<InstructionValue<'ctx>, usize> = places
            .map(|(place, instruction)| (*instruction, place))
            .collect();
        let place_of = |value: BasicValueEnum<'ctx>| {
            let made = value.as_instruction_value()?;
            places.get(&made).copied()
        };
        let mut inside: HashSet<InstructionValue<'ctx>> =
            group.pairs.iter().flat_map(|pair| pair.selects).collect();
        // By the place of the later value: the values, and the operands that are exchanged for this pair.
        let mut open: BTreeMap<[usize; 2], Vec<Taken<'ctx>>> = BTreeMap::new();
        let mut partners: HashMap<usize, HashSet<usize>> = HashMap::new();
        // Values that both of two take as they are.
        let mut kept: HashSet<usize> = HashSet::new();
        let mut left: Vec<Taken<'ctx>> = Vec::new();
        for pair in &group.pairs {
            let [Some(x), Some(y)] = pair.values.map(|value| places.get(&value).copied()) else {
                return None;
            };
            partners.entry(x).or_default().insert(y);
            partners.entry(y).or_default().insert(x);
            open.entry([x.max(y), x.min(y)]).or_default();
        }
        let mut count = 0;
        while let Some((pair, taken)) = open.pop_last() {
            let [x, y] = pair.map(|place| instructions[place]);
            let mut own = pair.iter();
            let is_alone = own.all(|place| partners[place].len() == 1 && !kept.contains(place));
            let is_used_inside =
                |value| users(value).all(|user| user.is_some_and(|user| inside.contains(&user)));
            let passes = is_alone
                && !inside.contains(&x)
                && !inside.contains(&y)
                && are_alike(x, y)
                && is_used_inside(x)
                && is_used_inside(y);
            if !passes {
                count += 1;
                left.extend(taken);
                continue;
            }
            inside.extend([x, y]);
            let operands = x.get_num_operands();
            for index in 0..operands {
                let (Some(one), Some(other)) = (operand(x, index), operand(y, index)) else {
                    continue;
                };
                if one == other {
                    kept.extend(place_of(one));
                    continue;
                }
                let both = [(x, one, other), (y, other, one)].map(|(user, own, other)| Taken {
                    user,
                    index,
                    own,
                    other,
                });
                match (place_of(one), place_of(other)) {
                    (Some(a), Some(b)) => {
                        partners.entry(a).or_default().insert(b);
                        partners.entry(b).or_default().insert(a);
                        open.entry([a.max(b), a.min(b)]).or_default().extend(both);
                    }
                    // Loops exchange constants once.
                    (None, None) if is_constant(one) && is_constant(other) => left.extend(both),
                    _ => {
                        count += 1;
                        left.extend(both);
                    }
                }
            }
        }
        if count >= group.pairs.len() {
            return None;
        }
        let taken = placed(left, group.condition.into(), &places, &instructions)?;
        let passed = group
            .pairs
            .iter()
            .filter(|pair| inside.contains(&pair.values[0]));
        let replaced = passed.flat_map(|pair| pair.selects.into_iter().zip(pair.values));
        Some(Self {
            condition: group.condition,
            replaced: replaced.collect(),
            taken,
        })
    }

    fn apply(self, builder: &Builder<'ctx>) {
        let mut made: HashMap<[BasicValueEnum<'ctx>; 2], BasicValueEnum<'ctx>> = HashMap::new();
        for (taken, before) in self.taken {
            let chosen = made.entry([taken.own, taken.other]).or_insert_with(|| {
                builder.position_before(&before);
                let (own, other) = (taken.own, taken.other);
                let chosen = builder.build_select(self.condition, own, other, "");
                chosen.expect("bug in llopt: a choice between values of one type")
            });
            taken.user.set_operand(taken.index, *chosen);
        }
        for (select, stands) in self.replaced {
            select.replace_all_uses_with(&stands);
            select.erase_from_basic_block();
        }
    }
}

/// Each operand with the instruction before which it is exchanged, the first one that takes it; `None` if a value, or
/// the condition, is not there yet.
fn placed<'ctx>(
    left: Vec<Taken<'ctx>>,
    condition: BasicValueEnum<'ctx>,
    places: &HashMap<InstructionValue<'ctx>, usize>,
    instructions: &[InstructionValue<'ctx>],
) -> Option<Vec<(Taken<'ctx>, InstructionValue<'ctx>)>> {
    let mut earliest: HashMap<[BasicValueEnum<'ctx>; 2], usize> = HashMap::new();
    for taken in &left {
        let user = places[&taken.user];
        let first = earliest.entry([taken.own, taken.other]).or_insert(user);
        *first = user.min(*first);
    }
    let place_of = |value: &BasicValueEnum<'ctx>| places.get(&value.as_instruction_value()?);
    let is_early = |(values, first): (&[BasicValueEnum<'ctx>; 2], &usize)| {
        let mut made = values.iter().chain([&condition]).filter_map(place_of);
        made.all(|place| place < first)
    };
    let before = |taken: Taken<'ctx>| (taken, instructions[earliest[&[taken.own, taken.other]]]);
    let is_possible = earliest.iter().all(is_early);
    is_possible.then(|| left.into_iter().map(before).collect())
}

fn is_constant(value: BasicValueEnum<'_>) -> bool {
    match value {
        BasicValueEnum::IntValue(value) => value.is_const(),
        BasicValueEnum::FloatValue(value) => value.is_const(),
        BasicValueEnum::VectorValue(value) => value.is_const(),
        _ => false,
    }
}

fn operand<'ctx>(of: InstructionValue<'ctx>, index: u32) -> Option<BasicValueEnum<'ctx>> {
    of.get_operand(index)?.value()
}

/// Whether two instructions are the same function of their operands, of which those that differ may be any values of one type.
fn are_alike(x: InstructionValue<'_>, y: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    let is_same = |index: u32| operand(x, index) == operand(y, index);
    // A conversion, for one, has the type of its result and any other.
    let type_of = |of, index| operand(of, index).map(|value| value.get_type());
    let has_one_type = |index| type_of(x, index) == type_of(y, index);
    let is_same_function = match x.get_opcode() {
        // Masks of shuffles are no operands.
        Op::ShuffleVector => shuffle_mask(x) == shuffle_mask(y),
        Op::ExtractElement => is_same(1),
        Op::InsertElement => is_same(2),
        Op::Select => is_same(0),
        Op::ICmp => x.get_icmp_predicate() == y.get_icmp_predicate(),
        Op::FCmp => x.get_fcmp_predicate() == y.get_fcmp_predicate(),
        Op::Call => calls_alike(x, y),
        _ => true,
    };
    x != y
        && x.get_opcode() == y.get_opcode()
        && x.get_type() == y.get_type()
        && x.get_num_operands() == y.get_num_operands()
        && (0..x.get_num_operands()).all(has_one_type)
        && is_same_function
        && only_computes(x)
        && only_computes(y)
        && flags(x) == flags(y)
        && x.get_fast_math_flags().ok() == y.get_fast_math_flags().ok()
}

/// Whether two instructions call the same function, with the same arguments where it takes only constants.
fn calls_alike(x: InstructionValue<'_>, y: InstructionValue<'_>) -> bool {
    let [Some(function), Some(other)] = [x, y].map(|call| {
        let call = CallSiteValue::try_from(call).ok()?;
        call.get_called_fn_value()
    }) else {
        return false;
    };
    let immediate = Attribute::get_named_enum_kind_id("immarg");
    let is_fixed = |index: u32| {
        let place = AttributeLoc::Param(index);
        function.get_enum_attribute(place, immediate).is_some()
    };
    function == other
        && (0..function.count_params())
            .all(|index| !is_fixed(index) || operand(x, index) == operand(y, index))
}

/// What an instruction promises about its operands and its result.
fn flags(of: InstructionValue<'_>) -> [Option<bool>; 6] {
    [
        of.get_no_signed_wrap_flag().ok(),
        of.get_no_unsigned_wrap_flag().ok(),
        of.get_exact_flag().ok(),
        of.get_disjoint_flag().ok(),
        of.get_non_negative_flag().ok(),
        of.get_same_sign_flag().ok(),
    ]
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;

    /// A function with choices between two words, and between two more, that are computed by these instructions, after early
    /// exchanges; it has to be valid.
    fn choices(computed: &str) -> String {
        let text = format!(
            "define i32 @f(i1 %c, i32 %a, i32 %b, i64 %w) {{
             {computed}
             %s = select i1 %c, i32 %x, i32 %y
             %t = select i1 %c, i32 %y, i32 %x
             %s2 = select i1 %c, i32 %x2, i32 %y2
             %t2 = select i1 %c, i32 %y2, i32 %x2
             %p = sub i32 %s, %t
             %q = sub i32 %s2, %t2
             %r = mul i32 %p, %q
             ret i32 %r
             }}"
        );
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "exchanges");
        let module = context.create_module_from_ir(buffer).expect("valid text");
        exchange_early(&module);
        module.verify().expect("a valid module");
        module.print_to_string().to_string()
    }

    #[test]
    fn one_value_is_exchanged_instead_of_two_computed_from_it() {
        let after = choices(
            "%p0 = mul i32 %a, %a
             %q0 = xor i32 %b, 5
             %x = add i32 %p0, 1
             %y = add i32 %q0, 1
             %x2 = add i32 %p0, 2
             %y2 = add i32 %q0, 2",
        );
        assert!(after.contains("select i1 %c, i32 %p0, i32 %q0"), "{after}");
        assert_eq!(after.matches("select").count(), 2, "{after}");
    }

    #[test]
    fn conversions_of_different_types_are_not_alike() {
        let after = choices(
            "%p0 = mul i32 %a, %b
             %q0 = mul i64 %w, %w
             %x8 = trunc i32 %p0 to i8
             %y8 = trunc i64 %q0 to i8
             %x16 = trunc i32 %p0 to i16
             %y16 = trunc i64 %q0 to i16
             %x = zext i8 %x8 to i32
             %y = zext i8 %y8 to i32
             %x2 = zext i16 %x16 to i32
             %y2 = zext i16 %y16 to i32",
        );
        assert!(!after.contains("select i1 %c, i64"), "{after}");
        assert!(after.contains("trunc i32 %p0 to i8"), "{after}");
        assert!(after.contains("trunc i64 %q0 to i8"), "{after}");
    }
}
