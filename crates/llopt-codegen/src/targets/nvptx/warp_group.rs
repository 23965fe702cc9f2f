//! `wgmma`: products of a warp group.
//!
//! PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
//!
//! # One piece of assembly
//!
//! A product is one piece of inline assembly, from `wgmma.fence` over all its `mma_async` to `commit_group`, and
//! `wait_group` if the program needs the result at once. This excludes three hazards:
//!
//! - *A register operand written after the fence.* The fence orders writes of registers before it with the products
//!   after it. If it were a separate piece, LLVM could compute a fragment of A, or copy an accumulator into the
//!   register that the instruction names, between the two. All operands of the assembly are in registers before its
//!   first instruction.
//! - *Something between two products.* No instruction between them defines a register; ptxas would then wait for all
//!   products (its messages C7510, C7514).
//! - *An accumulator read before the wait.* The wait takes the registers of the results and returns others: a read of
//!   the result depends on the wait.
//!
//! # Descriptors
//!
//! The descriptors of an operand's instructions differ by constants. Loops read operands that do not change in them, and
//! LLVM would compute the descriptors of these before the loop: two registers for each instruction, dozens in a loop
//! with several products, which are then spilled. So the assembly takes the field of the address, one register for each
//! operand, and adds the constants itself; ptxas has them in uniform registers, as the instruction takes them.
//!
//! # Results
//!
//! A result that is not added to needs no registers of zeros: it is only an output, and the first product is told not
//! to add.

use inkwell::types::BasicTypeEnum;

use super::Nvptx;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{Adds, FirstOperand, GroupProduct, WarpGroupHooks};

/// The letter of a register for values of a type.
fn class(of: BasicTypeEnum<'_>) -> &'static str {
    match of {
        BasicTypeEnum::FloatType(float) if float.get_bit_width() == 32 => "f",
        BasicTypeEnum::FloatType(float) if float.get_bit_width() == 64 => "d",
        BasicTypeEnum::FloatType(_) => "h",
        BasicTypeEnum::IntType(int) => match int.get_bit_width() {
            1 => "b",
            64 => "l",
            bits if bits <= 16 => "h",
            _ => "r",
        },
        _ => "r",
    }
}

/// Operands of a piece of assembly, each value once.
struct Operands<'ctx> {
    first: usize,
    values: Vec<V<'ctx>>,
}

impl<'ctx> Operands<'ctx> {
    /// The name of a value in the text.
    fn name(&mut self, value: V<'ctx>) -> String {
        let known = self.values.iter().position(|other| *other == value);
        let index = known.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        format!("${}", self.first + index)
    }
}

/// The descriptors of a piece of assembly, each once.
#[derive(Default)]
struct Descriptors {
    known: Vec<(String, u64)>,
}

impl Descriptors {
    /// The name of the descriptor with an address, which has a name, and a constant.
    fn name(&mut self, address: String, constant: u64) -> String {
        let wanted = (address, constant);
        let known = self.known.iter().position(|other| *other == wanted);
        let index = known.unwrap_or_else(|| {
            self.known.push(wanted);
            self.known.len() - 1
        });
        format!("matrix{index}")
    }

    /// The instructions that compute them.
    fn text(&self) -> String {
        let mut text = String::new();
        for (index, (address, constant)) in self.known.iter().enumerate() {
            let (low, high) = (constant & u64::from(u32::MAX), constant >> u32::BITS);
            text.push_str(&format!(
                "\t.reg .b32 low{index};\n\t.reg .b64 matrix{index};\n\tadd.s32 low{index}, {address}, {low};\n\
                 \tmov.b64 matrix{index}, {{low{index}, {high}}};\n"
            ));
        }
        text
    }
}

/// `{$first, …}`.
fn list(names: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", names.collect::<Vec<_>>().join(", "))
}

/// The immediates after the predicate: signs, and the order of elements in memory.
fn immediates(product: &GroupProduct<'_>, first: &FirstOperand<'_>) -> String {
    let order = |transposed: bool| format!(", {}", u8::from(transposed));
    let second = order(product.second_transposed);
    match (product.types.integers, product.types.bits, first) {
        (true, ..) => String::new(),
        (false, 16, FirstOperand::Memory(_)) => {
            format!(", 1, 1{}{second}", order(product.first_transposed))
        }
        (false, 16, FirstOperand::Registers(_)) => format!(", 1, 1{second}"),
        (false, ..) => ", 1, 1".to_owned(),
    }
}

/// The accumulators of a product, which are results of its text. Those that are added to occupy the registers of the results.
struct Accumulators<'ctx> {
    /// The constraints of the results.
    results: Vec<String>,
    /// For each operand that occupies a result's register the number of that.
    tied: Vec<String>,
    /// These operands.
    before: Vec<V<'ctx>>,
}

