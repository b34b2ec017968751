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

// Threads of a vector: they read neighbouring entries at the same time and together walk through a run of memory without
// gaps. A device in software runs the threads of a vector to their end before the next ones and then reads in order,
// where threads side by side would touch a part of every page; on other devices a team reads at least 32 bytes at once.
// A divisor of the threads of every workgroup.
const TEAM: u32 = 8u;

// The slot of a thread's item.
fn item_slot(block: u32, item: u32, thread: u32) -> u32 {
    return ((block * (THREADS / TEAM) + thread / TEAM) * ITEMS + item) * TEAM + thread % TEAM;
}
