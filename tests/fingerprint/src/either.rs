//! The number whose type is chosen at run time: the room, the bits and the hashes are those of the type.

use tokenwise::Either;

use crate::hash::{Hash, Hashed, Value};

/// Room for the longer of the two types.
pub(crate) struct Room {
    values: [Either; 1100],
    len: usize,
}

impl Room {
    fn new(single: usize, double: usize) -> Self {
        let len = if Either::is_single() { single } else { double };
        Self { values: [Either::default(); 1100], len }
    }
}

impl AsMut<[Either]> for Room {
    fn as_mut(&mut self) -> &mut [Either] {
        &mut self.values[..self.len]
    }
}

impl Value for Either {
    type Tokens = Room;
    type Logits = Room;
    fn tokens() -> Room {
        Room::new(1100, 400)
    }
    fn logits() -> Room {
        Room::new(1100, 888)
    }
    fn of_bits(bits: u64) -> Self {
        if Self::is_single() {
            f64::from(f32::of_bits(bits)).into()
        } else {
            f64::of_bits(bits).into()
        }
    }
    fn neighbour(self, steps: i32) -> Self {
        let x = tokenwise::Real::widen(self);
        if Self::is_single() {
            f64::from((x as f32).neighbour(steps)).into()
        } else {
            x.neighbour(steps).into()
        }
    }
}

impl Hashed for Either {
    fn add_to(&self, hash: &mut Hash) {
        let x = tokenwise::Real::widen(*self);
        if Self::is_single() {
            (x as f32).add_to(hash);
        } else {
            x.add_to(hash);
        }
    }
}
