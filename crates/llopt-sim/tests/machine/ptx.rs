//! Inline assembly of both vendors.

use llopt_sim::{Argument, Machine};

use crate::harness::{lanes, lanewise, noise, numbers, run, target, words};

/// Checks an assembly template with one input and one output.
fn agrees(template: &str, model: impl Fn(u32) -> u32) {
    let body = format!("%y = call i32 asm \"{template}\", \"=r,r\"(i32 %x)");
    let input = noise(32, 2);
    for (x, y) in input.iter().zip(lanes("cuda:90", &body, &input)) {
        assert_eq!(y, model(*x), "{x:#x} {template}");
    }
}

#[test]
fn arithmetic_and_logic() {
    agrees(
        "{ .reg .b32 a<2>; add.u32 a0, $1, 7; mul.lo.s32 a1, a0, $1; xor.b32 $0, a1, -1; }",
        |x| !x.wrapping_add(7).wrapping_mul(x),
    );
    agrees("lop3.b32 $0, $1, 0x0ff0, 0x3333, 0xe8;", |x| {
        (x & 0x0ff0) | (x & 0x3333) | (0x0ff0 & 0x3333)
    });
    agrees(
        "{ .reg .u64 w; mul.wide.u32 w, $1, 0x12345; mov.b64 {_, $0}, w; }",
        |x| ((u64::from(x) * 0x12345) >> 32) as u32,
    );
    agrees("bfe.u32 $0, $1, 5, 9;", |x| x >> 5 & 0x1ff);
    agrees("bfe.s32 $0, $1, 5, 9;", |x| ((x << 18) as i32 >> 23) as u32);
    agrees("bfi.b32 $0, 0x5, $1, 8, 4;", |x| x & !0xf00 | 0x500);
    agrees("shf.l.wrap.b32 $0, $1, $1, 12;", |x| x.rotate_left(12));
    agrees("shr.s32 $0, $1, 40;", |x| (x as i32 >> 31) as u32);
    agrees(
        "{ .reg .u32 a; clz.b32 a, $1; popc.b32 $0, $1; add.u32 $0, $0, a; }",
        |x| x.leading_zeros() + x.count_ones(),
    );
    agrees(
        "{ .reg .u32 l, h; mad.lo.cc.u32 l, $1, $1, $1; madc.hi.u32 $0, $1, $1, 0; }",
        |x| {
            let low = x.wrapping_mul(x);
            ((u64::from(x) * u64::from(x)) >> 32) as u32 + u32::from(low.checked_add(x).is_none())
        },
    );
    agrees("prmt.b32 $0, $1, 0x43, 0x4140;", |x| {
        x & 255 | 0x43 << 8 | (x >> 8 & 255) << 16 | 0x43 << 24
    });
}

#[test]
fn predicates_and_selection() {
    agrees(
        "{ .reg .pred p, q; setp.lt.s32 p|q, $1, 0; selp.u32 $0, 1, 2, p; @q add.u32 $0, $0, 10; }",
        |x| {
            if (x as i32) < 0 { 1 } else { 12 }
        },
    );
    agrees(
        "{ .reg .pred p; setp.gt.u32 p, $1, 0x80000000; mov.u32 $0, 5; @!p mov.u32 $0, $1; }",
        |x| {
            if x > 0x8000_0000 { 5 } else { x }
        },
    );
    agrees(
        "{ .reg .pred p, r; setp.ne.u32 p, $1, 0; setp.lt.and.u32 r, $1, 1000, p; selp.b32 $0, 1, 0, !r; }",
        |x| u32::from(!(x < 1000 && x != 0)),
    );
}

#[test]
fn loops_with_labels() {
    agrees(
        "{ .reg .u32 n; .reg .pred p; mov.u32 $0, 0; and.b32 n, $1, 15;
           again: setp.eq.u32 p, n, 0; @p bra done; add.u32 $0, $0, n; sub.u32 n, n, 1; bra.uni again; done: }"
            .replace('\n', " ")
            .as_str(),
        |x| (0..=x & 15).sum(),
    );
}