impl<'ctx> Accumulators<'ctx> {
    fn of(product: &GroupProduct<'ctx>, register: BasicTypeEnum<'ctx>) -> Self {
        let (mut results, mut tied, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for sums in &product.results {
            let new = if sums.is_some() { "=" } else { "=&" };
            for register_number in 0..product.registers {
                if let Some(sums) = sums {
                    tied.push(results.len().to_string());
                    before.push(sums[register_number]);
                }
                results.push(format!("{new}{}", class(register)));
            }
        }
        Self {
            results,
            tied,
            before,
        }
    }
}

/// The instructions that multiply, one for each step.
fn multiplications<'ctx>(
    product: &GroupProduct<'ctx>,
    operands: &mut Operands<'ctx>,
    descriptors: &mut Descriptors,
) -> String {
    let types = &product.types;
    let depth = 256 / types.bits;
    let (columns, result, first, second) =
        (product.columns, types.result, types.first, types.second);
    let mut text = String::new();
    for step in &product.steps {
        let begin = step.result * product.registers;
        let registers = list((begin..begin + product.registers).map(|i| format!("${i}")));
        let a = match &step.first {
            FirstOperand::Memory(of) => {
                let address = operands.name(of.address);
                descriptors.name(address, of.constant)
            }
            FirstOperand::Registers(words) => list(words.iter().map(|word| operands.name(*word))),
        };
        let address = operands.name(step.second.address);
        let b = descriptors.name(address, step.second.constant);
        let adds = match step.adds {
            Adds::Always => "always".to_owned(),
            Adds::Never => "never".to_owned(),
            Adds::If(condition) => operands.name(condition),
        };
        let orders = immediates(product, &step.first);
        text.push_str(&format!(
            "\twgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{result}.{first}.{second} \
             {registers}, {a}, {b}, {adds}{orders};\n"
        ));
    }
    text
}

/// The predicates with a known value that instructions name.
fn known_predicates(instructions: &str) -> String {
    let known = [("always", 1), ("never", 0)].into_iter();
    let named = known.filter(|(name, _)| instructions.contains(&format!(" {name}")));
    let text = named
        .map(|(name, value)| format!("\t.reg .pred {name};\n\tsetp.ne.b32 {name}, {value}, 0;\n"));
    text.collect()
}

impl WarpGroupHooks for Nvptx {
    fn multiply<'ctx>(&self, e: &Emitter<'ctx>, product: &GroupProduct<'ctx>) -> Vec<V<'ctx>> {
        let register: BasicTypeEnum<'ctx> = match product.types.result {
            "f32" => e.context.f32_type().into(),
            _ => e.int(32).into(),
        };
        let accumulators = Accumulators::of(product, register);
        let count = accumulators.results.len();
        let mut operands = Operands {
            first: count + accumulators.tied.len(),
            values: Vec::new(),
        };
        let mut descriptors = Descriptors::default();
        let multiplied = multiplications(product, &mut operands, &mut descriptors);
        let truths = known_predicates(&multiplied);
        let commit = if product.ends {
            "\twgmma.commit_group.sync.aligned;\n"
        } else {
            ""
        };
        let wait = if product.waits {
            "\twgmma.wait_group.sync.aligned 0;\n"
        } else {
            ""
        };
        let computed = descriptors.text();
        let text = format!(
            "{{\n{truths}{computed}\twgmma.fence.sync.aligned;\n{multiplied}{commit}{wait}\t}}"
        );
        let read = operands.values.iter().map(|value| class(value.get_type()));
        let constraints: Vec<String> = accumulators
            .results
            .into_iter()
            .chain(accumulators.tied)
            .chain(read.map(str::to_owned))
            .collect();
        e.inline_asm(
            &text,
            &constraints.join(","),
            &vec![register; count],
            &[accumulators.before, operands.values].concat(),
            AsmEffect::Together,
        )
    }

    fn wait<'ctx>(&self, e: &Emitter<'ctx>, pending: u32, registers: &[V<'ctx>]) -> Vec<V<'ctx>> {
        let types: Vec<BasicTypeEnum<'ctx>> =
            registers.iter().map(|value| value.get_type()).collect();
        let mut constraints: Vec<String> =
            types.iter().map(|of| format!("={}", class(*of))).collect();
        constraints.extend((0..registers.len()).map(|i| i.to_string()));
        e.inline_asm(
            &format!("wgmma.wait_group.sync.aligned {pending};"),
            &constraints.join(","),
            &types,
            registers,
            AsmEffect::Together,
        )
    }
}
