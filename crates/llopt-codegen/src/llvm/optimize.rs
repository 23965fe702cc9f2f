//! LLVM's optimiser over a lowered module, and the few steps before and after it.
//!
//! Before: the device libraries are linked in ([`crate::llvm::device_library`]), and words that loops carry are split
//! in the blocks that use their parts (`parts_where_taken`). After: addresses of one array are split into a common
//! base and constant offsets, and the target's back end decides where these go (`BackEnd::after_optimization`). Where
//! LLVM allocates registers, values are computed late, or once more, if they do not fit into registers (`late_values`,
//! `recomputed`), and matrix fragments of MFMA are passed on whole (`fragment_phis`).
//!
//! LLVM's own pipelines are designed for C++ programs. `default<O3>` has a hundred passes, most of which handle
//! things that lowered tile code never has: exceptions, coroutines, profiles, virtual calls, copies of memory, tail
//! calls, jumps that can be threaded, loops over scalars that could be vectors; and the first run of a pass finds
//! everything that a later run would. The `pipeline` here is `default<O3>`, in its order and with its options,
//! without every pass whose removal does not change the assembly of kernels of all kinds, for both vendors (where the
//! assembly does differ, in 31 of 771 kernels, it has 0.927 to 1.004 times as many instructions). Passes that few
//! kernels need are kept, too: device libraries are inlined and their unused functions removed, variables in memory
//! become values, loops of few iterations are unrolled.
//!
//! Some passes pay for one vendor alone (`VendorPasses`). For NVIDIA instructions are combined once more before sums are put
//! in order, and duplicates are removed before the last changes to addresses (`VendorPasses::repeats`): of 146 kernels for
//! `cuda:90` 17 differ without the first and eight without the second, by up to 14 instructions. For AMD 15 of 143 kernels
//! differ without both, with 0.998 of the instructions.
//!
//! The search for scalars that fit into one vector takes 6 % of a compilation for NVIDIA and up to 38 % for AMD: it tries
//! the vectors of matrix fragments, whose elements are accumulators. It runs only if a kernel has operations that the
//! target executes in pairs (`is_packable`) and that it may reach (`reached`). Values that only move, are converted or are
//! rounded are none, and what goes into a matrix fragment is a vector before (`vector_arithmetic`).

use std::collections::{HashMap, HashSet};

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::types::{AnyType, AnyTypeEnum};
use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue};
use llopt_plan::search_limit::SearchLimit;
use llopt_target::{Feature, Target};

use crate::error::CodegenError;
use crate::llvm::instructions::{any, called, change_all, users};
use crate::llvm::{
    addresses, early_values, emit, exchanges, first_wait, fragment_phis, late_values,
    parts_where_taken, recomputed, vector_arithmetic, widened_bf16,
};
use crate::targets::back_end::{BackEnd, VendorPasses, back_end};

/// What is known of a module after optimisation.
#[derive(Debug, Default)]
pub struct Optimized {
    /// The limits at which searches of ours ended.
    pub limits: Vec<SearchLimit>,
    /// The assembly of the module, if it was emitted to decide something.
    pub assembly: Option<String>,
}

/// Optimises `module`, into which the device libraries are linked already.
///
/// # Errors
/// A bug: a pass failed.
pub fn optimize<'ctx>(
    module: &Module<'ctx>,
    target: Target,
    machine: &TargetMachine,
) -> Result<Optimized, CodegenError> {
    let back_end = back_end(target);
    let vendor = back_end.passes();
    back_end.before_optimization(module);
    parts_where_taken::divide(module);
    run(module, machine, &scalar_passes(&vendor))?;
    let packs_singles = target.has(Feature::PackedF32);
    vector_arithmetic::combine(module, packs_singles);
    let own = back_end.intrinsics();
    let singles = match packs_singles {
        true => reached(module, own),
        false => HashSet::new(),
    };
    let has_pairs = any(module, |instruction| {
        is_packable(instruction, &singles, own)
    });
    let combines_vectors = longest_block(module) <= LONGEST_COMBINED;
    run(
        module,
        machine,
        &last_passes(&vendor, has_pairs, combines_vectors),
    )?;
    widened_bf16::widen(module, target);
    exchanges::exchange_early(module);
    if target.has(Feature::Mfma) {
        fragment_phis::join(module);
    }
    // Constants leave the addresses, so that accesses share the rest and take the constants as offsets.
    change_all(module, InstructionOpcode::Or, addresses::gather_constants);
    change_all(
        module,
        InstructionOpcode::GetElementPtr,
        addresses::move_constant_outwards,
    );
    let split_addresses = match vendor.repeats {
        true => "function(separate-const-offset-from-gep,early-cse)",
        // The vendor's last changes to addresses follow, and then that.
        false => "function(separate-const-offset-from-gep)",
    };
    run(module, machine, split_addresses)?;
    if back_end.after_optimization(module) {
        run(module, machine, "function(early-cse)")?;
    }
    if !target.llvm_allocates_registers() {
        return Ok(Optimized::default());
    }
    let emitted = |module: &Module<'ctx>| emit::assembly(module.clone(), target, machine).ok();
    if !back_end.wishes_waves(module) {
        return Ok(allocate(module, target, &*back_end, emitted));
    }
    // Somebody who wishes for many waves knows how many registers the code of another compiler takes. Where loops of this one
    // keep values in memory for it, nothing is gained.
    let attempt = module.clone();
    let granted = allocate(&attempt, target, &*back_end, emitted).assembly;
    let granted = granted.or_else(|| emitted(&attempt));
    let granted = granted.filter(|text| !back_end.spills(text));
    if granted.is_none() {
        back_end.grant_any_waves(module);
    }
    let optimized = allocate(module, target, &*back_end, emitted);
    Ok(Optimized {
        limits: optimized.limits,
        assembly: granted.or(optimized.assembly),
    })
}