#[test]
fn floating_point_rounds_as_named() {
    let float = |template: &str, x: f32| {
        let body = format!(
            "%f = bitcast i32 %x to float\n %r = call float asm \"{template}\", \"=f,f\"(float %f)\n %y = bitcast float %r to i32"
        );
        f32::from_bits(lanes("cuda:90", &body, &[x.to_bits()])[0])
    };
    assert_eq!(float("add.rz.f32 $0, $1, 0f33000000;", 1.0), 1.0);
    assert_eq!(
        float("add.rp.f32 $0, $1, 0f33000000;", 1.0),
        1.0f32.next_up()
    );
    assert_eq!(float("fma.rn.f32 $0, $1, $1, -9.0;", 3.0), 0.0);
    assert_eq!(float("ex2.approx.ftz.f32 $0, $1;", 3.0), 8.0);
    assert_eq!(float("rcp.approx.ftz.f32 $0, $1;", 4.0), 0.25);
    assert_eq!(float("min.xorsign.abs.f32 $0, $1, -2.0;", 5.0), -2.0);
    assert_eq!(float("cvt.rzi.f32.f32 $0, $1;", -2.75), -2.0);
    assert!(float("max.NaN.f32 $0, $1, 1.0;", f32::NAN).is_nan());
    assert_eq!(float("max.f32 $0, $1, 1.0;", f32::NAN), 1.0);
    assert_eq!(float("mul.rn.sat.f32 $0, $1, 2.0;", 5.0), 1.0);
    // A divisor whose reciprocal is subnormal: 2^127.
    assert_eq!(
        float("div.full.f32 $0, $1, 0f7f000000;", 1e38),
        1e38 / 2f32.powi(127)
    );
    assert_eq!(float("div.approx.f32 $0, $1, 0f7f000000;", 1e38), 0.0);
    assert!(float("div.approx.f32 $0, $1, 0f7f000000;", f32::INFINITY).is_nan());
    // NaN has no payload: all ones but the sign.
    for template in [
        "add.f32 $0, $1, $1;",
        "sqrt.rn.f32 $0, $1;",
        "neg.f32 $0, $1;",
    ] {
        let payload = f32::from_bits(0xffc0_1234);
        assert_eq!(
            float(template, payload).to_bits(),
            0x7fff_ffff,
            "{template}"
        );
    }
    // A result that is tiny before rounding is flushed: 2^-126 (1 - 2^-24).
    let below_one = 1f32.next_down();
    assert_eq!(
        float("mul.rn.f32 $0, $1, 0f00800000;", below_one),
        f32::MIN_POSITIVE
    );
    assert_eq!(float("mul.rn.ftz.f32 $0, $1, 0f00800000;", below_one), 0.0);
    assert_eq!(
        float("neg.ftz.f32 $0, $1;", 1e-40).to_bits(),
        (-0f32).to_bits()
    );
    // Zero, rounded downwards, is negative.
    assert_eq!(
        float("add.rm.f32 $0, $1, 0fbf800000;", 1.0).to_bits(),
        (-0f32).to_bits()
    );
    assert_eq!(
        float("fma.rm.f32 $0, $1, $1, 0fbf800000;", 1.0).to_bits(),
        (-0f32).to_bits()
    );
    assert_eq!(float("add.rm.f32 $0, $1, 0f00000000;", 0.0).to_bits(), 0);
}

/// NaN becomes the top bit alone where the source or the result has 64 bits.
#[test]
fn numbers_that_are_none_become_integers() {
    let integer = |template: &str| {
        let body = format!("%y = call i32 asm \"{template}\", \"=r,r\"(i32 %x)");
        lanes("cuda:90", &body, &[f32::NAN.to_bits()])[0]
    };
    assert_eq!(
        integer("{ .reg .f32 a; mov.b32 a, $1; cvt.rzi.s32.f32 $0, a; }"),
        0
    );
    let wide =
        "{ .reg .f32 a; .reg .f64 d; mov.b32 a, $1; cvt.f64.f32 d, a; cvt.rzi.s32.f64 $0, d; }";
    assert_eq!(integer(wide), 1 << 31);
    let long = "{ .reg .f32 a; .reg .b64 d; mov.b32 a, $1; cvt.rzi.u64.f32 d, a; shr.u64 d, d, 32; cvt.u32.u64 $0, d; }";
    assert_eq!(integer(long), 1 << 31);
}

