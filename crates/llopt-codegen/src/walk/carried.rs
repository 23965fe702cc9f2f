//! How the registers of a block's argument come from one block to another: in a phi each, or as words.
//!
//! What moves data moves words, and takes four bytes of a word from where they lie in one. In a loop through which
//! bytes are carried one by one, they are taken apart at the end of each iteration and packed again at the start of
//! the next. Carried as words they are not. A word costs three permutes where what flows in is no word, and four where
//! single bytes are wanted of it; so bytes are carried in words where every operation that takes the argument takes
//! words: then there is no round in which more is packed than would be otherwise.

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::PhiValue;
use llopt_dialects::{Op, arith, tt, ttg};
use llopt_mlir::ir::ValueExt;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::words::packed;

/// Bytes of a word.
const BYTES: usize = 4;

/// The phis of a block's argument.
#[derive(Clone)]
pub(crate) struct Carried<'ctx> {
    phis: Vec<PhiValue<'ctx>>,
    /// Registers.
    count: usize,
    /// Whether each phi is a word of four registers.
    words: bool,
}

impl<'ctx> Carried<'ctx> {
    /// Phis for an argument of `count` different registers, in the block that was just opened.
    pub(crate) fn new<'c: 'a, 'a>(
        e: &Emitter<'ctx>,
        argument: Value<'c, 'a>,
        element: BasicTypeEnum<'ctx>,
        count: usize,
    ) -> Self {
        let words = count > 1 && element == e.int(8).into() && goes_on_in_words(argument);
        let (of, phis) = if words {
            (e.int(32).into(), count.div_ceil(BYTES))
        } else {
            (element, count)
        };
        let phis = (0..phis).map(|_| e.phi(of)).collect();
        Self { phis, count, words }
    }

    /// The registers; every phi of the block has been made.
    pub(crate) fn registers(&self, e: &Emitter<'ctx>) -> Vec<V<'ctx>> {
        let phis = self.phis.iter().map(|phi| phi.as_basic_value());
        if !self.words {
            return phis.collect();
        }
        let four = e.vector(e.int(8).into(), BYTES as u32).into();
        phis.flat_map(|word| e.unpack(e.bitcast(word, four)))
            .take(self.count)
            .collect()
    }

    /// Adds what flows in from the block `from`, which is the current one.
    pub(crate) fn flow(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        registers: &[V<'ctx>],
        from: BasicBlock<'ctx>,
    ) {
        let words = self.words.then(|| packed(e, hooks, registers, BYTES));
        let values = words.as_deref().unwrap_or(registers);
        for (phi, value) in self.phis.iter().zip(values) {
            phi.add_incoming(&[(value, from)]);
        }
    }
}

/// Whether operations take a value, and all do in words. Branches only pass it on.
fn goes_on_in_words<'c: 'a, 'a>(value: Value<'c, 'a>) -> bool {
    let mut takers = value
        .users()
        .filter(|user| !matches!(Op::of(*user), Some(Op::Cf(_))))
        .peekable();
    takers.peek().is_some() && takers.all(takes_words)
}

/// Whether the code of an operation takes bytes as words if they come as such.
fn takes_words(op: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(op),
        Some(
            Op::Ttg(ttg::Op::ConvertLayout(_) | ttg::Op::LocalStore(_) | ttg::Op::LocalAlloc(_))
                | Op::Tt(tt::Op::Store(_))
                | Op::Arith(
                    arith::Op::AddI(_)
                        | arith::Op::SubI(_)
                        | arith::Op::AndI(_)
                        | arith::Op::OrI(_)
                        | arith::Op::XOrI(_)
                )
        )
    )
}
