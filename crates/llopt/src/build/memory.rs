//! Loads, stores and atomics.

use std::panic::Location as Caller;

use llopt_dialects::check::relation;
use llopt_dialects::tt::{self, CacheModifier, EvictionPolicy, MemSemantic, MemSyncScope, RmwOp};
use melior::ir::{Value as Raw, ValueLike};

use super::kernel::At;
use super::{Element, Operand, Value};

/// Hints for a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// The caches that keep the line.
    pub cache: CacheModifier,
    /// The eviction priority.
    pub eviction: EvictionPolicy,
    /// Whether the load must be neither omitted nor repeated.
    pub volatile: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            cache: CacheModifier::None,
            eviction: EvictionPolicy::Normal,
            volatile: false,
        }
    }
}

/// Hints for a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// The caches that keep the line.
    pub cache: CacheModifier,
    /// The eviction priority.
    pub eviction: EvictionPolicy,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache: CacheModifier::None,
            eviction: EvictionPolicy::Normal,
        }
    }
}

/// The memory ordering of an atomic update.
#[derive(Clone, Copy, Debug)]
pub struct AtomicOptions {
    /// The direction of the ordering.
    pub semantic: MemSemantic,
    /// The threads for which it holds.
    pub scope: MemSyncScope,
}

impl Default for AtomicOptions {
    /// Acquire and release, at the scope of the whole GPU.
    fn default() -> Self {
        Self {
            semantic: MemSemantic::AcquireRelease,
            scope: MemSyncScope::Gpu,
        }
    }
}

impl<'k> Value<'k> {
    /// Loads the values that the pointers point to.
    #[track_caller]
    pub fn load(self) -> Self {
        let at = Caller::caller();
        let loaded = self
            .raw()
            .map(|pointer| self.load_at(at, pointer, None, None, LoadOptions::default()));
        loaded.unwrap_or(self)
    }

    /// Loads the values that the pointers point to where the mask holds; the result is `other` elsewhere, where
    /// nothing is read.
    #[track_caller]
    pub fn load_where(self, mask: Self, other: impl Operand<'k>) -> Self {
        self.masked_load(Caller::caller(), mask, other, LoadOptions::default())
    }

    /// As [`Value::load_where`], with hints.
    #[track_caller]
    pub fn load_where_with(
        self,
        mask: Self,
        other: impl Operand<'k>,
        options: LoadOptions,
    ) -> Self {
        self.masked_load(Caller::caller(), mask, other, options)
    }

