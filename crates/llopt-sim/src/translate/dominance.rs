//! Post-dominators of a control-flow graph: the blocks where diverged lanes reconverge.
//!
//! A block `p` post-dominates `b` if every path from `b` to the function's end goes through `p`; the immediate one is
//! the first such block after `b`. Blocks from which no path leads to a return (endless loops, traps) put no
//! constraint on others: a branch into a trap does not prevent the remaining lanes from reconverging.
//!
//! The algorithm is the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm") on the
//! reversed graph, with one extra node for the end.

/// Immediate post-dominator of each block; the number of blocks denotes the function's end.
///
/// `ends[b]` is true if `b` returns.
pub(crate) fn immediate_post_dominators(successors: &[Vec<u32>], ends: &[bool]) -> Vec<u32> {
    let count = successors.len();
    let end = count;
    let mut predecessors = vec![Vec::new(); count + 1];
    for (block, targets) in successors.iter().enumerate() {
        for &target in targets {
            predecessors[target as usize].push(block);
        }
        if ends[block] {
            predecessors[end].push(block);
        }
    }
    // Post-order of the reversed graph from the end.
    let mut order = Vec::new();
    let mut number = vec![usize::MAX; count + 1];
    let mut seen = vec![false; count + 1];
    let mut stack = vec![(end, 0usize)];
    seen[end] = true;
    while let Some(top) = stack.last_mut() {
        let (node, next) = *top;
        if let Some(&predecessor) = predecessors[node].get(next) {
            top.1 += 1;
            if !seen[predecessor] {
                seen[predecessor] = true;
                stack.push((predecessor, 0));
            }
        } else {
            number[node] = order.len();
            order.push(node);
            stack.pop();
        }
    }
    let mut parent = vec![usize::MAX; count + 1];
    parent[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|&&n| n != end) {
            let followers = successors[node]
                .iter()
                .map(|&s| s as usize)
                .chain(ends[node].then_some(end));
            let mut meet = usize::MAX;
            for follower in followers.filter(|&f| parent[f] != usize::MAX) {
                meet = if meet == usize::MAX {
                    follower
                } else {
                    intersect(meet, follower, &parent, &number)
                };
            }
            if meet != usize::MAX && parent[node] != meet {
                parent[node] = meet;
                changed = true;
            }
        }
    }
    (0..count)
        .map(|b| if parent[b] == usize::MAX { end } else { parent[b] } as u32)
        .collect()
}

fn intersect(mut a: usize, mut b: usize, parent: &[usize], number: &[usize]) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = parent[a];
        }
        while number[b] < number[a] {
            b = parent[b];
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::immediate_post_dominators;

    #[test]
    fn a_diamond_meets_at_its_bottom() {
        let graph = [vec![1, 2], vec![3], vec![3], vec![]];
        let ends = [false, false, false, true];
        assert_eq!(immediate_post_dominators(&graph, &ends), [3, 3, 3, 4]);
    }

    #[test]
    fn a_loop_meets_after_itself_and_traps_do_not_count() {
        // 0 -> 1; 1 -> 2 | 3; 2 -> 1 | 4(trap); 3 returns.
        let graph = [vec![1], vec![2, 3], vec![1, 4], vec![], vec![]];
        let ends = [false, false, false, true, false];
        assert_eq!(
            immediate_post_dominators(&graph, &ends),
            [1, 3, 1, 4 + 1, 5]
        );
    }

    #[test]
    fn two_returns_meet_at_the_end() {
        let graph = [vec![1, 2], vec![], vec![]];
        assert_eq!(
            immediate_post_dominators(&graph, &[false, true, true]),
            [3, 3, 3]
        );
    }
}
