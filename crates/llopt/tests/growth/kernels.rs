//! Kernels of any size: each family repeats one construct a given number of times.
//!
//! The time of a compilation should be proportional to the length of the kernel. The families differ in what grows:
//! many values, many uses of one value, many accesses, much shared memory, much control flow. Nothing in them folds,
//! so that each step still exists in the last phase.

use std::fmt::Write;

/// Kernels that differ only in length.
pub struct Family {
    /// The name in tables.
    pub name: &'static str,
    /// Lengths from the smallest to the largest that are measured.
    pub sizes: [usize; 2],
    /// The kernel of a length, as text.
    pub kernel: fn(usize) -> String,
}

/// All families.
pub static FAMILIES: [Family; 13] = [
    family("chain", [64, 4096], chain),
    family("reductions", [64, 1024], reductions),
    family("accesses", [50, 1600], accesses),
    family("sums", [200, 3200], sums),
    family("branches", [50, 800], branches),
    family("loops", [50, 800], loops),
    family("conversions", [64, 2048], conversions),
    family("conversions in a loop", [64, 2048], conversions_in_a_loop),
    family(
        "conversions in branches",
        [64, 2048],
        conversions_in_branches,
    ),
    family("conversions in loops", [64, 2048], conversions_in_loops),
    family("buffers", [64, 2048], buffers),
    family("copies", [64, 2048], copies),
    family("calls", [64, 1024], calls),
];

const fn family(name: &'static str, sizes: [usize; 2], kernel: fn(usize) -> String) -> Family {
    Family {
        name,
        sizes,
        kernel,
    }
}

/// A kernel without layouts. `%x0` has 1,024 integers, and the result is written to `%out`.
fn without_layouts(body: &str, result: &str) -> String {
    format!(
        "module {{
  tt.func public @kernel(%p: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %q: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %range = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32>
    %from = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
    %in = tt.addptr %from, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
    %to = tt.splat %q : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
    %out = tt.addptr %to, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
    %x0 = tt.load %in : tensor<1024x!tt.ptr<i32>>
{body}    tt.store %out, {result} : tensor<1024x!tt.ptr<i32>>
    tt.return
  }}
}}
"
    )
}

/// A kernel for 4 warps of 32. `%x0` has 1,024 integers in layout `#a`, `%r` such pointers; `#b` is another layout.
/// The module also has the given functions.
fn with_layouts(body: &str, result: &str, functions: &str) -> String {
    format!(
        "#a = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
#b = #ttg.blocked<{{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32}} {{
  tt.func public @kernel(%p: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %range = tt.make_range {{end = 1024 : i32, start = 0 : i32}} : tensor<1024xi32, #a>
    %from = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #a>
    %r = tt.addptr %from, %range : tensor<1024x!tt.ptr<i32>, #a>, tensor<1024xi32, #a>
    %x0 = tt.load %r : tensor<1024x!tt.ptr<i32>, #a>
{body}    tt.store %r, {result} : tensor<1024x!tt.ptr<i32>, #a>
    tt.return
  }}
{functions}}}
"
    )
}

/// The body of a kernel: each step by its number, from one.
fn steps(count: usize, mut step: impl FnMut(&mut String, usize)) -> String {
    let mut body = String::new();
    for number in 1..=count {
        step(&mut body, number);
    }
    body
}

/// Each step computes with the result of the one before.
fn chain(count: usize) -> String {
    let body = steps(count, |body, i| {
        let op = ["muli", "addi", "xori"][i % 3];
        line(
            body,
            &format!("%x{i} = arith.{op} %x{}, %x0 : tensor<1024xi32>", i - 1),
        );
    });
    without_layouts(&body, &format!("%x{count}"))
}

