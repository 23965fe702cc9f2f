//! The number of groups of copies that may be outstanding when a wait ends.
//!
//! Copies are committed in groups, and complete in the order of their groups. A wait for a group names the number of
//! younger groups that may still be outstanding: those that have certainly been committed since. In a pipeline that
//! number follows from the order of commits and waits and their stages alone.

/// What an operation of the pipelined body does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It commits a group.
    Commit(usize),
    /// It waits for a group.
    Wait(usize),
}

/// For each group the number of groups that may be outstanding when its wait ends, given the events of the body in
/// order, with their stages.
pub(super) fn left(events: &[(Event, usize)], stages: usize, groups: usize) -> Vec<usize> {
    let mut least: Vec<Option<usize>> = vec![None; groups];
    let mut committed: Vec<(usize, usize)> = Vec::new();
    // After as many rounds as there are stages, every round is like the one before.
    for round in 0..3 * stages {
        for &(event, stage) in events {
            let Some(iteration) = round.checked_sub(stage) else {
                continue;
            };
            match event {
                Event::Commit(group) => committed.push((group, iteration)),
                Event::Wait(group) => {
                    let at = committed.iter().rposition(|own| *own == (group, iteration));
                    let younger = at.map_or(0, |at| committed.len() - 1 - at);
                    least[group] = Some(least[group].map_or(younger, |known| known.min(younger)));
                }
            }
        }
    }
    least.into_iter().map(|count| count.unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_leaves_the_groups_of_later_iterations() {
        // Waits come first, copies for two iterations ahead last.
        let events = [(Event::Wait(0), 2), (Event::Commit(0), 0)];
        assert_eq!(left(&events, 3, 1), [1]);
        let ahead = [(Event::Commit(0), 0), (Event::Wait(0), 2)];
        assert_eq!(left(&ahead, 3, 1), [2]);
    }

    #[test]
    fn groups_that_are_needed_later_may_be_left() {
        let events = [
            (Event::Wait(0), 2),
            (Event::Wait(1), 2),
            (Event::Commit(0), 0),
            (Event::Commit(1), 0),
        ];
        // In the iteration itself the second group, and both groups of the next one.
        assert_eq!(left(&events, 3, 2), [3, 2]);
    }

    #[test]
    fn two_stages_wait_for_all() {
        let events = [(Event::Wait(0), 1), (Event::Commit(0), 0)];
        assert_eq!(left(&events, 2, 1), [0]);
    }

    #[test]
    fn what_is_committed_in_a_later_stage_is_not_there_in_the_first_iterations() {
        // The second group is committed a stage later: at the first wait of the loop, fewer groups have been
        // committed.
        let events = [
            (Event::Wait(1), 2),
            (Event::Wait(0), 1),
            (Event::Commit(1), 1),
            (Event::Commit(0), 0),
        ];
        assert_eq!(left(&events, 3, 2), [0, 1]);
    }
}
