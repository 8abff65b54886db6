//! Agent programs: how each is called, what its output means. Never starts one (that is `spawn`), never decides
//! what it may do (that is `guardrails`).

pub mod claude;
