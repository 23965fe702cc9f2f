//! [`AsmParser`]: the productions that attributes, types and operations share.

mod kinds;

use super::Parsed;
use crate::{
    diagnostic::{Complaint, Reported},
    ffi,
    ir::context_from_raw,
};
use melior::{
    Context,
    ir::{Attribute, Location, Type, TypeLike},
};
use std::{ffi::c_char, marker::PhantomData};

/// A place in the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLoc(pub(super) *const c_char);

/// Punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Token {
    /// `->`
    Arrow = ffi::LLOPT_TOKEN_ARROW,
    /// `{`
    LBrace = ffi::LLOPT_TOKEN_L_BRACE,
    /// `}`
    RBrace = ffi::LLOPT_TOKEN_R_BRACE,
    /// `:`
    Colon = ffi::LLOPT_TOKEN_COLON,
    /// `,`
    Comma = ffi::LLOPT_TOKEN_COMMA,
    /// `=`
    Equal = ffi::LLOPT_TOKEN_EQUAL,
    /// `<`
    Less = ffi::LLOPT_TOKEN_LESS,
    /// `>`
    Greater = ffi::LLOPT_TOKEN_GREATER,
    /// `?`
    Question = ffi::LLOPT_TOKEN_QUESTION,
    /// `+`
    Plus = ffi::LLOPT_TOKEN_PLUS,
    /// `/`
    Slash = ffi::LLOPT_TOKEN_SLASH,
    /// `-`
    Minus = ffi::LLOPT_TOKEN_MINUS,
    /// `*`
    Star = ffi::LLOPT_TOKEN_STAR,
    /// `|`
    VerticalBar = ffi::LLOPT_TOKEN_VERTICAL_BAR,
    /// `(`
    LParen = ffi::LLOPT_TOKEN_L_PAREN,
    /// `)`
    RParen = ffi::LLOPT_TOKEN_R_PAREN,
    /// `[`
    LSquare = ffi::LLOPT_TOKEN_L_SQUARE,
    /// `]`
    RSquare = ffi::LLOPT_TOKEN_R_SQUARE,
    /// `...`
    Ellipsis = ffi::LLOPT_TOKEN_ELLIPSIS,
}

impl Token {
    /// The token with this spelling.
    pub fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "->" => Self::Arrow,
            "{" => Self::LBrace,
            "}" => Self::RBrace,
            ":" => Self::Colon,
            "," => Self::Comma,
            "=" => Self::Equal,
            "<" => Self::Less,
            ">" => Self::Greater,
            "?" => Self::Question,
            "+" => Self::Plus,
            "/" => Self::Slash,
            "-" => Self::Minus,
            "*" => Self::Star,
            "|" => Self::VerticalBar,
            "(" => Self::LParen,
            ")" => Self::RParen,
            "[" => Self::LSquare,
            "]" => Self::RSquare,
            "..." => Self::Ellipsis,
            _ => return None,
        })
    }
}

/// The parser of attributes and types, and the shared half of [`super::OpParser`].
///
/// `'c` is the life of the context, `'p` that of the source text.
pub struct AsmParser<'c, 'p> {
    raw: ffi::LloptParser,
    life: PhantomData<(&'c Context, &'p str)>,
}

/// The result of a production that reports by itself.
pub(super) fn parsed(success: bool) -> Parsed<()> {
    if success {
        Ok(())
    } else {
        Err(Reported::by_mlir())
    }
}

/// The result of an optional production.
pub(super) fn optional<T>(answer: i32, value: impl FnOnce() -> T) -> Parsed<Option<T>> {
    match answer as u32 {
        ffi::LLOPT_ABSENT => Ok(None),
        ffi::LLOPT_PRESENT => Ok(Some(value())),
        _ => Err(Reported::by_mlir()),
    }
}

const NULL_TYPE: mlir_sys::MlirType = mlir_sys::MlirType {
    ptr: std::ptr::null_mut(),
};
const NULL_ATTRIBUTE: mlir_sys::MlirAttribute = mlir_sys::MlirAttribute {
    ptr: std::ptr::null_mut(),
};

