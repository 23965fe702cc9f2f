//! The registers of a matrix fragment that blocks pass on one by one are passed on as one vector.
//!
//! In lowered code each register of a tensor is a value, so a loop carries an accumulator in as many phis as it has
//! registers in a thread. A matrix instruction takes and returns a vector, which each iteration puts together at its
//! start and takes apart at its end:
//!
//! ```text
//!   a0 = phi [.., entry], [d0, loop]          a = phi [.., entry], [d, loop]
//!   a1 = phi [.., entry], [d1, loop]
//!   v  = insertelement poison, a0, 0
//!   a  = insertelement v, a1, 1          →
//!   d  = mfma(.., a)                          d = mfma(.., a)
//!   d0 = extractelement d, 0
//!   d1 = extractelement d, 1
//! ```
//!
//! Nothing moves in either form. But in the first a register allocator starts with two copies of each register, one into
//! the tuple of registers of the instruction and one out of it, and has to find out for each that it is not needed: a
//! quarter of the back end's time for a large tile. In the second there is one copy of a tuple. Every loop around
//! and behind the first, and each block where such values meet, multiplies the phis.
//!
//! # The rule
//!
//! A *fragment* is a list of distinct phis of one block, of types that fill whole registers. The lists with which the
//! search begins are those that a chain of insertions puts together, in the order of its elements. What a fragment
//! receives from a block is
//!
//! - *whole*: the elements of one vector, in order, which becomes the incoming value;
//! - another *fragment*, if it is phis of one block, whose phi it becomes;
//! - *scattered* otherwise, and put together at the end of that block. Constants become a constant.
//!
//! A fragment is joined if a whole vector reaches it, through other fragments perhaps. For the others one phi would
//! have as many copies as many phis have, of registers that then have to follow each other.
//!
//! A phi belongs to one fragment. Users of a single element extract it in their own block, where the allocator sees a
//! part of a tuple.
//!
//! Types that share a register are left alone: whether these are carried packed or apart is a decision of
//! `walk::carried`, since packing and unpacking them is work.
//!
//! It is done for MFMA, whose accumulators are up to 32 registers. Those of WMMA are eight, and there is less to find out;
//! on RDNA 4 a loop with joined fragments took 1.4 times the cycles of LLVM's scheduling model, for copies of tuples.
//!
//! LLVM joins nothing: `InstCombine` and SROA go the other way, and on AMD a pass before instruction selection takes
//! phis of vectors apart if a constant comes in, as the zero of an accumulator does; `c_api::initialize` turns this
//! off. All this happens behind the other passes: before them, the search for pairs finds other pairs, and a loop
//! whose first block extracts elements is not rotated.

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{
    BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, PhiValue,
    VectorValue,
};

use crate::llvm::insertions::{erase_chain, operand, put_together, taken_apart};
use crate::llvm::instructions::users;

/// Bits of a register.
const REGISTER: u32 = 32;

/// Joins the fragments of the module; leaves unused extractions.
pub(crate) fn join(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        let mut fragments = Fragments::default();
        let chains = fragments.find(function);
        fragments.choose();
        Joining {
            builder: &builder,
            index: module.get_context().i32_type(),
            fragments: fragments.found,
            places: fragments.places,
        }
        .join(&chains);
    }
}

/// Phis that may become one.
struct Fragment<'ctx> {
    /// In the order of the vector's elements.
    elements: Vec<InstructionValue<'ctx>>,
    of: VectorType<'ctx>,
    block: BasicBlock<'ctx>,
    edges: Vec<(BasicBlock<'ctx>, Received<'ctx>)>,
    /// Whether it becomes one phi.
    is_joined: bool,
    /// That phi, once it is there.
    vector: Option<PhiValue<'ctx>>,
}

/// What a fragment receives from a block.
#[derive(Clone)]
enum Received<'ctx> {
    /// The elements of this vector.
    Whole(VectorValue<'ctx>),
    /// The elements of the fragment with this number.
    Fragment(usize),
    /// Values that have to be put together.
    Scattered(Vec<BasicValueEnum<'ctx>>),
}

/// The fragments of a function.
#[derive(Default)]
struct Fragments<'ctx> {
    found: Vec<Fragment<'ctx>>,
    /// The fragment of a phi, and its place there.
    places: HashMap<InstructionValue<'ctx>, (usize, usize)>,
}

