//! In which order the jobs of a batch are made: each after those that it comes after. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The places of all jobs, each behind those that it comes after, and otherwise as they were named.
///
/// # Errors
///
/// The places of some that wait for one another, each for the next and the last for the first.
pub(super) fn in_order(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut open: Vec<usize> = Vec::with_capacity(after.len());
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); after.len()];
    for (place, on) in after.iter().enumerate() {
        let on: BTreeSet<usize> = on.iter().copied().collect();
        open.push(on.len());
        for first in on {
            before[first].push(place);
        }
    }
    let mut free: BinaryHeap<Reverse<usize>> = (0..after.len())
        .filter(|&place| open[place] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(after.len());
    while let Some(Reverse(place)) = free.pop() {
        order.push(place);
        for &next in &before[place] {
            open[next] -= 1;
            if open[next] == 0 {
                free.push(Reverse(next));
            }
        }
    }
    match open.iter().position(|&open| open > 0) {
        None => Ok(order),
        Some(stuck) => Err(circle(after, &open, stuck)),
    }
}

/// Whoever is stuck waits for somebody who is: following that comes round.
fn circle(after: &[Vec<usize>], open: &[usize], stuck: usize) -> Vec<usize> {
    let mut way = vec![stuck];
    let mut at = stuck;
    while let Some(&next) = after[at].iter().find(|&&on| open[on] > 0) {
        if let Some(begin) = way.iter().position(|&passed| passed == next) {
            return way.split_off(begin);
        }
        way.push(next);
        at = next;
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_behind_those_that_it_comes_after_and_otherwise_as_named() {
        let after = [vec![3], vec![], vec![1, 1, 0], vec![1]];
        assert_eq!(in_order(&after), Ok(vec![1, 3, 0, 2]));
        assert_eq!(in_order(&[]), Ok(vec![]));
    }

    #[test]
    fn those_that_wait_for_one_another_are_named() {
        assert_eq!(in_order(&[vec![0]]), Err(vec![0]));
        // The first only waits for the others, who wait for one another.
        let after = [vec![1], vec![2], vec![3], vec![1], vec![]];
        assert_eq!(in_order(&after), Err(vec![1, 2, 3]));
    }
}
