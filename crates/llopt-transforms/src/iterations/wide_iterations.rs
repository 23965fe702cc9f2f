//! `--wide-iterations`: two iterations of a loop as one with a tile of twice the size, where that is the same and faster.
//!
//! # The rewritten loop
//!
//! A loop that reduces over the tiles of a tensor does some work for each element and some for each tile. In attention
//! the latter is the scaling of the accumulator, the exponentials of the scales, the maxima and sums across lanes, and
//! barriers. An author chooses tiles before anything is known about the machine, and not always freely. With tiles of twice
//! the size there is half as much of that work:
//!
//! ```text
//! for i = 0 to n step 64                          for i = 0 to n step 128
//!   k, v = K[i, 64 rows], V[i, 64 rows]             k, v = K[i, 128 rows], V[i, 128 rows]
//!   s = q · kᵀ                                      s = q · kᵀ
//!   m' = max(m, rows s)                             m' = max(m, rows s)
//!   p = exp2(s - m')                        =>      p = exp2(s - m')
//!   a = exp2(m - m')                                a = exp2(m - m')
//!   l = l · a + Σ rows p                            l = l · a + Σ rows p
//!   o = o · a + p · v                               o = o · a + p · v
//!   m = m'                                          m = m'
//! ```
//!
//! (The loop is unrolled and its two bodies are fused; that both are one is the online form of a softmax: M. Milakov,
//! N. Gimelshein, *Online normalizer calculation for softmax*, 2018.) The narrow loop remains for an odd iteration.
//!
//! # When it is correct
//!
//! `proof.rs` compares what two narrow iterations compute with what a wide one does, as terms over the real numbers. It
//! knows laws of sums, maxima and exponentials (`terms.rs`), and no kernel. So roundings may differ, as they do between
//! orders of summation, and nothing else. The first maximum above is scaled in some kernels, `max(m, c · max s)`, and that
//! two such are one needs `c ≥ 0`: the wide loop has no iteration where a number that was assumed not to be negative is, and
//! the narrow one has them all.
//!
//! # When it pays
//!
//! See `price.rs`.
//!
//! # Alternatives rejected
//!
//! - *Unrolling*, and both bodies fused where that is possible (unroll and jam): each reduction is there twice, and the
//!   second maximum depends on the first.
//! - *A mask for the odd iteration* in place of a narrow loop: masks cost instructions in all iterations, and what is
//!   neutral depends on the reduction.

mod axes;
mod meaning;
mod price;
mod proof;
mod rewrite;
mod terms;

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, attr};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::loops::concatenate::Concatenation;
use crate::loops::induction::{is_multiple, most_iterations};
use crate::loops::unroll::{RARE, STAGES, asked_stages};
use crate::loops::view::{For, innermost};
use crate::pass_options::{NUM_STAGES, NUM_WARPS, TARGET, target};
use crate::pipelining::place;
use crate::request::Request;
pub use price::{Cycles, Setting};
use proof::Proof;

/// Why a loop with one iteration stays as it is.
const ONE_ITERATION: &str = "it has no more than one iteration";
/// Why two loops stay as they are that will be one.
const BECOMES_ONE: &str =
    "it and the loop beside it become one, which a rest between them would prevent";

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    options: &[
        TARGET,
        NUM_WARPS,
        NUM_STAGES,
        PassOption::flag(
            "everywhere",
            "widen wherever it is possible, not only where the model predicts a gain",
        ),
    ],
    ..PassSpec::new(
        "wide-iterations",
        "reduce over tiles of twice the size where that is the same and faster",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    let number = |name: &str| u32::try_from(run.integer(name)).unwrap_or(1).max(1);
    let setting = Setting {
        target,
        num_warps: number("num-warps"),
        stages: number("num-stages"),
        concatenates: false,
    };
    let request = match run.flag("everywhere") {
        true => Request::Everywhere,
        false => Request::WhereFaster,
    };
    widen(module, request, setting);
    Ok(())
}

/// What became of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideAccount {
    /// `file:line:col`.
    pub location: String,
    /// How it was widened, or the reason why it was not.
    pub outcome: Result<Wide, String>,
}

/// A loop of wide iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wide {
    /// The elements along what is reduced, of an iteration as it was.
    pub extent: i64,
    /// What the model says, where it decided.
    pub cycles: Option<Cycles>,
    /// Whether the loop as it was remains for an odd iteration, or for numbers that the proof does not cover.
    pub has_rest: bool,
}

