//! LLVM's target machines, kept from one compilation to the next.
//!
//! A target machine builds tables on their first use: the subtarget with its lowering rules, the aliases
//! of each register. For a small kernel on AMD they are half of the back end's time. Nothing in a machine depends on
//! the modules it has compiled, so a machine returns to a pool after use, and the next compilation for the same
//! target takes it from there, in any thread. There are never more machines than compilations that ran at the same
//! time.

use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use inkwell::OptimizationLevel;
use inkwell::targets::{CodeModel, TargetMachine, TargetTriple};
use llopt_target::Target;

use crate::error::CodegenError;
use crate::llvm::c_api::{self, SharedMachine};
use crate::targets::back_end::back_end;

/// The machines that are not in use.
static POOL: Mutex<Vec<(Target, SharedMachine)>> = Mutex::new(Vec::new());

/// LLVM's machine for a target, for the use of one compilation.
pub struct Machine {
    target: Target,
    machine: Option<SharedMachine>,
}

impl Machine {
    /// A machine for `target`, new or used.
    ///
    /// # Errors
    /// A bug: this LLVM lacks the back end.
    pub fn of(target: Target) -> Result<Self, CodegenError> {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let used = pool.iter().position(|(other, _)| *other == target);
        let used = used.map(|place| pool.swap_remove(place).1);
        drop(pool);
        let machine = match used {
            Some(machine) => machine,
            None => SharedMachine::new(make(target)?),
        };
        Ok(Self {
            target,
            machine: Some(machine),
        })
    }
}

impl Deref for Machine {
    type Target = TargetMachine;

    fn deref(&self) -> &TargetMachine {
        self.machine
            .as_ref()
            .expect("bug in llopt: a machine leaves only when it is dropped")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A panic may have left the machine in an inconsistent state.
        if std::thread::panicking() {
            return;
        }
        if let Some(machine) = self.machine.take() {
            POOL.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((self.target, machine));
        }
    }
}

fn make(target: Target) -> Result<TargetMachine, CodegenError> {
    c_api::initialize();
    let bug = |message: String| CodegenError::Bug {
        stage: "target machine",
        message,
    };
    let triple = TargetTriple::create(target.triple());
    let llvm_target =
        inkwell::targets::Target::from_triple(&triple).map_err(|error| bug(error.to_string()))?;
    llvm_target
        .create_target_machine(
            &triple,
            target.llvm_cpu(),
            target.llvm_features(),
            // The next level adds little more than two runs of GVN, which the optimiser has run already: a third of
            // the back end's time, for the same instructions.
            OptimizationLevel::Default,
            back_end(target).relocation(),
            CodeModel::Default,
        )
        .ok_or_else(|| bug(format!("LLVM has no machine for {target}")))
}