/// Each step sums the rows of a matrix, and adds the sums to it.
fn reductions(count: usize) -> String {
    let mut body = String::new();
    line(
        &mut body,
        "%m0 = tt.reshape %x0 : tensor<1024xi32> -> tensor<32x32xi32>",
    );
    body += &steps(count, |body, i| {
        let last = i - 1;
        line(body, &format!("%s{i} = {}", sum(&format!("%m{last}"), 1)));
        body.pop();
        body.push_str(" : (tensor<32x32xi32>) -> tensor<32xi32>\n");
        line(
            body,
            &format!(
                "%e{i} = tt.expand_dims %s{i} {{axis = 1 : i32}} : tensor<32xi32> -> tensor<32x1xi32>"
            ),
        );
        line(
            body,
            &format!("%b{i} = tt.broadcast %e{i} : tensor<32x1xi32> -> tensor<32x32xi32>"),
        );
        line(
            body,
            &format!("%m{i} = arith.addi %m{last}, %b{i} : tensor<32x32xi32>"),
        );
    });
    line(
        &mut body,
        &format!("%y = tt.reshape %m{count} : tensor<32x32xi32> -> tensor<1024xi32>"),
    );
    without_layouts(&body, "%y")
}

/// Half of the steps load, the other half store what was loaded.
fn accesses(count: usize) -> String {
    let body = steps(count / 2, |body, i| {
        let offset = 1024 * i;
        line(body, &format!("%o{i} = arith.constant {offset} : i32"));
        for (pointer, to) in [("p", "in"), ("q", "out")] {
            let new = format!("%{pointer}{i}");
            line(
                body,
                &format!("{new} = tt.addptr %{pointer}, %o{i} : !tt.ptr<i32>, i32"),
            );
            line(
                body,
                &format!("{new}s = tt.splat {new} : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>"),
            );
            line(
                body,
                &format!(
                    "%{to}{i} = tt.addptr {new}s, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>"
                ),
            );
        }
        line(
            body,
            &format!("%x{i} = tt.load %in{i} : tensor<1024x!tt.ptr<i32>>"),
        );
        line(
            body,
            &format!("tt.store %out{i}, %x{i} : tensor<1024x!tt.ptr<i32>>"),
        );
    });
    without_layouts(&body, "%x0")
}

/// As many tensors, and their sum: all are live at once, added by a tree.
fn sums(count: usize) -> String {
    let mut body = steps(count, |body, i| {
        line(
            body,
            &format!(
                "%c{i} = arith.constant dense<{}> : tensor<1024xi32>",
                2 * i + 1
            ),
        );
        line(
            body,
            &format!("%t{i} = arith.muli %x0, %c{i} : tensor<1024xi32>"),
        );
    });
    let mut level: Vec<String> = (1..=count).map(|i| format!("%t{i}")).collect();
    let mut number = 0;
    while level.len() > 1 {
        let mut next = Vec::new();
        for pair in level.chunks(2) {
            let [left, right] = pair else {
                next.push(pair[0].clone());
                continue;
            };
            number += 1;
            line(
                &mut body,
                &format!("%s{number} = arith.xori {left}, {right} : tensor<1024xi32>"),
            );
            next.push(format!("%s{number}"));
        }
        level = next;
    }
    without_layouts(&body, &level[0])
}

/// Each step is a branch that sums through shared memory.
fn branches(count: usize) -> String {
    let body = steps(count, |body, i| {
        let last = i - 1;
        line(body, &format!("%k{i} = arith.constant {i} : i32"));
        line(body, &format!("%c{i} = arith.cmpi sgt, %n, %k{i} : i32"));
        line(
            body,
            &format!("%x{i} = scf.if %c{i} -> (tensor<1024xi32>) {{"),
        );
        add_own_sum(body, &format!("%x{last}"), i);
        line(body, &format!("  scf.yield %y{i} : tensor<1024xi32>"));
        line(body, "} else {");
        line(body, &format!("  scf.yield %x{last} : tensor<1024xi32>"));
        line(body, "}");
    });
    without_layouts(&body, &format!("%x{count}"))
}

