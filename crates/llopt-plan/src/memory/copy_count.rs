//! How many instructions of asynchronous copies may still be outstanding where a program waits for copies.
//!
//! A program waits for *groups* of copies: until at most `n` of the groups it has committed are outstanding, or until
//! those that tokens name are complete. Some hardware counts *instructions*, which complete in the order in which
//! they were issued. There a wait is long enough once no more instructions are outstanding than were issued after the
//! one that is waited for. That number depends on the path that control has taken: the least over all paths is always
//! safe, and a greater one is wrong on some path.
//!
//! # The analysis
//!
//! A *mark* is a position in the sequence of issued instructions. The state at a point of the program gives for each
//! mark the least number of instructions issued since, over all paths to that point. There is a mark for `k = 0, 1,
//! …` where the `k`-th youngest group was committed, and for each token where the group or copy that it names ended.
//!
//! - A copy of `i` instructions adds `i` to all marks, or nothing if some warps skip it, as those that hold the same
//!   elements as others do: a warp counts what it has issued itself. Its own token is a mark at zero.
//! - Committing a group makes the `k`-th youngest the `k + 1`-th, and sets the youngest and the token to zero.
//! - A call may commit any number of groups: all of them are at zero. It does not change what tokens name.
//! - A branch gives the marks of tokens to the arguments of the block.
//! - Where paths join, the smaller number counts.
//!
//! Numbers only decrease while the states of blocks are computed again, and the least number of instructions on a
//! path is a shortest path without negative edges, so the analysis terminates.
//!
//! A mark with no copy before it is at [`NOTHING`]: there is nothing to wait for. A kernel begins in this state.
//! Other functions begin with all groups of their caller committed at the call.
//!
//! # Rejected
//!
//! Walking backwards from each wait until enough groups have been passed (as Triton does) enumerates paths, or has to
//! remember for each point the counts with which it was reached. The forward analysis visits each block a few times
//! for all waits together.

use std::collections::HashMap;

/// The count of a mark with no copy before it.
pub const NOTHING: u32 = u32::MAX;

/// How many groups are told apart. Older ones are taken to have been committed together with the oldest of these.
const GROUPS: usize = 32;

/// The name of a token.
pub type Token = usize;

/// What happens to copies at some point of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions of a copy are issued.
    Copy {
        /// What names the copy.
        token: Token,
        /// The number of instructions; none if the copy is not asynchronous.
        instructions: u32,
        /// Whether every warp issues them.
        by_all: bool,
    },
    /// The copies since the last group become a group.
    Commit {
        /// What names the group.
        token: Token,
    },
    /// A function is called.
    Call,
    /// The program waits.
    Wait {
        /// The names of what it waits for; if there are none, `groups` says it.
        tokens: Vec<Token>,
        /// How many groups may be outstanding.
        groups: u32,
        /// The token of everything that has been waited for.
        token: Token,
    },
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of the block it leads to.
    pub to: usize,
    /// The parameters of that block, and what is passed for each; tokens and others.
    pub arguments: Vec<(Token, Token)>,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// What happens in it, in order.
    pub events: Vec<Event>,
    /// Where it leads.
    pub edges: Vec<Edge>,
}

/// The state at a point: the least numbers of instructions issued since each mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// Since the end of the `k`-th youngest group.
    groups: [u32; GROUPS],
    /// Since the end of what a token names; a token without an entry names something unknown.
    tokens: HashMap<Token, u32>,
    /// Whether no copy has been issued.
    is_fresh: bool,
}

impl State {
    fn at_entry(is_kernel: bool) -> Self {
        Self {
            groups: [if is_kernel { NOTHING } else { 0 }; GROUPS],
            tokens: HashMap::new(),
            is_fresh: is_kernel,
        }
    }

