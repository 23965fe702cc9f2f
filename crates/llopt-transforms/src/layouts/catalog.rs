//! Layouts as numbers: each encoding, linear map and transfer is computed once.
//!
//! A program has many values and few layouts. The catalog gives every encoding on a shape a [`LayoutId`], and every
//! linear map a number that equal maps share, so that comparing two layouts is comparing two numbers. The layouts
//! that follow from an op's relation ([`Relation`]) are cached as well: a chain of a thousand additions computes them
//! once.

use std::borrow::{Borrow, Cow};
use std::cell::RefCell;
use std::rc::Rc;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_layout::LinearLayout;
use rustc_hash::FxHashMap;

use super::relation::Relation;

/// A shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeId(usize);

/// An encoding on a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LayoutId(usize);

/// A linear map; equal maps have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MapId(usize);

/// What an op does to layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RelationId(usize);

impl RelationId {
    /// That of most ops: all tensors have the label.
    const SAME: Self = Self(0);
}

/// Which layout of an op is derived from which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transfer {
    /// The layout of an operand from the label.
    Operand(usize),
    /// The label from the layout of an operand.
    LabelOfOperand(usize),
    /// The layout of the results from the label.
    Result,
    /// The label from the layout of a result.
    LabelOfResult,
}

struct Layout {
    encoding: Rc<Encoding>,
    shape: ShapeId,
    map: Option<MapId>,
}

/// Values and their numbers.
struct Numbers<T: ?Sized> {
    values: Vec<Rc<T>>,
    numbers: FxHashMap<Rc<T>, usize>,
}

impl<T: ?Sized> Default for Numbers<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Eq + std::hash::Hash + ?Sized> Numbers<T> {
    fn number(&mut self, value: impl Borrow<T> + Into<Rc<T>>) -> usize {
        if let Some(&number) = self.numbers.get(value.borrow()) {
            return number;
        }
        let value = value.into();
        self.values.push(Rc::clone(&value));
        self.numbers.insert(value, self.values.len() - 1);
        self.values.len() - 1
    }
}

#[derive(Default)]
struct Tables {
    shapes: Numbers<[i64]>,
    relations: Numbers<Relation>,
    maps: Numbers<LinearLayout>,
    layouts: Vec<Layout>,
    /// By shape.
    numbers: Vec<FxHashMap<Rc<Encoding>, LayoutId>>,
    transfers: FxHashMap<(RelationId, Transfer, LayoutId, ShapeId), Option<LayoutId>>,
}

/// All layouts that occur in one run of the engine.
pub(super) struct Catalog {
    tables: RefCell<Tables>,
}

impl Default for Catalog {
    fn default() -> Self {
        let mut tables = Tables::default();
        let same = tables.relations.number(Relation::Same);
        debug_assert!(RelationId(same) == RelationId::SAME, "it has no number yet");
        Self {
            tables: RefCell::new(tables),
        }
    }
}

impl Catalog {
    /// The number of a shape.
    pub(super) fn shape(&self, shape: &[i64]) -> ShapeId {
        ShapeId(self.tables.borrow_mut().shapes.number(shape))
    }

    /// The extents of a shape.
    pub(super) fn extents(&self, shape: ShapeId) -> Rc<[i64]> {
        Rc::clone(&self.tables.borrow().shapes.values[shape.0])
    }

    /// The number of a relation.
    pub(super) fn relation(&self, relation: &Relation) -> RelationId {
        RelationId(self.tables.borrow_mut().relations.number(relation.clone()))
    }

    /// The number of an encoding on a shape.
    pub(super) fn layout(
        &self,
        encoding: impl Borrow<Encoding> + Into<Rc<Encoding>>,
        shape: ShapeId,
    ) -> LayoutId {
        self.layout_by(encoding, shape, |encoding, extents| {
            // A slice's parent is mostly known, too.
            let of_parent = |parent: &Encoding, extents: &[u64]| {
                let known = self.known(parent, extents);
                known.map_or_else(|| parent.linear_layout(extents), |map| Ok((*map).clone()))
            };
            encoding.linear_layout_by(extents, of_parent).ok()
        })
    }

    /// The linear map of an encoding on a shape, if it has a number.
    fn known(&self, encoding: &Encoding, extents: &[u64]) -> Option<Rc<LinearLayout>> {
        let extents: Option<Vec<i64>> = extents
            .iter()
            .map(|extent| i64::try_from(*extent).ok())
            .collect();
        let tables = self.tables.borrow();
        let shape = *tables.shapes.numbers.get(&*extents?)?;
        let layout = *tables.numbers.get(shape)?.get(encoding)?;
        Some(Rc::clone(
            &tables.maps.values[tables.layouts[layout.0].map?.0],
        ))
    }

