//! Products of matrices of any size, whose tiles are loaded through pointers: with tensor copies instead of loads they
//! leave what the reference interpreter leaves for the kernel as it is written. So do blocks that compute several
//! programs each.
//! So they do where the blocks of a cluster share the loop, whose parts begin anywhere.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Argument, Launch, Machine, TensorArgument};
use llopt::{
    ArgumentDescriptor, ArtifactKind, Compilation, Compiler, Metadata, Options, Persistent, Source,
    Target, TensorCopies, run_reference,
};

use crate::contents::halves;

const ROWS: usize = 64;
const COLUMNS: usize = 32;
/// Sizes for each form of the kernel.
const CASES: usize = 24;

/// How the rows and columns of tiles that are partly outside of the matrices stay inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// They are remainders.
    Wrapped,
    /// Those outside are the first.
    First,
    /// They are masked.
    Masked,
}

/// Whether the second factor has consecutive elements along its columns or along the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Rows,
    Columns,
}

/// `c[M, N] = a·b` in tiles of 64 by 32, 16 terms in each step.
pub fn kernel(edge: Edge, form: Form) -> String {
    let inside = |of: &str, first: &str, all: &str, shape: &str| match edge {
        Edge::Wrapped => format!("%{of}_in = arith.remsi %{first}, %{all} : {shape}xi32>"),
        Edge::First => format!(
            "%{of}_is = arith.cmpi slt, %{first}, %{all} : {shape}xi32>
             %{of}_none = arith.constant dense<0> : {shape}xi32>
             %{of}_in = arith.select %{of}_is, %{first}, %{of}_none : {shape}xi1>, {shape}xi32>"
        ),
        Edge::Masked => format!("%{of}_in = arith.addi %{first}, %{of}_zero : {shape}xi32>"),
    };
    let (rows, columns) = (
        inside("m", "of_m", "all_m", "tensor<64"),
        inside("n", "of_n", "all_n", "tensor<32"),
    );
    let work = work(edge, form);
    // The strides of the second factor along the sum and along its columns.
    let (down, across) = match form {
        Form::Rows => ("%sb", "%c1"),
        Form::Columns => ("%c1", "%sb"),
    };
    format!(
        "module {{
  tt.func public @kernel(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %c: !tt.ptr<f32>, %M: i32, %N: i32, %K: i32, %sa: i32 {{tt.divisibility = 8 : i32}}, %sb: i32 {{tt.divisibility = 8 : i32}}) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c15 = arith.constant 15 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %m_zero = arith.constant dense<0> : tensor<64xi32>
    %n_zero = arith.constant dense<0> : tensor<32xi32>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %other_a = arith.constant dense<0.0> : tensor<64x16xf16>
    %other_b = arith.constant dense<0.0> : tensor<16x32xf16>
    %step_a = arith.constant dense<16> : tensor<64x16xi32>
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %m0 = arith.muli %x, %c64 : i32
    %n0 = arith.muli %y, %c32 : i32
    %range_m = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
    %range_n = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
    %range_k = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
    %first_m = tt.splat %m0 : i32 -> tensor<64xi32>
    %first_n = tt.splat %n0 : i32 -> tensor<32xi32>
    %of_m = arith.addi %first_m, %range_m : tensor<64xi32>
    %of_n = arith.addi %first_n, %range_n : tensor<32xi32>
    %all_m = tt.splat %M : i32 -> tensor<64xi32>
    %all_n = tt.splat %N : i32 -> tensor<32xi32>
    {rows}
    {columns}
    %c_rows = tt.expand_dims %of_m {{axis = 1 : i32}} : tensor<64xi32> -> tensor<64x1xi32>
    %c_columns = tt.expand_dims %of_n {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
    %end_m = tt.splat %M : i32 -> tensor<64x1xi32>
    %in_m = arith.cmpi slt, %c_rows, %end_m : tensor<64x1xi32>
    %end_n = tt.splat %N : i32 -> tensor<1x32xi32>
    %in_n = arith.cmpi slt, %c_columns, %end_n : tensor<1x32xi32>
    %rows = tt.expand_dims %m_in {{axis = 1 : i32}} : tensor<64xi32> -> tensor<64x1xi32>
    %stride_a = tt.splat %sa : i32 -> tensor<64x1xi32>
    %scaled_rows = arith.muli %rows, %stride_a : tensor<64x1xi32>
    %k_across = tt.expand_dims %range_k {{axis = 0 : i32}} : tensor<16xi32> -> tensor<1x16xi32>
    %a_down = tt.broadcast %scaled_rows : tensor<64x1xi32> -> tensor<64x16xi32>
    %a_across = tt.broadcast %k_across : tensor<1x16xi32> -> tensor<64x16xi32>
    %a_offsets = arith.addi %a_down, %a_across : tensor<64x16xi32>
    %a_base = tt.splat %a : !tt.ptr<f16> -> tensor<64x16x!tt.ptr<f16>>
    %a_pointers = tt.addptr %a_base, %a_offsets : tensor<64x16x!tt.ptr<f16>>, tensor<64x16xi32>
    %k_down = tt.expand_dims %range_k {{axis = 1 : i32}} : tensor<16xi32> -> tensor<16x1xi32>
    %down = tt.splat {down} : i32 -> tensor<16x1xi32>
    %scaled_k = arith.muli %k_down, %down : tensor<16x1xi32>
    %columns = tt.expand_dims %n_in {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
    %across = tt.splat {across} : i32 -> tensor<1x32xi32>
    %scaled_columns = arith.muli %columns, %across : tensor<1x32xi32>
    %b_down = tt.broadcast %scaled_k : tensor<16x1xi32> -> tensor<16x32xi32>
    %b_across = tt.broadcast %scaled_columns : tensor<1x32xi32> -> tensor<16x32xi32>
    %b_offsets = arith.addi %b_down, %b_across : tensor<16x32xi32>
    %b_base = tt.splat %b : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>>
    %b_pointers = tt.addptr %b_base, %b_offsets : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
{work}"
    )
}

/// The loop of the kernel, and the store of its result.
fn work(edge: Edge, form: Form) -> String {
    let (mask_a, mask_b) = match edge {
        Edge::Masked => ("%both_a", "%both_b"),
        Edge::Wrapped | Edge::First => ("%mask_a", "%mask_b"),
    };
    let step = match form {
        Form::Rows => "%distance",
        Form::Columns => "%c16",
    };
    format!(
        "%K15 = arith.addi %K, %c15 : i32
    %n = arith.divsi %K15, %c16 : i32
    %rows_a = tt.broadcast %in_m : tensor<64x1xi1> -> tensor<64x16xi1>
    %columns_b = tt.broadcast %in_n : tensor<1x32xi1> -> tensor<16x32xi1>
    %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a_pointers, %q = %b_pointers, %acc = %zero) -> (tensor<64x16x!tt.ptr<f16>>, tensor<16x32x!tt.ptr<f16>>, tensor<64x32xf32>) : i32 {{
      %done = arith.muli %i, %c16 : i32
      %left = arith.subi %K, %done : i32
      %left_a = tt.splat %left : i32 -> tensor<1x16xi32>
      %is_a = arith.cmpi slt, %k_across, %left_a : tensor<1x16xi32>
      %mask_a = tt.broadcast %is_a : tensor<1x16xi1> -> tensor<64x16xi1>
      %both_a = arith.andi %mask_a, %rows_a : tensor<64x16xi1>
      %tile_a = tt.load %p, {mask_a}, %other_a : tensor<64x16x!tt.ptr<f16>>
      %left_b = tt.splat %left : i32 -> tensor<16x1xi32>
      %is_b = arith.cmpi sgt, %left_b, %k_down : tensor<16x1xi32>
      %mask_b = tt.broadcast %is_b : tensor<16x1xi1> -> tensor<16x32xi1>
      %both_b = arith.andi %columns_b, %mask_b : tensor<16x32xi1>
      %tile_b = tt.load %q, {mask_b}, %other_b : tensor<16x32x!tt.ptr<f16>>
      %d = tt.dot %tile_a, %tile_b, %acc : tensor<64x16xf16> * tensor<16x32xf16> -> tensor<64x32xf32>
      %p1 = tt.addptr %p, %step_a : tensor<64x16x!tt.ptr<f16>>, tensor<64x16xi32>
      %distance = arith.muli %sb, %c16 : i32
      %step_b = tt.splat {step} : i32 -> tensor<16x32xi32>
      %q1 = tt.addptr %q, %step_b : tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi32>
      scf.yield %p1, %q1, %d : tensor<64x16x!tt.ptr<f16>>, tensor<16x32x!tt.ptr<f16>>, tensor<64x32xf32>
    }}
    %c_stride = tt.splat %N : i32 -> tensor<64x1xi32>
    %c_scaled = arith.muli %c_rows, %c_stride : tensor<64x1xi32>
    %c_down = tt.broadcast %c_scaled : tensor<64x1xi32> -> tensor<64x32xi32>
    %c_across = tt.broadcast %c_columns : tensor<1x32xi32> -> tensor<64x32xi32>
    %c_offsets = arith.addi %c_down, %c_across : tensor<64x32xi32>
    %c_base = tt.splat %c : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
    %c_pointers = tt.addptr %c_base, %c_offsets : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %wide_m = tt.broadcast %in_m : tensor<64x1xi1> -> tensor<64x32xi1>
    %wide_n = tt.broadcast %in_n : tensor<1x32xi1> -> tensor<64x32xi1>
    %in = arith.andi %wide_m, %wide_n : tensor<64x32xi1>
    tt.store %c_pointers, %sums#2, %in : tensor<64x32x!tt.ptr<f32>>
    tt.return
  }}
}}"
    )
}