    /// The count of a mark at this point.
    fn here(&self) -> u32 {
        if self.is_fresh { NOTHING } else { 0 }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Copy {
                token,
                instructions,
                by_all,
            } => {
                let least = if *by_all { *instructions } else { 0 };
                for count in self.groups.iter_mut().chain(self.tokens.values_mut()) {
                    *count = count.saturating_add(least);
                }
                self.is_fresh &= *instructions == 0;
                self.tokens.insert(*token, self.here());
            }
            Event::Commit { token } => {
                self.groups.rotate_right(1);
                self.groups[0] = self.here();
                self.tokens.insert(*token, self.here());
            }
            Event::Call => {
                self.groups = [0; GROUPS];
                self.is_fresh = false;
            }
            Event::Wait { token, .. } => {
                self.tokens.insert(*token, NOTHING);
            }
        }
    }

    /// How many instructions may be outstanding when a wait is over.
    fn allowed(&self, tokens: &[Token], groups: u32) -> u32 {
        let of_token = |token| self.tokens.get(token).copied().unwrap_or(0);
        tokens.iter().map(of_token).min().unwrap_or_else(|| {
            let youngest = usize::try_from(groups).unwrap_or(GROUPS);
            self.groups[youngest.min(GROUPS - 1)]
        })
    }

    /// The state after a branch.
    fn along(&self, edge: &Edge) -> Self {
        let mut state = self.clone();
        for (parameter, argument) in &edge.arguments {
            match self.tokens.get(argument) {
                Some(count) => state.tokens.insert(*parameter, *count),
                None => state.tokens.remove(parameter),
            };
        }
        state
    }

    /// Joins another path into this point; returns whether the state has changed.
    fn meet(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            *mine = (*mine).min(*theirs);
        }
        self.tokens.retain(|token, mine| {
            let theirs = other.tokens.get(token);
            *mine = (*mine).min(theirs.copied().unwrap_or(0));
            theirs.is_some()
        });
        self.is_fresh &= other.is_fresh;
        *self != before
    }
}

