//! The reference interpreter on small modules, compared with plain models.

use llopt_sim::reference::Bounds;
use llopt_sim::{Argument, Error, Launch, reference};
use melior::Context;
use melior::dialect::DialectRegistry;

use crate::harness::{noise, numbers, words};

/// Runs a module; returns the buffers.
fn interpret(text: &str, grid: u32, arguments: Vec<Argument>) -> Result<Vec<Argument>, Error> {
    bounded(text, grid, arguments).map(|(arguments, _)| arguments)
}

/// Runs a module; returns the buffers, and their bounds.
fn bounded(
    text: &str,
    grid: u32,
    arguments: Vec<Argument>,
) -> Result<(Vec<Argument>, Bounds), Error> {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "kernel.ttir").unwrap();
    let mut launch = Launch::new([grid, 1, 1], 1, arguments);
    reference::run(&module, &mut launch).map(|bounds| (launch.arguments, bounds))
}

#[test]
fn masked_sums_of_a_grid() {
    let text = "tt.func public @add(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
      %pid = tt.get_program_id x : i32
      %c8 = arith.constant 8 : i32
      %base = arith.muli %pid, %c8 : i32
      %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
      %b = tt.splat %base : i32 -> tensor<8xi32>
      %o = arith.addi %b, %r : tensor<8xi32>
      %ns = tt.splat %n : i32 -> tensor<8xi32>
      %m = arith.cmpi slt, %o, %ns : tensor<8xi32>
      %xs = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %px = tt.addptr %xs, %o : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      %ys = tt.splat %y : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
      %py = tt.addptr %ys, %o : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
      %c = arith.constant dense<5> : tensor<8xi32>
      %v = tt.load %px, %m, %c : tensor<8x!tt.ptr<i32>>
      %w = arith.muli %v, %v : tensor<8xi32>
      tt.store %py, %w, %m : tensor<8x!tt.ptr<i32>>
      tt.return
    }";
    let input = noise(24, 1);
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 96]),
        Argument::Int(19),
    ];
    let output = numbers(&interpret(text, 3, arguments).unwrap()[1]);
    for (i, (x, y)) in input.iter().zip(output).enumerate() {
        assert_eq!(y, if i < 19 { x.wrapping_mul(*x) } else { 0 });
    }
}

#[test]
fn reductions_scans_and_loops() {
    // The sum of each row of a 4x8 matrix, with a constant from outside the region, three times; reversed prefix
    // sums.
    let text = "tt.func public @rows(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c3 = arith.constant 3 : i32
      %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
      %xs = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
      %px = tt.addptr %xs, %r : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
      %v = tt.load %px : tensor<32x!tt.ptr<i32>>
      %m = tt.reshape %v : tensor<32xi32> -> tensor<4x8xi32>
      %s = \"tt.reduce\"(%m) <{axis = 1 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %d = arith.addi %a, %b : i32
        %e = arith.addi %d, %c1 : i32
        tt.reduce.return %e : i32
      }) : (tensor<4x8xi32>) -> tensor<4xi32>
      %z = arith.constant dense<0> : tensor<4xi32>
      %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %z) -> (tensor<4xi32>) : i32 {
        %n = arith.addi %acc, %s : tensor<4xi32>
        scf.yield %n : tensor<4xi32>
      }
      %p = \"tt.scan\"(%t) <{axis = 0 : i32, reverse = true}> ({
      ^bb0(%a: i32, %b: i32):
        %d = arith.addi %a, %b : i32
        tt.scan.return %d : i32
      }) : (tensor<4xi32>) -> tensor<4xi32>
      %q = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
      %ys = tt.splat %y : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
      %py = tt.addptr %ys, %q : tensor<4x!tt.ptr<i32>>, tensor<4xi32>
      tt.store %py, %p : tensor<4x!tt.ptr<i32>>
      tt.return
    }";
    let input = noise(32, 2);
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 16]),
    ];
    let output = numbers(&interpret(text, 1, arguments).unwrap()[1]);
    let rows: Vec<u32> = input
        .chunks(8)
        .map(|row| {
            row.iter()
                .fold(7u32, |a, &b| a.wrapping_add(b))
                .wrapping_mul(3)
        })
        .collect();
    for i in 0..4 {
        assert_eq!(
            output[i],
            rows[i..].iter().fold(0u32, |a, &b| a.wrapping_add(b))
        );
    }
}

