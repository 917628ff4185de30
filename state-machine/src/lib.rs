//! pure
