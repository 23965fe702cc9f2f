//! The declarative assembly format: its text to a tree.
//!
//! The language is that of MLIR's `assemblyFormat`: literals between backticks, `$variables`,
//! directives (`attr-dict`, `type($x)`, `functional-type(…)`, `custom<Name>(…)`, `oilist(…)`) and
//! optional groups `(…^…)? ` with an optional else group `: (…)`. This file knows nothing of
//! operations; `lower.rs` gives names their meaning.

use std::fmt;

/// One element of a format, with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Its byte offset in the format text.
    pub at: usize,
    /// What it is.
    pub kind: Kind,
}

/// The kinds of elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A keyword or punctuation.
    Literal(String),
    /// Explicit white space for the printer: nothing, a blank or a new line.
    Space(&'static str),
    /// `$name`.
    Variable(String),
    /// `attr-dict`, or with `true` `attr-dict-with-keyword`.
    AttrDict(bool),
    /// `operands`.
    Operands,
    /// `results`.
    Results,
    /// `type(arg)`.
    Type(Box<Element>),
    /// `qualified(arg)`.
    Qualified(Box<Element>),
    /// `functional-type(inputs, results)`.
    FunctionalType(Box<Element>, Box<Element>),
    /// `custom<Name>(arg, …)`.
    Custom(String, Vec<Element>),
    /// `(then)?` or `(then) : (otherwise)?`; `anchor` indexes `then`.
    Optional {
        /// Elements when the anchor is present.
        then: Vec<Element>,
        /// Elements when it is not.
        otherwise: Vec<Element>,
        /// The element marked with `^`.
        anchor: usize,
    },
    /// `oilist(clause | clause)`, each starting with a literal.
    OiList(Vec<Vec<Element>>),
}

/// A mistake in a format, with a rendering that points at it.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatError {
    /// Byte offset in the format text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl FormatError {
    /// A mistake at a place.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    /// `message` with the line of the text and a caret under the place.
    pub fn render(&self, text: &str) -> String {
        let at = self.at.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |position| position + 1);
        let end = text[at..]
            .find('\n')
            .map_or(text.len(), |length| at + length);
        let line = text[..at].matches('\n').count() + 1;
        format!(
            "{} (line {line} of the format)\n  {}\n  {}^",
            self.message,
            &text[start..end],
            " ".repeat(text[start..at].chars().count()),
        )
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Literal(String),
    Variable(String),
    Word(String),
    Punctuation(char),
}

fn lex(text: &str) -> Result<Vec<(usize, Token)>, FormatError> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    while let Some((at, character)) = rest.next() {
        let mut take_word = |also_dash: bool| {
            let mut word = String::new();
            while let Some((_, next)) =
                rest.next_if(|(_, next)| is_word(*next) || (also_dash && *next == '-'))
            {
                word.push(next);
            }
            word
        };
        match character {
            _ if character.is_whitespace() => {}
            '`' => {
                let mut literal = String::new();
                loop {
                    match rest.next() {
                        Some((_, '`')) => break,
                        Some((_, next)) => literal.push(next),
                        None => {
                            return Err(FormatError::new(
                                at,
                                "this literal has no closing backtick",
                            ));
                        }
                    }
                }
                tokens.push((at, Token::Literal(literal)));
            }
            '$' => {
                let name = take_word(false);
                if name.is_empty() {
                    return Err(FormatError::new(at, "expected a name after `$`"));
                }
                tokens.push((at, Token::Variable(name)));
            }
            _ if character.is_ascii_alphabetic() => {
                let word = take_word(true);
                tokens.push((at, Token::Word(format!("{character}{word}"))));
            }
            '(' | ')' | '<' | '>' | ',' | '|' | '^' | '?' | ':' => {
                tokens.push((at, Token::Punctuation(character)));
            }
            _ => {
                return Err(FormatError::new(
                    at,
                    format!("`{character}` must be inside of backticks to be a literal"),
                ));
            }
        }
    }
    Ok(tokens)
}

