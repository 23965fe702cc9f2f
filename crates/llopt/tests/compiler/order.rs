//! The order of what is asynchronous is proven for all numbers of iterations, and not without what it rests on: each
//! wait, arrival, fence, barrier and commit of pipelined loops is left out in turn, and each counted wait weakened.

use llopt::sim::Change;
use llopt::{
    Options, OrderRemoval, Source, Target, TensorCopies, Verdict, prove_order, prove_removals,
};

use crate::split_k::{self, RESTS};
use crate::tensor_copies::{self, Edge, Form};

/// The layouts of a ring of tiles, and the beginning of its module.
const RING_MODULE: &str = r#"#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {"#;

fn options(target: &str, stages: u32) -> Options {
    let mut options = Options::new(Target::parse(target).unwrap());
    options.num_stages = stages;
    options
}

/// All is proven; returns what was changed without causing a hazard.
fn unmissed(about: &str, source: &Source, options: &Options) -> Vec<OrderRemoval> {
    let proof = prove_order(source, options).unwrap();
    assert!(!proof.obligations.is_empty(), "{about} has no obligation");
    assert_eq!(proof.diagnostics(), [], "{about}");
    let removals = prove_removals(source, options).unwrap();
    assert!(!removals.is_empty(), "{about} synchronises nothing");
    let is_unmissed = |removal: &OrderRemoval| removal.hazard.is_none();
    removals.into_iter().filter(is_unmissed).collect()
}

/// Barriers are placed for a ring as a whole, whose buffers have unknown numbers in a loop: some are not needed.
fn are_barriers(removals: &[OrderRemoval]) -> bool {
    let is_barrier = |one: &OrderRemoval| {
        (one.op.as_str(), one.change) == ("ttg.local_barrier", Change::Removed)
    };
    removals.iter().all(is_barrier)
}

#[test]
fn loops_through_rings_are_ordered_by_their_waits_and_barriers() {
    for (target, stages) in [
        ("cuda:80", 4),
        ("cuda:90", 3),
        ("hip:gfx942", 2),
        ("hip:gfx950", 3),
        ("hip:gfx1200", 2),
    ] {
        let kernel = split_k::aligned_kernel(RESTS[0].1);
        let unmissed = unmissed(target, &kernel, &options(target, stages));
        assert!(are_barriers(&unmissed), "{target}: {unmissed:?}");
    }
}

#[test]
fn tensor_copies_are_ordered_by_their_transaction_barriers() {
    for edge in [Edge::Wrapped, Edge::Masked] {
        let mut options = options("cuda:90", 3);
        options.tensor_copies = TensorCopies::Kernel;
        let kernel = tensor_copies::kernel(edge, Form::Rows);
        let kernel = Source::new("product.ttir", kernel);
        let unmissed = unmissed("a tensor copy", &kernel, &options);
        assert!(are_barriers(&unmissed), "{unmissed:?}");
    }
}

#[test]
fn one_thread_initialises_a_barrier_where_it_has_released_another() {
    let barrier = "!ttg.memdesc<1xi64, #bar, #smem, mutable>";
    let life = |name: &str| {
        format!(
            "%{name} = ttg.local_alloc : () -> {barrier}
    ttng.init_barrier %{name}, 1 : {barrier}
    ttng.arrive_barrier %{name}, 1 : {barrier}
    ttng.wait_barrier %{name}, %zero : {barrier}
    ttng.inval_barrier %{name} : {barrier}"
        )
    };
    let text = format!(
        r#"#bar = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @again() {{
    %zero = arith.constant 0 : i32
    {}
    {}
    tt.return
  }}
}}
"#,
        life("first"),
        life("second")
    );
    let source = Source::new("again.ttgir", text);
    let proof = prove_order(&source, &options("cuda:90", 1)).unwrap();
    assert!(!proof.obligations.is_empty());
    assert_eq!(proof.diagnostics(), []);
}

