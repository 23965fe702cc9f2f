//! Ops that work across the blocks of a cluster, on layouts that divide the axis among blocks in every way: the
//! machine, with its sanitizer, compared with the reference interpreter, before and after optimisation.

mod agreement;

use std::fmt::Write as _;
use std::fs;

use agreement::{agree, npy};

const ROWS: usize = 32;
const COLUMNS: usize = 64;

/// A layout of 32 x 64 elements, with the number of its blocks.
struct Case {
    blocks: usize,
    encoding: String,
}

fn case(blocks: usize, encoding: &str) -> Case {
    Case {
        blocks,
        encoding: encoding.to_owned(),
    }
}

fn cases() -> Vec<Case> {
    let blocked = |blocks: usize, split: &str| {
        let encoding = format!(
            "#ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], \
             order = [1, 0], CGALayout = [{split}]}}>"
        );
        Case { blocks, encoding }
    };
    vec![
        blocked(2, "[0, 1]"),
        blocked(4, "[1, 0], [0, 1]"),
        // Two blocks split the columns, two more hold copies.
        blocked(4, "[0, 0], [0, 1]"),
        // Neighbouring columns in neighbouring blocks, and four rows apart.
        case(
            4,
            "#ttg.linear<{register = [[0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [0, 16], [8, 0]], \
             warp = [[0, 32], [16, 0]], block = [[0, 1], [4, 0]]}>",
        ),
        // Threads that repeat others, and two blocks that split the axis in the middle.
        case(
            2,
            "#ttg.linear<{register = [[0, 1], [0, 8], [1, 0], [2, 0], [16, 0]], lane = [[0, 4], [0, 0], [0, 2], \
             [4, 0], [8, 0]], warp = [[0, 0], [0, 32]], block = [[0, 16]]}>",
        ),
        case(
            4,
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], \
             CGALayout = [[0, 1], [1, 0]], instrShape = [16, 8]}>",
        ),
    ]
}

/// A region whose lines compute the returned names from `%a…` and `%b…`.
fn region(op: &str, types: &[&str], lines: &[&str], returned: &[&str]) -> String {
    let mut arguments: Vec<String> = Vec::new();
    for side in ["a", "b"] {
        for (i, of) in types.iter().enumerate() {
            arguments.push(format!("%{side}{i}: {of}"));
        }
    }
    format!(
        "({{\n^bb0({}):\n{}\n{op}.return {} : {}\n}})",
        arguments.join(", "),
        lines.join("\n"),
        returned.join(", "),
        types.join(", ")
    )
}

/// Loads 32 x 64 singles as `%x`, with their coordinates as `%row` and `%column`; `%n` are the elements' numbers.
fn kernel(case: &Case, parameters: &str, body: &str) -> String {
    format!(
        "#e = {encoding}
#of_rows = #ttg.slice<{{dim = 1, parent = #e}}>
#of_columns = #ttg.slice<{{dim = 0, parent = #e}}>
module attributes {{\"ttg.num-ctas\" = {blocks} : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{
  tt.func public @kernel(%in: !tt.ptr<f32>, {parameters}) {{
    %pid = tt.get_program_id x : i32
    %r0 = tt.make_range {{end = {ROWS} : i32, start = 0 : i32}} : tensor<{ROWS}xi32, #of_rows>
    %c0 = tt.make_range {{end = {COLUMNS} : i32, start = 0 : i32}} : tensor<{COLUMNS}xi32, #of_columns>
    %r1 = tt.expand_dims %r0 {{axis = 1 : i32}} : tensor<{ROWS}xi32, #of_rows> -> tensor<{ROWS}x1xi32, #e>
    %c1 = tt.expand_dims %c0 {{axis = 0 : i32}} : tensor<{COLUMNS}xi32, #of_columns> -> tensor<1x{COLUMNS}xi32, #e>
    %row = tt.broadcast %r1 : tensor<{ROWS}x1xi32, #e> -> tensor<{ROWS}x{COLUMNS}xi32, #e>
    %column = tt.broadcast %c1 : tensor<1x{COLUMNS}xi32, #e> -> tensor<{ROWS}x{COLUMNS}xi32, #e>
    %width = arith.constant dense<{COLUMNS}> : tensor<{ROWS}x{COLUMNS}xi32, #e>
    %first_of_row = arith.muli %row, %width : tensor<{ROWS}x{COLUMNS}xi32, #e>
    %in_program = arith.addi %first_of_row, %column : tensor<{ROWS}x{COLUMNS}xi32, #e>
    %count = arith.constant {count} : i32
    %program = arith.muli %pid, %count : i32
    %programs = tt.splat %program : i32 -> tensor<{ROWS}x{COLUMNS}xi32, #e>
    %n = arith.addi %in_program, %programs : tensor<{ROWS}x{COLUMNS}xi32, #e>
    %pointer = tt.splat %in : !tt.ptr<f32> -> tensor<{ROWS}x{COLUMNS}x!tt.ptr<f32>, #e>
    %at = tt.addptr %pointer, %n : tensor<{ROWS}x{COLUMNS}x!tt.ptr<f32>, #e>, tensor<{ROWS}x{COLUMNS}xi32, #e>
    %x = tt.load %at : tensor<{ROWS}x{COLUMNS}x!tt.ptr<f32>, #e>
{body}
    tt.return
  }}
}}
",
        encoding = case.encoding,
        blocks = case.blocks,
        count = ROWS * COLUMNS,
    )
}

