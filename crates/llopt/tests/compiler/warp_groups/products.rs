//! Warp-group products: every type, number of columns, order in memory and swizzle, compared with three loops; and
//! the machine's findings when a wait, a fence or a barrier around them is missing.

use llopt::sim::{Argument, FindingKind, Launch, Machine, Report};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

use super::ptx_registers::hazards;

/// A product, and the layout of its operands in memory.
#[derive(Clone, Copy, Debug)]
struct Product {
    /// The types of A and of B in MLIR.
    types: [&'static str; 2],
    /// The type of the result.
    result: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// Warps along rows and columns.
    warps: [usize; 2],
    /// Whether k is contiguous in memory, for A and for B.
    k_contiguous: [bool; 2],
    first_in_registers: bool,
    /// The attributes of the op.
    attributes: &'static str,
    /// The initial accumulator.
    before: i32,
}

const PLAIN: Product = Product {
    types: ["f16", "f16"],
    result: "f32",
    m: 64,
    n: 64,
    k: 64,
    warps: [4, 1],
    k_contiguous: [true, true],
    first_in_registers: false,
    attributes: "inputPrecision = 0 : i32",
    before: 1,
};

fn bits(of: &str) -> usize {
    match of {
        "f16" | "bf16" => 16,
        "f32" | "i32" => 32,
        _ => 8,
    }
}

/// A small whole number in a type.
fn encode(of: &str, value: i32) -> Vec<u8> {
    let magnitude = value.unsigned_abs() as usize;
    let sign = |bit: u32| if value < 0 { 1u32 << bit } else { 0 };
    let code = match of {
        "f16" => [0, 0x3c00, 0x4000, 0x4200][magnitude] | sign(15),
        "bf16" => (value as f32).to_bits() >> 16,
        "f32" => (value as f32).to_bits(),
        "f8E4M3FN" => [0, 0x38, 0x40, 0x44][magnitude] | sign(7),
        "f8E5M2" => [0, 0x3c, 0x40, 0x42][magnitude] | sign(7),
        _ => value as u32,
    };
    code.to_le_bytes()[..bits(of) / 8].to_vec()
}

fn decode(of: &str, bytes: &[u8]) -> f64 {
    match of {
        "f32" => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        "i32" => i32::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => {
            let code = u16::from_le_bytes(bytes.try_into().unwrap());
            let (exponent, mantissa) = (i32::from(code >> 10 & 31), f64::from(code & 1023));
            let size = if exponent == 0 {
                mantissa * 2f64.powi(-24)
            } else {
                (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15)
            };
            if code >> 15 == 1 { -size } else { size }
        }
    }
}

/// The number at (row, column) of an operand.
fn number(salt: usize, row: usize, column: usize) -> i32 {
    ((row * 31 + column * 17 + salt * 7 + row * column) % 7) as i32 - 3
}

impl Product {
    /// The layout of an operand's buffer, with the widest swizzle that its contiguous dimension allows.
    fn shared(&self, operand: usize) -> String {
        let outer = if operand == 0 { self.m } else { self.n };
        let k_contiguous = self.k_contiguous[operand];
        let contiguous = if k_contiguous { self.k } else { outer };
        let bytes = contiguous * bits(self.types[operand]) / 8;
        // A is m x k, B is k x n.
        let transposed = k_contiguous == (operand == 1);
        format!(
            "#ttg.nvmma_shared<{{swizzlingByteWidth = {}, transposed = {transposed}, elementBitWidth = {}}}>",
            bytes.min(128),
            bits(self.types[operand])
        )
    }

