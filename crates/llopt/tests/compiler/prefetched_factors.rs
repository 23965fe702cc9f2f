//! Products whose factors come from buffers that a loop carries: with the first part of each factor read an iteration
//! ahead they leave what the reference interpreter leaves for the kernel as it is written.

use anyhow::{Context as _, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use llopt_transforms::loops::view::For;
use llopt_transforms::pipelining::prefetch;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use crate::contents::halves;
use crate::emitted::Emitted;
use crate::loops::context;

/// Extents of the result, and of k in an iteration.
const ROWS: usize = 64;
const COLUMNS: usize = 32;
const DEPTH: usize = 64;

/// A target, the layout of its products, and their factors' `kWidth`.
const TARGETS: [(&str, u32, &str, u32); 3] = [
    (
        "cuda:80",
        32,
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>",
        2,
    ),
    (
        "hip:gfx942",
        64,
        "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = true}>",
        4,
    ),
    (
        "hip:gfx1100",
        32,
        "#ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>",
        16,
    ),
];

/// `c = a·|b|`, `b` stored as bytes.
fn kernel(target: &str, lanes: u32, product: &str, k_width: u32) -> String {
    let across = lanes / 8;
    format!(
        "#row = #ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [{across}, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
#s = #ttg.swizzled_shared<{{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}}>
#t = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}}>
#c = {product}
#a = #ttg.dot_op<{{opIdx = 0, parent = #c, kWidth = {k_width}}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #c, kWidth = {k_width}}}>
#smem = #ttg.shared_memory
!pa = tensor<64x64x!tt.ptr<f16>, #row>
!pb = tensor<64x32x!tt.ptr<i8>, #row>
!ma = !ttg.memdesc<64x64xf16, #s, #smem>
!mb = !ttg.memdesc<64x32xi8, #t, #smem>
!sum = tensor<64x32xf32, #c>
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = \"{target}\", \"ttg.threads-per-warp\" = {lanes} : i32}} {{
  tt.func public @kernel(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<i8> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %step_a = arith.constant dense<4096> : tensor<64x64xi32, #row>
    %step_b = arith.constant dense<2048> : tensor<64x32xi32, #row>
    %w64 = arith.constant dense<64> : tensor<64x1xi32, #row>
    %w32 = arith.constant dense<32> : tensor<64x1xi32, #row>
    %rows = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 1, parent = #row}}>>
    %down = tt.expand_dims %rows {{axis = 1 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 1, parent = #row}}>> -> tensor<64x1xi32, #row>
    %columns = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #row}}>>
    %across = tt.expand_dims %columns {{axis = 0 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #row}}>> -> tensor<1x64xi32, #row>
    %half = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 0, parent = #row}}>>
    %narrow = tt.expand_dims %half {{axis = 0 : i32}} : tensor<32xi32, #ttg.slice<{{dim = 0, parent = #row}}>> -> tensor<1x32xi32, #row>
    %a1 = arith.muli %down, %w64 : tensor<64x1xi32, #row>
    %a2 = tt.broadcast %a1 : tensor<64x1xi32, #row> -> tensor<64x64xi32, #row>
    %a3 = tt.broadcast %across : tensor<1x64xi32, #row> -> tensor<64x64xi32, #row>
    %a4 = arith.addi %a2, %a3 : tensor<64x64xi32, #row>
    %a5 = tt.splat %a : !tt.ptr<f16> -> !pa
    %a6 = tt.addptr %a5, %a4 : !pa, tensor<64x64xi32, #row>
    %b1 = arith.muli %down, %w32 : tensor<64x1xi32, #row>
    %b2 = tt.broadcast %b1 : tensor<64x1xi32, #row> -> tensor<64x32xi32, #row>
    %b3 = tt.broadcast %narrow : tensor<1x32xi32, #row> -> tensor<64x32xi32, #row>
    %b4 = arith.addi %b2, %b3 : tensor<64x32xi32, #row>
    %b5 = tt.splat %b : !tt.ptr<i8> -> !pb
    %b6 = tt.addptr %b5, %b4 : !pb, tensor<64x32xi32, #row>
    %x = tt.load %a6 : !pa
    %y = tt.load %b6 : !pb
    %s0 = ttg.local_alloc %x : (tensor<64x64xf16, #row>) -> !ma
    %t0 = ttg.local_alloc %y : (tensor<64x32xi8, #row>) -> !mb
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a6, %q = %b6, %s = %s0, %t = %t0, %sum = %zero) -> (!pa, !pb, !ma, !mb, !sum) : i32 {{
      %u = ttg.local_load %s : !ma -> tensor<64x64xf16, #a>
      %v = ttg.local_load %t : !mb -> tensor<64x32xi8, #b>
      %f = arith.sitofp %v : tensor<64x32xi8, #b> to tensor<64x32xf16, #b>
      %g = math.absf %f : tensor<64x32xf16, #b>
      %d = tt.dot %u, %g, %sum : tensor<64x64xf16, #a> * tensor<64x32xf16, #b> -> !sum
      %p1 = tt.addptr %p, %step_a : !pa, tensor<64x64xi32, #row>
      %q1 = tt.addptr %q, %step_b : !pb, tensor<64x32xi32, #row>
      %x1 = tt.load %p1 : !pa
      %y1 = tt.load %q1 : !pb
      %s1 = ttg.local_alloc %x1 : (tensor<64x64xf16, #row>) -> !ma
      %t1 = ttg.local_alloc %y1 : (tensor<64x32xi8, #row>) -> !mb
      scf.yield %p1, %q1, %s1, %t1, %d : !pa, !pb, !ma, !mb, !sum
    }}
    %z = ttg.convert_layout %r#4 : !sum -> tensor<64x32xf32, #row>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>, #row>
    %to = tt.addptr %o, %b4 : tensor<64x32x!tt.ptr<f32>, #row>, tensor<64x32xi32, #row>
    tt.store %to, %z : tensor<64x32x!tt.ptr<f32>, #row>
    tt.return
  }}
}}"
    )
}

fn arguments(iterations: usize) -> Vec<Argument> {
    // One more tile than iterations: the loop loads ahead without a mask.
    let count = (iterations + 1) * ROWS * DEPTH;
    let a = halves(count, 0);
    let count = (iterations + 1) * DEPTH * COLUMNS;
    let b = (0..count)
        .map(|at| ((at * 13 + at / 11) % 9) as u8)
        .map(|byte| byte.wrapping_sub(4));
    vec![
        a,
        Argument::Buffer(b.collect()),
        Argument::Buffer(vec![0x55; 4 * ROWS * COLUMNS]),
        Argument::Int(iterations as i64),
    ]
}

/// The kernel with its product cut, and the number of its parts.
fn prefetched(text: &str) -> Result<(String, usize)> {
    let context = context();
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "kernel")
        .map_err(|errors| anyhow::anyhow!("{}", llopt_mlir::diagnostic::render(&errors)))?;
    let root: OperationRef<'_, '_> = module.as_operation();
    let mut loops = Vec::new();
    root.for_each_op(Walk::PostOrder, |operation| {
        loops.extend(For::of(operation))
    });
    let count = prefetch::prefetch(&mut Rewriter::new(&context), loops[0]);
    ensure!(count == 1 && root.verify(), "{count} products in {root}");
    let text = root.to_string();
    let parts = text.matches(" = tt.dot ").count();
    Ok((text, parts))
}

#[test]
fn factors_are_read_an_iteration_ahead() -> Result<()> {
    for (name, lanes, product, k_width) in TARGETS {
        let target = Target::parse(name)?;
        let text = kernel(name, lanes, product, k_width);
        let (ahead, parts) = prefetched(&text).context(name)?;
        ensure!(parts == DEPTH / 16, "{name}: {parts} parts");
        let source = Source::new("product.ttgir", ahead.as_str());
        let compiler = Compiler::new(Options::new(target));
        let compilation = compiler
            .compile(&source, ArtifactKind::Llvm)
            .context(name)?;
        let emitted = Emitted::new(&compilation, target)?;
        for iterations in 0..4 {
            let mut reference = Launch::new([1, 1, 1], 1, arguments(iterations));
            let original = Source::new("product.ttgir", text.as_str());
            run_reference(&original, &mut reference, Limits::default())?;
            let left = emitted.left(arguments(iterations)).context(name)?;
            ensure!(
                left[2] == reference.arguments[2],
                "{name}: {iterations} iterations have another result"
            );
        }
    }
    Ok(())
}
