//! Explorations of loops in which other loops have another number of iterations each time.
//!
//! A loop over programs with a loop inside, whose iterations depend on the program, has too many executions to take each
//! of them: every program multiplies their number. But what happened in earlier programs only matters as far as it is still
//! visible: in the phases of barriers, in what is outstanding, and in what partitions that are ahead have decided.
//!
//! # The graph of states
//!
//! An outer loop of unknown length has no number of iterations here. At its head it is decided whether it goes on, and what
//! follows depends only on the *state* there: positions, memory, phases, live values and decisions, with iterations counted
//! from the partition that is furthest behind. So an execution stops at such a head; if no execution has been in the state
//! before, all executions from it follow later. When no state is left, every execution has been followed, however often
//! the outer loop goes round and however often the inner loops do in each of these iterations (Clarke, Grumberg and Peled,
//! *Model checking*, 1999, chapter 2). The inner loops are executed from each state as all loops are: with every number of
//! iterations up to those at which their end could be noticed before their state recurs. This number is the same in all states;
//! if one needs more, the exploration begins again.
//!
//! # Unknown values
//!
//! What an iteration gets from the one before is a function of what that one got, and so on back to the first: it would be
//! another term in each iteration. So at the head it gets a name, by its number among the values of this iteration, and
//! nothing else is known of it. Partitions execute the same iterations one after the other. If a value at the head is equal to one
//! that already has a name in the same iteration, as a term over the names of the iteration before, then it gets that name. So two
//! partitions that compute the iterations of their inner loops by the same functions from the same values agree in each iteration, by
//! induction: that is how the equality is established. If they compute them otherwise, they have different names and may differ.
//!
//! Known values that take another value in each iteration, as those that count until they are equal to an unknown number, would be
//! another state each time. After some of them such a value gets names, too, and nothing is known of it any more (a
//! widening: Cousot and Cousot, *Abstract interpretation*, 1977).
//!
//! What was decided about names is forgotten when no partition has or gets them any more.
//!
//! A loop with the same bounds in several partitions has the same iterations in all, since the decision at the head is
//! one about the bounds and the number of the iteration. Comparisons that look ahead to the end of the loop are decisions about later
//! iterations: if there is one, there are all before it.
//!
//! # No hazard, or no answer
//!
//! Forgetting makes more executions, never fewer: two decisions may contradict one another, as that a number is less than another
//! one and, in the next iteration, that it is not. So without a hazard here, there is none; a hazard here says
//! nothing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::execution::{Agent, Execution, Executions, Heads, Held, Position, State, Stop};
use super::number::{Back, Iteration, Number, Parts, Term, Terms};
use super::skeleton::{Event, Instruction, Skeleton, Slot};

/// States at most.
const STATES: usize = 30_000;
/// The function of a loop's bounds.
const BOUNDS: u32 = u32::MAX - 1;

/// Follows all executions of a skeleton from each state at the head of an outer loop; how many there were. `Wrong` says that
/// there may be a hazard.
pub(super) fn explore(skeleton: &Skeleton, limit: u64) -> Result<usize, Stop> {
    let mut executions = Executions::of(skeleton, limit);
    executions.arithmetic.defers = true;
    let live: Rc<[Vec<Slot>]> = live(skeleton).into();
    loop {
        executions.heads = Some(Heads {
            seen: Default::default(),
            waiting: vec![executions.start()],
            live: live.clone(),
        });
        match executions.follow() {
            Err(Stop::Learned) => {}
            Err(stop) => return Err(stop),
            Ok(runs) => {
                if !executions.arithmetic.choices.extend() {
                    return Ok(runs);
                }
            }
        }
    }
}

impl Executions<'_> {
    /// Follows the executions from all states that are waiting.
    fn follow(&mut self) -> Result<usize, Stop> {
        let mut runs = 0;
        while let Some(position) = self.heads.as_mut().and_then(|heads| heads.waiting.pop()) {
            self.arithmetic.choices.restart();
            loop {
                match self.run(position.clone()) {
                    Ok(()) | Err(Stop::Recurred) => runs += 1,
                    Err(stop) => return Err(stop),
                }
                if !self.arithmetic.choices.advance() {
                    break;
                }
            }
        }
        Ok(runs)
    }
}

