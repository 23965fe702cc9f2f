//! Sums and products of scalars that become one vector are computed as a vector.
//!
//! In lowered code each register of a tensor is a value, and a matrix instruction takes a vector of them. What is computed
//! between two of these, as where attention scales its accumulator or weights are unpacked, is computed one by one:
//!
//! ```text
//!   x0 = fmul a0, s                            b = <s, s>
//!   x1 = fmul a1, s                            x = fmul a, b
//!   v  = insertelement poison, x0, 0     →
//!   x  = insertelement v, x1, 1
//! ```
//!
//! A back end selects instructions for pairs from the vector, where the target has them: of two numbers of 16 bits in one
//! register, of singles in two neighbouring ones.
//!
//! # The rule
//!
//! The elements of a vector that a chain of insertions puts together are a *tree* if all are the same operation on floating-point
//! numbers, in one block, and nothing else takes them. Each operand of all of them is a list of values in its turn:
//!
//! | operand | costs a pair of 16 bits | a pair of singles |
//! |---|---:|---:|
//! | one value for all, or constants | 0 | 0 |
//! | the elements of one vector, in order | 0 | 0 |
//! | a tree | what its operands cost, less 1 | the same |
//! | values that nothing else takes, which are put together | 1 | 0 |
//! | anything else, which is put together | 1 | 1 |
//!
//! For each pair the vector saves one operation and, of 16 bits, one instruction that packs the results. A tree is computed as a
//! vector if it saves more than its operands cost. (LLVM computes singles in the registers in which an instruction takes them, if
//! only one does.)
//!
//! Vectors of singles are those that an instruction takes: matrix fragments. What a loop adds to an accumulator of its own is
//! not put together, as each sum goes on in a phi. So a tree of singles may also begin at the other end: where the elements of a
//! vector that an instruction makes are all taken by the same operations, up to those whose results leave the block or become
//! arguments of functions such as `exp2` and `max`, these are computed as a vector and taken apart again, which is free.
//!
//! The vector is computed where it is put together, since LLVM's scheduler starts from the order of instructions.
//!
//! # Alternatives
//!
//! *LLVM's search for pairs* (`slp-vectorizer`) finds the same, and others: it begins at all insertions, stores, comparisons and
//! phis, tries their values in several orders, and prices the tree of each. On matrix products for
//! AMD it took 17 to 42 % of all instructions in front of the back end. It runs where other pairs may be left (`optimize`).
//!
//! *All vectors of singles.* What is loaded and stored has operands in common with sums over the same row, and a part of it
//! as vectors of four leaves the search other pairs: a backward pass of layer normalisation has 1.04 times as many instructions.

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, VectorType};
use inkwell::values::{
    BasicValue, BasicValueEnum, FastMathFlags, FloatValue, InstructionOpcode, InstructionValue,
    VectorValue,
};

use crate::llvm::insertions::{erase_chain, extraction, operand, put_together, taken_apart};
use crate::llvm::instructions::users;

/// The bits of a single.
const SINGLE: u32 = 32;

/// The places of the instructions of a block.
type Order<'ctx> = HashMap<InstructionValue<'ctx>, usize>;

/// The same operation on the elements of vectors.
struct Tree<'ctx> {
    opcode: InstructionOpcode,
    flags: FastMathFlags,
    /// The operation on each element.
    elements: Vec<InstructionValue<'ctx>>,
    operands: [Operand<'ctx>; 2],
}

