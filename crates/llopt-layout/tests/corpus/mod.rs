//! The pairs of layouts between which real kernels convert.
#![allow(dead_code, reason = "each binary uses a part")]

use llopt_layout::plan::Machine;
use llopt_layout::{Dim, LinearLayout};

use crate::machines::{WARP32_MATRIX, WAVE64, WAVE64_BANKS64};

/// One conversion.
pub struct Pair {
    pub target: &'static str,
    pub element_bits: u32,
    pub from: LinearLayout,
    pub to: LinearLayout,
    /// The memory that Triton would take with plain loads and stores, from (offset) to the tensor.
    pub triton: Option<LinearLayout>,
}

impl Pair {
    /// A machine like the target.
    pub fn machine(&self) -> Machine<'static> {
        match self.target {
            "hip_gfx90a" | "hip_gfx942" => WAVE64,
            "hip_gfx950" => WAVE64_BANKS64,
            _ => WARP32_MATRIX,
        }
    }
}

/// All conversions of the table.
pub fn pairs() -> Vec<Pair> {
    let lines = include_str!("pairs.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(pair)
        .collect()
}

fn pair(line: &'static str) -> Pair {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let shape: Vec<(Dim, u32)> = fields[2]
        .split('x')
        .enumerate()
        .map(|(i, size)| (Dim::tensor(i), size.parse().expect("a size")))
        .collect();
    let triton = (fields[5] != "-").then(|| {
        let cut = layout(fields[5], &shape);
        let bits = cut.total_in_size_log2();
        cut.reshape_ins(&[(Dim::OFFSET, 1 << bits)])
            .expect("the same bits")
    });
    Pair {
        target: fields[0],
        element_bits: fields[1].parse().expect("a width"),
        from: layout(fields[3], &shape),
        to: layout(fields[4], &shape),
        triton,
    }
}

fn layout(text: &str, shape: &[(Dim, u32)]) -> LinearLayout {
    let bases: Vec<(Dim, Vec<Vec<u32>>)> = text
        .split(';')
        .map(|part| {
            let (name, list) = part.split_once('=').expect("a name and bases");
            let vectors = list.split(',').filter(|v| !v.is_empty()).map(|vector| {
                vector
                    .split('.')
                    .map(|entry| entry.parse().expect("an entry"))
                    .collect()
            });
            (Dim::new(name).expect("a name"), vectors.collect())
        })
        .collect();
    let borrowed: Vec<_> = bases.iter().map(|(dim, list)| (*dim, &list[..])).collect();
    LinearLayout::from_bases(&borrowed, shape).expect("well formed")
}