/// Parses a format.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<Vec<Element>, FormatError> {
    let mut parser = Parser {
        tokens: lex(text)?,
        next: 0,
        end: text.len(),
    };
    let elements = parser.elements(&mut None)?;
    match parser.peek() {
        None => Ok(elements),
        Some(_) => Err(parser.error("expected an element of the format")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn error(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.at(), message)
    }

    fn take(&mut self, punctuation: char) -> bool {
        let found = self.peek() == Some(&Token::Punctuation(punctuation));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, punctuation: char, after: &str) -> Result<(), FormatError> {
        if self.take(punctuation) {
            Ok(())
        } else {
            Err(self.error(format!("expected `{punctuation}` {after}")))
        }
    }

    /// Elements up to a `)` or `|`; an anchor mark sets `anchor` to the index of its element.
    fn elements(&mut self, anchor: &mut Option<usize>) -> Result<Vec<Element>, FormatError> {
        let mut elements = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(token, Token::Punctuation(')' | '|')) {
                break;
            }
            elements.push(self.element()?);
            let at = self.at();
            if self.take('^') && anchor.replace(elements.len() - 1).is_some() {
                return Err(FormatError::new(at, "a group has one anchor `^` only"));
            }
        }
        Ok(elements)
    }

    fn element(&mut self) -> Result<Element, FormatError> {
        let at = self.at();
        let kind = match self.peek().cloned() {
            None => return Err(self.error("expected an element before the end of the format")),
            Some(Token::Literal(text)) => {
                self.next += 1;
                literal(at, text)?
            }
            Some(Token::Variable(name)) => {
                self.next += 1;
                Kind::Variable(name)
            }
            Some(Token::Punctuation('(')) => {
                self.next += 1;
                self.optional(at)?
            }
            Some(Token::Punctuation(character)) => {
                return Err(FormatError::new(
                    at,
                    format!("`{character}` is out of place; a literal needs backticks"),
                ));
            }
            Some(Token::Word(word)) => {
                self.next += 1;
                self.directive(at, &word)?
            }
        };
        Ok(Element { at, kind })
    }

    fn optional(&mut self, at: usize) -> Result<Kind, FormatError> {
        let mut anchor = None;
        let then = self.elements(&mut anchor)?;
        self.expect(')', "after the group")?;
        let mut otherwise = Vec::new();
        if self.take(':') {
            self.expect('(', "before the else group")?;
            let mut none = None;
            otherwise = self.elements(&mut none)?;
            if none.is_some() {
                return Err(FormatError::new(
                    at,
                    "the anchor belongs to the first group",
                ));
            }
            self.expect(')', "after the else group")?;
        }
        self.expect('?', "after an optional group")?;
        let anchor =
            anchor.ok_or_else(|| FormatError::new(at, "an optional group needs an anchor `^`"))?;
        Ok(Kind::Optional {
            then,
            otherwise,
            anchor,
        })
    }

    fn directive(&mut self, at: usize, word: &str) -> Result<Kind, FormatError> {
        Ok(match word {
            "attr-dict" => Kind::AttrDict(false),
            "attr-dict-with-keyword" => Kind::AttrDict(true),
            "operands" => Kind::Operands,
            "results" => Kind::Results,
            "type" | "qualified" => {
                self.expect('(', &format!("after `{word}`"))?;
                let argument = Box::new(self.element()?);
                self.expect(')', &format!("after the argument of `{word}`"))?;
                if word == "type" {
                    Kind::Type(argument)
                } else {
                    Kind::Qualified(argument)
                }
            }
            "functional-type" => {
                self.expect('(', "after `functional-type`")?;
                let inputs = Box::new(self.element()?);
                self.expect(',', "between the arguments of `functional-type`")?;
                let results = Box::new(self.element()?);
                self.expect(')', "after the arguments of `functional-type`")?;
                Kind::FunctionalType(inputs, results)
            }
            "custom" => {
                self.expect('<', "after `custom`")?;
                let Some(Token::Word(name)) = self.peek().cloned() else {
                    return Err(self.error("expected the name of the custom directive"));
                };
                self.next += 1;
                self.expect('>', "after the name of the custom directive")?;
                self.expect('(', "before the arguments of the custom directive")?;
                let mut arguments = Vec::new();
                if !self.take(')') {
                    loop {
                        arguments.push(self.element()?);
                        if !self.take(',') {
                            break;
                        }
                    }
                    self.expect(')', "after the arguments of the custom directive")?;
                }
                Kind::Custom(name, arguments)
            }
            "oilist" => {
                self.expect('(', "after `oilist`")?;
                let mut clauses = Vec::new();
                loop {
                    let start = self.at();
                    let mut anchor = None;
                    let clause = self.elements(&mut anchor)?;
                    if anchor.is_some() {
                        return Err(FormatError::new(
                            start,
                            "a clause of `oilist` has no anchor",
                        ));
                    }
                    match clause.first().map(|element| &element.kind) {
                        Some(Kind::Literal(_)) => clauses.push(clause),
                        _ => {
                            return Err(FormatError::new(
                                start,
                                "a clause of `oilist` starts with a literal",
                            ));
                        }
                    }
                    if !self.take('|') {
                        break;
                    }
                }
                self.expect(')', "after the clauses of `oilist`")?;
                Kind::OiList(clauses)
            }
            "prop-dict" | "regions" | "successors" | "ref" => {
                return Err(FormatError::new(
                    at,
                    format!(
                        "the directive `{word}` is not supported: no operation of ours has used it yet"
                    ),
                ));
            }
            _ => {
                return Err(FormatError::new(at, format!("unknown directive `{word}`")));
            }
        })
    }
}

/// Punctuation that MLIR's lexer knows.
const PUNCTUATION: &[&str] = &[
    "->", ":", ",", "=", "<", ">", "(", ")", "{", "}", "[", "]", "?", "+", "*", "|", "...",
];

fn literal(at: usize, text: String) -> Result<Kind, FormatError> {
    Ok(match text.as_str() {
        "" => Kind::Space(""),
        " " => Kind::Space(" "),
        "\\n" => Kind::Space("\n"),
        punctuation if PUNCTUATION.contains(&punctuation) => Kind::Literal(text),
        word if word
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "_.-".contains(character))
            && !word.starts_with(|first: char| first.is_ascii_digit() || first == '-') =>
        {
            Kind::Literal(text)
        }
        _ => {
            return Err(FormatError::new(
                at,
                format!("`{text}` is neither a keyword nor punctuation"),
            ));
        }
    })
}
