//! Tokens of claims: the pool's name, so that people see what one is for, and 128 random bits, so that none is ever used twice
//! or guessed.

use std::fmt::Write;
use std::path::Path;

use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};
use state_machine::id::{PoolName, Token};

use crate::error::{DiskError, Result};

/// A token that nobody has.
pub(super) fn new_token(pool: &PoolName) -> Result<Token> {
    let mut random = [0_u8; 16];
    // So few bytes come at once and all together, once the kernel has any.
    retry_on_intr(|| getrandom(&mut random, GetRandomFlags::empty()))
        .map_err(|error| DiskError::new("read", Path::new("getrandom"), error))?;
    let mut word = format!("{pool}-");
    for byte in random {
        // Writing to a string does not fail.
        let _ = write!(word, "{byte:02x}");
    }
    // The name of a pool, a dash, and hexadecimal digits.
    Ok(Token::parse(&word).unwrap_or_else(|_| unreachable!("a token of letters and digits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_the_pool_is_seen() {
        let pool = PoolName::parse("web").unwrap();
        let [one, two] = [(); 2].map(|()| new_token(&pool).unwrap());
        assert_ne!(one, two);
        assert!(one.as_str().starts_with("web-"));
        assert_eq!(one.as_str().len(), "web-".len() + 32);
    }
}