/// An operand of all elements.
enum Operand<'ctx> {
    /// One vector has them, in order.
    Whole(VectorValue<'ctx>),
    Tree(Box<Tree<'ctx>>),
    /// Values that have to be put together.
    Scattered(Vec<FloatValue<'ctx>>),
}

/// Computes vectors of floating-point numbers as vectors, where that saves instructions on a target that has instructions for
/// pairs of 16 bits, and of singles if it `packs_singles`.
pub(crate) fn combine(module: &Module<'_>, packs_singles: bool) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let together = |last| put_together(last).map(|elements| (last, elements));
            let chains: Vec<_> = block.get_instructions().filter_map(together).collect();
            let numbered = block.get_instructions().enumerate();
            let order: Order<'_> = numbered
                .map(|(place, instruction)| (instruction, place))
                .collect();
            for (last, elements) in chains {
                let Some(bits) = packed_bits(&elements, packs_singles) else {
                    continue;
                };
                if bits == SINGLE && !users(last).flatten().all(is_call) {
                    continue;
                }
                let tree = Tree::of(&elements, block, bits);
                if let Some(tree) = tree.filter(|tree| tree.cost(bits) < packing(bits)) {
                    tree.replace(last, &builder, &order);
                }
            }
            if !packs_singles {
                continue;
            }
            let taken: Vec<_> = taken_singles(block).collect();
            for elements in taken {
                let last = passed_on(elements, block, &order);
                if let Some(tree) = last.and_then(|last| Tree::with(last, block, SINGLE)) {
                    tree.take_apart(&builder, &order);
                }
            }
        }
    }
}

/// The bits of numbers of which pairs are computed in one instruction, if these are such numbers.
fn packed_bits(elements: &[BasicValueEnum<'_>], packs_singles: bool) -> Option<u32> {
    let BasicValueEnum::FloatValue(first) = elements.first()? else {
        return None;
    };
    let bits = first.get_type().get_bit_width();
    let is_packed = bits == 16 || bits == SINGLE && packs_singles;
    (is_packed && elements.len().is_multiple_of(2)).then_some(bits)
}

/// The vectors of singles that an instruction makes and of which a block takes elements, as the elements in order.
fn taken_singles<'ctx>(
    block: BasicBlock<'ctx>,
) -> impl Iterator<Item = Vec<InstructionValue<'ctx>>> {
    let mut taken: Vec<(VectorValue<'ctx>, Vec<InstructionValue<'ctx>>)> = Vec::new();
    let mut places: HashMap<VectorValue<'ctx>, usize> = HashMap::new();
    for instruction in block.get_instructions() {
        if let Some((vector, place)) = extraction(instruction)
            && is_single(instruction)
            && vector.as_instruction_value().is_some_and(is_call)
        {
            let number = *places.entry(vector).or_insert_with(|| {
                taken.push((vector, Vec::new()));
                taken.len() - 1
            });
            // Elements that are taken in another order, or again, are not what is looked for.
            if taken[number].1.len() == place {
                taken[number].1.push(instruction);
            }
        }
    }
    let whole = |(vector, elements): &(VectorValue<'ctx>, Vec<_>)| {
        elements.len() == vector.get_type().get_size() as usize && elements.len().is_multiple_of(2)
    };
    taken
        .into_iter()
        .filter(whole)
        .map(|(_, elements)| elements)
}

/// Whether this may be a matrix instruction, of those that take and make vectors of singles.
fn is_call(instruction: InstructionValue<'_>) -> bool {
    instruction.get_opcode() == InstructionOpcode::Call
}

fn is_single(instruction: InstructionValue<'_>) -> bool {
    matches!(instruction.get_type(), AnyTypeEnum::FloatType(of) if of.get_bit_width() == SINGLE)
}

/// The last of the operations that take these elements one by one, if only phis, other blocks and calls, which are for one
/// number each, take their results, in the block behind all of these operations.
fn passed_on<'ctx>(
    taken: Vec<InstructionValue<'ctx>>,
    block: BasicBlock<'ctx>,
    order: &Order<'ctx>,
) -> Option<Vec<InstructionValue<'ctx>>> {
    let mut last = None;
    let mut elements = taken;
    while let Some(next) = next_of(&elements, block) {
        elements.clone_from(&next);
        last = Some(next);
    }
    let last = last?;
    let end = last.iter().filter_map(|element| order.get(element)).max();
    let leaves = |user: InstructionValue<'ctx>| {
        user.get_opcode() == InstructionOpcode::Phi
            || user.get_parent() != Some(block)
            || is_call(user) && order.get(&user) > end
    };
    let is_last = |element: &InstructionValue<'ctx>| users(*element).flatten().all(leaves);
    last.iter().all(is_last).then_some(last)
}

