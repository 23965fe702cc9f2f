//! Proofs that data movement is correct for all data, and that what is asynchronous is ordered in all executions.
//!
//! The second has its own theory: [`order`].
//!
//! # Movement of data
//!
//! The movement by the code for a layout conversion, a gather or an access to a buffer depends on no element's value
//! (a gather's only on its indices). So if every element is a unique tag, and one run moves each tag to the right
//! places, then every run moves all data correctly. Elements too narrow for that many tags contain the digits of
//! their tags in several runs.
//!
//! An op is copied into a kernel of its own, with the same types, the same target and the same number of warps, and
//! compiled as usual; plans depend on nothing else. The kernel loads the tags and executes the op, and every thread
//! compares *every* register of the result, copies included, with the result of the reference interpreter.
//!
//! - **Conversions, reshapes, transpositions, joins, splits, loads and stores of buffers:** tags.
//! - **Gathers:** the place that an element comes from is a linear function over F2 of the reader's place and the
//!   index. Agreement at index 0, at each single bit of the index, and at their sum is agreement everywhere; there
//!   are also runs with indices that differ from element to element.
//! - **Products:** random whole numbers, for which all sums are exact, in enough runs to distinguish two different
//!   bilinear forms ([`product`]): each register and each place in shared memory that an instruction reads contains
//!   the element that the instruction reads there.
//! - **Reductions and scans:** the region becomes an addition of integers as wide as the elements, which shows how
//!   often each element was combined: the sum of random tags is a fingerprint of the multiset. With 128 bits of tags
//!   for each element, a wrong multiset passes with a chance below 2^-100. That each combination uses the region's
//!   own code is left to ordinary tests.

mod fill;
mod kernel;
mod obligation;
mod order;
mod product;
mod tensor;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::plans::Plans;
use llopt_sim::{Argument, Error as SimError};
use serde::Serialize;

use crate::execution::{Engines, run_everywhere};
use crate::own_thread::in_own_thread;
use crate::pipeline::{self, Stage};
use crate::{
    Diagnostic, Error, ErrorClass, Options, Source, Timings, compiler, input, module, session,
};
use kernel::Kernel;
pub use obligation::{Obligation, Subject, Verdict};
pub use order::OrderRemoval;

/// All obligations of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Those of movement and then those of order, each in the order of the ops in the kernel.
    pub obligations: Vec<Obligation>,
}

impl Proof {
    /// The number of proven ops.
    #[must_use]
    pub fn proven(&self) -> usize {
        let is_proven = |one: &&Obligation| matches!(one.verdict, Verdict::Proven { .. });
        self.obligations.iter().filter(is_proven).count()
    }

    /// The ops that are wrong or have no proof, as diagnostics.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let said = |one: &Obligation| {
            let message = match &one.verdict {
                Verdict::Proven { .. } => return None,
                Verdict::Wrong { message } => format!("'{}' is wrong: {message}", one.op),
                Verdict::Unsupported { reason } => format!("'{}' has no proof: {reason}", one.op),
            };
            Some(Diagnostic::error(one.location.clone(), message))
        };
        self.obligations.iter().filter_map(said).collect()
    }
}

impl fmt::Display for Proof {
    /// A line for each op that moves data, and for each whose order is not proven; then the numbers of proven ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |of: fn(&Obligation) -> usize| self.obligations.iter().map(of).max();
        let places = widest(|one| one.location.len()).unwrap_or(0);
        let ops = widest(|one| one.op.len()).unwrap_or(0);
        let is_proven = |one: &Obligation| matches!(one.verdict, Verdict::Proven { .. });
        for one in &self.obligations {
            let Obligation {
                subject,
                location,
                op,
                verdict,
                ..
            } = one;
            if *subject == Subject::Movement || !is_proven(one) {
                writeln!(f, "{location:<places$}  {op:<ops$}  {verdict}")?;
            }
        }
        for (subject, text) in [
            (Subject::Movement, "proven"),
            (Subject::Order, "ordered in all executions"),
        ] {
            let all = self.obligations.iter().filter(|one| one.subject == subject);
            let (proven, count) = (
                all.clone().filter(|one| is_proven(one)).count(),
                all.count(),
            );
            if count > 0 || subject == Subject::Movement && self.obligations.is_empty() {
                writeln!(f, "{text}: {proven} of {count}")?;
            }
        }
        Ok(())
    }
}

