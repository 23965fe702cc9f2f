//! [`AsmPrinter`] and [`OpPrinter`].

use crate::ffi;
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, BlockRef, Location, OperationRef, RegionLike, RegionRef, Type,
        TypeLike, ValueLike,
    },
};
use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// The printer of attributes and types, and the shared half of [`OpPrinter`]. It implements
/// [`fmt::Write`], so `write!` works on it and cannot fail.
pub struct AsmPrinter<'c, 'p> {
    raw: ffi::LloptPrinter,
    context: &'c Context,
    life: PhantomData<&'p ()>,
}

impl fmt::Write for AsmPrinter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

fn raw_types(types: &[Type<'_>]) -> Vec<mlir_sys::MlirType> {
    types.iter().map(|r#type| r#type.to_raw()).collect()
}

impl<'c> AsmPrinter<'c, '_> {
    /// # Safety
    /// The printer is live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: ffi::LloptPrinter, context: &'c Context) -> Self {
        Self {
            raw,
            context,
            life: PhantomData,
        }
    }

    /// The context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// Text as it is.
    pub fn text(&mut self, text: &str) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_text(self.raw, ffi::string_ref(text)) }
    }

    /// Anything that displays itself.
    pub fn display(&mut self, value: impl fmt::Display) {
        use fmt::Write;
        // Writing text cannot fail, see `write_str`.
        let _ = write!(self, "{value}");
    }

    /// A new line, indented as the operation being printed.
    pub fn newline(&mut self) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_newline(self.raw) }
    }

    /// Indents new lines by two more spaces.
    pub fn increase_indent(&mut self) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_indent(self.raw, true) }
    }

    /// Undoes [`AsmPrinter::increase_indent`].
    pub fn decrease_indent(&mut self) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_indent(self.raw, false) }
    }

    /// A float that parses to the same value.
    pub fn float(&mut self, value: f64) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_float(self.raw, value) }
    }

    /// A type, by its alias if it has one.
    pub fn r#type(&mut self, r#type: Type<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_type(self.raw, r#type.to_raw()) }
    }

    /// Types separated by `, `.
    pub fn types(&mut self, types: &[Type<'c>]) {
        for (index, r#type) in types.iter().enumerate() {
            if index > 0 {
                self.text(", ");
            }
            self.r#type(*r#type);
        }
    }

    /// An attribute with its type, by its alias if it has one.
    pub fn attribute(&mut self, attribute: Attribute<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_attribute(self.raw, attribute.to_raw()) }
    }

    /// An attribute without its type, for where the type is known.
    pub fn attribute_without_type(&mut self, attribute: Attribute<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_attribute_without_type(self.raw, attribute.to_raw()) }
    }

    /// An attribute of a known kind: the alias, or what follows the mnemonic.
    pub fn stripped_attribute(&mut self, attribute: Attribute<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_stripped_attribute(self.raw, attribute.to_raw()) }
    }

    /// A type of a known kind: the alias, or what follows the mnemonic.
    pub fn stripped_type(&mut self, r#type: Type<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_stripped_type(self.raw, r#type.to_raw()) }
    }

    /// The alias of an attribute; false when it has none and nothing was printed.
    pub fn alias(&mut self, attribute: Attribute<'c>) -> bool {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_alias(self.raw, attribute.to_raw()) }
    }

    /// The alias of a type; false when it has none and nothing was printed.
    pub fn type_alias(&mut self, r#type: Type<'c>) -> bool {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_type_alias(self.raw, r#type.to_raw()) }
    }

    /// A keyword, quoted if it is none.
    pub fn keyword_or_string(&mut self, keyword: &str) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_keyword_or_string(self.raw, ffi::string_ref(keyword)) }
    }

    /// A quoted, escaped string.
    pub fn string(&mut self, string: &str) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_string(self.raw, ffi::string_ref(string)) }
    }

    /// `@name`, quoted if needed.
    pub fn symbol_name(&mut self, name: &str) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_printer_symbol_name(self.raw, ffi::string_ref(name)) }
    }

    /// ` -> type` or ` -> (type, …)` with a space in front; ` -> ()` for no types.
    pub fn arrow_type_list(&mut self, types: &[Type<'c>]) {
        let raw = raw_types(types);
        // SAFETY: the printer is live.
        unsafe {
            ffi::llopt_printer_arrow_type_list(self.raw, raw.as_ptr(), raw.len() as isize);
        }
    }

    /// `(type, …) -> type`.
    pub fn functional_type(&mut self, inputs: &[Type<'c>], results: &[Type<'c>]) {
        let (inputs, results) = (raw_types(inputs), raw_types(results));
        // SAFETY: the printer is live.
        unsafe {
            ffi::llopt_printer_functional_type(
                self.raw,
                inputs.as_ptr(),
                inputs.len() as isize,
                results.as_ptr(),
                results.len() as isize,
            );
        }
    }

    /// `4x?x8` without a trailing `x`, `?` for `i64::MIN`.
    pub fn dimension_list(&mut self, dimensions: &[i64]) {
        // SAFETY: the printer is live.
        unsafe {
            ffi::llopt_printer_dimension_list(
                self.raw,
                dimensions.as_ptr(),
                dimensions.len() as isize,
            );
        }
    }

    /// `[1, 2, 3]`.
    pub fn list<T: fmt::Display>(&mut self, values: &[T]) {
        self.text("[");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.text(", ");
            }
            self.display(value);
        }
        self.text("]");
    }
}

/// How a region is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionStyle {
    /// Whether the entry block shows its arguments.
    pub entry_arguments: bool,
    /// Whether terminators are shown.
    pub terminators: bool,
    /// Whether an empty entry block is shown.
    pub empty_block: bool,
}

