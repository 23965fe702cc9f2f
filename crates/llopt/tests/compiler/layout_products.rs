//! Matrix products without layouts, executed on the simulated machine by the instructions that the engine chooses,
//! and compared with the reference interpreter.
//!
//! Factors hold small whole numbers, so that every sum is exact and results must be equal. They are loaded by rows or
//! by columns, transposed or not, in a loop that accumulates and runs a few times or not at all, and a product may be
//! a factor of the next one. The loop is pipelined in a few stages, or not. The second factor may be loaded as bytes.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine};

/// One program.
#[derive(Clone, Copy, Debug)]
struct Case {
    element: &'static str,
    /// Rows, columns, and the extent that is summed over.
    shape: [usize; 3],
    /// Whether a factor is loaded by columns, and whether it is transposed after it was loaded.
    by_columns: [bool; 2],
    transposed: [bool; 2],
    iterations: usize,
    /// Stages of the loop.
    stages: u32,
    /// Whether the second factor is loaded as bytes and widened.
    narrow: bool,
    /// Whether the product adds to the accumulator itself.
    adds: bool,
    /// Whether the result is the first factor of another product with the same second one.
    chained: bool,
    warps: u32,
}

impl Case {
    /// A case from a number: every choice is one digit of it.
    fn of(mut number: usize) -> Self {
        let mut digit = |base: usize| {
            let digit = number % base;
            number /= base;
            digit
        };
        let element = ["f16", "i8", "bf16", "f8E5M2"][digit(4)];
        let by_columns = [digit(2) == 1, digit(2) == 1];
        let transposed = [digit(2) == 1, digit(2) == 1];
        let shape = [
            [64, 128, 32][digit(3)],
            [64, 32][digit(2)],
            [64, 32][digit(2)],
        ];
        let chained = element == "f16" && shape[1] == shape[2] && digit(2) == 1;
        Self {
            element,
            shape,
            by_columns,
            transposed,
            iterations: [1, 3, 0, 4, 2, 5][digit(6)],
            stages: [3, 2, 4, 1][digit(4)],
            narrow: false,
            adds: digit(2) == 1,
            chained,
            warps: [4, 8][digit(2)],
        }
    }

