//! Regions whose halves take turns, in which one barrier is not enough.
//!
//! Between a conditional barrier (`amdg.cond_barrier`) and the one with the opposite condition, one half of the warps is
//! a barrier behind the other ([`llopt_plan::turns`]): the last barrier that both have passed is a different one in
//! the text for each. So an access of the half behind is ordered before an access of the half ahead only if there
//! are *two* barriers between them.
//!
//! [`settle`] makes that a property of single nodes, which the placement of barriers knows: a barrier of such a region
//! counts if on every path to it there is another one of the region, and no access to shared memory in between. Whatever
//! comes before both then has two barriers behind it. That is sufficient, and what schedules in turns have: they
//! multiply between two barriers. Barriers that are inserted into a region come in pairs.

use std::collections::HashMap;
use std::ops::Range;

use llopt_dialects::amdg::CondBarrierOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::OperationExt;
use melior::ir::BlockLike;

use super::placement::Graph;
use crate::program::Point;

/// The regions of a function by the numbers of their points, each from one conditional barrier to the next one of the
/// same block; without a next one, to the end of the function.
pub(super) fn regions(points: &[Point<'_, '_>]) -> Vec<Range<usize>> {
    let mut begun: HashMap<usize, usize> = HashMap::new();
    let mut regions = Vec::new();
    for (number, point) in points.iter().enumerate() {
        if CondBarrierOp::of(point.operation).is_none() {
            continue;
        }
        let block = point.operation.parent_block();
        let block = block.map_or(0, |block| block.to_raw().ptr as usize);
        match begun.remove(&block) {
            Some(begin) => regions.push(begin + 1..number),
            None => {
                begun.insert(block, number);
            }
        }
    }
    regions.extend(begun.into_values().map(|begin| begin + 1..points.len()));
    regions
}

/// The nodes in regions, given the point of each node.
///
/// # Errors
/// All warps exchange data for one operation of a region: its own barrier is a single one.
pub(super) fn nodes(
    graph: &Graph,
    points: &[Point<'_, '_>],
    point_of: &[usize],
) -> Result<Vec<bool>, Complaint> {
    let regions = regions(points);
    let is_inside = |number: usize| regions.iter().any(|region| region.contains(&number));
    let inside: Vec<bool> = point_of.iter().map(|point| is_inside(*point)).collect();
    for node in 1..graph.nodes.len() {
        if inside[node] && point_of[node] == point_of[node - 1] {
            let name = points[point_of[node]].operation.name_str();
            return Err(Complaint::new(format!(
                "has a '{name}' for which all warps exchange data, where halves of them take turns (amdg.cond_barrier)"
            )));
        }
    }
    Ok(inside)
}

/// Leaves those barriers of regions that order what halves access.
pub(super) fn settle(graph: &mut Graph, inside: &[bool]) {
    if !inside.contains(&true) {
        return;
    }
    let mut predecessors = vec![Vec::new(); graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for &successor in &node.successors {
            predecessors[successor].push(index);
        }
    }
    let orders = |barrier: usize| {
        let mut seen = vec![false; graph.nodes.len()];
        let mut open = predecessors[barrier].clone();
        while let Some(node) = open.pop() {
            if !inside[node] || !graph.nodes[node].accesses.is_empty() {
                return false;
            }
            if graph.nodes[node].is_barrier || std::mem::replace(&mut seen[node], true) {
                continue;
            }
            open.extend(&predecessors[node]);
        }
        !predecessors[barrier].is_empty()
    };
    let alone: Vec<usize> = (0..graph.nodes.len())
        .filter(|node| inside[*node] && graph.nodes[*node].is_barrier && !orders(*node))
        .collect();
    for node in alone {
        graph.nodes[node].is_barrier = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::placement::{Access, AccessKind, Node};

    /// A loop over these nodes, all in turns: `R` reads the buffer, `W` writes it, `|` is a barrier, `.` nothing. The
    /// first node is outside.
    fn turns(body: &str) -> (Graph, Vec<bool>) {
        let mut graph = Graph::default();
        let last = body.len();
        for (index, kind) in std::iter::once('.').chain(body.chars()).enumerate() {
            let of = |kind| vec![Access::new(kind, 0..1)];
            graph.nodes.push(Node {
                accesses: match kind {
                    'R' => of(AccessKind::Read),
                    'W' => of(AccessKind::Write),
                    _ => Vec::new(),
                },
                successors: vec![if index == last { 1 } else { index + 1 }],
                is_barrier: kind == '|',
                entry: (index > 0).then_some(0),
                ..Node::default()
            });
        }
        let inside = (0..graph.nodes.len()).map(|index| index > 0).collect();
        (graph, inside)
    }

    /// The barriers that are missing, as positions in the body.
    fn missing(body: &str) -> Vec<usize> {
        let (mut graph, inside) = turns(body);
        settle(&mut graph, &inside);
        graph.barriers().into_iter().map(|node| node - 1).collect()
    }

    #[test]
    fn two_barriers_order_the_halves() {
        // Reads, products, stores, products.
        assert!(missing("R|.|W|.|").is_empty());
        assert!(missing("RR|.|.|.|W|.|").is_empty());
    }

    #[test]
    fn one_barrier_is_not_enough() {
        assert_eq!(missing("R|.|W|.").len(), 1);
        assert_eq!(missing("R|W|.|"), [2]);
        assert_eq!(missing("R|.W|.|"), [3]);
    }

    #[test]
    fn outside_of_regions_one_is() {
        let (mut graph, inside) = turns("R|W|");
        settle(
            &mut graph,
            &inside.iter().map(|_| false).collect::<Vec<_>>(),
        );
        assert!(graph.barriers().is_empty());
    }
}
