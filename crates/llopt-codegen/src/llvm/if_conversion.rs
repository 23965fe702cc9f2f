//! Branches of device libraries become selects: if-conversion (Allen, Kennedy, Porterfield, Warren, "Conversion of control
//! dependence to data dependence", POPL 1983).
//!
//! A library function divides its domain, and computes each part by a branch of its own:
//!
//! ```text
//!     br |x| < 0.55, near, far                       y = the polynomial of x
//!   near: y = a polynomial of x                      z = 1 - 2 / (exp(2 |x|) + 1)
//!   far:  z = 1 - 2 / (exp(2 |x|) + 1)     →         r = select |x| < 0.55, y, z
//!   end:  r = phi [y, near], [z, far]
//! ```
//!
//! A thread of a tile kernel calls it for each of its elements. With branches these calls follow one another: a block ends at
//! each branch, so no instruction of one call hides the latency of another, and what is kept for later calls takes registers
//! meanwhile. The lanes of a warp have different elements, so nearly every warp executes both sides anyway, one after the
//! other. Selects execute both sides of all elements beside each other.
//!
//! # The rule
//!
//! A branch is converted if its two sides are single blocks that only compute, of at most [`LONGEST_SIDE`] instructions each,
//! or if one is empty and the condition compares with a number near one, which the numbers of one warp lie on both sides of.
//! Inner branches come first, so that the sides of outer ones become single blocks. Left are
//!
//! - branches around special arguments, as infinities and denormals: what they surround is hardly ever executed (`fmodf` and
//!   `powf` would take 1.3 and 1.2 times as long);
//! - loops, accesses to memory (as the tables by which large angles are reduced), and operations that the vendor's assembler
//!   replaces by code with branches (divisions and roots that are rounded correctly): these would take their rare side for
//!   arguments that they are not meant for.
//!
//! LLVM's own if-conversion (`simplifycfg`, `speculative-execution`) stops after a few instructions, and at inline assembly,
//! as it must for branches that processors predict.

use std::collections::HashMap;

use inkwell::FloatPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, IntValue,
    PhiValue,
};

use crate::llvm::block_order::only_computes;
use crate::llvm::c_api::is_pure_assembly;
use crate::llvm::instructions::{called, phis};
use crate::targets::back_end::BackEnd;

/// The instructions of a side of a branch that is converted.
const LONGEST_SIDE: usize = 24;
/// Numbers as large as this, and as small as its inverse, are near one.
const NEAR_ONE: f64 = 256.0;

/// Converts the innermost branches of all functions. Answers whether there were any: blocks that are left with one successor
/// are for LLVM to merge, after which the next ones are the innermost.
pub(crate) fn convert(module: &Module<'_>, back_end: &dyn BackEnd) -> bool {
    let builder = module.get_context().create_builder();
    let mut changed = false;
    for function in module.get_functions() {
        let blocks = function.get_basic_blocks();
        let mut entries = entries(&blocks);
        for block in blocks {
            if let Some(branch) = Branch::of(block, &entries, back_end) {
                branch.convert(&builder);
                *entries.entry(branch.end).or_default() -= 1;
                changed = true;
            }
        }
    }
    changed
}

/// How many edges lead to each block.
fn entries<'ctx>(blocks: &[BasicBlock<'ctx>]) -> HashMap<BasicBlock<'ctx>, usize> {
    let mut entries = HashMap::new();
    for terminator in blocks.iter().filter_map(|block| block.get_terminator()) {
        for to in successors(terminator) {
            *entries.entry(to).or_default() += 1;
        }
    }
    entries
}

fn successors<'ctx>(terminator: InstructionValue<'ctx>) -> impl Iterator<Item = BasicBlock<'ctx>> {
    let operands = terminator.get_operands().flatten();
    operands.filter_map(|operand| operand.block())
}

/// A conditional branch whose two sides meet again at once.
struct Branch<'ctx> {
    from: BasicBlock<'ctx>,
    terminator: InstructionValue<'ctx>,
    condition: IntValue<'ctx>,
    /// What is executed if the condition holds, and if it does not; nothing else than the end at most on one side.
    sides: [Option<BasicBlock<'ctx>>; 2],
    /// Where both sides meet.
    end: BasicBlock<'ctx>,
}

