//! A whole module: its functions, their arguments, and the data that a launcher needs.
//!
//! Calling convention. A kernel's parameters are the source's in order, then two pointers to global scratch
//! memory (the kernel's and the profiler's), always; shared memory is one external array, `global_smem`,
//! whose size the launcher gives. A device function takes the registers of its arguments one by one, then
//! the start of its shared memory and the two scratch pointers; it returns its registers as a structure.

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::targets::{TargetMachine, TargetTriple};
use inkwell::types::BasicTypeEnum;
use inkwell::values::FunctionValue;
use llopt_dialects::layout::argument_tensor::{ARGUMENT_TENSOR, ArgumentTensor};
use llopt_dialects::layout::tensor_descriptor::DescriptorFields;
use llopt_dialects::tables::module;
use llopt_dialects::tables::types::TensorDesc;
use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_plan::element::space;
use llopt_plan::facts::ValueFacts;
use llopt_plan::global_order::is_ordered_by_all_barriers;
use llopt_plan::plans::Plans;
use llopt_plan::tensor::ValueType;
use llopt_plan::types::Types;
use llopt_target::Feature;
use melior::ir::attribute::TypeAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{BlockLike, Module as SourceModule, OperationRef, RegionLike, Type};

use crate::error::CodegenError;
use crate::llvm::emitter::{Emitter, V, function_type};
use crate::options::CodegenOptions;
use crate::targets::back_end::{back_end, hooks};
use crate::targets::hooks::{Hooks, Launch};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::decision::{Decision, Journal};
use crate::walk::function::{
    FunctionLowering, HiddenArguments, Lowered, Program, integer_attribute,
};
use crate::walk::location::{LineTable, describe};
use crate::walk::{dispatch, partitions, regions, symbol};

/// The data about a kernel that a launcher needs; the names are those of Triton's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The entry point.
    pub name: String,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Warps per block.
    pub num_warps: u32,
    /// Blocks per cluster.
    pub num_ctas: u32,
    /// Threads per warp.
    pub warp_size: u32,
    /// Bytes of global scratch memory per program.
    pub global_scratch_size: u32,
    /// Their alignment.
    pub global_scratch_align: u32,
    /// Bytes of the profiler's scratch memory per program.
    pub profile_scratch_size: u32,
    /// Their alignment.
    pub profile_scratch_align: u32,
    /// Columns of tensor memory.
    pub tmem_size: u32,
    /// How the launcher encodes the descriptor object of each parameter that is one.
    pub tensor_descriptors: Vec<DescriptorFields>,
    /// The same for the parameters after those of the source, and the tensor of each.
    pub argument_tensors: Vec<(DescriptorFields, ArgumentTensor)>,
    /// The blocks of which each computes a part of a program's tile.
    pub tile_parts: u32,
    /// Whether each block computes several programs, and the last three parameters are the extents of their grid.
    pub program_extents: bool,
    /// Whether each block of large grids should compute several programs.
    pub persistent_proposal: bool,
    /// Whether the kernel waits for the one before it, so that its launch may overlap with that.
    pub dependent_launch: bool,
}

/// A lowered module.
pub struct LoweredModule<'ctx> {
    /// LLVM IR, not optimised yet.
    pub module: Module<'ctx>,
    /// The kernel's launch data.
    pub metadata: Metadata,
    /// Device libraries that were linked without being named.
    pub libraries: Vec<std::path::PathBuf>,
    /// The decisions, in the order of emission, if the options ask to keep them.
    pub decisions: Vec<Decision>,
}

