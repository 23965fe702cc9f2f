//! [`OpParser`]: operands, regions, successors and the operation under construction.

use super::{
    Parsed,
    parser::{AsmParser, SourceLoc, Token, optional, parsed},
};
use crate::ffi;
use melior::ir::{Attribute, AttributeLike, BlockRef, Location, Region, Type, TypeLike, Value};
use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// An SSA name as written (`%x`, `%x#1`), before its type is known.
#[derive(Clone, Copy)]
pub struct UnresolvedOperand<'p> {
    raw: ffi::LloptUnresolvedOperand,
    source: PhantomData<&'p str>,
}

impl<'p> UnresolvedOperand<'p> {
    const EMPTY: ffi::LloptUnresolvedOperand = ffi::LloptUnresolvedOperand {
        location: std::ptr::null(),
        name: mlir_sys::MlirStringRef {
            data: std::ptr::null(),
            length: 0,
        },
        number: 0,
    };

    fn new(raw: ffi::LloptUnresolvedOperand) -> Self {
        Self {
            raw,
            source: PhantomData,
        }
    }

    /// Where it is written.
    pub fn location(&self) -> SourceLoc {
        SourceLoc(self.raw.location)
    }

    /// The name with `%`.
    pub fn name(&self) -> &'p str {
        // SAFETY: names point into the source text.
        unsafe { ffi::text(self.raw.name) }
    }

    /// The number after `#`, zero without one.
    pub fn number(&self) -> u32 {
        self.raw.number
    }
}

/// A region argument as written: `%name : type {attributes} loc(…)`.
#[derive(Clone, Copy)]
pub struct Argument<'c, 'p> {
    /// The name.
    pub name: UnresolvedOperand<'p>,
    /// The type; must be present when the argument is given to a region.
    pub r#type: Option<Type<'c>>,
    /// The attribute dictionary.
    pub attributes: Option<Attribute<'c>>,
    /// The location.
    pub location: Option<Location<'c>>,
}

impl<'c, 'p> Argument<'c, 'p> {
    /// An argument with a name and a type.
    pub fn new(name: UnresolvedOperand<'p>, r#type: Type<'c>) -> Self {
        Self {
            name,
            r#type: Some(r#type),
            attributes: None,
            location: None,
        }
    }

    fn empty() -> ffi::LloptArgument {
        ffi::LloptArgument {
            name: UnresolvedOperand::EMPTY,
            type_: mlir_sys::MlirType {
                ptr: std::ptr::null_mut(),
            },
            attributes: mlir_sys::MlirAttribute {
                ptr: std::ptr::null_mut(),
            },
            location: mlir_sys::MlirLocation {
                ptr: std::ptr::null(),
            },
        }
    }

    /// # Safety
    /// The members are live or null.
    unsafe fn from_raw(raw: ffi::LloptArgument) -> Self {
        // SAFETY: the caller vouches for the members.
        unsafe {
            Self {
                name: UnresolvedOperand::new(raw.name),
                r#type: Type::from_option_raw(raw.type_),
                attributes: Attribute::from_option_raw(raw.attributes),
                location: (!raw.location.ptr.is_null()).then(|| Location::from_raw(raw.location)),
            }
        }
    }

    fn to_raw(self) -> ffi::LloptArgument {
        let mut raw = Self::empty();
        raw.name = self.name.raw;
        if let Some(r#type) = self.r#type {
            raw.type_ = r#type.to_raw();
        }
        if let Some(attributes) = self.attributes {
            raw.attributes = attributes.to_raw();
        }
        if let Some(location) = self.location {
            raw.location = location.to_raw();
        }
        raw
    }
}

/// The parser of operations, with the operation under construction.
pub struct OpParser<'c, 'p> {
    base: AsmParser<'c, 'p>,
    raw: ffi::LloptOpParser,
    state: ffi::LloptOpState,
}

impl<'c, 'p> Deref for OpParser<'c, 'p> {
    type Target = AsmParser<'c, 'p>;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl DerefMut for OpParser<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.base
    }
}