/// The same kernel in tiles of 128 by 256, 64 terms in each step, which leave no room for a second block, and whose
/// stores can be copies.
pub fn large(kernel: &str) -> String {
    in_tiles(
        kernel,
        [("64", "128"), ("32", "256"), ("16", "64"), ("15", "63")],
    )
}

/// The same in tiles of 64 by 256, 128 terms in each step: there is room for the factors of two iterations.
fn deep(kernel: &str) -> String {
    in_tiles(
        kernel,
        [("64", "64"), ("32", "256"), ("16", "128"), ("15", "127")],
    )
}

/// A kernel with other numbers in the place of those of its tiles.
fn in_tiles(kernel: &str, numbers: [(&str, &str); 4]) -> String {
    // Types and promises keep their numbers.
    let kept = [
        "i32",
        "i64",
        "f32",
        "f16",
        "divisibility = 16",
        "divisibility = 8",
    ];
    let marks = ["I-", "L-", "F-", "H-", "D-", "E-"];
    let mut text = kernel
        .replace(
            "%c: !tt.ptr<f32>,",
            "%c: !tt.ptr<f32> {tt.divisibility = 16 : i32},",
        )
        .replace("%N: i32,", "%N: i32 {tt.divisibility = 8 : i32},");
    for (from, to) in kept.iter().zip(marks) {
        text = text.replace(from, to);
    }
    // One after another would change what is changed already.
    let between = ["Na-", "Nb-", "Nc-", "Nd-"];
    for ((from, _), mark) in numbers.iter().zip(between) {
        text = text.replace(from, mark);
    }
    for ((_, to), mark) in numbers.iter().zip(between) {
        text = text.replace(mark, to);
    }
    for (from, to) in kept.iter().zip(marks) {
        text = text.replace(to, from);
    }
    text
}

