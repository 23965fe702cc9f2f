//! Random layouts, and all points of a layout, for tests by brute force.
#![allow(dead_code, reason = "each test binary uses a part")]

use llopt_layout::{Dim, LinearLayout};
use proptest::prelude::*;

/// A layout with the inputs `ins` of up to `2^max_in` points each and `rank` outputs of up to `2^max_out` points,
/// with arbitrary bases.
pub fn layout(
    ins: &'static [Dim],
    max_in: u32,
    rank: usize,
    max_out: u32,
) -> impl Strategy<Value = LinearLayout> {
    proptest::collection::vec(0..=max_out, rank)
        .prop_flat_map(move |sizes| layout_onto(ins, max_in, &sizes))
}

/// A layout with outputs of the sizes given as log2.
pub fn layout_onto(
    ins: &'static [Dim],
    max_in: u32,
    outs: &[u32],
) -> impl Strategy<Value = LinearLayout> + use<> {
    let out_dims: Vec<(Dim, u32)> = outs
        .iter()
        .enumerate()
        .map(|(i, &log2)| (Dim::tensor(i), 1 << log2))
        .collect();
    proptest::collection::vec(0..=max_in, ins.len()).prop_flat_map(move |in_log2| {
        let out_dims = out_dims.clone();
        let per_dim: Vec<_> = in_log2
            .iter()
            .map(|&log2| {
                let entries: Vec<_> = out_dims.iter().map(|&(_, size)| 0..size).collect();
                // A third of the basis vectors is zero: broadcasts matter.
                let basis =
                    (entries, 0..3u8).prop_map(|(v, z)| if z == 0 { vec![0; v.len()] } else { v });
                proptest::collection::vec(basis, log2 as usize)
            })
            .collect();
        per_dim.prop_map(move |bases| {
            let named: Vec<_> = ins.iter().zip(&bases).map(|(&d, v)| (d, &v[..])).collect();
            LinearLayout::from_bases(&named, &out_dims).expect("in range by construction")
        })
    })
}

/// A surjective layout with outputs of the sizes given as log2: a random invertible map, some
/// redundant basis vectors, dealt out to the inputs in random order.
pub fn surjective(
    ins: &'static [Dim],
    redundant: usize,
    outs: &[u32],
) -> impl Strategy<Value = LinearLayout> + use<> {
    let bits: u32 = outs.iter().sum();
    let out_dims: Vec<(Dim, u32)> = outs
        .iter()
        .enumerate()
        .map(|(i, &log2)| (Dim::tensor(i), 1 << log2))
        .collect();
    let columns = bits as usize + redundant;
    (
        proptest::collection::vec(any::<u32>(), columns),
        proptest::collection::vec(0..ins.len(), columns),
        Just((0..columns).collect::<Vec<_>>()).prop_shuffle(),
    )
        .prop_map(move |(mut words, owners, order)| {
            let mask = ((1u64 << bits) - 1) as u32;
            // The first columns are a triangular matrix, so that they are independent.
            for (i, word) in words.iter_mut().enumerate() {
                *word &= mask;
                if i < bits as usize {
                    *word = *word >> (i + 1) << (i + 1) & mask | 1 << i;
                }
            }
            let mut bases: Vec<Vec<Vec<u32>>> = vec![Vec::new(); ins.len()];
            for &i in &order {
                let mut rest = words[i];
                let vector = out_dims
                    .iter()
                    .map(|&(_, size)| {
                        let value = rest % size;
                        rest /= size;
                        value
                    })
                    .collect();
                bases[owners[i]].push(vector);
            }
            let named: Vec<_> = ins.iter().zip(&bases).map(|(&d, v)| (d, &v[..])).collect();
            LinearLayout::from_bases(&named, &out_dims).expect("in range by construction")
        })
}

/// All points of the input space.
pub fn points(layout: &LinearLayout) -> Vec<Vec<(Dim, u32)>> {
    let dims: Vec<_> = layout
        .in_dims()
        .iter()
        .map(|&d| (d, layout.in_dim_size(d) as u32))
        .collect();
    grid(&dims)
}

/// All points of the output space.
pub fn outputs(layout: &LinearLayout) -> Vec<Vec<(Dim, u32)>> {
    let dims: Vec<_> = layout
        .out_dims()
        .iter()
        .map(|&d| (d, layout.out_dim_size(d) as u32))
        .collect();
    grid(&dims)
}

fn grid(dims: &[(Dim, u32)]) -> Vec<Vec<(Dim, u32)>> {
    let mut all = vec![Vec::new()];
    for &(dim, size) in dims {
        all = (0..size)
            .flat_map(|v| {
                all.iter().map(move |p: &Vec<(Dim, u32)>| {
                    let mut p = p.clone();
                    p.push((dim, v));
                    p
                })
            })
            .collect();
    }
    all
}

/// The image of a point.
pub fn image_of(layout: &LinearLayout, point: &[(Dim, u32)]) -> Vec<(Dim, u32)> {
    layout.apply(point).expect("a point of the layout").to_vec()
}