    fn masked_load(
        self,
        at: At,
        mask: Self,
        other: impl Operand<'k>,
        options: LoadOptions,
    ) -> Self {
        let kernel = self.kernel;
        let met = self.raw().and_then(|pointer| {
            let mask = kernel.own(at, mask)?;
            let [pointer, mask] = kernel.meet(at, pointer, mask)?;
            let Some(pointee) = relation::pointee(pointer.r#type()) else {
                kernel.fail(at, format!("{} is no pointer", pointer.r#type()));
                return None;
            };
            let other = other.place(kernel, pointee, at).raw()?;
            let [pointer, other] = kernel.meet(at, pointer, other)?;
            let [mask, other] = kernel.meet(at, mask, other)?;
            Some((pointer, mask, other))
        });
        match met {
            Some((pointer, mask, other)) => {
                self.load_at(at, pointer, Some(mask), Some(other), options)
            }
            None => kernel.broken(),
        }
    }

    fn load_at(
        self,
        at: At,
        pointer: Raw<'k, 'k>,
        mask: Option<Raw<'k, 'k>>,
        other: Option<Raw<'k, 'k>>,
        options: LoadOptions,
    ) -> Self {
        let kernel = self.kernel;
        let Some(pointee) = relation::pointee(pointer.r#type()) else {
            return kernel.fail(at, format!("{} is no pointer", pointer.r#type()));
        };
        if let Some(other) = other.filter(|other| other.r#type() != pointee) {
            let other = other.r#type();
            return kernel.fail(at, format!("{pointee} is loaded, or {other} instead"));
        }
        kernel.one(tt::LoadOp::build(
            kernel.place(at),
            pointer,
            mask,
            other,
            &[],
            None,
            options.cache,
            options.eviction,
            options.volatile,
        ))
    }

    /// Stores to the locations that the pointers point to.
    #[track_caller]
    pub fn store(self, value: impl Operand<'k>) {
        self.store_at(Caller::caller(), value, None, StoreOptions::default());
    }

    /// Stores to the locations that the pointers point to where the mask holds.
    #[track_caller]
    pub fn store_where(self, value: impl Operand<'k>, mask: Self) {
        self.store_at(Caller::caller(), value, Some(mask), StoreOptions::default());
    }

    /// As [`Value::store_where`], with hints.
    #[track_caller]
    pub fn store_where_with(self, value: impl Operand<'k>, mask: Self, options: StoreOptions) {
        self.store_at(Caller::caller(), value, Some(mask), options);
    }

    fn store_at(self, at: At, value: impl Operand<'k>, mask: Option<Self>, options: StoreOptions) {
        let kernel = self.kernel;
        let Some((pointer, value, mask)) = self.update_operands(at, value, mask) else {
            return;
        };
        kernel.append(tt::StoreOp::build(
            kernel.place(at),
            pointer,
            value,
            mask,
            &[],
            options.cache,
            options.eviction,
        ));
    }

    /// Updates the locations that the pointers point to, and returns the old values. `RmwOp::Add` adds integers,
    /// `RmwOp::Fadd` floating-point numbers; `Max` and `Min` compare signed integers.
    #[track_caller]
    pub fn atomic(self, op: RmwOp, value: impl Operand<'k>) -> Self {
        self.atomic_at(Caller::caller(), op, value, None, AtomicOptions::default())
    }

    /// As [`Value::atomic`] where the mask holds; the result is undefined elsewhere.
    #[track_caller]
    pub fn atomic_where(self, op: RmwOp, value: impl Operand<'k>, mask: Self) -> Self {
        let options = AtomicOptions::default();
        self.atomic_at(Caller::caller(), op, value, Some(mask), options)
    }

    /// As [`Value::atomic_where`], with another memory ordering.
    #[track_caller]
    pub fn atomic_where_with(
        self,
        op: RmwOp,
        value: impl Operand<'k>,
        mask: Self,
        options: AtomicOptions,
    ) -> Self {
        self.atomic_at(Caller::caller(), op, value, Some(mask), options)
    }

    fn atomic_at(
        self,
        at: At,
        op: RmwOp,
        value: impl Operand<'k>,
        mask: Option<Self>,
        options: AtomicOptions,
    ) -> Self {
        let kernel = self.kernel;
        let Some((pointer, value, mask)) = self.update_operands(at, value, mask) else {
            return kernel.broken();
        };
        kernel.one(tt::AtomicRmwOp::build(
            kernel.place(at),
            value.r#type(),
            op,
            pointer,
            value,
            mask,
            options.semantic,
            options.scope,
        ))
    }

    /// Writes `value` where memory equals `expected`, atomically, and returns the old value. Acquire and release, at
    /// the scope of the whole GPU.
    #[track_caller]
    pub fn compare_and_swap(self, expected: impl Operand<'k>, value: impl Operand<'k>) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let operands =
            self.update_operands(at, expected, None)
                .and_then(|(pointer, expected, _)| {
                    let this = Value::new(kernel, Some(pointer));
                    let (pointer, value, _) = this.update_operands(at, value, None)?;
                    let [pointer, expected] = kernel.meet(at, pointer, expected)?;
                    Some((pointer, expected, value))
                });
        let Some((pointer, expected, value)) = operands else {
            return kernel.broken();
        };
        let AtomicOptions { semantic, scope } = AtomicOptions::default();
        kernel.one(tt::AtomicCasOp::build(
            kernel.place(at),
            value.r#type(),
            pointer,
            expected,
            value,
            semantic,
            scope,
        ))
    }

    /// Pointer, value and mask in one shape, the value with the pointee type.
    #[allow(
        clippy::type_complexity,
        reason = "three operands, one of which may be missing"
    )]
    fn update_operands(
        self,
        at: At,
        value: impl Operand<'k>,
        mask: Option<Self>,
    ) -> Option<(Raw<'k, 'k>, Raw<'k, 'k>, Option<Raw<'k, 'k>>)> {
        let kernel = self.kernel;
        let mut pointer = self.raw()?;
        let Some(pointee) = relation::pointee(pointer.r#type()) else {
            kernel.fail(at, format!("{} is no pointer", pointer.r#type()));
            return None;
        };
        let mut value = value.place(kernel, pointee, at).raw()?;
        [pointer, value] = kernel.meet(at, pointer, value)?;
        let mut masked = None;
        if let Some(mask) = mask {
            let mask = kernel.own(at, mask)?;
            let [met, mask] = kernel.meet(at, pointer, mask)?;
            pointer = met;
            let [met, mask] = kernel.meet(at, value, mask)?;
            value = met;
            if Value::new(kernel, Some(mask)).element() != Some(Element::I1) {
                kernel.fail(at, format!("a mask of {}: it must be i1", mask.r#type()));
                return None;
            }
            masked = Some(mask);
        }
        if relation::pointee(pointer.r#type()) != Some(value.r#type()) {
            let (pointer, value) = (pointer.r#type(), value.r#type());
            kernel.fail(at, format!("{value} cannot be written through {pointer}"));
            return None;
        }
        Some((pointer, value, masked))
    }
}