/// The sizes of a product; strides are a multiple of 16 bytes, or zero: then all rows are the same one, which no
/// descriptor describes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub stride_a: usize,
    pub stride_b: usize,
}

/// Numbers that look random: a linear congruential generator.
pub struct Numbers(pub u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }

    pub fn sizes(&mut self, form: Form) -> Sizes {
        let (m, n, k) = (1 + self.below(140), 1 + self.below(70), self.below(50));
        let of_b = match form {
            Form::Rows => n,
            Form::Columns => k,
        };
        let mut stride = |row: usize| row.div_ceil(8) * 8 + [0, 0, 0, 24][self.below(4)];
        let (stride_a, stride_b) = (stride(k), stride(of_b));
        // Zeros in one of eight.
        let (zero_a, zero_b) = (self.below(8) == 0, self.below(8) == 0);
        Sizes {
            m,
            n,
            k,
            stride_a: if zero_a { 0 } else { stride_a },
            stride_b: if zero_b { 0 } else { stride_b },
        }
    }
}

pub fn arguments(of: Sizes, form: Form) -> Vec<Argument> {
    let length = |rows: usize, stride: usize, row: usize| rows.saturating_sub(1) * stride + row;
    let of_b = match form {
        Form::Rows => length(of.k, of.stride_b, of.n),
        Form::Columns => length(of.n, of.stride_b, of.k),
    };
    let number = |number: usize| Argument::Int(i64::try_from(number).unwrap());
    vec![
        // A buffer without elements is no tensor.
        halves(length(of.m, of.stride_a, of.k).max(8), 1),
        halves(of_b.max(8), 4),
        Argument::Buffer(vec![0x55; 4 * of.m * of.n]),
        number(of.m),
        number(of.n),
        number(of.k),
        number(of.stride_a),
        number(of.stride_b),
    ]
}

