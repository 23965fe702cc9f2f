//! Executions of a skeleton: agents that take turns, each until it waits.

use std::collections::HashMap;
use std::ops::Range;

use super::arithmetic::{Arithmetic, At};
use super::choices::MANY;
use super::counters::Counters;
use super::memory::{AGENTS, Hazard, Memory};
use super::number::{Number, Parts};
use super::skeleton::{Function, Instruction, Skeleton, Slot};

/// Iterations after which a state must have recurred.
const ITERATIONS: i64 = 400;
/// Instructions of all executions together.
const INSTRUCTIONS: u64 = 60_000_000;

/// Why an execution stops.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// It is wrong.
    Wrong { place: usize, hazard: Hazard },
    /// The state of a loop recurred.
    Recurred,
    /// A sum is now known to bound a loop.
    Learned,
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
struct Loop {
    number: usize,
    iteration: i64,
    iterations: i64,
    induction: Option<(Number, Number)>,
    /// What its bound is of, the same for loops that have the same iterations.
    distance: Parts,
}

impl Loop {
    fn is_endless(&self) -> bool {
        self.iterations - self.iteration >= MANY
    }

    fn bit(&self) -> u64 {
        1 << self.number.min(63)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
    at: usize,
    state: State,
    pub(super) held: Vec<Held>,
    loops: Vec<Loop>,
    pub(super) copies: Groups,
    pub(super) products: Groups,
    pub(super) stores: Groups,
    new_terms: u64,
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
        }
    }

    fn endless(&self) -> u64 {
        let endless = self.loops.iter().filter(|one| one.is_endless());
        endless.fold(0, |all, one| all | one.bit())
    }
}

/// What all executions have in common.
#[derive(Debug)]
pub(super) struct Executions<'s> {
    skeleton: &'s Skeleton,
    pub(super) arithmetic: Arithmetic,
    instructions: u64,
    counters: Counters,
}

impl<'s> Executions<'s> {
    pub(super) fn of(skeleton: &'s Skeleton) -> Self {
        Self {
            skeleton,
            arithmetic: Arithmetic::default(),
            instructions: 0,
            counters: Counters::of(skeleton),
        }
    }

    /// Executes the skeleton once, with the present choices.
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        if self.skeleton.agents > AGENTS {
            return Err(Stop::Unsupported(format!(
                "it has more than {AGENTS} partitions"
            )));
        }
        self.arithmetic.rewind();
        let mut execution = Execution {
            skeleton: self.skeleton,
            agents: vec![Agent::new(0, self.skeleton.slots)],
            memory: Memory::of(self.skeleton.warps),
            seen: HashMap::new(),
            all: self,
        };
        execution.run()
    }
}

pub(super) struct Execution<'x, 's> {
    skeleton: &'s Skeleton,
    pub(super) agents: Vec<Agent>,
    pub(super) memory: Memory,
    /// The iterations in which an endless loop of an agent had a state, and the comparisons until then.
    seen: HashMap<(usize, usize), HashMap<Vec<i64>, u64>>,
    pub(super) all: &'x mut Executions<'s>,
}

