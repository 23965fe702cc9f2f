//! How the type of one value of an operation follows from that of another.

use melior::ir::Type;

/// A value of an operation, by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRef {
    /// An operand group.
    Operand(usize),
    /// A result group.
    Result(usize),
}

/// Derives one type from another; `None` if the first one is not of the expected form.
pub type TypeTransform = for<'c> fn(Type<'c>) -> Option<Type<'c>>;

/// `transform(type(from)) == type(to)`, where both are present.
pub struct Relation {
    /// A description.
    pub summary: &'static str,
    /// The known value.
    pub from: ValueRef,
    /// The derived value.
    pub to: ValueRef,
    /// From one type to the other.
    pub transform: TypeTransform,
}
