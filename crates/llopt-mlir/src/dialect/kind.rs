//! Attribute kinds and type kinds: a mnemonic, a list of parameters that are attributes, and the
//! functions that parse, print and verify them.
//!
//! An attribute or type defined from Rust is uniqued on (kind, parameters), so equality is pointer equality. A
//! parameter may be absent. Integers, names, shapes and element types are stored as builtin attributes
//! (`IntegerAttr`, `StringAttr`, `DenseI64ArrayAttr`, `TypeAttr`), so that aliases, walks over sub-elements,
//! replacement and bytecode work for every kind without further code.

use crate::{
    asm::{AsmParser, AsmPrinter, Parsed},
    diagnostic::{Complaint, Reported},
    ffi,
};
use melior::{
    Context,
    ir::{Attribute, AttributeLike, Location, Type, TypeLike},
};
use std::any::Any;

/// Data that a table attaches to a spec for its generic hooks.
pub type SpecData = &'static (dyn Any + Send + Sync);

/// Verifies parameters before an attribute or type is made.
pub type VerifyParametersFn<S> = for<'c> fn(&'static S, Parameters<'c>) -> Result<(), Complaint>;

/// Verifies an attribute as the encoding of a tensor type of this shape and element type.
pub type VerifyEncodingFn =
    for<'c> fn(&'static AttributeSpec, Attribute<'c>, &[i64], Type<'c>) -> Result<(), Complaint>;

/// An attribute kind, `#dialect.mnemonic…`.
pub struct AttributeSpec {
    /// The name after the namespace, e.g. `blocked`.
    pub mnemonic: &'static str,
    /// Data for the generic hooks of a table.
    pub data: Option<SpecData>,
    /// Parameter names in order, for reference pages and messages.
    pub parameters: &'static [&'static str],
    /// Parses what follows the mnemonic. The second argument is the type that the context
    /// expects, if any. Use [`AttributeSpec::get_checked`] to make the attribute.
    pub parse: for<'c> fn(
        &'static AttributeSpec,
        &mut AsmParser<'c, '_>,
        Option<Type<'c>>,
    ) -> Parsed<Attribute<'c>>,
    /// Prints what follows the mnemonic.
    pub print: for<'c> fn(&'static AttributeSpec, Attribute<'c>, &mut AsmPrinter<'c, '_>),
    /// Verifies parameters; also runs on bytecode.
    pub verify: Option<VerifyParametersFn<AttributeSpec>>,
    /// Verifies the attribute as the encoding of a tensor type of this shape and element type.
    pub verify_encoding: Option<VerifyEncodingFn>,
    /// The name of the alias under which modules define the attribute (`blocked` for
    /// `#blocked = …`). Neither a dot nor a trailing digit is allowed.
    pub alias: Option<&'static str>,
}

/// A type kind, `!dialect.mnemonic…`.
pub struct TypeSpec {
    /// The name after the namespace, e.g. `memdesc`.
    pub mnemonic: &'static str,
    /// Data for the generic hooks of a table.
    pub data: Option<SpecData>,
    /// Parameter names in order, for reference pages and messages.
    pub parameters: &'static [&'static str],
    /// Parses what follows the mnemonic. Use [`TypeSpec::get_checked`] to make the type.
    pub parse: for<'c> fn(&'static TypeSpec, &mut AsmParser<'c, '_>) -> Parsed<Type<'c>>,
    /// Prints what follows the mnemonic.
    pub print: for<'c> fn(&'static TypeSpec, Type<'c>, &mut AsmPrinter<'c, '_>),
    /// Verifies parameters; also runs on bytecode.
    pub verify: Option<VerifyParametersFn<TypeSpec>>,
    /// The name of the alias under which modules define the type.
    pub alias: Option<&'static str>,
}

/// The parameters of an attribute or type defined from Rust; each may be absent.
#[derive(Clone, Copy)]
pub struct Parameters<'c> {
    raw: &'c [mlir_sys::MlirAttribute],
}

impl<'c> Parameters<'c> {
    /// # Safety
    /// The attributes live as long as their context, `'c`.
    pub(crate) unsafe fn from_raw(raw: &'c [mlir_sys::MlirAttribute]) -> Self {
        Self { raw }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The parameter at a position, `None` when absent or past the end.
    pub fn get(&self, index: usize) -> Option<Attribute<'c>> {
        // SAFETY: elements are live attributes or null.
        self.raw
            .get(index)
            .and_then(|raw| unsafe { Attribute::from_option_raw(*raw) })
    }

    /// All parameters in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<Attribute<'c>>> + use<'c> {
        // SAFETY: elements are live attributes or null.
        self.raw
            .iter()
            .map(|raw| unsafe { Attribute::from_option_raw(*raw) })
    }
}

