//! Kernels made with the builder: their results, their text, the messages about mistakes, and independence of
//! threads.

use crate::kernels;
use std::thread;

use llopt::build::{Argument, Axis, Context, Element, KernelBuilder, Value};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Argument as Passed, Launch, Machine};
use llopt::{ArtifactKind, Compiler, ErrorClass, Options, Target, run_reference};

const TARGETS: [&str; 2] = ["cuda:90", "hip:gfx942"];

fn target(name: &str) -> Target {
    Target::parse(name).unwrap()
}

#[test]
fn kernels_compute_what_plain_rust_computes() {
    for case in kernels::all() {
        for target in TARGETS.map(target) {
            let source = (case.build)(target).unwrap();
            let compiler = Compiler::new(Options::new(target));
            let llvm = compiler.compile(&source, ArtifactKind::Llvm).unwrap();
            let machine = Machine::from_ir(llvm.artifact.bytes(), target, None).unwrap();
            let grid = [case.grid, 1, 1];
            let mut launch = llvm.metadata.launch(grid, case.arguments.clone());
            let report = machine.run(&mut launch, &sim::Options::default()).unwrap();
            assert!(
                report.findings.is_empty(),
                "{}: {:?}",
                case.name,
                report.findings
            );
            let name = format!("{} on {target}", case.name);
            assert_eq!(
                launch.arguments[0],
                Passed::Buffer(case.expected.clone()),
                "{name}"
            );
        }
    }
}

#[test]
fn the_reference_interpreter_agrees() {
    for case in kernels::all() {
        let source = (case.build)(target("cuda:90")).unwrap();
        let mut launch = Launch::new([case.grid, 1, 1], 32, case.arguments.clone());
        run_reference(&source, &mut launch, Limits::default()).unwrap();
        assert_eq!(
            launch.arguments[0],
            Passed::Buffer(case.expected),
            "{}",
            case.name
        );
    }
}

/// The compiled code of all kernels, in one thread.
fn compiled(index: usize) -> (Vec<u8>, String) {
    let target = target(TARGETS[index % 2]);
    let source = (kernels::all()[index / 2].build)(target).unwrap();
    let compiler = Compiler::new(Options::new(target));
    let kind = ArtifactKind::assembly_of(target);
    let compilation = compiler.compile(&source, kind).unwrap();
    let metadata = serde_json::to_string(&compilation.metadata).unwrap();
    (compilation.artifact.into_bytes(), metadata)
}

#[test]
fn four_threads_make_what_one_makes_byte_for_byte() {
    let count = 2 * kernels::all().len();
    let serial: Vec<_> = (0..count).map(compiled).collect();
    let parallel: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    let own = (0..count).filter(|index| index % 4 == thread);
                    own.map(|index| (index, compiled(index)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let mut all: Vec<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, outcome)| outcome).collect()
    });
    assert_eq!(parallel, serial);
}

#[test]
fn locations_are_the_lines_of_the_program() {
    let context = Context::new().unwrap();
    let k = KernelBuilder::new(&context, "located");
    let x = k.argument("x", Argument::pointer(Element::F32));
    let line = line!() + 1;
    x.store(1.0);
    let source = k.finish().unwrap();
    let text = source.text().unwrap();
    assert!(text.contains(&format!("{}\":{line}:7", file!())), "{text}");
    assert!(text.contains("\"x\"("), "{text}");
    assert!(
        text.contains("tt.func public @located(%arg0: !tt.ptr<f32>"),
        "{text}"
    );
}

