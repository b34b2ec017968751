// The word of a slot: its kind in the two lowest bits, its sequence above.

// after the last kept slot of its sequence
const SLOT_DROPPED: u32 = 0u;
// dropped, before the last kept slot
const SLOT_GAP: u32 = 1u;
const SLOT_KEPT: u32 = 2u;
const SLOT_LAST_KEPT: u32 = 3u;

// Threads of a workgroup in kernels over slots.
const THREADS: u32 = 64u;
// Slots a thread folds before threads exchange data.
const ITEMS: u32 = 16u;
