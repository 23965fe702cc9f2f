//! Products whose operands and accumulators do not fit in registers: executed on the simulated machine and compared
//! with the reference interpreter. Operands are read from buffers as they are, computed with, or unpacked; one of
//! them only, or both.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine};

/// A target, and a tile that is too large for the registers of its threads.
struct Tile {
    target: &'static str,
    warps: u32,
    /// The layout of the accumulator.
    sums: &'static str,
    /// Consecutive elements along k in a thread, for the instruction.
    width: u32,
    m: usize,
    n: usize,
    k: usize,
    /// The instruction's name in LLVM.
    instruction: &'static str,
}

const RDNA: Tile = Tile {
    target: "hip:gfx1100",
    warps: 4,
    sums: "#ttg.amd_wmma<{version = 1, isTranspose = true, warpsPerCTA = [2, 2]}>",
    width: 16,
    m: 128,
    n: 128,
    k: 64,
    instruction: "@llvm.amdgcn.wmma",
};

const CDNA: Tile = Tile {
    target: "hip:gfx942",
    warps: 1,
    sums: "#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>",
    width: 4,
    m: 256,
    n: 128,
    k: 32,
    instruction: "@llvm.amdgcn.mfma",
};

/// The elements in memory, and what makes the operand `%{x}` of type `TO` of `%{x}_l`, which is of type `FROM`.
struct Operand {
    element: &'static str,
    packed: usize,
    body: &'static str,
}

const PLAIN: Operand = Operand {
    element: "f16",
    packed: 1,
    body: "%{x} = tt.bitcast %{x}_l : FROM -> TO",
};

const COMPUTED: Operand = Operand {
    element: "f8E5M2",
    packed: 1,
    body: "%{x}_h = tt.fp_to_fp %{x}_l : FROM -> TO
           %{x}_two = arith.constant dense<2.0> : TO
           %{x}_p = arith.mulf %{x}_h, %{x}_two : TO
           %{x} = arith.addf %{x}_p, %{x}_h : TO",
};

const UNPACKED: Operand = Operand {
    element: "i8",
    packed: 2,
    body: "%{x}_h = ttg.fp4_to_fp %{x}_l {axis = AXIS : i32} : FROM -> TO
           %{x} = arith.mulf %{x}_h, %{x}_h : TO",
};

