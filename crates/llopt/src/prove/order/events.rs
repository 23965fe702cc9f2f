//! What events do to memory, and to the groups of asynchronous work of an agent.

use std::ops::Range;

use super::execution::{Execution, Held, Refused, Stop};
use super::memory::{Access, Hazard, Kind, Pending};
use super::number::Number;
use super::skeleton::{Event, Function, Slot};

impl Execution<'_, '_> {
    /// The bytes of an access.
    fn bytes_of(&self, agent: usize, slot: Slot) -> Result<Range<u64>, Refused> {
        let bytes = self.view(agent, slot)?;
        if bytes.start >= u64::MAX / 2 {
            return Err(Refused::Hazard(Hazard {
                other: None,
                text: "it accesses a buffer outside of its ring".into(),
            }));
        }
        Ok(bytes)
    }

    fn acts(&mut self, agent: usize, condition: Option<Slot>) -> bool {
        let Some(slot) = condition else {
            return true;
        };
        let condition = self.number(agent, slot);
        self.all.arithmetic.holds(&condition)
    }

    /// An event; `false` if the agent must wait.
    pub(super) fn event(
        &mut self,
        agent: usize,
        event: &Event,
        place: usize,
    ) -> Result<bool, Refused> {
        match event {
            Event::Wait {
                barrier,
                phase,
                flipped,
                pred,
            } => self.wait(agent, (*barrier, *phase, *flipped), *pred, place),
            Event::Begin { .. }
            | Event::End { .. }
            | Event::Arrive { .. }
            | Event::BulkLoad { .. } => self.transact(agent, event, place).map(|()| true),
            Event::Product {
                shared,
                registers,
                to,
                waits,
            } => {
                self.multiply(agent, (shared, registers), *to, place)?;
                if *waits {
                    self.wait_for_products(agent, 0);
                }
                Ok(true)
            }
            _ => self.touch(agent, event, place).map(|()| true),
        }
    }

    /// All threads of an agent wait for a phase of a barrier, perhaps for the one with the other parity.
    fn wait(
        &mut self,
        agent: usize,
        (barrier, phase, flipped): (Slot, Slot, bool),
        condition: Option<Slot>,
        place: usize,
    ) -> Result<bool, Refused> {
        if !self.acts(agent, condition) {
            return Ok(true);
        }
        let barrier = self.bytes_of(agent, barrier)?;
        let mut phase = self.number(agent, phase);
        if let Some(known) = self.all.arithmetic.decide(&phase) {
            phase = Number::known(known).drifting(phase.drifts);
        }
        let phase = [phase, Number::known(1)];
        let at = self.at(agent);
        let parity = self.all.arithmetic.apply(Function::And, &phase, at);
        let parity = parity.map_err(Stop::Unsupported)?;
        let Some(parity) = self.all.arithmetic.resolve(&parity) else {
            return Err(Stop::Unsupported("the parity of a phase is not known".into()).into());
        };
        let parity = parity ^ i64::from(flipped);
        Ok(self.memory.wait(&barrier, parity, agent, place)?)
    }