    fn module(&self) -> String {
        let Self {
            m,
            n,
            k,
            warps: [along_m, along_n],
            types: [a, b],
            result,
            ..
        } = *self;
        let warps = along_m * along_n;
        let (depth, columns) = (256 / bits(a), (n / along_n).min(256));
        let shape = |rows: usize, columns: usize, of: &str| format!("{rows}x{columns}x{of}");
        let (sa, sb, sd) = (shape(m, k, a), shape(k, n, b), shape(m, n, result));
        let zero = if result == "i32" {
            format!("{}", self.before)
        } else {
            format!("{}.0", self.before)
        };
        let load = |name: &str, rows: usize, columns: usize, of: &str| {
            format!(
                "%{name}r = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32, #rows>
                 %{name}re = tt.expand_dims %{name}r {{axis = 1 : i32}} : tensor<{rows}xi32, #rows> -> tensor<{rows}x1xi32, #b>
                 %{name}s = arith.constant dense<{columns}> : tensor<{rows}x1xi32, #b>
                 %{name}rs = arith.muli %{name}re, %{name}s : tensor<{rows}x1xi32, #b>
                 %{name}c = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32, #columns>
                 %{name}ce = tt.expand_dims %{name}c {{axis = 0 : i32}} : tensor<{columns}xi32, #columns> -> tensor<1x{columns}xi32, #b>
                 %{name}rb = tt.broadcast %{name}rs : tensor<{rows}x1xi32, #b> -> tensor<{rows}x{columns}xi32, #b>
                 %{name}cb = tt.broadcast %{name}ce : tensor<1x{columns}xi32, #b> -> tensor<{rows}x{columns}xi32, #b>
                 %{name}o = arith.addi %{name}rb, %{name}cb : tensor<{rows}x{columns}xi32, #b>
                 %{name}q = tt.splat %{name} : !tt.ptr<{of}> -> tensor<{rows}x{columns}x!tt.ptr<{of}>, #b>
                 %{name}p = tt.addptr %{name}q, %{name}o : tensor<{rows}x{columns}x!tt.ptr<{of}>, #b>, tensor<{rows}x{columns}xi32, #b>"
            )
        };
        let (of_a, make_a) = if self.first_in_registers {
            let of = format!(
                "tensor<{sa}, #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {}}}>>",
                32 / bits(a)
            );
            let make = format!("%ma = ttg.convert_layout %va : tensor<{sa}, #b> -> {of}");
            (of, make)
        } else {
            let of = format!("!ttg.memdesc<{sa}, #sa, #smem>");
            let make = format!("%ma = ttg.local_alloc %va : (tensor<{sa}, #b>) -> {of}");
            (of, make)
        };
        format!(
            "#b = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [{warps}, 1], order = [1, 0]}}>
#rows = #ttg.slice<{{dim = 1, parent = #b}}>
#columns = #ttg.slice<{{dim = 0, parent = #b}}>
#mma = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [{along_m}, {along_n}], instrShape = [16, {columns}, {depth}]}}>
#sa = {}
#sb = {}
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {warps} : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{
  tt.func public @kernel(%a: !tt.ptr<{a}>, %b: !tt.ptr<{b}>, %d: !tt.ptr<{result}>) {{
    {}
    %va = tt.load %ap : tensor<{m}x{k}x!tt.ptr<{a}>, #b>
    {}
    %vb = tt.load %bp : tensor<{k}x{n}x!tt.ptr<{b}>, #b>
    {make_a}
    %mb = ttg.local_alloc %vb : (tensor<{sb}, #b>) -> !ttg.memdesc<{sb}, #sb, #smem>
    %c = arith.constant dense<{zero}> : tensor<{sd}, #mma>
    %v = ttng.warp_group_dot %ma, %mb, %c {{{}}} : {of_a} * !ttg.memdesc<{sb}, #sb, #smem> -> tensor<{sd}, #mma>
    %w:2 = ttng.warp_group_dot_wait %v, %mb {{pendings = 0 : i32}} : tensor<{sd}, #mma>, !ttg.memdesc<{sb}, #sb, #smem>
    %x = ttg.convert_layout %w#0 : tensor<{sd}, #mma> -> tensor<{sd}, #b>
    {}
    tt.store %dp, %x : tensor<{m}x{n}x!tt.ptr<{result}>, #b>
    tt.return
  }}
}}
",
            self.shared(0),
            self.shared(1),
            load("a", m, k, a),
            load("b", k, n, b),
            self.attributes,
            load("d", m, n, result),
        )
    }

    fn compile(&self, optimize: bool) -> (String, u32) {
        let mut options = Options::new(Target::parse("cuda:90").unwrap());
        options.optimize = optimize;
        let source = Source::new("kernel.ttgir", self.module());
        let compile = |kind| {
            Compiler::new(options.clone())
                .compile(&source, kind)
                .unwrap_or_else(|error| panic!("{self:?}: {error}"))
        };
        let ptx = compile(ArtifactKind::Ptx);
        let found = hazards(ptx.artifact.text().unwrap());
        assert!(found.is_empty(), "{self:?}: {found:#?}");
        let compiled = compile(ArtifactKind::Llvm);
        (
            compiled.artifact.text().unwrap().to_owned(),
            compiled.metadata.shared,
        )
    }

    /// Runs IR, and returns the result and the report.
    fn run(&self, ir: &str, shared: u32) -> (Vec<u8>, Report) {
        let target = Target::parse("cuda:90").unwrap();
        let machine = Machine::from_ir(ir.as_bytes(), target, None).unwrap();
        let image = |operand: usize, rows: usize, columns: usize| -> Vec<u8> {
            (0..rows * columns)
                .flat_map(|at| {
                    encode(
                        self.types[operand],
                        number(operand, at / columns, at % columns),
                    )
                })
                .collect()
        };
        let arguments = vec![
            Argument::Buffer(image(0, self.m, self.k)),
            Argument::Buffer(image(1, self.k, self.n)),
            Argument::Buffer(vec![0; self.m * self.n * bits(self.result) / 8]),
            Argument::Null,
            Argument::Null,
        ];
        let threads = 32 * self.warps.iter().product::<usize>() as u32;
        let mut launch = Launch::new([1; 3], threads, arguments);
        launch.dynamic_shared = shared.into();
        let report = machine
            .run(&mut launch, &llopt::sim::Options::default())
            .unwrap();
        let Argument::Buffer(result) = launch.arguments.swap_remove(2) else {
            panic!("a buffer comes back as one");
        };
        (result, report)
    }