impl<'ctx> Fragments<'ctx> {
    /// Finds the fragments; returns the last instructions of the chains that put them together.
    fn find(&mut self, function: FunctionValue<'ctx>) -> Vec<(InstructionValue<'ctx>, usize)> {
        let mut chains = Vec::new();
        for block in function.get_basic_block_iter() {
            for last in block.get_instructions() {
                if let Some(elements) = put_together(last)
                    && let Some(fragment) = self.of(&elements)
                {
                    chains.push((last, fragment));
                }
            }
        }
        // A fragment may receive others, which are found then.
        let mut next = 0;
        while next < self.found.len() {
            self.found[next].edges = self.edges(next);
            next += 1;
        }
        chains
    }

    /// The number of the fragment that consists of these values.
    fn of(&mut self, values: &[BasicValueEnum<'ctx>]) -> Option<usize> {
        let elements: Vec<_> = values.iter().map(phi).collect::<Option<_>>()?;
        let first = *elements.first()?;
        if let Some((known, 0)) = self.places.get(&first) {
            return (self.found[*known].elements == elements).then_some(*known);
        }
        let block = first.get_parent()?;
        let of = vector_type(values)?;
        let distinct: HashSet<_> = elements.iter().collect();
        let is_fragment = distinct.len() == elements.len()
            && elements
                .iter()
                .all(|phi| phi.get_parent() == Some(block) && !self.places.contains_key(phi));
        if !is_fragment {
            return None;
        }
        let number = self.found.len();
        for (place, phi) in elements.iter().enumerate() {
            self.places.insert(*phi, (number, place));
        }
        self.found.push(Fragment {
            elements,
            of,
            block,
            edges: Vec::new(),
            is_joined: false,
            vector: None,
        });
        Some(number)
    }

    /// What a fragment receives from each block.
    fn edges(&mut self, number: usize) -> Vec<(BasicBlock<'ctx>, Received<'ctx>)> {
        let fragment = &self.found[number].elements;
        let first = fragment[0];
        let elements: Vec<HashMap<_, _>> = fragment
            .iter()
            .map(|element| incoming(*element).collect())
            .collect();
        let edge = |(from, _)| {
            let values = elements.iter().map(|incoming| incoming[&from]).collect();
            (from, self.received(values))
        };
        incoming(first).map(edge).collect()
    }

    fn received(&mut self, values: Vec<BasicValueEnum<'ctx>>) -> Received<'ctx> {
        if let Some(whole) = taken_apart(&values) {
            return Received::Whole(whole);
        }
        match self.of(&values) {
            Some(fragment) => Received::Fragment(fragment),
            None => Received::Scattered(values),
        }
    }

    /// Chooses the fragments that a whole vector reaches.
    fn choose(&mut self) {
        loop {
            let reached = |fragment: &Fragment<'ctx>| {
                fragment.edges.iter().any(|(_, received)| match received {
                    Received::Whole(_) => true,
                    Received::Fragment(other) => self.found[*other].is_joined,
                    Received::Scattered(_) => false,
                })
            };
            let more: Vec<usize> = (0..self.found.len())
                .filter(|number| !self.found[*number].is_joined && reached(&self.found[*number]))
                .collect();
            if more.is_empty() {
                break;
            }
            for number in more {
                self.found[number].is_joined = true;
            }
        }
        let found = &self.found;
        self.places
            .retain(|_, (number, _)| found[*number].is_joined);
    }
}

/// The fragments of a function while they are joined.
struct Joining<'b, 'ctx> {
    builder: &'b Builder<'ctx>,
    /// The type of an index of an element.
    index: IntType<'ctx>,
    fragments: Vec<Fragment<'ctx>>,
    places: HashMap<InstructionValue<'ctx>, (usize, usize)>,
}

impl<'ctx> Joining<'_, 'ctx> {
    fn join(&mut self, chains: &[(InstructionValue<'ctx>, usize)]) {
        for fragment in self
            .fragments
            .iter_mut()
            .filter(|fragment| fragment.is_joined)
        {
            let first = fragment.block.get_first_instruction();
            self.builder
                .position_before(&first.expect("bug in llopt: a block with phis"));
            let vector = self.builder.build_phi(fragment.of, "");
            fragment.vector = Some(vector.expect("bug in llopt: the builder is in a block"));
        }
        for fragment in &self.fragments {
            self.receive(fragment);
        }
        for (last, fragment) in chains {
            if let Some(vector) = self.fragments[*fragment].vector {
                last.replace_all_uses_with(&vector.as_instruction());
                erase_chain(*last);
            }
        }
        self.replace_elements();
    }

    /// Adds the incoming values of a fragment.
    fn receive(&self, fragment: &Fragment<'ctx>) {
        let Some(vector) = fragment.vector else {
            return;
        };
        // A block that ends in a switch may come more than once.
        let mut known: HashMap<BasicBlock<'ctx>, BasicValueEnum<'ctx>> = HashMap::new();
        for (from, received) in &fragment.edges {
            let value = *known
                .entry(*from)
                .or_insert_with(|| self.vector(received, fragment.of, *from));
            vector.add_incoming(&[(&value, *from)]);
        }
    }

    /// The vector that leaves a block.
    fn vector(
        &self,
        received: &Received<'ctx>,
        of: VectorType<'ctx>,
        from: BasicBlock<'ctx>,
    ) -> BasicValueEnum<'ctx> {
        let scattered: Vec<BasicValueEnum<'ctx>> = match received {
            Received::Whole(vector) => return (*vector).into(),
            Received::Fragment(other) => {
                let other = &self.fragments[*other];
                if let Some(vector) = other.vector {
                    return vector.as_basic_value();
                }
                let phis = other.elements.iter().map(|phi| PhiValue::try_from(*phi));
                phis.flatten().map(|phi| phi.as_basic_value()).collect()
            }
            Received::Scattered(values) => values.clone(),
        };
        let end = from
            .get_terminator()
            .expect("bug in llopt: a block has an end");
        self.builder.position_before(&end);
        // The builder folds the insertion of a constant into a constant.
        let insert = |vector: VectorValue<'ctx>, (place, value): (usize, BasicValueEnum<'ctx>)| {
            let index = self.index.const_int(place as u64, false);
            let vector = self.builder.build_insert_element(vector, value, index, "");
            vector.expect("bug in llopt: an element of the vector's type")
        };
        scattered
            .into_iter()
            .enumerate()
            .fold(of.get_poison(), insert)
            .into()
    }

    /// Extracts elements where they have other users, and erases their phis.
    fn replace_elements(&self) {
        for fragment in &self.fragments {
            let Some(vector) = fragment.vector else {
                continue;
            };
            let vector = vector.as_basic_value().into_vector_value();
            for (place, element) in fragment.elements.iter().enumerate() {
                self.extract_for_users(*element, vector, place);
            }
        }
        // What is left are uses by phis that are erased, too, perhaps in a circle.
        for element in self.places.keys() {
            for operand in 0..element.get_num_operands() {
                if let Ok(of) = BasicTypeEnum::try_from(element.get_type()) {
                    element.set_operand(operand, of.const_zero());
                }
            }
        }
        for element in self.places.keys() {
            element.erase_from_basic_block();
        }
    }

    /// Each block that uses an element extracts it once, before its first user.
    fn extract_for_users(
        &self,
        element: InstructionValue<'ctx>,
        vector: VectorValue<'ctx>,
        place: usize,
    ) {
        let mut known: HashMap<BasicBlock<'ctx>, BasicValueEnum<'ctx>> = HashMap::new();
        let using: Vec<_> = users(element).flatten().collect();
        for user in using {
            if self.places.contains_key(&user) {
                continue;
            }
            for place_of_use in 0..user.get_num_operands() {
                if operand(user, place_of_use).and_then(|value| value.as_instruction_value())
                    != Some(element)
                {
                    continue;
                }
                // A phi uses its operand at the end of the block that it comes from.
                let block = match PhiValue::try_from(user) {
                    Ok(phi) => phi.get_incoming(place_of_use).map(|(_, from)| from),
                    Err(()) => user.get_parent(),
                };
                let Some(block) = block else { continue };
                let own = *known
                    .entry(block)
                    .or_insert_with(|| self.extract(vector, place, block));
                user.set_operand(place_of_use, own);
            }
        }
    }

    /// Extracts an element at the beginning of a block.
    fn extract(
        &self,
        vector: VectorValue<'ctx>,
        place: usize,
        block: BasicBlock<'ctx>,
    ) -> BasicValueEnum<'ctx> {
        let first = block
            .get_instructions()
            .find(|first| first.get_opcode() != InstructionOpcode::Phi)
            .expect("bug in llopt: a block has an end");
        self.builder.position_before(&first);
        let index = self.index.const_int(place as u64, false);
        let element = self.builder.build_extract_element(vector, index, "");
        element.expect("bug in llopt: an element of a vector")
    }
}

