//! Tensor descriptors: accesses to blocks of a tensor in global memory. The parts outside of the tensor read as zero
//! or NaN and are never written.
//!
//! A block with fewer dimensions than the tensor covers its last ones. A pointer to a tile is the same tensor with
//! the start of the tile; an access through it checks only the dimensions that it names. Asynchronous copies are
//! complete at once, so barriers in memory and waits have no effect here.

use std::rc::Rc;

use llopt_dialects::meaning::kinds::DescriptorOp;
use llopt_dialects::tables::types::TensorDesc;
use llopt_dialects::{tt, ttng};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, Value as Handle, ValueLike};

use crate::machine::bytecode::{AccessKind, AtomicOp};
use crate::machine::row::{Real, sext};
use crate::memory::access::combine;

use super::failure::{Interpreted, unknown, wrong};
use super::program::Program;
use super::value::{Descriptor, Element, Entry, Tensor, Value, coordinates, count, shape_of};

/// The place of each element of a block: coordinates of the block, and in the tensor.
struct Places {
    shape: Vec<usize>,
    /// Start of the block in the tensor.
    begin: Vec<i64>,
    /// The rows of a block that gathers or scatters rows.
    rows: Option<Vec<i64>>,
    /// Dimensions in which the bounds of an element are not checked.
    unchecked: Vec<usize>,
    /// Whether elements outside may read as any value.
    open: bool,
}