#[test]
fn products_and_transpositions() {
    let text = "tt.func public @square(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %xs = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
      %px = tt.addptr %xs, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      %v = tt.load %px : tensor<16x!tt.ptr<f32>>
      %a = tt.reshape %v : tensor<16xf32> -> tensor<4x4xf32>
      %b = tt.trans %a {order = array<i32: 1, 0>} : tensor<4x4xf32> -> tensor<4x4xf32>
      %z = arith.constant dense<1.0> : tensor<4x4xf32>
      %c = tt.dot %a, %b, %z : tensor<4x4xf32> * tensor<4x4xf32> -> tensor<4x4xf32>
      %w = tt.reshape %c : tensor<4x4xf32> -> tensor<16xf32>
      %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
      %py = tt.addptr %ys, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      tt.store %py, %w : tensor<16x!tt.ptr<f32>>
      tt.return
    }";
    let a: Vec<f32> = (0..16).map(|i| (i * i % 11) as f32 - 5.0).collect();
    let bits: Vec<u32> = a.iter().map(|v| v.to_bits()).collect();
    let arguments = vec![
        Argument::Buffer(words(&bits)),
        Argument::Buffer(vec![0; 64]),
    ];
    let output = numbers(&interpret(text, 1, arguments).unwrap()[1]);
    for i in 0..4 {
        for j in 0..4 {
            let expected: f32 = (0..4).map(|k| a[4 * i + k] * a[4 * j + k]).sum::<f32>() + 1.0;
            assert_eq!(f32::from_bits(output[4 * i + j]), expected);
        }
    }
}

#[test]
fn failures_are_named() {
    let out_of_bounds = "tt.func public @f(%x: !tt.ptr<i32>) {
      %c9 = arith.constant 9 : i32
      %p = tt.addptr %x, %c9 : !tt.ptr<i32>, i32
      tt.store %p, %c9 : !tt.ptr<i32>
      tt.return
    }";
    let error = interpret(out_of_bounds, 1, vec![Argument::Buffer(vec![0; 36])]).unwrap_err();
    assert!(
        error.to_string().contains("tt.store: an access of 4 bytes"),
        "{error}"
    );
    let strange = "tt.func public @f(%x: !tt.ptr<i32>) {
      %a = arith.constant 1 : i32
      %b = math.ctlz %a : i32
      tt.store %x, %b : !tt.ptr<i32>
      tt.return
    }";
    let error = interpret(strange, 1, vec![Argument::Buffer(vec![0; 4])]).unwrap_err();
    assert!(error.to_string().contains("math.ctlz"), "{error}");
}

/// A kernel on 32 singles: `body` makes `%y` from the tensor `%v`, which is stored.
fn on_singles(body: &str) -> String {
    format!(
        "tt.func public @k(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {{
          %r = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32>
          %xs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
          %px = tt.addptr %xs, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
          %os = tt.splat %o : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
          %po = tt.addptr %os, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
          %v = tt.load %px : tensor<32x!tt.ptr<f32>>
          {body}
          tt.store %po, %y : tensor<32x!tt.ptr<f32>>
          tt.return
        }}"
    )
}

/// A sum may round in another order, and so may values that depend on it; everything else is exact.
#[test]
fn only_what_is_open_has_a_bound() {
    let sum = "%s = \"tt.reduce\"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %d = arith.addf %a, %b : f32
        tt.reduce.return %d : f32
      }) : (tensor<32xf32>) -> f32
      %t = tt.splat %s : f32 -> tensor<32xf32>
      %c = arith.constant dense<1.0> : tensor<32xf32>
      %z = arith.constant dense<0.0> : tensor<32xf32>\n";
    let terms: Vec<f32> = (0..32).map(|i| (i as f32 - 10.0) / 3.0).collect();
    let size: f64 = terms.iter().map(|x| f64::from(x.abs())).sum();
    let unit = 2f64.powi(-23);
    let reordered = unit * 32f64.min(6.0 * 32f64.sqrt()) * size;
    for (body, expected) in [
        // Exact, or with the same rounding.
        ("%y = arith.mulf %v, %v : tensor<32xf32>".to_owned(), None),
        (
            format!("{sum} %y = arith.addf %t, %z : tensor<32xf32>"),
            Some(reordered),
        ),
        (
            format!("{sum} %y = arith.mulf %t, %c : tensor<32xf32>"),
            Some(reordered),
        ),
        // Far from zero the sign is certain; near the sum itself a comparison is not.
        (
            format!(
                "{sum} %d = arith.cmpf ogt, %t, %z : tensor<32xf32>
              %y = arith.select %d, %c, %z : tensor<32xi1>, tensor<32xf32>"
            ),
            None,
        ),
        (
            format!(
                "{sum} %e = arith.addf %t, %z : tensor<32xf32>
              %d = arith.cmpf ogt, %t, %e : tensor<32xf32>
              %y = arith.select %d, %c, %z : tensor<32xi1>, tensor<32xf32>"
            ),
            Some(1.0),
        ),
        // The largest term is the same in every order.
        (
            "%s = \"tt.reduce\"(%v) <{axis = 0 : i32}> ({
              ^bb0(%a: f32, %b: f32):
                %d = arith.maxnumf %a, %b : f32
                tt.reduce.return %d : f32
              }) : (tensor<32xf32>) -> f32
              %y = tt.splat %s : f32 -> tensor<32xf32>"
                .to_owned(),
            None,
        ),
    ] {
        let bits: Vec<u32> = terms.iter().map(|x| x.to_bits()).collect();
        let arguments = vec![
            Argument::Buffer(words(&bits)),
            Argument::Buffer(vec![0; 128]),
        ];
        let (_, bounds) = bounded(&on_singles(&body), 1, arguments).unwrap();
        let found = &bounds.buffers[&1];
        match expected {
            None => assert!(found.is_empty(), "{body}: {found:?}"),
            Some(bound) => {
                assert_eq!(found.len(), 32, "{body}");
                // Each step of the sum adds its own rounding.
                let found = found[&0];
                assert!(
                    found >= bound && found <= 2.0 * bound,
                    "{body}: {found} {bound}"
                );
            }
        }
    }
}