/// For each wait, in the order of blocks and events, how many instructions of copies may be outstanding when it is
/// over; [`NOTHING`] if there is nothing to wait for. The first block is the entry.
///
/// Ensures: on every path through the blocks, at least that many instructions have been issued since the end of what
/// is waited for, and on some path exactly that many (except for groups beyond the 32nd youngest, and calls).
pub fn allowed_at_waits(blocks: &[Block], is_kernel: bool) -> Vec<u32> {
    let mut states: Vec<Option<State>> = vec![None; blocks.len()];
    let Some(entry) = states.first_mut() else {
        return Vec::new();
    };
    *entry = Some(State::at_entry(is_kernel));
    let mut work = vec![0];
    while let Some(number) = work.pop() {
        let Some(mut state) = states[number].clone() else {
            continue;
        };
        blocks[number]
            .events
            .iter()
            .for_each(|event| state.apply(event));
        for edge in &blocks[number].edges {
            let arriving = state.along(edge);
            let changed = match &mut states[edge.to] {
                Some(known) => known.meet(&arriving),
                unreached => {
                    *unreached = Some(arriving);
                    true
                }
            };
            if changed {
                work.push(edge.to);
            }
        }
    }
    let mut allowed = Vec::new();
    for (block, state) in blocks.iter().zip(states) {
        // Nothing is known of a block that no path leads to.
        let mut state = state.unwrap_or_else(|| State::at_entry(false));
        for event in &block.events {
            if let Event::Wait { tokens, groups, .. } = event {
                allowed.push(state.allowed(tokens, *groups));
            }
            state.apply(event);
        }
    }
    allowed
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Tokens of the tests, apart from those that nothing uses.
    const UNUSED: Token = 99;

    fn copy(instructions: u32) -> Event {
        Event::Copy {
            token: UNUSED,
            instructions,
            by_all: true,
        }
    }

    fn commit(token: Token) -> Event {
        Event::Commit { token }
    }

    fn wait(groups: u32) -> Event {
        Event::Wait {
            tokens: Vec::new(),
            groups,
            token: UNUSED,
        }
    }

    fn wait_for(tokens: &[Token]) -> Event {
        Event::Wait {
            tokens: tokens.to_vec(),
            groups: 0,
            token: UNUSED,
        }
    }

    fn block(events: Vec<Event>, to: &[usize]) -> Block {
        let edge = |&to| Edge {
            to,
            arguments: Vec::new(),
        };
        Block {
            events,
            edges: to.iter().map(edge).collect(),
        }
    }

    #[test]
    fn younger_groups_and_open_copies_may_be_under_way() {
        let events = vec![
            copy(3),
            commit(0),
            copy(4),
            commit(1),
            copy(2),
            wait(0),
            wait(1),
            wait(2),
            wait_for(&[0]),
            wait_for(&[1, 0]),
        ];
        let allowed = allowed_at_waits(&[block(events, &[])], true);
        assert_eq!(allowed, [2, 6, NOTHING, 6, 2]);
    }

    #[test]
    fn what_some_warps_skip_is_waited_for_and_not_counted() {
        let by_some = || Event::Copy {
            token: 0,
            instructions: 1,
            by_all: false,
        };
        let events = vec![by_some(), copy(2), wait_for(&[0]), commit(1), wait(0)];
        assert_eq!(allowed_at_waits(&[block(events, &[])], true), [2, 0]);
        let events = vec![copy(2), commit(1), by_some(), copy(3), wait(0)];
        assert_eq!(allowed_at_waits(&[block(events, &[])], true), [3]);
    }

    #[test]
    fn a_loop_with_two_buffers_lets_the_next_copy_run() {
        // The group of the iteration before is waited for while this iteration's copy is outstanding.
        let entry = Block {
            events: vec![copy(4), commit(0)],
            edges: vec![Edge {
                to: 1,
                arguments: vec![(1, 0)],
            }],
        };
        let body = Block {
            events: vec![copy(4), commit(2), wait(1), wait_for(&[1])],
            edges: vec![
                Edge {
                    to: 1,
                    arguments: vec![(1, 2)],
                },
                Edge {
                    to: 2,
                    arguments: Vec::new(),
                },
            ],
        };
        let exit = block(vec![wait(0)], &[]);
        assert_eq!(allowed_at_waits(&[entry, body, exit], true), [4, 4, 0]);
    }

    #[test]
    fn the_way_with_fewest_instructions_counts() {
        // 0 copy, commit; 1 a copy of three, 2 a copy of one; 3 wait while the uncommitted copies are outstanding.
        let blocks = [
            block(vec![copy(4), commit(0)], &[1, 2]),
            block(vec![copy(3)], &[3]),
            block(vec![copy(1)], &[3]),
            block(vec![wait(0)], &[]),
        ];
        assert_eq!(allowed_at_waits(&blocks, true), [1]);
    }

    #[test]
    fn copies_that_are_done_otherwise_are_not_waited_for() {
        let blocks = [block(
            vec![copy(0), commit(0), wait(0), copy(2), wait(0)],
            &[],
        )];
        assert_eq!(allowed_at_waits(&blocks, true), [NOTHING, NOTHING]);
        assert_eq!(allowed_at_waits(&blocks, false), [0, 2]);
    }

    #[test]
    fn who_calls_or_is_called_knows_nothing_of_the_other() {
        let blocks = [block(
            vec![copy(1), commit(0), copy(1), Event::Call, wait(1), wait(0)],
            &[],
        )];
        assert_eq!(allowed_at_waits(&blocks, true), [0, 0]);
        let blocks = [block(
            vec![copy(1), commit(0), wait(1), wait_for(&[7])],
            &[],
        )];
        assert_eq!(allowed_at_waits(&blocks, false), [1, 0]);
    }

    /// What has happened on one path: all that was issued and committed, oldest first, and what tokens stand for.
    #[derive(Clone, Default)]
    struct History {
        /// The number of instructions issued before each commit.
        closed: Vec<u32>,
        issued: u32,
        tokens: HashMap<Token, u32>,
    }

    /// The least number at each wait over all paths of at most `steps` blocks, if one leads there.
    fn over_all_ways(blocks: &[Block], steps: usize) -> Vec<Option<u32>> {
        let first: Vec<usize> = blocks
            .iter()
            .scan(0, |next, block| {
                let first = *next;
                let is_wait = |event: &&Event| matches!(event, Event::Wait { .. });
                *next += block.events.iter().filter(is_wait).count();
                Some(first)
            })
            .collect();
        let total: usize = blocks
            .iter()
            .flat_map(|block| &block.events)
            .filter(|event| matches!(event, Event::Wait { .. }))
            .count();
        let mut least = vec![None; total];
        let mut ways = VecDeque::from([(0, History::default(), steps)]);
        while let Some((number, mut history, left)) = ways.pop_front() {
            let mut next = first[number];
            for event in &blocks[number].events {
                match event {
                    Event::Copy {
                        token,
                        instructions,
                        ..
                    } => {
                        history.issued += instructions;
                        history.tokens.insert(*token, history.issued);
                    }
                    Event::Commit { token } => {
                        history.closed.push(history.issued);
                        history.tokens.insert(*token, history.issued);
                    }
                    Event::Call => {}
                    Event::Wait {
                        tokens,
                        groups,
                        token,
                    } => {
                        // Instructions that have to be complete.
                        let done = if tokens.is_empty() {
                            let oldest = history.closed.len().checked_sub(*groups as usize + 1);
                            oldest.map_or(0, |oldest| history.closed[oldest])
                        } else {
                            tokens
                                .iter()
                                .map(|token| history.tokens[token])
                                .max()
                                .unwrap_or(0)
                        };
                        let allowed = match done {
                            0 => NOTHING,
                            done => history.issued - done,
                        };
                        let known: Option<u32> = least[next];
                        least[next] = Some(known.map_or(allowed, |known| known.min(allowed)));
                        next += 1;
                        history.tokens.insert(*token, 0);
                    }
                }
            }
            if left > 1 {
                for edge in &blocks[number].edges {
                    let mut passed = history.clone();
                    for (parameter, argument) in &edge.arguments {
                        passed.tokens.insert(*parameter, history.tokens[argument]);
                    }
                    ways.push_back((edge.to, passed, left - 1));
                }
            }
        }
        least
    }

    /// Three blocks. Each has two tokens as parameters, and closes one group of its own.
    fn program() -> impl Strategy<Value = Vec<Block>> {
        let parameters = |number: usize| [10 * number, 10 * number + 1];
        let one = |number: usize| {
            let known = || prop::sample::select(vec![10 * number, 10 * number + 1]);
            let own = 10 * number + 2;
            let before = prop::collection::vec(
                prop_oneof![
                    (0..3u32).prop_map(copy),
                    (0..2u32).prop_map(wait),
                    known().prop_map(|token| wait_for(&[token])),
                ],
                0..3,
            );
            let after = prop::collection::vec(
                prop_oneof![
                    (0..3u32).prop_map(copy),
                    (0..2u32).prop_map(wait),
                    known().prop_map(move |token| wait_for(&[token, own])),
                ],
                0..2,
            );
            let passed = || prop::sample::select(vec![10 * number, 10 * number + 1, own]);
            let edge = (0..3usize, passed(), passed()).prop_map(move |(to, a, b)| Edge {
                to,
                arguments: parameters(to).into_iter().zip([a, b]).collect(),
            });
            (before, after, prop::collection::vec(edge, 0..3)).prop_map(
                move |(before, after, edges)| Block {
                    events: [before, vec![commit(own)], after].concat(),
                    edges,
                },
            )
        };
        (one(0), one(1), one(2)).prop_map(|(a, b, c)| {
            // The entry block's parameters are groups, too.
            let entry = Block {
                events: vec![commit(100), copy(1), commit(101)],
                edges: vec![Edge {
                    to: 1,
                    arguments: vec![(0, 100), (1, 101)],
                }],
            };
            let mut blocks = vec![entry, a, b, c];
            for block in &mut blocks[1..] {
                block.edges.iter_mut().for_each(|edge| edge.to += 1);
            }
            blocks
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn counts_are_the_least_over_all_ways(blocks in program()) {
            let reached = over_all_ways(&blocks, 12);
            for (count, least) in allowed_at_waits(&blocks, true).into_iter().zip(reached) {
                prop_assert_eq!(count, least.unwrap_or(count));
            }
        }
    }
}
