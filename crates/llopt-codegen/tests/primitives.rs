//! The emission primitives, compiled for every target: LLVM accepts them and selects the intended instructions.

use inkwell::context::Context;
use inkwell::values::BasicValueEnum;
use llopt_codegen::llvm::emitter::{Emitter, V};
use llopt_codegen::llvm::machine::Machine;
use llopt_codegen::targets::amdgpu::Amdgpu;
use llopt_codegen::targets::hooks::{
    Access, Caching, Eviction, Hooks, Launch, Math, Rounding, Words,
};
use llopt_codegen::targets::nvptx::Nvptx;
use llopt_codegen::values::element::LlvmType;
use llopt_codegen::{llvm::emit, llvm::optimize, values::float8};
use llopt_plan::element::{Element, Float8};
use llopt_target::{Target, Vendor};

fn hooks(target: Target) -> Box<dyn Hooks> {
    match target.vendor() {
        Vendor::Nvptx => Box::new(Nvptx::new(target)),
        Vendor::Amdgpu => Box::new(Amdgpu::new(target)),
    }
}

/// Compiles a kernel with two pointers and a number, whose body is `build`, to assembly.
fn compile(
    target: Target,
    build: impl for<'ctx> Fn(&Emitter<'ctx>, &dyn Hooks, &[V<'ctx>]),
) -> String {
    let machine = Machine::of(target).unwrap();
    let context = Context::create();
    let e = Emitter::new(&context, "test", true);
    e.module
        .set_triple(&inkwell::targets::TargetTriple::create(target.triple()));
    e.module
        .set_data_layout(&machine.get_target_data().get_data_layout());
    let hooks = hooks(target);
    let pointer = e.ptr(1);
    let of = context
        .void_type()
        .fn_type(&[pointer.into(), pointer.into(), e.int(32).into()], false);
    let function = e.module.add_function("kernel", of, None);
    let launch = Launch {
        threads: 128,
        blocks_per_cluster: 1,
        max_registers: None,
        waves_per_eu: 0,
        flush_denormals: false,
    };
    hooks.mark_kernel(&e, function, launch);
    e.enter(e.new_block(function));
    build(&e, hooks.as_ref(), &function.get_params());
    e.return_(None);
    e.module
        .verify()
        .unwrap_or_else(|error| panic!("{target}: {error}\n{}", e.module.print_to_string()));
    optimize::optimize(&e.module, target, &machine).unwrap();
    emit::assembly(e.module, target, &machine).unwrap()
}

fn target(name: &str) -> Target {
    Target::parse(name).unwrap()
}

fn access<'ctx>(pointer: V<'ctx>, mask: Option<V<'ctx>>, bits: u32, count: u32) -> Access<'ctx> {
    Access {
        pointer,
        mask,
        words: Words { bits, count },
        caching: Caching::default(),
    }
}

#[test]
fn vectors_load_and_store_in_one_instruction() {
    for target in Target::all() {
        let text = compile(target, |e, hooks, p| {
            let words = hooks.load(e, &access(p[0], None, 32, 4), None);
            hooks.store(e, &access(p[1], None, 32, 4), &words);
        });
        let (load, store) = match target.vendor() {
            Vendor::Nvptx => ("ld.global.v", "st.global.v"),
            Vendor::Amdgpu if target.arch().starts_with("gfx9") => {
                ("dwordx4", "global_store_dwordx4")
            }
            Vendor::Amdgpu => ("_b128", "global_store_b128"),
        };
        assert!(
            text.contains(load) && text.contains(store),
            "{target}\n{text}"
        );
    }
}

#[test]
fn masked_accesses_keep_their_width_and_fold_offsets() {
    let text = compile(target("cuda:80"), |e, hooks, p| {
        let thread = hooks.thread_in_block(e);
        let mask = e.icmp(inkwell::IntPredicate::SLT, thread, p[2]);
        for half in 0..2 {
            let place = |base| e.byte_offset(e.gep(e.int(128).into(), base, thread), 16 * half);
            let words = hooks.load(e, &access(place(p[0]), Some(mask), 32, 4), None);
            hooks.store(e, &access(place(p[1]), Some(mask), 32, 4), &words);
        }
    });
    assert!(text.contains("+ 16 ]"), "{text}");
    assert_eq!(text.matches("ld.global.v4.b32").count(), 2, "{text}");
    assert_eq!(text.matches("@%p1 st.global.v4.b32").count(), 2, "{text}");
}

#[test]
fn masked_accesses_branch_on_amd() {
    let text = compile(target("hip:gfx942"), |e, hooks, p| {
        let thread = hooks.thread_in_block(e);
        let mask = e.icmp(inkwell::IntPredicate::SLT, thread, p[2]);
        let place = |base| e.gep(e.int(128).into(), base, thread);
        let words = hooks.load(e, &access(place(p[0]), Some(mask), 32, 4), None);
        hooks.store(e, &access(place(p[1]), Some(mask), 32, 4), &words);
    });
    assert!(
        text.contains("s_and_saveexec") && text.contains("global_load_dwordx4"),
        "{text}"
    );
}

#[test]
fn eviction_hints_become_policies() {
    let text = compile(target("cuda:90"), |e, hooks, p| {
        let mut request = access(p[0], None, 32, 1);
        request.caching.eviction = Eviction::First;
        let words = hooks.load(e, &request, None);
        hooks.store(e, &access(p[1], None, 32, 1), &words);
    });
    assert!(
        text.contains("createpolicy.fractional.L2::evict_first.b64"),
        "{text}"
    );
    assert!(
        text.contains("ld.global.L1::evict_first.L2::cache_hint.b32"),
        "{text}"
    );
}

#[test]
fn buffers_load_in_one_instruction() {
    for target in Target::all().filter(|target| target.vendor() == Vendor::Amdgpu) {
        let text = compile(target, |e, hooks, p| {
            let buffers = hooks.buffers().unwrap();
            let thread = hooks.thread_in_block(e);
            let offset = e.mul(thread, e.i32(16));
            let mask = Some(e.icmp(inkwell::IntPredicate::SLT, thread, p[2]));
            let mut request = llopt_codegen::targets::hooks::BufferAccess {
                descriptor: buffers.descriptor(e, p[0]),
                offset,
                mask,
                words: Words { bits: 32, count: 4 },
                caching: Caching::default(),
            };
            let words = buffers.load(e, &request);
            request.descriptor = buffers.descriptor(e, p[1]);
            buffers.store(e, &request, &words);
        });
        assert!(
            text.contains("buffer_load_") && text.contains("buffer_store_"),
            "{target}\n{text}"
        );
    }
}

const FORMATS: [Float8; 4] = [
    Float8::E4M3FN,
    Float8::E5M2,
    Float8::E4M3FNUZ,
    Float8::E5M2FNUZ,
];
const WIDE: [Element; 3] = [Element::F16, Element::Bf16, Element::F32];

#[test]
fn every_fp8_conversion_compiles_everywhere() {
    for target in Target::all() {
        for format in FORMATS {
            for wide in WIDE {
                compile(target, |e, hooks, p| {
                    let word = e.load(e.vector(e.int(8).into(), 4).into(), p[0], 4);
                    let codes = e.unpack(word);
                    let floats = hooks
                        .convert_floats(
                            e,
                            Element::Float8(format),
                            wide,
                            Rounding::NearestEven,
                            &codes,
                        )
                        .unwrap_or_else(|| {
                            codes
                                .iter()
                                .map(|code| float8::widen(e, format, *code, wide))
                                .collect()
                        });
                    assert!(
                        floats
                            .iter()
                            .all(|value| value.get_type() == wide.llvm(e.context))
                    );
                    let codes = hooks
                        .convert_floats(
                            e,
                            wide,
                            Element::Float8(format),
                            Rounding::NearestEven,
                            &floats,
                        )
                        .unwrap_or_else(|| {
                            floats
                                .iter()
                                .map(|value| float8::narrow(e, format, *value, wide))
                                .collect()
                        });
                    e.store(e.pack(&codes), p[1], 4);
                });
            }
        }
    }
}

#[test]
fn hardware_converts_fp8_in_pairs() {
    let convert = |name, format| {
        compile(target(name), |e, hooks, p| {
            let floats =
                e.unpack(e.load(e.vector(e.context.f32_type().into(), 4).into(), p[0], 16));
            let codes = hooks
                .convert_floats(
                    e,
                    Element::F32,
                    Element::Float8(format),
                    Rounding::NearestEven,
                    &floats,
                )
                .unwrap();
            e.store(e.pack(&codes), p[1], 4);
        })
    };
    let text = convert("cuda:89", Float8::E4M3FN);
    assert_eq!(
        text.matches("cvt.rn.satfinite.e4m3x2.f32").count(),
        2,
        "{text}"
    );
    let text = convert("hip:gfx942", Float8::E5M2FNUZ);
    assert_eq!(text.matches("v_cvt_pk_bf8_f32").count(), 2, "{text}");
}

/// Evaluates constant code: the builder folds, so a conversion of a constant is a constant.
fn fold(build: impl for<'ctx> Fn(&Emitter<'ctx>) -> V<'ctx>) -> Option<i64> {
    let context = Context::create();
    let e = Emitter::new(&context, "fold", false);
    let function = e
        .module
        .add_function("f", context.void_type().fn_type(&[], false), None);
    e.enter(e.new_block(function));
    match build(&e) {
        BasicValueEnum::IntValue(value) => {
            value.get_zero_extended_constant().map(|bits| bits as i64)
        }
        _ => None,
    }
}

