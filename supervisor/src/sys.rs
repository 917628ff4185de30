//! The only unsafe code.