    /// The same, where the linear map of an encoding without a number is found by `map_of`.
    fn layout_by(
        &self,
        encoding: impl Borrow<Encoding> + Into<Rc<Encoding>>,
        shape: ShapeId,
        map_of: impl FnOnce(&Encoding, &[u64]) -> Option<LinearLayout>,
    ) -> LayoutId {
        let numbered = |tables: &Tables| {
            let numbers = tables.numbers.get(shape.0)?;
            numbers.get(encoding.borrow()).copied()
        };
        if let Some(known) = numbered(&self.tables.borrow()) {
            return known;
        }
        let encoding: Rc<Encoding> = encoding.into();
        let extents = transfer::extents(&self.extents(shape));
        let map = map_of(&encoding, &extents);
        debug_assert!(map == encoding.linear_layout(&extents).ok(), "another map");
        let tables = &mut *self.tables.borrow_mut();
        let map = map.map(|map| MapId(tables.maps.number(map)));
        let number = LayoutId(tables.layouts.len());
        tables.layouts.push(Layout {
            encoding: Rc::clone(&encoding),
            shape,
            map,
        });
        if tables.numbers.len() <= shape.0 {
            tables.numbers.resize_with(shape.0 + 1, FxHashMap::default);
        }
        tables.numbers[shape.0].insert(encoding, number);
        number
    }

    /// The encoding of a layout.
    pub(super) fn encoding(&self, layout: LayoutId) -> Rc<Encoding> {
        Rc::clone(&self.tables.borrow().layouts[layout.0].encoding)
    }

    /// Whether a layout is one of a buffer in memory instead of registers.
    pub(super) fn is_in_memory(&self, layout: LayoutId) -> bool {
        !self.tables.borrow().layouts[layout.0]
            .encoding
            .is_distributed()
    }

    /// The linear map of a layout; `None` if the encoding stands for none on its shape.
    pub(super) fn map(&self, layout: LayoutId) -> Option<MapId> {
        self.tables.borrow().layouts[layout.0].map
    }

    /// A linear map.
    pub(super) fn linear(&self, map: MapId) -> Rc<LinearLayout> {
        Rc::clone(&self.tables.borrow().maps.values[map.0])
    }

    /// Whether two layouts put every element in the same place.
    pub(super) fn are_equal(&self, left: LayoutId, right: LayoutId) -> bool {
        left == right || (self.map(left).is_some() && self.map(left) == self.map(right))
    }

    /// Whether a layout, or one that puts every element in the same place, is among others.
    pub(super) fn is_among(&self, others: &[LayoutId], layout: LayoutId) -> bool {
        if others.contains(&layout) {
            return true;
        }
        let layouts = &self.tables.borrow().layouts;
        let map = layouts[layout.0].map;
        map.is_some() && others.iter().any(|other| layouts[other.0].map == map)
    }

    /// The layout that an operand of this shape has to have; `None` if there is none.
    pub(super) fn operand(
        &self,
        relation: RelationId,
        label: LayoutId,
        operand: usize,
        shape: ShapeId,
    ) -> Option<LayoutId> {
        self.transfer(relation, Transfer::Operand(operand), label, shape)
    }

    /// The label, of this shape, from the layout of an operand.
    pub(super) fn label_of_operand(
        &self,
        relation: RelationId,
        layout: LayoutId,
        operand: usize,
        shape: ShapeId,
    ) -> Option<LayoutId> {
        self.transfer(relation, Transfer::LabelOfOperand(operand), layout, shape)
    }

    /// The layout of a result of this shape.
    pub(super) fn result(
        &self,
        relation: RelationId,
        label: LayoutId,
        shape: ShapeId,
    ) -> Option<LayoutId> {
        self.transfer(relation, Transfer::Result, label, shape)
    }

    /// The label, of this shape, from the layout of a result.
    pub(super) fn label_of_result(
        &self,
        relation: RelationId,
        layout: LayoutId,
        shape: ShapeId,
    ) -> Option<LayoutId> {
        self.transfer(relation, Transfer::LabelOfResult, layout, shape)
    }

    #[inline]
    fn transfer(
        &self,
        relation: RelationId,
        way: Transfer,
        from: LayoutId,
        to: ShapeId,
    ) -> Option<LayoutId> {
        // Most ops work element by element, and most of their tensors have one shape.
        if relation == RelationId::SAME && self.tables.borrow().layouts[from.0].shape == to {
            return Some(from);
        }
        self.transfer_by_rule(relation, way, from, to)
    }