impl<'ctx> Branch<'ctx> {
    /// The branch at the end of a block, if it can be converted.
    fn of(
        from: BasicBlock<'ctx>,
        entries: &HashMap<BasicBlock<'ctx>, usize>,
        back_end: &dyn BackEnd,
    ) -> Option<Self> {
        let terminator = from.get_terminator()?;
        let is_branch = terminator.get_opcode() == InstructionOpcode::Br;
        if !is_branch || terminator.get_num_operands() != 3 {
            return None;
        }
        let BasicValueEnum::IntValue(condition) = terminator.get_operand(0)?.value()? else {
            return None;
        };
        // LLVM lists the successor of a condition that does not hold first.
        let [otherwise, then] = [1, 2].map(|index| terminator.get_operand(index)?.block());
        let [then, otherwise] = [then?, otherwise?];
        // The block to which a side leads that nothing else does.
        let leads_to = |side: BasicBlock<'ctx>| {
            let last = side.get_terminator()?;
            let mut successors = successors(last);
            let end = successors.next().filter(|_| successors.next().is_none())?;
            let is_side = entries.get(&side) == Some(&1) && is_cheap(side, back_end);
            (is_side && end != side && end != from).then_some(end)
        };
        let (sides, end) = match [leads_to(then), leads_to(otherwise)] {
            [Some(one), Some(other)] if one == other => ([Some(then), Some(otherwise)], one),
            [Some(end), _] if end == otherwise => ([Some(then), None], end),
            [_, Some(end)] if end == then => ([None, Some(otherwise)], end),
            _ => return None,
        };
        if sides.contains(&None) && !is_near_one(condition) {
            return None;
        }
        Some(Self {
            from,
            terminator,
            condition,
            sides,
            end,
        })
    }

    /// Moves both sides in front of the branch, and selects between their results.
    fn convert(&self, builder: &Builder<'ctx>) {
        builder.position_before(&self.terminator);
        for side in self.sides.into_iter().flatten() {
            let computed = side.get_instructions().filter(|it| !it.is_terminator());
            for instruction in computed.collect::<Vec<_>>() {
                instruction.remove_from_basic_block();
                builder.insert_instruction(&instruction, None);
            }
        }
        let met: Vec<PhiValue<'ctx>> = phis(self.end)
            .filter_map(|phi| PhiValue::try_from(phi).ok())
            .collect();
        for phi in met {
            self.select(builder, phi);
        }
        builder.position_before(&self.terminator);
        let _ = builder.build_unconditional_branch(self.end);
        self.terminator.erase_from_basic_block();
        // Nothing leads to the sides any more, and they lead nowhere: LLVM removes them.
        let sides = self.sides.iter().flatten();
        for last in sides.filter_map(|side| side.get_terminator()) {
            builder.position_before(&last);
            let _ = builder.build_unreachable();
            last.erase_from_basic_block();
        }
    }

    /// Replaces a phi of the block where the sides meet by one with a selected value.
    fn select(&self, builder: &Builder<'ctx>, phi: PhiValue<'ctx>) {
        let preceding = self.sides.map(|side| side.unwrap_or(self.from));
        let incoming: Vec<_> = phi.get_incomings().collect();
        let value_of = |block| {
            let from_it = incoming.iter().find(|(_, from)| *from == block);
            from_it.map(|(value, _)| *value)
        };
        let [Some(then), Some(otherwise)] = preceding.map(value_of) else {
            unreachable!("bug in llopt: a phi without a value for an edge")
        };
        builder.position_before(&self.terminator);
        let selected = match then == otherwise {
            true => then,
            false => builder
                .build_select(self.condition, then, otherwise, "")
                .expect("bug in llopt: values of a phi have one type"),
        };
        builder.position_before(&phi.as_instruction());
        let joined = builder
            .build_phi(then.get_type(), "")
            .expect("bug in llopt: a phi in front of a phi");
        for (value, from) in &incoming {
            if !preceding.contains(from) {
                joined.add_incoming(&[(value, *from)]);
            }
        }
        joined.add_incoming(&[(&selected, self.from)]);
        phi.replace_all_uses_with(&joined);
        phi.as_instruction().erase_from_basic_block();
    }
}