    fn check(&self) {
        for optimize in [false, true] {
            let (ir, shared) = self.compile(optimize);
            let (result, report) = self.run(&ir, shared);
            assert_eq!(report.findings, [], "{self:?}");
            for row in 0..self.m {
                for column in 0..self.n {
                    let sum: i32 = (0..self.k)
                        .map(|k| number(0, row, k) * number(1, k, column))
                        .sum();
                    let width = bits(self.result) / 8;
                    let at = (row * self.n + column) * width;
                    let got = decode(self.result, &result[at..at + width]);
                    assert!(
                        got == f64::from(sum + self.before),
                        "{self:?} at {row}, {column}: {got} instead of {}",
                        sum + self.before
                    );
                }
            }
        }
    }
}

#[test]
fn every_number_of_columns() {
    for n in [8, 16, 32, 64, 128, 256] {
        // B with its columns contiguous has the swizzle of their width.
        for k_contiguous in [[true, true], [true, n < 16]] {
            Product {
                n,
                k: 32,
                k_contiguous,
                ..PLAIN
            }
            .check();
        }
    }
}

#[test]
fn every_order_and_swizzle_of_both_operands() {
    for k in [16, 32, 64, 128] {
        for a in [true, false] {
            for b in [true, false] {
                Product {
                    k,
                    k_contiguous: [a, b],
                    ..PLAIN
                }
                .check();
            }
        }
    }
}

#[test]
fn products_of_every_type_agree() {
    let fp8 = "maxNumImpreciseAcc = 1073741824 : i32";
    for (types, result, attributes) in [
        (["f16", "f16"], "f16", PLAIN.attributes),
        (["bf16", "bf16"], "f32", PLAIN.attributes),
        (["f32", "f32"], "f32", PLAIN.attributes),
        (["f8E4M3FN", "f8E4M3FN"], "f32", fp8),
        (["f8E5M2", "f8E4M3FN"], "f32", fp8),
        (["f8E5M2", "f8E5M2"], "f16", fp8),
        (["i8", "i8"], "i32", PLAIN.attributes),
    ] {
        for first_in_registers in [false, true] {
            for before in [0, 2] {
                Product {
                    types,
                    result,
                    attributes,
                    first_in_registers,
                    before,
                    ..PLAIN
                }
                .check();
            }
        }
    }
}

#[test]
fn sums_of_eight_bits_are_added_up_outside_of_the_unit() {
    for limit in ["32", "64"] {
        let attributes: &'static str = match limit {
            "32" => "maxNumImpreciseAcc = 32 : i32",
            _ => "isAsync = true, maxNumImpreciseAcc = 64 : i32",
        };
        let product = Product {
            types: ["f8E4M3FN", "f8E4M3FN"],
            k: 128,
            attributes,
            ..PLAIN
        };
        product.check();
        let products = product
            .compile(true)
            .0
            .matches("wgmma.commit_group")
            .count();
        assert_eq!(products, 128 / limit.parse::<usize>().unwrap());
    }
}

#[test]
fn several_groups_and_several_rows() {
    for (m, n, warps) in [
        (128, 64, [4, 1]),
        (128, 64, [8, 1]),
        (64, 128, [4, 2]),
        (256, 32, [8, 1]),
        (64, 64, [8, 1]),
    ] {
        for first_in_registers in [false, true] {
            Product {
                m,
                n,
                warps,
                k: 32,
                first_in_registers,
                ..PLAIN
            }
            .check();
        }
    }
}

/// A product that is asynchronous until it is waited for.
const ASYNC: Product = Product {
    attributes: "inputPrecision = 0 : i32, isAsync = true",
    ..PLAIN
};

#[test]
fn a_result_that_is_read_before_the_wait_is_found() {
    let (ir, shared) = ASYNC.compile(true);
    assert!(ir.contains("wgmma.wait_group.sync.aligned 0;"), "{ir}");
    let weaker = ir.replace(
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 1;",
    );
    let (_, report) = ASYNC.run(&weaker, shared);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::UnwaitedProduct), "{kinds:?}");
}

#[test]
fn a_buffer_that_is_written_before_the_wait_is_found() {
    // The conversion of the result goes through the memory of the operands, which is free from the wait on.
    let (ir, shared) = ASYNC.compile(true);
    let (_, report) = ASYNC.run(&ir.replace("wgmma.wait_group.sync.aligned 0;", ""), shared);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(
        kinds.iter().any(|kind| matches!(
            kind,
            FindingKind::SharedReadWriteRace | FindingKind::UnwaitedCopy
        )),
        "{kinds:?}"
    );
}

#[test]
fn a_missing_proxy_fence_is_found() {
    let (ir, shared) = PLAIN.compile(true);
    assert!(ir.contains("fence.proxy.async"), "{ir}");
    let without: String = ir
        .lines()
        .filter(|line| !line.contains("call ") || !line.contains("fence.proxy.async"))
        .map(|line| format!("{line}\n"))
        .collect();
    let (_, report) = PLAIN.run(&without, shared);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::MissingProxyFence), "{kinds:?}");
}