/// Orders instructions for the registers that threads have. The assembly is there if it had to be looked at.
fn allocate<'ctx>(
    module: &Module<'ctx>,
    target: Target,
    back_end: &dyn BackEnd,
    emitted: impl Fn(&Module<'ctx>) -> Option<String>,
) -> Optimized {
    early_values::compute_early(module, target, back_end);
    let limits = late_values::order(module, target, back_end);
    first_wait::compute_before(module, back_end);
    let assembly = recomputed::recompute(module, target, back_end, || emitted(module));
    Optimized { limits, assembly }
}

/// Instructions of the longest block whose vectors are combined.
///
/// Where single elements of a loaded vector are used, `vector-combine` loads each by itself, and the back ends put the loads
/// together again. Both ask after each of these loads which of two instructions comes first, for which LLVM numbers the whole
/// block again: time that grows with the square of the block, 6 of 7 s for 40,000 multiply-adds of factors from shared
/// memory. Without the one pass the other has nothing to do.
const LONGEST_COMBINED: usize = 1 << 13;

/// The instructions of the longest block.
fn longest_block(module: &Module<'_>) -> usize {
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_blocks());
    let lengths = blocks.map(|block| block.get_instructions().count());
    lengths.max().unwrap_or(0)
}

/// Instruction combination once over a function, which finds nearly everything; LLVM's own pipelines do the same.
pub(crate) const COMBINE: &str = "instcombine<no-verify-fixpoint>";

/// Whether an instruction computes a number in a scalar type of which two values share a register and some target has
/// instructions for both: numbers of 8 and 16 bits, and those `singles` that the search for pairs may reach. The vendor's own
/// intrinsics begin with `own`.
fn is_packable<'ctx>(
    instruction: InstructionValue<'ctx>,
    singles: &HashSet<InstructionValue<'ctx>>,
    own: &str,
) -> bool {
    use InstructionOpcode as Op;
    let r#type = match instruction.get_opcode() {
        // These only move bits.
        Op::Load
        | Op::Trunc
        | Op::BitCast
        | Op::ExtractElement
        | Op::ExtractValue
        | Op::Phi
        | Op::Select
        | Op::Freeze => return false,
        // Where a target rounds two numbers in one instruction, lowering asks for it.
        Op::FPTrunc => return false,
        // Nor are there instructions that convert two numbers otherwise.
        Op::ZExt | Op::SExt | Op::UIToFP | Op::SIToFP | Op::FPToUI | Op::FPToSI => return false,
        // What is special to a target, which includes accesses to memory, has no form for vectors that LLVM knows.
        Op::Call if !is_vectorizable_call(instruction, own) => return false,
        // Integers of two pairs are compared one by one; so are singles.
        Op::ICmp => return false,
        Op::FCmp => {
            let compared = instruction
                .get_operand(0)
                .and_then(|operand| operand.value());
            let Some(compared) = compared else {
                return false;
            };
            compared.get_type().as_any_type_enum()
        }
        _ => instruction.get_type(),
    };
    match r#type {
        AnyTypeEnum::IntType(integer) => matches!(integer.get_bit_width(), 8 | 16),
        AnyTypeEnum::FloatType(float) => match float.get_bit_width() {
            16 => true,
            32 => singles.contains(&instruction) && computes_kept_single(instruction),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a call is one of those LLVM intrinsics that mean the same on every target. Those of the vendor begin with `own`.
fn is_vectorizable_call(call: InstructionValue<'_>, own: &str) -> bool {
    let name = called(call).unwrap_or_default();
    name.starts_with("llvm.") && !name.starts_with(own)
}

/// Whether an instruction adds or multiplies singles, of which alone there are instructions for pairs, and something
/// takes the result as a single. If its bits are all that is taken, as where lowering rounds to a narrower format, each
/// of a pair would have to be taken out of it again.
fn computes_kept_single(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    let computes = match instruction.get_opcode() {
        Op::FAdd | Op::FSub | Op::FMul => true,
        Op::Call => called(instruction).is_some_and(|name| {
            ["llvm.fma.", "llvm.fmuladd."]
                .iter()
                .any(|of| name.starts_with(of))
        }),
        _ => false,
    };
    computes
        && users(instruction).flatten().any(|user| {
            let opcode = user.get_opcode();
            !matches!(opcode, Op::BitCast | Op::FPTrunc | Op::FPToSI | Op::FPToUI)
        })
}

/// The instructions that the search for pairs may reach: it begins at values that are put together in vectors, stored, or
/// passed on in phis of one block that receive the same operation, and goes back from there through what has a form for
/// vectors.
fn reached<'ctx>(module: &Module<'ctx>, own: &str) -> HashSet<InstructionValue<'ctx>> {
    use InstructionOpcode as Op;
    let mut open: Vec<InstructionValue<'ctx>> = Vec::new();
    let blocks = module
        .get_functions()
        .flat_map(|function| function.get_basic_blocks());
    for block in blocks {
        let mut of_phis: HashMap<_, Vec<InstructionValue<'ctx>>> = HashMap::new();
        for instruction in block.get_instructions() {
            match instruction.get_opcode() {
                Op::InsertElement => open.extend(instruction_of(instruction, 1)),
                Op::Store => open.extend(instruction_of(instruction, 0)),
                Op::Phi => {
                    // What it receives twice counts once.
                    let values = (0..instruction.get_num_operands())
                        .filter_map(|index| instruction_of(instruction, index));
                    for value in values.collect::<HashSet<_>>() {
                        of_phis.entry(value.get_opcode()).or_default().push(value);
                    }
                }
                _ => {}
            }
        }
        let alike = of_phis.into_values().filter(|values| values.len() > 1);
        open.extend(alike.flatten());
    }
    let mut reached = HashSet::new();
    while let Some(instruction) = open.pop() {
        let has_form = match instruction.get_opcode() {
            Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FNeg => true,
            Op::FCmp | Op::Select | Op::FPTrunc | Op::FPExt | Op::BitCast => true,
            // Others have operands that are no values.
            Op::Call => {
                is_vectorizable_call(instruction, own)
                    && matches!(instruction.get_type(), AnyTypeEnum::FloatType(_))
            }
            _ => false,
        };
        if has_form && reached.insert(instruction) {
            let operands = 0..instruction.get_num_operands();
            open.extend(operands.filter_map(|index| instruction_of(instruction, index)));
        }
    }
    reached
}