/// The code that loads an operand into a buffer and makes it: rows along the axis `k`.
fn operand(tile: &Tile, name: &str, of: &Operand, order: [u32; 2]) -> String {
    let k = usize::from(name == "a");
    let mut whole = [tile.k; 2];
    whole[1 - k] = if name == "a" { tile.m } else { tile.n };
    let mut stored = whole;
    stored[k] /= of.packed;
    let [rows, columns] = stored;
    let shape = |[rows, columns]: [usize; 2]| format!("{rows}x{columns}");
    let (stored, whole) = (shape(stored), shape(whole));
    let element = of.element;
    let narrow = tile.width as usize / of.packed;
    let layout = |width: usize| {
        let index = 1 - k;
        format!("#ttg.dot_op<{{opIdx = {index}, parent = #sums, kWidth = {width}}}>")
    };
    let (from, to) = (layout(narrow), layout(tile.width as usize));
    let buffer = format!(
        "!ttg.memdesc<{stored}x{element}, #ttg.swizzled_shared<{{vec = 8, perPhase = 1, maxPhase = 4, order = [{}, {}]}}>, #smem>",
        order[0], order[1]
    );
    let body = of
        .body
        .replace("FROM", &format!("tensor<{stored}x{element}, {from}>"))
        .replace("TO", &format!("tensor<{whole}xf16, {to}>"))
        .replace("AXIS", &k.to_string());
    format!(
        "%{{x}}_r = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32, #r>
         %{{x}}_c = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32, #c>
         %{{x}}_r1 = tt.expand_dims %{{x}}_r {{axis = 1 : i32}} : tensor<{rows}xi32, #r> -> tensor<{rows}x1xi32, #l>
         %{{x}}_c1 = tt.expand_dims %{{x}}_c {{axis = 0 : i32}} : tensor<{columns}xi32, #c> -> tensor<1x{columns}xi32, #l>
         %{{x}}_n = arith.constant dense<{columns}> : tensor<{rows}x1xi32, #l>
         %{{x}}_s = arith.muli %{{x}}_r1, %{{x}}_n : tensor<{rows}x1xi32, #l>
         %{{x}}_s2 = tt.broadcast %{{x}}_s : tensor<{rows}x1xi32, #l> -> tensor<{stored}xi32, #l>
         %{{x}}_c2 = tt.broadcast %{{x}}_c1 : tensor<1x{columns}xi32, #l> -> tensor<{stored}xi32, #l>
         %{{x}}_i = arith.addi %{{x}}_s2, %{{x}}_c2 : tensor<{stored}xi32, #l>
         %{{x}}_b = tt.splat %{{x}}_arg : !tt.ptr<{element}> -> tensor<{stored}x!tt.ptr<{element}>, #l>
         %{{x}}_at = tt.addptr %{{x}}_b, %{{x}}_i : tensor<{stored}x!tt.ptr<{element}>, #l>, tensor<{stored}xi32, #l>
         %{{x}}_v = tt.load %{{x}}_at : tensor<{stored}x!tt.ptr<{element}>, #l>
         %{{x}}_m = ttg.local_alloc %{{x}}_v : (tensor<{stored}x{element}, #l>) -> {buffer}
         %{{x}}_l = ttg.local_load %{{x}}_m : {buffer} -> tensor<{stored}x{element}, {from}>
         {body}\n",
    )
    .replace("{x}", name)
}

fn kernel(tile: &Tile, a: &Operand, b: &Operand, order: [u32; 2]) -> Result<String> {
    let Tile { m, n, k, .. } = *tile;
    let (warps, sums, lanes) = (
        tile.warps,
        tile.sums,
        Target::parse(tile.target)?.warp_size(),
    );
    let width = tile.width;
    let operands = operand(tile, "a", a, order) + &operand(tile, "b", b, order);
    let (of_a, of_b) = (a.element, b.element);
    Ok(format!(
        "#l = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [{}, 4], warpsPerCTA = [{warps}, 1], order = [1, 0]}}>
         #r = #ttg.slice<{{dim = 1, parent = #l}}>
         #c = #ttg.slice<{{dim = 0, parent = #l}}>
         #sums = {sums}
         #rs = #ttg.slice<{{dim = 1, parent = #sums}}>
         #cs = #ttg.slice<{{dim = 0, parent = #sums}}>
         #smem = #ttg.shared_memory
         module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {warps} : i32, \"ttg.threads-per-warp\" = {lanes} : i32}} {{
         tt.func public @kernel(%a_arg: !tt.ptr<{of_a}>, %b_arg: !tt.ptr<{of_b}>, %o: !tt.ptr<f32>) {{
         {operands}
         %zero = arith.constant dense<0.0> : tensor<{m}x{n}xf32, #sums>
         %d = tt.dot %a, %b, %zero : tensor<{m}x{k}xf16, #ttg.dot_op<{{opIdx = 0, parent = #sums, kWidth = {width}}}>> * tensor<{k}x{n}xf16, #ttg.dot_op<{{opIdx = 1, parent = #sums, kWidth = {width}}}>> -> tensor<{m}x{n}xf32, #sums>
         %or = tt.make_range {{start = 0 : i32, end = {m} : i32}} : tensor<{m}xi32, #rs>
         %oc = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32, #cs>
         %or1 = tt.expand_dims %or {{axis = 1 : i32}} : tensor<{m}xi32, #rs> -> tensor<{m}x1xi32, #sums>
         %oc1 = tt.expand_dims %oc {{axis = 0 : i32}} : tensor<{n}xi32, #cs> -> tensor<1x{n}xi32, #sums>
         %on = arith.constant dense<{n}> : tensor<{m}x1xi32, #sums>
         %os = arith.muli %or1, %on : tensor<{m}x1xi32, #sums>
         %os2 = tt.broadcast %os : tensor<{m}x1xi32, #sums> -> tensor<{m}x{n}xi32, #sums>
         %oc2 = tt.broadcast %oc1 : tensor<1x{n}xi32, #sums> -> tensor<{m}x{n}xi32, #sums>
         %oi = arith.addi %os2, %oc2 : tensor<{m}x{n}xi32, #sums>
         %ob = tt.splat %o : !tt.ptr<f32> -> tensor<{m}x{n}x!tt.ptr<f32>, #sums>
         %op = tt.addptr %ob, %oi : tensor<{m}x{n}x!tt.ptr<f32>, #sums>, tensor<{m}x{n}xi32, #sums>
         tt.store %op, %d : tensor<{m}x{n}x!tt.ptr<f32>, #sums>
         tt.return\n}}\n}}\n",
        lanes / 4,
    ))
}

