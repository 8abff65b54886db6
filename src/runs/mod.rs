//! What a run is: a worktree, its steps, its result. It must never start an agent but through `spawn`.

pub mod worktree;