/// The one operation of the block that takes each of these values, if it is the same for all.
fn next_of<'ctx>(
    values: &[InstructionValue<'ctx>],
    block: BasicBlock<'ctx>,
) -> Option<Vec<InstructionValue<'ctx>>> {
    let only = |value: &InstructionValue<'ctx>| {
        let mut users = users(*value);
        users.next().filter(|_| users.next().is_none())?
    };
    let next: Vec<_> = values.iter().map(only).collect::<Option<_>>()?;
    let opcode = next.first()?.get_opcode();
    let distinct: HashSet<_> = next.iter().collect();
    let is_one = |user: &InstructionValue<'ctx>| {
        user.get_opcode() == opcode && user.get_parent() == Some(block)
    };
    (is_computed(opcode) && distinct.len() == next.len() && next.iter().all(is_one)).then_some(next)
}

/// Whether this is an operation of which there are forms for pairs.
fn is_computed(opcode: InstructionOpcode) -> bool {
    use InstructionOpcode as Op;
    matches!(opcode, Op::FAdd | Op::FSub | Op::FMul)
}

/// The instructions that put a pair together.
fn packing(bits: u32) -> i32 {
    i32::from(bits == 16)
}

impl<'ctx> Tree<'ctx> {
    /// The operation of which these values are the results, in one block.
    fn of(
        values: &[BasicValueEnum<'ctx>],
        block: BasicBlock<'ctx>,
        bits: u32,
    ) -> Option<Tree<'ctx>> {
        let elements = values.iter().map(|value| value.as_instruction_value());
        let elements: Vec<_> = elements.collect::<Option<_>>()?;
        let is_taken_once = |element: &InstructionValue<'ctx>| users(*element).count() == 1;
        if !elements.iter().all(is_taken_once) {
            return None;
        }
        Tree::with(elements, block, bits)
    }