/// A partition fills a ring of `count` buffers through tensor copies, and the kernel's warps read it. Buffers and phases
/// are remainders and quotients of `counter`, which the loop carries or computes.
fn ring(count: i64, producers: u32, carried: bool) -> Source {
    let ring = "!ttg.memdesc<COUNTx64x64xf16, #tile, #smem, mutable>";
    let tile = "!ttg.memdesc<64x64xf16, #tile, #smem, mutable>";
    let barriers = "!ttg.memdesc<COUNTx1xi64, #bar, #smem, mutable>";
    let barrier = "!ttg.memdesc<1xi64, #bar, #smem, mutable>";
    let descriptor = "!tt.tensordesc<tensor<64x64xf16, #tile>>";
    let begin: String = (0..count)
        .map(|index| {
            format!(
                "
    %i{index} = arith.constant {index} : i32
    %f{index} = ttg.memdesc_index %full[%i{index}] : {barriers} -> {barrier}
    %e{index} = ttg.memdesc_index %empty[%i{index}] : {barriers} -> {barrier}
    ttng.init_barrier %f{index}, 1 : {barrier}
    ttng.init_barrier %e{index}, 1 : {barrier}"
            )
        })
        .collect();
    // The number of the iteration, in a partition with these names.
    let counted = |name: &str| match carried {
        true => (
            format!("iter_args(%{name}n = %{name}0) -> (i32)"),
            format!("%{name}m = arith.addi %{name}n, %{name}1 : i32\n scf.yield %{name}m : i32"),
        ),
        false => (String::new(), String::new()),
    };
    let loop_of = |name: &str, end: &str, body: &str| {
        let (arguments, next) = counted(name);
        let number = if carried { "n" } else { "i" };
        format!(
            "
      %{name}0 = arith.constant 0 : i32
      %{name}1 = arith.constant 1 : i32
      %{name}d = arith.constant COUNT : i32
      {} scf.for %{name}i = %{name}0 to {end} step %{name}1 {arguments} : i32 {{
        %{name}slot = arith.remui %{name}{number}, %{name}d : i32
        %{name}round = arith.divui %{name}{number}, %{name}d : i32
        %{name}phase = arith.andi %{name}round, %{name}1 : i32
        {body}
        {next}
      }}",
            if carried {
                format!("%{name}end =")
            } else {
                String::new()
            }
        )
    };
    let reads = loop_of(
        "c",
        "%n",
        &format!(
            "%cf = ttg.memdesc_index %full[%cslot] : {barriers} -> {barrier}
        %cb = ttg.memdesc_index %ring[%cslot] : {ring} -> {tile}
        ttng.wait_barrier %cf, %cphase : {barrier}
        %t = ttg.local_load %cb : {tile} -> tensor<64x64xf16, #b>
        tt.store %o, %t : tensor<64x64x!tt.ptr<f16>, #b>
        %ce = ttg.memdesc_index %empty[%cslot] : {barriers} -> {barrier}
        ttng.arrive_barrier %ce, 1 : {barrier}"
        ),
    );
    let fills = loop_of(
        "p",
        "%pend_",
        &format!(
            "%true = arith.constant true
        %pfirst = arith.subi %p1, %pphase : i32
        %pe = ttg.memdesc_index %pempty[%pslot] : {barriers} -> {barrier}
        %pf = ttg.memdesc_index %pfull[%pslot] : {barriers} -> {barrier}
        %pb = ttg.memdesc_index %pring[%pslot] : {ring} -> {tile}
        ttng.wait_barrier %pe, %pfirst : {barrier}
        ttng.barrier_expect %pf, 8192, %true : {barrier}
        ttng.async_tma_copy_global_to_local %px[%p0, %pi] %pb, %pf, %true : {descriptor}, {barrier} -> {tile}"
        ),
    );
    let text = format!(
        r#"{RING_MODULE}
  tt.func public @ring(%x: {descriptor}, %o: tensor<64x64x!tt.ptr<f16>, #b>, %n: i32) {{
    %ring = ttg.local_alloc : () -> {ring}
    %full = ttg.local_alloc : () -> {barriers}
    %empty = ttg.local_alloc : () -> {barriers}{begin}
    ttg.warp_specialize(%x, %n, %ring, %full, %empty)
    default {{{reads}
      ttg.warp_yield
    }}
    partition0(%px: {descriptor}, %pend_: i32, %pring: {ring}, %pfull: {barriers}, %pempty: {barriers}) num_warps({producers}) {{{fills}
      ttg.warp_return
    }} : ({descriptor}, i32, {ring}, {barriers}, {barriers}) -> ()
    tt.return
  }}
}}
"#
    );
    Source::new("ring.ttgir", text.replace("COUNT", &count.to_string()))
}

