//! Scalar and vector arithmetic of LLVM itself, on both vendors alike.

use proptest::prelude::*;

use crate::harness::{lanes, noise};

const BOTH: [&str; 2] = ["cuda:90", "hip:gfx942"];

/// Checks an expression on one warp of noise against a model.
fn agrees(body: &str, model: impl Fn(u32) -> u32) {
    for name in BOTH {
        let input = noise(32, 1);
        let output = lanes(name, body, &input);
        for (x, y) in input.iter().zip(output) {
            assert_eq!(y, model(*x), "{name} {x:#x}\n{body}");
        }
    }
}

#[test]
fn integer_arithmetic_agrees_with_the_host() {
    agrees(
        "%a = mul i32 %x, 77\n %b = xor i32 %a, %x\n %y = sub i32 %b, 5",
        |x| (x.wrapping_mul(77) ^ x).wrapping_sub(5),
    );
    agrees(
        "%d = or i32 %i, 1\n %a = udiv i32 %x, 3\n %b = urem i32 %x, 1000\n %y = add i32 %a, %b",
        |x| x / 3 + x % 1000,
    );
    agrees(
        "%a = sdiv i32 %x, -7\n %b = srem i32 %x, 13\n %y = add i32 %a, %b",
        |x| ((x as i32 / -7).wrapping_add(x as i32 % 13)) as u32,
    );
    agrees(
        "%s = and i32 %x, 31\n %a = shl i32 %x, %s\n %b = ashr i32 %x, %s\n %y = xor i32 %a, %b",
        |x| (x << (x & 31)) ^ (x as i32 >> (x & 31)) as u32,
    );
    agrees(
        "%c = icmp slt i32 %x, 0\n %y = select i1 %c, i32 -1, i32 1",
        |x| {
            if (x as i32) < 0 { u32::MAX } else { 1 }
        },
    );
}

#[test]
fn integers_of_odd_widths_wrap() {
    agrees(
        "%t = trunc i32 %x to i13\n %m = mul i13 %t, 9\n %y = sext i13 %m to i32",
        |x| (((x.wrapping_mul(9) & 0x1fff) << 19) as i32 >> 19) as u32,
    );
    agrees(
        "%t = trunc i32 %x to i5\n %c = icmp sgt i5 %t, -3\n %y = zext i1 %c to i32",
        |x| u32::from(((x << 27) as i32 >> 27) > -3),
    );
    agrees(
        "%t = trunc i32 %x to i7\n %r = call i7 @llvm.bitreverse.i7(i7 %t)\n %y = zext i7 %r to i32",
        |x| (x & 127).reverse_bits() >> 25,
    );
}

#[test]
fn integers_of_128_bits() {
    agrees(
        "%w = sext i32 %x to i128
         %m = mul i128 %w, -123456789012345678901
         %s = ashr i128 %m, 65
         %a = add i128 %s, 18446744073709551617
         %h = lshr i128 %a, 3
         %y = trunc i128 %h to i32",
        |x| {
            let m = i128::from(x as i32).wrapping_mul(-123_456_789_012_345_678_901);
            (((m >> 65).wrapping_add(18_446_744_073_709_551_617)) as u128 >> 3) as u32
        },
    );
    agrees(
        "%w = sext i32 %x to i128\n %l = shl i128 %w, 40\n %c = icmp slt i128 %l, 5\n %y = zext i1 %c to i32",
        |x| u32::from((i128::from(x as i32) << 40) < 5),
    );
}

#[test]
fn comparisons_of_integers_of_many_words() {
    let compared = |with: &str, to: fn(i64) -> bool| {
        let code = format!("%w = sext i32 %x to i200\n %c = icmp {with}\n %y = zext i1 %c to i32");
        agrees(&code, |x| u32::from(to(i64::from(x as i32))));
    };
    compared("eq i200 %w, -1", |x| x == -1);
    compared("ne i200 %w, 7", |x| x != 7);
    compared("slt i200 %w, -7", |x| x < -7);
    compared("sge i200 %w, -7", |x| x >= -7);
    // As unsigned numbers, negative ones are greater than all others.
    compared("ugt i200 %w, 7", |x| !(0..=7).contains(&x));
    compared("ule i200 %w, -7", |x| x >= 0 || x <= -7);
}

