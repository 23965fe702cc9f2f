//! Synthesised shared-memory layouts against those of Triton 3.6.0, on pairs of register layouts that
//! its own kernels have.
//!
//! Both memories are accessed with the best instructions of a kind that there are for them, and the wavefronts are
//! counted exactly: plain vectors on both vendors, and with `ldmatrix` and `stmatrix` to choose from.

use crate::table;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::{Costs, Machine, SharedAccess, SharedPlan, SwizzleRequest, synthesize};
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

/// A memory from offsets in the order of Triton's parts of an offset.
fn memory(text: &str) -> LinearLayout {
    let flat = layout(text).flatten_ins();
    let first = flat.in_dims()[0];
    flat.rename_in(first, Dim::OFFSET).expect("a free name")
}

/// The kind of instructions by the name that the table has for it.
fn kind(name: &str) -> InstructionKind {
    match name {
        "vector" => InstructionKind::Vector,
        "matrix" => InstructionKind::Matrix,
        "transposed" => InstructionKind::MatrixTransposed,
        _ => panic!("no instructions are called {name}"),
    }
}

/// The cost of a trip through memory.
#[derive(Clone, Copy, Debug)]
struct Trip {
    wavefronts: u32,
    /// The price of the instructions without wavefronts.
    instructions: f32,
    permutes: u32,
}

impl Trip {
    fn of(store: &SharedAccess, load: &SharedAccess, costs: &Costs) -> Self {
        let price =
            |side: &SharedAccess| side.instructions as f32 * costs.access(&side.instruction);
        Self {
            wavefronts: store.wavefronts + load.wavefronts,
            instructions: price(store) + price(load),
            permutes: store.permutes([]) + load.permutes([]),
        }
    }

    /// Whether it takes more wavefronts, or as many and more for instructions without fewer permutes for it.
    fn is_worse_than(&self, other: &Trip) -> bool {
        let more = self.instructions > other.instructions && self.permutes >= other.permutes;
        self.wavefronts > other.wavefronts || self.wavefronts == other.wavefronts && more
    }
}

/// A row of the table.
struct Row<'a> {
    from: LinearLayout,
    to: LinearLayout,
    bits: u32,
    machine: Machine<'static>,
    fields: &'a [String],
}

impl<'a> Row<'a> {
    fn new(fields: &'a [String]) -> Self {
        assert_eq!(fields.len(), 7, "malformed row {fields:?}");
        let (from, to) = (layout(&fields[0]), layout(&fields[1]));
        let target = match from.in_dim_size(Dim::LANE) {
            32 => "cuda:90",
            _ => "hip:gfx942",
        };
        let mut machine = Target::parse(target).expect("a target").machine();
        // Triton synthesises as if memory were unlimited.
        machine.shared_bytes = u32::MAX;
        Self {
            from,
            to,
            bits: fields[2].parse().expect("bits"),
            machine,
            fields,
        }
    }

    /// The cost of Triton's memory with the best instructions of these kinds.
    fn tritons(&self, memory: &LinearLayout, kinds: [InstructionKind; 2]) -> Trip {
        let access = |registers, access, kind| {
            let machine = &self.machine;
            SharedAccess::for_memory(registers, memory, self.bits, access, Some(kind), machine)
                .unwrap_or_else(|error| panic!("{error}: {:?}", self.fields))
        };
        Trip::of(
            &access(&self.from, Access::Store, kinds[0]),
            &access(&self.to, Access::Load, kinds[1]),
            &self.machine.costs,
        )
    }

    fn ours(&self, request: SwizzleRequest) -> SharedPlan {
        synthesize(&self.from, &self.to, self.bits, &self.machine, request).expect("a swizzle")
    }
}

/// Compares all rows for which `trips` has a result: llopt's and Triton's.
fn compare(trips: impl Fn(&Row<'_>) -> Option<(Trip, Trip)>) {
    let rows = table::rows("triton_swizzles.tsv.gz");
    let (mut compared, mut better) = (0, 0);
    let mut failures = Vec::new();
    for fields in &rows {
        let row = Row::new(fields);
        let Some((ours, tritons)) = trips(&row) else {
            continue;
        };
        compared += 1;
        better += usize::from(tritons.is_worse_than(&ours));
        if ours.is_worse_than(&tritons) {
            failures.push(format!("{ours:?}, Triton {tritons:?}: {fields:?}"));
        }
    }
    assert!(compared >= 2000, "{compared} rows compared");
    assert!(
        failures.is_empty(),
        "{} of {compared} rows are worse\n{}",
        failures.len(),
        failures
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(better > 0, "no row of {compared} is better");
}

#[test]
fn vector_swizzles_are_never_worse_than_tritons() {
    use InstructionKind::Vector;
    compare(|row| {
        let ours = row.ours(SwizzleRequest {
            store: Some(Vector),
            load: Some(Vector),
            ..SwizzleRequest::default()
        });
        // Where the vectors of both sides are equally wide and cover a bank, no layout does better.
        let chunk = |side: &SharedAccess| side.instruction.chunk_bytes_log2();
        if chunk(&ours.store) == chunk(&ours.load) && chunk(&ours.store) >= 2 {
            for side in [&ours.store, &ours.load] {
                assert_eq!(side.wavefronts, side.bound, "{:?}", row.fields);
            }
        }
        let tritons = row.tritons(&memory(&row.fields[3]), [Vector, Vector]);
        Some((
            Trip::of(&ours.store, &ours.load, &row.machine.costs),
            tritons,
        ))
    });
}

#[test]
fn swizzles_for_matrix_instructions_are_never_worse_than_tritons() {
    compare(|row| {
        if row.machine.matrix.is_empty() {
            return None;
        }
        let ours = row.ours(SwizzleRequest::default());
        let kinds = [kind(&row.fields[4]), kind(&row.fields[5])];
        let tritons = row.tritons(&memory(&row.fields[6]), kinds);
        Some((
            Trip::of(&ours.store, &ours.load, &row.machine.costs),
            tritons,
        ))
    });
}
