//! The words that a matrix instruction takes side by side.
//!
//! An operand of a matrix instruction has its words in registers side by side, and so has a load of several words. In the
//! layout of a factor the words `2i` and `2i + 1` of a thread are of the same operand:
//!
//! ```text
//!   operand                 load of two words        moves
//!   w0 w1                   w0 w1                    none
//!   w0 w1                   w0 w2, w1 w3             each word
//! ```

use llopt_layout::plan::SharedAccess;
use llopt_target::Target;

/// What it takes a warp to bring together the words of a matrix instruction's operand that loads of a factor have put
/// elsewhere.
#[must_use]
pub fn price_of_pairs(load: &SharedAccess, target: Target) -> f32 {
    let instruction = &load.instruction;
    let per_word = (u32::BITS / instruction.element_bits).max(1);
    let words = (1u32 << instruction.registers_log2()) / per_word;
    if words < 2 || load.register(0, per_word) ^ load.register(0, 0) == per_word {
        return 0.0;
    }
    (load.instructions * words) as f32 * target.movement_costs().arithmetic
}