impl Places {
    fn all(&self) -> impl Iterator<Item = Vec<i64>> + '_ {
        (0..count(&self.shape)).map(|number| {
            let block = coordinates(number, &self.shape);
            let before = self.begin.len() - block.len();
            let mut at = self.begin.clone();
            for (dim, &c) in block.iter().enumerate() {
                at[before + dim] += c as i64;
            }
            if let Some(rows) = &self.rows {
                at[before] = rows[block[0]];
            }
            at
        })
    }
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// An operation on descriptors, tiles or barriers in memory.
    pub(super) fn descriptor_operation(
        &mut self,
        op: DescriptorOp<'c, 'a>,
    ) -> Interpreted<Vec<Value>> {
        match op {
            DescriptorOp::TtMakeTensorDesc(op) => {
                let whole = self.whole_tensor(op.base(), &op.shape(), &op.strides())?;
                let nan = op.padding() == tt::PaddingOption::Nan;
                let descriptor = Descriptor { nan, ..whole };
                return Ok(vec![Value::Descriptor(Rc::new(descriptor))]);
            }
            DescriptorOp::TtMakeTensorPtr(op) => {
                let whole = self.whole_tensor(op.base(), &op.shape(), &op.strides())?;
                let begin = self.numbers(&op.offsets())?;
                return Ok(vec![Value::Tile(Rc::new(whole), begin)]);
            }
            DescriptorOp::TtAdvance(op) => {
                let (whole, mut begin) = self.tile(op.ptr())?;
                for (at, by) in begin.iter_mut().zip(self.numbers(&op.offsets())?) {
                    // Offsets have 32 bits.
                    *at = i64::from((*at as i32).wrapping_add(by as i32));
                }
                return Ok(vec![Value::Tile(whole, begin)]);
            }
            DescriptorOp::TtgGlobalScratchAlloc(op) => {
                // The address is arbitrary: it only identifies the object made there.
                self.scratch += op.nbytes().unsigned_abs().next_multiple_of(128);
                let address = Tensor::scalar(Element::Pointer(1), self.scratch);
                return Ok(vec![Value::Tensor(address)]);
            }
            DescriptorOp::TtngTensormapCreate(op) => self.make_tensor_map(op)?,
            DescriptorOp::TtngReinterpretTensorDesc(op) => {
                let at = self.tensor(op.raw_desc())?.only()?;
                return match self.descriptors.get(&at) {
                    Some(descriptor) => Ok(vec![Value::Descriptor(descriptor.clone())]),
                    None => wrong("no descriptor has been made there"),
                };
            }
            DescriptorOp::TtDescriptorLoad(op) => {
                let places = self.block_at(&op.indices(), op.result())?;
                let block = self.load_block(op.desc(), &places, op.result())?;
                return Ok(vec![Value::Tensor(block)]);
            }
            DescriptorOp::TtDescriptorGather(op) => {
                let places = self.rows(op.x_offsets(), op.y_offset(), op.result())?;
                let block = self.load_block(op.desc(), &places, op.result())?;
                return Ok(vec![Value::Tensor(block)]);
            }
            DescriptorOp::TtDescriptorStore(op) => {
                let places = self.block_at(&op.indices(), op.src())?;
                self.store_block(op.desc(), &places, &self.tensor(op.src())?, None)?;
            }
            DescriptorOp::TtDescriptorScatter(op) => {
                let places = self.rows(op.x_offsets(), op.y_offset(), op.src())?;
                self.store_block(op.desc(), &places, &self.tensor(op.src())?, None)?;
            }
            DescriptorOp::TtDescriptorReduce(op) => {
                let places = self.block_at(&op.indices(), op.src())?;
                let source = self.tensor(op.src())?;
                self.store_block(op.desc(), &places, &source, Some(op.kind()))?;
            }
            DescriptorOp::TtngAsyncTMACopyGlobalToLocal(op) => {
                if self.tensor(op.pred())?.only()? & 1 == 1 {
                    self.arrived(op)?;
                    let places = self.block_at(&op.coord(), op.result())?;
                    self.copy_block(op.desc(), &places, op.result())?;
                }
            }
            DescriptorOp::TtngAsyncTMAGather(op) => {
                if self.tensor(op.pred())?.only()? & 1 == 1 {
                    let places = self.rows(op.x_offsets(), op.y_offset(), op.result())?;
                    self.copy_block(op.desc(), &places, op.result())?;
                }
            }
            DescriptorOp::TtngAsyncTMACopyLocalToGlobal(op) => {
                let places = self.block_at(&op.coord(), op.src())?;
                let source = self.read_view(&self.view(op.src())?);
                self.store_block(op.desc(), &places, &source, None)?;
            }
            DescriptorOp::TtngAsyncTMAScatter(op) => {
                let places = self.rows(op.x_offsets(), op.y_offset(), op.src())?;
                let source = self.read_view(&self.view(op.src())?);
                self.store_block(op.desc(), &places, &source, None)?;
            }
            DescriptorOp::TtngAsyncTMAReduce(op) => {
                let places = self.block_at(&op.coord(), op.src())?;
                let source = self.read_view(&self.view(op.src())?);
                self.store_block(op.desc(), &places, &source, Some(op.kind()))?;
            }
            DescriptorOp::TtngInitBarrier(op) => self.init_barrier(op)?,
            DescriptorOp::TtngBarrierExpect(op) => self.expect_bytes(op)?,
            DescriptorOp::TtngArriveBarrier(op) => self.arrive(op)?,
            // Copies are complete at once, and `partitions` handles groups of warps that wait.
            DescriptorOp::TtngInvalBarrier(_)
            | DescriptorOp::TtngWaitBarrier(_)
            | DescriptorOp::TtngAsyncCopyMbarrierArrive(_) => {}
        }
        Ok(Vec::new())
    }

    /// A tensor in global memory that is described as a whole; outside of it elements are zero.
    fn whole_tensor(
        &self,
        base: Handle<'c, 'a>,
        shape: &[Handle<'c, 'a>],
        strides: &[Handle<'c, 'a>],
    ) -> Interpreted<Descriptor> {
        let base = self.tensor(base)?;
        let Element::Pointer(bytes) = base.element else {
            return unknown("a descriptor of something that is no pointer");
        };
        let strides = self.numbers(strides)?;
        Ok(Descriptor {
            base: base.only()?,
            shape: self.numbers(shape)?,
            strides: strides.into_iter().map(|s| s * i64::from(bytes)).collect(),
            nan: false,
        })
    }

    /// A descriptor in global memory, whose lists begin with the last dimension.
    fn make_tensor_map(&mut self, op: ttng::TensormapCreateOp<'c, 'a>) -> Interpreted<()> {
        let reversed = |mut list: Vec<i64>| {
            list.reverse();
            list
        };
        let base = self.tensor(op.global_address())?;
        let Element::Pointer(bytes) = base.element else {
            return unknown("a descriptor of something that is no pointer");
        };
        let mut strides = reversed(self.numbers(&op.global_stride())?);
        strides.push(bytes.into());
        let descriptor = Descriptor {
            base: base.only()?,
            shape: reversed(self.numbers(&op.global_dim())?),
            strides,
            nan: op.fill_mode() != 0,
        };
        let at = self.tensor(op.desc_ptr())?.only()?;
        self.descriptors.insert(at, Rc::new(descriptor));
        Ok(())
    }

    /// Copies a block to shared memory.
    fn copy_block(
        &mut self,
        descriptor: Handle<'c, 'a>,
        places: &Places,
        to: Handle<'c, 'a>,
    ) -> Interpreted<()> {
        let tensor = self.load_block(descriptor, places, to)?;
        let view = self.view(to)?;
        self.write_view(&view, &tensor);
        Ok(())
    }

    fn numbers(&self, handles: &[Handle<'c, 'a>]) -> Interpreted<Vec<i64>> {
        handles
            .iter()
            .map(|handle| self.tensor(*handle)?.signed())
            .collect()
    }

    /// The block of the shape of `like` that starts at `indices`.
    fn block_at(&self, indices: &[Handle<'c, 'a>], like: Handle<'c, 'a>) -> Interpreted<Places> {
        let places = Places {
            shape: shape_of(like.r#type()),
            begin: self.numbers(indices)?,
            rows: None,
            unchecked: Vec::new(),
            open: false,
        };
        if places.shape.len() > places.begin.len() {
            return unknown("a block with more dimensions than the tensor");
        }
        Ok(places)
    }

    /// The block whose rows are given one by one.
    fn rows(
        &self,
        rows: Handle<'c, 'a>,
        column: Handle<'c, 'a>,
        like: Handle<'c, 'a>,
    ) -> Interpreted<Places> {
        let rows = self.tensor(rows)?.data;
        Ok(Places {
            shape: shape_of(like.r#type()),
            begin: vec![0, self.tensor(column)?.signed()?],
            rows: Some(rows.into_iter().map(|row| sext(row, 32)).collect()),
            unchecked: Vec::new(),
            open: false,
        })
    }

    fn descriptor(&self, handle: Handle<'c, 'a>) -> Interpreted<Rc<Descriptor>> {
        match self.get(handle)? {
            Value::Descriptor(descriptor) => Ok(descriptor),
            other => unknown(format!("{other:?} as a tensor descriptor")),
        }
    }

    fn load_block(
        &self,
        descriptor: Handle<'c, 'a>,
        places: &Places,
        like: Handle<'c, 'a>,
    ) -> Interpreted<Tensor> {
        self.load_places(&*self.descriptor(descriptor)?, places, like)
    }

    fn load_places(
        &self,
        descriptor: &Descriptor,
        places: &Places,
        like: Handle<'c, 'a>,
    ) -> Interpreted<Tensor> {
        let Some(element) = Element::of_tensor(like.r#type()) else {
            return unknown(format!("a block of type {}", like.r#type()));
        };
        let entries = places
            .all()
            .map(|at| match descriptor.address(&at, &places.unchecked) {
                Some(address) => {
                    self.check(address, element, AccessKind::Load)?;
                    Ok(Entry {
                        bits: self.memory.read(address, element.bytes()) & element.mask(),
                        bound: self.doubts.at(address),
                    })
                }
                None => Ok(Entry {
                    bits: descriptor.outside(element),
                    bound: if places.open { f64::INFINITY } else { 0.0 },
                }),
            })
            .collect::<Interpreted<Vec<Entry>>>()?;
        let shape = places.shape.clone();
        Ok(Tensor::from_entries(shape, element, entries.into_iter()))
    }

    fn store_block(
        &self,
        handle: Handle<'c, 'a>,
        places: &Places,
        source: &Tensor,
        reduce: Option<tt::DescriptorReduceKind>,
    ) -> Interpreted<()> {
        let operation = reduce
            .map(|kind| reduction(kind, source.element, is_signed(handle.r#type())))
            .transpose()?;
        self.store_places(&*self.descriptor(handle)?, places, source, operation)
    }

    fn store_places(
        &self,
        descriptor: &Descriptor,
        places: &Places,
        source: &Tensor,
        operation: Option<AtomicOp>,
    ) -> Interpreted<()> {
        let element = source.element;
        for (position, at) in places.all().enumerate() {
            let Some(address) = descriptor.address(&at, &places.unchecked) else {
                continue;
            };
            self.check(address, element, AccessKind::Store)?;
            let value = source.entry(position);
            let bound = if self.undecided {
                f64::INFINITY
            } else {
                value.bound
            };
            match operation {
                Some(operation) => {
                    let old = self.memory.read(address, element.bytes());
                    let new = combine(operation, element.bits(), old, value.bits, None);
                    self.memory.write(address, element.bytes(), new);
                    self.doubts
                        .exchange(address, operation, element, [old, new], bound);
                }
                None => {
                    self.memory.write(address, element.bytes(), value.bits);
                    self.doubts.set(address, bound);
                }
            }
        }
        Ok(())
    }

    /// A pointer to a tile and the start of the tile.
    fn tile(&self, handle: Handle<'c, 'a>) -> Interpreted<(Rc<Descriptor>, Vec<i64>)> {
        match self.get(handle)? {
            Value::Tile(whole, begin) => Ok((whole, begin)),
            other => unknown(format!("{other:?} as a pointer to a tile")),
        }
    }

    /// The places of a tile that is checked in these dimensions.
    fn tile_at(begin: Vec<i64>, like: Handle<'c, 'a>, checked: &[i32]) -> Places {
        let unchecked = (0..begin.len()).filter(|&dim| !checked.contains(&(dim as i32)));
        Places {
            shape: shape_of(like.r#type()),
            unchecked: unchecked.collect(),
            begin,
            rows: None,
            open: false,
        }
    }

    /// `tt.load` through a pointer to a tile.
    pub(super) fn load_tile(&self, load: tt::LoadOp<'c, 'a>) -> Interpreted<Tensor> {
        let (whole, begin) = self.tile(load.ptr())?;
        let whole = Descriptor {
            nan: load.padding() == Some(tt::PaddingOption::Nan),
            ..(*whole).clone()
        };
        let mut places = Self::tile_at(begin, load.result(), &load.boundary_check());
        places.open = load.padding().is_none();
        self.load_places(&whole, &places, load.result())
    }

    /// `tt.store` through a pointer to a tile.
    pub(super) fn store_tile(&self, store: tt::StoreOp<'c, 'a>) -> Interpreted<()> {
        let (whole, begin) = self.tile(store.ptr())?;
        let places = Self::tile_at(begin, store.value(), &store.boundary_check());
        self.store_places(&whole, &places, &self.tensor(store.value())?, None)
    }
}

/// Whether the elements of a descriptor's block are signed integers.
fn is_signed(descriptor: Type<'_>) -> bool {
    TensorDesc::of(descriptor)
        .and_then(TensorDesc::block)
        .and_then(|block| IntegerType::try_from(block.element()).ok())
        .is_some_and(|integer| integer.is_signed())
}

/// The operation that a reducing store applies to each element.
fn reduction(
    kind: tt::DescriptorReduceKind,
    element: Element,
    signed: bool,
) -> Interpreted<AtomicOp> {
    use tt::DescriptorReduceKind as Kind;
    let real = match element {
        Element::Real(real) => Some(real),
        Element::Int(_) => None,
        _ => return unknown("a reduction of elements that have no arithmetic"),
    };
    Ok(match (kind, real) {
        (Kind::Add, Some(real)) => AtomicOp::FAdd(real),
        (Kind::Min, Some(real @ (Real::F16 | Real::BF16))) => AtomicOp::FMin(real),
        (Kind::Max, Some(real @ (Real::F16 | Real::BF16))) => AtomicOp::FMax(real),
        (kind, Some(_)) => return unknown(format!("the reduction {kind:?} of this type")),
        (Kind::Add, None) => AtomicOp::Add,
        (Kind::Min, None) if signed => AtomicOp::SMin,
        (Kind::Min, None) => AtomicOp::UMin,
        (Kind::Max, None) if signed => AtomicOp::SMax,
        (Kind::Max, None) => AtomicOp::UMax,
        (Kind::Inc, None) => AtomicOp::IncrementWrap,
        (Kind::Dec, None) => AtomicOp::DecrementWrap,
        (Kind::And, None) => AtomicOp::And,
        (Kind::Or, None) => AtomicOp::Or,
        (Kind::Xor, None) => AtomicOp::Xor,
    })
}