/// Whether a condition compares with a number of a size that the arguments of functions have.
fn is_near_one(condition: IntValue<'_>) -> bool {
    let is_near = |number: f64| (NEAR_ONE.recip()..=NEAR_ONE).contains(&number.abs());
    let compared = condition.as_instruction_value();
    let compared = compared.filter(|it| it.get_opcode() == InstructionOpcode::FCmp);
    compared.is_some_and(|it| {
        let is_equality = matches!(
            it.get_fcmp_predicate(),
            Some(
                FloatPredicate::OEQ
                    | FloatPredicate::UEQ
                    | FloatPredicate::ONE
                    | FloatPredicate::UNE
            )
        );
        let mut operands = it
            .get_operands()
            .flatten()
            .filter_map(|operand| operand.value());
        let has_near = operands.any(|operand| match operand {
            BasicValueEnum::FloatValue(value) => value
                .get_constant()
                .is_some_and(|(number, _)| is_near(number)),
            _ => false,
        });
        has_near && !is_equality
    })
}

/// Whether a block only computes, and not much.
fn is_cheap(block: BasicBlock<'_>, back_end: &dyn BackEnd) -> bool {
    let computed = block.get_instructions().filter(|it| !it.is_terminator());
    let computed: Vec<_> = computed.take(LONGEST_SIDE + 1).collect();
    computed.len() <= LONGEST_SIDE
        && computed.into_iter().all(|instruction| {
            let name = called(instruction);
            let has_branches = name.is_some_and(|name| back_end.has_branches(&name));
            (only_computes(instruction) || is_own_assembly(instruction)) && !has_branches
        })
}