/// A ring between partitions is ordered, and what it contains apart from barriers of single warps is needed for that.
fn partitions_are_ordered(count: i64, producers: u32, carried: bool) {
    let about = format!("{count} buffers, {producers} warps, carried: {carried}");
    let options = options("cuda:90", 3);
    let unmissed = unmissed(&about, &ring(count, producers, carried), &options);
    // A partition of one warp needs no barrier of its threads.
    assert!(are_barriers(&unmissed), "{about}: {unmissed:?}");
}

#[test]
fn partitions_are_ordered_that_count_two_buffers_by_iterations() {
    partitions_are_ordered(2, 1, false);
}

#[test]
fn partitions_are_ordered_that_carry_the_number_of_one_of_three_buffers() {
    partitions_are_ordered(3, 1, true);
}

#[test]
fn partitions_of_four_warps_are_ordered_that_count_three_buffers_by_iterations() {
    partitions_are_ordered(3, 4, false);
}

#[test]
fn partitions_of_four_warps_are_ordered_that_carry_the_number_of_one_of_four_buffers() {
    partitions_are_ordered(4, 4, true);
}

#[test]
fn a_ring_whose_buffers_are_released_too_early_is_wrong() {
    let right = ring(3, 1, true);
    let text = right.text().unwrap();
    // The reader releases the buffer that it reads next.
    let wrong = text.replace("%empty[%cslot]", "%empty[%cm]").replace(
        "%ce = ",
        "%cnext = arith.addi %cn, %c1 : i32\n%cm = arith.remui %cnext, %cd : i32\n%ce = ",
    );
    let wrong = wrong.replace("%cm = arith.addi %cn", "%cq = arith.addi %cn");
    let wrong = wrong.replace("scf.yield %cm", "scf.yield %cq");
    let proof = prove_order(&Source::new("ring.ttgir", wrong), &options("cuda:90", 3)).unwrap();
    let [only] = &proof.obligations[..] else {
        panic!("{proof:?}");
    };
    assert!(matches!(only.verdict, Verdict::Wrong { .. }), "{only:?}");
}

