//! Reading and creating builtin attributes.
//!
//! Every accessor returns `None` for an attribute of another kind, so a chain of `?` reads
//! untrusted IR safely. Integers come as 64 bits; anything wider returns `None`.

use crate::ffi;
use melior::{
    Context,
    ir::{Attribute, AttributeLike, Type},
};
use mlir_sys::*;

/// The raw form of an optional attribute.
pub(crate) fn raw_attribute(attribute: Option<Attribute<'_>>) -> mlir_sys::MlirAttribute {
    match attribute {
        Some(attribute) => attribute.to_raw(),
        None => mlir_sys::MlirAttribute {
            ptr: std::ptr::null_mut(),
        },
    }
}

/// Reading builtin attributes.
pub trait AttributeExt<'c>: Copy {
    /// The context.
    fn ctx(self) -> &'c Context;
    /// An integer attribute, sign extended (zero extended for unsigned types and `i1`).
    fn as_i64(self) -> Option<i64>;
    /// An integer attribute as a narrower number.
    fn as_int<T: TryFrom<i64>>(self) -> Option<T> {
        T::try_from(self.as_i64()?).ok()
    }
    /// A boolean attribute (`true`, `false`).
    fn as_bool(self) -> Option<bool>;
    /// A float attribute as a double; exact for all formats up to `f64`.
    fn as_f64(self) -> Option<f64>;
    /// The bits of an integer or float attribute, zero extended.
    fn as_bits(self) -> Option<u64>;
    /// The type of a typed attribute (integers, floats, dense elements, strings); `none` type for
    /// untyped ones.
    fn value_type(self) -> Type<'c>;
    /// The text of a string attribute that is UTF-8.
    fn as_str(self) -> Option<&'c str>;
    /// The bytes of a string attribute.
    fn as_bytes(self) -> Option<&'c [u8]>;
    /// The type in a type attribute.
    fn as_type(self) -> Option<Type<'c>>;
    /// The elements of an array attribute.
    fn as_array(self) -> Option<Vec<Attribute<'c>>>;
    /// The numbers of a dense `i32` array attribute.
    fn as_i32_array(self) -> Option<Vec<i32>>;
    /// The numbers of a dense `i64` array attribute.
    fn as_i64_array(self) -> Option<Vec<i64>>;
    /// The booleans of a dense `i1` array attribute.
    fn as_bool_array(self) -> Option<Vec<bool>>;
    /// Integers of a dense array of 8, 16, 32 or 64 bits or of an array of integer attributes.
    fn as_integers(self) -> Option<Vec<i64>>;
    /// The entries of a dictionary.
    fn as_dictionary(self) -> Option<Vec<(&'c str, Attribute<'c>)>>;
    /// An entry of a dictionary.
    fn get(self, name: &str) -> Option<Attribute<'c>>;
    /// The name in a flat symbol reference.
    fn as_symbol(self) -> Option<&'c str>;
    /// Whether this is the unit attribute.
    fn is_unit_attr(self) -> bool;
    /// The bits of the one value of a splat constant, zero extended.
    fn splat_bits(self) -> Option<u64>;
    /// The bits of all elements of a dense constant in row-major order, zero extended.
    fn dense_bits(self) -> Option<Vec<u64>>;
}

