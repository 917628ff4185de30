//! What is to be known of a transfer without making one: what a reference names, what a server's answer means, which bytes of
//! an unfinished file may be kept, which names of files are safe, and what a fetcher tells its worker.
//!
//! Nothing here opens a connection or a file. The order of deeds on the disk is in [`crate::protocol::pull`].
//!
//! | file | what it is for |
//! |---|---|
//! | [`mod@reference`] | what a user asks for, read from one word |
//! | [`answer`] | what a server's answer to a request for bytes means |
//! | [`part`] | the record beside an unfinished file: which bytes of what are in it |
//! | [`path`] | names of files that a server gave, and whether they stay where they belong |
//! | [`word`] | what a fetcher tells its worker |

pub mod answer;
pub mod part;
pub mod path;
pub mod reference;
pub mod word;
