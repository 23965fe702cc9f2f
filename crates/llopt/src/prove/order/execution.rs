//! Executions of a skeleton: agents that take turns, each until it waits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::arithmetic::{Arithmetic, At, Facts};
use super::choices::{Bound, Iterations, MANY};
use super::counters::Counters;
use super::known_values::KnownValues;
use super::memory::{AGENTS, Hazard, Memory};
use super::number::{Iteration, Number, Parts, Term};
use super::skeleton::{Function, Instruction, Skeleton, Slot};

/// Iterations after which a state must have recurred.
const ITERATIONS: i64 = 400;
/// Why an execution stops.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// It is wrong.
    Wrong { place: usize, hazard: Hazard },
    /// The state of a loop recurred.
    Recurred,
    /// A sum is now known to bound a loop.
    Learned,
    /// Too many executions are necessary, or too long ones.
    Exhausted(String),
    /// It has no meaning here.
    Unsupported(String),
}

#[derive(Clone, Debug, Default)]
pub(super) enum Held {
    #[default]
    Nothing,
    Number(Number),
    View(Range<u64>),
    /// The result of a product, by group.
    Product(u64),
}

/// A loop that an agent executes.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) number: usize,
    pub(super) iteration: i64,
    pub(super) iterations: i64,
    /// What these depend on; how many of its units each takes, and how many it has besides.
    bound: Bound,
    units: i64,
    besides: i64,
    pub(super) induction: Option<(Number, Number)>,
    /// Where its induction variable is.
    pub(super) to: Option<Slot>,
    /// What its bound is of, the same for loops that have the same iterations.
    distance: Parts,
    /// If it is decided at its head whether it goes on, the term of its bounds.
    pub(super) class: Option<u32>,
}

impl Loop {
    pub(super) fn is_endless(&self) -> bool {
        self.class.is_none() && self.iterations - self.iteration >= MANY
    }

    fn bit(&self) -> u64 {
        1 << self.number.min(63)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// It waits at a barrier, or for the partitions.
    Blocked,
    Ended,
}

/// Groups of asynchronous work: how many were committed, and how many are complete.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    pub(super) committed: u64,
    pub(super) complete: u64,
}

impl Groups {
    pub(super) fn wait(&mut self, left: i64) {
        let complete = self
            .committed
            .saturating_sub(u64::try_from(left).unwrap_or(0));
        self.complete = self.complete.max(complete);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) at: usize,
    pub(super) state: State,
    pub(super) held: Vec<Held>,
    pub(super) loops: Vec<Loop>,
    pub(super) copies: Groups,
    pub(super) products: Groups,
    pub(super) stores: Groups,
    /// In the present iteration.
    pub(super) new_terms: u64,
    /// It is at the head of a loop, and its state there was remembered.
    pub(super) is_seen: bool,
    /// The loops, by the terms of their bounds, of which it is or was decided at the head whether they go on.
    pub(super) entered: Vec<u32>,
}

impl Agent {
    fn new(at: usize, slots: usize) -> Self {
        Self {
            at,
            state: State::Ready,
            held: vec![Held::Nothing; slots],
            loops: Vec::new(),
            copies: Groups::default(),
            products: Groups::default(),
            stores: Groups::default(),
            new_terms: 0,
            is_seen: false,
            entered: Vec::new(),
        }
    }

    /// The iteration of the loop of which it is decided at its head whether it goes on.
    pub(super) fn open(&self) -> Option<Iteration> {
        let open = |of: &Loop| of.class.map(|class| (class, of.iteration));
        let (class, number) = self.loops.iter().find_map(open)?;
        Some(Iteration { class, number })
    }

    pub(super) fn endless(&self) -> u64 {
        let endless = self.loops.iter().filter(|one| one.is_endless());
        endless.fold(0, |all, one| all | one.bit())
    }
}

/// What the heads of loops hand on: in each iteration, the values of different names.
pub(super) type Handed = BTreeMap<Iteration, Vec<(i64, Parts)>>;

/// Where an execution is, and what was decided before.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub(super) agents: Vec<Agent>,
    pub(super) memory: Memory,
    pub(super) handed: Handed,
    pub(super) facts: Facts,
}

/// What all executions have in common.
#[derive(Debug)]
pub(super) struct Executions<'s> {
    pub(super) skeleton: &'s Skeleton,
    pub(super) arithmetic: Arithmetic,
    /// Instructions executed so far, and at most.
    instructions: u64,
    limit: u64,
    pub(super) counters: Counters,
    /// If it is decided at the heads of outer loops whether they go on, what is known of these heads.
    pub(super) heads: Option<Heads>,
    /// What the heads have handed on.
    pub(super) known_values: KnownValues,
}

