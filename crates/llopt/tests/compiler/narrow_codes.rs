//! Every byte, as an integer, as a float of eight bits and as two of four, becomes the float of sixteen bits with the
//! same value.

use llopt::sim::{self, Argument, Machine};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

/// Targets that widen by words, by single instructions, and by arithmetic.
const TARGETS: [&str; 6] = [
    "cuda:75",
    "cuda:80",
    "cuda:90",
    "hip:gfx942",
    "hip:gfx950",
    "hip:gfx1100",
];

/// A kernel that widens 256 bytes, `per_byte` values of each, by an op between `of` and `to`.
fn kernel(widening: &str, per_byte: u32, float: &str) -> String {
    let count = 256 * per_byte;
    let layout = |elements: u32| {
        format!(
            "#ttg.blocked<{{sizePerThread = [{elements}], threadsPerWarp = [LANES], warpsPerCTA = [1], order = [0]}}>"
        )
    };
    let (of, to) = (layout(8), layout(8 * per_byte));
    format!(
        r#"#of = {of}
#to = {to}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = LANES : i32}} {{
  tt.func public @widen(%out: !tt.ptr<{float}>, %in: !tt.ptr<i8>) {{
    %i = tt.make_range {{start = 0 : i32, end = 256 : i32}} : tensor<256xi32, #of>
    %from = tt.splat %in : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #of>
    %places = tt.addptr %from, %i : tensor<256x!tt.ptr<i8>, #of>, tensor<256xi32, #of>
    %bytes = tt.load %places : tensor<256x!tt.ptr<i8>, #of>
    %wide = {widening} : tensor<256xi8, #of> {} tensor<{count}x{float}, #to>
    %j = tt.make_range {{start = 0 : i32, end = {count} : i32}} : tensor<{count}xi32, #to>
    %into = tt.splat %out : !tt.ptr<{float}> -> tensor<{count}x!tt.ptr<{float}>, #to>
    %there = tt.addptr %into, %j : tensor<{count}x!tt.ptr<{float}>, #to>, tensor<{count}xi32, #to>
    tt.store %there, %wide : tensor<{count}x!tt.ptr<{float}>, #to>
    tt.return
  }}
}}
"#,
        if per_byte == 1 { "to" } else { "->" }
    )
}

/// The machine's result for all bytes.
fn widened(text: &str, target: Target, values: usize) -> Vec<u16> {
    let lanes = target.warp_size().to_string();
    let source = Source::new("widen.ttgir", text.replace("LANES", &lanes));
    let compiler = Compiler::new(Options::new(target));
    let llvm = compiler.compile(&source, ArtifactKind::Llvm).unwrap();
    let machine = Machine::from_ir(llvm.artifact.bytes(), target, None).unwrap();
    let arguments = vec![
        Argument::Uninitialized(2 * values),
        Argument::Buffer((0..=u8::MAX).collect()),
    ];
    let mut launch = llvm.metadata.launch([1, 1, 1], arguments);
    let report = machine.run(&mut launch, &sim::Options::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let Argument::Buffer(bytes) = &launch.arguments[0] else {
        panic!("the result is a buffer");
    };
    let codes = bytes.chunks_exact(2);
    codes
        .map(|code| u16::from_le_bytes([code[0], code[1]]))
        .collect()
}

/// The code of a number that a float of 16 bits, with `mantissa` bits of fraction, represents exactly.
fn code(value: f32, mantissa: u32) -> u16 {
    if value == 0.0 {
        return if value.is_sign_negative() { 0x8000 } else { 0 };
    }
    let (bits, bias) = (value.to_bits(), (1 << (14 - mantissa)) - 1);
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + bias;
    let fraction = (bits & 0x7f_ffff) >> (23 - mantissa);
    (bits >> 31 << 15 | (exponent as u32) << mantissa | fraction) as u16
}

const FLOATS: [(&str, u32); 2] = [("f16", 10), ("bf16", 7)];

#[test]
fn integers_of_eight_bits() {
    let signed = |byte: u8| f32::from(byte.cast_signed());
    let ops: [(&str, &dyn Fn(u8) -> f32); 2] =
        [("arith.sitofp", &signed), ("arith.uitofp", &f32::from)];
    for (float, mantissa) in FLOATS {
        for (op, number) in ops {
            let expected: Vec<u16> = (0..=u8::MAX)
                .map(|byte| code(number(byte), mantissa))
                .collect();
            let text = kernel(&format!("{op} %bytes"), 1, float);
            for target in TARGETS.map(|name| Target::parse(name).unwrap()) {
                let found = widened(&text, target, 256);
                assert_eq!(found, expected, "{op} to {float} on {target}");
            }
        }
    }
}

#[test]
fn floats_of_four_bits() {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let number = |code: u8| {
        let magnitude = MAGNITUDES[usize::from(code & 7)];
        if code & 8 == 0 { magnitude } else { -magnitude }
    };
    for (float, mantissa) in FLOATS {
        let expected: Vec<u16> = (0..=u8::MAX)
            .flat_map(|byte| [byte & 15, byte >> 4])
            .map(|nibble| code(number(nibble), mantissa))
            .collect();
        let text = kernel("ttg.fp4_to_fp %bytes {axis = 0 : i32}", 2, float);
        for target in TARGETS.map(|name| Target::parse(name).unwrap()) {
            assert_eq!(widened(&text, target, 512), expected, "{float} on {target}");
        }
    }
}

#[test]
fn floats_of_eight_bits_that_are_upper_bytes() {
    let bitcast = "%codes = tt.bitcast %bytes : tensor<256xi8, #of> -> tensor<256xf8E5M2, #of>";
    let text = kernel("tt.fp_to_fp %codes", 1, "f16")
        .replace("%wide = ", &format!("{bitcast}\n    %wide = "))
        .replace("tensor<256xi8, #of> to", "tensor<256xf8E5M2, #of> ->");
    for target in TARGETS.map(|name| Target::parse(name).unwrap()) {
        let halves = widened(&text, target, 256);
        for (byte, half) in (0..=u8::MAX).zip(halves) {
            let is_nan = half & 0x7c00 == 0x7c00 && half & 0x3ff != 0;
            if byte & 0x7f > 0x7c {
                assert!(is_nan, "{byte:#x} on {target} is {half:#x}");
            } else {
                assert_eq!(half, u16::from(byte) << 8, "{byte:#x} on {target}");
            }
        }
    }
}
