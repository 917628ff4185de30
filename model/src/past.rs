//! The replies that a process has had, in order. States that share a beginning share its memory: one reply more
//! is one node more, and the hash of a past is carried along instead of being computed anew.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::effect::Reply;
use crate::shared::hash_of;

/// The replies so far.
#[derive(Clone, Default)]
pub struct Past(Option<Arc<Node>>);

struct Node {
    before: Past,
    reply: Reply,
    hash: u64,
    length: usize,
}

impl Past {
    /// The past after one reply more.
    #[must_use]
    pub fn and(&self, reply: Reply) -> Past {
        Past(Some(Arc::new(Node {
            hash: hash_of(&(self.hash_so_far(), &reply)),
            length: self.len() + 1,
            before: self.clone(),
            reply,
        })))
    }

    /// How many replies there were.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.length)
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The replies, first one first.
    pub fn replies(&self) -> Vec<&Reply> {
        let mut replies = Vec::with_capacity(self.len());
        let mut at = self;
        while let Some(node) = &at.0 {
            replies.push(&node.reply);
            at = &node.before;
        }
        replies.reverse();
        replies
    }

    fn hash_so_far(&self) -> u64 {
        self.0.as_ref().map_or(0, |node| node.hash)
    }
}

impl FromIterator<Reply> for Past {
    fn from_iter<I: IntoIterator<Item = Reply>>(replies: I) -> Past {
        replies
            .into_iter()
            .fold(Past::default(), |past, reply| past.and(reply))
    }
}

impl Hash for Past {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash_so_far());
    }
}

impl PartialEq for Past {
    fn eq(&self, other: &Past) -> bool {
        self.hash_so_far() == other.hash_so_far() && self.replies() == other.replies()
    }
}

impl Eq for Past {}

impl fmt::Debug for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.replies()).finish()
    }
}