/// Small whole numbers, different in any two rows, so that sums are exact.
fn buffer(of: &Operand, elements: usize, seed: usize) -> Argument {
    let digit = |i: usize| (i * (2 * seed + 1) * 2_654_435_761) >> 13;
    let bytes: Vec<u8> = match of.element {
        "f16" => (0..elements)
            .flat_map(|i| [0u16, 0x3c00, 0x4000, 0xc000, 0xbc00][digit(i) % 5].to_le_bytes())
            .collect(),
        "f8E5M2" => (0..elements)
            .map(|i| [0u8, 0x3c, 0x40, 0xc0, 0xbc][digit(i) % 5])
            .collect(),
        // Two numbers of four bits, of magnitudes up to four.
        _ => (0..elements / 2).map(|i| (digit(i) & 0xee) as u8).collect(),
    };
    Argument::Buffer(bytes)
}

fn output(launch: &Launch) -> Result<&[u8]> {
    match &launch.arguments[2] {
        Argument::Buffer(bytes) => Ok(bytes),
        _ => None.context("a buffer stays a buffer"),
    }
}

/// Runs the product; returns whether part of an operand is read after the first execution of the instruction.
fn check(tile: &Tile, a: &Operand, b: &Operand, order: [u32; 2]) -> Result<bool> {
    let target = Target::parse(tile.target)?;
    let text = kernel(tile, a, b, order)?;
    let source = Source::new("kernel.ttgir", text.as_str());
    let arguments = || {
        vec![
            buffer(a, tile.m * tile.k, 1),
            buffer(b, tile.k * tile.n, 2),
            Argument::Buffer(vec![0; tile.m * tile.n * 4]),
        ]
    };
    let mut expected = Launch::new([1, 1, 1], 1, arguments());
    run_reference(&source, &mut expected, Limits::default())?;

    let mut options = Options::new(target);
    options.num_warps = Some(tile.warps);
    let compiled = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
    let mut given = arguments();
    given.extend([Argument::Null, Argument::Null]);
    let mut launch = Launch::new([1, 1, 1], tile.warps * target.warp_size(), given);
    launch.dynamic_shared = u64::from(compiled.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(report.findings.is_empty(), "{:?}", report.findings);
    ensure!(
        output(&launch)? == output(&expected)?,
        "the products differ"
    );

    let code = String::from_utf8_lossy(compiled.artifact.bytes()).into_owned();
    let code = code.split("\ndeclare").next().unwrap_or_default();
    let first = code.find(tile.instruction).context("no product")?;
    let is_read = |line: &&str| line.contains("= load") && line.contains("addrspace(3)");
    Ok(code[first..].lines().any(|line| is_read(&line)))
}

#[test]
fn operands_are_read_with_the_product() -> Result<()> {
    for tile in [&RDNA, &CDNA] {
        for order in [[1, 0], [0, 1]] {
            ensure!(check(tile, &PLAIN, &PLAIN, order)?, "{}", tile.target);
        }
    }
    Ok(())
}

#[test]
fn operands_are_computed_with_the_product() -> Result<()> {
    for tile in [&RDNA, &CDNA] {
        ensure!(
            check(tile, &COMPUTED, &COMPUTED, [1, 0])?,
            "{}",
            tile.target
        );
        ensure!(check(tile, &COMPUTED, &PLAIN, [0, 1])?, "{}", tile.target);
    }
    Ok(())
}

#[test]
fn operands_are_unpacked_with_the_product() -> Result<()> {
    for tile in [&RDNA, &CDNA] {
        ensure!(
            check(tile, &UNPACKED, &UNPACKED, [1, 0])?,
            "{}",
            tile.target
        );
        ensure!(check(tile, &PLAIN, &UNPACKED, [0, 1])?, "{}", tile.target);
    }
    Ok(())
}

#[test]
fn operands_that_fit_are_read_first() -> Result<()> {
    let small = Tile {
        m: 32,
        n: 32,
        ..RDNA
    };
    ensure!(!check(&small, &COMPUTED, &PLAIN, [1, 0])?);
    Ok(())
}