/// Options with which single ops are compiled and checked.
fn quiet(options: &Options) -> Options {
    Options {
        line_info: false,
        reproducer_directory: None,
        ..options.clone()
    }
}

/// Proves every op of a kernel that moves data, and the order of everything asynchronous.
///
/// # Errors
/// The source is not a valid module for the target. An error in an op is in its verdict.
pub fn prove(source: &Source, options: &Options) -> Result<Proof, Error> {
    let mut options = quiet(options);
    let (input, its) = (source.clone(), options.clone());
    let found = in_own_thread(move || collect(&input, &its))?;
    let order = prove_order(source, &options)?;
    // The kernels of single ops have layouts and share no loop.
    options.split_k = 1;
    let mut known: HashMap<String, Verdict> = HashMap::new();
    let mut proof = Proof::default();
    for (location, op, types, kernel) in found {
        let verdict = match kernel {
            Err(reason) => Verdict::Unsupported { reason },
            Ok(kernel) => known
                .entry(kernel.checking.clone())
                .or_insert_with(|| settle(&kernel, &options))
                .clone(),
        };
        proof.obligations.push(Obligation {
            subject: Subject::Movement,
            location,
            op,
            types,
            verdict,
        });
    }
    proof.obligations.extend(order.obligations);
    Ok(proof)
}

/// Proves only the order of what is asynchronous in a kernel.
///
/// # Errors
/// The source is not a valid module for the target.
pub fn prove_order(source: &Source, options: &Options) -> Result<Proof, Error> {
    let (input, options) = (source.clone(), quiet(options));
    in_own_thread(move || {
        let obligations = scheduled(&input, &options, order::obligations)?;
        Ok(Proof {
            obligations: obligations
                .unwrap_or_else(|error| vec![order::unsupported(String::new(), error.to_string())]),
        })
    })
}

/// Proves the order of what is asynchronous in a kernel without each single wait, arrival, fence, barrier and commit.
///
/// # Errors
/// The source is not a valid module for the target, or the order of what it has is not proven.
pub fn prove_removals(source: &Source, options: &Options) -> Result<Vec<OrderRemoval>, Error> {
    let (input, options) = (source.clone(), quiet(options));
    in_own_thread(move || {
        let removals = scheduled(&input, &options, order::removals)??;
        removals.map_err(|reason| {
            Error::invalid(vec![Diagnostic::error(
                String::new(),
                format!("it is not proven: {reason}"),
            )])
        })
    })
}

/// Looks at a kernel after all passes, except that its control flow is structured. The inner error is that of a pass
/// towards code generation.
fn scheduled<T>(
    source: &Source,
    options: &Options,
    look: fn(melior::ir::OperationRef<'_, '_>, &Plans) -> T,
) -> Result<Result<T, Error>, Error> {
    let context = session::context()?;
    let module = input::read(&context, source, options)?;
    let mut time = Timings::default();
    compiler::to_layouts(&context, &module, options, &mut time)?;
    let plans = Rc::new(Plans::new(options.target));
    let run =
        pipeline::run_structured(Stage::Memory, &context, &module, options, &plans, &mut time);
    Ok(run.map(|()| look(module.as_operation(), &plans)))
}

type Found = (String, String, String, Result<Kernel, String>);

fn collect(source: &Source, options: &Options) -> Result<Vec<Found>, Error> {
    let context = session::context()?;
    let module = input::read(&context, source, options)?;
    let mut time = Timings::default();
    compiler::to_layouts(&context, &module, options, &mut time)?;
    let mut found = Vec::new();
    module.as_operation().for_each_op(Walk::PreOrder, |op| {
        if !kernel::moves_data(op) {
            return;
        }
        let types = |list: &mut dyn Iterator<Item = String>| -> String {
            list.collect::<Vec<_>>().join(", ")
        };
        let types = format!(
            "{} -> {}",
            types(&mut op.operand_types().map(|of| of.to_string())),
            types(&mut op.result_types().map(|of| of.to_string())),
        );
        found.push((
            module::location_of(op),
            op.name_str().to_owned(),
            types,
            Kernel::of(op, options.target),
        ));
    });
    Ok(found)
}