/// The heads of loops of which it is decided there whether they go on.
#[derive(Debug)]
pub(super) struct Heads {
    /// The states that executions had there.
    pub(super) seen: HashSet<Vec<i64>>,
    /// Those from which no execution has gone on yet.
    pub(super) waiting: Vec<Position>,
    /// The values that each instruction and those after it use.
    pub(super) live: Rc<[Vec<Slot>]>,
}

impl<'s> Executions<'s> {
    /// Executions of a skeleton with at most so many instructions together.
    pub(super) fn of(skeleton: &'s Skeleton, limit: u64) -> Self {
        Self {
            skeleton,
            arithmetic: Arithmetic::default(),
            instructions: 0,
            limit,
            counters: Counters::of(skeleton),
            heads: None,
            known_values: KnownValues::default(),
        }
    }

    /// Where every execution begins.
    pub(super) fn start(&self) -> Position {
        Position {
            agents: vec![Agent::new(0, self.skeleton.slots)],
            memory: Memory::of(self.skeleton.warps),
            handed: Handed::new(),
            facts: Facts::default(),
        }
    }

    /// Executes the skeleton once from a position, with the present choices.
    pub(super) fn run(&mut self, from: Position) -> Result<(), Stop> {
        if self.skeleton.agents > AGENTS {
            return Err(Stop::Unsupported(format!(
                "it has more than {AGENTS} partitions"
            )));
        }
        self.arithmetic.rewind(from.facts);
        let mut execution = Execution {
            skeleton: self.skeleton,
            agents: from.agents,
            memory: from.memory,
            handed: from.handed,
            seen: HashMap::new(),
            all: self,
        };
        execution.run()
    }
}

pub(super) struct Execution<'x, 's> {
    pub(super) skeleton: &'s Skeleton,
    pub(super) agents: Vec<Agent>,
    pub(super) memory: Memory,
    pub(super) handed: Handed,
    /// The iterations in which an endless loop of an agent had a state, and the comparisons until then.
    seen: HashMap<(usize, usize), HashMap<Vec<i64>, u64>>,
    pub(super) all: &'x mut Executions<'s>,
}

