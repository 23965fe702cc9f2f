//! Gathers whose operands and results do not fit into registers: executed on the simulated machine and compared with
//! the reference interpreter.
//!
//! The operand is masked, computed from another value, used again, or at the addresses of the result; and a result is
//! at once the operand of another gather.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine};

const ROWS: u32 = 512;
const COLUMNS: u32 = 64;
const WARPS: u32 = 4;

/// The code between the addresses `%xp`, `%ip` and `%op` and the end: `W` is a tensor of words, `P` of pointers.
const BODIES: [(&str, &str); 5] = [
    (
        "masked",
        "%n = arith.constant dense<20005> : W
         %m = arith.cmpi slt, %at, %n : W
         %x = tt.load %xp, %m, %at : P
         %i = tt.load %ip, %m, %zero : P
         %g = tt.gather %x[%i] {axis = 0 : i32} : (W, W) -> W
         tt.store %op, %g, %m : P",
    ),
    (
        "computed with",
        "%x0 = tt.load %xp : P
         %x = arith.muli %x0, %at : W
         %i0 = tt.load %ip : P
         %i1 = arith.addi %i0, %at : W
         %last = arith.constant dense<511> : W
         %i = arith.andi %i1, %last : W
         %g = tt.gather %x[%i] {axis = 0 : i32} : (W, W) -> W
         tt.store %op, %g : P",
    ),
    (
        "used again",
        "%x = tt.load %xp : P
         %i = tt.load %ip : P
         %g = tt.gather %x[%i] {axis = 0 : i32} : (W, W) -> W
         %s = arith.addi %g, %x : W
         tt.store %op, %s : P",
    ),
    (
        "in place",
        "%x = tt.load %op : P
         %i = tt.load %ip : P
         %g = tt.gather %x[%i] {axis = 0 : i32} : (W, W) -> W
         tt.store %op, %g : P",
    ),
    (
        "twice",
        "%x = tt.load %xp : P
         %i = tt.load %ip : P
         %g = tt.gather %x[%i] {axis = 0 : i32} : (W, W) -> W
         %j = tt.load %ip : P
         %h = tt.gather %g[%j] {axis = 0 : i32} : (W, W) -> W
         tt.store %op, %h : P",
    ),
];

fn kernel(body: &str, lanes: u32) -> String {
    let (words, pointers) = ("tensor<512x64xi32, #l>", "tensor<512x64x!tt.ptr<i32>, #l>");
    let pointer = |name: &str| {
        format!(
            "%{name}s = tt.splat %{name}b : !tt.ptr<i32> -> P
             %{name}p = tt.addptr %{name}s, %at : P, W\n"
        )
    };
    let text = format!(
        "#l = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [1, {lanes}], warpsPerCTA = [{WARPS}, 1], order = [1, 0]}}>
         #r = #ttg.slice<{{dim = 1, parent = #l}}>
         #c = #ttg.slice<{{dim = 0, parent = #l}}>
         module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {WARPS} : i32, \"ttg.threads-per-warp\" = {lanes} : i32}} {{
         tt.func public @kernel(%xb: !tt.ptr<i32>, %ib: !tt.ptr<i32>, %ob: !tt.ptr<i32>) {{
         %row = tt.make_range {{start = 0 : i32, end = {ROWS} : i32}} : tensor<512xi32, #r>
         %rows = tt.expand_dims %row {{axis = 1 : i32}} : tensor<512xi32, #r> -> tensor<512x1xi32, #l>
         %width = arith.constant dense<{COLUMNS}> : tensor<512x1xi32, #l>
         %start = arith.muli %rows, %width : tensor<512x1xi32, #l>
         %starts = tt.broadcast %start : tensor<512x1xi32, #l> -> W
         %column = tt.make_range {{start = 0 : i32, end = {COLUMNS} : i32}} : tensor<64xi32, #c>
         %columns = tt.expand_dims %column {{axis = 0 : i32}} : tensor<64xi32, #c> -> tensor<1x64xi32, #l>
         %within = tt.broadcast %columns : tensor<1x64xi32, #l> -> W
         %at = arith.addi %starts, %within : W
         %zero = arith.constant dense<0> : W
         {}{}{}{body}
         tt.return\n}}\n}}\n",
        pointer("x"),
        pointer("i"),
        pointer("o"),
    );
    let body = text.replace(" W", &format!(" {words}"));
    let body = body.replace("(W", &format!("({words}"));
    body.replace(" P", &format!(" {pointers}"))
}

/// Numbers, indices, and more numbers.
fn arguments() -> Vec<Argument> {
    let buffer = |number: &dyn Fn(u32) -> u32| {
        let words = (0..ROWS * COLUMNS).flat_map(|i| number(i).to_le_bytes());
        Argument::Buffer(words.collect())
    };
    vec![
        buffer(&|i| i.wrapping_mul(0x9e37_79b9)),
        buffer(&|i| i.wrapping_mul(0x85eb_ca6b) >> 7 & (ROWS - 1)),
        buffer(&|i| i.wrapping_mul(0xc2b2_ae35)),
    ]
}

fn output(launch: &Launch) -> Result<&[u8]> {
    match &launch.arguments[2] {
        Argument::Buffer(bytes) => Ok(bytes),
        _ => None.context("a buffer stays a buffer"),
    }
}

fn check(target: &str) -> Result<()> {
    let target = Target::parse(target)?;
    for (name, body) in BODIES {
        let text = kernel(body, target.warp_size());
        let source = Source::new("kernel.ttgir", text.as_str());
        let mut expected = Launch::new([1, 1, 1], 1, arguments());
        run_reference(&source, &mut expected, Limits::default()).context(name)?;

        let mut options = Options::new(target);
        options.num_warps = Some(WARPS);
        let compiled = Compiler::new(options).compile(&source, ArtifactKind::Llvm);
        let compiled = compiled.context(name)?;
        let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
        let mut given = arguments();
        given.extend([Argument::Null, Argument::Null]);
        let mut launch = Launch::new([1, 1, 1], WARPS * target.warp_size(), given);
        launch.dynamic_shared = u64::from(compiled.metadata.shared);
        let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
        ensure!(report.findings.is_empty(), "{name}: {:?}", report.findings);
        ensure!(
            output(&launch)? == output(&expected)?,
            "{target}: a gather that is {name} differs"
        );
    }
    Ok(())
}

#[test]
fn rounds_along_the_axis_gather_what_is_wanted() -> Result<()> {
    check("hip:gfx942")
}

#[test]
fn results_that_are_set_aside_are_stored() -> Result<()> {
    check("hip:gfx1200")
}

#[test]
fn one_round_gathers_what_is_wanted() -> Result<()> {
    check("cuda:80")
}
