//! The server that files are fetched from, and the network between. There is no more of it than a fetcher can tell: which version
//! a file is in, that an answer comes or none, and that a body is cut. No rule is in here.

/// A server, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Web {
    /// The version that its files are in, from 1.
    pub version: u8,
    /// Whether they may still be replaced by the next version.
    pub may_change: bool,
    /// How many more answers may be cut, or not come.
    pub cuts_left: u8,
    /// Whether nobody answers, whatever is asked.
    pub is_silent: bool,
}

impl Default for Web {
    fn default() -> Self {
        Web {
            version: 1,
            may_change: false,
            cuts_left: 0,
            is_silent: false,
        }
    }
}

impl Web {
    /// The version that an answer is of; 0 where none comes. What is sent after that stays of this version.
    pub fn answer(&self) -> u8 {
        if self.is_silent { 0 } else { self.version }
    }

    /// The files are replaced.
    pub fn change(&mut self) {
        self.version += 1;
        self.may_change = false;
    }
}
