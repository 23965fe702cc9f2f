//! A pool of contexts.
//!
//! To make a context for one small module costs more than to compile the module: dialects register hundreds of
//! operations in it, and dropping the context frees them all. So a context returns to a [`ContextPool`] after use, and the
//! next user, in any thread, takes it from there. There are never more contexts than were in use at the same time.
//!
//! A context keeps only what is the same for every module: dialects, and attributes, types and locations, each of
//! which is made once and never freed. It would grow without limit, so after a number of uses it is dropped instead.

use melior::Context;
use std::{
    ops::Deref,
    sync::{Mutex, PoisonError},
};

/// A pool of contexts that are all made in the same way.
pub struct ContextPool {
    waiting: Mutex<Vec<Kept>>,
    /// The number of uses after which a context is dropped.
    uses: u32,
}

/// A context, and the number of uses that it has left.
struct Kept {
    context: Context,
    left: u32,
}

// SAFETY: a context without threads of its own has no state of a thread, and only one owner uses it at a time.
unsafe impl Send for Kept {}

impl ContextPool {
    /// An empty pool for contexts that are used `uses` times, at least once.
    pub const fn new(uses: u32) -> Self {
        Self {
            waiting: Mutex::new(Vec::new()),
            uses,
        }
    }

    /// A context from the pool, or a new one by `make`.
    ///
    /// Requires: `make` returns equal contexts, with multi-threading disabled.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn take<E>(&self, make: impl FnOnce() -> Result<Context, E>) -> Result<Taken<'_>, E> {
        let kept = self.lock().pop();
        let kept = match kept {
            Some(kept) => kept,
            None => Kept {
                context: make()?,
                left: self.uses,
            },
        };
        Ok(Taken {
            pool: self,
            kept: Some(kept),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A context in use. Dropping this returns it to the pool.
pub struct Taken<'s> {
    pool: &'s ContextPool,
    kept: Option<Kept>,
}

impl Deref for Taken<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        let kept = self.kept.as_ref();
        &kept
            .expect("bug in llopt: a context leaves only when it is dropped")
            .context
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // A panic may have left the context in an inconsistent state.
        if std::thread::panicking() {
            return;
        }
        if let Some(mut kept) = self.kept.take() {
            kept.left = kept.left.saturating_sub(1);
            if kept.left > 0 {
                self.pool.lock().push(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn make() -> Result<Context, Infallible> {
        let context = Context::new();
        context.enable_multi_threading(false);
        Ok(context)
    }

    #[test]
    fn a_context_is_used_again_but_not_for_ever() {
        let pool = ContextPool::new(2);
        let mut made = 0;
        for expected in [1, 1, 2, 2] {
            let taken = pool.take(|| {
                made += 1;
                make()
            });
            drop(taken);
            assert_eq!(made, expected);
        }
    }

    #[test]
    fn contexts_in_use_at_once_are_different() -> Result<(), Infallible> {
        let pool = ContextPool::new(8);
        let (one, other) = (pool.take(make)?, pool.take(make)?);
        assert!(*one != *other);
        Ok(())
    }
}