    fn transfer_by_rule(
        &self,
        relation: RelationId,
        way: Transfer,
        from: LayoutId,
        to: ShapeId,
    ) -> Option<LayoutId> {
        let key = (relation, way, from, to);
        if let Some(&known) = self.tables.borrow().transfers.get(&key) {
            return known;
        }
        let (rule, encoding, is_of_shape, shape) = {
            let tables = self.tables.borrow();
            let layout = &tables.layouts[from.0];
            (
                Rc::clone(&tables.relations.values[relation.0]),
                Rc::clone(&layout.encoding),
                layout.shape == to,
                Rc::clone(&tables.shapes.values[layout.shape.0]),
            )
        };
        let extents = self.extents(to);
        let reshapes = matches!(way, Transfer::Operand(_) | Transfer::LabelOfOperand(_));
        if *rule == Relation::Reshape && reshapes && encoding.is_distributed() && shape != extents {
            // What the new encoding stands for is known before it is.
            let map = self.map(from).map(|map| self.linear(map));
            let found = map.and_then(|map| transfer::reshape_registers(&map, &extents).ok());
            let found = found.map(|(encoding, map)| self.layout_by(encoding, to, |_, _| Some(map)));
            self.tables.borrow_mut().transfers.insert(key, found);
            return found;
        }
        let found = match way {
            Transfer::Operand(index) => rule.operand(&encoding, &shape, index, &extents),
            Transfer::LabelOfOperand(index) => {
                rule.label_of_operand(&encoding, &shape, index, &extents)
            }
            Transfer::Result => rule.result(&encoding, &shape),
            Transfer::LabelOfResult => rule.label_of_result(&encoding, &shape),
        };
        let found = found.map(|found| match found {
            Cow::Borrowed(_) if is_of_shape => from,
            Cow::Borrowed(_) => self.layout(Rc::clone(&encoding), to),
            Cow::Owned(found) => self.layout(found, to),
        });
        self.tables.borrow_mut().transfers.insert(key, found);
        found
    }
}

#[cfg(test)]
mod tests {
    use llopt_dialects::layout::encoding::Blocked;

    use super::*;

    fn rows(catalog: &Catalog, per_thread: u32) -> LayoutId {
        let blocked = Blocked::spread_over_cluster(&[64, 64], &[1, per_thread], &[1, 0], 4, 32, 1);
        let shape = catalog.shape(&[64, 64]);
        catalog.layout(Encoding::Blocked(blocked.unwrap()), shape)
    }

    #[test]
    fn equal_layouts_have_one_number_and_equal_maps_compare_equal() {
        let catalog = Catalog::default();
        let layout = rows(&catalog, 4);
        assert_eq!(layout, rows(&catalog, 4));
        assert!(!catalog.are_equal(layout, rows(&catalog, 2)));
        // The same map, spelled as a linear layout.
        let map = catalog.linear(catalog.map(layout).unwrap());
        let linear = llopt_dialects::layout::encoding::Linear::new((*map).clone()).unwrap();
        let spelled = catalog.layout(Encoding::Linear(linear), catalog.shape(&[64, 64]));
        assert_ne!(spelled, layout);
        assert!(catalog.are_equal(spelled, layout));
    }

    #[test]
    fn maps_that_follow_from_others_are_those_of_their_encodings() {
        let catalog = Catalog::default();
        let layout = rows(&catalog, 4);
        let reshape = catalog.relation(&Relation::Reshape);
        let cube = catalog.shape(&[64, 4, 16]);
        let reshaped = catalog.operand(reshape, layout, 0, cube).unwrap();
        let reduce = catalog.relation(&Relation::Reduce { axis: 1 });
        let column = catalog.shape(&[64]);
        let reduced = catalog.result(reduce, layout, column).unwrap();
        for (layout, extents) in [(reshaped, &[64, 4, 16][..]), (reduced, &[64])] {
            let map = catalog.linear(catalog.map(layout).unwrap());
            let expected = catalog.encoding(layout).linear_layout(extents).unwrap();
            assert_eq!(*map, expected);
        }
    }

    #[test]
    fn a_transposition_there_and_back_is_where_it_began() {
        let catalog = Catalog::default();
        let layout = rows(&catalog, 4);
        let shape = catalog.shape(&[64, 64]);
        let relation = catalog.relation(&Relation::Transpose { order: vec![1, 0] });
        let there = catalog
            .label_of_operand(relation, layout, 0, shape)
            .unwrap();
        assert!(!catalog.are_equal(layout, there));
        let back = catalog.operand(relation, there, 0, shape).unwrap();
        assert!(catalog.are_equal(layout, back));
    }
}