/// `rcp.rn` of a double rounds once.
#[test]
fn reciprocals_of_doubles_round_once() {
    let body = "%a = uitofp i32 %x to double
             %r = call double asm \"rcp.rn.f64 $0, $1;\", \"=d,d\"(double %a)
             %g = bitcast double %r to i64
             %y = trunc i64 %g to i32";
    for (x, low) in
        [3u32, 7, 10, 49, 1_000_003]
            .iter()
            .zip(lanes("cuda:90", body, &[3, 7, 10, 49, 1_000_003]))
    {
        assert_eq!(low, (1.0 / f64::from(*x)).to_bits() as u32, "{x}");
    }
}

/// Approximations of doubles use the upper half, give the upper half, and treat subnormal numbers as zero.
#[test]
fn doubles_are_approximated_by_halves() {
    let upper = |template: &str, low: u32, high: u32| {
        let body = format!(
            "%a = zext i32 %x to i64
             %b = shl i64 %a, 32
             %c = or i64 %b, {low}
             %f = bitcast i64 %c to double
             %r = call double asm \"{template}\", \"=d,d\"(double %f)
             %g = bitcast double %r to i64
             %h = lshr i64 %g, 32
             %t = trunc i64 %h to i32
             %l = trunc i64 %g to i32
             %y = or i32 %t, %l"
        );
        lanes("cuda:90", &body, &[high])[0]
    };
    let one = 1f64.to_bits() >> 32;
    for template in ["rcp.approx.ftz.f64 $0, $1;", "rsqrt.approx.ftz.f64 $0, $1;"] {
        assert_eq!(u64::from(upper(template, 0, one as u32)), one);
        assert_eq!(u64::from(upper(template, 77, one as u32)), one);
        // The least number but one half is subnormal, and so is what begins like infinity and is NaN.
        assert_eq!(upper(template, 7, 0x000f_ffff), 0x7ff0_0000);
        assert_eq!(upper(template, 7, 0x7ff0_0000), 0);
    }
}

#[test]
fn conversions_of_small_formats() {
    // Two singles to FP8 and back through halves.
    agrees(
        "{ .reg .b16 h; .reg .f32 a; mov.b32 a, 0f43e00000; cvt.rn.satfinite.e4m3x2.f32 h, a, $1; cvt.rn.f16x2.e4m3x2 $0, h; }",
        |x| {
            let value = f32::from_bits(x);
            let clamped = if value.is_nan() {
                0x7e00
            } else {
                let magnitude = value.abs().min(448.0);
                // Nearest multiple of the format's spacing, ties to even.
                let exponent = magnitude.log2().floor().max(-6.0);
                let spacing = 2f32.powf(exponent - 3.0);
                let rounded = (magnitude / spacing).round_ties_even() * spacing;
                half_bits(rounded.min(448.0)) | if value.is_sign_negative() { 0x8000 } else { 0 }
            };
            0x5f00 << 16 | clamped
        },
    );
    agrees("cvt.rn.bf16x2.f32 $0, 0f3f800000, $1;", |x| {
        let value = f32::from_bits(x);
        let low = if value.is_nan() {
            (x >> 16 | 0x40) & 0xffff
        } else {
            (x + 0x7fff + (x >> 16 & 1)) >> 16
        };
        // NaNs are canonical.
        let low = if value.is_nan() { 0x7fc0 } else { low };
        0x3f80 << 16 | low
    });
}

/// The half of a single that is exactly a half.
fn half_bits(value: f32) -> u32 {
    if value == 0.0 {
        return 0;
    }
    let exponent = (value.to_bits() >> 23) as i32 - 127;
    if exponent >= -14 {
        ((exponent + 15) as u32) << 10 | (value.to_bits() >> 13 & 0x3ff)
    } else {
        (value * 2f32.powi(24)) as u32
    }
}