/// Each step is a loop that sums through shared memory.
fn loops(count: usize) -> String {
    let body = steps(count, |body, i| {
        let last = i - 1;
        line(
            body,
            &format!(
                "%x{i} = scf.for %i{i} = %zero to %n step %one iter_args(%v{i} = %x{last}) -> (tensor<1024xi32>) : i32 {{"
            ),
        );
        add_own_sum(body, &format!("%v{i}"), i);
        line(body, &format!("  scf.yield %y{i} : tensor<1024xi32>"));
        line(body, "}");
    });
    without_layouts(&body, &format!("%x{count}"))
}

/// `%y` is the value plus the sum of all its elements.
fn add_own_sum(body: &mut String, value: &str, number: usize) {
    line(body, &format!("  %s{number} = {}", sum(value, 0)));
    body.pop();
    body.push_str(" : (tensor<1024xi32>) -> i32\n");
    line(
        body,
        &format!("  %t{number} = tt.splat %s{number} : i32 -> tensor<1024xi32>"),
    );
    line(
        body,
        &format!("  %y{number} = arith.xori {value}, %t{number} : tensor<1024xi32>"),
    );
}

/// A sum along an axis, without its type.
fn sum(value: &str, axis: usize) -> String {
    format!(
        "\"tt.reduce\"({value}) <{{axis = {axis} : i32}}> ({{
    ^bb0(%l: i32, %r: i32):
      %t = arith.addi %l, %r : i32
      tt.reduce.return %t : i32
    }})"
    )
}

/// Each step converts to another layout through shared memory and back.
fn conversions(count: usize) -> String {
    let body = steps(count / 2, |body, i| {
        there_and_back(body, &format!("%x{}", i - 1), i)
    });
    with_layouts(&body, &format!("%x{}", count / 2), "")
}

/// All steps are in one loop.
fn conversions_in_a_loop(count: usize) -> String {
    let mut body = String::new();
    line(
        &mut body,
        "%y = scf.for %i = %zero to %n step %one iter_args(%v = %x0) -> (tensor<1024xi32, #a>) : i32 {",
    );
    body += &steps(count / 2, |body, i| {
        let from = match i {
            1 => "%v".to_owned(),
            _ => format!("%x{}", i - 1),
        };
        there_and_back(body, &from, i);
    });
    line(
        &mut body,
        &format!("scf.yield %x{} : tensor<1024xi32, #a>", count / 2),
    );
    line(&mut body, "}");
    with_layouts(&body, "%y", "")
}

/// Each step is conditional.
fn conversions_in_branches(count: usize) -> String {
    let body = steps(count / 2, |body, i| {
        let last = i - 1;
        line(body, &format!("%k{i} = arith.constant {i} : i32"));
        line(body, &format!("%w{i} = arith.cmpi sgt, %n, %k{i} : i32"));
        line(
            body,
            &format!("%x{i} = scf.if %w{i} -> (tensor<1024xi32, #a>) {{"),
        );
        there_and_back(body, &format!("%x{last}"), i + count);
        line(
            body,
            &format!("  scf.yield %x{} : tensor<1024xi32, #a>", i + count),
        );
        line(body, "} else {");
        line(
            body,
            &format!("  scf.yield %x{last} : tensor<1024xi32, #a>"),
        );
        line(body, "}");
    });
    with_layouts(&body, &format!("%x{}", count / 2), "")
}

/// Each step is in its own loop.
fn conversions_in_loops(count: usize) -> String {
    let body = steps(count / 2, |body, i| {
        line(
            body,
            &format!(
                "%x{i} = scf.for %i{i} = %zero to %n step %one iter_args(%v{i} = %x{}) -> (tensor<1024xi32, #a>) : i32 {{",
                i - 1
            ),
        );
        there_and_back(body, &format!("%v{i}"), i + count);
        line(
            body,
            &format!("  scf.yield %x{} : tensor<1024xi32, #a>", i + count),
        );
        line(body, "}");
    });
    with_layouts(&body, &format!("%x{}", count / 2), "")
}

