//! `tt.gather` and `tt.histogram`: places that are known only when the program runs.

use llopt_dialects::tt;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::{Dim, LayoutError, LinearLayout};
use melior::ir::OperationRef;

use crate::element::Element;
use crate::emitter::V;
use crate::function::{FunctionLowering, Lowered, integer_attribute, operand};
use crate::hooks::{Ordering, Update};
use crate::local_memory::View;
use crate::reduction::Axis;
use crate::shared_memory::Place;
use crate::tensor::{TensorType, ValueType};

/// Memory that holds a tensor row by row.
fn row_major(shape: &[u32]) -> Result<LinearLayout, LayoutError> {
    let mut rows = LinearLayout::empty();
    for (dim, extent) in shape.iter().enumerate().rev() {
        rows = rows.product(&LinearLayout::identity_1d(
            *extent,
            Dim::OFFSET,
            Dim::tensor(dim),
        )?)?;
    }
    Ok(rows)
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.gather`: the source goes to shared memory, row by row; each index reads its element there.
    pub(crate) fn gather(&mut self, op: tt::GatherOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let e = self.e;
        let from = self.tensor_of(operation, op.src())?;
        let to = self.tensor_of(operation, op.indices())?;
        if self.program.num_ctas > 1 {
            let reason = "it would have to read the memory of other blocks of the cluster";
            return Err(self.unsupported(operation, Some(reason.to_owned())));
        }
        let base = self.scratch_of(operation)?;
        let layout = row_major(&from.shape)
            .map_err(|error| self.unsupported(operation, Some(error.to_string())))?;
        let view = View {
            place: Place::from(base),
            layout,
            element: from.element,
            max_bits: u32::MAX,
        };
        let vector = Some(InstructionKind::Vector);
        let access = self.access_to(operation, &from, &view, Access::Store, vector)?;
        let values = self.registers(op.src());
        self.store_where_acting(operation, &from, &access, &view, &values)?;
        self.hooks().barrier(e);

        // The place outside of the axis is that of the index, with the source's extent along the axis.
        let dim = usize::try_from(op.axis()).unwrap_or(0);
        let axis = Axis::of(&to, dim);
        let (low, bits) = from.bits_of_dim(dim);
        let place = |element: u32| {
            let rest = axis.rest(element);
            let below = rest & ((1 << low) - 1);
            below | rest >> low << (low + bits)
        };
        let threads: Vec<u32> = to.thread_bases().into_iter().map(place).collect();
        let thread = self.linear(&threads, &[]);
        let indices = self.registers(op.indices());
        let memory = self.memory_type(from.element);
        let bytes = from.element.memory_bits() / 8;
        let of = ValueType::Tensor(to.clone());
        let gathered: Vec<V<'ctx>> = self
            .distinct_registers(&of)
            .map(|register| {
                let rest = e.xor(thread, e.i32(i64::from(place(to.element_in(register)))));
                let index = self.to_i32(indices[register]);
                let at = e.add(rest, e.shl(index, e.i32(i64::from(low))));
                let loaded = e.load(memory, e.gep(memory, base, at), bytes);
                self.to_register(from.element, loaded)
            })
            .collect();
        self.bind_result(operation, self.spread(&of, &gathered));
        Ok(())
    }

    /// `tt.histogram`: counters in shared memory.
    pub(crate) fn histogram(&mut self, op: tt::HistogramOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let e = self.e;
        let source = operand(operation, 0);
        let from = self.type_of(source)?;
        let to = self.tensor_of(operation, op.result())?;
        if self.program.num_ctas > 1 {
            let reason = "the blocks of a cluster would have to count together";
            return Err(self.unsupported(operation, Some(reason.to_owned())));
        }
        let base = self.scratch_of(operation)?;
        let counter = self.memory_type(to.element);
        let bytes = to.element.memory_bits() / 8;
        let address = |place: V<'ctx>| e.gep(counter, base, place);

        let bins: u32 = to.shape.iter().product();
        let threads = self.program.threads_per_warp * self.program.num_warps;
        let numbers: Vec<u32> = (0..threads.trailing_zeros()).map(|bit| 1 << bit).collect();
        let thread = self.linear(&numbers, &[]);
        let clear = |first: u32| {
            let place = e.add(thread, e.i32(i64::from(first)));
            e.store(e.zero(counter), address(place), bytes);
        };
        if bins < threads {
            let acts = e.icmp(inkwell::IntPredicate::ULT, thread, e.i32(i64::from(bins)));
            self.only_if(Some(acts), || clear(0));
        } else {
            (0..bins).step_by(threads as usize).for_each(clear);
        }
        self.hooks().barrier(e);

        let acts = self.acting_thread(&from);
        let values = self.registers(source);
        let masks = op.mask().map(|mask| self.registers(mask));
        let one = e.int_like(e.zero(counter), 1);
        let scope = self.hooks().block_scope();
        for register in self.distinct_registers(&from).collect::<Vec<_>>() {
            let mask = self.both(acts, masks.as_ref().map(|masks| masks[register]));
            let place = address(self.to_i32(values[register]));
            self.only_if(mask, || {
                e.atomic_update(Update::Add, place, one, Ordering::Relaxed, scope);
            });
        }
        self.hooks().barrier(e);

        let of = ValueType::Tensor(to.clone());
        let places = self.threads.elements(e, self.hooks(), &to);
        let counts: Vec<V<'ctx>> = self
            .distinct_registers(&of)
            .map(|register| e.load(counter, address(places[register]), bytes))
            .collect();
        self.bind_result(operation, self.spread(&of, &counts));
        Ok(())
    }

    /// The address of the op's scratch memory.
    pub(crate) fn scratch_of(&self, op: OperationRef<'c, 'a>) -> Lowered<V<'ctx>> {
        let offset = integer_attribute(op, "allocation.offset").ok_or_else(|| {
            self.unsupported(op, Some("no shared memory was allocated for it".to_owned()))
        })?;
        Ok(self.e.byte_offset(self.hidden.shared, offset))
    }

    /// An index, of whatever width, as 32 bits.
    fn to_i32(&self, index: V<'ctx>) -> V<'ctx> {
        let word = self.e.int(32).into();
        match crate::emitter::bit_width(index.get_type()) {
            0..32 => self.e.zext(index, word),
            32 => index,
            _ => self.e.trunc(index, word),
        }
    }
}

/// The bytes of shared memory that gathering from a tensor takes.
pub(crate) fn gather_bytes(from: &TensorType) -> u64 {
    elements(from) * u64::from(from.element.memory_bits().div_ceil(8))
}

/// The bytes of the counters of a histogram.
pub(crate) fn histogram_bytes(to: &TensorType) -> u64 {
    elements(to) * u64::from(Element::memory_bits(to.element) / 8)
}

fn elements(tensor: &TensorType) -> u64 {
    tensor
        .shape
        .iter()
        .map(|&extent| u64::from(extent))
        .product()
}