/// The result of an atomic is certain only where no other atomic uses its address.
#[test]
fn atomics_that_meet_answer_in_any_order() {
    let text = |divisor: u32| {
        on_singles(&format!(
            "%n = arith.constant dense<{divisor}> : tensor<32xi32>
             %k = arith.divui %r, %n : tensor<32xi32>
             %pk = tt.addptr %xs, %k : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
             %m = arith.constant dense<true> : tensor<32xi1>
             %y = tt.atomic_rmw fadd, relaxed, gpu, %pk, %v, %m : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>, tensor<32xi1>) -> tensor<32xf32>"
        ))
    };
    let bits: Vec<u32> = (0..32).map(|i| (i as f32 / 7.0).to_bits()).collect();
    for (divisor, meet) in [(1, false), (4, true)] {
        let arguments = vec![
            Argument::Buffer(words(&bits)),
            Argument::Buffer(vec![0; 128]),
        ];
        let (_, bounds) = bounded(&text(divisor), 1, arguments).unwrap();
        assert_eq!(bounds.buffers[&0].len(), if meet { 8 } else { 0 });
        assert!(bounds.buffers[&0].values().all(|b| *b > 0.0 && *b < 1e-3));
        assert_eq!(bounds.buffers[&1].len(), if meet { 32 } else { 0 });
        assert!(bounds.buffers[&1].values().all(|b| b.is_infinite()));
    }
}

/// Assembly means what the machine defines, for either vendor; an impure text may have any result.
#[test]
fn inline_assembly_runs_on_the_machine() {
    let kernel = |target: &str, text: &str, constraints: &str, pure: bool| {
        let body = format!(
            "%b = tt.bitcast %v : tensor<32xf32> -> tensor<32xi32>
             %a = tt.elementwise_inline_asm \"{text}\" {{constraints = \"{constraints}\", packed_element = 1 : i32, pure = {pure}}} %b : tensor<32xi32> -> tensor<32xi32>
             %y = tt.bitcast %a : tensor<32xi32> -> tensor<32xf32>"
        );
        let function = on_singles(&body);
        format!("module attributes {{ttg.target = \"{target}\"}} {{ {function} }}")
    };
    let input = noise(32, 1);
    for (target, text, constraints) in [
        ("cuda:90", "shl.b32 $0, $1, 3;", "=r,r"),
        ("hip:gfx942", "v_lshlrev_b32 $0, 3, $1", "=v,v"),
    ] {
        for pure in [true, false] {
            let arguments = vec![
                Argument::Buffer(words(&input)),
                Argument::Buffer(vec![0; 128]),
            ];
            let module = kernel(target, text, constraints, pure);
            let (buffers, bounds) = bounded(&module, 1, arguments).unwrap();
            let expected: Vec<u32> = input.iter().map(|x| x << 3).collect();
            assert_eq!(numbers(&buffers[1]), expected, "{target}");
            assert_eq!(bounds.buffers[&1].is_empty(), pure, "{target}");
        }
    }
    // A construct that the machine does not know is named.
    let arguments = vec![
        Argument::Buffer(words(&input)),
        Argument::Buffer(vec![0; 128]),
    ];
    let module = kernel("cuda:90", "nonsense", "=r,r", true);
    let error = bounded(&module, 1, arguments).unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}