    /// That with these elements, of which anything may take the results.
    fn with(
        elements: Vec<InstructionValue<'ctx>>,
        block: BasicBlock<'ctx>,
        bits: u32,
    ) -> Option<Tree<'ctx>> {
        let first = *elements.first()?;
        let opcode = first.get_opcode();
        if !is_computed(opcode) {
            return None;
        }
        let flags = first.get_fast_math_flags().ok()?;
        let is_part = |element: &InstructionValue<'ctx>| {
            element.get_opcode() == opcode
                && element.get_parent() == Some(block)
                && element.get_fast_math_flags() == Ok(flags)
        };
        if !elements.iter().all(is_part) {
            return None;
        }
        let mut columns = [Vec::new(), Vec::new()];
        for element in &elements {
            let [mut x, mut y] = [operand(*element, 0)?, operand(*element, 1)?];
            let likeness = |[x, y]: [BasicValueEnum<'ctx>; 2]| {
                let first = columns.each_ref().map(|column| column.first().copied());
                first[0].map_or(0, |of| alike(of, x)) + first[1].map_or(0, |of| alike(of, y))
            };
            if opcode != InstructionOpcode::FSub && likeness([y, x]) > likeness([x, y]) {
                (x, y) = (y, x);
            }
            columns[0].push(x);
            columns[1].push(y);
        }
        let [x, y] = columns.map(|column| Operand::of(&column, block, bits));
        let operands = [x?, y?];
        Some(Tree {
            opcode,
            flags,
            elements,
            operands,
        })
    }

    /// The instructions for a pair beyond those of its elements.
    fn cost(&self, bits: u32) -> i32 {
        let operands = self.operands.iter().map(|operand| operand.cost(bits));
        operands.sum::<i32>() - 1
    }

    /// Computes the tree instead of the elements that a chain of insertions puts together.
    fn replace(&self, last: InstructionValue<'ctx>, builder: &Builder<'ctx>, order: &Order<'ctx>) {
        let Some(vector) = self
            .build_before(builder, order, last)
            .as_instruction_value()
        else {
            return;
        };
        last.replace_all_uses_with(&vector);
        erase_chain(last);
        self.erase();
    }

    /// Computes the tree instead of its elements, which are taken out of it again.
    fn take_apart(&self, builder: &Builder<'ctx>, order: &Order<'ctx>) {
        let vector = self.build(builder, order);
        let index = vector.get_type().get_context().i32_type();
        for (place, element) in self.elements.iter().enumerate() {
            let place = index.const_int(place as u64, false);
            let taken = builder.build_extract_element(vector, place, "");
            let taken = taken.expect("bug in llopt: an element of the vector");
            let taken = taken.as_instruction_value();
            element.replace_all_uses_with(&taken.expect("bug in llopt: an element of a result"));
        }
        self.erase();
    }

    /// Computes the tree, each operation as soon as the last one of its elements is there.
    fn build(&self, builder: &Builder<'ctx>, order: &Order<'ctx>) -> VectorValue<'ctx> {
        let elements = self.elements.iter().copied();
        let last = elements.max_by_key(|element| order.get(element));
        let next = last.and_then(|last| last.get_next_instruction());
        let next = next.expect("bug in llopt: a block ends with another instruction");
        self.build_before(builder, order, next)
    }

    /// The same before an instruction behind all elements.
    fn build_before(
        &self,
        builder: &Builder<'ctx>,
        order: &Order<'ctx>,
        next: InstructionValue<'ctx>,
    ) -> VectorValue<'ctx> {
        let [x, y] = [0, 1].map(|index| self.operands[index].build(builder, order, next));
        builder.position_before(&next);
        if let Some(location) = self.elements[0].get_debug_location() {
            builder.set_current_debug_location(location);
        }
        let made = match self.opcode {
            InstructionOpcode::FAdd => builder.build_float_add(x, y, ""),
            InstructionOpcode::FSub => builder.build_float_sub(x, y, ""),
            _ => builder.build_float_mul(x, y, ""),
        };
        let made = made.expect("bug in llopt: operands of one type");
        if let Some(instruction) = made.as_instruction_value() {
            instruction
                .set_fast_math_flags(self.flags)
                .expect("bug in llopt: an operation on floating-point numbers");
        }
        made
    }

    /// Erases the elements, which nothing takes any more.
    fn erase(&self) {
        for element in &self.elements {
            element.erase_from_basic_block();
        }
        for operand in &self.operands {
            if let Operand::Tree(tree) = operand {
                tree.erase();
            }
        }
    }
}

impl<'ctx> Operand<'ctx> {
    fn of(
        values: &[BasicValueEnum<'ctx>],
        block: BasicBlock<'ctx>,
        bits: u32,
    ) -> Option<Operand<'ctx>> {
        if let Some(whole) = taken_apart(values) {
            return Some(Operand::Whole(whole));
        }
        let scattered = values.iter().map(|value| match value {
            BasicValueEnum::FloatValue(value) => Some(*value),
            _ => None,
        });
        let scattered = Operand::Scattered(scattered.collect::<Option<_>>()?);
        let tree = Tree::of(values, block, bits);
        Some(
            match tree.filter(|tree| tree.cost(bits) < scattered.cost(bits)) {
                Some(tree) => Operand::Tree(Box::new(tree)),
                None => scattered,
            },
        )
    }

    fn cost(&self, bits: u32) -> i32 {
        match self {
            Operand::Whole(_) => 0,
            Operand::Tree(tree) => tree.cost(bits),
            Operand::Scattered(values) if is_free(values) => 0,
            Operand::Scattered(values) if bits == SINGLE && values.iter().all(is_taken_here) => 0,
            Operand::Scattered(_) => 1,
        }
    }