#[test]
fn predicated_memory_accesses() {
    let ir = lanewise(
        "cuda:90",
        "%p = icmp ult i32 %i, 20
  %y = call i32 asm sideeffect \"mov.u32 $0, 0x9;\\0A\\09@$2 ld.global.b32 { $0 }, [ $1 + 4 ];\", \"=r,l,b\"(ptr addrspace(1) %pi, i1 %p)
  call void asm sideeffect \"@!$2 st.global.L1::evict_first.b16 [ $1 + 0 ], { $0 };\", \"h,l,b\"(i16 77, ptr addrspace(1) %pi, i1 %p)",
    );
    let input: Vec<u32> = (0..32).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 128]),
    ];
    let (arguments, report) = run("cuda:90", &ir, 32, arguments);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let output: Vec<u32> = (0..32).map(|i| if i < 20 { i + 1 } else { 9 }).collect();
    assert_eq!(numbers(&arguments[1]), output);
    let stored: Vec<u32> = (0..32).map(|i| if i < 20 { i } else { 77 }).collect();
    assert_eq!(numbers(&arguments[0]), stored);
}

#[test]
fn vector_accesses_and_atomics() {
    let ir = lanewise(
        "cuda:90",
        "%four = shl i32 %i, 2
  %pv = getelementptr i32, ptr addrspace(1) %in, i32 %four
  %v = call { i32, i32, i32, i32 } asm sideeffect \"ld.global.v4.b32 { $0, $1, $2, $3 }, [ $4 + 0 ];\", \"=r,=r,=r,=r,l\"(ptr addrspace(1) %pv)
  %a = extractvalue { i32, i32, i32, i32 } %v, 3
  %q = getelementptr i32, ptr addrspace(1) %out, i32 8
  %old = call i32 asm sideeffect \"atom.global.gpu.acq_rel.add.u32 $0, [ $1 + 0 ], $2;\", \"=r,l,r\"(ptr addrspace(1) %q, i32 3)
  %y = add i32 %a, %old",
    );
    let input: Vec<u32> = (0..32).collect();
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 36]),
    ];
    let (arguments, _) = run("cuda:90", &ir, 8, arguments);
    let expected: Vec<u32> = (0..8).map(|i| 4 * i + 3 + 3 * i).chain([24]).collect();
    assert_eq!(numbers(&arguments[1]), expected);
}

#[test]
fn tied_operands_share_a_register() {
    let body = "%y = call i32 asm \"add.u32 $0, $0, $2;\", \"=r,0,r\"(i32 %x, i32 5)";
    assert_eq!(lanes("cuda:80", body, &[1, 2]), [6, 7]);
}

#[test]
fn unknown_assembly_is_named() {
    for (name, template, said) in [
        ("cuda:90", "frobnicate.u32 $0, $1;", "frobnicate.u32"),
        (
            "cuda:90",
            "ld.global.banana.b32 $0, [$1];",
            "ld.global.banana.b32",
        ),
        ("cuda:90", "mov.u32 $0, nowhere;", "nowhere"),
        ("cuda:90", "mov.u32 $0, %banana;", "%banana"),
        ("hip:gfx942", "v_frobnicate_b32 $0, $1", "v_frobnicate_b32"),
    ] {
        let ir = lanewise(
            name,
            &format!("%y = call i32 asm \"{template}\", \"=r,r\"(i32 %x)"),
        );
        let error = Machine::from_ir(ir.as_bytes(), target(name), None)
            .err()
            .unwrap();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn inline_assembly_of_amd_is_executed() {
    let check = |template: &str, model: fn(u32) -> u32| {
        let body = format!("%y = call i32 asm \"{template}\", \"=v,v\"(i32 %x)");
        let input = noise(64, 3);
        for (x, y) in input.iter().zip(lanes("hip:gfx942", &body, &input)) {
            assert_eq!(y, model(*x), "{template}");
        }
    };
    check("s_waitcnt lgkmcnt(0)\\0Av_and_b32 $0, 0xff00, $1", |x| {
        x & 0xff00
    });
    check("v_lshlrev_b32 $0, 3, $1", |x| x << 3);
    check("v_mov_b32 $0, $1; v_add_u32 $0, $0, 5", |x| {
        x.wrapping_add(5)
    });
    let body = "%y = call i32 asm sideeffect \"\", \"=v,0\"(i32 %x)";
    assert_eq!(lanes("hip:gfx942", body, &[4, 5]), [4, 5]);
}
