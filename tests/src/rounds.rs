//! How often something random is tried, and where the randomness comes from.

use std::time::{SystemTime, UNIX_EPOCH};

/// How many rounds to do: `usual`, unless `OUTLIVE_TEST_ROUNDS` says otherwise.
pub fn rounds(usual: usize) -> usize {
    std::env::var("OUTLIVE_TEST_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// Random numbers that can be had again: the seed is printed, and `OUTLIVE_TEST_SEED` sets it.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice with a printed seed.
    pub fn new() -> Dice {
        let seed = std::env::var("OUTLIVE_TEST_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                now.map_or(1, |now| now.as_nanos() as u64)
            });
        println!("OUTLIVE_TEST_SEED={seed}");
        Dice(seed | 1)
    }

    /// The `nth` dice that follow from these: each of many rounds has its own, and can be had again alone.
    pub fn nth(&self, nth: u64) -> Dice {
        // splitmix64, so that neighbours have nothing in common.
        let mut mixed = self
            .0
            .wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Dice((mixed ^ (mixed >> 31)) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*, which is random enough to choose moments.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }

    /// Whether something that happens `percent` times in a hundred does so now.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several, each as likely as the other.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// Let a random moment below `limit_us` microseconds pass: not to wait for anything, but to strike anywhere.
    pub fn moment(&mut self, limit_us: u64) {
        std::thread::sleep(std::time::Duration::from_micros(self.below(limit_us)));
    }
}

impl Default for Dice {
    fn default() -> Dice {
        Dice::new()
    }
}
