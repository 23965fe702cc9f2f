//! The bases of every encoding equal those of Triton 3.6.0, row by row of the table that
//! `tools/oracle` wrote. Each row goes the whole way: text, attribute, encoding, layout.

use crate::table;
use llopt_dialects::layout::encoding::Encoding;
use llopt_layout::LinearLayout;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Attribute;

/// A context with the dialects, in the process's life.
fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).expect("the dialects register");
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context
}

/// `register=0.1,0.2;lane=1.0;warp=;block=`, as the table writes bases.
fn bases_text(layout: &LinearLayout) -> String {
    let dims = layout.in_dims().iter().map(|&dim| {
        let bases: Vec<String> = (0..layout.in_dim_size_log2(dim))
            .map(|bit| {
                let basis = layout.basis(dim, bit).unwrap_or_default();
                let entries: Vec<String> = basis.iter().map(u32::to_string).collect();
                entries.join(".")
            })
            .collect();
        format!("{dim}={}", bases.join(","))
    });
    dims.collect::<Vec<_>>().join(";")
}

#[test]
fn bases_equal_tritons_for_every_row() {
    let context = context();
    let rows = table::rows("triton_layouts.tsv.gz");
    assert!(rows.len() >= 3000, "{} rows", rows.len());
    let mut kinds = std::collections::BTreeMap::new();
    let mut failures = Vec::new();
    for row in &rows {
        let [text, shape, expected] = &row[..] else {
            panic!("malformed row {row:?}");
        };
        let shape = table::shape(shape);
        let Some(attribute) = Attribute::parse(&context, text) else {
            failures.push(format!("{text} does not parse"));
            continue;
        };
        if Attribute::parse(&context, &attribute.to_string()) != Some(attribute) {
            failures.push(format!("{text} is printed as {attribute}"));
        }
        let found = Encoding::from_attribute(attribute).and_then(|encoding| {
            *kinds.entry(encoding.name()).or_insert(0) += 1;
            if encoding.to_attribute(&context) != attribute {
                failures.push(format!("{text} is written back differently"));
            }
            encoding.linear_layout(&shape)
        });
        match found {
            Ok(layout) if &bases_text(&layout) == expected => {
                let sizes: Vec<u64> = layout
                    .out_dims()
                    .iter()
                    .map(|&d| layout.out_dim_size(d))
                    .collect();
                assert_eq!(sizes, shape, "{text}");
            }
            Ok(layout) => failures.push(format!(
                "{text} on {shape:?}\n  ours   {}\n  Triton {expected}",
                bases_text(&layout)
            )),
            Err(error) => failures.push(format!("{text} on {shape:?}\n  {error}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} rows differ\n{}",
        failures.len(),
        rows.len(),
        failures
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert_eq!(kinds.len(), 14, "a kind without rows: {kinds:?}");
}

#[test]
fn presets_are_read_and_printed_as_triton_does() {
    let context = context();
    let cases = [
        (
            "#ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>",
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], \
             instrShape = [16, 8]}>",
        ),
        (
            "#ttg.amd_wmma<{version = 2, warpsPerCTA = [2, 2], instrShape = [16, 16, 16]}>",
            "#ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [2, 2]}>",
        ),
        (
            "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], \
             isTransposed = true, tilesPerWarp = [1, 1], elementBitWidth = 32}>",
            "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], \
             isTransposed = true}>",
        ),
    ];
    for (text, expected) in cases {
        let attribute = Attribute::parse(&context, text).expect(text);
        assert_eq!(attribute.to_string(), expected);
    }
}
