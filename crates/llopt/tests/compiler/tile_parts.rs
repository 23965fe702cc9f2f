//! Products of any size whose tiles several blocks divide, of which only the first rows are computed, or both, also where
//! blocks share iterations: executed on
//! the simulated machine, with the sanitizer, they leave what the reference leaves for the kernel as it is written, with more
//! rows than are computed at first, too.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Argument, Launch, Machine};
use llopt::{
    ArtifactKind, Compiler, Options, Source, Target, TensorCopies, TensorDescriptor, run_reference,
};

use crate::contents::{described, halves};
use crate::tensor_copies::{self, Edge, Form, Numbers, arguments, kernel};

/// Blocks for each tile of 64 by 32, rows that are computed, and whether launches are single waves of blocks.
const FORMS: [(u32, u32, bool); 4] = [(2, 0, false), (1, 16, false), (2, 16, true), (2, 32, true)];
/// Blocks that share the iterations beside that, where there are clusters.
const SHARING: [u32; 3] = [1, 2, 4];
const CASES: usize = 10;

fn source(edge: Edge, form: Form) -> Source {
    Source::new("product.ttir", kernel(edge, form).as_str())
}

fn set(options: &mut Options, (parts, rows, single_wave): (u32, u32, bool)) {
    options.tile_parts = parts;
    options.tile_rows = rows;
    options.single_wave = single_wave;
    options.streamed = single_wave;
}

/// Launches of random sizes: what the reference leaves is what `run` leaves for a grid of programs.
fn compare(
    source: &Source,
    form: Form,
    run: impl Fn([u32; 3], Vec<sim::Argument>) -> Result<sim::Argument>,
) -> Result<()> {
    let mut numbers = Numbers(23);
    for _ in 0..CASES {
        let of = numbers.sizes(form);
        let grid = [of.m.div_ceil(64) as u32, of.n.div_ceil(32) as u32, 1];
        let mut launch = Launch::new(grid, 1, arguments(of, form));
        run_reference(source, &mut launch, Limits::default())?;
        let left = run(grid, arguments(of, form)).with_context(|| format!("{of:?}"))?;
        ensure!(left == launch.arguments[2], "{of:?} differs");
    }
    Ok(())
}

#[test]
fn parts_of_tiles_with_tensor_copies_leave_what_whole_ones_leave() -> Result<()> {
    for (edge, form) in [(Edge::Wrapped, Form::Rows), (Edge::Masked, Form::Columns)] {
        let source = source(edge, form);
        for (what, sharing) in FORMS
            .into_iter()
            .flat_map(|what| SHARING.map(|sharing| (what, sharing)))
        {
            let engine = tensor_copies::compiled(&source, |options| {
                options.tensor_copies = TensorCopies::Launcher;
                options.split_k = sharing;
                set(options, what);
            })?;
            let parts = engine.compilation.metadata.tile_parts;
            ensure!(parts == what.0, "{parts} blocks divide a tile");
            compare(&source, form, |grid, given| engine.run(grid, given))
                .with_context(|| format!("{edge:?} {form:?} {what:?}, {sharing} share"))?;
        }
    }
    Ok(())
}

#[test]
fn parts_of_tiles_leave_what_whole_ones_leave_on_both_vendors() -> Result<()> {
    for target in ["cuda:80", "hip:gfx942", "hip:gfx1100"] {
        let target = Target::parse(target)?;
        let (edge, form) = (Edge::First, Form::Rows);
        let source = source(edge, form);
        for what in FORMS {
            let mut options = Options::new(target);
            set(&mut options, what);
            let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
            let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
            let run = |grid, given| {
                let mut launch = compilation.metadata.launch(grid, given);
                let report = machine.run(&mut launch, &sim::Options::default())?;
                ensure!(report.findings.is_empty(), "{:?}", report.findings);
                Ok(launch.arguments.swap_remove(2))
            };
            compare(&source, form, run).with_context(|| format!("{target} {what:?}"))?;
        }
    }
    Ok(())
}

/// Who makes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Launcher,
    Kernel,
}

/// `c[M, N] = a·b` in tiles of 64 by 32, 32 terms in each step, through descriptors.
fn through_descriptors(form: Form, maker: Maker) -> String {
    let parameter = |name: &str, block: &str, element: &str| {
        let of = match maker {
            Maker::Launcher => format!("%{name}: !tt.tensordesc<tensor<{block}x{element}>>"),
            Maker::Kernel => {
                format!("%{name}_base: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}")
            }
        };
        format!("{of}, %{name}_0: i32, %{name}_1: i32, %{name}_2: i64, %{name}_3: i64")
    };
    let made = |name: &str, block: &str, element: &str| match maker {
        Maker::Launcher => String::new(),
        Maker::Kernel => format!(
            "%{name} = tt.make_tensor_descriptor %{name}_base, [%{name}_0, %{name}_1], [%{name}_2, %{name}_3] : !tt.ptr<{element}>, !tt.tensordesc<tensor<{block}x{element}>>"
        ),
    };
    let tensors = [
        ("a", "64x32", "f16"),
        ("b", "32x32", "f16"),
        ("c", "64x32", "f32"),
    ];
    let [a, b, c] = tensors.map(|(name, block, element)| parameter(name, block, element));
    let descriptors = tensors
        .map(|(name, block, element)| made(name, block, element))
        .join("\n");
    let (at, factor, right) = match form {
        Form::Rows => ("%k0, %n0", "", "%y"),
        Form::Columns => (
            "%n0, %k0",
            "%right = tt.trans %y {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>",
            "%right",
        ),
    };
    format!(
        "tt.func public @kernel({a}, {b}, {c}, %K: i32) {{
  {descriptors}
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %px = tt.get_program_id x : i32
  %py = tt.get_program_id y : i32
  %m0 = arith.muli %px, %c64 : i32
  %n0 = arith.muli %py, %c32 : i32
  %all = arith.addi %K, %c31 : i32
  %n = arith.divsi %all, %c32 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32>) : i32 {{
    %k0 = arith.muli %i, %c32 : i32
    %x = tt.descriptor_load %a[%m0, %k0] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
    %y = tt.descriptor_load %b[{at}] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
    {factor}
    %next = tt.dot %x, {right}, %acc : tensor<64x32xf16> * tensor<32x32xf16> -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }}
  tt.descriptor_store %c[%m0, %n0], %sum : !tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>
  tt.return
}}"
    )
}

