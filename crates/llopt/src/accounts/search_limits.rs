//! Searches that ended at a limit, as they pass through the pipeline to the explanation of a kernel.

use std::fmt;

use llopt_plan::search_limit;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains them.
const ATTRIBUTE: &str = "llopt.search_limits";

/// A search that ended at a limit before it had looked at everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchLimit {
    /// What was searched for: `layouts`, `schedule`, `stages`, `versions` or `order`.
    pub search: String,
    /// `file:line:col` of the function, the loop or the operation.
    pub location: String,
    /// The limit, with its number.
    pub limit: String,
    /// What was found; `None` if that is not known.
    pub found: Option<f64>,
    /// What no result is better than; `None` if that is not known.
    pub bound: Option<f64>,
    /// What both are counted in: `cycles`, `stages` or `registers`.
    pub unit: Option<String>,
}

impl From<search_limit::SearchLimit> for SearchLimit {
    fn from(limit: search_limit::SearchLimit) -> Self {
        Self {
            search: limit.search.to_string(),
            location: limit.location,
            limit: limit.limit,
            found: limit.gap.map(|gap| gap.found),
            bound: limit.gap.map(|gap| gap.bound),
            unit: limit.gap.map(|gap| gap.unit.to_owned()),
        }
    }
}

impl fmt::Display for SearchLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            search,
            location,
            limit,
            ..
        } = self;
        write!(
            f,
            "The search for the {search} ({location}) ended at its limit: {limit}; "
        )?;
        let (Some(found), Some(bound), Some(unit)) = (self.found, self.bound, &self.unit) else {
            return writeln!(f, "the gap is not known.");
        };
        writeln!(
            f,
            "{found:.0} {unit} were found, and the bound is {bound:.0}."
        )
    }
}

/// Adds some to those of a module.
pub(crate) fn add(limits: Vec<search_limit::SearchLimit>, module: OperationRef<'_, '_>) {
    if limits.is_empty() {
        return;
    }
    let mut all: Vec<SearchLimit> = take(module);
    all.extend(limits.into_iter().map(SearchLimit::from));
    accounts::write(&all, ATTRIBUTE, module);
}

/// Takes them from the module.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<SearchLimit> {
    accounts::take(ATTRIBUTE, module)
}