    fn result(&self) -> &'static str {
        match self.element {
            "i8" => "i32",
            _ => "f32",
        }
    }

    /// The type of the elements of a factor in memory.
    fn loaded(&self, operand: usize) -> &'static str {
        match operand {
            1 if self.narrow => "i8",
            _ => self.element,
        }
    }

    /// Lines that load a factor: the name of the value is `%name`.
    fn factor(&self, operand: usize, name: &str, step: usize) -> String {
        if self.narrow && operand == 1 {
            let bytes = Self {
                element: "i8",
                narrow: false,
                ..*self
            };
            let [_, n, k] = self.shape;
            let loaded = bytes.factor(operand, "bytes", step);
            return format!(
                "{loaded}%{name} = arith.sitofp %bytes : tensor<{k}x{n}xi8> to tensor<{k}x{n}x{}>\n",
                self.element
            );
        }
        let [m, n, k] = self.shape;
        let of = self.element;
        let [rows, columns] = [[m, k], [k, n]][operand];
        let [r, c] = match self.transposed[operand] {
            true => [columns, rows],
            false => [rows, columns],
        };
        let [down, across] = match self.by_columns[operand] {
            true => [1, r],
            false => [c, 1],
        };
        let x = format!("%{name}_");
        let loaded = match self.transposed[operand] {
            true => format!("{x}l"),
            false => format!("%{name}"),
        };
        let mut text = format!(
            "{x}r = tt.make_range {{start = 0 : i32, end = {r} : i32}} : tensor<{r}xi32>
             {x}re = tt.expand_dims {x}r {{axis = 1 : i32}} : tensor<{r}xi32> -> tensor<{r}x1xi32>
             {x}rs = arith.constant dense<{down}> : tensor<{r}x1xi32>
             {x}rm = arith.muli {x}re, {x}rs : tensor<{r}x1xi32>
             {x}rb = tt.broadcast {x}rm : tensor<{r}x1xi32> -> tensor<{r}x{c}xi32>
             {x}c = tt.make_range {{start = 0 : i32, end = {c} : i32}} : tensor<{c}xi32>
             {x}ce = tt.expand_dims {x}c {{axis = 0 : i32}} : tensor<{c}xi32> -> tensor<1x{c}xi32>
             {x}cs = arith.constant dense<{across}> : tensor<1x{c}xi32>
             {x}cm = arith.muli {x}ce, {x}cs : tensor<1x{c}xi32>
             {x}cb = tt.broadcast {x}cm : tensor<1x{c}xi32> -> tensor<{r}x{c}xi32>
             {x}o = arith.addi {x}rb, {x}cb : tensor<{r}x{c}xi32>
             {x}w = arith.constant {step} : i32
             {x}i = arith.muli %i, {x}w : i32
             {x}q = tt.addptr %from{operand}, {x}i : !tt.ptr<{of}>, i32
             {x}s = tt.splat {x}q : !tt.ptr<{of}> -> tensor<{r}x{c}x!tt.ptr<{of}>>
             {x}p = tt.addptr {x}s, {x}o : tensor<{r}x{c}x!tt.ptr<{of}>>, tensor<{r}x{c}xi32>
             {loaded} = tt.load {x}p : tensor<{r}x{c}x!tt.ptr<{of}>>\n"
        );
        if self.transposed[operand] {
            text += &format!(
                "%{name} = tt.trans {loaded} {{order = array<i32: 1, 0>}} : tensor<{r}x{c}x{of}> -> tensor<{rows}x{columns}x{of}>\n"
            );
        }
        text
    }

    fn text(&self) -> String {
        let [m, n, k] = self.shape;
        let (of, to, second_of) = (self.element, self.result(), self.loaded(1));
        let zero = if to == "i32" { "0" } else { "0.0" };
        let sum = format!("tensor<{m}x{n}x{to}>");
        let (first, second) = (self.factor(0, "a", m * k / 4), self.factor(1, "b", 16));
        // A chained product starts with zero.
        let start = if self.adds && !self.chained {
            "%acc"
        } else {
            "%z"
        };
        let precision = "{maxNumImpreciseAcc = 1073741824 : i32}";
        let after = if self.chained {
            format!(
                "%h = arith.truncf %d : {sum} to tensor<{m}x{n}xf16>
                 %e = tt.dot %h, %b, %z : tensor<{m}x{n}xf16> * tensor<{k}x{n}xf16> -> {sum}
                 %f = arith.addf %e, %acc : {sum}\n"
            )
        } else if self.adds {
            format!("%f = arith.select %always, %d, %acc : {sum}\n")
        } else if to == "i32" {
            format!("%f = arith.addi %d, %acc : {sum}\n")
        } else {
            format!("%f = arith.addf %d, %acc : {sum}\n")
        };
        format!(
            "module {{
             tt.func public @product(%from0: !tt.ptr<{of}> {{tt.divisibility = 16 : i32}}, %from1: !tt.ptr<{second_of}> {{tt.divisibility = 16 : i32}}, %to: !tt.ptr<{to}> {{tt.divisibility = 16 : i32}}, %most: i32) {{
             %z = arith.constant dense<{zero}> : {sum}
             %least = arith.constant 0 : i32
             %step = arith.constant 1 : i32
             %always = arith.constant true
             %y = scf.for %i = %least to %most step %step iter_args(%acc = %z) -> ({sum}) : i32 {{
             {first}{second}
             %d = tt.dot %a, %b, {start} {precision} : tensor<{m}x{k}x{of}> * tensor<{k}x{n}x{of}> -> {sum}
             {after}
             scf.yield %f : {sum}
             }}
             %r = tt.make_range {{start = 0 : i32, end = {m} : i32}} : tensor<{m}xi32>
             %re = tt.expand_dims %r {{axis = 1 : i32}} : tensor<{m}xi32> -> tensor<{m}x1xi32>
             %rs = arith.constant dense<{n}> : tensor<{m}x1xi32>
             %rm = arith.muli %re, %rs : tensor<{m}x1xi32>
             %rb = tt.broadcast %rm : tensor<{m}x1xi32> -> tensor<{m}x{n}xi32>
             %c = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32>
             %ce = tt.expand_dims %c {{axis = 0 : i32}} : tensor<{n}xi32> -> tensor<1x{n}xi32>
             %cb = tt.broadcast %ce : tensor<1x{n}xi32> -> tensor<{m}x{n}xi32>
             %o = arith.addi %rb, %cb : tensor<{m}x{n}xi32>
             %s = tt.splat %to : !tt.ptr<{to}> -> tensor<{m}x{n}x!tt.ptr<{to}>>
             %p = tt.addptr %s, %o : tensor<{m}x{n}x!tt.ptr<{to}>>, tensor<{m}x{n}xi32>
             tt.store %p, %y : tensor<{m}x{n}x!tt.ptr<{to}>>
             tt.return
             }}
             }}"
        )
    }

    fn arguments(&self) -> Vec<Argument> {
        let [m, n, k] = self.shape;
        let number = |at: usize| (at * 31 + at / 7) as i32 % 7 - 3;
        let numbers = |operand: usize, count: usize| {
            let of = self.loaded(operand);
            Argument::Buffer((0..count).flat_map(|at| encode(of, number(at))).collect())
        };
        vec![
            numbers(0, 2 * m * k + m * k / 4),
            numbers(1, k * n + 80),
            Argument::Buffer(vec![0; 4 * m * n]),
            Argument::Int(self.iterations as i64),
        ]
    }
}

