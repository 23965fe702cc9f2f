//! Several iterations as the rows of a tile: loops with any bounds and distances of rows, run before and after that in the
//! reference interpreter.

use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{Source, Target, run_reference};
use llopt_transforms::row_iterations;
use melior::ir::operation::OperationLike;

use super::loops::context;

const WARPS: u32 = 4;
const STAGES: u32 = 2;
/// Elements of a row.
const ROW: usize = 256;
/// The most rows of a test.
const MOST: usize = 14;

/// Each element less the greatest of its row, and the sum of each row.
const ROWS: &str = r#"module {
  tt.func public @rows(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %sums: !tt.ptr<i32>, %lower: i32, %upper: i32, %step: i32, %stride: i32, %columns: i32) {
    %least = arith.constant dense<-2147483648> : tensor<256xi32>
    %length = arith.constant 256 : i32
    %o = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %end = tt.splat %columns : i32 -> tensor<256xi32>
    %mask = arith.cmpi slt, %o, %end : tensor<256xi32>
    scf.for %row = %lower to %upper step %step : i32 {
      %at = arith.muli %row, %length : i32
      %p = tt.addptr %x, %at : !tt.ptr<i32>, i32
      %ps = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
      %from = tt.addptr %ps, %o : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
      %v = tt.load %from, %mask, %least : tensor<256x!tt.ptr<i32>>
      %most = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %m = arith.maxsi %a, %b : i32
        tt.reduce.return %m : i32
      }) : (tensor<256xi32>) -> i32
      %mosts = tt.splat %most : i32 -> tensor<256xi32>
      %y = arith.subi %v, %mosts : tensor<256xi32>
      %sum = "tt.reduce"(%y) <{axis = 0 : i32}> ({
      ^bb0(%a: i32, %b: i32):
        %m = arith.addi %a, %b : i32
        tt.reduce.return %m : i32
      }) : (tensor<256xi32>) -> i32
      %place = arith.muli %row, %stride : i32
      %q = tt.addptr %out, %place : !tt.ptr<i32>, i32
      %qs = tt.splat %q : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
      %to = tt.addptr %qs, %o : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
      tt.store %to, %y, %mask : tensor<256x!tt.ptr<i32>>
      %of_row = tt.addptr %sums, %row : !tt.ptr<i32>, i32
      tt.store %of_row, %sum : !tt.ptr<i32>
    }
    tt.return
  }
}
"#;

/// What a program stores: rows and sums.
fn run(text: &str, [lower, upper, step, stride, columns]: [i64; 5]) -> [Vec<u8>; 2] {
    let words = (0..(MOST * ROW) as u32).map(|word| word.wrapping_mul(2_654_435_761) >> 8);
    let arguments = vec![
        Argument::Buffer(words.flat_map(u32::to_le_bytes).collect()),
        Argument::Buffer(vec![0; 4 * (MOST * 300 + ROW)]),
        Argument::Buffer(vec![0; 4 * MOST]),
        Argument::Int(lower),
        Argument::Int(upper),
        Argument::Int(step),
        Argument::Int(stride),
        Argument::Int(columns),
    ];
    let mut launch = Launch::new([1, 1, 1], 32, arguments);
    let source = Source::new("program", text);
    run_reference(&source, &mut launch, Limits::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    [1, 2].map(|index| match &launch.arguments[index] {
        Argument::Buffer(bytes) => bytes.clone(),
        other => panic!("a buffer has become {other:?}"),
    })
}

#[test]
fn loops_do_the_same_for_all_bounds_and_distances() {
    for name in ["cuda:90", "hip:gfx942"] {
        let context = context();
        let module = llopt_mlir::parse_module(&context, ROWS.as_bytes(), "program")
            .unwrap_or_else(|errors| panic!("{}", llopt_mlir::diagnostic::render(&errors)));
        let target = Target::parse(name).expect("it is known");
        row_iterations::rewrite(module.as_operation(), (WARPS, STAGES), target);
        assert!(module.as_operation().verify(), "{}", module.as_operation());
        let grouped = module.as_operation().to_string();
        assert!(grouped.contains("llopt.grouped"), "{name}");
        for upper in [0, 4, 5, 9, 13] {
            for (lower, step) in [(0, 1), (1, 2)] {
                // Rows with space between them, beside each other, upon each other, and all at one place.
                for stride in [300, 256, 100, 0] {
                    for columns in [256, 77] {
                        let arguments = [lower, upper, step, stride, columns];
                        let [before, after] = [ROWS, &grouped].map(|text| run(text, arguments));
                        assert!(before == after, "{name}: {arguments:?}\n{grouped}");
                    }
                }
            }
        }
    }
}