#[test]
fn bits_and_saturation() {
    agrees(
        "%a = call i32 @llvm.ctpop.i32(i32 %x)\n %b = call i32 @llvm.ctlz.i32(i32 %x, i1 false)\n %c = call i32 @llvm.cttz.i32(i32 %x, i1 false)\n %d = add i32 %a, %b\n %y = add i32 %d, %c",
        |x| x.count_ones() + x.leading_zeros() + x.trailing_zeros(),
    );
    agrees("%y = call i32 @llvm.fshl.i32(i32 %x, i32 7, i32 %x)", |x| {
        let s = x % 32;
        if s == 0 { x } else { x << s | 7 >> (32 - s) }
    });
    agrees(
        "%a = call i32 @llvm.sadd.sat.i32(i32 %x, i32 2000000000)\n %y = call i32 @llvm.usub.sat.i32(i32 %a, i32 9)",
        |x| ((x as i32).saturating_add(2_000_000_000) as u32).saturating_sub(9),
    );
    agrees(
        "%p = call {i32, i1} @llvm.smul.with.overflow.i32(i32 %x, i32 3)\n %v = extractvalue {i32, i1} %p, 0\n %o = extractvalue {i32, i1} %p, 1\n %y = select i1 %o, i32 42, i32 %v",
        |x| (x as i32).checked_mul(3).map_or(42, |v| v as u32),
    );
    agrees("%y = call i32 @llvm.bswap.i32(i32 %x)", u32::swap_bytes);
}

#[test]
fn vectors_and_aggregates_are_renamed() {
    agrees(
        "%v = bitcast i32 %x to <4 x i8>
         %r = shufflevector <4 x i8> %v, <4 x i8> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
         %y = bitcast <4 x i8> %r to i32",
        u32::swap_bytes,
    );
    agrees(
        "%k = and i32 %x, 3
         %v = bitcast i32 %x to <4 x i8>
         %e = extractelement <4 x i8> %v, i32 %k
         %w = insertelement <4 x i8> %v, i8 99, i32 %k
         %z = zext i8 %e to i32
         %b = bitcast <4 x i8> %w to i32
         %y = xor i32 %b, %z",
        |x| {
            let k = 8 * (x & 3);
            let e = x >> k & 0xff;
            (x & !(0xff << k) | 99 << k) ^ e
        },
    );
    agrees(
        "%a = insertvalue { i32, [2 x i32] } poison, i32 %x, 1, 1
         %b = insertvalue { i32, [2 x i32] } %a, i32 7, 0
         %p = extractvalue { i32, [2 x i32] } %b, 1, 1
         %q = extractvalue { i32, [2 x i32] } %b, 0
         %y = add i32 %p, %q",
        |x| x.wrapping_add(7),
    );
}

#[test]
fn halves_are_rounded_once() {
    // 2049 is not a half: the sum of 2048 and 1 rounds to even.
    let body = "%h = trunc i32 %x to i16\n %f = bitcast i16 %h to half\n %s = fadd half %f, 1.0\n %b = bitcast half %s to i16\n %y = zext i16 %b to i32";
    for name in BOTH {
        let output = lanes(name, body, &[0x6800, 0x3c00, 0xbc00, 0x7c00]);
        assert_eq!(output, [0x6800, 0x4000, 0x0000, 0x7c00], "{name}");
    }
    let body = "%h = trunc i32 %x to i16\n %f = bitcast i16 %h to bfloat\n %s = fmul bfloat %f, %f\n %b = bitcast bfloat %s to i16\n %y = zext i16 %b to i32";
    for name in BOTH {
        assert_eq!(
            lanes(name, body, &[0x3f81, 0x4049]),
            [0x3f82, 0x411e],
            "{name}"
        );
    }
}

#[test]
fn conversions_saturate_where_llvm_says_nothing() {
    let body = "%f = bitcast i32 %x to float\n %y = fptosi float %f to i32";
    for name in BOTH {
        let input = [1e20f32, -1e20, f32::NAN, -1.75, 1.75].map(f32::to_bits);
        let expected = [i32::MAX, i32::MIN, 0, -1, 1].map(|v| v as u32);
        assert_eq!(lanes(name, body, &input), expected, "{name}");
    }
}