/// Runs the kernels of an op.
fn settle(kernel: &Kernel, options: &Options) -> Verdict {
    let runs = kernel.inputs();
    // The expected results, from the reference interpreter.
    let telling = Source::new("proof.ttgir", kernel.telling.as_bytes());
    let reference = Engines {
        reference: true,
        ..Engines::default()
    };
    let with_results = |inputs: &Vec<Vec<u8>>, outputs: Vec<Vec<u8>>| -> Vec<Argument> {
        let all = inputs.iter().cloned().chain(outputs);
        all.map(Argument::Buffer).collect()
    };
    let asked: Vec<Vec<Argument>> = runs
        .iter()
        .map(|inputs| with_results(inputs, kernel.empty_outputs()))
        .collect();
    let told = match run_everywhere(&telling, options, [1; 3], asked, reference) {
        Ok(outcomes) => outcomes,
        Err(error) => return refused(&error),
    };
    let mut checked = Vec::with_capacity(runs.len());
    for (inputs, outcomes) in runs.iter().zip(told) {
        let outcome = match outcomes.reference {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => {
                return Verdict::Unsupported {
                    reason: format!("the reference interpreter: {error}"),
                };
            }
            None => continue,
        };
        let expected = outcome.arguments.into_iter().skip(inputs.len());
        let expected = expected.filter_map(|argument| match argument {
            Argument::Buffer(bytes) => Some(bytes),
            _ => None,
        });
        checked.push(with_results(inputs, expected.collect()));
    }
    judge(&kernel.checking, options, checked)
}

/// Runs the kernel that compares, on inputs followed by expected results.
fn judge(text: &str, options: &Options, runs: Vec<Vec<Argument>>) -> Verdict {
    let source = Source::new("proof.ttgir", text.as_bytes());
    let count = runs.len();
    let machine = Engines {
        optimized: true,
        ..Engines::default()
    };
    let outcomes = match run_everywhere(&source, options, [1; 3], runs, machine) {
        Ok(outcomes) => outcomes,
        Err(error) => return refused(&error),
    };
    for outcomes in outcomes {
        match outcomes.optimized {
            Some(Ok(outcome)) => {
                if let Some(finding) = outcome.report.findings.first() {
                    return Verdict::Wrong {
                        message: finding.to_string(),
                    };
                }
            }
            Some(Err(SimError::Stopped {
                message, report, ..
            })) => {
                let said = report
                    .output
                    .first()
                    .map_or(message, |line| line.trim().to_owned());
                return Verdict::Wrong {
                    message: format!("an element is not where it belongs ({said})"),
                };
            }
            Some(Err(error)) => {
                return Verdict::Unsupported {
                    reason: error.to_string(),
                };
            }
            None => {}
        }
    }
    Verdict::Proven { runs: count }
}