impl<'c, 'p> AsmParser<'c, 'p> {
    /// # Safety
    /// The parser is live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: ffi::LloptParser) -> Self {
        Self {
            raw,
            life: PhantomData,
        }
    }

    /// The context.
    pub fn context(&self) -> &'c Context {
        // SAFETY: the parser's context outlives `'c` by the contract of `from_raw`.
        unsafe { context_from_raw(ffi::llopt_parser_context(self.raw)) }
    }

    /// The place of the next token.
    pub fn location(&self) -> SourceLoc {
        // SAFETY: the parser is live.
        SourceLoc(unsafe { ffi::llopt_parser_location(self.raw) })
    }

    /// The place of the name of the operation, attribute or type being parsed.
    pub fn name_location(&self) -> SourceLoc {
        // SAFETY: the parser is live.
        SourceLoc(unsafe { ffi::llopt_parser_name_location(self.raw) })
    }

    /// A place as an IR location (`file:line:col`).
    pub fn encode(&self, location: SourceLoc) -> Location<'c> {
        // SAFETY: the parser is live and the place came from it.
        unsafe { Location::from_raw(ffi::llopt_parser_encode_location(self.raw, location.0)) }
    }

    /// Reports an error at a place.
    pub fn error(&mut self, location: SourceLoc, message: impl AsRef<str>) -> Reported {
        // SAFETY: the parser is live and the place came from it.
        unsafe {
            ffi::llopt_parser_error(self.raw, location.0, ffi::string_ref(message.as_ref()));
        }
        Reported::by_mlir()
    }

    /// Reports an error at the next token.
    pub fn error_here(&mut self, message: impl AsRef<str>) -> Reported {
        self.error(self.location(), message)
    }

    /// Reports a complaint at a place.
    pub fn complain(&mut self, location: SourceLoc, complaint: Complaint) -> Reported {
        complaint.report_at(self.encode(location))
    }

    /// Punctuation.
    pub fn token(&mut self, token: Token) -> Parsed<()> {
        // SAFETY: the parser is live.
        parsed(unsafe { ffi::llopt_parser_token(self.raw, token as i32) })
    }

    /// Punctuation, if it is next.
    pub fn optional_token(&mut self, token: Token) -> bool {
        // SAFETY: the parser is live.
        unsafe { ffi::llopt_parser_optional_token(self.raw, token as i32) }
    }

    /// A keyword.
    pub fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        // SAFETY: the parser is live.
        parsed(unsafe { ffi::llopt_parser_keyword(self.raw, ffi::string_ref(keyword)) })
    }

    /// A keyword, if it is next.
    pub fn optional_keyword(&mut self, keyword: &str) -> bool {
        // SAFETY: the parser is live.
        unsafe { ffi::llopt_parser_optional_keyword(self.raw, ffi::string_ref(keyword)) }
    }

    /// A literal of an assembly format: punctuation or keyword.
    pub fn literal(&mut self, literal: &str) -> Parsed<()> {
        match Token::from_text(literal) {
            Some(token) => self.token(token),
            None => self.keyword(literal),
        }
    }

    /// A literal of an assembly format, if it is next.
    pub fn optional_literal(&mut self, literal: &str) -> bool {
        match Token::from_text(literal) {
            Some(token) => self.optional_token(token),
            None => self.optional_keyword(literal),
        }
    }

    /// Any keyword.
    pub fn any_keyword(&mut self) -> Parsed<&'p str> {
        let mut keyword = ffi::string_ref("");
        // SAFETY: the parser is live; keywords point into the source text.
        unsafe {
            parsed(ffi::llopt_parser_any_keyword(self.raw, &mut keyword))?;
            Ok(ffi::text(keyword))
        }
    }

    /// Any keyword, if one is next.
    pub fn optional_any_keyword(&mut self) -> Option<&'p str> {
        let mut keyword = ffi::string_ref("");
        // SAFETY: the parser is live; keywords point into the source text.
        unsafe {
            ffi::llopt_parser_optional_any_keyword(self.raw, &mut keyword)
                .then(|| ffi::text(keyword))
        }
    }

    /// One of a list of keywords, as its index.
    ///
    /// `what` names the list in the error, e.g. `cache modifier`.
    pub fn keyword_of(&mut self, keywords: &[&str], what: &str) -> Parsed<usize> {
        let location = self.location();
        match self.optional_keyword_of(keywords) {
            Some(index) => Ok(index),
            None => Err(self.error(
                location,
                format!("expected {what} to be one of: {}", keywords.join(", ")),
            )),
        }
    }

    /// One of a list of keywords, if one is next.
    pub fn optional_keyword_of(&mut self, keywords: &[&str]) -> Option<usize> {
        keywords
            .iter()
            .position(|keyword| self.optional_keyword(keyword))
    }

    /// A keyword or a quoted string.
    pub fn keyword_or_string(&mut self) -> Parsed<String> {
        let location = self.location();
        let mut string = Vec::new();
        // SAFETY: the parser is live, the sink outlives the call.
        parsed(unsafe {
            ffi::llopt_parser_keyword_or_string(self.raw, ffi::collector(&mut string))
        })?;
        self.utf8(location, string)
    }

    /// A quoted string.
    pub fn string(&mut self) -> Parsed<String> {
        let location = self.location();
        match self.optional_string()? {
            Some(string) => Ok(string),
            None => Err(self.error(location, "expected string")),
        }
    }

    /// A quoted string, if one is next.
    pub fn optional_string(&mut self) -> Parsed<Option<String>> {
        let location = self.location();
        let mut string = Vec::new();
        // SAFETY: the parser is live, the sink outlives the call.
        let answer =
            unsafe { ffi::llopt_parser_optional_string(self.raw, ffi::collector(&mut string)) };
        match optional(answer, || string)? {
            Some(string) => self.utf8(location, string).map(Some),
            None => Ok(None),
        }
    }

    fn utf8(&mut self, location: SourceLoc, bytes: Vec<u8>) -> Parsed<String> {
        String::from_utf8(bytes).map_err(|_| self.error(location, "string is not UTF-8"))
    }

    /// An integer, decimal or hexadecimal, with an optional minus; `true` and `false` are 1 and 0.
    pub fn integer(&mut self) -> Parsed<i64> {
        let location = self.location();
        match self.optional_integer()? {
            Some(value) => Ok(value),
            None => Err(self.error(location, "expected integer value")),
        }
    }

    /// An integer, if one is next.
    pub fn optional_integer(&mut self) -> Parsed<Option<i64>> {
        let mut value = 0;
        // SAFETY: the parser is live.
        let answer = unsafe { ffi::llopt_parser_optional_integer(self.raw, &mut value) };
        optional(answer, || value)
    }

    /// An integer that fits `T`.
    pub fn integer_as<T: TryFrom<i64>>(&mut self) -> Parsed<T> {
        let location = self.location();
        let value = self.integer()?;
        T::try_from(value).map_err(|_| self.error(location, "integer value too large"))
    }

    /// A decimal integer, so that `0x` reads as `0` before `x`; for `64x64xbf16`.
    pub fn decimal_integer(&mut self) -> Parsed<i64> {
        let location = self.location();
        let mut value = 0;
        // SAFETY: the parser is live.
        let answer = unsafe { ffi::llopt_parser_optional_decimal_integer(self.raw, &mut value) };
        match optional(answer, || value)? {
            Some(value) => Ok(value),
            None => Err(self.error(location, "expected integer value")),
        }
    }

    /// A float literal.
    pub fn float(&mut self) -> Parsed<f64> {
        let mut value = 0.0;
        // SAFETY: the parser is live.
        parsed(unsafe { ffi::llopt_parser_float(self.raw, &mut value) })?;
        Ok(value)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self) -> Parsed<bool> {
        let location = self.location();
        match self.optional_keyword_of(&["false", "true"]) {
            Some(index) => Ok(index == 1),
            None => Err(self.error(location, "expected 'true' or 'false'")),
        }
    }

    /// `left element, … right` with possibly no element.
    pub fn comma_separated(
        &mut self,
        left: Token,
        right: Token,
        mut element: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        self.token(left)?;
        if self.optional_token(right) {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.optional_token(Token::Comma) {
                return self.token(right);
            }
        }
    }

    /// `[1, 2, 3]`.
    pub fn integer_list<T: TryFrom<i64>>(&mut self) -> Parsed<Vec<T>> {
        let mut values = Vec::new();
        self.comma_separated(Token::LSquare, Token::RSquare, |parser| {
            values.push(parser.integer_as()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// A type.
    pub fn r#type(&mut self) -> Parsed<Type<'c>> {
        let mut raw = NULL_TYPE;
        // SAFETY: the parser is live; success fills in a type.
        unsafe {
            parsed(ffi::llopt_parser_type(self.raw, &mut raw))?;
            Ok(Type::from_raw(raw))
        }
    }

    /// A type, if one is next.
    pub fn optional_type(&mut self) -> Parsed<Option<Type<'c>>> {
        let mut raw = NULL_TYPE;
        // SAFETY: the parser is live; presence fills in a type.
        unsafe {
            let answer = ffi::llopt_parser_optional_type(self.raw, &mut raw);
            optional(answer, || Type::from_raw(raw))
        }
    }

    /// `: type`.
    pub fn colon_type(&mut self) -> Parsed<Type<'c>> {
        self.token(Token::Colon)?;
        self.r#type()
    }

    /// `type, type, …`, at least one.
    pub fn type_list(&mut self) -> Parsed<Vec<Type<'c>>> {
        // SAFETY: the parser is live, the sink outlives the call.
        self.types(|raw, sink| unsafe { ffi::llopt_parser_type_list(raw, sink) })
    }

    /// `-> type` or `-> (type, …)`.
    pub fn arrow_type_list(&mut self) -> Parsed<Vec<Type<'c>>> {
        // SAFETY: the parser is live, the sink outlives the call.
        self.types(|raw, sink| unsafe { ffi::llopt_parser_arrow_type_list(raw, sink) })
    }

    /// [`AsmParser::arrow_type_list`], if an arrow is next; else empty.
    pub fn optional_arrow_type_list(&mut self) -> Parsed<Vec<Type<'c>>> {
        // SAFETY: the parser is live, the sink outlives the call.
        self.types(|raw, sink| unsafe { ffi::llopt_parser_optional_arrow_type_list(raw, sink) })
    }

    fn types(
        &mut self,
        parse: impl FnOnce(ffi::LloptParser, ffi::LloptCollector) -> bool,
    ) -> Parsed<Vec<Type<'c>>> {
        let mut raw = Vec::new();
        parsed(parse(self.raw, ffi::collector(&mut raw)))?;
        // SAFETY: MLIR hands out live types.
        Ok(raw
            .into_iter()
            .map(|raw| unsafe { Type::from_raw(raw) })
            .collect())
    }

    /// `(type, …) -> type` or `(type, …) -> (type, …)`, as (inputs, results).
    pub fn functional_type(&mut self) -> Parsed<(Vec<Type<'c>>, Vec<Type<'c>>)> {
        let mut inputs = Vec::new();
        self.comma_separated(Token::LParen, Token::RParen, |parser| {
            inputs.push(parser.r#type()?);
            Ok(())
        })?;
        Ok((inputs, self.arrow_type_list()?))
    }

    /// An attribute.
    pub fn attribute(&mut self) -> Parsed<Attribute<'c>> {
        self.attribute_with_type(None)
    }

    /// An attribute whose type the context knows, so that it is not written (`1` for `1 : i32`).
    pub fn attribute_with_type(&mut self, r#type: Option<Type<'c>>) -> Parsed<Attribute<'c>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; success fills in an attribute.
        unsafe {
            parsed(ffi::llopt_parser_attribute(
                self.raw,
                r#type.map_or(NULL_TYPE, |r#type| r#type.to_raw()),
                &mut raw,
            ))?;
            Ok(Attribute::from_raw(raw))
        }
    }

    /// An attribute, if one is next.
    pub fn optional_attribute(
        &mut self,
        r#type: Option<Type<'c>>,
    ) -> Parsed<Option<Attribute<'c>>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; presence fills in an attribute.
        unsafe {
            let answer = ffi::llopt_parser_optional_attribute(
                self.raw,
                r#type.map_or(NULL_TYPE, |r#type| r#type.to_raw()),
                &mut raw,
            );
            optional(answer, || Attribute::from_raw(raw))
        }
    }

    /// `{name = value, …}` as a dictionary, empty when there is no brace.
    pub fn optional_attribute_dictionary(&mut self) -> Parsed<Attribute<'c>> {
        self.dictionary(false)
    }

    /// `attributes {name = value, …}` as a dictionary, empty when there is no keyword.
    pub fn optional_attribute_dictionary_with_keyword(&mut self) -> Parsed<Attribute<'c>> {
        self.dictionary(true)
    }

    fn dictionary(&mut self, with_keyword: bool) -> Parsed<Attribute<'c>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; success fills in an attribute.
        unsafe {
            parsed(ffi::llopt_parser_attribute_dictionary(
                self.raw,
                with_keyword,
                &mut raw,
            ))?;
            Ok(Attribute::from_raw(raw))
        }
    }

    /// `@name` as a string attribute.
    pub fn symbol_name(&mut self) -> Parsed<Attribute<'c>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; success fills in an attribute.
        unsafe {
            parsed(ffi::llopt_parser_symbol_name(self.raw, &mut raw))?;
            Ok(Attribute::from_raw(raw))
        }
    }

    /// `@name`, if it is next.
    pub fn optional_symbol_name(&mut self) -> Parsed<Option<Attribute<'c>>> {
        let mut raw = NULL_ATTRIBUTE;
        // SAFETY: the parser is live; presence fills in an attribute.
        unsafe {
            let answer = ffi::llopt_parser_optional_symbol_name(self.raw, &mut raw);
            optional(answer, || Attribute::from_raw(raw))
        }
    }

    /// `4x?x8`, with `i64::MIN` for `?`. With `trailing_x` each dimension is followed by an `x`,
    /// so that an element type may follow.
    pub fn dimension_list(&mut self, allow_dynamic: bool, trailing_x: bool) -> Parsed<Vec<i64>> {
        let mut dimensions: Vec<i64> = Vec::new();
        let sink = ffi::collector(&mut dimensions);
        // SAFETY: the parser is live, the sink outlives the call.
        parsed(unsafe {
            ffi::llopt_parser_dimension_list(self.raw, allow_dynamic, trailing_x, sink)
        })?;
        Ok(dimensions)
    }

    /// The `x` between dimensions, which the lexer would otherwise swallow.
    pub fn x_in_dimension_list(&mut self) -> Parsed<()> {
        // SAFETY: the parser is live.
        parsed(unsafe { ffi::llopt_parser_x_in_dimension_list(self.raw) })
    }
}
