//! The slots that an op reads and that can contain the result of a product.

use crate::machine::bytecode::{AccessKind, Async, Collective, Op, Slot};

/// Calls for each slot that an op reads and that can contain a result.
pub(crate) fn for_each_read(op: &Op, mut read: impl FnMut(Slot)) {
    let mut all = |slots: &[Slot]| slots.iter().for_each(|slot| read(*slot));
    match op {
        Op::Map1 { a, .. } => all(&[*a]),
        Op::Map2 { a, b, .. } => all(&[*a, *b]),
        Op::Map3 { a, b, c, .. } => all(&[*a, *b, *c]),
        Op::Access(access) if access.kind == AccessKind::Store => {
            access.parts.iter().for_each(|part| read(part.slot))
        }
        Op::Atomic(atomic) => {
            all(&atomic.value);
            all(&atomic.compare);
        }
        Op::Tiles(tiles) if tiles.kind == AccessKind::Store => all(&tiles.registers),
        Op::Call(call) => call.arguments.iter().for_each(|(_, here)| read(*here)),
        Op::Collective(meeting) => match &meeting.what {
            Collective::Shuffle { value, .. }
            | Collective::Match { value, .. }
            | Collective::Reduce { value, .. } => all(&[*value]),
            Collective::Vote { predicate, .. } => all(&[*predicate]),
            _ => {}
        },
        Op::Async(what, _) => {
            if let Async::StoreLater { words, .. } = &**what {
                all(words);
            }
        }
        Op::Copy { .. }
        | Op::Access(_)
        | Op::Tiles(_)
        | Op::Special { .. }
        | Op::Guard { .. }
        | Op::TransposeLoad(_)
        | Op::Barrier(..)
        | Op::Alloca { .. }
        | Op::Fence(..)
        | Op::GridWait(_)
        | Op::Nothing
        | Op::Trap(_)
        | Op::Print(_)
        | Op::Expect(_)
        | Op::Life(_) => {}
    }
}