/// Whether an instruction is assembly that a lane executes by itself, and that only computes.
fn is_own_assembly(instruction: InstructionValue<'_>) -> bool {
    let Ok(call) = CallSiteValue::try_from(instruction) else {
        return false;
    };
    let convergent = Attribute::get_named_enum_kind_id("convergent");
    let is_shared = call.get_enum_attribute(AttributeLoc::Function, convergent);
    is_shared.is_none() && is_pure_assembly(instruction)
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::values::{AnyValue, FunctionValue};
    use llopt_target::Target;
    use proptest::prelude::*;

    use super::*;
    use crate::llvm::machine::Machine;
    use crate::llvm::optimize;
    use crate::targets::back_end::back_end;

    fn read<'ctx>(context: &'ctx Context, text: &str) -> Module<'ctx> {
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "branches");
        context.create_module_from_ir(buffer).expect("valid text")
    }

    fn target() -> Target {
        "cuda:90".parse().expect("a target")
    }

    fn run(module: &Module<'_>, passes: &str) {
        let machine = Machine::of(target()).expect("a machine");
        optimize::run(module, &machine, passes).expect("passes of LLVM");
    }

    /// Converts what can be, as the preparation of libraries does.
    fn convert_all(module: &Module<'_>) {
        while convert(module, &*back_end(target())) {
            module.verify().expect("a valid module");
            run(module, "function(simplifycfg)");
        }
    }

    fn converted(body: &str) -> String {
        let text = format!(
            "define float @f(float %x, i1 %c, i1 %d, ptr %p) {{\n{body}\n}}
             declare float @llvm.nvvm.sqrt.rn.f(float)
             declare float @llvm.nvvm.ex2.approx.ftz.f32(float)"
        );
        let context = Context::create();
        let module = read(&context, &text);
        convert_all(&module);
        let function = module.get_function("f").expect("the function");
        function.print_to_string().to_string()
    }

    /// A branch with these instructions on its sides, which compute `%a` and `%b`.
    fn two_sides(a: &str, b: &str) -> String {
        format!(
            "br i1 %c, label %near, label %far
             near: {a} br label %end
             far: {b} br label %end
             end: %r = phi float [ %a, %near ], [ %b, %far ] ret float %r"
        )
    }

    #[test]
    fn two_sides_that_compute_become_a_select() {
        let a = "%a = fmul float %x, %x\n";
        let b = "%e = call float @llvm.nvvm.ex2.approx.ftz.f32(float %x)
                 %b = call float asm \"rcp.approx.ftz.f32 $0,$1;\", \"=f,f\"(float %e)\n";
        let after = converted(&two_sides(a, b));
        assert_eq!(after.matches("select i1 %c").count(), 1, "{after}");
        assert!(!after.contains("br "), "{after}");
    }

    #[test]
    fn inner_branches_come_first() {
        let after = converted(
            "br i1 %c, label %near, label %far
             near: %a = fmul float %x, %x br label %end
             far: %s = fadd float %x, 1.0 br i1 %d, label %one, label %other
             one: %u = fmul float %s, %x br label %joined
             other: %v = fsub float %s, %x br label %joined
             joined: %b = phi float [ %u, %one ], [ %v, %other ] br label %end
             end: %r = phi float [ %a, %near ], [ %b, %joined ] ret float %r",
        );
        assert_eq!(after.matches("select").count(), 2, "{after}");
        assert!(!after.contains("br "), "{after}");
    }

    #[test]
    fn sides_that_may_not_be_executed_always_stay() {
        let a = "%a = fmul float %x, %x\n";
        for b in [
            "%b = load float, ptr %p\n",
            "%b = call float @llvm.nvvm.sqrt.rn.f(float %x)\n",
            "%b = call float asm sideeffect \"mov.f32 $0,$1;\", \"=f,f\"(float %x)\n",
            "%b = call float asm \"mov.f32 $0,$1;\", \"=f,f,~{memory}\"(float %x)\n",
            "%b = call float asm \"shfl $0,$1;\", \"=f,f\"(float %x) convergent\n",
        ] {
            let after = converted(&two_sides(a, b));
            assert!(after.contains("br i1 %c"), "{after}");
        }
    }

    /// A branch around one side if `%x` compares so.
    fn one_side(comparison: &str) -> String {
        // LLVM itself converts short ones.
        format!(
            "%a = fmul float %x, %x
             %s = fcmp {comparison}
             br i1 %s, label %special, label %end
             special: %u = fmul float %a, %x %v = fadd float %u, %a %w = fmul float %v, %u
                      %b = fadd float %w, %v br label %end
             end: %r = phi float [ %a, %0 ], [ %b, %special ] ret float %r"
        )
    }

    #[test]
    fn one_side_is_converted_if_its_condition_is_near_one() {
        let after = converted(&one_side("ogt float %x, 2.0"));
        assert!(!after.contains("br "), "{after}");
        for special in [
            "ogt float %x, 0x7FF0000000000000",
            "oeq float %x, 1.0",
            "uno float %x, 0.0",
        ] {
            let after = converted(&one_side(special));
            assert!(after.contains("br i1 %s"), "{after}");
        }
    }

    #[test]
    fn long_sides_stay() {
        let long: String = (0..=LONGEST_SIDE)
            .map(|place| format!("%a{} = fmul float %a{place}, %x\n", place + 1))
            .collect();
        let long = long
            .replace("%a0,", "%x,")
            .replace(&format!("%a{} =", LONGEST_SIDE + 1), "%a =");
        let after = converted(&two_sides(&long, "%b = fadd float %x, 1.0\n"));
        assert!(after.contains("br i1 %c"), "{after}");
    }

    /// Text of a function from random bits: nests of branches, some of which join in one block with others.
    struct Writer<'a> {
        bits: &'a mut dyn Iterator<Item = u8>,
        text: String,
        names: usize,
        /// The block that is written.
        block: String,
    }

    impl Writer<'_> {
        fn bits(&mut self) -> u8 {
            self.bits.next().unwrap_or(0)
        }

        fn name(&mut self) -> usize {
            self.names += 1;
            self.names
        }

        fn begin(&mut self, block: &str) {
            self.text += &format!("{block}:\n");
            block.clone_into(&mut self.block);
        }

        /// A value computed from another one.
        fn compute(&mut self, from: &str) -> String {
            let (bits, name) = (self.bits(), self.name());
            let operation = ["add", "sub", "mul", "xor", "lshr", "or"][usize::from(bits) % 6];
            let other = ["%p", "%q", "3"][usize::from(bits / 8) % 3];
            // More than 31 would be poison.
            let other = if operation == "lshr" { "3" } else { other };
            self.text += &format!("  %v{name} = {operation} i32 {from}, {other}\n");
            format!("%v{name}")
        }

        /// What follows a value, and the value at its end.
        fn region(&mut self, depth: usize, from: &str) -> String {
            let from = self.compute(from);
            let kind = self.bits() % 4;
            if depth == 0 || kind == 0 {
                return from;
            }
            let name = self.name();
            let mut incoming = Vec::new();
            self.text += &format!("  %f{name} = sitofp i32 {from} to float\n");
            self.text += &format!("  %c{name} = fcmp olt float %f{name}, 7.0\n");
            let no = if kind == 1 { "end" } else { "no" };
            if kind == 1 {
                incoming.push(format!("[ {from}, %{} ]", self.block));
            }
            self.text += &format!("  br i1 %c{name}, label %yes{name}, label %{no}{name}\n");
            self.begin(&format!("yes{name}"));
            let value = self.region(depth - 1, &from);
            incoming.push(format!("[ {value}, %{} ]", self.block));
            if kind == 3 {
                // A third way to the same end.
                let third = self.name();
                self.text += &format!("  %c{third} = icmp ugt i32 {value}, %p\n");
                self.text += &format!("  br i1 %c{third}, label %end{name}, label %third{third}\n");
                self.begin(&format!("third{third}"));
                let value = self.compute(&value);
                incoming.push(format!("[ {value}, %{} ]", self.block));
            }
            self.text += &format!("  br label %end{name}\n");
            if kind != 1 {
                self.begin(&format!("no{name}"));
                let value = self.region(depth - 1, &from);
                incoming.push(format!("[ {value}, %{} ]", self.block));
                self.text += &format!("  br label %end{name}\n");
            }
            self.begin(&format!("end{name}"));
            let joined = format!("%j{name}");
            self.text += &format!("  {joined} = phi i32 {}\n", incoming.join(", "));
            self.region(depth - 1, &joined)
        }
    }

    /// A function, and calls of it with constants that LLVM can compute.
    fn program(bits: &[u8]) -> String {
        let mut bits = bits.iter().copied();
        let mut writer = Writer {
            bits: &mut bits,
            text: "define internal i32 @f(i32 %p, i32 %q) {\n".to_owned(),
            names: 0,
            block: String::new(),
        };
        writer.begin("entry");
        let result = writer.region(4, "%p");
        let mut text = writer.text + &format!("  ret i32 {result}\n}}\n");
        for (call, (p, q)) in [(0, 0), (1, 9), (-7, 5), (1000, -3), (77, 78), (-2, -9)]
            .into_iter()
            .enumerate()
        {
            text += &format!(
                "define i32 @call{call}() {{ %r = call i32 @f(i32 {p}, i32 {q}) ret i32 %r }}\n"
            );
        }
        text
    }

    /// The results of the calls, computed by LLVM.
    fn results(module: &Module<'_>) -> Vec<String> {
        run(
            module,
            "cgscc(inline),function(instcombine,simplifycfg,instcombine)",
        );
        let calls = module.get_functions();
        let calls = calls.filter(|function| function.get_name().to_bytes().starts_with(b"call"));
        let returned = |call: FunctionValue<'_>| {
            let last = call.get_last_basic_block()?.get_terminator()?;
            Some(last.print_to_string().to_string())
        };
        calls.filter_map(returned).collect()
    }

    proptest! {
        // Requires: structured branches that only compute. Ensures: the same results.
        #[test]
        fn converted_functions_compute_the_same(bits in prop::collection::vec(any::<u8>(), 4..200)) {
            let text = program(&bits);
            let context = Context::create();
            let (before, after) = (read(&context, &text), read(&context, &text));
            convert_all(&after);
            let expected = results(&before);
            prop_assert!(expected.iter().all(|returned| !returned.contains('%')), "{:?}", expected);
            prop_assert_eq!(expected, results(&after));
        }
    }
}
