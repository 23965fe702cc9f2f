//! Kernel entries, program numbers, printing and assertions on AMD.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::FunctionValue;
use llopt_plan::element::space;

use crate::llvm::emitter::{Emitter, V, function_type};
use crate::targets::hooks::Launch;

/// LLVM's attribute for the minimum and maximum number of threads that run a kernel together.
pub(super) const WORK_GROUP_SIZE: &str = "amdgpu-flat-work-group-size";

/// LLVM's attribute for the least and largest number of waves of a unit; zeros leave it to LLVM.
pub(super) const WAVES: &str = "amdgpu-waves-per-eu";
/// Its value without a wish.
pub(super) const ANY_WAVES: &str = "0, 0";

/// LLVM's number of the `amdgpu_kernel` calling convention.
const AMDGPU_KERNEL: u32 = 91;

/// The workgroup's number, or with several per program the cluster's.
pub fn program_id<'ctx>(e: &Emitter<'ctx>, axis: u32, blocks_per_cluster: u32) -> V<'ctx> {
    let name = match (blocks_per_cluster > 1, axis) {
        (false, 0) => "llvm.amdgcn.workgroup.id.x",
        (false, 1) => "llvm.amdgcn.workgroup.id.y",
        (false, _) => "llvm.amdgcn.workgroup.id.z",
        (true, 0) => "llvm.amdgcn.cluster.id.x",
        (true, 1) => "llvm.amdgcn.cluster.id.y",
        (true, _) => "llvm.amdgcn.cluster.id.z",
    };
    e.intrinsic(name, &[], &[])
}

/// The number of workgroups along `axis`: the grid's counts are the first words of the implicit arguments
/// (code object version 5).
pub fn num_programs<'ctx>(e: &Emitter<'ctx>, axis: u32) -> V<'ctx> {
    let arguments = e.intrinsic("llvm.amdgcn.implicitarg.ptr", &[], &[]);
    e.load(
        e.int(32).into(),
        e.byte_offset(arguments, i64::from(axis) * 4),
        4,
    )
}

/// Makes `function` a kernel: its arguments are preloaded into scalar registers, and the promises about the launch
/// become attributes.
pub fn mark_kernel<'ctx>(e: &Emitter<'ctx>, function: FunctionValue<'ctx>, launch: Launch) {
    function.set_call_conventions(AMDGPU_KERNEL);
    let attribute = |key: &str, value: &str| {
        function.add_attribute(
            AttributeLoc::Function,
            e.context.create_string_attribute(key, value),
        );
    };
    attribute(WORK_GROUP_SIZE, &format!("1,{}", launch.threads));
    attribute("uniform-work-group-size", "true");
    attribute(WAVES, &format!("{0}, {0}", launch.waves_per_eu));
    attribute(
        "denormal-fp-math-f32",
        if launch.flush_denormals {
            "preserve-sign"
        } else {
            "ieee"
        },
    );
    let inreg = e
        .context
        .create_enum_attribute(Attribute::get_named_enum_kind_id("inreg"), 0);
    for i in 0..function.count_params() {
        function.add_attribute(AttributeLoc::Param(i), inreg);
    }
}

/// The destination of printed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The process's standard output.
    Output,
    /// The process's standard error.
    Error,
}

/// Prints through the hostcall functions of the device library: begin, append the format, then append the arguments,
/// at most seven 64-bit words per call.
pub fn print<'ctx>(
    e: &Emitter<'ctx>,
    stream: Stream,
    format: V<'ctx>,
    format_bytes: usize,
    arguments: &[(V<'ctx>, bool)],
) {
    const WORDS_PER_CALL: usize = 7;
    let (i32, i64) = (e.int(32).into(), e.int(64).into());
    let pointer = e.ptr(space::GENERIC);
    const RESULT: &str = "bug in llopt: the print functions return a handle";
    let handle = match stream {
        Stream::Output => {
            let begin = e.declare(
                "__ockl_printf_begin",
                function_type(e.context, Some(i64), &[i64]),
                false,
            );
            e.call(begin, &[e.i64(0)])
        }
        Stream::Error => {
            let begin = e.declare(
                "__ockl_fprintf_stderr_begin",
                function_type(e.context, Some(i64), &[]),
                false,
            );
            e.call(begin, &[])
        }
    };
    let append_text = e.declare(
        "__ockl_printf_append_string_n",
        function_type(e.context, Some(i64), &[i64, pointer, i64, i32]),
        false,
    );
    let is_last = |last: bool| e.i32(i64::from(last));
    let handle = handle.expect_basic(RESULT);
    let mut handle = e
        .call(
            append_text,
            &[
                handle,
                format,
                e.i64(format_bytes as i64),
                is_last(arguments.is_empty()),
            ],
        )
        .expect_basic(RESULT);
    if arguments.is_empty() {
        return;
    }
    let mut parameters = vec![i64, i32];
    parameters.extend([i64; WORDS_PER_CALL]);
    parameters.push(i32);
    let append = e.declare(
        "__ockl_printf_append_args",
        function_type(e.context, Some(i64), &parameters),
        false,
    );
    let groups = arguments.chunks(WORDS_PER_CALL);
    let last = groups.len() - 1;
    for (number, group) in groups.enumerate() {
        let mut words = vec![handle, e.i32(group.len() as i64)];
        words.extend(
            group
                .iter()
                .map(|&(value, signed)| promote(e, value, signed)),
        );
        words.resize(2 + WORDS_PER_CALL, e.i64(0));
        words.push(is_last(number == last));
        handle = e.call(append, &words).expect_basic(RESULT);
    }
}

/// A 64-bit word for a printed argument: floats as doubles.
fn promote<'ctx>(e: &Emitter<'ctx>, value: V<'ctx>, signed: bool) -> V<'ctx> {
    let i64 = e.int(64).into();
    let of = value.get_type();
    if of.is_pointer_type() {
        return e.cast(inkwell::values::InstructionOpcode::PtrToInt, value, i64);
    }
    if of.is_float_type() {
        return e.bitcast(e.fpext(value, e.context.f64_type().into()), i64);
    }
    if signed {
        e.sext(value, i64)
    } else {
        e.zext(value, i64)
    }
}