impl Execution<'_, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let mut advanced = false;
            for agent in self.turns() {
                if self.agents.get(agent).map(|one| one.state) == Some(State::Blocked) {
                    self.agents[agent].state = State::Ready;
                }
                while self.agents.get(agent).map(|one| one.state) == Some(State::Ready) {
                    advanced |= self.step(agent)?;
                }
            }
            if self.agents[0].state == State::Ended {
                return Ok(());
            }
            if !advanced {
                return Err(self.stuck());
            }
        }
    }

    /// The agents, in the order of their turns: those that are behind others in a loop come first, so that none runs further
    /// ahead than the others let it.
    fn turns(&self) -> Vec<usize> {
        let mut turns: Vec<usize> = (0..self.agents.len()).collect();
        turns.sort_by_key(|&agent| self.agents[agent].open().map(|of| of.number));
        turns
    }

    /// All agents wait.
    fn stuck(&self) -> Stop {
        let waits = self
            .agents
            .iter()
            .filter(|agent| agent.state == State::Blocked);
        let mut places = waits.filter_map(|agent| match self.skeleton.code[agent.at] {
            Instruction::Event { place, .. } => Some(place),
            _ => None,
        });
        match places.next() {
            Some(place) => Stop::Wrong {
                place,
                hazard: Hazard {
                    other: places.next(),
                    text: "it waits for a phase that is never complete".into(),
                },
            },
            None => Stop::Unsupported("its partitions do not end".into()),
        }
    }

    pub(super) fn number(&mut self, agent: usize, slot: Slot) -> Number {
        if let Held::Number(number) = &self.agents[agent].held[slot] {
            return number.clone();
        }
        self.new_term(agent, slot)
    }

    /// An unknown number.
    fn new_term(&mut self, agent: usize, slot: Slot) -> Number {
        let before = self.agents[agent].new_terms;
        self.agents[agent].new_terms += 1;
        let of = self.agents[agent].open();
        let term = Term::New {
            slot,
            agent,
            before,
            of,
        };
        Number::term(self.all.arithmetic.terms.number(term))
    }

    pub(super) fn view(&self, agent: usize, slot: Slot) -> Result<Range<u64>, Stop> {
        match &self.agents[agent].held[slot] {
            Held::View(bytes) => Ok(bytes.clone()),
            _ => Err(Stop::Unsupported(
                "it is not known which buffer is accessed".into(),
            )),
        }
    }

    /// One instruction of an agent; whether it did anything.
    fn step(&mut self, agent: usize) -> Result<bool, Stop> {
        self.all.instructions += 1;
        let limit = self.all.limit;
        if self.all.instructions > limit {
            let states = self.all.heads.as_ref().map(|heads| heads.seen.len());
            let states = states.map_or(String::new(), |states| {
                format!(" in {states} states of loops")
            });
            let reason =
                format!("more than {limit} instructions of executions{states} are necessary");
            return Err(Stop::Exhausted(reason));
        }
        let skeleton = self.skeleton;
        let at = self.agents[agent].at;
        let mut next = at + 1;
        match &skeleton.code[at] {
            Instruction::Constant { .. }
            | Instruction::Compute { .. }
            | Instruction::Move(_)
            | Instruction::Allocate { .. }
            | Instruction::View { .. }
            | Instruction::Index { .. } => self.assign(agent, &skeleton.code[at])?,
            Instruction::Enter { number, bounds, to } => {
                self.enter(agent, *number, *bounds, *to)?
            }
            Instruction::Head { exit, handed } => {
                if !self.goes_on(agent, handed)? {
                    self.agents[agent].loops.pop();
                    next = *exit;
                }
            }
            Instruction::Next { to } => {
                if let Some(innermost) = self.agents[agent].loops.last_mut() {
                    innermost.iteration += 1;
                    let bit = innermost.bit();
                    if let (Some((lower, step)), Some(to)) = (&innermost.induction, to) {
                        let value = lower.plus(step, innermost.iteration);
                        let value = match innermost.class {
                            Some(_) => value,
                            None => value.drifting(bit),
                        };
                        self.agents[agent].held[*to] = Held::Number(value);
                    }
                }
            }
            Instruction::Branch {
                condition,
                otherwise,
                ..
            } => {
                let condition = self.number(agent, *condition);
                if !self.all.arithmetic.holds(&condition) {
                    next = *otherwise;
                }
            }
            Instruction::Jump(to) => next = *to,
            Instruction::Open => {}
            Instruction::Fork { partitions, warps } => self.fork(partitions, warps),
            Instruction::Join => {
                if !self.join() {
                    self.agents[agent].state = State::Blocked;
                    return Ok(false);
                }
            }
            Instruction::EndPartition => self.agents[agent].state = State::Ended,
            Instruction::Return { place } => {
                let finished = self.memory.finish();
                finished.map_err(|hazard| Stop::Wrong {
                    place: *place,
                    hazard,
                })?;
                self.agents[agent].state = State::Ended;
            }
            Instruction::Uses { from, place } => {
                for &slot in from {
                    self.uses(agent, slot, *place)?;
                }
            }
            Instruction::Event { event, place } => match self.event(agent, event, *place) {
                Ok(true) => {}
                Ok(false) => {
                    self.agents[agent].state = State::Blocked;
                    return Ok(false);
                }
                Err(Refused::Hazard(hazard)) => {
                    return Err(Stop::Wrong {
                        place: *place,
                        hazard,
                    });
                }
                Err(Refused::Stop(stop)) => return Err(stop),
            },
        }
        self.agents[agent].at = next;
        Ok(true)
    }

    /// At the head of the innermost loop: whether it goes on.
    fn goes_on(&mut self, agent: usize, handed: &[Slot]) -> Result<bool, Stop> {
        let at = self.agents[agent].at;
        let Some(innermost) = self.agents[agent].loops.last() else {
            return Ok(true);
        };
        if let Some(class) = innermost.class {
            let number = innermost.iteration;
            return self.decide_at_head(agent, Iteration { class, number }, handed);
        }
        if innermost.iteration >= innermost.iterations {
            return Ok(false);
        }
        if innermost.is_endless() {
            self.recur(agent, at)?;
        }
        Ok(true)
    }

    /// The first agent starts others.
    fn fork(&mut self, partitions: &[(usize, Vec<(Slot, Slot)>)], warps: &[i64]) {
        self.memory.fork(warps);
        for (start, moves) in partitions {
            let mut partition = Agent::new(*start, self.skeleton.slots);
            partition.new_terms = self.agents[0].new_terms;
            for &(from, to) in moves {
                partition.held[to] = self.agents[0].held[from].clone();
            }
            self.agents.push(partition);
        }
    }

    /// The others have ended, unless one of them has not.
    fn join(&mut self) -> bool {
        let ended = |agent: &Agent| agent.state == State::Ended;
        let all = self.agents[1..].iter().all(ended);
        if all {
            self.memory.join(self.agents.len());
            // What partitions find the next time is new, too.
            let terms = self.agents.iter().map(|one| one.new_terms).max();
            self.agents[0].new_terms = terms.unwrap_or(0);
            self.agents.truncate(1);
        }
        all
    }

    /// An instruction that gives values to slots.
    fn assign(&mut self, agent: usize, instruction: &Instruction) -> Result<(), Stop> {
        let skeleton = self.skeleton;
        match instruction {
            Instruction::Constant { to, value } => {
                self.agents[agent].held[*to] = Held::Number(Number::known(*value));
            }
            Instruction::Compute { to, function, from } if skeleton.needed[*to] => {
                let number = self.compute(agent, *to, *function, from)?;
                self.agents[agent].held[*to] = Held::Number(number);
            }
            Instruction::Move(moves) => {
                let held = &mut self.agents[agent].held;
                let values: Vec<Held> = moves.iter().map(|&(from, _)| held[from].clone()).collect();
                for (&(_, to), value) in moves.iter().zip(values) {
                    held[to] = value;
                }
            }
            Instruction::Allocate { to, bytes } => {
                self.agents[agent].held[*to] = Held::View(bytes.clone());
            }
            Instruction::View { to, from } => {
                self.agents[agent].held[*to] = self.agents[agent].held[*from].clone();
            }
            Instruction::Index {
                to,
                from,
                index,
                count,
                each,
                stride,
            } => {
                let whole = self.view(agent, *from)?;
                let index = self.number(agent, *index);
                let Some(index) = self.all.arithmetic.decide(&index) else {
                    let reason = "the number of a buffer in its ring is not known";
                    return Err(Stop::Unsupported(reason.into()));
                };
                // Only what is accessed must exist: see `bytes_of`.
                let start = match (0..*count).contains(&index) {
                    true => whole.start + index.unsigned_abs() * stride,
                    false => u64::MAX / 2,
                };
                self.agents[agent].held[*to] = Held::View(start..start + each);
            }
            _ => {}
        }
        Ok(())
    }

    /// Where an agent computes.
    pub(super) fn at(&self, agent: usize) -> At {
        At {
            agent,
            instruction: self.agents[agent].at,
            endless: self.agents[agent].endless(),
        }
    }

    fn compute(
        &mut self,
        agent: usize,
        to: Slot,
        function: Function,
        from: &[Slot],
    ) -> Result<Number, Stop> {
        if function == Function::New {
            return Ok(self.new_term(agent, to));
        }
        let of: Vec<Number> = from.iter().map(|&slot| self.number(agent, slot)).collect();
        let at = self.at(agent);
        self.all
            .arithmetic
            .apply(function, &of, at)
            .map_err(Stop::Unsupported)
    }

    fn enter(
        &mut self,
        agent: usize,
        number: usize,
        bounds: Option<[Slot; 3]>,
        to: Option<Slot>,
    ) -> Result<(), Stop> {
        let mut started = Loop {
            number,
            iteration: 0,
            iterations: 0,
            bound: Bound::Loop(number),
            units: 1,
            besides: 0,
            induction: None,
            to,
            distance: Parts::from([]),
            class: None,
        };
        if let Some(bounds) = bounds {
            let [lower, upper, step] = bounds.map(|slot| self.number(agent, slot));
            started.class = self.class(agent, [&lower, &upper, &step])?;
            if started.class.is_none() {
                let iterations = self.all.arithmetic.iterations(&lower, &upper, &step);
                let extent = iterations.ok_or(Stop::Learned)?;
                started.iterations = extent.iterations;
                started.bound = extent.bound;
                (started.units, started.besides) = (extent.units, extent.besides);
            }
            started.distance = upper.plus(&lower, -1).parts;
            if let Some(to) = to {
                self.agents[agent].held[to] = Held::Number(match started.class {
                    Some(_) => lower.clone(),
                    None => lower.clone().drifting(started.bit()),
                });
            }
            started.induction = Some((lower, step));
        } else {
            started.iterations = self.all.arithmetic.any_iterations(&started.bound);
        }
        self.agents[agent].entered.extend(started.class);
        self.agents[agent].loops.push(started);
        Ok(())
    }

    /// At the head of an endless loop: whether this state has been there before.
    fn recur(&mut self, agent: usize, at: usize) -> Result<(), Stop> {
        let Some(own) = self.agents[agent].loops.last() else {
            return Ok(());
        };
        let (iteration, number) = (own.iteration, own.number);
        // What each loop has begun; other agents may be iterations ahead in the same one.
        let mut begun = Iterations::new();
        let loops = self.agents.iter().flat_map(|agent| &agent.loops);
        for inside in loops.filter(|inside| inside.is_endless()) {
            let iterations = begun.entry(inside.bound.clone()).or_default();
            let units = (inside.iteration + 1).saturating_mul(inside.units) + inside.besides;
            *iterations = (*iterations).max(units);
        }
        let state = self.snapshot(agent);
        let arithmetic = &mut self.all.arithmetic;
        let seen = self.seen.entry((agent, at)).or_default();
        if seen
            .get(&state)
            .is_some_and(|&compared| compared >= arithmetic.unsettled)
        {
            arithmetic.choices.require(&begun);
            return Err(Stop::Recurred);
        }
        seen.insert(state, arithmetic.compared);
        if iteration > ITERATIONS {
            let place = &self.skeleton.loops[number];
            let reason = format!(
                "the state of the loop at {place} does not recur in {ITERATIONS} iterations"
            );
            return Err(Stop::Exhausted(reason));
        }
        Ok(())
    }

    /// The state of memory, with groups of asynchronous work counted back from the last.
    pub(super) fn add_memory(&self, state: &mut Vec<i64>) {
        let last = self.agents.iter().map(|one| {
            [
                one.copies.committed + 1,
                one.products.committed,
                one.stores.committed,
            ]
        });
        self.memory.snapshot(&last.collect::<Vec<_>>(), state);
    }

    /// The state of everything, relative to the loops that an agent is in.
    fn snapshot(&self, own: usize) -> Vec<i64> {
        let modulus = self.all.arithmetic.modulus;
        let mut state = Vec::with_capacity(256);
        self.add_memory(&mut state);
        for (index, one) in self.agents.iter().enumerate() {
            state.extend([one.at as i64, one.state as i64]);
            for groups in [one.copies, one.products, one.stores] {
                state.push((groups.committed - groups.complete) as i64);
            }
            for inside in &one.loops {
                state.push(inside.number as i64);
                if inside.class.is_some() {
                    state.push(inside.iteration);
                    continue;
                }
                if !inside.is_endless() {
                    state.push(inside.iterations - inside.iteration);
                    continue;
                }
                let alike = |other: &&Loop| other.is_endless() && other.distance == inside.distance;
                let relative = match self.agents[own].loops.iter().rfind(alike) {
                    Some(reference) if index != own => inside.iteration - reference.iteration,
                    _ => 0,
                };
                state.extend([i64::MAX, relative, inside.iteration % modulus]);
            }
            let endless = one.endless();
            for &slot in &self.skeleton.carried {
                state.push(match &one.held[slot] {
                    Held::Number(number) if self.all.counters.slots.contains(&slot) => {
                        let value = number.value();
                        value.map_or(i64::MIN, |value| {
                            value.rem_euclid(self.all.counters.modulus)
                        })
                    }
                    Held::Number(number)
                        if self.skeleton.needed[slot] && number.drifts & endless == 0 =>
                    {
                        number.value().unwrap_or(i64::MIN)
                    }
                    Held::View(bytes) => bytes.start as i64,
                    Held::Product(group) if *group > one.products.complete => {
                        i64::MIN / 2 + (one.products.committed - group) as i64
                    }
                    _ => i64::MIN,
                });
            }
        }
        state
    }

    /// A value is used by something that does not wait for products.
    pub(super) fn uses(&self, agent: usize, slot: Slot, place: usize) -> Result<(), Stop> {
        match self.agents[agent].held[slot] {
            Held::Product(group) if group > self.agents[agent].products.complete => {
                Err(Stop::Wrong {
                    place,
                    hazard: Hazard {
                        other: None,
                        text: "it uses registers that a running product writes".into(),
                    },
                })
            }
            _ => Ok(()),
        }
    }
}

/// Why an event does not happen.
pub(super) enum Refused {
    Hazard(Hazard),
    Stop(Stop),
}

impl From<Hazard> for Refused {
    fn from(hazard: Hazard) -> Self {
        Self::Hazard(hazard)
    }
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}