/// A vector of values that each fill whole registers.
fn vector_type<'ctx>(elements: &[BasicValueEnum<'ctx>]) -> Option<VectorType<'ctx>> {
    let count = elements.len() as u32;
    match elements.first()?.get_type() {
        BasicTypeEnum::IntType(of) if of.get_bit_width().is_multiple_of(REGISTER) => {
            Some(of.vec_type(count))
        }
        BasicTypeEnum::FloatType(of) if of.get_bit_width().is_multiple_of(REGISTER) => {
            Some(of.vec_type(count))
        }
        _ => None,
    }
}

/// The incoming values of a phi, with the blocks that they come from.
fn incoming<'ctx>(
    phi: InstructionValue<'ctx>,
) -> impl Iterator<Item = (BasicBlock<'ctx>, BasicValueEnum<'ctx>)> {
    let phi = PhiValue::try_from(phi).ok();
    let edges = phi.map_or(0, PhiValue::count_incoming);
    (0..edges).filter_map(move |edge| {
        let (value, from) = phi?.get_incoming(edge)?;
        Some((from, value))
    })
}

/// The phi that a value is.
fn phi<'ctx>(value: &BasicValueEnum<'ctx>) -> Option<InstructionValue<'ctx>> {
    let instruction = value.as_instruction_value()?;
    (instruction.get_opcode() == InstructionOpcode::Phi).then_some(instruction)
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    /// The function's instructions after fragments are joined, if LLVM accepts them.
    fn joined(text: &str) -> String {
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        super::join(&module);
        module.verify().unwrap();
        module.print_to_string().to_string()
    }

    #[test]
    fn an_accumulator_is_one_phi() {
        let after = joined(
            "declare <2 x float> @product(<2 x float>)
             define void @f(i1 %more, ptr %to) {
             entry:
               br label %loop
             loop:
               %a0 = phi float [ 0.0, %entry ], [ %d0, %loop ]
               %a1 = phi float [ 0.0, %entry ], [ %d1, %loop ]
               %v = insertelement <2 x float> poison, float %a0, i64 0
               %a = insertelement <2 x float> %v, float %a1, i64 1
               %d = call <2 x float> @product(<2 x float> %a)
               %d0 = extractelement <2 x float> %d, i64 0
               %d1 = extractelement <2 x float> %d, i64 1
               br i1 %more, label %loop, label %end
             end:
               %r0 = phi float [ %a0, %loop ]
               store float %r0, ptr %to
               ret void
             }",
        );
        let phi = "phi <2 x float> [ zeroinitializer, %entry ], [ %d, %loop ]";
        assert!(after.contains(phi), "{after}");
        assert!(!after.contains("insertelement"), "{after}");
        // The remaining user has an element of the vector.
        assert!(after.contains("phi float [ %1, %loop ]"), "{after}");
    }

    #[test]
    fn the_loop_behind_receives_the_vector() {
        let after = joined(
            "declare <2 x i32> @load()
             declare void @store(<2 x i32>)
             define void @f(i8 %which, i32 %x) {
             entry:
               switch i8 %which, label %middle [ i8 0, label %skip
                                                 i8 1, label %skip ]
             middle:
               %w = call <2 x i32> @load()
               %w0 = extractelement <2 x i32> %w, i64 0
               %w1 = extractelement <2 x i32> %w, i64 1
               br label %skip
             skip:
               %a0 = phi i32 [ %x, %entry ], [ %x, %entry ], [ %w0, %middle ]
               %a1 = phi i32 [ 7, %entry ], [ 7, %entry ], [ %w1, %middle ]
               br label %loop
             loop:
               %b0 = phi i32 [ %a0, %skip ], [ %b0, %loop ]
               %b1 = phi i32 [ %a1, %skip ], [ %b1, %loop ]
               %v = insertelement <2 x i32> poison, i32 %b0, i64 0
               %b = insertelement <2 x i32> %v, i32 %b1, i64 1
               call void @store(<2 x i32> %b)
               br label %loop
             }",
        );
        // What comes in scattered is put together once for both edges.
        assert!(after.contains("phi <2 x i32> [ %1, %entry ], [ %1, %entry ], [ %w, %middle ]"));
        assert!(
            after.contains("phi <2 x i32> [ %2, %skip ], [ %3, %loop ]"),
            "{after}"
        );
        assert_eq!(after.matches("insertelement").count(), 2, "{after}");
    }

    #[test]
    fn registers_that_are_computed_one_by_one_stay_apart() {
        let text = "declare void @store(<2 x float>)
             define void @f(float %x) {
             entry:
               br label %loop
             loop:
               %a0 = phi float [ 0.0, %entry ], [ %d0, %loop ]
               %a1 = phi float [ 0.0, %entry ], [ %d1, %loop ]
               %v = insertelement <2 x float> poison, float %a0, i64 0
               %a = insertelement <2 x float> %v, float %a1, i64 1
               call void @store(<2 x float> %a)
               %d0 = fadd float %a0, %x
               %d1 = fadd float %a1, %x
               br label %loop
             }";
        assert!(!joined(text).contains("phi <2 x float>"));
        // Two elements share a register.
        let halves = text.replace("float", "half");
        assert!(!joined(&halves).contains("phi <2 x half>"));
    }
}