/// Lowers a module of `tt.func`s whose structured control flow has become branches.
///
/// # Errors
/// An operation has no emission for this target, or the module breaks a rule that its verifiers do not
/// check.
pub fn lower<'ctx>(
    source: &SourceModule<'_>,
    context: &'ctx Context,
    machine: &TargetMachine,
    facts: &ValueFacts,
    plans: &Plans,
    options: &CodegenOptions,
) -> Lowered<LoweredModule<'ctx>> {
    let target = plans.target();
    let hooks = hooks(target, options);
    let hooks = &*hooks;
    let e = Emitter::new(context, "llopt", options.fp_fusion);
    e.module.set_triple(&TargetTriple::create(target.triple()));
    e.module
        .set_data_layout(&machine.get_target_data().get_data_layout());
    back_end(target).mark_module(context, &e.module);

    let root = source.as_operation();
    let number = |name: &str, default: i64| number(root, name, default);
    let asked_registers = integer_attribute(root, module::START_REGISTERS)
        .and_then(|limit| u32::try_from(limit).ok());
    let program = program(root, hooks, facts, plans, options, asked_registers);
    let launch = Launch {
        threads: program.launched_warps * program.threads_per_warp,
        blocks_per_cluster: program.blocks_per_cluster(),
        max_registers: options.max_registers.or(asked_registers),
        waves_per_eu: options.waves_per_eu,
        flush_denormals: options.flush_denormals,
    };
    let memory = ProgramMemory {
        shared: number(module::SHARED, 0),
        global_scratch: number(module::GLOBAL_SCRATCH_SIZE, 0),
    };

    let functions = functions(source);
    let types = plans.types();
    let mut lines = options.line_info.then(|| {
        LineTable::new(
            context,
            &e.module,
            first_location(&functions).unwrap_or(root.location()),
        )
    });
    let mut declared = Vec::with_capacity(functions.len());
    for function in &functions {
        declared.push(declare(&e, types, *function, hooks, launch)?);
    }
    let all: Vec<_> = functions.iter().copied().zip(&declared).collect();
    let (name, descriptors) = kernel(root, &all)?;
    for (function, declaration) in all {
        define(&e, &program, function, declaration, memory, lines.as_mut())?;
    }
    if let Some(lines) = &lines {
        lines.finish();
    }
    if options.verify {
        e.module.verify().map_err(|error| CodegenError::Bug {
            stage: "lowering",
            message: error.to_string(),
        })?;
    }
    let metadata = metadata(root, &program, name, descriptors);
    Ok(LoweredModule {
        module: e.module,
        metadata,
        libraries: Vec::new(),
        decisions: program.journal.into_decisions(),
    })
}

/// What a launch has to know of a kernel.
fn metadata(
    root: OperationRef<'_, '_>,
    program: &Program<'_>,
    name: String,
    descriptors: Descriptors,
) -> Metadata {
    let number = |name: &str, default: i64| number(root, name, default);
    Metadata {
        name,
        shared: number(module::SHARED, 0),
        num_warps: program.launched_warps,
        num_ctas: program.blocks_per_cluster(),
        warp_size: program.threads_per_warp,
        global_scratch_size: number(module::GLOBAL_SCRATCH_SIZE, 0),
        global_scratch_align: number(module::GLOBAL_SCRATCH_ALIGNMENT, 1).max(1),
        profile_scratch_size: number(module::PROFILE_SCRATCH_SIZE, 0),
        profile_scratch_align: number(module::PROFILE_SCRATCH_ALIGNMENT, 1).max(1),
        tmem_size: number(module::TENSOR_MEMORY_SIZE, 0),
        tensor_descriptors: descriptors.of_source,
        argument_tensors: descriptors.of_arguments,
        tile_parts: module::tile_parts(root),
        program_extents: root.attr(module::PROGRAM_EXTENTS).is_some(),
        persistent_proposal: root.attr(module::PERSISTENT_PROPOSAL).is_some(),
        dependent_launch: root.attr(module::DEPENDENT_LAUNCH).is_some(),
    }
}

/// A number that a module has as an attribute.
fn number(root: OperationRef<'_, '_>, name: &str, default: i64) -> u32 {
    u32::try_from(integer_attribute(root, name).unwrap_or(default)).unwrap_or(0)
}

