//! The checker of layouts accepts what the engine chooses and rejects every changed layout: each tensor of a program
//! in turn gets two bits of its lanes exchanged.

use std::collections::HashSet;

use llopt_dialects::layout::encoding::{Encoding, Linear};
use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, Walk};
use llopt_target::Target;
use llopt_transforms::layouts::{self, Grid};
use llopt_transforms::ownership::verify;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::{Module, Value, ValueLike};

const PROGRAM: &str = r#"
module {
  tt.func private @twice(%x: tensor<64xi32>) -> tensor<64xi32> attributes {noinline = true} {
    %y = arith.addi %x, %x : tensor<64xi32>
    tt.return %y : tensor<64xi32>
  }
  tt.func public @kernel(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %width = arith.constant dense<64> : tensor<32x1xi32>
    %start = arith.muli %row, %width : tensor<32x1xi32>
    %rows = tt.broadcast %start : tensor<32x1xi32> -> tensor<32x64xi32>
    %columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<32x64xi32>
    %offset = arith.addi %rows, %columns : tensor<32x64xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>>
    %p = tt.addptr %f, %offset : tensor<32x64x!tt.ptr<i32>>, tensor<32x64xi32>
    %x = tt.load %p : tensor<32x64x!tt.ptr<i32>>
    %turned = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x64xi32> -> tensor<64x32xi32>
    %flat = tt.reshape %turned : tensor<64x32xi32> -> tensor<1024x2xi32>
    %a, %b = tt.split %flat : tensor<1024x2xi32> -> tensor<1024xi32>
    %sum = arith.addi %a, %b : tensor<1024xi32>
    %joined = tt.join %sum, %a : tensor<1024xi32> -> tensor<1024x2xi32>
    %back = tt.reshape %joined : tensor<1024x2xi32> -> tensor<32x64xi32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %five = arith.constant 5 : i32
    %none = arith.constant dense<0> : tensor<64xi32>
    %all = scf.for %i = %zero to %five step %one iter_args(%carried = %none) -> (tensor<64xi32>) : i32 {
      %s = tt.splat %i : i32 -> tensor<32x64xi32>
      %m = arith.muli %back, %s : tensor<32x64xi32>
      %l = "tt.reduce"(%m) <{axis = 0 : i32}> ({
      ^bb0(%u: i32, %v: i32):
        %w = arith.maxsi %u, %v : i32
        tt.reduce.return %w : i32
      }) : (tensor<32x64xi32>) -> tensor<64xi32>
      %n = arith.addi %carried, %l : tensor<64xi32>
      scf.yield %n : tensor<64xi32>
    }
    %called = tt.call @twice(%all) : (tensor<64xi32>) -> tensor<64xi32>
    %e = tt.expand_dims %called {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %w = tt.broadcast %e : tensor<1x64xi32> -> tensor<32x64xi32>
    %y = "tt.scan"(%w) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%u: i32, %v: i32):
      %z = arith.addi %u, %v : i32
      tt.scan.return %z : i32
    }) : (tensor<32x64xi32>) -> tensor<32x64xi32>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>>
    %q = tt.addptr %t, %offset : tensor<32x64x!tt.ptr<i32>>, tensor<32x64xi32>
    tt.store %q, %y : tensor<32x64x!tt.ptr<i32>>
    tt.return
  }
}
"#;

/// A layout in which two bits of the lanes have changed places.
fn exchanged(layout: &LinearLayout, shape: &[i64]) -> LinearLayout {
    let axes: Vec<(Dim, u32)> = (0..)
        .map(Dim::tensor)
        .zip(shape.iter().map(|&e| e as u32))
        .collect();
    let bases: Vec<(Dim, Vec<Vec<u32>>)> = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK]
        .into_iter()
        .map(|dim| {
            let bit = |bit| {
                axes.iter()
                    .map(|(axis, _)| layout.basis_entry(dim, bit, *axis))
                    .collect()
            };
            let mut bits: Vec<Vec<u32>> = (0..layout.in_dim_size_log2(dim)).map(bit).collect();
            if dim == Dim::LANE {
                bits.swap(0, 4);
            }
            (dim, bits)
        })
        .collect();
    let bases: Vec<(Dim, &[Vec<u32>])> =
        bases.iter().map(|(dim, bits)| (*dim, &bits[..])).collect();
    LinearLayout::from_bases(&bases, &axes).unwrap()
}

/// The tensors of a module whose layouts an op determines.
fn tensors<'c, 'a>(module: &'a Module<'c>) -> Vec<Value<'c, 'a>> {
    let mut values = Vec::new();
    let mut free = HashSet::new();
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            values.extend(operation.result_values());
            for region in operation.region_refs() {
                values.extend(region.blocks().flat_map(|block| block.argument_values()));
            }
            // Both sides of a conversion may have any layout, so other ops have to determine it.
            if operation.is_named("ttg.convert_layout") {
                free.extend(
                    operation
                        .result_values()
                        .map(|value| value.to_raw().ptr as usize),
                );
            }
        });
    values.retain(|value| {
        RankedTensor::of(value.r#type()).is_some() && !free.contains(&(value.to_raw().ptr as usize))
    });
    values
}

#[test]
fn every_layout_that_is_another_is_found() {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    for name in ["cuda:90", "hip:gfx942"] {
        let target = Target::parse(name).unwrap();
        let module = llopt_mlir::parse_module(&context, PROGRAM.as_bytes(), "test.mlir").unwrap();
        let grid = Grid {
            num_warps: 4,
            threads_per_warp: target.warp_size(),
            num_ctas: 1,
        };
        layouts::assign(module.as_operation(), grid, target).unwrap();
        assert!(
            verify(module.as_operation(), false).is_ok(),
            "{}",
            module.as_operation()
        );
        let mut changed = 0;
        for value in tensors(&module) {
            let before = value.r#type();
            let tensor = RankedTensor::of(before).unwrap();
            let shape = tensor.shape();
            let extents: Vec<u64> = shape.iter().map(|&extent| extent as u64).collect();
            let encoding = Encoding::from_attribute(tensor.encoding().unwrap()).unwrap();
            let layout = encoding.linear_layout(&extents).unwrap();
            let other = exchanged(&layout, &shape);
            if other == layout {
                continue;
            }
            let other = Encoding::Linear(Linear::new(other).unwrap()).to_attribute(&context);
            value.set_type(tensor.with_encoding(Some(other)));
            assert!(
                verify(module.as_operation(), false).is_err(),
                "{name}: {value} is not found in\n{}",
                module.as_operation()
            );
            value.set_type(before);
            changed += 1;
        }
        assert!(changed > 20, "only {changed} values had a layout to change");
        assert!(verify(module.as_operation(), false).is_ok());
    }
}