/// A small whole number in a type.
fn encode(of: &str, value: i32) -> Vec<u8> {
    let magnitude = value.unsigned_abs() as usize;
    let sign = |bit: u32| u32::from(value < 0) << bit;
    let (code, bytes) = match of {
        "f16" => ([0, 0x3c00, 0x4000, 0x4200][magnitude] | sign(15), 2),
        "bf16" => ((value as f32).to_bits() >> 16, 2),
        "f8E5M2" => ([0, 0x3c, 0x40, 0x42][magnitude] | sign(7), 1),
        _ => (value as u32, 1),
    };
    code.to_le_bytes()[..bytes].to_vec()
}

/// Runs one program both ways; returns it with its layouts.
fn check(case: Case, target: &str) -> Result<String> {
    let text = case.text();
    let source = Source::new("product.ttir", text.as_str());
    let target = Target::parse(target)?;
    let mut expected = Launch::new([1, 1, 1], 1, case.arguments());
    run_reference(&source, &mut expected, Limits::default()).with_context(|| text.clone())?;

    let mut options = Options::new(target);
    options.num_warps = Some(case.warps);
    options.num_stages = case.stages;
    options.keep = vec![ArtifactKind::Ttgir];
    let compiled = Compiler::new(options).compile(&source, ArtifactKind::Llvm);
    let compiled = compiled.with_context(|| format!("{case:?}\n{text}"))?;
    let laid_out = compiled.kept.first().context("no layouts are kept")?;
    let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
    let mut given = case.arguments();
    given.extend([Argument::Null, Argument::Null]);
    let mut launch = Launch::new([1, 1, 1], case.warps * target.warp_size(), given);
    launch.dynamic_shared = u64::from(compiled.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(
        report.findings.is_empty(),
        "{case:?}: {:?}",
        report.findings
    );
    let output = |launch: &Launch| match &launch.arguments[2] {
        Argument::Buffer(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    ensure!(
        output(&launch) == output(&expected),
        "{target}, {case:?}: results differ"
    );
    Ok(String::from_utf8_lossy(laid_out.bytes()).into_owned())
}

#[test]
fn products_by_chosen_instructions_have_the_same_results() -> Result<()> {
    let mut by_groups = 0;
    for number in (0..16).map(|step| step * 211) {
        let text = check(Case::of(number), "cuda:90")?;
        by_groups += u32::from(text.contains("ttng.warp_group_dot"));
    }
    // Warp-group products pay off from 64 rows on.
    assert!(by_groups >= 8, "{by_groups}");
    for number in (0..4).map(|step| step * 617) {
        for target in ["cuda:80", "hip:gfx942", "hip:gfx1200"] {
            check(Case::of(number), target)?;
        }
    }
    Ok(())
}

#[test]
fn warps_divide_k_of_products_of_few_rows_among_them() -> Result<()> {
    let targets = ["cuda:90", "cuda:80", "hip:gfx942", "hip:gfx1100"];
    let mut sliced = 0;
    for (number, target) in targets.into_iter().cycle().take(16).enumerate() {
        let case = Case {
            element: ["f16", "bf16", "f16", "i8"][number / 4],
            shape: [16, [64, 128][number / 2 % 2], 128],
            by_columns: [number % 3 == 0, number % 5 < 2],
            transposed: [false, number % 5 == 0],
            iterations: [3, 5, 1, 0][number / 4],
            stages: [3, 4, 2, 1][number / 4],
            narrow: false,
            adds: true,
            chained: false,
            warps: [4, 8][number / 2 % 2],
        };
        let text = check(case, target)?;
        let [m, n, _] = case.shape;
        let is_sliced = [2, 4, 8].iter().any(|slices| {
            let sums = format!("tensor<{slices}x{m}x{n}x{}, #", case.result());
            text.contains(&sums)
        });
        ensure!(
            !is_sliced || target.starts_with("cuda"),
            "{target}, {case:?}: {text}"
        );
        sliced += u32::from(is_sliced);
    }
    assert!(sliced >= 2, "{sliced}");
    Ok(())
}

#[test]
fn products_with_a_widened_second_factor_are_transposed() -> Result<()> {
    let (mut transposed, mut running) = (0, 0);
    for number in 0..12 {
        let case = Case {
            element: ["bf16", "f16"][number % 2],
            shape: [[64, 128][number / 2 % 2], [128, 64][number / 6], 64],
            by_columns: [false, number % 3 > 0],
            transposed: [number % 5 == 0, false],
            iterations: [3, 5, 1, 0, 2, 4][number % 6],
            stages: [3, 4, 2, 1][number / 3],
            narrow: true,
            adds: true,
            chained: false,
            warps: [4, 8][number / 4 % 2],
        };
        let text = check(case, "cuda:90")?;
        let [m, n, _] = case.shape;
        let product = format!("-> tensor<{n}x{m}xf32, #mma>");
        transposed += u32::from(text.contains("ttng.warp_group_dot") && text.contains(&product));
        running += u32::from(text.contains("isAsync = true"));
        check(case, ["cuda:80", "hip:gfx942", "hip:gfx1100"][number % 3])?;
    }
    assert_eq!(transposed, 12);
    // Those in loops of several stages whose bytes are copied asynchronously.
    assert!(running >= 6, "{running}");
    Ok(())
}