/// The data that all functions of a module share. Its kernel asks for so many registers for each thread.
fn program<'p>(
    root: OperationRef<'_, '_>,
    hooks: &'p dyn Hooks,
    facts: &'p ValueFacts,
    plans: &'p Plans,
    options: &CodegenOptions,
    asked_registers: Option<u32>,
) -> Program<'p> {
    let warp_size = i64::from(plans.target().warp_size());
    let num_warps = number(root, module::NUM_WARPS, 4).max(1);
    let launched_warps = number(root, module::TOTAL_NUM_WARPS, i64::from(num_warps));
    Program {
        hooks,
        facts,
        plans,
        num_warps,
        launched_warps: launched_warps.max(num_warps),
        num_ctas: number(root, module::NUM_CTAS, 1).max(1),
        cluster_split: number(root, module::CLUSTER_SPLIT, 1).max(1),
        threads_per_warp: number(root, module::THREADS_PER_WARP, warp_size).max(1),
        // A limit set by the user holds for all warps.
        divided_registers: match options.max_registers {
            Some(_) => None,
            None => asked_registers,
        },
        orders_global_memory: is_ordered_by_all_barriers(root),
        check_indices: options.check_indices,
        mark_buffers: options.mark_buffers,
        journal: Journal::new(options.keep_decisions),
    }
}

/// The descriptor objects of a kernel.
#[derive(Default)]
struct Descriptors {
    /// Of the parameters that the source has.
    of_source: Vec<DescriptorFields>,
    /// Of those that the launcher adds.
    of_arguments: Vec<(DescriptorFields, ArgumentTensor)>,
}

/// The symbol of the one kernel of a module, and its descriptor objects.
fn kernel(
    root: OperationRef<'_, '_>,
    functions: &[(tt::FuncOp<'_, '_>, &Declaration<'_>)],
) -> Lowered<(String, Descriptors)> {
    let invalid = |at: OperationRef<'_, '_>, message: String| CodegenError::Invalid {
        location: describe(at.location()),
        message,
    };
    let mut kernels = functions
        .iter()
        .filter(|(_, declaration)| declaration.is_kernel);
    let Some((kernel, declaration)) = kernels.next() else {
        let message = "the module has no public function";
        return Err(invalid(root, message.to_owned()));
    };
    let name = symbol::of_kernel(kernel.sym_name());
    if let Some((other, _)) = kernels.next() {
        let other_name = other.sym_name();
        let message = format!("the module has two kernels, '{name}' and '{other_name}'");
        return Err(invalid(other.operation(), message));
    }
    let attributes = kernel.operation().attr("arg_attrs");
    let attributes = attributes.and_then(AttributeExt::as_array);
    let mut descriptors = Descriptors::default();
    for (index, fields) in &declaration.descriptors {
        let own = attributes.as_ref().and_then(|all| {
            let own = all.get(*index as usize)?.get(ARGUMENT_TENSOR)?;
            ArgumentTensor::from_attribute(own)
        });
        match own {
            Some(tensor) => descriptors.of_arguments.push((fields.clone(), tensor)),
            None => descriptors.of_source.push(fields.clone()),
        }
    }
    Ok((name, descriptors))
}

/// The memory of a program.
#[derive(Clone, Copy)]
struct ProgramMemory {
    /// Bytes of shared memory.
    shared: u32,
    /// Bytes of scratch memory in global memory, for each block.
    global_scratch: u32,
}

/// This block's part of the scratch memory that the launcher allocates for the grid.
fn own_scratch<'ctx>(
    e: &Emitter<'ctx>,
    program: &Program<'_>,
    scratch: V<'ctx>,
    bytes: u32,
) -> V<'ctx> {
    let hooks = program.hooks;
    let blocks_per_cluster = program.blocks_per_cluster();
    let id = |axis| hooks.program_id(e, axis, blocks_per_cluster);
    let count = |axis| hooks.num_programs(e, axis, blocks_per_cluster);
    let plane = e.add(e.mul(id(2), count(1)), id(1));
    let mut number = e.add(e.mul(plane, count(0)), id(0));
    if blocks_per_cluster > 1 {
        let blocks = e.i32(i64::from(blocks_per_cluster));
        number = e.add(e.mul(number, blocks), hooks.block_in_cluster(e));
    }
    let number = e.zext(number, e.int(64).into());
    let offset = e.mul(number, e.i64(i64::from(bytes)));
    e.gep(e.int(8).into(), scratch, offset)
}

fn functions<'c, 'a>(source: &'a SourceModule<'c>) -> Vec<tt::FuncOp<'c, 'a>> {
    let mut next = source.body().first_operation();
    let mut found = Vec::new();
    while let Some(op) = next {
        next = op.next_in_block();
        // A function without a body calls nothing.
        found.extend(tt::FuncOp::of(op).filter(|function| function.body().first_block().is_some()));
    }
    found
}