    /// The vector, which is put together before an instruction if it is not there.
    fn build(
        &self,
        builder: &Builder<'ctx>,
        order: &Order<'ctx>,
        next: InstructionValue<'ctx>,
    ) -> VectorValue<'ctx> {
        let values = match self {
            Operand::Whole(vector) => return *vector,
            Operand::Tree(tree) => return tree.build(builder, order),
            Operand::Scattered(values) => values,
        };
        builder.position_before(&next);
        if values.iter().all(|value| value.is_const()) {
            return VectorType::const_vector(values);
        }
        let of = values[0].get_type().vec_type(values.len() as u32);
        let index = of.get_context().i32_type();
        let insert = |vector: VectorValue<'ctx>, (place, value): (usize, &FloatValue<'ctx>)| {
            let place = index.const_int(place as u64, false);
            let vector = builder.build_insert_element(vector, *value, place, "");
            vector.expect("bug in llopt: an element of the vector's type")
        };
        if are_equal(values) {
            let first = insert(of.get_poison(), (0, &values[0]));
            let of_first = index.vec_type(values.len() as u32).const_zero();
            let splat = builder.build_shuffle_vector(first, of.get_poison(), of_first, "");
            return splat.expect("bug in llopt: a mask of as many elements");
        }
        values.iter().enumerate().fold(of.get_poison(), insert)
    }
}

/// How much alike two values are: sums and products have their operands in any order, and those of all elements are put in
/// one in which they are most alike.
fn alike<'ctx>(x: BasicValueEnum<'ctx>, y: BasicValueEnum<'ctx>) -> u32 {
    if x == y {
        return 2;
    }
    let opcode = |value: BasicValueEnum<'ctx>| Some(value.as_instruction_value()?.get_opcode());
    u32::from(opcode(x) == opcode(y))
}

/// Whether one instruction takes a value, which then may be computed in the register that this one wants. Phis take it
/// at the end of a block.
fn is_taken_here(value: &FloatValue<'_>) -> bool {
    value.as_instruction_value().is_some_and(|value| {
        let users = users(value).flatten();
        let others = users.filter(|user| user.get_opcode() != InstructionOpcode::Phi);
        others.count() == 1
    })
}