/// A ring of two buffers through which a partition copies the tiles of one program after the other. Each program has its own
/// number of tiles, which both sides compute from the number of the program and from `read` and `filled`.
fn programs(read: &str, filled: &str) -> Source {
    let ring = "!ttg.memdesc<2x64x64xf16, #tile, #smem, mutable>";
    let tile = "!ttg.memdesc<64x64xf16, #tile, #smem, mutable>";
    let barriers = "!ttg.memdesc<2x1xi64, #bar, #smem, mutable>";
    let barrier = "!ttg.memdesc<1xi64, #bar, #smem, mutable>";
    let descriptor = "!tt.tensordesc<tensor<64x64xf16, #tile>>";
    let begin: String = (0..2)
        .map(|index| {
            format!(
                "
    %i{index} = arith.constant {index} : i32
    %full{index} = ttg.memdesc_index %full[%i{index}] : {barriers} -> {barrier}
    %empty{index} = ttg.memdesc_index %empty[%i{index}] : {barriers} -> {barrier}
    ttng.init_barrier %full{index}, 1 : {barrier}
    ttng.init_barrier %empty{index}, 1 : {barrier}"
            )
        })
        .collect();
    // Slot and phase go round both loops. The number of tiles of the next program follows from that of the last one.
    let both_loops = |phase: i64, programs: &str, tiles: &str, body: &str| {
        format!(
            "
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %phase = arith.constant {phase} : i32
      %end:3 = scf.for %p = %zero to {programs} step %one iter_args(%s0 = %zero, %f0 = %phase, %old = %zero) -> (i32, i32, i32) : i32 {{
        %square = arith.muli %p, %old : i32
        %tiles = arith.addi %square, {tiles} : i32
        %next:2 = scf.for %k = %zero to %tiles step %one iter_args(%s = %s0, %f = %f0) -> (i32, i32) : i32 {{
          {body}
          %slot = arith.subi %one, %s : i32
          %is_last = arith.cmpi eq, %s, %one : i32
          %turned = arith.subi %one, %f : i32
          %turn = arith.select %is_last, %turned, %f : i32
          scf.yield %slot, %turn : i32, i32
        }}
        scf.yield %next#0, %next#1, %tiles : i32, i32, i32
      }}"
        )
    };
    let reads = both_loops(
        0,
        "%n",
        read,
        &format!(
            "%cf = ttg.memdesc_index %full[%s] : {barriers} -> {barrier}
          %cb = ttg.memdesc_index %ring[%s] : {ring} -> {tile}
          ttng.wait_barrier %cf, %f : {barrier}
          %t = ttg.local_load %cb : {tile} -> tensor<64x64xf16, #b>
          tt.store %o, %t : tensor<64x64x!tt.ptr<f16>, #b>
          %ce = ttg.memdesc_index %empty[%s] : {barriers} -> {barrier}
          ttng.arrive_barrier %ce, 1 : {barrier}"
        ),
    );
    let fills = both_loops(
        1,
        "%pn",
        filled,
        &format!(
            "%true = arith.constant true
          %pe = ttg.memdesc_index %pempty[%s] : {barriers} -> {barrier}
          %pf = ttg.memdesc_index %pfull[%s] : {barriers} -> {barrier}
          %pb = ttg.memdesc_index %pring[%s] : {ring} -> {tile}
          ttng.wait_barrier %pe, %f : {barrier}
          ttng.barrier_expect %pf, 8192, %true : {barrier}
          ttng.async_tma_copy_global_to_local %px[%zero, %k] %pb, %pf, %true : {descriptor}, {barrier} -> {tile}"
        ),
    );
    let text = format!(
        r#"{RING_MODULE}
  tt.func public @programs(%x: {descriptor}, %o: tensor<64x64x!tt.ptr<f16>, #b>, %n: i32, %m: i32, %q: i32) {{
    %ring = ttg.local_alloc : () -> {ring}
    %full = ttg.local_alloc : () -> {barriers}
    %empty = ttg.local_alloc : () -> {barriers}{begin}
    ttg.warp_specialize(%x, %n, %m, %q, %ring, %full, %empty)
    default {{{reads}
      ttg.warp_yield
    }}
    partition0(%px: {descriptor}, %pn: i32, %pm: i32, %pq: i32, %pring: {ring}, %pfull: {barriers}, %pempty: {barriers}) num_warps(1) {{{fills}
      ttg.warp_return
    }} : ({descriptor}, i32, i32, i32, {ring}, {barriers}, {barriers}) -> ()
    tt.return
  }}
}}
"#
    );
    Source::new("programs.ttgir", text)
}

#[test]
fn programs_with_different_numbers_of_tiles_are_ordered() {
    let mut unmissed = unmissed("programs", &programs("%m", "%pm"), &options("cuda:90", 3));
    // Before the inner loop, which has a barrier and a fence of its own, are others.
    unmissed.retain(|one| one.op != "ttng.fence_async_shared");
    assert!(are_barriers(&unmissed), "{unmissed:?}");
}

#[test]
fn partitions_that_disagree_about_the_number_of_tiles_are_not_proven() {
    let proof = prove_order(&programs("%m", "%pq"), &options("cuda:90", 3)).unwrap();
    let proven = |verdict: &Verdict| matches!(verdict, Verdict::Proven { .. });
    let mut verdicts = proof.obligations.iter().map(|one| &one.verdict);
    assert!(!verdicts.any(proven), "{proof:?}");
}
