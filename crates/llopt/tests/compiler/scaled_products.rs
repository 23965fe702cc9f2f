//! Scaled products without layouts, on the simulated machine, compared with the formats' definitions: every code of
//! an element, times scales from the least to the greatest, which is NaN.
//!
//! The second factor selects elements of the first one by one, so that each result is one exact product.

use anyhow::{Context, Result, ensure};
use llopt::{ArtifactKind, Compilation, Compiler, Options, Source, Target};
use llopt_sim::{Argument, Launch, Machine};

const ROWS: usize = 32;
const DEPTH: usize = 64;
/// Scales of a row, one for each 32 elements.
const GROUPS: usize = 2;
/// The number by which the second factor selects elements, so that results are normal numbers.
const PICKED: f32 = 1024.0;
/// `PICKED` as bfloat16.
const PICKED_BITS: u16 = 0x4480;

const KERNEL: &str = r#"
module {
  tt.func public @k(%a: !tt.ptr<i8>, %s: !tt.ptr<i8>, %b: !tt.ptr<bf16>, %o: !tt.ptr<f32>) {
    %m = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %g = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
    %mr = tt.expand_dims %m {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %c64 = arith.constant dense<64> : tensor<32x1xi32>
    %c32 = arith.constant dense<32> : tensor<32x1xi32>
    %c2 = arith.constant dense<2> : tensor<32x1xi32>
    %c32k = arith.constant dense<32> : tensor<64x1xi32>
    %r64 = arith.muli %mr, %c64 : tensor<32x1xi32>
    %kc = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %x0 = tt.broadcast %r64 : tensor<32x1xi32> -> tensor<32x64xi32>
    %x1 = tt.broadcast %kc : tensor<1x64xi32> -> tensor<32x64xi32>
    %ai = arith.addi %x0, %x1 : tensor<32x64xi32>
    %as = tt.splat %a : !tt.ptr<i8> -> tensor<32x64x!tt.ptr<i8>>
    %ap = tt.addptr %as, %ai : tensor<32x64x!tt.ptr<i8>>, tensor<32x64xi32>
    %av = tt.load %ap : tensor<32x64x!tt.ptr<i8>>
    %r2 = arith.muli %mr, %c2 : tensor<32x1xi32>
    %gc = tt.expand_dims %g {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
    %y0 = tt.broadcast %r2 : tensor<32x1xi32> -> tensor<32x2xi32>
    %y1 = tt.broadcast %gc : tensor<1x2xi32> -> tensor<32x2xi32>
    %si = arith.addi %y0, %y1 : tensor<32x2xi32>
    %ss = tt.splat %s : !tt.ptr<i8> -> tensor<32x2x!tt.ptr<i8>>
    %sp = tt.addptr %ss, %si : tensor<32x2x!tt.ptr<i8>>, tensor<32x2xi32>
    %sv = tt.load %sp : tensor<32x2x!tt.ptr<i8>>
    %kr = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %kr32 = arith.muli %kr, %c32k : tensor<64x1xi32>
    %mc = tt.expand_dims %m {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %z0 = tt.broadcast %kr32 : tensor<64x1xi32> -> tensor<64x32xi32>
    %z1 = tt.broadcast %mc : tensor<1x32xi32> -> tensor<64x32xi32>
    %bi = arith.addi %z0, %z1 : tensor<64x32xi32>
    %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<64x32x!tt.ptr<bf16>>
    %bp = tt.addptr %bs, %bi : tensor<64x32x!tt.ptr<bf16>>, tensor<64x32xi32>
    %bv = tt.load %bp : tensor<64x32x!tt.ptr<bf16>>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = tt.dot_scaled %av scale %sv, %bv, %zero lhs = FORMAT rhs = bf16 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
    %q = arith.muli %mr, %c32 : tensor<32x1xi32>
    %w0 = tt.broadcast %q : tensor<32x1xi32> -> tensor<32x32xi32>
    %w1 = tt.broadcast %mc : tensor<1x32xi32> -> tensor<32x32xi32>
    %oi = arith.addi %w0, %w1 : tensor<32x32xi32>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
    %op = tt.addptr %os, %oi : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    tt.store %op, %d : tensor<32x32x!tt.ptr<f32>>
    tt.return
  }
}
"#;

/// The value of a code of a small float.
fn decode(code: u8, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f64 {
    let field = |low: u32, bits: u32| u32::from(code) >> low & ((1 << bits) - 1);
    let (mantissa, exponent) = (field(0, mantissa_bits), field(mantissa_bits, exponent_bits));
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent as i32 - bias),
    };
    match field(mantissa_bits + exponent_bits, 1) {
        0 => magnitude,
        _ => -magnitude,
    }
}

fn run(format: &str, target: &str, codes: &[u8], scales: &[u8]) -> Result<Vec<f32>> {
    let target = Target::parse(target)?;
    let mut options = Options::new(target);
    options.num_warps = Some(4);
    let source = Source::new("kernel.ttir", KERNEL.replace("FORMAT", format));
    let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let picks = (0..DEPTH * ROWS).map(|place| match place / ROWS == place % ROWS {
        true => PICKED_BITS,
        false => 0,
    });
    let arguments = vec![
        Argument::Buffer(codes.to_vec()),
        Argument::Buffer(scales.to_vec()),
        Argument::Buffer(picks.flat_map(u16::to_le_bytes).collect()),
        Argument::Buffer(vec![0; ROWS * ROWS * 4]),
        Argument::Null,
        Argument::Null,
    ];
    launch(&machine, &compilation, target, arguments, 3)
}

/// Runs a block of four warps; returns the contents of the buffer `result`.
fn launch(
    machine: &Machine,
    compilation: &Compilation,
    target: Target,
    arguments: Vec<Argument>,
    result: usize,
) -> Result<Vec<f32>> {
    let mut launch = Launch::new([1, 1, 1], 4 * target.warp_size(), arguments);
    launch.dynamic_shared = u64::from(compilation.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(report.findings.is_empty(), "{:?}", report.findings);
    let Argument::Buffer(bytes) = &launch.arguments[result] else {
        return None.context("a buffer stays a buffer");
    };
    let words = bytes.chunks_exact(4);
    Ok(words
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect())
}

#[test]
fn every_code_times_scales_is_exact() -> Result<()> {
    // Each row has another scale, so that each code is multiplied by each scale once.
    const SCALES: [u8; 8] = [0, 1, 2, 64, 127, 200, 220, 0xff];
    for target in ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100"] {
        for (format, exponent, mantissa, bias) in
            [("e2m3", 2, 3, 1), ("e3m2", 3, 2, 3), ("e5m2", 5, 2, 15)]
        {
            let count = 1usize << (exponent + mantissa + 1);
            for start in (0..count).step_by(ROWS * ROWS / SCALES.len()) {
                let code = |place: usize| {
                    let (row, column) = (place / DEPTH, place % DEPTH % ROWS);
                    (start + row / SCALES.len() * ROWS + column) % count
                };
                let codes: Vec<u8> = (0..ROWS * DEPTH).map(|place| code(place) as u8).collect();
                let scales: Vec<u8> = (0..ROWS * GROUPS)
                    .map(|place| SCALES[place / GROUPS % SCALES.len()])
                    .collect();
                let results = run(format, target, &codes, &scales)?;
                for (place, found) in results.into_iter().enumerate() {
                    let (row, column) = (place / ROWS, place % ROWS);
                    let code = codes[row * DEPTH + column];
                    // A code that is not finite makes other results of its row NaN, too.
                    let is_finite = |code: u8| format != "e5m2" || code & 0x7c != 0x7c;
                    if !(0..DEPTH).all(|k| is_finite(codes[row * DEPTH + k])) {
                        continue;
                    }
                    let scale = scales[row * GROUPS];
                    if scale == 0xff {
                        ensure!(
                            found.is_nan(),
                            "{target} {format}: {found} where the scale is none"
                        );
                        continue;
                    }
                    let scaled =
                        decode(code, exponent, mantissa, bias) * 2f64.powi(i32::from(scale) - 127);
                    // A result below the least bfloat16 is rounded, to one of two.
                    if (scaled * 2f64.powi(133)).fract() != 0.0 {
                        continue;
                    }
                    let wanted = scaled * f64::from(PICKED);
                    ensure!(
                        f64::from(found) == wanted,
                        "{target} {format}: {code:#x} times {scale} gives {found}, not {wanted}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Rows and columns of a product whose factors both have scales, and its depth.
const SIDE: usize = 64;
const LONG: usize = 128;

/// The text that loads `%name`, a matrix of bytes by rows, or stores `%d` there.
fn tile(name: &str, [rows, columns]: [usize; 2], element: &str) -> String {
    let (of, index) = (
        format!("{rows}x{columns}x"),
        format!("{rows}x{columns}xi32"),
    );
    format!(
        r#"
    %{name}r = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32>
    %{name}c = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32>
    %{name}r1 = tt.expand_dims %{name}r {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
    %{name}c1 = tt.expand_dims %{name}c {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
    %{name}n = arith.constant dense<{columns}> : tensor<{rows}x1xi32>
    %{name}rn = arith.muli %{name}r1, %{name}n : tensor<{rows}x1xi32>
    %{name}r2 = tt.broadcast %{name}rn : tensor<{rows}x1xi32> -> tensor<{index}>
    %{name}c2 = tt.broadcast %{name}c1 : tensor<1x{columns}xi32> -> tensor<{index}>
    %{name}i = arith.addi %{name}r2, %{name}c2 : tensor<{index}>
    %{name}s = tt.splat %{name} : !tt.ptr<{element}> -> tensor<{of}!tt.ptr<{element}>>
    %{name}p = tt.addptr %{name}s, %{name}i : tensor<{of}!tt.ptr<{element}>>, tensor<{index}>"#
    )
}

/// A product of factors that both have scales.
fn both_scaled(lhs: &str, rhs: &str) -> String {
    let depth = |format: &str| if format == "e2m1" { LONG / 2 } else { LONG };
    let (a, b) = ([SIDE, depth(lhs)], [depth(rhs), SIDE]);
    let scales = [SIDE, LONG / 32];
    let mut text = String::from(
        "module {\n  tt.func public @k(%a: !tt.ptr<i8>, %u: !tt.ptr<i8>, %b: !tt.ptr<i8>, %v: !tt.ptr<i8>, %o: !tt.ptr<f32>) {",
    );
    for (name, extents) in [("a", a), ("u", scales), ("b", b), ("v", scales)] {
        let of = format!("tensor<{}x{}x!tt.ptr<i8>>", extents[0], extents[1]);
        text += &tile(name, extents, "i8");
        text += &format!("\n    %{name}x = tt.load %{name}p : {of}");
    }
    text += &tile("o", [SIDE, SIDE], "f32");
    let ty = |[rows, columns]: [usize; 2]| format!("tensor<{rows}x{columns}xi8>");
    let (a, b, scales, sum) = (
        ty(a),
        ty(b),
        ty(scales),
        format!("tensor<{SIDE}x{SIDE}xf32>"),
    );
    text += &format!(
        r#"
    %z = arith.constant dense<0.0> : {sum}
    %d = tt.dot_scaled %ax scale %ux, %bx scale %vx, %z lhs = {lhs} rhs = {rhs} {{fastMath = false}} : {a}, {scales} * {b}, {scales} -> {sum}
    tt.store %op, %d : tensor<{SIDE}x{SIDE}x!tt.ptr<f32>>
    tt.return
  }}
}}
"#
    );
    text
}

/// Codes of four bits, two in a byte along the first of two axes, or the second.
fn packed(codes: &[u8], columns: usize, down: bool) -> Vec<u8> {
    let rows = codes.len() / columns;
    let pair = |low: u8, high: u8| low | high << 4;
    match down {
        true => (0..rows / 2 * columns)
            .map(|place| {
                let first = place / columns * 2 * columns + place % columns;
                pair(codes[first], codes[first + columns])
            })
            .collect(),
        false => codes
            .chunks_exact(2)
            .map(|two| pair(two[0], two[1]))
            .collect(),
    }
}

/// Column `j` of the second factor selects one element of each row, of another group than its neighbours.
#[test]
fn both_factors_have_their_scales() -> Result<()> {
    // The bits of exponent and mantissa, the bias, and the code of one.
    let formats = [
        ("e4m3", 4, 3, 7, 0x38u8),
        ("e5m2", 5, 2, 15, 0x3c),
        ("e2m1", 2, 1, 1, 2),
    ];
    let (groups, picked) = (LONG / 32, |column: usize| (column * 37 + column / 8) % LONG);
    for target in ["hip:gfx950", "hip:gfx942"] {
        for (lhs, exponent, mantissa, bias, _) in formats {
            for (rhs, .., one) in formats {
                let codes: Vec<u8> = (0..SIDE * LONG)
                    .map(|place| {
                        let code =
                            (place * 89 + place / LONG * 7) % (1 << (exponent + mantissa + 1));
                        // Codes that are not finite are left out.
                        let last = (1 << exponent) - 1;
                        match lhs != "e2m1" && code >> mantissa & last == last {
                            true => code as u8 & !(1 << mantissa),
                            false => code as u8,
                        }
                    })
                    .collect();
                let picks: Vec<u8> = (0..LONG * SIDE)
                    .map(|place| {
                        if picked(place % SIDE) == place / SIDE {
                            one
                        } else {
                            0
                        }
                    })
                    .collect();
                let scale =
                    |row: usize, group: usize, by: usize| (120 + (row * by + 3 * group) % 15) as u8;
                let scales = |by: usize| -> Vec<u8> {
                    (0..SIDE * groups)
                        .map(|place| scale(place / groups, place % groups, by))
                        .collect()
                };
                let of = |codes: &[u8], format, columns, down| match format {
                    "e2m1" => packed(codes, columns, down),
                    _ => codes.to_vec(),
                };
                let target = Target::parse(target)?;
                let mut options = Options::new(target);
                options.num_warps = Some(4);
                let source = Source::new("kernel.ttir", both_scaled(lhs, rhs));
                let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
                let text = String::from_utf8_lossy(compilation.artifact.bytes()).into_owned();
                let by_unit = target.has(llopt_target::Feature::MfmaScaled);
                ensure!(
                    text.contains("mfma.scale") == by_unit,
                    "{target} {lhs} {rhs}"
                );
                let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
                let arguments = vec![
                    Argument::Buffer(of(&codes, lhs, LONG, false)),
                    Argument::Buffer(scales(1)),
                    Argument::Buffer(of(&picks, rhs, SIDE, true)),
                    Argument::Buffer(scales(5)),
                    Argument::Buffer(vec![0; SIDE * SIDE * 4]),
                    Argument::Null,
                    Argument::Null,
                ];
                let results = launch(&machine, &compilation, target, arguments, 4)?;
                for (place, found) in results.into_iter().enumerate() {
                    let (row, column) = (place / SIDE, place % SIDE);
                    let k = picked(column);
                    let power =
                        i32::from(scale(row, k / 32, 1)) + i32::from(scale(column, k / 32, 5));
                    let number = decode(codes[row * LONG + k], exponent, mantissa, bias);
                    let wanted = number * 2f64.powi(power - 254);
                    ensure!(
                        f64::from(found) == wanted,
                        "{target} {lhs} {rhs}: {found} at {row}, {column}, not {wanted}"
                    );
                }
            }
        }
    }
    Ok(())
}