/// The argument that the launcher adds for a tensor that others describe.
fn descriptor(of: &ArgumentDescriptor, arguments: &[Argument]) -> Argument {
    let number = |argument: usize| match arguments[argument] {
        Argument::Int(number) => Some(number),
        _ => None,
    };
    let (shape, strides) = of.extents(number).unwrap_or((vec![1; 2], vec![8; 2]));
    let tensor = TensorArgument {
        contents: Vec::new(),
        shape,
        strides,
        element_bytes: of.encoding.elem_size,
        element_type: of.encoding.elem_type,
        swizzle_mode: of.encoding.swizzle,
        box_shape: of.encoding.block_size.clone(),
        fill_nan: false,
    };
    Argument::DescriptorOf(of.base, tensor)
}

pub struct Compiled {
    pub compilation: Compilation,
    machine: Machine,
    target: Target,
    /// The blocks that share each program.
    blocks: u32,
}

pub fn compiled(source: &Source, change: impl FnOnce(&mut Options)) -> Result<Compiled> {
    let target = Target::parse("cuda:90")?;
    let mut options = Options::new(target);
    change(&mut options);
    let blocks = options.split_k;
    let compilation = Compiler::new(options).compile(source, ArtifactKind::Llvm)?;
    let text = String::from_utf8_lossy(compilation.artifact.bytes());
    ensure!(
        text.contains("cp.async.bulk.tensor"),
        "no load became a copy"
    );
    ensure!(
        text.contains("barrier.cluster") == (blocks > 1),
        "the loop is not shared"
    );
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    Ok(Compiled {
        compilation,
        machine,
        target,
        blocks,
    })
}

impl Compiled {
    /// Whether it leaves what the reference leaves.
    fn agrees(&self, source: &Source, programs: [u32; 3], given: Vec<Argument>) -> Result<()> {
        let mut launch = Launch::new(programs, 1, given.clone());
        run_reference(source, &mut launch, Limits::default())?;
        let left = self.run(programs, given)?;
        ensure!(left == launch.arguments[2], "the result differs");
        Ok(())
    }

    pub fn run(&self, programs: [u32; 3], mut given: Vec<Argument>) -> Result<Argument> {
        let metadata = &self.compilation.metadata;
        let blocks = self.blocks * metadata.tile_parts;
        let mut grid = [programs[0] * blocks, programs[1], programs[2]];
        let tensors = metadata.argument_tensors.iter();
        let added: Vec<Argument> = tensors.map(|tensor| descriptor(tensor, &given)).collect();
        given.extend(added);
        if metadata.program_extents {
            given.extend(grid.map(|extent| Argument::Int(extent.into())));
            grid = Metadata::blocks_of_programs(grid);
        }
        let scratch = metadata.global_scratch_size as usize;
        given.push(match scratch * (grid[0] * grid[1]) as usize {
            0 => Argument::Null,
            bytes => Argument::Uninitialized(bytes),
        });
        given.push(Argument::Null);
        let threads = metadata.num_warps * self.target.warp_size();
        let mut launch = Launch::new(grid, threads, given);
        launch.dynamic_shared = u64::from(metadata.shared);
        let report = self.machine.run(&mut launch, &sim::Options::default())?;
        ensure!(report.findings.is_empty(), "{:?}", report.findings);
        Ok(launch.arguments.swap_remove(2))
    }
}