/// The instruction of which an operand is the result.
fn instruction_of(user: InstructionValue<'_>, index: u32) -> Option<InstructionValue<'_>> {
    user.get_operand(index)?.value()?.as_instruction_value()
}

/// The passes up to the inlining of functions and the normalisation of their loops, as a text that LLVM parses.
fn scalar_passes(vendor: &VendorPasses) -> String {
    let VendorPasses {
        first,
        in_functions,
        repeats,
        ..
    } = vendor;
    let combine_again = match repeats {
        true => format!("{COMBINE},"),
        false => String::new(),
    };
    let merge_blocks = "simplifycfg<switch-range-to-icmp>";
    // Code that both sides of a branch have in common moves out of it once nothing else can be simplified in them.
    let share_code = "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>";
    // Emitted code has the same address many times, and conditions that are constant.
    let cleaning = format!(
        "function(simplifycfg,sroa<modify-cfg>,early-cse),ipsccp,function({COMBINE},{merge_blocks})"
    );
    let straight_line = format!(
        "sroa<modify-cfg>,early-cse<memssa>,speculative-execution<only-if-divergent-target>,{merge_blocks},{combine_again}\
         aggressive-instcombine,reassociate"
    );
    let loops = format!(
        "loop-mssa(licm<no-allowspeculation>,loop-rotate<header-duplication>,licm),{in_functions}\
         loop(indvars,loop-deletion,loop-unroll-full)"
    );
    let values = format!("gvn,{COMBINE},correlated-propagation,{share_code}");
    // A function is optimised before the functions into which it may be inlined.
    let functions = format!(
        "cgscc(devirt<4>(inline,function<eager-inv;no-rerun>({straight_line},{loops},{values}))),deadargelim,globaldce"
    );
    format!("{first}{cleaning},{functions}")
}

/// The passes after those, with or without the search for pairs and the one for vectors whose elements are used.
fn last_passes(vendor: &VendorPasses, has_pairs: bool, combines_vectors: bool) -> String {
    let pairs = if has_pairs { "slp-vectorizer," } else { "" };
    let vectors = if combines_vectors {
        "vector-combine,"
    } else {
        ""
    };
    let VendorPasses {
        unrolling, last, ..
    } = vendor;
    let text = format!(
        "function(infer-alignment,{pairs}{vectors}{COMBINE},{unrolling},div-rem-pairs),{last}"
    );
    text.trim_end_matches(',').to_owned()
}

pub(crate) fn run(
    module: &Module<'_>,
    machine: &TargetMachine,
    passes: &str,
) -> Result<(), CodegenError> {
    module
        .run_passes(passes, machine, PassBuilderOptions::create())
        .map_err(|error| CodegenError::Bug {
            stage: "optimisation",
            message: error.to_string(),
        })
}
