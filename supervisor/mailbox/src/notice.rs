//! What a notice is, and what becomes of several. Pure; knows no threads.

use std::collections::BTreeSet;

/// A hint to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice<K> {
    /// Look at this.
    Of(K),
    /// Look at everything: it cannot be said at what.
    Everything,
}

/// Notices that have become one heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notices<K> {
    /// Look at each of these; at nothing, where there are none.
    Of(BTreeSet<K>),
    /// Look at everything. It has swallowed all others.
    Everything,
}

impl<K> Notices<K> {
    /// No notice at all.
    pub const NONE: Notices<K> = Notices::Of(BTreeSet::new());

    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        matches!(self, Notices::Of(keys) if keys.is_empty())
    }
}

impl<K: Ord> Notices<K> {
    /// Throws a notice on the heap, which tells at most `limit` apart.
    pub(crate) fn add(&mut self, notice: Notice<K>, limit: usize) {
        let Notices::Of(keys) = self else {
            return; // swallowed
        };
        match notice {
            Notice::Of(key) => {
                keys.insert(key);
            }
            Notice::Everything => *self = Notices::Everything,
        }
        if matches!(self, Notices::Of(keys) if keys.len() > limit) {
            *self = Notices::Everything;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(notices: impl IntoIterator<Item = Notice<u8>>, limit: usize) -> Notices<u8> {
        let mut heap = Notices::NONE;
        for notice in notices {
            heap.add(notice, limit);
        }
        heap
    }

    #[test]
    fn equal_notices_are_one() {
        assert_eq!(
            heap([2, 1, 2, 2, 1].map(Notice::Of), 2),
            Notices::Of([1, 2].into())
        );
    }

    #[test]
    fn everything_swallows_what_was_and_what_comes() {
        for place in 0..3 {
            let mut notices = [1, 2, 3].map(Notice::Of);
            notices[place] = Notice::Everything;
            assert_eq!(heap(notices, 9), Notices::Everything);
        }
    }

    #[test]
    fn one_more_than_the_limit_is_everything() {
        assert_eq!(heap([1, 2].map(Notice::Of), 2), Notices::Of([1, 2].into()));
        assert_eq!(heap([1, 2, 3].map(Notice::Of), 2), Notices::Everything);
        assert_eq!(heap([Notice::Of(1)], 0), Notices::Everything);
    }

    #[test]
    fn only_nothing_is_empty() {
        assert!(Notices::<u8>::NONE.is_empty());
        assert!(!heap([Notice::Of(1)], 1).is_empty());
        assert!(!Notices::<u8>::Everything.is_empty());
    }
}