impl<'c, 'p> OpParser<'c, 'p> {
    /// # Safety
    /// Parser and state are live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: ffi::LloptOpParser, state: ffi::LloptOpState) -> Self {
        Self {
            // SAFETY: the base is the same object.
            base: unsafe { AsmParser::from_raw(ffi::llopt_op_parser_base(raw)) },
            raw,
            state,
        }
    }

    /// `%x` or `%x#1`.
    pub fn operand(&mut self) -> Parsed<UnresolvedOperand<'p>> {
        self.operand_with(true)
    }

    /// `%x` alone, as for a name that is being defined.
    pub fn operand_name(&mut self) -> Parsed<UnresolvedOperand<'p>> {
        self.operand_with(false)
    }

    fn operand_with(&mut self, allow_number: bool) -> Parsed<UnresolvedOperand<'p>> {
        let mut raw = UnresolvedOperand::EMPTY;
        // SAFETY: the parser is live.
        parsed(unsafe { ffi::llopt_op_parser_operand(self.raw, allow_number, &mut raw) })?;
        Ok(UnresolvedOperand::new(raw))
    }

    /// An operand, if one is next.
    pub fn optional_operand(&mut self) -> Parsed<Option<UnresolvedOperand<'p>>> {
        let mut raw = UnresolvedOperand::EMPTY;
        // SAFETY: the parser is live.
        let answer = unsafe { ffi::llopt_op_parser_optional_operand(self.raw, true, &mut raw) };
        optional(answer, || UnresolvedOperand::new(raw))
    }

    /// `%a, %b, …`, possibly empty.
    pub fn operand_list(&mut self) -> Parsed<Vec<UnresolvedOperand<'p>>> {
        let mut operands = Vec::new();
        if let Some(first) = self.optional_operand()? {
            operands.push(first);
            while self.optional_token(Token::Comma) {
                operands.push(self.operand()?);
            }
        }
        Ok(operands)
    }

    /// `left %a, %b, … right`, possibly empty between the delimiters.
    pub fn delimited_operand_list(
        &mut self,
        left: Token,
        right: Token,
    ) -> Parsed<Vec<UnresolvedOperand<'p>>> {
        self.token(left)?;
        let operands = self.operand_list()?;
        self.token(right)?;
        Ok(operands)
    }

    /// Gives an operand its type and appends it to the operands of the operation.
    pub fn resolve_operand(
        &mut self,
        operand: UnresolvedOperand<'p>,
        r#type: Type<'c>,
    ) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe {
            ffi::llopt_op_parser_resolve(self.raw, self.state, &operand.raw, r#type.to_raw())
        })
    }

    /// Gives each operand its type; an error at `location` when the counts differ.
    pub fn resolve_operands(
        &mut self,
        operands: &[UnresolvedOperand<'p>],
        types: &[Type<'c>],
        location: SourceLoc,
    ) -> Parsed<()> {
        if operands.len() != types.len() {
            return Err(self.error(
                location,
                format!(
                    "number of operands and types do not match: got {} operands and {} types",
                    operands.len(),
                    types.len()
                ),
            ));
        }
        for (operand, r#type) in operands.iter().zip(types) {
            self.resolve_operand(*operand, *r#type)?;
        }
        Ok(())
    }

    /// Gives all operands one type.
    pub fn resolve_operands_of_type(
        &mut self,
        operands: &[UnresolvedOperand<'p>],
        r#type: Type<'c>,
    ) -> Parsed<()> {
        operands
            .iter()
            .try_for_each(|operand| self.resolve_operand(*operand, r#type))
    }

    /// A region argument.
    pub fn argument(
        &mut self,
        allow_type: bool,
        allow_attributes: bool,
    ) -> Parsed<Argument<'c, 'p>> {
        let mut raw = Argument::empty();
        // SAFETY: the parser is live; success fills in live members.
        unsafe {
            parsed(ffi::llopt_op_parser_argument(
                self.raw,
                allow_type,
                allow_attributes,
                &mut raw,
            ))?;
            Ok(Argument::from_raw(raw))
        }
    }

    /// A region argument, if one is next.
    pub fn optional_argument(
        &mut self,
        allow_type: bool,
        allow_attributes: bool,
    ) -> Parsed<Option<Argument<'c, 'p>>> {
        let mut raw = Argument::empty();
        // SAFETY: the parser is live; presence fills in live members.
        unsafe {
            let answer = ffi::llopt_op_parser_optional_argument(
                self.raw,
                allow_type,
                allow_attributes,
                &mut raw,
            );
            optional(answer, || Argument::from_raw(raw))
        }
    }

    /// A region `{…}` whose entry block takes `arguments`. The region belongs to the caller, who
    /// gives it to the operation with [`OpParser::add_region`].
    pub fn region(&mut self, arguments: &[Argument<'c, 'p>]) -> Parsed<Region<'c>> {
        self.region_with(arguments, false)
    }

    /// As [`OpParser::region`], where arguments may hide names from outside; only for operations
    /// that are isolated from above.
    pub fn isolated_region(&mut self, arguments: &[Argument<'c, 'p>]) -> Parsed<Region<'c>> {
        self.region_with(arguments, true)
    }

    fn region_with(
        &mut self,
        arguments: &[Argument<'c, 'p>],
        shadowing: bool,
    ) -> Parsed<Region<'c>> {
        let raw: Vec<_> = arguments.iter().map(|argument| argument.to_raw()).collect();
        let region = Region::new();
        // SAFETY: parser, region and arguments are live.
        parsed(unsafe {
            ffi::llopt_op_parser_region(
                self.raw,
                raw_region(&region),
                raw.as_ptr(),
                raw.len() as isize,
                shadowing,
            )
        })?;
        Ok(region)
    }

    /// A region, if a brace is next.
    pub fn optional_region(
        &mut self,
        arguments: &[Argument<'c, 'p>],
    ) -> Parsed<Option<Region<'c>>> {
        let raw: Vec<_> = arguments.iter().map(|argument| argument.to_raw()).collect();
        let region = Region::new();
        // SAFETY: parser, region and arguments are live.
        let answer = unsafe {
            ffi::llopt_op_parser_optional_region(
                self.raw,
                raw_region(&region),
                raw.as_ptr(),
                raw.len() as isize,
                false,
            )
        };
        optional(answer, || region)
    }

    /// `^block`.
    pub fn successor(&mut self) -> Parsed<BlockRef<'c, 'p>> {
        let mut raw = mlir_sys::MlirBlock {
            ptr: std::ptr::null_mut(),
        };
        // SAFETY: the parser is live; success fills in a block.
        unsafe {
            parsed(ffi::llopt_op_parser_successor(self.raw, &mut raw))?;
            Ok(BlockRef::from_raw(raw))
        }
    }

    /// `^block`, if it is next.
    pub fn optional_successor(&mut self) -> Parsed<Option<BlockRef<'c, 'p>>> {
        let mut raw = mlir_sys::MlirBlock {
            ptr: std::ptr::null_mut(),
        };
        // SAFETY: the parser is live; presence fills in a block.
        unsafe {
            let answer = ffi::llopt_op_parser_optional_successor(self.raw, &mut raw);
            optional(answer, || BlockRef::from_raw(raw))
        }
    }

    /// `loc(…)`, if it is next.
    pub fn optional_location(&mut self) -> Parsed<Option<Location<'c>>> {
        let mut raw = mlir_sys::MlirLocation {
            ptr: std::ptr::null(),
        };
        // SAFETY: the parser is live; presence fills in a location.
        unsafe {
            parsed(ffi::llopt_op_parser_optional_location(self.raw, &mut raw))?;
            Ok((!raw.ptr.is_null()).then(|| Location::from_raw(raw)))
        }
    }

    /// Everything after the name in the generic form.
    pub fn generic_form(&mut self) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe { ffi::llopt_op_parser_generic(self.raw, self.state) })
    }

    /// A function: `[visibility] @name(%arg: type {…}, …) -> (type {…}, …) [attributes {…}]
    /// [{body}]`, into `sym_name`, `function_type`, `arg_attrs` and `res_attrs`.
    pub fn function(&mut self) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe { ffi::llopt_op_parser_function(self.raw, self.state, false) })
    }

    /// How many results the text declares before `=`.
    pub fn declared_result_count(&self) -> usize {
        // SAFETY: the parser is live.
        unsafe { ffi::llopt_op_parser_result_count(self.raw) }.max(0) as usize
    }

    /// The location of the operation.
    pub fn op_location(&self) -> Location<'c> {
        // SAFETY: the state is live.
        unsafe { Location::from_raw(ffi::llopt_state_location(self.state)) }
    }

    /// Sets the location of the operation.
    pub fn set_op_location(&mut self, location: Location<'c>) {
        // SAFETY: the state is live.
        unsafe { ffi::llopt_state_set_location(self.state, location.to_raw()) }
    }

    /// Adds a result type.
    pub fn add_type(&mut self, r#type: Type<'c>) {
        // SAFETY: the state is live.
        unsafe { ffi::llopt_state_add_type(self.state, r#type.to_raw()) }
    }

    /// Adds result types.
    pub fn add_types(&mut self, types: &[Type<'c>]) {
        for r#type in types {
            self.add_type(*r#type);
        }
    }

    /// Sets an attribute, inherent or not.
    pub fn add_attribute(&mut self, name: &str, attribute: Attribute<'c>) {
        // SAFETY: the state is live.
        unsafe {
            ffi::llopt_state_add_attribute(self.state, ffi::string_ref(name), attribute.to_raw());
        }
    }

    /// Sets all attributes of a dictionary.
    pub fn add_attributes(&mut self, dictionary: Attribute<'c>) {
        // SAFETY: the state is live; the bridge ignores what is no dictionary.
        unsafe { ffi::llopt_state_add_dictionary(self.state, dictionary.to_raw()) }
    }

    /// An attribute that has been set.
    pub fn op_attribute(&self, name: &str) -> Option<Attribute<'c>> {
        // SAFETY: the state is live.
        unsafe {
            Attribute::from_option_raw(ffi::llopt_state_attribute(
                self.state,
                ffi::string_ref(name),
            ))
        }
    }

    /// Removes an attribute that has been set.
    pub fn remove_attribute(&mut self, name: &str) {
        // SAFETY: the state is live.
        unsafe { ffi::llopt_state_remove_attribute(self.state, ffi::string_ref(name)) }
    }

    /// `{…}` into the attributes of the operation.
    pub fn attr_dict(&mut self) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe { ffi::llopt_op_parser_attributes(self.raw, self.state, false) })
    }

    /// `attributes {…}` into the attributes of the operation.
    pub fn attr_dict_with_keyword(&mut self) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe { ffi::llopt_op_parser_attributes(self.raw, self.state, true) })
    }

    /// Adds a region.
    pub fn add_region(&mut self, region: Region<'c>) {
        // SAFETY: the state is live and takes ownership.
        unsafe { ffi::llopt_state_add_region(self.state, region.into_raw()) }
    }

    /// Adds a successor.
    pub fn add_successor(&mut self, block: BlockRef<'c, '_>) {
        // SAFETY: the state is live.
        unsafe { ffi::llopt_state_add_successor(self.state, block.to_raw()) }
    }

    /// How many operands have been resolved.
    pub fn op_operand_count(&self) -> usize {
        // SAFETY: the state is live.
        unsafe { ffi::llopt_state_operand_count(self.state) }.max(0) as usize
    }

    /// An operand that has been resolved.
    pub fn op_operand(&self, index: usize) -> Option<Value<'c, 'p>> {
        if index >= self.op_operand_count() {
            return None;
        }
        // SAFETY: the state is live and the index in range.
        Some(unsafe { Value::from_raw(ffi::llopt_state_operand(self.state, index as isize)) })
    }

    /// Adds the result types that the operation's type inference finds from the parts that are known so far.
    pub fn infer_types(&mut self) -> Parsed<()> {
        // SAFETY: parser and state are live.
        parsed(unsafe { ffi::llopt_state_infer_types(self.raw, self.state) })
    }

    /// Gives a region that has been added its implicit terminator, an operation without operands.
    pub fn ensure_terminator(&mut self, region: usize, terminator: &str) -> Parsed<()> {
        // SAFETY: parser and state are live; the bridge checks the number.
        parsed(unsafe {
            ffi::llopt_state_ensure_terminator(
                self.raw,
                self.state,
                region as isize,
                ffi::string_ref(terminator),
            )
        })
    }
}

/// The raw region behind an owned one, which stays owned.
fn raw_region(region: &Region<'_>) -> mlir_sys::MlirRegion {
    use melior::ir::RegionLike;
    region.to_raw()
}