impl Execution<'_, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let mut advanced = false;
            let mut agent = 0;
            while agent < self.agents.len() {
                if self.agents[agent].state == State::Blocked {
                    self.agents[agent].state = State::Ready;
                }
                while self.agents[agent].state == State::Ready {
                    advanced |= self.step(agent)?;
                }
                agent += 1;
            }
            if self.agents[0].state == State::Ended {
                return Ok(());
            }
            if !advanced {
                return Err(self.stuck());
            }
        }
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
        let before = self.agents[agent].new_terms;
        self.agents[agent].new_terms += 1;
        self.all.arithmetic.new_term(slot, agent, before)
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
        if self.all.instructions > INSTRUCTIONS {
            let reason =
                format!("more than {INSTRUCTIONS} instructions of executions are necessary");
            return Err(Stop::Unsupported(reason));
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
            Instruction::Head { exit } => {
                if let Some(innermost) = self.agents[agent].loops.last() {
                    if innermost.iteration >= innermost.iterations {
                        self.agents[agent].loops.pop();
                        next = *exit;
                    } else if innermost.is_endless() {
                        self.recur(agent, at)?;
                    }
                }
            }
            Instruction::Next { to } => {
                if let Some(innermost) = self.agents[agent].loops.last_mut() {
                    innermost.iteration += 1;
                    let bit = innermost.bit();
                    if let (Some((lower, step)), Some(to)) = (&innermost.induction, to) {
                        let value = lower.plus(step, innermost.iteration).drifting(bit);
                        self.agents[agent].held[*to] = Held::Number(value);
                    }
                }
            }
            Instruction::Branch {
                condition,
                otherwise,
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

    /// The first agent starts others.
    fn fork(&mut self, partitions: &[(usize, Vec<(Slot, Slot)>)], warps: &[i64]) {
        self.memory.fork(warps);
        for (start, moves) in partitions {
            let mut partition = Agent::new(*start, self.skeleton.slots);
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
                let Some(index) = self.all.arithmetic.resolve(&index) else {
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
            let before = self.agents[agent].new_terms;
            self.agents[agent].new_terms += 1;
            return Ok(self.all.arithmetic.new_term(to, agent, before));
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
        let (iterations, distance, induction) = match bounds {
            Some(bounds) => {
                let [lower, upper, step] = bounds.map(|slot| self.number(agent, slot));
                let iterations = self.all.arithmetic.iterations(&lower, &upper, &step);
                let distance = upper.plus(&lower, -1).parts;
                (
                    iterations.ok_or(Stop::Learned)?,
                    distance,
                    Some((lower, step)),
                )
            }
            None => (self.all.arithmetic.any_iterations(), Parts::from([]), None),
        };
        let started = Loop {
            number,
            iteration: 0,
            iterations,
            induction,
            distance,
        };
        if let (Some((lower, _)), Some(to)) = (&started.induction, to) {
            self.agents[agent].held[to] = Held::Number(lower.clone().drifting(started.bit()));
        }
        self.agents[agent].loops.push(started);
        Ok(())
    }

    /// At the head of an endless loop: whether this state has been there before.
    fn recur(&mut self, agent: usize, at: usize) -> Result<(), Stop> {
        let Some(own) = self.agents[agent].loops.last() else {
            return Ok(());
        };
        let (iteration, number) = (own.iteration, own.number);
        // Others may be iterations ahead.
        let loops = self.agents.iter().flat_map(|agent| &agent.loops);
        let endless = loops.filter(|inside| inside.is_endless());
        let furthest = endless.map(|inside| inside.iteration).max();
        let state = self.snapshot(agent);
        let arithmetic = &mut self.all.arithmetic;
        let seen = self.seen.entry((agent, at)).or_default();
        if seen
            .get(&state)
            .is_some_and(|&compared| compared >= arithmetic.unsettled)
        {
            arithmetic
                .choices
                .require(furthest.unwrap_or(iteration) + 1);
            return Err(Stop::Recurred);
        }
        seen.insert(state, arithmetic.compared);
        if iteration > ITERATIONS {
            let place = &self.skeleton.loops[number];
            let reason = format!(
                "the state of the loop at {place} does not recur in {ITERATIONS} iterations"
            );
            return Err(Stop::Unsupported(reason));
        }
        Ok(())
    }

    /// The state of everything, relative to the loops that an agent is in.
    fn snapshot(&self, own: usize) -> Vec<i64> {
        let modulus = self.all.arithmetic.modulus;
        let mut state = Vec::with_capacity(256);
        let last: Vec<[u64; 3]> = self
            .agents
            .iter()
            .map(|one| {
                [
                    one.copies.committed + 1,
                    one.products.committed,
                    one.stores.committed,
                ]
            })
            .collect();
        self.memory.snapshot(&last, &mut state);
        for (index, one) in self.agents.iter().enumerate() {
            state.extend([one.at as i64, one.state as i64]);
            for groups in [one.copies, one.products, one.stores] {
                state.push((groups.committed - groups.complete) as i64);
            }
            for inside in &one.loops {
                state.push(inside.number as i64);
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