impl Execution<'_, '_> {
    /// The term of a loop's bounds, if it is to be decided at its head whether it goes on.
    pub(super) fn class(
        &mut self,
        agent: usize,
        [lower, upper, step]: [&Number; 3],
    ) -> Result<Option<u32>, Stop> {
        let of = &self.agents[agent];
        if self.all.heads.is_none() || !of.loops.is_empty() {
            return Ok(None);
        }
        let arithmetic = &mut self.all.arithmetic;
        let is_known = arithmetic.resolve(&upper.plus(lower, -1)).is_some();
        if is_known && step.value().is_some() {
            return Ok(None);
        }
        let bounds = [lower, upper, step].map(Number::clone);
        let class = arithmetic.term(BOUNDS, &bounds);
        let class = class.parts.first().map(|part| part.0);
        let Some(class) = class.filter(|class| !of.entered.contains(class)) else {
            return Ok(None);
        };
        match arithmetic.open(class, [lower, upper, step]) {
            true => Ok(Some(class)),
            false => Err(Stop::Learned),
        }
    }

    /// At the head of a loop, whether it goes on; an execution stops where it has not been seen yet.
    pub(super) fn decide_at_head(
        &mut self,
        agent: usize,
        of: Iteration,
        handed: &[Slot],
    ) -> Result<bool, Stop> {
        if !self.agents[agent].is_seen {
            self.agents[agent].is_seen = true;
            self.agents[agent].new_terms = 0;
            self.hand_on(agent, of, handed)?;
            let back = self.furthest_behind();
            self.forget(&back);
            let state = self.state(&back);
            let position = Position {
                agents: self.agents.clone(),
                memory: self.memory.clone(),
                handed: self.handed.clone(),
                facts: self.all.arithmetic.facts.clone(),
            };
            if let Some(heads) = &mut self.all.heads
                && heads.seen.insert(state)
            {
                heads.waiting.push(position);
                if heads.seen.len() > STATES {
                    let reason = format!("more than {STATES} states of loops are necessary");
                    return Err(Stop::Exhausted(reason));
                }
            }
            return Err(Stop::Recurred);
        }
        self.agents[agent].is_seen = false;
        Ok(self.all.arithmetic.goes_on(of))
    }

    /// Gives names to the values that an iteration gets from the one before; executions begin anew if one is found that
    /// has too many known values.
    fn hand_on(&mut self, agent: usize, of: Iteration, handed: &[Slot]) -> Result<(), Stop> {
        let Some(heads) = &self.all.heads else {
            return Ok(());
        };
        let live = heads.live.clone();
        let one = &mut self.agents[agent];
        let live = &live[one.at];
        // Also without values.
        self.handed.entry(of).or_default();
        let induction = one.loops.last().and_then(|innermost| innermost.to);
        let others = live.iter().filter(|slot| !handed.contains(slot));
        let slots = handed.iter().filter(|slot| live.contains(slot));
        for &slot in slots.chain(others) {
            let Held::Number(number) = &one.held[slot] else {
                continue;
            };
            let terms = &mut self.all.arithmetic.terms;
            if induction == Some(slot) {
                let counted = terms.number(Term::Counted(of));
                one.held[slot] = Held::Number(Number::term(counted));
                continue;
            }
            if !self.skeleton.needed[slot] {
                continue;
            }
            let is_counter = self.all.counters.slots.contains(&slot);
            let is_named = match number.value() {
                Some(value) if handed.contains(&slot) && !is_counter => self
                    .all
                    .known_values
                    .is_widened(slot, value)
                    .ok_or(Stop::Learned)?,
                Some(_) => false,
                None => handed.contains(&slot) || terms.leaves(&number.parts).next().is_some(),
            };
            if !is_named {
                continue;
            }
            let value = (number.constant, number.parts.clone());
            let named = self.handed.entry(of).or_default();
            let index = named.iter().position(|known| *known == value);
            let index = index.unwrap_or_else(|| {
                named.push(value);
                named.len() - 1
            });
            let index = index as u32;
            let name = terms.number(Term::Handed { index, of });
            one.held[slot] = Held::Number(Number::term(name));
        }
        Ok(())
    }

    /// The iteration of the agent that is furthest behind in each loop.
    fn furthest_behind(&self) -> Back {
        let mut back = Back::new();
        for of in self.agents.iter().filter_map(Agent::open) {
            let known = back.entry(of.class).or_insert(of.number);
            *known = (*known).min(of.number);
        }
        let enters = |one: &Agent| one.state != State::Ended && one.entered.is_empty();
        if self.agents.iter().any(enters) {
            back.values_mut().for_each(|number| *number = -1);
        }
        back
    }