    /// What else happens at transaction barriers.
    fn transact(&mut self, agent: usize, event: &Event, place: usize) -> Result<(), Refused> {
        let access = |bytes: Range<u64>, kind: Kind| Access::new(bytes, kind, agent, place);
        match event {
            Event::Begin { barrier, count } => {
                let bytes = self.bytes_of(agent, *barrier)?;
                if !self.memory.begin(access(bytes, Kind::Begin), *count)? {
                    return Err(Stop::Unsupported("it has too many barriers".into()).into());
                }
            }
            Event::End { barrier } => {
                let bytes = self.bytes_of(agent, *barrier)?;
                self.memory.end(&bytes, agent, place)?;
            }
            Event::Arrive {
                barrier,
                count,
                bytes,
                by_warp,
                lanes_meet,
                pred,
            } if self.acts(agent, *pred) => {
                let barrier = self.bytes_of(agent, *barrier)?;
                let by_lanes = *by_warp && !*lanes_meet;
                self.memory
                    .arrive(&barrier, agent, (*count, *by_warp, *bytes), by_lanes)?;
            }
            Event::BulkLoad {
                barrier,
                to,
                bytes,
                pred,
            } if self.acts(agent, *pred) => {
                let barrier = self.bytes_of(agent, *barrier)?;
                let to = self.bytes_of(agent, *to)?;
                self.memory
                    .bulk(&barrier, access(to, Kind::BulkWrite), *bytes)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A product begins, with factors in memory and in registers.
    fn multiply(
        &mut self,
        agent: usize,
        (shared, registers): (&[Slot], &[Slot]),
        to: Slot,
        place: usize,
    ) -> Result<(), Refused> {
        for &slot in registers {
            self.uses(agent, slot, place)?;
        }
        self.memory.converge(agent);
        self.agents[agent].products.committed += 1;
        let group = self.agents[agent].products.committed;
        for &slot in shared {
            let bytes = self.bytes_of(agent, slot)?;
            let reads = Access::new(bytes, Kind::ProductRead, agent, place);
            self.memory.access(reads.pending(Pending::Product(group)))?;
        }
        self.agents[agent].held[to] = Held::Product(group);
        Ok(())
    }

    /// Accesses, groups of asynchronous work, and what orders them.
    fn touch(&mut self, agent: usize, event: &Event, place: usize) -> Result<(), Refused> {
        let access = |bytes: Range<u64>, kind: Kind| Access::new(bytes, kind, agent, place);
        match event {
            Event::BulkStore { from } => {
                let from = self.bytes_of(agent, *from)?;
                self.agents[agent].stores.committed += 1;
                let group = Pending::Stores(self.agents[agent].stores.committed);
                self.memory
                    .access(access(from, Kind::BulkRead).pending(group))?;
            }
            Event::BulkWait { left } => {
                self.agents[agent].stores.wait(*left);
                let complete = self.agents[agent].stores.complete;
                let is_complete = |of| matches!(of, Pending::Stores(group) if group <= complete);
                self.memory.complete(agent, is_complete);
            }
            Event::Copy { to } => {
                let to = self.bytes_of(agent, *to)?;
                let group = Pending::Copies(self.agents[agent].copies.committed + 1);
                self.memory.access(access(to, Kind::Copy).pending(group))?;
            }
            Event::Commit => self.agents[agent].copies.committed += 1,
            Event::CopyWait { left } => {
                self.agents[agent].copies.wait(*left);
                let complete = self.agents[agent].copies.complete;
                let is_complete = |of| matches!(of, Pending::Copies(group) if group <= complete);
                self.memory.complete(agent, is_complete);
            }
            Event::ProductWait { moves, left } => {
                self.wait_for_products(agent, *left);
                let held = &mut self.agents[agent].held;
                let values: Vec<Held> = moves.iter().map(|&(from, _)| held[from].clone()).collect();
                for (&(_, to), value) in moves.iter().zip(values) {
                    held[to] = value;
                }
            }
            Event::Read { from } => {
                let bytes = self.bytes_of(agent, *from)?;
                self.memory.access(access(bytes, Kind::Read))?;
            }
            Event::Write { to } => {
                let bytes = self.bytes_of(agent, *to)?;
                self.memory.access(access(bytes, Kind::Write))?;
            }
            Event::Scratch {
                bytes,
                parts,
                meets,
            } => {
                let mut writes = access(bytes.clone(), Kind::Write);
                writes.parts = *parts;
                self.memory.access(writes)?;
                if *meets {
                    self.memory.meet(agent);
                    self.memory.access(access(bytes.clone(), Kind::Read))?;
                }
            }
            Event::Fence => self.memory.fence(agent),
            Event::Barrier => self.memory.meet(agent),
            _ => {}
        }
        Ok(())
    }

    fn wait_for_products(&mut self, agent: usize, left: i64) {
        self.memory.converge(agent);
        self.agents[agent].products.wait(left);
        let complete = self.agents[agent].products.complete;
        let is_complete = |of| matches!(of, Pending::Product(group) if group <= complete);
        self.memory.complete(agent, is_complete);
    }
}