/// A matrix as an argument, and the extents and strides that follow it. Rows are multiples of 16 bytes apart.
fn matrix(
    contents: impl Fn(usize) -> Argument,
    [rows, columns]: [usize; 2],
    object: Option<&TensorDescriptor>,
) -> Result<Vec<Argument>> {
    let of_row = columns.next_multiple_of(8);
    let Argument::Buffer(contents) = contents(rows * of_row) else {
        anyhow::bail!("a matrix is a buffer");
    };
    let matrix = match object {
        None => Argument::Buffer(contents),
        Some(object) => Argument::Descriptor(described(
            contents,
            [u32::try_from(rows)?, u32::try_from(columns)?],
            of_row as u64,
            object,
        )),
    };
    let numbers = [rows, columns, of_row, 1].map(|number| Argument::Int(number as i64));
    Ok([matrix].into_iter().chain(numbers).collect())
}

/// Compares launches of random sizes with the reference, for parts, rows and sharing of iterations.
fn through_descriptors_agree(
    target: &str,
    maker: Maker,
    form: Form,
    (what, sharing): ((u32, u32, bool), u32),
) -> Result<()> {
    let target = Target::parse(target)?;
    let source = Source::new("product.ttir", through_descriptors(form, maker).as_str());
    let mut options = Options::new(target);
    options.split_k = sharing;
    set(&mut options, what);
    let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let metadata = &compilation.metadata;
    ensure!(metadata.tile_parts == what.0, "its tiles are whole");
    let mut objects = metadata.tensordesc_meta.iter();
    let [a, b, c] = [(); 3].map(|()| objects.next());
    if let Some(a) = a {
        ensure!(what.1 == 0 || a.block_size[0] == what.1, "all rows");
    }
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let mut numbers = Numbers(29);
    for _ in 0..CASES {
        let of = numbers.sizes(form);
        let (m, n, k) = (of.m.max(1), of.n.max(1), of.k.max(1));
        let of_b = match form {
            Form::Rows => [k, n],
            Form::Columns => [n, k],
        };
        let given = || -> Result<Vec<Argument>> {
            let mut all = matrix(|length| halves(length, 1), [m, k], a)?;
            all.extend(matrix(|length| halves(length, 4), of_b, b)?);
            let unwritten = |length| Argument::Buffer(vec![0x55; 4 * length]);
            all.extend(matrix(unwritten, [m, n], c)?);
            all.push(Argument::Int(i64::try_from(k)?));
            Ok(all)
        };
        let grid = [m.div_ceil(64) as u32, n.div_ceil(32) as u32, 1];
        let mut expected = Launch::new(grid, 1, given()?);
        run_reference(&source, &mut expected, Limits::default())?;
        let of_all = [grid[0] * sharing, grid[1], 1];
        let mut launch = metadata.launch(of_all, given()?);
        let blocks = of_all[0] * of_all[1] * what.0;
        let scratch = (metadata.global_scratch_size * blocks) as usize;
        let place = launch.arguments.len() - 2;
        if scratch > 0 {
            launch.arguments[place] = Argument::Uninitialized(scratch);
        }
        let report = machine.run(&mut launch, &sim::Options::default())?;
        ensure!(
            report.findings.is_empty(),
            "{m} {n} {k}: {:?}",
            report.findings
        );
        ensure!(
            launch.arguments[10] == expected.arguments[10],
            "{m} {n} {k} differ"
        );
    }
    Ok(())
}

#[test]
fn parts_of_blocks_of_descriptors_leave_what_whole_ones_leave() -> Result<()> {
    for form in [Form::Rows, Form::Columns] {
        for what in FORMS {
            for sharing in SHARING {
                for maker in [Maker::Launcher, Maker::Kernel] {
                    let case = format!("{maker:?} {form:?} {what:?}, {sharing} share");
                    through_descriptors_agree("cuda:90", maker, form, (what, sharing))
                        .context(case)?;
                }
            }
            for target in ["cuda:80", "hip:gfx942"] {
                let case = format!("{target} {form:?} {what:?}");
                through_descriptors_agree(target, Maker::Kernel, form, (what, 1)).context(case)?;
            }
        }
    }
    Ok(())
}