    /// Forgets what was decided about values that no agent has or gets any more.
    fn forget(&mut self, back: &Back) {
        let is_awaited =
            |of: &Iteration| back.get(&of.class).is_some_and(|first| of.number > *first);
        self.handed.retain(|of, _| is_awaited(of));
        let Some(heads) = &self.all.heads else {
            return;
        };
        let arithmetic = &mut self.all.arithmetic;
        let terms = &mut arithmetic.terms;
        let mut had: HashSet<u32> = HashSet::new();
        for one in self.agents.iter().filter(|one| one.state != State::Ended) {
            for &slot in &heads.live[one.at] {
                if let Held::Number(number) = &one.held[slot] {
                    had.extend(terms.leaves(&number.parts));
                }
            }
        }
        for (of, named) in &self.handed {
            let of = *of;
            had.insert(terms.number(Term::Counted(of)));
            for index in 0..named.len() as u32 {
                had.insert(terms.number(Term::Handed { index, of }));
            }
            let values = named.iter();
            had.extend(values.flat_map(|(_, parts)| terms.leaves(parts)));
        }
        let is_kept = |leaf: u32| match terms.get(leaf) {
            Term::GoesOn(of) => back.get(&of.class).is_some_and(|first| of.number >= *first),
            _ => had.contains(&leaf),
        };
        let is_kept = |parts: &Parts| terms.leaves(parts).all(is_kept);
        let facts = &mut arithmetic.facts;
        facts.bounds.retain(|parts, _| is_kept(parts));
        facts.conditions.retain(|parts, _| is_kept(parts));
    }

    /// Everything on which the future depends, with iterations counted from the agent that is furthest behind.
    fn state(&mut self, back: &Back) -> Vec<i64> {
        let mut state = Vec::with_capacity(512);
        self.add_memory(&mut state);
        let Some(heads) = &self.all.heads else {
            return state;
        };
        let live = heads.live.clone();
        let terms = &mut self.all.arithmetic.terms;
        let counters = &self.all.counters;
        for one in &self.agents {
            state.extend([one.at as i64, one.state as i64, one.is_seen.into()]);
            state.push(one.new_terms as i64);
            for groups in [one.copies, one.products, one.stores] {
                state.push((groups.committed - groups.complete) as i64);
            }
            for inside in &one.loops {
                state.push(inside.number as i64);
                if let Some(class) = inside.class {
                    let first = back.get(&class).copied().unwrap_or(0);
                    state.extend([class.into(), inside.iteration - first]);
                    continue;
                }
                state.push(inside.iterations - inside.iteration);
                if let (Some(to), Some((lower, step))) = (inside.to, &inside.induction)
                    && self.skeleton.needed[to]
                {
                    add(&lower.plus(step, inside.iteration), terms, back, &mut state);
                    add(step, terms, back, &mut state);
                }
            }
            let live = match one.state {
                State::Ended => &[],
                _ => &live[one.at][..],
            };
            for &slot in live {
                match &one.held[slot] {
                    Held::Number(number) if self.skeleton.needed[slot] => {
                        let mut number = number.clone();
                        if counters.slots.contains(&slot) && number.parts.is_empty() {
                            number.constant = number.constant.rem_euclid(counters.modulus);
                        }
                        add(&number, terms, back, &mut state);
                    }
                    Held::View(bytes) => state.push(bytes.start as i64),
                    Held::Product(group) if *group > one.products.complete => {
                        state.push((one.products.committed - group) as i64);
                    }
                    _ => state.push(-1),
                }
            }
        }
        self.add_decisions(back, &mut state);
        state
    }

    /// What was decided, and which values have names.
    fn add_decisions(&mut self, back: &Back, state: &mut Vec<i64>) {
        let arithmetic = &mut self.all.arithmetic;
        let (facts, terms) = (&arithmetic.facts, &mut arithmetic.terms);
        let bounds = facts.bounds.iter().map(|(of, value)| (of, *value));
        let conditions = facts.conditions.iter();
        let conditions = conditions.map(|(of, holds)| (of, i64::from(*holds)));
        for decisions in [bounds.collect::<Vec<_>>(), conditions.collect()] {
            let decisions = decisions.into_iter();
            let mut decisions: Vec<(Parts, i64)> = decisions
                .map(|(of, value)| (terms.counted_from(of, back), value))
                .collect();
            decisions.sort_unstable();
            state.push(decisions.len() as i64);
            for (parts, value) in decisions {
                state.push(value);
                add_parts(&parts, state);
            }
        }
        for (of, named) in &self.handed {
            let first = back.get(&of.class).copied().unwrap_or(0);
            state.extend([of.class.into(), of.number - first, named.len() as i64]);
            for (constant, parts) in named {
                state.push(*constant);
                add_parts(&terms.counted_from(parts, back), state);
            }
        }
    }
}

/// A number as part of a state.
fn add(number: &Number, terms: &mut Terms, back: &Back, state: &mut Vec<i64>) {
    state.push(number.constant);
    add_parts(&terms.counted_from(&number.parts, back), state);
}

fn add_parts(parts: &Parts, state: &mut Vec<i64>) {
    state.push(parts.len() as i64);
    for &(term, factor) in parts.iter() {
        state.extend([term.into(), factor]);
    }
}

