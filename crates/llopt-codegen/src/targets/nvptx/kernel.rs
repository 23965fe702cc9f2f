//! Kernel entries, program numbers, printing and assertions on NVIDIA.

use inkwell::attributes::AttributeLoc;
use inkwell::values::FunctionValue;
use llopt_plan::element::space;

use crate::llvm::emitter::{Emitter, V, function_type};
use crate::targets::hooks::{Launch, SourcePlace};

/// LLVM's number of the `ptx_kernel` calling convention.
const PTX_KERNEL: u32 = 71;

const AXES: [&str; 3] = ["x", "y", "z"];

/// The block's number, or with several blocks per program the cluster's.
pub fn program_id<'ctx>(e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
    let name = match (blocks_per_cluster > 1, AXES[axis as usize]) {
        (false, "x") => "llvm.nvvm.read.ptx.sreg.ctaid.x",
        (false, "y") => "llvm.nvvm.read.ptx.sreg.ctaid.y",
        (false, _) => "llvm.nvvm.read.ptx.sreg.ctaid.z",
        (true, "x") => "llvm.nvvm.read.ptx.sreg.clusterid.x",
        (true, "y") => "llvm.nvvm.read.ptx.sreg.clusterid.y",
        (true, _) => "llvm.nvvm.read.ptx.sreg.clusterid.z",
    };
    e.intrinsic(name, &[], &[])
}

/// The grid's size, or with several blocks per program that of the grid of clusters.
pub fn num_programs<'ctx>(e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
    let name = match (blocks_per_cluster > 1, AXES[axis as usize]) {
        (false, "x") => "llvm.nvvm.read.ptx.sreg.nctaid.x",
        (false, "y") => "llvm.nvvm.read.ptx.sreg.nctaid.y",
        (false, _) => "llvm.nvvm.read.ptx.sreg.nctaid.z",
        (true, "x") => "llvm.nvvm.read.ptx.sreg.nclusterid.x",
        (true, "y") => "llvm.nvvm.read.ptx.sreg.nclusterid.y",
        (true, _) => "llvm.nvvm.read.ptx.sreg.nclusterid.z",
    };
    e.intrinsic(name, &[], &[])
}

/// The attribute of a kernel with the number of its threads.
pub(super) const THREADS: &str = "nvvm.reqntid";

/// Makes `function` an entry with a fixed block size.
pub fn mark_kernel<'ctx>(e: &Emitter<'ctx>, function: FunctionValue<'ctx>, launch: Launch) {
    function.set_call_conventions(PTX_KERNEL);
    let attribute = |key: &str, value: u32| {
        function.add_attribute(
            AttributeLoc::Function,
            e.context.create_string_attribute(key, &value.to_string()),
        );
    };
    attribute(THREADS, launch.threads);
    if let Some(registers) = launch.max_registers {
        attribute("nvvm.maxnreg", registers);
    }
    if launch.blocks_per_cluster > 1 {
        attribute("nvvm.cluster_dim", launch.blocks_per_cluster);
    }
}

/// Calls the driver's `vprintf` with the arguments in a structure on the stack, widened as C does.
pub fn print<'ctx>(e: &Emitter<'ctx>, format: V<'ctx>, arguments: &[(V<'ctx>, bool)]) {
    let pointer = e.ptr(space::GENERIC);
    let vprintf = e.declare(
        "vprintf",
        function_type(e.context, Some(e.int(32).into()), &[pointer, pointer]),
        false,
    );
    let buffer = if arguments.is_empty() {
        e.zero(pointer)
    } else {
        let promoted: Vec<V> = arguments
            .iter()
            .map(|&(value, signed)| promote(e, value, signed))
            .collect();
        let types: Vec<_> = promoted.iter().map(V::get_type).collect();
        let structure = e.context.struct_type(&types, false).into();
        let place = e.alloca(structure);
        for (i, value) in promoted.iter().enumerate() {
            let bytes = (crate::llvm::emitter::bit_width(value.get_type()) / 8).max(1);
            e.store(*value, e.field(structure, place, i as u32).into(), bytes);
        }
        place.into()
    };
    e.call(vprintf, &[format, buffer]);
}

/// C's promotions for variable arguments: small integers to `int`, floats to `double`.
fn promote<'ctx>(e: &Emitter<'ctx>, value: V<'ctx>, signed: bool) -> V<'ctx> {
    let of = value.get_type();
    if of.is_float_type() {
        return e.fpext(value, e.context.f64_type().into());
    }
    if of.is_int_type() && of.into_int_type().get_bit_width() < 32 {
        let i32 = e.int(32).into();
        return if signed {
            e.sext(value, i32)
        } else {
            e.zext(value, i32)
        };
    }
    value
}

/// Calls the driver's `__assertfail`.
pub fn assert_fail<'ctx>(e: &Emitter<'ctx>, message: &str, place: SourcePlace<'_>) {
    let pointer = e.ptr(space::GENERIC);
    let of = function_type(
        e.context,
        None,
        &[
            pointer,
            pointer,
            e.int(32).into(),
            pointer,
            e.int(64).into(),
        ],
    );
    let fail = e.declare("__assertfail", of, false);
    let message = e.string(message, "assertMessage_");
    let file = e.string(place.file, "assertFile_");
    let function = e.string("unknown", "assertFunc_");
    e.call(
        fail,
        &[
            message,
            file,
            e.i32(i64::from(place.line)),
            function,
            e.i64(1),
        ],
    );
}