fn agrees(edge: Edge, form: Form) -> Result<()> {
    let source = Source::new("product.ttir", kernel(edge, form).as_str());
    let (kernel, launcher) = (TensorCopies::Kernel, TensorCopies::Launcher);
    let engine = |copies, blocks| {
        compiled(&source, |options| {
            options.tensor_copies = copies;
            options.split_k = blocks;
        })
    };
    let engines = [
        (kernel, 1),
        (launcher, 1),
        (kernel, 2),
        (launcher, 2),
        (launcher, 4),
    ]
    .into_iter()
    .map(|(copies, blocks)| Ok((copies, engine(copies, blocks)?)))
    .collect::<Result<Vec<_>>>()
    .with_context(|| format!("{edge:?} {form:?}"))?;
    let mut numbers = Numbers(17);
    for _ in 0..CASES {
        let of = numbers.sizes(form);
        let tiles = |extent: usize, tile: usize| extent.div_ceil(tile) as u32;
        let grid = [tiles(of.m, ROWS), tiles(of.n, COLUMNS), 1];
        let mut launch = Launch::new(grid, 1, arguments(of, form));
        run_reference(&source, &mut launch, Limits::default())?;
        for (copies, engine) in &engines {
            let blocks = engine.blocks;
            let about = || format!("{copies} {blocks} {edge:?} {form:?} {of:?}");
            let left = engine.run(grid, arguments(of, form)).with_context(about)?;
            ensure!(left == launch.arguments[2], "{} differs", about());
        }
    }
    Ok(())
}

/// Divisible by eight, as strides of copies are.
pub fn large_sizes(numbers: &mut Numbers, form: Form) -> Sizes {
    let of = numbers.sizes(form);
    let (m, n, k) = (
        of.m * 3,
        (of.n * 9).next_multiple_of(8),
        (of.k * 3).next_multiple_of(8),
    );
    let of_b = match form {
        Form::Rows => n,
        Form::Columns => k,
    };
    let stride = |stride: usize, row: usize| if stride == 0 { 0 } else { row + stride % 3 * 8 };
    Sizes {
        m,
        n,
        k,
        stride_a: stride(of.stride_a, k),
        stride_b: stride(of.stride_b, of_b),
    }
}

#[test]
fn blocks_that_compute_several_programs_leave_what_one_for_each_leaves() -> Result<()> {
    let mut numbers = Numbers(5);
    for (edge, form) in [(Edge::Wrapped, Form::Rows), (Edge::Masked, Form::Columns)] {
        let source = Source::new("product.ttir", large(&kernel(edge, form)).as_str());
        let engine = compiled(&source, |options| {
            options.num_warps = Some(8);
            options.tensor_copies = TensorCopies::Launcher;
            options.persistent = Persistent::On;
            options.dependent_launch = true;
        })?;
        ensure!(engine.compilation.metadata.program_extents, "one for each");
        // Two factors and the result, which is stored in parts: it has 128 KiB, and the factors of three stages 144.
        let tensors = &engine.compilation.metadata.argument_tensors;
        ensure!(tensors.len() == 3);
        ensure!(
            tensors[2].encoding.block_size[0] == 128 && tensors[2].encoding.block_size[1] < 256
        );
        for _ in 0..6 {
            let of = large_sizes(&mut numbers, form);
            let grid = [of.m.div_ceil(128) as u32, of.n.div_ceil(256) as u32, 1];
            let about = format!("{edge:?} {form:?} {of:?}");
            engine
                .agrees(&source, grid, arguments(of, form))
                .context(about)?;
        }
    }
    Ok(())
}

/// The kernel with integers of eight bits as the second factor, whose rows begin at multiples of 16 of them.
fn with_codes(kernel: &str) -> String {
    let pointers = "tensor<16x32x!tt.ptr<f16>>";
    let on_b = |line: &str| {
        let of_b = ["%b_", "%tile_b", "%q1", "%other_b"];
        match of_b.iter().any(|name| line.trim_start().starts_with(name)) {
            true => line.replace("f16", "i8").replace("dense<0.0>", "dense<0>"),
            false => line.replace(pointers, &pointers.replace("f16", "i8")),
        }
    };
    let lines: Vec<String> = kernel.lines().map(on_b).collect();
    let wide = "%wide_b = arith.sitofp %tile_b : tensor<16x32xi8> to tensor<16x32xf16>";
    lines
        .join("\n")
        .replace("%b: !tt.ptr<f16>", "%b: !tt.ptr<i8>")
        .replace(
            "%d = tt.dot %tile_a, %tile_b",
            &format!("{wide}\n%d = tt.dot %tile_a, %wide_b"),
        )
        .replace(
            "%sb: i32 {tt.divisibility = 8",
            "%sb: i32 {tt.divisibility = 16",
        )
}

/// Small whole numbers of eight bits.
fn codes(count: usize) -> Argument {
    let number = |at: usize| ((at * 13 + at / 5) % 9) as u8;
    Argument::Buffer((0..count).map(|at| number(at).wrapping_sub(4)).collect())
}

