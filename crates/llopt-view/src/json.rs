//! Layouts as JSON: `{"in":[{"name":"register","bases":[[0,1]]}],"out":[{"name":"dim0","size":2}]}`.

use llopt_layout::{Dim, LinearLayout};
use serde::{Deserialize, Serialize};

use crate::ReadError;

/// A layout in the form that `show --json` prints and every command reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutJson {
    /// Input dimensions, minor to major.
    #[serde(rename = "in")]
    pub ins: Vec<InDim>,
    /// Output dimensions in the order of the entries of a basis vector.
    #[serde(rename = "out")]
    pub outs: Vec<OutDim>,
}

/// An input dimension with its basis vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InDim {
    /// The name: `register`, `lane`, …
    pub name: String,
    /// The images of 1, 2, 4, …, one entry per output dimension.
    pub bases: Vec<Vec<u32>>,
}

/// An output dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutDim {
    /// The name: `dim0`, …
    pub name: String,
    /// The size, a power of two.
    pub size: u64,
}

impl From<&LinearLayout> for LayoutJson {
    fn from(layout: &LinearLayout) -> Self {
        let bases = |dim| {
            (0..layout.in_dim_size_log2(dim))
                .map(|bit| layout.basis(dim, bit).unwrap_or_default().to_vec())
                .collect()
        };
        Self {
            ins: layout
                .in_dims()
                .iter()
                .map(|&dim| InDim {
                    name: dim.to_string(),
                    bases: bases(dim),
                })
                .collect(),
            outs: layout
                .out_dims()
                .iter()
                .map(|&dim| OutDim {
                    name: dim.to_string(),
                    size: layout.out_dim_size(dim),
                })
                .collect(),
        }
    }
}

impl TryFrom<&LayoutJson> for LinearLayout {
    type Error = ReadError;

    fn try_from(json: &LayoutJson) -> Result<Self, ReadError> {
        let named = |name: &str| Dim::new(name).ok_or_else(|| ReadError::DimName(name.to_owned()));
        let mut ins: Vec<(Dim, &[Vec<u32>])> = Vec::new();
        for dim in &json.ins {
            ins.push((named(&dim.name)?, &dim.bases));
        }
        let mut outs = Vec::new();
        for out in &json.outs {
            let dim = named(&out.name)?;
            let size = u32::try_from(out.size).map_err(|_| ReadError::OutSize {
                dim,
                size: out.size,
            })?;
            outs.push((dim, size));
        }
        Ok(LinearLayout::from_bases(&ins, &outs)?)
    }
}

/// Reads the form above.
pub(crate) fn read(text: &str) -> Result<LinearLayout, ReadError> {
    let json: LayoutJson = serde_json::from_str(text).map_err(ReadError::Json)?;
    LinearLayout::try_from(&json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let text = r#"{"in":[{"name":"register","bases":[[0,1],[0,2]]},{"name":"lane","bases":[[1,0]]}],"out":[{"name":"dim0","size":2},{"name":"dim1","size":4}]}"#;
        let layout = read(text).unwrap();
        assert_eq!(
            serde_json::to_string(&LayoutJson::from(&layout)).unwrap(),
            text
        );
    }

    #[test]
    fn errors_name_the_dimension_and_the_basis_vector() {
        let layout = |bases: &str, size: &str| {
            format!(
                r#"{{"in":[{{"name":"lane","bases":{bases}}}],"out":[{{"name":"dim0","size":{size}}}]}}"#
            )
        };
        let cases = [
            (
                layout("[[1],[4]]", "4"),
                "basis vector 1 of `lane` maps to 4 in `dim0`, whose size is 4",
            ),
            (
                layout("[[1],[2,0]]", "4"),
                "basis vector 1 of `lane` has 2 of 1 entries, one per output dimension",
            ),
            (
                layout("[[1]]", "3"),
                "dimension `dim0` has size 3, which is not a power of two",
            ),
            (
                layout("[[1]]", "8589934592"),
                "`dim0` has size 8589934592, which is too large",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(matches!(read("{}"), Err(ReadError::Json(_))));
    }
}