#[test]
fn flushing_subnormals_is_an_attribute() {
    let body =
        "%f = bitcast i32 %x to float\n %s = fadd float %f, 0.0\n %y = bitcast float %s to i32";
    let kept = crate::harness::lanewise("cuda:90", body);
    let flushed = kept.replace("{\nentry", "#0 {\nentry")
        + "attributes #0 = { \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\" }";
    for (ir, expected) in [(kept, 5), (flushed, 0)] {
        let arguments = vec![
            llopt_sim::Argument::Buffer(crate::harness::words(&[5])),
            llopt_sim::Argument::Buffer(vec![0; 4]),
        ];
        let (arguments, _) = crate::harness::run("cuda:90", &ir, 1, arguments);
        assert_eq!(crate::harness::numbers(&arguments[1]), [expected]);
    }
}

/// NaN has the bits that the target's units give, whether or not they flush subnormals.
#[test]
fn flushing_units_make_the_vendors_nan() {
    let body = "%f = bitcast i32 %x to float
         %d = fsub float %f, %f
         %m = fmul float %d, 2.0
         %s = call float @llvm.fma.f32(float %m, float %m, float %f)
         %y = bitcast float %s to i32";
    for (target, nan) in [
        ("cuda:90", 0x7fff_ffff),
        ("hip:gfx942", 0x7fc0_0000),
        ("hip:gfx1100", 0x7fc0_0000),
    ] {
        let kept = crate::harness::lanewise(target, body);
        let flushed = kept.replace("{\nentry", "#0 {\nentry")
            + "attributes #0 = { \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\" }";
        // Infinity minus itself is NaN; a subnormal is flushed only where the attribute says so.
        for (ir, small) in [(kept, 5), (flushed, 0)] {
            for (input, expected) in [(0x7f80_0000, nan), (0x7f80_0001, nan), (5, small)] {
                let arguments = vec![
                    llopt_sim::Argument::Buffer(crate::harness::words(&[input])),
                    llopt_sim::Argument::Buffer(vec![0; 4]),
                ];
                let (arguments, _) = crate::harness::run(target, &ir, 1, arguments);
                assert_eq!(
                    crate::harness::numbers(&arguments[1]),
                    [expected],
                    "{target}, {input:#x}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Single precision arithmetic is the host's, bit for bit.
    #[test]
    fn single_precision_agrees_with_the_host_bit_for_bit(seed in any::<u32>()) {
        let body = "%f = bitcast i32 %x to float
            %g = bitcast i32 %z to float
            %a = fadd float %f, %g
            %b = fmul float %a, %f
            %c = fdiv float %b, %g
            %d = call float @llvm.fma.f32(float %c, float %f, float %g)
            %y = bitcast float %d to i32";
        let body = format!("%z = xor i32 %x, 1234567\n {body}");
        let input = noise(32, seed);
        for name in BOTH {
            for (x, y) in input.iter().zip(lanes(name, &body, &input)) {
                let (f, g) = (f32::from_bits(*x), f32::from_bits(x ^ 1_234_567));
                let expected = ((f + g) * f / g).mul_add(f, g);
                let y = f32::from_bits(y);
                prop_assert!(y.to_bits() == expected.to_bits() || y.is_nan() && expected.is_nan());
            }
        }
    }
}

#[test]
fn classes_of_floats_have_one_numbering() {
    // NaN of both kinds, then everything negative.
    for test in [0x3u32, 0x3c] {
        let body = format!(
            "%f = bitcast i32 %x to float
             %c = call i1 @llvm.is.fpclass.f32(float %f, i32 {test})
             %d = call i1 @llvm.amdgcn.class.f32(float %f, i32 {test})
             %a = zext i1 %c to i32
             %b = select i1 %d, i32 2, i32 0
             %y = or i32 %a, %b"
        );
        let mut input = noise(28, 1);
        input.extend([0x7fc0_0000, 0xff80_0001, 0x8000_0000, 0x8000_0001]);
        let output = lanes("hip:gfx942", &body, &input);
        for (x, y) in input.iter().zip(output) {
            let value = f32::from_bits(*x);
            let expected = if test == 3 {
                value.is_nan()
            } else {
                value.is_sign_negative() && !value.is_nan()
            };
            assert_eq!(y, if expected { 3 } else { 0 }, "{x:#x} {test:#x}");
        }
    }
}

/// Corners of the formats and some noise, as singles.
fn wide_singles() -> Vec<u32> {
    let mut input = noise(15, 1);
    let corners = [
        0.0,
        -0.0,
        1.0,
        65504.0,
        65519.0,
        65520.0,
        -65536.0,
        6.0e-8,
        -3.0e-8,
        2.9e-8,
        1.5e38,
        -3.4e38,
        0.1,
        -2.7,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    input.extend(corners.map(f32::to_bits));
    input.push(0x7fc0_0000);
    input
}

/// The codes of a format's finite magnitudes are in order: the last whose value is at most `x`.
fn truncated(x: f64, finite: u32, mantissa: u32, bias: i32) -> u32 {
    let value = |code: u32| {
        let (e, m) = ((code >> mantissa) as i32, code & ((1 << mantissa) - 1));
        let (m, e) = if e == 0 {
            (m, 1)
        } else {
            (m | 1 << mantissa, e)
        };
        f64::from(m) * 2f64.powi(e - bias - mantissa as i32)
    };
    let (mut low, mut high) = (0, finite + 1);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) <= x {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn singles_narrow_towards_zero() {
    for (format, ty, finite, infinity, mantissa, bias) in [
        ("f2f16", "half", 0x7bff, 0x7c00, 10, 15),
        ("f2bf16", "bfloat", 0x7f7f, 0x7f80, 7, 127),
    ] {
        for suffix in ["", ".relu", ".satfinite", ".relu.satfinite"] {
            // The pair's first argument becomes its high half.
            let body = format!(
                "%f = bitcast i32 %x to float
                 %h = call {ty} @llvm.nvvm.{format}.rz{suffix}(float %f)
                 %v = call <2 x {ty}> @llvm.nvvm.f{format}x2.rz{suffix}(float %f, float 1.0)
                 %s = bitcast {ty} %h to i16
                 %w = extractelement <2 x {ty}> %v, i32 1
                 %l = extractelement <2 x {ty}> %v, i32 0
                 %e = fcmp oeq {ty} %l, 1.0
                 %wi = bitcast {ty} %w to i16
                 %same = icmp eq i16 %s, %wi
                 %good = and i1 %same, %e
                 %a = zext i16 %s to i32
                 %y = select i1 %good, i32 %a, i32 -1"
            );
            let input = wide_singles();
            for (x, y) in input.iter().zip(lanes("cuda:90", &body, &input)) {
                let value = f32::from_bits(*x);
                if value.is_nan() {
                    assert!(
                        y & 0x7fff > infinity && y <= 0xffff,
                        "{format}{suffix} {x:#x}: {y:#x}"
                    );
                    continue;
                }
                let magnitude = if value.is_infinite() && !suffix.contains("satfinite") {
                    infinity
                } else {
                    truncated(f64::from(value.abs()), finite, mantissa, bias)
                };
                let expected = match value.is_sign_negative() {
                    true if suffix.contains("relu") => 0,
                    true => magnitude | 0x8000,
                    false => magnitude,
                };
                assert_eq!(y, expected, "{format}{suffix} of {value:e}");
            }
        }
    }
}

#[test]
fn parts_of_floats_put_together_are_the_float() {
    let of_double = "%w = zext i32 %x to i64
         %u = shl i64 %w, 32
         %b = or i64 %u, 12345
         %d = bitcast i64 %b to double
         %m = call double @llvm.amdgcn.frexp.mant.f64(double %d)
         %e = call i32 @llvm.amdgcn.frexp.exp.i32.f64(double %d)";
    let mut input = noise(28, 3);
    // Zero, the least and a larger subnormal, infinity, NaN.
    input.extend([0x0000_0000, 0x0000_0001, 0x8008_0000, 0x7ff0_0000]);
    let high = "%b2 = bitcast double %m to i64\n %h = lshr i64 %b2, 32\n %y = trunc i64 %h to i32";
    let of = |rest: &str| lanes("hip:gfx942", &format!("{of_double}\n {rest}"), &input);
    let (mantissas, exponents) = (of(high), of("%y = add i32 %e, 0"));
    for ((x, high), exponent) in input.iter().zip(mantissas).zip(exponents) {
        let value = f64::from_bits(u64::from(*x) << 32 | 12345);
        if value.is_nan() {
            assert_eq!(high, x | 0x8_0000, "quiet");
            assert_eq!(exponent, 0);
            continue;
        }
        // Two factors: 2^-1073 is not a normal number.
        let exponent = exponent as i32;
        let mantissa = value * 2f64.powi(-exponent / 2) * 2f64.powi(-exponent - -exponent / 2);
        assert_eq!(high, (mantissa.to_bits() >> 32) as u32, "{value:e}");
        assert!(
            (0.5..1.0).contains(&mantissa.abs()),
            "{value:e}: {mantissa}"
        );
    }
}