fn first_location<'c>(functions: &[tt::FuncOp<'c, '_>]) -> Option<melior::ir::Location<'c>> {
    functions
        .first()
        .map(|function| function.operation().location())
}

/// A function's LLVM side, before it has a body.
struct Declaration<'ctx> {
    llvm: FunctionValue<'ctx>,
    parameters: Vec<ValueType>,
    is_kernel: bool,
    /// The parameters of a kernel that are descriptor objects.
    descriptors: Vec<(u32, DescriptorFields)>,
}

fn declare<'ctx>(
    e: &Emitter<'ctx>,
    types: &Types,
    function: tt::FuncOp<'_, '_>,
    hooks: &dyn Hooks,
    launch: Launch,
) -> Lowered<Declaration<'ctx>> {
    let op = function.operation();
    let invalid = |message: String| CodegenError::Invalid {
        location: describe(op.location()),
        message,
    };
    let is_kernel = function
        .sym_visibility()
        .is_none_or(|visibility| visibility == "public");
    let signature = TypeAttribute::try_from(function.function_type())
        .ok()
        .and_then(|attribute| FunctionType::try_from(attribute.value()).ok())
        .ok_or_else(|| invalid("it has no function type".to_owned()))?;
    let resolve = |of: Result<Type<'_>, melior::Error>| {
        let of = of.map_err(|error| invalid(error.to_string()))?;
        types.resolve(of).map_err(&invalid)
    };
    let parameters: Vec<ValueType> = (0..signature.input_count())
        .map(|i| resolve(signature.input(i)))
        .collect::<Lowered<_>>()?;
    let results: Vec<ValueType> = (0..signature.result_count())
        .map(|i| resolve(signature.result(i)))
        .collect::<Lowered<_>>()?;
    let of_values = |types: &[ValueType]| -> Vec<BasicTypeEnum<'ctx>> {
        types
            .iter()
            .flat_map(|of| std::iter::repeat_n(of.element().llvm(e.context), of.registers()))
            .collect()
    };
    let mut inputs = of_values(&parameters);
    if !is_kernel {
        inputs.push(e.ptr(space::SHARED));
    }
    inputs.extend([e.ptr(space::GLOBAL), e.ptr(space::GLOBAL)]);
    let outputs = of_values(&results);
    let output = match outputs.as_slice() {
        [] => None,
        [single] => Some(*single),
        several => Some(e.context.struct_type(several, false).into()),
    };
    let linkage = if is_kernel {
        Linkage::External
    } else {
        Linkage::Internal
    };
    let name = if is_kernel {
        symbol::of_kernel(function.sym_name())
    } else {
        symbol::of_private(function.sym_name())
    };
    let llvm = e.module.add_function(
        &name,
        function_type(e.context, output, &inputs),
        Some(linkage),
    );
    let attribute = |name: &str| {
        e.context
            .create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0)
    };
    llvm.add_attribute(AttributeLoc::Function, attribute("nounwind"));
    // All threads call it together, as its exchanges between lanes and its barriers require. LLVM drops the attribute
    // if there are none, and otherwise must not make calls depend on the condition of a thread.
    llvm.add_attribute(AttributeLoc::Function, attribute("convergent"));
    let mut descriptors = Vec::new();
    if is_kernel {
        descriptors = descriptor_parameters(op, signature)?;
        mark_descriptors(e, op, hooks, llvm, &descriptors)?;
        hooks.mark_kernel(e, llvm, launch);
    } else if stays_apart(op) {
        llvm.add_attribute(AttributeLoc::Function, attribute("noinline"));
    }
    Ok(Declaration {
        llvm,
        parameters,
        is_kernel,
        descriptors,
    })
}

/// The parameters of a kernel that are descriptor objects, and the fields of each.
fn descriptor_parameters(
    kernel: OperationRef<'_, '_>,
    signature: FunctionType<'_>,
) -> Lowered<Vec<(u32, DescriptorFields)>> {
    let mut found = Vec::new();
    for index in 0..signature.input_count() {
        let of = signature.input(index).ok();
        if let Some(descriptor) = of.and_then(TensorDesc::of) {
            let fields = DescriptorFields::of(descriptor).map_err(|why| CodegenError::Invalid {
                location: describe(kernel.location()),
                message: format!("parameter {index} is a descriptor: {why}"),
            })?;
            found.push((index as u32, fields));
        }
    }
    Ok(found)
}