/// The value of a code, by the definition of the formats.
fn value_of(format: Float8, code: u32) -> f64 {
    let m = format.mantissa_bits();
    let (sign, exponent, mantissa) = (code >> 7, (code >> m) & (0x7f >> m), code & ((1 << m) - 1));
    let is_nan = match format {
        Float8::E4M3FN => code & 0x7f == 0x7f,
        Float8::E5M2 => exponent == 31 && mantissa != 0,
        Float8::E4M3FNUZ | Float8::E5M2FNUZ => code == 0x80,
    };
    if is_nan {
        return f64::NAN;
    }
    if format == Float8::E5M2 && exponent == 31 {
        return if sign == 1 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    let fraction = f64::from(mantissa) / f64::from(1u32 << m);
    let magnitude = if exponent == 0 {
        fraction * 2f64.powi(1 - format.bias() as i32)
    } else {
        (1.0 + fraction) * 2f64.powi(exponent as i32 - format.bias() as i32)
    };
    if sign == 1 { -magnitude } else { magnitude }
}

#[test]
fn software_widening_is_exact_for_every_code() {
    for format in FORMATS {
        for code in 0..256u32 {
            let bits = fold(|e| {
                let value = float8::widen(
                    e,
                    format,
                    e.int(8).const_int(u64::from(code), false).into(),
                    Element::F32,
                );
                e.bitcast(value, e.int(32).into())
            });
            let got = f64::from(f32::from_bits(bits.unwrap() as u32));
            let expected = value_of(format, code);
            assert!(
                got == expected || (got.is_nan() && expected.is_nan()),
                "{format:?} {code:#x}: {got} instead of {expected}"
            );
        }
    }
}

#[test]
fn math_functions_use_the_hardware() {
    let instruction = |name, function| {
        compile(target(name), |e, hooks, p| {
            let x = e.load(e.context.f32_type().into(), p[0], 4);
            let y = hooks.math(e, function, Element::F32, &[x]).unwrap();
            e.store(y, p[1], 4);
        })
    };
    assert!(instruction("cuda:90", Math::Exp2).contains("ex2.approx.ftz.f32"));
    assert!(instruction("cuda:90", Math::Sqrt).contains("sqrt.approx.ftz.f32"));
    assert!(instruction("cuda:80", Math::Rsqrt).contains("rsqrt.approx.ftz.f32"));
    assert!(instruction("hip:gfx942", Math::Exp2).contains("v_exp_f32"));
    assert!(instruction("hip:gfx1200", Math::Rsqrt).contains("rsq_f32"));
}