// SAFETY, for all of the impl: attributes live as long as their context; every accessor is called
// only after the test for its kind, with positions in range.
impl<'c> AttributeExt<'c> for Attribute<'c> {
    fn ctx(self) -> &'c Context {
        super::context(self.context())
    }

    fn as_i64(self) -> Option<i64> {
        let mut value = 0;
        unsafe { ffi::llopt_integer_attribute_value(self.to_raw(), &mut value) }.then_some(value)
    }

    fn as_bool(self) -> Option<bool> {
        unsafe { mlirAttributeIsABool(self.to_raw()).then(|| mlirBoolAttrGetValue(self.to_raw())) }
    }

    fn as_f64(self) -> Option<f64> {
        unsafe {
            mlirAttributeIsAFloat(self.to_raw()).then(|| mlirFloatAttrGetValueDouble(self.to_raw()))
        }
    }

    fn as_bits(self) -> Option<u64> {
        let mut bits = 0;
        unsafe { ffi::llopt_attribute_bits(self.to_raw(), &mut bits) }.then_some(bits)
    }

    fn value_type(self) -> Type<'c> {
        unsafe { Type::from_raw(mlirAttributeGetType(self.to_raw())) }
    }

    fn as_str(self) -> Option<&'c str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    fn as_bytes(self) -> Option<&'c [u8]> {
        unsafe {
            mlirAttributeIsAString(self.to_raw())
                .then(|| ffi::bytes(mlirStringAttrGetValue(self.to_raw())))
        }
    }

    fn as_type(self) -> Option<Type<'c>> {
        unsafe {
            mlirAttributeIsAType(self.to_raw())
                .then(|| Type::from_raw(mlirTypeAttrGetValue(self.to_raw())))
        }
    }

    fn as_array(self) -> Option<Vec<Attribute<'c>>> {
        let raw = self.to_raw();
        unsafe {
            mlirAttributeIsAArray(raw).then(|| {
                (0..mlirArrayAttrGetNumElements(raw))
                    .map(|index| Attribute::from_raw(mlirArrayAttrGetElement(raw, index)))
                    .collect()
            })
        }
    }

    fn as_i32_array(self) -> Option<Vec<i32>> {
        let raw = self.to_raw();
        unsafe {
            mlirAttributeIsADenseI32Array(raw).then(|| {
                (0..mlirDenseArrayGetNumElements(raw))
                    .map(|index| mlirDenseI32ArrayGetElement(raw, index))
                    .collect()
            })
        }
    }

    fn as_i64_array(self) -> Option<Vec<i64>> {
        let raw = self.to_raw();
        unsafe {
            mlirAttributeIsADenseI64Array(raw).then(|| {
                (0..mlirDenseArrayGetNumElements(raw))
                    .map(|index| mlirDenseI64ArrayGetElement(raw, index))
                    .collect()
            })
        }
    }

    fn as_bool_array(self) -> Option<Vec<bool>> {
        let raw = self.to_raw();
        unsafe {
            mlirAttributeIsADenseBoolArray(raw).then(|| {
                (0..mlirDenseArrayGetNumElements(raw))
                    .map(|index| mlirDenseBoolArrayGetElement(raw, index))
                    .collect()
            })
        }
    }

    fn as_integers(self) -> Option<Vec<i64>> {
        let raw = self.to_raw();
        if let Some(values) = self.as_i64_array() {
            return Some(values);
        }
        if let Some(values) = self.as_i32_array() {
            return Some(values.into_iter().map(i64::from).collect());
        }
        if let Some(elements) = self.as_array() {
            return elements.into_iter().map(AttributeExt::as_i64).collect();
        }
        unsafe {
            if mlirAttributeIsADenseI16Array(raw) {
                Some(
                    (0..mlirDenseArrayGetNumElements(raw))
                        .map(|index| i64::from(mlirDenseI16ArrayGetElement(raw, index)))
                        .collect(),
                )
            } else if mlirAttributeIsADenseI8Array(raw) {
                Some(
                    (0..mlirDenseArrayGetNumElements(raw))
                        .map(|index| i64::from(mlirDenseI8ArrayGetElement(raw, index)))
                        .collect(),
                )
            } else {
                None
            }
        }
    }

    fn as_dictionary(self) -> Option<Vec<(&'c str, Attribute<'c>)>> {
        let raw = self.to_raw();
        unsafe {
            mlirAttributeIsADictionary(raw).then(|| {
                (0..mlirDictionaryAttrGetNumElements(raw))
                    .map(|index| {
                        let entry = mlirDictionaryAttrGetElement(raw, index);
                        (
                            ffi::text(mlirIdentifierStr(entry.name)),
                            Attribute::from_raw(entry.attribute),
                        )
                    })
                    .collect()
            })
        }
    }

    fn get(self, name: &str) -> Option<Attribute<'c>> {
        let raw = self.to_raw();
        unsafe {
            if !mlirAttributeIsADictionary(raw) {
                return None;
            }
            Attribute::from_option_raw(mlirDictionaryAttrGetElementByName(
                raw,
                ffi::string_ref(name),
            ))
        }
    }

    fn as_symbol(self) -> Option<&'c str> {
        unsafe {
            mlirAttributeIsAFlatSymbolRef(self.to_raw())
                .then(|| ffi::text(mlirFlatSymbolRefAttrGetValue(self.to_raw())))
        }
    }

    fn is_unit_attr(self) -> bool {
        unsafe { mlirAttributeIsAUnit(self.to_raw()) }
    }

    fn splat_bits(self) -> Option<u64> {
        let mut bits = 0;
        unsafe { ffi::llopt_dense_is_splat(self.to_raw(), &mut bits) }.then_some(bits)
    }

    fn dense_bits(self) -> Option<Vec<u64>> {
        let raw = self.to_raw();
        unsafe {
            if !mlirAttributeIsADenseElements(raw) {
                return None;
            }
            let mut bits = vec![0; mlirElementsAttrGetNumElements(raw) as usize];
            ffi::llopt_dense_bits(raw, bits.as_mut_ptr(), bits.len() as isize).then_some(bits)
        }
    }
}