/// `%x` is the value, converted to another layout, changed there, and converted back.
fn there_and_back(body: &mut String, value: &str, number: usize) {
    let i = number;
    line(
        body,
        &format!(
            "%b{i} = ttg.convert_layout {value} : tensor<1024xi32, #a> -> tensor<1024xi32, #b>"
        ),
    );
    line(
        body,
        &format!("%c{i} = arith.muli %b{i}, %b{i} : tensor<1024xi32, #b>"),
    );
    line(
        body,
        &format!("%x{i} = ttg.convert_layout %c{i} : tensor<1024xi32, #b> -> tensor<1024xi32, #a>"),
    );
}

/// Each step makes a buffer, which is read a few steps later.
fn buffers(count: usize) -> String {
    const LATER: usize = 8;
    let body = steps(count, |body, i| {
        line(
            body,
            &format!(
                "%m{i} = ttg.local_alloc %x{} : (tensor<1024xi32, #a>) -> !ttg.memdesc<1024xi32, #s, #smem>",
                i - 1
            ),
        );
        if i > LATER {
            let read = i - LATER;
            line(
                body,
                &format!(
                    "%l{i} = ttg.local_load %m{read} : !ttg.memdesc<1024xi32, #s, #smem> -> tensor<1024xi32, #a>"
                ),
            );
        }
        let other = if i > LATER {
            format!("%l{i}")
        } else {
            "%x0".to_owned()
        };
        line(
            body,
            &format!(
                "%x{i} = arith.addi %x{}, {other} : tensor<1024xi32, #a>",
                i - 1
            ),
        );
    });
    with_layouts(&body, &format!("%x{count}"), "")
}

/// Each step copies from global memory to a buffer, which is read a few steps later.
fn copies(count: usize) -> String {
    const LATER: usize = 4;
    const BUFFER: &str = "!ttg.memdesc<1024xi32, #s, #smem, mutable>";
    let body = steps(count, |body, i| {
        line(body, &format!("%m{i} = ttg.local_alloc : () -> {BUFFER}"));
        line(
            body,
            &format!(
                "%t{i} = ttg.async_copy_global_to_local %r, %m{i} : tensor<1024x!tt.ptr<i32>, #a> -> <1024xi32, #s, #smem, mutable>"
            ),
        );
        line(
            body,
            &format!("%g{i} = ttg.async_commit_group tokens %t{i}"),
        );
        let mut other = "%x0".to_owned();
        if i > LATER {
            let read = i - LATER;
            line(
                body,
                &format!("%w{i} = ttg.async_wait %g{read} {{num = {LATER} : i32}}"),
            );
            other = format!("%l{i}");
            line(
                body,
                &format!(
                    "{other} = ttg.local_load %m{read} token %w{i} : {BUFFER} -> tensor<1024xi32, #a>"
                ),
            );
        }
        line(
            body,
            &format!(
                "%x{i} = arith.xori %x{}, {other} : tensor<1024xi32, #a>",
                i - 1
            ),
        );
    });
    with_layouts(&body, &format!("%x{count}"), "")
}

/// Each step calls its own function, which calls the one before it.
fn calls(count: usize) -> String {
    let mut functions = String::new();
    for i in 1..=count {
        line(
            &mut functions,
            &format!(
                "tt.func private @f{i}(%x: tensor<1024xi32, #a>) -> tensor<1024xi32, #a> attributes {{noinline = true}} {{"
            ),
        );
        let value = if i > 1 {
            line(
                &mut functions,
                &format!(
                    "%z = tt.call @f{}(%x) : (tensor<1024xi32, #a>) -> tensor<1024xi32, #a>",
                    i - 1
                ),
            );
            "%z"
        } else {
            "%x"
        };
        there_and_back(&mut functions, value, 1);
        line(&mut functions, "tt.return %x1 : tensor<1024xi32, #a>");
        line(&mut functions, "}");
    }
    let mut body = String::new();
    line(
        &mut body,
        &format!("%y = tt.call @f{count}(%x0) : (tensor<1024xi32, #a>) -> tensor<1024xi32, #a>"),
    );
    with_layouts(&body, "%y", &functions)
}

fn line(body: &mut String, text: &str) {
    let _ = writeln!(body, "    {text}");
}
