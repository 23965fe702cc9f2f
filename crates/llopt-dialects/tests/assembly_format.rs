//! Mistakes in the assembly format of a `.td` file end the build with a message that points at them.
//!
//! The build script's own parser and lowering are compiled in here; the operation that they work on
//! is made by hand.

#![allow(
    dead_code,
    reason = "the build script uses more of these files than the tests do"
)]

#[path = "../build/format.rs"]
mod format;
#[path = "../build/lower.rs"]
mod lower;
#[path = "../build/model.rs"]
mod model;
#[path = "../src/tables/type_set.rs"]
mod type_set;

use model::{
    AttributeField, AttributeKind, Model, Multiplicity, Operation, Presence, TypeConstraint,
    ValueField,
};
use type_set::TypeSet;

fn value(name: &str, multiplicity: Multiplicity) -> ValueField {
    ValueField {
        name: name.to_owned(),
        constraint: TypeConstraint {
            any: true,
            scalar: TypeSet::EMPTY,
            tensor: TypeSet::EMPTY,
            kinds: Vec::new(),
            summary: "anything".to_owned(),
        },
        multiplicity,
        effects: Vec::new(),
    }
}

fn attribute(name: &str, kind: AttributeKind, presence: Presence) -> AttributeField {
    AttributeField {
        name: name.to_owned(),
        kind,
        presence,
        range: None,
    }
}

/// `$src`, `$mask` if there is one, `$others`; attributes `width` and, perhaps, `fast` and `cache`;
/// a result.
fn operation() -> Operation {
    Operation {
        record: "TT_SampleOp".to_owned(),
        class: "SampleOp".to_owned(),
        mnemonic: "sample".to_owned(),
        summary: String::new(),
        description: String::new(),
        family: String::new(),
        operands: vec![
            value("src", Multiplicity::One),
            value("mask", Multiplicity::Optional),
            value("others", Multiplicity::Variadic),
        ],
        attributes: vec![
            attribute("width", AttributeKind::Integer(32), Presence::Required),
            attribute("fast", AttributeKind::Unit, Presence::Optional),
            attribute("cache", AttributeKind::String, Presence::Optional),
        ],
        arguments: Vec::new(),
        results: vec![value("result", Multiplicity::One)],
        regions: Vec::new(),
        traits: Vec::new(),
        parents: Vec::new(),
        facts: Vec::new(),
        relations: Vec::new(),
        effects: None,
        format: None,
        hooks: Vec::new(),
    }
}

/// The result of the build script for a format.
fn build(text: &str) -> Result<String, String> {
    let model = Model {
        dialects: Vec::new(),
    };
    format::parse(text)
        .and_then(|elements| lower::lower(&model, "tt", &operation(), &elements))
        .map_err(|error| error.render(text))
}

const TYPES: &str = "type($src) `,` type($mask) `,` type($others) `->` type($result)";

#[test]
fn a_format_that_says_everything_is_taken() {
    let text = format!(
        "$src (`,` $mask^)? `[` $others `]` (`fast` $fast^)? $width oilist(`cache` `=` $cache) attr-dict `:` {TYPES}"
    );
    let built = build(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        built.contains("anchor: Anchor::Operand(1)"),
        "an optional group: {built}"
    );
    assert!(built.contains("unit: Some(1)"), "a unit attribute: {built}");
    assert!(built.contains("Element::OiList"), "clauses: {built}");
}

