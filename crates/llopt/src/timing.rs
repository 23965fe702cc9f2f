//! The time of each phase of a compilation.

use std::fmt;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use serde::{Serialize, Serializer, ser::SerializeSeq};

/// The phases of one compilation, in the order in which they ran, with their times.
///
/// A compilation runs in one thread. Each phase has its wall time and the processor time of that thread, which does
/// not depend on other work on the machine and excludes programs that the phase starts.
///
/// [`fmt::Display`] prints a table; serialised, it is a list of `{"phase", "milliseconds"}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timings {
    phases: Vec<(&'static str, Duration)>,
    processor: Vec<Duration>,
}

impl Timings {
    /// Runs a phase and records its time under `name`. A phase that runs twice is listed twice.
    pub(crate) fn phase<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        crate::own_thread::begin_phase(name);
        let (begin, processor) = (Instant::now(), ThreadTime::now());
        let result = work();
        self.processor.push(processor.elapsed());
        self.phases.push((name, begin.elapsed()));
        result
    }

    /// The phases in order, with their wall times.
    pub fn phases(&self) -> &[(&'static str, Duration)] {
        &self.phases
    }

    /// The phases in order, with their processor times.
    pub fn processor(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let names = self.phases.iter().map(|&(name, _)| name);
        names.zip(self.processor.iter().copied())
    }

    /// The sum of the times of all phases.
    pub fn total(&self) -> Duration {
        self.phases.iter().map(|(_, time)| time).sum()
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl fmt::Display for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let share = |time: Duration| match total.is_zero() {
            true => 0.0,
            false => 100.0 * time.as_secs_f64() / total.as_secs_f64(),
        };
        writeln!(f, "{:<24} {:>10} {:>6}", "phase", "ms", "%")?;
        for &(name, time) in &self.phases {
            writeln!(
                f,
                "{name:<24} {:>10.3} {:>6.1}",
                milliseconds(time),
                share(time)
            )?;
        }
        writeln!(
            f,
            "{:<24} {:>10.3} {:>6.1}",
            "total",
            milliseconds(total),
            share(total)
        )
    }
}

impl Serialize for Timings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Phase {
            phase: &'static str,
            milliseconds: f64,
        }
        let mut list = serializer.serialize_seq(Some(self.phases.len()))?;
        for &(phase, time) in &self.phases {
            list.serialize_element(&Phase {
                phase,
                milliseconds: milliseconds(time),
            })?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_json_list_the_phases_in_order() {
        let timings = Timings {
            phases: vec![
                ("parse", Duration::from_millis(1)),
                ("emit", Duration::from_millis(3)),
            ],
            processor: vec![Duration::from_millis(1), Duration::from_millis(2)],
        };
        assert_eq!(
            timings.to_string(),
            "phase                            ms      %\n\
             parse                         1.000   25.0\n\
             emit                          3.000   75.0\n\
             total                         4.000  100.0\n"
        );
        assert_eq!(
            serde_json::to_string(&timings).unwrap(),
            r#"[{"phase":"parse","milliseconds":1.0},{"phase":"emit","milliseconds":3.0}]"#
        );
    }
}
