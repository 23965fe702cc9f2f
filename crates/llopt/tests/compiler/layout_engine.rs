//! Kernels without layouts, compiled for both vendors, executed on the simulated machine, and compared with the same
//! computation in Rust: for any layouts that the engine chooses, the results are those of the program, and the
//! sanitizer finds nothing.

use anyhow::{Context, Result, ensure};
use llopt::{ArtifactKind, Compilation, Compiler, Options, Source, Target};
use llopt_sim::{Argument, Launch, Machine};

const TARGETS: [&str; 4] = ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100"];

fn compile(text: &str, target: Target, kind: ArtifactKind, num_warps: u32) -> Result<Compilation> {
    let mut options = Options::new(target);
    options.num_warps = Some(num_warps);
    let source = Source::new("kernel.ttir", text);
    Ok(Compiler::new(options).compile(&source, kind)?)
}

/// Runs the kernel with these buffers of 32-bit words and returns their contents after it.
fn run(text: &str, target: &str, num_warps: u32, buffers: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
    let target = Target::parse(target)?;
    let compilation = compile(text, target, ArtifactKind::Llvm, num_warps)?;
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let mut arguments: Vec<Argument> = buffers
        .iter()
        .map(|words| Argument::Buffer(words.iter().flat_map(|w| w.to_le_bytes()).collect()))
        .collect();
    // The two scratch pointers at the end of every kernel's arguments.
    arguments.extend([Argument::Null, Argument::Null]);
    let threads = num_warps * target.warp_size();
    let mut launch = Launch::new([1, 1, 1], threads, arguments);
    launch.dynamic_shared = u64::from(compilation.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(
        report.findings.is_empty(),
        "{target}: {:?}",
        report.findings
    );
    launch.arguments[..buffers.len()]
        .iter()
        .map(|argument| match argument {
            Argument::Buffer(bytes) => Ok(bytes
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect()),
            _ => None.context("a buffer stays a buffer"),
        })
        .collect()
}

const TRANSPOSE: &str = r#"
tt.func public @transpose(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                          %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %rows = tt.broadcast %row : tensor<32x1xi32> -> tensor<32x64xi32>
  %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<32x64xi32>
  %width = arith.constant dense<64> : tensor<32x64xi32>
  %height = arith.constant dense<32> : tensor<32x64xi32>
  %start = arith.muli %rows, %width : tensor<32x64xi32>
  %source = arith.addi %start, %columns : tensor<32x64xi32>
  %f = tt.splat %from : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>>
  %p = tt.addptr %f, %source : tensor<32x64x!tt.ptr<i32>>, tensor<32x64xi32>
  %x = tt.load %p : tensor<32x64x!tt.ptr<i32>>
  %down = arith.muli %columns, %height : tensor<32x64xi32>
  %target = arith.addi %down, %rows : tensor<32x64xi32>
  %t = tt.splat %to : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>>
  %q = tt.addptr %t, %target : tensor<32x64x!tt.ptr<i32>>, tensor<32x64xi32>
  tt.store %q, %x : tensor<32x64x!tt.ptr<i32>>
  tt.return
}
"#;

#[test]
fn a_transpose_moves_its_data_at_most_once() -> Result<()> {
    let input: Vec<u32> = (0..32 * 64).map(|i| i * 7 + 1).collect();
    let expected: Vec<u32> = (0..64 * 32).map(|i| input[i % 32 * 64 + i / 32]).collect();
    for target in TARGETS {
        let buffers = run(TRANSPOSE, target, 4, &[input.clone(), vec![0; 32 * 64]])?;
        assert_eq!(buffers[1], expected, "{target}");
        let target = Target::parse(target)?;
        let layouts = compile(TRANSPOSE, target, ArtifactKind::Ttgir, 4)?;
        let text = layouts.artifact.text().context("layouts are text")?;
        // None where the lanes of a warp already cover whole sectors in both directions.
        let conversions = text.matches("ttg.convert_layout").count();
        assert!(conversions <= 1, "{text}");
    }
    Ok(())
}

const NORMALIZE: &str = r#"
tt.func public @normalize(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                          %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %column = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %rows = tt.broadcast %row : tensor<16x1xi32> -> tensor<16x128xi32>
  %columns = tt.broadcast %column : tensor<1x128xi32> -> tensor<16x128xi32>
  %width = arith.constant dense<128> : tensor<16x128xi32>
  %start = arith.muli %rows, %width : tensor<16x128xi32>
  %offset = arith.addi %start, %columns : tensor<16x128xi32>
  %f = tt.splat %from : !tt.ptr<i32> -> tensor<16x128x!tt.ptr<i32>>
  %p = tt.addptr %f, %offset : tensor<16x128x!tt.ptr<i32>>, tensor<16x128xi32>
  %x = tt.load %p : tensor<16x128x!tt.ptr<i32>>
  %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.reduce.return %s : i32
  }) : (tensor<16x128xi32>) -> tensor<16xi32>
  %least = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.minsi %a, %b : i32
    tt.reduce.return %s : i32
  }) : (tensor<16x128xi32>) -> tensor<128xi32>
  %sums = tt.expand_dims %sum {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %leasts = tt.expand_dims %least {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %all = tt.broadcast %sums : tensor<16x1xi32> -> tensor<16x128xi32>
  %low = tt.broadcast %leasts : tensor<1x128xi32> -> tensor<16x128xi32>
  %y = arith.subi %all, %x : tensor<16x128xi32>
  %z = arith.subi %y, %low : tensor<16x128xi32>
  %t = tt.splat %to : !tt.ptr<i32> -> tensor<16x128x!tt.ptr<i32>>
  %q = tt.addptr %t, %offset : tensor<16x128x!tt.ptr<i32>>, tensor<16x128xi32>
  tt.store %q, %z : tensor<16x128x!tt.ptr<i32>>
  tt.return
}
"#;

#[test]
fn reductions_along_both_axes_meet_again() -> Result<()> {
    let input: Vec<u32> = (0..16 * 128u32)
        .map(|i| i.wrapping_mul(40503) >> 4)
        .collect();
    let sum = |row: usize| {
        input[row * 128..][..128]
            .iter()
            .fold(0, |s: u32, &x| s.wrapping_add(x))
    };
    let least = |column: usize| {
        (0..16)
            .map(|row| input[row * 128 + column])
            .min()
            .unwrap_or(0)
    };
    let expected: Vec<u32> = (0..16 * 128)
        .map(|i| {
            sum(i / 128)
                .wrapping_sub(input[i])
                .wrapping_sub(least(i % 128))
        })
        .collect();
    for target in TARGETS {
        for num_warps in [1, 4, 8] {
            let buffers = run(
                NORMALIZE,
                target,
                num_warps,
                &[input.clone(), vec![0; 16 * 128]],
            )?;
            assert_eq!(buffers[1], expected, "{target}, {num_warps} warps");
        }
    }
    Ok(())
}

const ROWS: &str = r#"
tt.func public @rows(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                     %to: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                     %taken: !tt.ptr<i32>, %given: !tt.ptr<i32>) {
  %one = arith.constant 1 : i64
  %width = arith.constant 64 : i64
  %extent = arith.constant 64 : i32
  %left = arith.constant 0 : i32
  %right = arith.constant 32 : i32
  %source = tt.make_tensor_descriptor %from, [%extent, %extent], [%width, %one] : <i32>, <tensor<1x32xi32>>
  %target = tt.make_tensor_descriptor %to, [%extent, %extent], [%width, %one] : <i32>, <tensor<1x32xi32>>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %t = tt.splat %taken : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %tp = tt.addptr %t, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %takes = tt.load %tp : tensor<16x!tt.ptr<i32>>
  %g = tt.splat %given : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %gp = tt.addptr %g, %r : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %gives = tt.load %gp : tensor<16x!tt.ptr<i32>>
  %x = tt.descriptor_gather %source[%takes, %right] : (!tt.tensordesc<tensor<1x32xi32>>, tensor<16xi32>, i32) -> tensor<16x32xi32>
  %y = arith.addi %x, %x : tensor<16x32xi32>
  tt.descriptor_scatter %target[%gives, %left], %y : !tt.tensordesc<tensor<1x32xi32>>, tensor<16xi32>, i32, tensor<16x32xi32>
  tt.return
}
"#;

#[test]
fn rows_are_gathered_and_scattered_by_descriptors() -> Result<()> {
    let input: Vec<u32> = (0..64 * 64).map(|i| i * 3 + 5).collect();
    // One row is outside of the matrix and reads as zeros; one is stored outside of it, which has no effect.
    let taken: Vec<u32> = (0..16)
        .map(|i| if i == 3 { 64 } else { i * 7 % 64 })
        .collect();
    let given: Vec<u32> = (0..16)
        .map(|i| if i == 9 { 70 } else { i * 5 % 64 })
        .collect();
    let mut expected = vec![0; 64 * 64];
    for (&from, &to) in taken.iter().zip(&given) {
        for column in 0..32 {
            if to < 64 {
                let place = (from * 64 + 32 + column) as usize;
                let value = if from < 64 { 2 * input[place] } else { 0 };
                expected[(to * 64 + column) as usize] = value;
            }
        }
    }
    for target in TARGETS {
        let buffers = [
            input.clone(),
            vec![0; 64 * 64],
            taken.clone(),
            given.clone(),
        ];
        assert_eq!(run(ROWS, target, 4, &buffers)?[1], expected, "{target}");
    }
    Ok(())
}

#[test]
fn several_threads_compile_at_once_and_alike() -> Result<()> {
    let target = Target::parse("cuda:90")?;
    let alone = compile(NORMALIZE, target, ArtifactKind::Ptx, 4)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| compile(NORMALIZE, target, ArtifactKind::Ptx, 4)))
            .collect();
        for thread in threads {
            let result = thread.join().ok().context("no thread panics")??;
            assert_eq!(result.artifact.bytes(), alone.artifact.bytes());
        }
        Ok(())
    })
}