#[test]
fn mistakes_of_syntax_are_shown_where_they_are() {
    let cases = [
        ("$src `,", "this literal has no closing backtick", 5),
        ("$src $", "expected a name after `$`", 5),
        (
            "$src ; attr-dict",
            "`;` must be inside of backticks to be a literal",
            5,
        ),
        (
            "$src , attr-dict",
            "`,` is out of place; a literal needs backticks",
            5,
        ),
        (
            "`a b` attr-dict",
            "`a b` is neither a keyword nor punctuation",
            0,
        ),
        (
            "`1x` attr-dict",
            "`1x` is neither a keyword nor punctuation",
            0,
        ),
        ("attr-dictionary", "unknown directive `attr-dictionary`", 0),
        (
            "regions attr-dict",
            "the directive `regions` is not supported: no operation of ours has used it yet",
            0,
        ),
        ("$src)", "expected an element of the format", 4),
        ("type $src", "expected `(` after `type`", 5),
        (
            "type(",
            "expected an element before the end of the format",
            5,
        ),
        ("type($src", "expected `)` after the argument of `type`", 9),
        (
            "functional-type($src)",
            "expected `,` between the arguments of `functional-type`",
            20,
        ),
        ("custom Offsets", "expected `<` after `custom`", 7),
        ("custom<>()", "expected the name of the custom directive", 7),
        (
            "custom<Offsets>($src",
            "expected `)` after the arguments of the custom directive",
            20,
        ),
        ("(`,` $mask^", "expected `)` after the group", 11),
        (
            "(`,` $mask^) attr-dict",
            "expected `?` after an optional group",
            13,
        ),
        ("(`,` $mask)?", "an optional group needs an anchor `^`", 0),
        ("(`,`^ $mask^)?", "a group has one anchor `^` only", 11),
        (
            "(`,` $mask^) : `no`",
            "expected `(` before the else group",
            15,
        ),
        (
            "(`,` $mask^) : (`no` $cache^)?",
            "the anchor belongs to the first group",
            0,
        ),
        (
            "oilist($cache)",
            "a clause of `oilist` starts with a literal",
            7,
        ),
        (
            "oilist(`cache` $cache^)",
            "a clause of `oilist` has no anchor",
            7,
        ),
        (
            "oilist(`cache` $cache",
            "expected `)` after the clauses of `oilist`",
            21,
        ),
    ];
    for (text, message, column) in cases {
        let caret = " ".repeat(column);
        let expected = format!("{message} (line 1 of the format)\n  {text}\n  {caret}^");
        assert_eq!(build(text), Err(expected));
    }
}

#[test]
fn mistakes_of_meaning_are_shown_where_they_are() {
    let all = format!("$src $mask $others $width attr-dict `:` {TYPES}");
    assert!(build(&all).is_ok(), "{:?}", build(&all));
    let cases = [
        (
            "$source attr-dict",
            "`$source` is no operand, attribute or result of the operation",
            0,
        ),
        (
            "$result attr-dict",
            "`$result` is a result; only its type can be written",
            0,
        ),
        ("results attr-dict", "`results` only names types", 0),
        ("attr-dict attr-dict", "`attr-dict` is written twice", 10),
        (
            "$width $width attr-dict",
            "this attribute is written twice",
            7,
        ),
        (
            "type($width) attr-dict",
            "`$width` is an attribute and has no type here",
            5,
        ),
        (
            "(`,` $src^)? attr-dict",
            "`$src` is always present and cannot be an anchor",
            5,
        ),
        (
            "(`,` $width^)? attr-dict",
            "`$width` is always present and cannot be an anchor",
            5,
        ),
        (
            "(`,`^ $mask)? attr-dict",
            "the anchor of a group is a variable or its type",
            1,
        ),
        (
            "($cache^ `,`)? attr-dict",
            "an optional group begins with a literal or an operand that may be absent",
            0,
        ),
        ("$src $mask $others", "the format has no `attr-dict`", 0),
        ("$src $mask attr-dict", "operand `others` is not written", 0),
        (
            "$src $mask $others attr-dict",
            "nothing says what the type of operand `src` is",
            0,
        ),
        (
            "$src $mask $others attr-dict type($src) type($mask) type($others)",
            "nothing says what the type of result `result` is",
            0,
        ),
    ];
    for (text, message, column) in cases {
        let caret = " ".repeat(column);
        let expected = format!("{message} (line 1 of the format)\n  {text}\n  {caret}^");
        assert_eq!(build(text), Err(expected));
    }
}

#[test]
fn the_line_of_a_long_format_is_shown_alone() {
    let text = "$src\n  `,` $nobody\n  attr-dict";
    let expected = "`$nobody` is no operand, attribute or result of the operation (line 2 of the format)\n    `,` $nobody\n        ^";
    assert_eq!(build(text), Err(expected.to_owned()));
}