/// The values that are live before each instruction: those that it or one after it uses before they are assigned again.
fn live(skeleton: &Skeleton) -> Vec<Vec<Slot>> {
    let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, instruction) in skeleton.code.iter().enumerate() {
        for next in successors(at, instruction) {
            before.entry(next).or_default().push(at);
        }
    }
    let mut live: Vec<BTreeSet<Slot>> = vec![BTreeSet::new(); skeleton.code.len()];
    let mut queue: Vec<usize> = (0..skeleton.code.len()).collect();
    while let Some(at) = queue.pop() {
        let instruction = &skeleton.code[at];
        let next = successors(at, instruction);
        let after = next.iter().filter_map(|next| live.get(*next));
        let mut now: BTreeSet<Slot> = after.flatten().copied().collect();
        let (reads, writes) = accesses(instruction, &skeleton.needed);
        for slot in writes {
            now.remove(&slot);
        }
        now.extend(reads);
        if now != live[at] {
            live[at] = now;
            queue.extend(before.get(&at).into_iter().flatten());
        }
    }
    live.into_iter()
        .map(|slots| slots.into_iter().collect())
        .collect()
}

fn successors(at: usize, instruction: &Instruction) -> Vec<usize> {
    match instruction {
        Instruction::Jump(to) => vec![*to],
        Instruction::Head { exit, .. } => vec![at + 1, *exit],
        Instruction::Branch { otherwise, .. } => vec![at + 1, *otherwise],
        Instruction::Fork { partitions, .. } => {
            let starts = partitions.iter().map(|(start, _)| *start);
            starts.chain([at + 1]).collect()
        }
        Instruction::EndPartition | Instruction::Return { .. } => Vec::new(),
        _ => vec![at + 1],
    }
}

/// The values that an instruction uses, and those that it assigns.
fn accesses(instruction: &Instruction, needed: &[bool]) -> (Vec<Slot>, Vec<Slot>) {
    let of_moves = |moves: &[(Slot, Slot)]| moves.iter().copied().unzip();
    match instruction {
        Instruction::Constant { to, .. } | Instruction::Allocate { to, .. } => {
            (Vec::new(), vec![*to])
        }
        Instruction::Compute { to, from, .. } if needed[*to] => (from.clone(), vec![*to]),
        Instruction::Move(moves) => of_moves(moves),
        Instruction::Enter { bounds, to, .. } => (
            bounds.iter().flatten().copied().collect(),
            to.iter().copied().collect(),
        ),
        Instruction::Next { to } => (Vec::new(), to.iter().copied().collect()),
        Instruction::Branch { condition, .. } => (vec![*condition], Vec::new()),
        Instruction::Fork { partitions, .. } => of_moves(
            &partitions
                .iter()
                .flat_map(|of| of.1.clone())
                .collect::<Vec<_>>(),
        ),
        Instruction::View { to, from } => (vec![*from], vec![*to]),
        Instruction::Index {
            to, from, index, ..
        } => (vec![*from, *index], vec![*to]),
        Instruction::Uses { from, .. } => (from.clone(), Vec::new()),
        Instruction::Event { event, .. } => of_event(event),
        Instruction::Compute { .. }
        | Instruction::Head { .. }
        | Instruction::Jump(_)
        | Instruction::Join
        | Instruction::EndPartition
        | Instruction::Return { .. }
        | Instruction::Open => Default::default(),
    }
}

fn of_event(event: &Event) -> (Vec<Slot>, Vec<Slot>) {
    let with = |slots: &[Slot], pred: &Option<Slot>| {
        let slots = slots.iter().chain(pred).copied();
        (slots.collect(), Vec::new())
    };
    match event {
        Event::Begin { barrier, .. } | Event::End { barrier } => with(&[*barrier], &None),
        Event::Arrive { barrier, pred, .. } => with(&[*barrier], pred),
        Event::Wait {
            barrier,
            phase,
            pred,
            ..
        } => with(&[*barrier, *phase], pred),
        Event::BulkLoad {
            barrier, to, pred, ..
        } => with(&[*barrier, *to], pred),
        Event::BulkStore { from: slot } | Event::Read { from: slot } => with(&[*slot], &None),
        Event::Copy { to: slot } | Event::Write { to: slot } => with(&[*slot], &None),
        Event::Product {
            shared,
            registers,
            to,
            ..
        } => ([&shared[..], &registers[..]].concat(), vec![*to]),
        Event::ProductWait { moves, .. } => moves.iter().copied().unzip(),
        Event::BulkWait { .. }
        | Event::Commit
        | Event::CopyWait { .. }
        | Event::Scratch { .. }
        | Event::Fence
        | Event::Barrier => Default::default(),
    }
}