/// The messages about a mistaken kernel, each with its distance in lines from `line`.
fn mistakes(build: impl Fn(&KernelBuilder<'_>)) -> Vec<String> {
    let context = Context::new().unwrap();
    let k = KernelBuilder::new(&context, "mistaken");
    build(&k);
    let error = k.finish().unwrap_err();
    assert_eq!(error.class(), ErrorClass::InvalidInput);
    for diagnostic in error.diagnostics() {
        assert_eq!(diagnostic.file(), Some(file!()), "{diagnostic}");
    }
    let messages = error.diagnostics().into_iter().map(|d| d.message);
    messages.collect()
}

#[test]
fn mistakes_are_explained_and_do_not_spread() {
    assert_eq!(
        mistakes(|k| {
            let wrong = k.range(0..64) + k.range(0..32);
            (wrong * 2).sum(0).to(Element::F32).sqrt();
        }),
        ["the shapes of tensor<64xi32> and tensor<32xi32> do not meet"]
    );
    assert_eq!(
        mistakes(|k| {
            let _ = k.range(0..64) + k.full(&[64], Element::F32, 1.0);
        }),
        ["'+' is not defined on tensor<64xi32> and tensor<64xf32>"]
    );
    assert_eq!(
        mistakes(|k| {
            let _ = k.range(0..64) * 1.5;
            let _ = k.scalar(Element::I8, 300);
        }),
        ["1.5 is no i32", "300 is no i8"]
    );
    assert_eq!(
        mistakes(|k| {
            k.range(0..64).load();
            k.full(&[48], Element::F32, 0);
        }),
        [
            "tensor<64xi32> is no pointer",
            "a tensor has one extent or more, each a power of two, and at most 2^20 elements, which \
             [48] does not say"
        ]
    );
    assert_eq!(
        mistakes(|k| {
            let x = k.argument("x", Argument::pointer(Element::F32));
            x.store(k.scalar(Element::I32, 1));
        }),
        ["i32 cannot be written through !tt.ptr<f32>"]
    );
}

#[test]
fn mistakes_in_bodies_are_explained() {
    assert_eq!(
        mistakes(|k| {
            k.range(0..64).reduce(3, |a, b| a + b);
            k.range(0..64).reduce(0, |a, b| a.lt(b));
        }),
        [
            "'tt.reduce' op axis 3 is out of range for an operand of rank 1",
            "the combination gives (i1) and must give (i32)"
        ]
    );
    assert_eq!(
        mistakes(|k| {
            let zero = k.scalar(Element::I32, 0);
            k.for_range(0, 8, 1, [zero], |i, [_]| [i.to(Element::F32)]);
            k.for_range(0, 8.0, 1, [], |_, []| []);
            k.when(k.range(0..8).lt(4), || {});
        }),
        [
            "the body gives (f32) and must give (i32)",
            "8 is no i32",
            "a condition of tensor<8xi1>: it must be one i1; reduce it, or choose element by element \
             with where_else"
        ]
    );
    // MLIR's verifier checks that a value is not used outside of the body that defines it.
    let escaped = mistakes(|k| {
        let out = k.argument("out", Argument::pointer(Element::I32));
        let inside = std::cell::Cell::new(None);
        k.for_range(0, 8, 1, [], |i, []| {
            inside.set(Some(i + 1));
            []
        });
        out.store(inside.get().unwrap());
    });
    assert_eq!(escaped, ["operand #1 does not dominate this use"]);
}

#[test]
fn mistakes_in_calls_are_explained() {
    let said = mistakes(|k| {
        let (narrow, wide) = (k.range(0..64), k.range(0..128));
        let double = k.function("double", [narrow], |[x]| [x + x]);
        let [_] = double.call([wide]);
        let broken = k.function("broken", [narrow], |[x]| [x + wide]);
        let [_] = broken.call([narrow]);
    });
    assert_eq!(
        said,
        [
            "a call of 'double' gives (tensor<128xi32>) and must give (tensor<64xi32>)",
            "the shapes of tensor<64xi32> and tensor<128xi32> do not meet",
        ]
    );
}

#[test]
fn values_of_another_kernel_are_refused() {
    let context = Context::new().unwrap();
    let other = KernelBuilder::new(&context, "other");
    let foreign: Value<'_> = other.program_id(Axis::X);
    let k = KernelBuilder::new(&context, "mistaken");
    let _ = k.program_id(Axis::X) + foreign;
    let error = k.finish().unwrap_err();
    assert_eq!(
        error.diagnostics()[0].message,
        "the value belongs to another kernel"
    );
    other.finish().unwrap();
}