#[test]
fn programs_with_narrow_factors_leave_what_one_for_each_block_leaves() -> Result<()> {
    let mut numbers = Numbers(11);
    for (edge, form) in [(Edge::Wrapped, Form::Columns), (Edge::Wrapped, Form::Rows)] {
        let text = large(&with_codes(&kernel(edge, form)));
        let source = Source::new("product.ttir", text.as_str());
        let engine = compiled(&source, |options| {
            options.num_warps = Some(8);
            options.tensor_copies = TensorCopies::Launcher;
            options.persistent = Persistent::On;
            options.dependent_launch = true;
        })?;
        ensure!(engine.compilation.metadata.program_extents, "one for each");
        // Both factors and the result: a warp of its own issues the copies.
        ensure!(engine.compilation.metadata.argument_tensors.len() == 3);
        ensure!(engine.compilation.metadata.num_warps > 8, "no producer");
        for _ in 0..4 {
            let mut of = large_sizes(&mut numbers, form);
            of.stride_b = of.stride_b.next_multiple_of(16);
            let grid = [of.m.div_ceil(128) as u32, of.n.div_ceil(256) as u32, 1];
            let given = {
                let mut given = arguments(of, form);
                if let Argument::Buffer(halves) = &given[1] {
                    // Rows may have become longer.
                    given[1] = codes(halves.len() / 2 + 16 * (of.n + of.k));
                }
                given
            };
            let about = format!("{edge:?} {form:?} {of:?}");
            engine.agrees(&source, grid, given).context(about)?;
        }
    }
    Ok(())
}

#[test]
fn kernels_say_whether_several_programs_would_be_faster() -> Result<()> {
    let small = kernel(Edge::Wrapped, Form::Rows);
    for (text, is_proposed) in [(large(&small), true), (small, false)] {
        let source = Source::new("product.ttir", text.as_str());
        let engine = compiled(&source, |options| {
            options.num_warps = Some(8);
            options.tensor_copies = TensorCopies::Launcher;
            options.persistent = Persistent::Propose;
        })?;
        let metadata = &engine.compilation.metadata;
        ensure!(metadata.persistent_proposal == is_proposed);
        ensure!(!metadata.program_extents);
    }
    Ok(())
}

#[test]
fn products_with_copies_are_those_of_the_kernel_as_it_is_written() -> Result<()> {
    for edge in [Edge::Wrapped, Edge::First, Edge::Masked] {
        for form in [Form::Rows, Form::Columns] {
            agrees(edge, form)?;
        }
    }
    Ok(())
}

#[test]
fn deep_tiles_in_slices_leave_what_whole_ones_leave() -> Result<()> {
    let mut numbers = Numbers(6);
    let cases = [
        (Edge::Wrapped, Form::Rows, 1, false),
        (Edge::Masked, Form::Columns, 1, true),
        (Edge::Wrapped, Form::Columns, 2, false),
    ];
    for (edge, form, blocks, steps) in cases {
        let mut text = deep(&kernel(edge, form));
        if steps {
            // The number of the loop is the first term of the iteration.
            text = text
                .replace("%c0 to %n step %c1", "%c0 to %K step %c128")
                .replace("%done = arith.muli %i, %c128", "%done = arith.addi %i, %c0");
        }
        let source = Source::new("product.ttir", text.as_str());
        let engine = compiled(&source, |options| {
            options.num_warps = Some(4);
            options.tensor_copies = TensorCopies::Launcher;
            options.split_k = blocks;
        })?;
        let factor = &engine.compilation.metadata.argument_tensors[0];
        ensure!(
            factor.encoding.block_size == [64, 64],
            "the tiles are whole"
        );
        for _ in 0..4 {
            let mut of = large_sizes(&mut numbers, form);
            // Some end within a slice, some before the last slice of a step.
            of.k += 8 * numbers.below(40);
            of.stride_a = of.k;
            if form == Form::Columns {
                of.stride_b = of.k;
            }
            let grid = [of.m.div_ceil(64) as u32, of.n.div_ceil(256) as u32, 1];
            let about = format!("{edge:?} {form:?} {of:?}");
            engine
                .agrees(&source, grid, arguments(of, form))
                .context(about)?;
        }
    }
    Ok(())
}