/// Marks the descriptor objects of a kernel for its target, which must know some.
fn mark_descriptors<'ctx>(
    e: &Emitter<'ctx>,
    kernel: OperationRef<'_, '_>,
    hooks: &dyn Hooks,
    llvm: FunctionValue<'ctx>,
    descriptors: &[(u32, DescriptorFields)],
) -> Lowered {
    if descriptors.is_empty() {
        return Ok(());
    }
    let bulk = hooks
        .bulk()
        .filter(|_| hooks.target().has(Feature::BulkTensorCopy));
    let bulk = bulk.ok_or_else(|| CodegenError::MissingFeature {
        location: describe(kernel.location()),
        op: tt::FuncOp::NAME.to_owned(),
        feature: Feature::BulkTensorCopy,
        target: hooks.target(),
    })?;
    for (index, _) in descriptors {
        bulk.mark_descriptor(e, llvm, *index);
    }
    Ok(())
}

/// Whether the author wants a function not to be inlined.
fn stays_apart(function: OperationRef<'_, '_>) -> bool {
    function
        .attr("noinline")
        .and_then(AttributeExt::as_bool)
        .unwrap_or(false)
}

fn define<'c: 'a, 'a, 'ctx>(
    e: &Emitter<'ctx>,
    program: &Program<'_>,
    function: tt::FuncOp<'c, 'a>,
    declaration: &Declaration<'ctx>,
    memory: ProgramMemory,
    lines: Option<&mut LineTable<'ctx>>,
) -> Lowered {
    let op: OperationRef<'c, 'a> = function.operation();
    e.enter(e.new_block(declaration.llvm));
    let all = declaration.llvm.get_params();
    let mut rest = all.as_slice();
    let mut arguments: Vec<Registers<'ctx>> = Vec::with_capacity(declaration.parameters.len());
    for of in &declaration.parameters {
        let (own, others) = rest.split_at(of.registers());
        arguments.push(own.into());
        rest = others;
    }
    let shared_base = match rest {
        [base, _, _] => *base,
        _ => shared_memory(e, memory.shared),
    };
    let &[.., global_scratch, profile_scratch] = rest else {
        return Err(CodegenError::Bug {
            stage: "lowering",
            message: "a function lacks its scratch pointers".to_owned(),
        });
    };
    let global_scratch = if declaration.is_kernel && memory.global_scratch > 0 {
        own_scratch(e, program, global_scratch, memory.global_scratch)
    } else {
        global_scratch
    };
    let hidden = HiddenArguments {
        shared: shared_base,
        global_scratch,
        profile_scratch,
    };
    e.builder().unset_current_debug_location();
    let lines = lines.map(|lines| {
        let subprogram = lines.begin_function(declaration.llvm, op.location());
        (lines, subprogram)
    });
    let is_kernel = declaration.is_kernel;
    let emit = dispatch::operation;
    let types = program.plans.types();
    let mut lowering = FunctionLowering::new(e, program, types, hidden, is_kernel, emit, lines);
    if declaration.is_kernel && program.launched_warps > program.num_warps {
        partitions::part_workers(&mut lowering, op)?;
    }
    regions::body(&mut lowering, function.body(), arguments)?;
    partitions::worker_code(&mut lowering, op)
}

/// The array that contains all shared memory of a kernel; null for a kernel without shared memory.
fn shared_memory<'ctx>(e: &Emitter<'ctx>, bytes: u32) -> V<'ctx> {
    const NAME: &str = "global_smem";
    const ALIGNMENT: u32 = 16;
    if bytes == 0 {
        return e.zero(e.ptr(space::SHARED));
    }
    let global = e.module.get_global(NAME).unwrap_or_else(|| {
        let global = e.module.add_global(
            e.context.i8_type().array_type(0),
            Some(AddressSpace::from(space::SHARED)),
            NAME,
        );
        global.set_linkage(Linkage::External);
        global.set_alignment(ALIGNMENT);
        global
    });
    global.as_pointer_value().into()
}