/// Whether values take no instructions to put together: constants, or one value for all.
fn is_free(values: &[FloatValue<'_>]) -> bool {
    are_equal(values) || values.iter().all(|value| value.is_const())
}

fn are_equal(values: &[FloatValue<'_>]) -> bool {
    values.iter().all(|value| *value == values[0])
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    /// The function's instructions after vectors are computed as vectors, if LLVM accepts them.
    fn combined(text: &str, packs_singles: bool) -> String {
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        super::combine(&module, packs_singles);
        module.verify().unwrap();
        module.print_to_string().to_string()
    }

    const SCALED: &str = "declare <2 x float> @product(<2 x float>)
     define <2 x float> @f(<2 x float> %a, float %s) {
         %a0 = extractelement <2 x float> %a, i64 0
         %a1 = extractelement <2 x float> %a, i64 1
         %x0 = fmul contract float %a0, %s
         %x1 = fmul contract float %a1, %s
         %v = insertelement <2 x float> poison, float %x0, i64 0
         %x = insertelement <2 x float> %v, float %x1, i64 1
         %d = call <2 x float> @product(<2 x float> %x)
         ret <2 x float> %d
     }";

    #[test]
    fn a_vector_is_scaled_whole() {
        let after = combined(SCALED, true);
        assert!(after.contains("fmul contract <2 x float> %a,"), "{after}");
        assert!(!after.contains("fmul contract float"), "{after}");
    }

    #[test]
    fn factors_may_be_in_any_order() {
        let after = combined(&SCALED.replace("float %a1, %s", "float %s, %a1"), true);
        assert!(after.contains("fmul contract <2 x float> %a,"), "{after}");
    }

    #[test]
    fn singles_stay_where_there_are_no_pairs_of_them() {
        let after = combined(SCALED, false);
        assert!(
            after.contains("%x1 = fmul contract float %a1, %s"),
            "{after}"
        );
    }

    #[test]
    fn halves_are_put_together_for_two_operations_but_not_for_one() {
        let of = |second: &str| {
            let text = format!(
                "define <2 x half> @f(half %a, half %b, half %s, half %t) {{
                     %x0 = fadd half %a, {second}
                     %x1 = fadd half %b, %s
                     %y0 = fmul half %x0, %s
                     %y1 = fmul half %x1, %t
                     %v = insertelement <2 x half> poison, half %y0, i64 0
                     %y = insertelement <2 x half> %v, half %y1, i64 1
                     ret <2 x half> %y
                 }}"
            );
            combined(&text, false)
        };
        // Two operations and the result are saved, a and b, and s and t, are put together.
        let both = of("%s");
        assert!(
            both.contains("fadd <2 x half>") && both.contains("fmul <2 x half>"),
            "{both}"
        );
        // With three pairs of operands nothing is saved.
        assert!(!of("%t").contains("fadd <2 x half>"));
    }

    #[test]
    fn a_sum_that_a_loop_carries_is_a_vector() {
        let text = "declare <2 x float> @product()
            define void @f(float %s) {
            entry:
              br label %loop
            loop:
              %a0 = phi float [ 0.0, %entry ], [ %b0, %loop ]
              %a1 = phi float [ 0.0, %entry ], [ %b1, %loop ]
              %d = call <2 x float> @product()
              %d0 = extractelement <2 x float> %d, i64 0
              %d1 = extractelement <2 x float> %d, i64 1
              %x0 = fmul float %d0, %s
              %x1 = fmul float %d1, %s
              %b0 = fadd float %a0, %x0
              %b1 = fadd float %x1, %a1
              br label %loop
            }";
        let after = combined(text, true);
        assert!(after.contains("fmul <2 x float> %d,"), "{after}");
        assert!(after.contains("fadd <2 x float>"), "{after}");
        assert!(!after.contains("fadd float"), "{after}");
        // What the block takes itself is not a vector afterwards.
        let taken = text.replace(
            "br label %loop\n            }",
            "store float %b0, ptr null\n br label %loop }",
        );
        assert!(!combined(&taken, true).contains("fadd <2 x float>"));
    }

    #[test]
    fn results_that_are_taken_before_all_are_computed_stay_scalars() {
        let of = |first: &str, second: &str| {
            let text = format!(
                "declare <2 x float> @product()
                declare float @llvm.exp2.f32(float)
                define void @f(float %s) {{
                  %d = call <2 x float> @product()
                  %d0 = extractelement <2 x float> %d, i64 0
                  %d1 = extractelement <2 x float> %d, i64 1
                  %x0 = fmul float %d0, %s
                  {first}
                  {second}
                  %e1 = call float @llvm.exp2.f32(float %x1)
                  %e = fadd float %e0, %e1
                  store float %e, ptr null
                  ret void
                }}"
            );
            combined(&text, true)
        };
        let (taken, computed) = (
            "%e0 = call float @llvm.exp2.f32(float %x0)",
            "%x1 = fmul float %d1, %s",
        );
        assert!(of(computed, taken).contains("fmul <2 x float>"));
        assert!(!of(taken, computed).contains("fmul <2 x float>"));
    }

    #[test]
    fn what_something_else_takes_stays_a_scalar() {
        let stored = "store float %x0, ptr null\n ret";
        let after = combined(&SCALED.replace("ret", stored), true);
        assert!(!after.contains("fmul contract <2 x float>"), "{after}");
    }
}