impl Default for RegionStyle {
    fn default() -> Self {
        Self {
            entry_arguments: true,
            terminators: true,
            empty_block: false,
        }
    }
}

/// The printer of operations.
pub struct OpPrinter<'c, 'p> {
    base: AsmPrinter<'c, 'p>,
    raw: ffi::LloptOpPrinter,
}

impl<'c, 'p> Deref for OpPrinter<'c, 'p> {
    type Target = AsmPrinter<'c, 'p>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl DerefMut for OpPrinter<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.base
    }
}

impl<'c> OpPrinter<'c, '_> {
    /// # Safety
    /// The printer is live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: ffi::LloptOpPrinter, context: &'c Context) -> Self {
        Self {
            // SAFETY: the base is the same object.
            base: unsafe { AsmPrinter::from_raw(ffi::llopt_op_printer_base(raw), context) },
            raw,
        }
    }

    /// `%name`.
    pub fn operand(&mut self, value: impl ValueLike<'c>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_op_printer_operand(self.raw, value.to_raw()) }
    }

    /// Operands separated by `, `.
    pub fn operands<V: ValueLike<'c>>(&mut self, values: impl IntoIterator<Item = V>) {
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.text(", ");
            }
            self.operand(value);
        }
    }

    /// `^block`.
    pub fn successor(&mut self, block: BlockRef<'c, '_>) {
        // SAFETY: the printer is live.
        unsafe { ffi::llopt_op_printer_successor(self.raw, block.to_raw()) }
    }

    /// `^block(%a, %b : type, type)`.
    pub fn successor_and_operands<V: ValueLike<'c>>(
        &mut self,
        block: BlockRef<'c, '_>,
        operands: impl IntoIterator<Item = V>,
    ) {
        let raw: Vec<_> = operands.into_iter().map(|value| value.to_raw()).collect();
        // SAFETY: the printer is live.
        unsafe {
            ffi::llopt_op_printer_successor_and_operands(
                self.raw,
                block.to_raw(),
                raw.as_ptr(),
                raw.len() as isize,
            );
        }
    }

    /// ` {name = value, …}` of all attributes, inherent ones included, but those elided; nothing
    /// when none is left.
    pub fn attr_dict(&mut self, operation: OperationRef<'c, '_>, elided: &[&str]) {
        self.dictionary(operation, elided, false);
    }

    /// ` attributes {name = value, …}`.
    pub fn attr_dict_with_keyword(&mut self, operation: OperationRef<'c, '_>, elided: &[&str]) {
        self.dictionary(operation, elided, true);
    }

    fn dictionary(&mut self, operation: OperationRef<'c, '_>, elided: &[&str], keyword: bool) {
        let elided: Vec<_> = elided.iter().map(|name| ffi::string_ref(name)).collect();
        // SAFETY: printer and operation are live.
        unsafe {
            ffi::llopt_op_printer_attribute_dictionary(
                self.raw,
                operation.to_raw(),
                elided.as_ptr(),
                elided.len() as isize,
                keyword,
            );
        }
    }

    /// `{…}`.
    pub fn region(&mut self, region: RegionRef<'c, '_>, style: RegionStyle) {
        // SAFETY: printer and region are live.
        unsafe {
            ffi::llopt_op_printer_region(
                self.raw,
                region.to_raw(),
                style.entry_arguments,
                style.terminators,
                style.empty_block,
            );
        }
    }

    /// `%name: type {attributes}`.
    pub fn region_argument(
        &mut self,
        argument: impl ValueLike<'c>,
        attributes: Option<Attribute<'c>>,
        omit_type: bool,
    ) {
        let attributes = crate::ir::raw_attribute(attributes);
        // SAFETY: printer and argument are live.
        unsafe {
            ffi::llopt_op_printer_region_argument(
                self.raw,
                argument.to_raw(),
                attributes,
                omit_type,
            );
        }
    }

    /// Prints the entry arguments of a region under the names of other values from here on.
    pub fn shadow_region_arguments<V: ValueLike<'c>>(
        &mut self,
        region: RegionRef<'c, '_>,
        names: impl IntoIterator<Item = V>,
    ) {
        let raw: Vec<_> = names.into_iter().map(|value| value.to_raw()).collect();
        // SAFETY: printer, region and values are live.
        unsafe {
            ffi::llopt_op_printer_shadow_region_arguments(
                self.raw,
                region.to_raw(),
                raw.as_ptr(),
                raw.len() as isize,
            );
        }
    }

    /// Another operation in full, with its results.
    pub fn operation(&mut self, operation: OperationRef<'c, '_>) {
        // SAFETY: printer and operation are live.
        unsafe { ffi::llopt_op_printer_operation(self.raw, operation.to_raw()) }
    }

    /// The generic form, with or without the quoted name.
    pub fn generic_form(&mut self, operation: OperationRef<'c, '_>, with_name: bool) {
        // SAFETY: printer and operation are live.
        unsafe { ffi::llopt_op_printer_generic(self.raw, operation.to_raw(), with_name) }
    }

    /// ` loc(…)` when locations are printed.
    pub fn location(&mut self, location: Location<'c>) {
        // SAFETY: printer and location are live.
        unsafe { ffi::llopt_op_printer_location(self.raw, location.to_raw()) }
    }

    /// The syntax of [`super::OpParser::function`].
    pub fn function(&mut self, operation: OperationRef<'c, '_>) {
        // SAFETY: printer and operation are live; the bridge checks that it is a function.
        unsafe { ffi::llopt_op_printer_function(self.raw, operation.to_raw(), false) }
    }
}