/// Creating builtin attributes.
pub mod attr {
    use crate::ffi;
    use melior::{
        Context,
        ir::{Attribute, AttributeLike, Identifier, Type, TypeLike, r#type::IntegerType},
    };
    use mlir_sys::*;

    /// `value : type` for an integer or index type; the bits beyond the type's width are cut off.
    pub fn integer<'c>(r#type: Type<'c>, value: i64) -> Attribute<'c> {
        // SAFETY: the type is live.
        unsafe { Attribute::from_raw(mlirIntegerAttrGet(r#type.to_raw(), value)) }
    }

    /// `value : i32`.
    pub fn i32(context: &Context, value: i32) -> Attribute<'_> {
        integer(IntegerType::new(context, 32).into(), value.into())
    }

    /// `value : i64`.
    pub fn i64(context: &Context, value: i64) -> Attribute<'_> {
        integer(IntegerType::new(context, 64).into(), value)
    }

    /// `true` or `false`.
    pub fn bool(context: &Context, value: bool) -> Attribute<'_> {
        // SAFETY: the context is live.
        unsafe { Attribute::from_raw(mlirBoolAttrGet(context.to_raw(), value.into())) }
    }

    /// A float of any format up to 64 bits from its bits; `None` for other types.
    pub fn float_bits<'c>(r#type: Type<'c>, bits: u64) -> Option<Attribute<'c>> {
        // SAFETY: the type is live; null is checked.
        unsafe {
            Attribute::from_option_raw(ffi::llopt_float_attribute_from_bits(r#type.to_raw(), bits))
        }
    }

    /// A float rounded from a double.
    pub fn float<'c>(context: &'c Context, r#type: Type<'c>, value: f64) -> Attribute<'c> {
        // SAFETY: context and type are live.
        unsafe {
            Attribute::from_raw(mlirFloatAttrDoubleGet(
                context.to_raw(),
                r#type.to_raw(),
                value,
            ))
        }
    }

    /// `"text"`.
    pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
        // SAFETY: the context is live; the text is copied.
        unsafe { Attribute::from_raw(mlirStringAttrGet(context.to_raw(), ffi::string_ref(text))) }
    }

    /// `@name`.
    pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
        // SAFETY: the context is live; the name is copied.
        unsafe {
            Attribute::from_raw(mlirFlatSymbolRefAttrGet(
                context.to_raw(),
                ffi::string_ref(name),
            ))
        }
    }

    /// A type as an attribute.
    pub fn r#type<'c>(r#type: Type<'c>) -> Attribute<'c> {
        // SAFETY: the type is live.
        unsafe { Attribute::from_raw(mlirTypeAttrGet(r#type.to_raw())) }
    }

    /// `unit`.
    pub fn unit(context: &Context) -> Attribute<'_> {
        Attribute::unit(context)
    }

    /// `[a, b, …]`.
    pub fn array<'c>(context: &'c Context, elements: &[Attribute<'c>]) -> Attribute<'c> {
        let raw: Vec<_> = elements.iter().map(|element| element.to_raw()).collect();
        // SAFETY: context and elements are live; the array is copied.
        unsafe {
            Attribute::from_raw(mlirArrayAttrGet(
                context.to_raw(),
                raw.len() as isize,
                raw.as_ptr(),
            ))
        }
    }

    /// `array<i32: 1, 2>`.
    pub fn i32_array<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
        // SAFETY: the context is live; the array is copied.
        unsafe {
            Attribute::from_raw(mlirDenseI32ArrayGet(
                context.to_raw(),
                values.len() as isize,
                values.as_ptr(),
            ))
        }
    }

    /// `array<i64: 1, 2>`.
    pub fn i64_array<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
        // SAFETY: the context is live; the array is copied.
        unsafe {
            Attribute::from_raw(mlirDenseI64ArrayGet(
                context.to_raw(),
                values.len() as isize,
                values.as_ptr(),
            ))
        }
    }

    /// `array<i1: true, false>`.
    pub fn bool_array<'c>(context: &'c Context, values: &[bool]) -> Attribute<'c> {
        let raw: Vec<i32> = values.iter().map(|value| (*value).into()).collect();
        // SAFETY: the context is live; the array is copied.
        unsafe {
            Attribute::from_raw(mlirDenseBoolArrayGet(
                context.to_raw(),
                raw.len() as isize,
                raw.as_ptr(),
            ))
        }
    }

    /// `{name = value, …}`; a name given twice keeps its last value.
    pub fn dictionary<'c>(
        context: &'c Context,
        entries: &[(&str, Attribute<'c>)],
    ) -> Attribute<'c> {
        let mut unique: std::collections::BTreeMap<&str, Attribute<'c>> =
            std::collections::BTreeMap::new();
        for (name, value) in entries {
            unique.insert(name, *value);
        }
        let raw: Vec<_> = unique
            .into_iter()
            .map(|(name, value)| MlirNamedAttribute {
                name: Identifier::new(context, name).to_raw(),
                attribute: value.to_raw(),
            })
            .collect();
        // SAFETY: context and entries are live; the array is copied.
        unsafe {
            Attribute::from_raw(mlirDictionaryAttrGet(
                context.to_raw(),
                raw.len() as isize,
                raw.as_ptr(),
            ))
        }
    }

    /// A constant of a statically shaped type, one value for all elements, from its bits; `None`
    /// when the element type is no integer, index or float of at most 64 bits.
    pub fn splat<'c>(r#type: Type<'c>, bits: u64) -> Option<Attribute<'c>> {
        // SAFETY: the type is live; null is checked.
        unsafe { Attribute::from_option_raw(ffi::llopt_dense_from_bits(r#type.to_raw(), &bits, 1)) }
    }

    /// A constant of a statically shaped type from the bits of its elements in row-major order;
    /// `None` as for [`splat`], or when the count is wrong.
    pub fn dense<'c>(r#type: Type<'c>, bits: &[u64]) -> Option<Attribute<'c>> {
        // SAFETY: the type is live; null is checked.
        unsafe {
            Attribute::from_option_raw(ffi::llopt_dense_from_bits(
                r#type.to_raw(),
                bits.as_ptr(),
                bits.len() as isize,
            ))
        }
    }
}