/// A loop that can be widened, with the proof and what the model says.
struct Candidate<'c, 'a> {
    of: For<'c, 'a>,
    proof: Proof<'c, 'a>,
    /// The stages that the program asks for.
    stages: u32,
    cycles: Option<Cycles>,
}

impl<'c: 'a, 'a> Candidate<'c, 'a> {
    /// A loop, if it can be widened, and should be.
    fn of(of: For<'c, 'a>, request: Request, setting: Setting) -> Result<Self, String> {
        let asked = asked_stages(of.operation());
        let stages = asked.unwrap_or(setting.stages);
        let proof = prove(of, setting.target.has(Feature::BulkTensorCopy))?;
        let cycles = match request {
            Request::Everywhere => None,
            Request::WhereFaster => Some(price::compare(of, &proof, stages, setting)?),
        };
        Ok(Self {
            of,
            proof,
            stages,
            cycles,
        })
    }

    /// Whether the loop as it was will remain.
    fn leaves_rest(&self) -> bool {
        !self.proof.assumed.is_empty() || !is_multiple(self.of, rewrite::FACTOR)
    }

    /// Whether one block of it fills a multiprocessor.
    fn is_alone(&self, setting: Setting) -> bool {
        price::is_alone(self.of, &self.proof, self.stages, setting)
    }

    /// Widens it.
    fn write(&self, rewriter: &mut Rewriter<'c, 'a>) -> Result<Wide, String> {
        let wanted = self.cycles.map(|cycles| cycles.stages);
        let wanted = wanted.filter(|wanted| *wanted != self.stages);
        let has_rest = write(rewriter, self.of, &self.proof, wanted)?;
        Ok(Wide {
            extent: self.proof.extent(),
            cycles: self.cycles,
            has_rest,
        })
    }
}

/// Makes wide iterations in the loops of a module without layouts; answers an account of each of the innermost loops.
pub fn widen(module: OperationRef<'_, '_>, request: Request, setting: Setting) -> Vec<WideAccount> {
    let loops = innermost(module);
    let mut candidates: Vec<Result<Candidate, String>> = loops
        .iter()
        .map(|of| Candidate::of(*of, request, setting))
        .collect();
    for first in 0..loops.len().saturating_sub(1) {
        let both = [first, first + 1];
        let are_whole = both
            .iter()
            .all(|at| candidates[*at].as_ref().is_ok_and(|of| !of.leaves_rest()));
        let is_alone = both.iter().any(|at| match &candidates[*at] {
            Ok(of) => of.is_alone(setting),
            Err(_) => false,
        });
        let become_one = setting.concatenates
            && !are_whole
            && is_alone
            && Concatenation::of(loops[first], loops[first + 1]).is_ok();
        if become_one {
            for at in both {
                candidates[at] = Err(BECOMES_ONE.to_owned());
            }
        }
    }
    let places: Vec<String> = loops.iter().map(|of| place(of.operation())).collect();
    let mut rewriter = Rewriter::new(module.ctx());
    let mut accounts = Vec::new();
    for (location, candidate) in places.into_iter().zip(candidates) {
        let outcome = match candidate {
            Ok(candidate) => candidate.write(&mut rewriter),
            Err(reason) => Err(reason),
        };
        accounts.push(WideAccount { location, outcome });
    }
    accounts
}

fn prove<'c: 'a, 'a>(of: For<'c, 'a>, has_boxes: bool) -> Result<Proof<'c, 'a>, String> {
    if most_iterations(of).is_some_and(|most| most < u64::from(rewrite::FACTOR)) {
        return Err(ONE_ITERATION.to_owned());
    }
    Proof::of(of, has_boxes)
}

/// Widens a loop, which is to have another number of stages if one is given; answers whether the loop as it was remains.
fn write<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    proof: &Proof<'c, 'a>,
    stages: Option<u32>,
) -> Result<bool, String> {
    let context = rewriter.context();
    let widened = rewrite::widen(rewriter, of, proof).ok_or(ONE_ITERATION)?;
    if let Some(stages) = stages {
        let stages = attr::i32(context, stages.cast_signed());
        widened.main.operation().set_attr(STAGES, stages);
    }
    let rest = widened.rest;
    if let Some(rest) = rest {
        // A single iteration is not worth a pipeline.
        rest.operation().set_attr(STAGES, attr::i32(context, 1));
        rest.operation()
            .set_discardable_attr(RARE, attr::unit(context));
    }
    Ok(rest.is_some())
}
