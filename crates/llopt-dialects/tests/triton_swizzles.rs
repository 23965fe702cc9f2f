//! Synthesised shared-memory layouts against those of Triton 3.6.0, on pairs of register layouts that
//! its own kernels have.
//!
//! Both memories are accessed with the best vector instructions there are for them, and the passes
//! over the banks are counted exactly.

mod table;

use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{SharedAccess, SwizzleRequest, synthesize};
use llopt_layout::{Dim, LinearLayout};
use llopt_target::Target;

/// A layout from `register=0.1,0.2;lane=1.0;…`.
fn layout(text: &str) -> LinearLayout {
    let mut ins: Vec<(Dim, Vec<Vec<u32>>)> = Vec::new();
    for part in text.split(';') {
        let (name, bases) = part.split_once('=').expect(text);
        let bases = bases
            .split(',')
            .filter(|basis| !basis.is_empty())
            .map(|basis| {
                let entries = basis.split('.').map(|entry| entry.parse().expect(text));
                entries.collect()
            });
        ins.push((Dim::new(name).expect(text), bases.collect()));
    }
    let rank = ins
        .iter()
        .find_map(|(_, bases)| bases.first().map(Vec::len));
    let outs: Vec<Dim> = (0..rank.unwrap_or(1)).map(Dim::tensor).collect();
    let ins: Vec<(Dim, &[Vec<u32>])> = ins.iter().map(|(dim, b)| (*dim, b.as_slice())).collect();
    LinearLayout::from_bases_surjective(&ins, &outs).expect(text)
}

#[test]
fn swizzles_are_never_worse_than_tritons() {
    let rows = table::rows("triton_swizzles.tsv.gz");
    assert!(rows.len() >= 3000, "{} rows", rows.len());
    let vectors = SwizzleRequest {
        store: Some(InstructionKind::Vector),
        load: Some(InstructionKind::Vector),
    };
    let (mut better, mut ours_total, mut tritons_total) = (0, 0u64, 0u64);
    let mut failures = Vec::new();
    for row in &rows {
        let [from, to, bits, memory] = &row[..] else {
            panic!("malformed row {row:?}");
        };
        let (from, to) = (layout(from), layout(to));
        let bits: u32 = bits.parse().expect("bits");
        let target = match from.in_dim_size(Dim::LANE) {
            32 => "cuda:90",
            _ => "hip:gfx942",
        };
        let mut machine = Target::parse(target).expect("a target").machine();
        // Triton synthesises as if memory were unlimited.
        machine.shared_bytes = u32::MAX;
        let memory = layout(memory).flatten_ins();
        let first = memory.in_dims()[0];
        let memory = memory.rename_in(first, Dim::OFFSET).expect("a free name");

        let ours = synthesize(&from, &to, bits, &machine, vectors).expect("a swizzle");
        let tritons = |registers: &LinearLayout, access| {
            let kind = Some(InstructionKind::Vector);
            SharedAccess::for_memory(registers, &memory, bits, access, kind, &machine)
                .expect("an access")
        };
        let (store, load) = (tritons(&from, Access::Store), tritons(&to, Access::Load));
        let total = |store: &SharedAccess, load: &SharedAccess| store.wavefronts + load.wavefronts;
        let instructions =
            |store: &SharedAccess, load: &SharedAccess| store.instructions + load.instructions;
        let (found, expected) = (total(&ours.store, &ours.load), total(&store, &load));
        let (found_instructions, expected_instructions) = (
            instructions(&ours.store, &ours.load),
            instructions(&store, &load),
        );
        ours_total += u64::from(found);
        tritons_total += u64::from(expected);
        better += usize::from(found < expected);
        if found > expected || (found == expected && found_instructions > expected_instructions) {
            failures.push(format!(
                "{found} wavefronts in {found_instructions} instructions, Triton {expected} in \
                 {expected_instructions}: {row:?}"
            ));
        }
        // Where the vectors of both sides are equally wide and cover a bank, no layout does better.
        let chunk = |side: &SharedAccess| side.instruction.chunk_bytes_log2();
        if chunk(&ours.store) == chunk(&ours.load) && chunk(&ours.store) >= 2 {
            for side in [&ours.store, &ours.load] {
                assert_eq!(side.wavefronts, side.bound, "{row:?}");
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} rows are worse\n{}",
        failures.len(),
        rows.len(),
        failures
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(
        ours_total <= tritons_total && better > 0,
        "{ours_total} against {tritons_total}, better in {better}"
    );
}