fn refused(error: &Error) -> Verdict {
    let text = error.to_string();
    match error.class() {
        ErrorClass::Unsupported | ErrorClass::Environment => Verdict::Unsupported { reason: text },
        _ => Verdict::Wrong {
            message: format!("it does not compile: {text}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    const KERNEL: &str = r#"
#from = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
#to = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: tensor<128xf16, #from>, %p: !tt.ptr<f16>) {
    %0 = ttg.convert_layout %x : tensor<128xf16, #from> -> tensor<128xf16, #to>
    %1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
    ^bb0(%a: f16, %b: f16):
      %s = arith.addf %a, %b : f16
      tt.reduce.return %s : f16
    }) : (tensor<128xf16, #to>) -> f16
    tt.store %p, %1 : !tt.ptr<f16>
    tt.return
  }
}
"#;

    #[test]
    fn conversions_and_reductions_are_proven() {
        let options = Options::new(Target::parse("cuda:90").unwrap());
        let proof = prove(&Source::new("k.ttgir", KERNEL), &options).unwrap();
        assert_eq!(proof.obligations.len(), 2);
        assert_eq!(proof.diagnostics(), [], "{proof:?}");
        assert_eq!(proof.obligations[0].location, "k.ttgir:6:10");
    }

    /// A product on a matrix unit of either vendor, with operands in registers.
    fn product(target: &str, mma: &str, width: u32, lanes: u32) -> (Source, Options) {
        let text = format!(
            r#"
#mma = {mma}
#a = #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {width}}}>
#b = #ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = {width}}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "{target}", "ttg.threads-per-warp" = {lanes} : i32}} {{
  tt.func public @k(%x: tensor<32x32xf16, #a>, %y: tensor<32x32xf16, #b>, %z: tensor<32x32xf32, #mma>) {{
    %0 = tt.dot %x, %y, %z : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
    tt.return
  }}
}}
"#
        );
        let options = Options::new(Target::parse(target).unwrap());
        (Source::new("k.ttgir", text), options)
    }

    const WARP_PRODUCT: &str = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>";
    const MFMA: &str = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 1], instrShape = [16, 16, 16], isTransposed = true}>";

    #[test]
    fn products_are_proven() {
        for (target, mma, width, lanes) in [
            ("cuda:80", WARP_PRODUCT, 2, 32),
            ("hip:gfx942", MFMA, 4, 64),
        ] {
            let (source, options) = product(target, mma, width, lanes);
            let proof = prove(&source, &options).unwrap();
            assert_eq!(proof.diagnostics(), [], "{proof:?}");
            assert_eq!(proof.proven(), 1);
        }
    }

    #[test]
    fn factors_that_are_exchanged_are_found() {
        let (source, options) = product("cuda:80", WARP_PRODUCT, 2, 32);
        let found = in_own_thread({
            let options = options.clone();
            move || collect(&source, &options)
        })
        .unwrap();
        let kernel = found[0].3.as_ref().unwrap();
        let runs = kernel.inputs();
        // The expected results if two elements of operands that are neighbours along k are exchanged, in one row
        // only.
        let telling = Source::new("proof.ttgir", kernel.telling.as_bytes());
        let exchanged: Vec<Vec<Argument>> = runs
            .iter()
            .cloned()
            .map(|mut inputs| {
                let row = &mut inputs[0][64 * 5..64 * 6];
                (0..2).for_each(|byte| row.swap(byte, 2 + byte));
                let all = inputs.into_iter().chain(kernel.empty_outputs());
                all.map(Argument::Buffer).collect()
            })
            .collect();
        let reference = Engines {
            reference: true,
            ..Engines::default()
        };
        let told = run_everywhere(&telling, &options, [1; 3], exchanged, reference).unwrap();
        let checked = runs.iter().zip(told).map(|(inputs, outcomes)| {
            let result = outcomes
                .reference
                .unwrap()
                .unwrap()
                .arguments
                .pop()
                .unwrap();
            let inputs = inputs.iter().cloned().map(Argument::Buffer);
            inputs.chain([result]).collect()
        });
        let verdict = judge(&kernel.checking, &options, checked.collect());
        assert!(matches!(verdict, Verdict::Wrong { .. }), "{verdict:?}");
    }

    #[test]
    fn an_element_in_a_wrong_place_is_found() {
        let options = Options::new(Target::parse("cuda:90").unwrap());
        let source = Source::new("k.ttgir", KERNEL);
        let found = in_own_thread({
            let options = options.clone();
            move || collect(&source, &options)
        })
        .unwrap();
        let kernel = found[0].3.as_ref().unwrap();
        for inputs in kernel.inputs() {
            let mut expected = inputs[0].clone();
            expected.swap(10, 12);
            let arguments = [inputs[0].clone(), expected].map(Argument::Buffer).to_vec();
            let verdict = judge(&kernel.checking, &options, vec![arguments]);
            assert!(matches!(verdict, Verdict::Wrong { .. }), "{verdict:?}");
        }
    }
}