fn raw_parameters(parameters: &[Option<Attribute<'_>>]) -> Vec<mlir_sys::MlirAttribute> {
    parameters
        .iter()
        .map(|parameter| match parameter {
            Some(attribute) => attribute.to_raw(),
            None => mlir_sys::MlirAttribute {
                ptr: std::ptr::null_mut(),
            },
        })
        .collect()
}

/// Both kinds of kinds share their constructors.
macro_rules! kind_constructors {
    ($spec:ident, $object:ident, $get:ident, $spec_of:ident, $parameters_of:ident, $is_verified:ident, $set_verified:ident, $what:literal) => {
        impl $spec {
            #[doc = concat!("Makes ", $what, " without verifying the parameters.")]
            ///
            /// # Panics
            /// When the dialect of the spec is not loaded in the context: a bug of the caller,
            /// since specs are only reachable through their dialect.
            pub fn get<'c>(
                &'static self,
                context: &'c Context,
                parameters: &[Option<Attribute<'c>>],
            ) -> $object<'c> {
                let parameters = raw_parameters(parameters);
                // SAFETY: parameters are attributes of this context; null is checked.
                unsafe {
                    $object::from_option_raw(ffi::$get(
                        context.to_raw(),
                        std::ptr::from_ref(self).cast(),
                        parameters.as_ptr(),
                        parameters.len() as isize,
                    ))
                }
                .unwrap_or_else(|| panic!("the dialect of `{}` is not loaded", self.mnemonic))
            }

            #[doc = concat!("Makes ", $what, " after verifying the parameters.")]
            ///
            /// # Errors
            /// What the verifier complains about, not reported yet.
            pub fn try_get<'c>(
                &'static self,
                context: &'c Context,
                parameters: &[Option<Attribute<'c>>],
            ) -> Result<$object<'c>, Complaint> {
                // An attribute or type is a value of the context: creating it before it is verified does no harm as
                // long as it is not used.
                let object = self.get(context, parameters);
                let Some(verify) = self.verify else {
                    return Ok(object);
                };
                // SAFETY: the object is of a kind of ours.
                if unsafe { ffi::$is_verified(object.to_raw()) } {
                    return Ok(object);
                }
                verify(self, Self::parameters_of(object))?;
                // SAFETY: as above.
                unsafe { ffi::$set_verified(object.to_raw()) };
                Ok(object)
            }

            #[doc = concat!("Makes ", $what, " after verifying the parameters.")]
            ///
            /// # Errors
            /// What the verifier complains about, already reported at `location`.
            pub fn get_checked<'c>(
                &'static self,
                location: Location<'c>,
                parameters: &[Option<Attribute<'c>>],
            ) -> Result<$object<'c>, Reported> {
                self.try_get(crate::ir::context(location.context()), parameters)
                    .map_err(|complaint| complaint.report_at(location))
            }

            #[doc = concat!("Whether ", $what, " is of this kind.")]
            pub fn is(&'static self, object: $object<'_>) -> bool {
                Self::of(object).is_some_and(|spec| std::ptr::eq(spec, self))
            }

            #[doc = concat!("The kind of ", $what, ", `None` when it is of no dialect of ours.")]
            pub fn of(object: $object<'_>) -> Option<&'static Self> {
                // SAFETY: the bridge returns null or the address of a registered spec.
                unsafe { ffi::$spec_of(object.to_raw()).cast::<Self>().as_ref() }
            }

            #[doc = concat!("The parameters of ", $what, " of any kind of ours; empty for others.")]
            pub fn parameters_of(object: $object<'_>) -> Parameters<'_> {
                let mut data = std::ptr::null();
                let mut count = 0;
                // SAFETY: parameters live in the context's uniquer, as long as `'c`.
                unsafe {
                    ffi::$parameters_of(object.to_raw(), &mut data, &mut count);
                    Parameters::from_raw(ffi::slice(data, count))
                }
            }
        }
    };
}

kind_constructors!(
    AttributeSpec,
    Attribute,
    llopt_attribute_get,
    llopt_attribute_spec,
    llopt_attribute_parameters,
    llopt_attribute_is_verified,
    llopt_attribute_set_verified,
    "an attribute"
);
impl AttributeSpec {
    /// The number that was stored with an attribute defined from Rust; initially zero, and zero for other attributes.
    /// It must follow from the attribute alone: threads that work on one context share it.
    pub fn memo(attribute: Attribute<'_>) -> u64 {
        // SAFETY: the attribute is live.
        unsafe { ffi::llopt_attribute_memo(attribute.to_raw()) }
    }

    /// Stores a number with an attribute defined from Rust; it replaces the earlier one.
    pub fn set_memo(attribute: Attribute<'_>, memo: u64) {
        // SAFETY: the attribute is live.
        unsafe { ffi::llopt_attribute_set_memo(attribute.to_raw(), memo) }
    }
}
kind_constructors!(
    TypeSpec,
    Type,
    llopt_type_get,
    llopt_type_spec,
    llopt_type_parameters,
    llopt_type_is_verified,
    llopt_type_set_verified,
    "a type"
);