/// Stores a tensor of `numbers` of the result; `numbers` has the same layout.
fn store(
    text: &mut String,
    value: &str,
    to: &str,
    numbers: &str,
    shape: &str,
    element: &str,
    layout: &str,
) {
    let _ = writeln!(
        text,
        "%p_{to} = tt.splat %{to} : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>, {layout}>
%q_{to} = tt.addptr %p_{to}, {numbers} : tensor<{shape}x!tt.ptr<{element}>, {layout}>, tensor<{shape}xi32, {layout}>
tt.store %q_{to}, {value} : tensor<{shape}x!tt.ptr<{element}>, {layout}>"
    );
}

fn run(text: &str, arguments: &str, files: &[(&str, Vec<u8>)]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("kernel.ttgir");
    fs::write(&path, text).expect("the kernel is written");
    agree(&path, "cuda:90", "2", arguments, files);
}

/// Inputs for two programs: whole numbers with many repetitions, some of them negative.
fn input() -> Vec<u8> {
    npy("<f4", &[2 * ROWS * COLUMNS], |i| {
        (((i * 37 + i / 64) % 23) as f32 - 7.0)
            .to_le_bytes()
            .to_vec()
    })
}

fn empty(descr: &str, count: usize, bytes: usize) -> Vec<u8> {
    npy(descr, &[count], |_| vec![0; bytes])
}

#[test]
fn reductions_along_an_axis_that_blocks_share() {
    for case in cases() {
        for axis in 0..2 {
            let (extent, layout, numbers, place) = match axis {
                0 => (COLUMNS, "#of_columns", "%c0", "%row"),
                _ => (ROWS, "#of_rows", "%r0", "%column"),
            };
            let full = format!("{ROWS}x{COLUMNS}");
            let add = region(
                "tt.reduce",
                &["f16"],
                &["%s = arith.addf %a0, %b0 : f16"],
                &["%s"],
            );
            let add64 = region(
                "tt.reduce",
                &["i64"],
                &["%s = arith.addi %a0, %b0 : i64"],
                &["%s"],
            );
            let greatest = region(
                "tt.reduce",
                &["f32", "i32"],
                &[
                    "%greater = arith.cmpf ogt, %a0, %b0 : f32",
                    "%same = arith.cmpf oeq, %a0, %b0 : f32",
                    "%before = arith.cmpi slt, %a1, %b1 : i32",
                    "%first = arith.andi %same, %before : i1",
                    "%takes = arith.ori %greater, %first : i1",
                    "%v = arith.select %takes, %a0, %b0 : f32",
                    "%i = arith.select %takes, %a1, %b1 : i32",
                ],
                &["%v", "%i"],
            );
            let most = region(
                "tt.reduce",
                &["f32"],
                &["%m = arith.maxnumf %a0, %b0 : f32"],
                &["%m"],
            );
            let mut body = format!(
                "%h = arith.truncf %x : tensor<{full}xf32, #e> to tensor<{full}xf16, #e>
%l = arith.fptosi %x : tensor<{full}xf32, #e> to tensor<{full}xi64, #e>
%sum = \"tt.reduce\"(%h) <{{axis = {axis} : i32}}> {add} : (tensor<{full}xf16, #e>) -> tensor<{extent}xf16, {layout}>
%sum64 = \"tt.reduce\"(%l) <{{axis = {axis} : i32}}> {add64} : (tensor<{full}xi64, #e>) -> tensor<{extent}xi64, {layout}>
%value, %index = \"tt.reduce\"(%x, {place}) <{{axis = {axis} : i32}}> {greatest} : (tensor<{full}xf32, #e>, tensor<{full}xi32, #e>) -> (tensor<{extent}xf32, {layout}>, tensor<{extent}xi32, {layout}>)
%all = \"tt.reduce\"(%value) <{{axis = 0 : i32}}> {most} : (tensor<{extent}xf32, {layout}>) -> f32
%alls = tt.splat %all : f32 -> tensor<{extent}xf32, {layout}>
%below = arith.subf %value, %alls : tensor<{extent}xf32, {layout}>
%extent = arith.constant {extent} : i32
%start = arith.muli %pid, %extent : i32
%starts = tt.splat %start : i32 -> tensor<{extent}xi32, {layout}>
%k = arith.addi {numbers}, %starts : tensor<{extent}xi32, {layout}>
"
            );
            let of = extent.to_string();
            for (value, to, element) in [
                ("%sum", "o16", "f16"),
                ("%sum64", "o64", "i64"),
                ("%below", "o32", "f32"),
                ("%index", "oi", "i32"),
            ] {
                store(&mut body, value, to, "%k", &of, element, layout);
            }
            let parameters =
                "%o16: !tt.ptr<f16>, %o64: !tt.ptr<i64>, %o32: !tt.ptr<f32>, %oi: !tt.ptr<i32>";
            let files = [
                ("in.npy", input()),
                ("o16.npy", empty("<f2", 2 * extent, 2)),
                ("o64.npy", empty("<i8", 2 * extent, 8)),
                ("o32.npy", empty("<f4", 2 * extent, 4)),
                ("oi.npy", empty("<i4", 2 * extent, 4)),
            ];
            let text = kernel(&case, parameters, &body);
            run(&text, "in.npy,o16.npy,o64.npy,o32.npy,oi.npy", &files);
        }
    }
}

