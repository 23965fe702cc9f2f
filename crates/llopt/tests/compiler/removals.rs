//! Every wait, fence and barrier of pipelined loops is missed when it is absent: the machine runs them without each one
//! in turn, and with each counted wait weakened by one.
//!
//! `tools/oracle/removals.py` does the same with the kernels of Triton's tutorials.

use llopt::sim::{Argument, Change, Launch, Machine, Removal};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, TensorCopies};

use crate::split_k::{self, MOST, PROGRAMS, RESTS};
use crate::tensor_copies::{self, Edge, Form, Sizes};

fn options(target: &str) -> Options {
    let mut options = Options::new(Target::parse(target).unwrap());
    options.mark_buffers = true;
    options
}

/// The operations of a kernel, each with what shows its absence.
fn removals(
    source: &Source,
    options: Options,
    [x, y]: [u32; 2],
    mut arguments: Vec<Argument>,
) -> Vec<Removal> {
    let target = options.target;
    let compiled = Compiler::new(options).compile(source, ArtifactKind::Llvm);
    let compiled = compiled.unwrap();
    let metadata = &compiled.metadata;
    let mut machine = Machine::from_ir(compiled.artifact.bytes(), target, None).unwrap();
    let blocks = x * metadata.num_ctas;
    arguments.push(match metadata.global_scratch_size * blocks * y {
        0 => Argument::Null,
        bytes => Argument::Uninitialized(bytes as usize),
    });
    arguments.push(Argument::Null);
    let threads = metadata.num_warps * target.warp_size();
    let mut launch = Launch::new([blocks, y, 1], threads, arguments);
    launch.dynamic_shared = metadata.shared.into();
    let (report, removals) = machine
        .removals(&launch, &llopt::sim::Options::default())
        .unwrap();
    assert_eq!(report.findings, []);
    removals
}

/// All are found but these, each with the reason why it is emitted all the same.
fn all_found_but(about: &str, removals: &[Removal], redundant: &[(&str, Change, &str)]) {
    assert!(!removals.is_empty(), "{about} synchronises nothing");
    for removal in removals.iter().filter(|removal| !removal.is_found()) {
        let known = redundant.iter().any(|(operation, change, _)| {
            (*operation, *change) == (removal.operation.as_str(), removal.change)
        });
        assert!(known, "{about}: {removal}");
    }
}

/// The last wait of a loop is for all copies. The groups of its last iterations are empty.
const EMPTY_GROUPS: (&str, Change, &str) = (
    "a wait for copies",
    Change::Weakened,
    "after the last iteration the youngest group is empty",
);
/// The fence of a barrier that orders reads before copies.
const FENCE: (&str, Change, &str) = (
    "a fence",
    Change::Removed,
    "each barrier has fences, and between reads and copies there is no write of threads to release",
);
/// The meeting of the lanes before an instruction of the whole warp.
const MEETING: (&str, Change, &str) = (
    "a barrier of the warp",
    Change::Removed,
    "such an instruction makes the lanes meet, which PTX's model does not promise",
);

#[test]
fn loops_through_rings_need_their_waits_and_barriers() {
    for (target, stages) in [
        ("cuda:80", 4),
        ("cuda:90", 3),
        ("hip:gfx942", 2),
        ("hip:gfx950", 3),
        ("hip:gfx1200", 2),
    ] {
        let mut options = options(target);
        options.num_stages = stages;
        let kernel = split_k::kernel(RESTS[0].1);
        let given = split_k::arguments(0, MOST);
        let removals = removals(&kernel, options, [PROGRAMS as u32, 1], given);
        all_found_but(target, &removals, &[EMPTY_GROUPS, FENCE, MEETING]);
    }
}

#[test]
fn blocks_of_a_cluster_need_their_barriers() {
    let mut options = options("cuda:90");
    options.split_k = 2;
    let kernel = split_k::kernel(RESTS[1].1);
    let given = split_k::arguments(0, MOST);
    let removals = removals(&kernel, options, [PROGRAMS as u32, 1], given);
    let of_cluster = |removal: &&Removal| removal.operation.contains("cluster");
    assert_eq!(removals.iter().filter(of_cluster).count(), 4);
    all_found_but("a cluster", &removals, &[EMPTY_GROUPS]);
}

#[test]
fn tensor_copies_need_their_transaction_barriers() {
    let mut options = options("cuda:90");
    options.tensor_copies = TensorCopies::Kernel;
    let sizes = Sizes {
        m: 64,
        n: 32,
        k: 16 * 9,
        stride_a: 16 * 9,
        stride_b: 32,
    };
    let kernel = tensor_copies::kernel(Edge::Wrapped, Form::Rows);
    let source = Source::new("product.ttir", kernel.as_str());
    let given = tensor_copies::arguments(sizes, Form::Rows);
    let removals = removals(&source, options, [1, 1], given);
    // The machine does not follow how the unit reads descriptors, nor which of several fences makes them visible.
    let of_barriers: Vec<Removal> = removals
        .into_iter()
        .filter(|removal| removal.operation.contains("transaction barrier"))
        .collect();
    all_found_but("a tensor copy", &of_barriers, &[]);
}
