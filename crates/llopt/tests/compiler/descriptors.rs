//! Kernels with descriptors as parameters, launched as their metadata say: on targets with a unit that reads objects from
//! memory, and on others, which take the parts.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine, TensorArgument};

/// Programs copy the blocks of a tensor into another, in the order of the columns, and turn what is outside into numbers.
const KERNEL: &str = "module {
  tt.func public @kernel(%x: !tt.tensordesc<tensor<16x32xf32>>, %o: !tt.tensordesc<tensor<16x32xf32>>, %n: i32) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 32 : i32
    %height = arith.constant 16 : i32
    %mark = arith.constant dense<-1.0> : tensor<16x32xf32>
    %x0 = tt.get_program_id x : i32
    %row = arith.muli %x0, %height : i32
    scf.for %i = %zero to %n step %step : i32 {
      %v = tt.descriptor_load %x[%row, %i] : !tt.tensordesc<tensor<16x32xf32>> -> tensor<16x32xf32>
      %is = arith.cmpf uno, %v, %v : tensor<16x32xf32>
      %w = arith.select %is, %mark, %v : tensor<16x32xi1>, tensor<16x32xf32>
      tt.descriptor_store %o[%row, %i], %w : !tt.tensordesc<tensor<16x32xf32>>, tensor<16x32xf32>
    }
    tt.return
  }
}";

fn tensor(rows: u32, columns: u32, fill_nan: bool) -> TensorArgument {
    let numbers = (0..rows * columns).flat_map(|at| (at as f32).to_le_bytes());
    TensorArgument {
        contents: numbers.collect(),
        shape: vec![rows, columns],
        strides: vec![columns.into(), 1],
        element_bytes: 4,
        element_type: 7,
        swizzle_mode: 3,
        box_shape: vec![16, 32],
        fill_nan,
    }
}

fn arguments(fill_nan: bool) -> Vec<Argument> {
    vec![
        Argument::Descriptor(tensor(20, 40, fill_nan)),
        Argument::Descriptor(tensor(28, 60, false)),
        Argument::Int(64),
    ]
}

fn output(launch: &Launch) -> Vec<u8> {
    match &launch.arguments[1] {
        Argument::Buffer(bytes) => bytes.clone(),
        _ => Vec::new(),
    }
}

#[test]
fn launches_pass_objects_or_parts() -> Result<()> {
    let source = Source::new("kernel.ttir", KERNEL);
    for fill_nan in [false, true] {
        let mut expected = Launch::new([2, 1, 1], 1, arguments(fill_nan));
        run_reference(&source, &mut expected, Limits::default())?;
        for target in ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100"] {
            let target = Target::parse(target)?;
            let compiled = Compiler::new(Options::new(target))
                .compile(&source, ArtifactKind::Llvm)
                .with_context(|| format!("{target}"))?;
            let encoded = compiled.metadata.tensordesc_meta.len();
            let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
            // Two objects and the numbers; or the parts of both. And two pointers to scratch memory.
            let (objects, parameters) = match target.has(llopt_target::Feature::BulkTensorCopy) {
                true => (2, 5),
                false => (0, 15),
            };
            ensure!(
                (encoded, machine.parameters().len()) == (objects, parameters),
                "{target}"
            );
            let mut launch = compiled.metadata.launch([2, 1, 1], arguments(fill_nan));
            let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
            ensure!(
                report.findings.is_empty(),
                "{target}: {:?}",
                report.findings
            );
            ensure!(
                output(&launch) == output(&expected),
                "{target}, NaN: {fill_nan}"
            );
        }
    }
    Ok(())
}
