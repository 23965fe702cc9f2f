//! Facts about ops (`dialects/facts.td`): from records to the Rust expression of an `OpFacts`.

use crate::{
    model::{Fact, ModelError},
    read::text,
};
use std::fmt::Write;
use tblgen::Record;

/// Reads facts.
///
/// # Errors
/// A record that is not a fact.
pub fn read(records: Vec<Record<'_>>) -> Result<Vec<Fact>, ModelError> {
    records.into_iter().map(fact).collect()
}

/// Reads one fact.
///
/// # Errors
/// A record that is not a fact.
pub fn fact(record: Record<'_>) -> Result<Fact, ModelError> {
    Ok(Fact {
        question: text(record, "question")?,
        answer: text(record, "answer")?,
    })
}

/// The expression; later declarations override earlier ones.
pub fn expression(facts: &[Fact]) -> String {
    let mut code = String::from("OpFacts { ");
    for (index, fact) in facts.iter().enumerate() {
        let again = facts[index + 1..]
            .iter()
            .any(|later| later.question == fact.question);
        if !again {
            let _ = write!(code, "{}: {}, ", fact.question, fact.answer);
        }
    }
    code.push_str("..OpFacts::NONE }");
    code
}