#[test]
fn scans_along_an_axis_that_blocks_share() {
    for case in cases() {
        for (axis, reverse) in [(0, false), (1, true)] {
            let full = format!("{ROWS}x{COLUMNS}");
            // The last positive one and its position: the order matters.
            let last = region(
                "tt.scan",
                &["f32", "i32"],
                &[
                    "%zero = arith.constant 0.0 : f32",
                    "%is = arith.cmpf ogt, %b0, %zero : f32",
                    "%v = arith.select %is, %b0, %a0 : f32",
                    "%i = arith.select %is, %b1, %a1 : i32",
                ],
                &["%v", "%i"],
            );
            let mut body = format!(
                "%value, %index = \"tt.scan\"(%x, %n) <{{axis = {axis} : i32, reverse = {reverse}}}> {last} : (tensor<{full}xf32, #e>, tensor<{full}xi32, #e>) -> (tensor<{full}xf32, #e>, tensor<{full}xi32, #e>)\n"
            );
            store(&mut body, "%value", "o32", "%n", &full, "f32", "#e");
            store(&mut body, "%index", "oi", "%n", &full, "i32", "#e");
            let count = 2 * ROWS * COLUMNS;
            let files = [
                ("in.npy", input()),
                ("o32.npy", empty("<f4", count, 4)),
                ("oi.npy", empty("<i4", count, 4)),
            ];
            let text = kernel(&case, "%o32: !tt.ptr<f32>, %oi: !tt.ptr<i32>", &body);
            run(&text, "in.npy,o32.npy,oi.npy", &files);
        }
    }
}

#[test]
fn results_of_atomics_that_several_blocks_hold() {
    for case in cases() {
        // Columns as a slice: blocks that split the rows have the same ones. Every block has the scalar.
        let mut body = format!(
            "%extent = arith.constant {COLUMNS} : i32
%start = arith.muli %pid, %extent : i32
%starts = tt.splat %start : i32 -> tensor<{COLUMNS}xi32, #of_columns>
%k = arith.addi %c0, %starts : tensor<{COLUMNS}xi32, #of_columns>
%ps = tt.splat %counts : !tt.ptr<i32> -> tensor<{COLUMNS}x!tt.ptr<i32>, #of_columns>
%qs = tt.addptr %ps, %k : tensor<{COLUMNS}x!tt.ptr<i32>, #of_columns>, tensor<{COLUMNS}xi32, #of_columns>
%before = tt.atomic_rmw add, acq_rel, gpu, %qs, %c0 : (tensor<{COLUMNS}x!tt.ptr<i32>, #of_columns>, tensor<{COLUMNS}xi32, #of_columns>) -> tensor<{COLUMNS}xi32, #of_columns>
%own = tt.addptr %total, %pid : !tt.ptr<i32>, i32
%ticket = tt.atomic_rmw add, acq_rel, gpu, %own, %extent : (!tt.ptr<i32>, i32) -> i32
%tickets = tt.splat %ticket : i32 -> tensor<{COLUMNS}xi32, #of_columns>
%found = arith.addi %before, %tickets : tensor<{COLUMNS}xi32, #of_columns>
%f1 = tt.expand_dims %found {{axis = 0 : i32}} : tensor<{COLUMNS}xi32, #of_columns> -> tensor<1x{COLUMNS}xi32, #e>
%f2 = tt.broadcast %f1 : tensor<1x{COLUMNS}xi32, #e> -> tensor<{ROWS}x{COLUMNS}xi32, #e>
"
        );
        let full = format!("{ROWS}x{COLUMNS}");
        store(&mut body, "%f2", "o", "%n", &full, "i32", "#e");
        let words = |count: usize| {
            npy("<i4", &[count], |i| {
                (i as i32 * 3 + 1).to_le_bytes().to_vec()
            })
        };
        let files = [
            ("in.npy", input()),
            ("counts.npy", words(2 * COLUMNS)),
            ("total.npy", words(2)),
            ("o.npy", empty("<i4", 2 * ROWS * COLUMNS, 4)),
        ];
        let parameters = "%counts: !tt.ptr<i32>, %total: !tt.ptr<i32>, %o: !tt.ptr<i32>";
        let text = kernel(&case, parameters, &body);
        run(&text, "in.npy,counts.npy,total.npy,o.npy", &files);
    }
}
