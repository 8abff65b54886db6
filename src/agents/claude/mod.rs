//! Claude Code: headless, one run per configuration folder, nothing loaded from the repository.
//!
//! Measured on 2.1.332 with `--setting-sources '' --strict-mcp-config`, as root and not: none of the repository's
//! settings (hooks, `disableAllHooks`, `env`, `allow`), CLAUDE.md (also nested, local, parent), AGENTS.md, rules,
//! skills, commands, agents and MCP servers is loaded; `--permission-mode acceptEdits` with an allow list of tools
//! runs without asking and without bypass mode; our denies hold in sub-agents. It refuses edits of `.claude/` in
//! the worktree by itself, by Write and by a shell redirect.

mod launch;
mod project;
mod stream;
mod version;

pub use launch::{Launch, PrepareError, is_name};
pub use project::{MAX_PROJECT_TEXT, PROJECT_SETTINGS, ProjectFile, ProjectText, project_rules};
pub use stream::{Event, Finish, Parser, Usage};
pub use version::{Version, VersionError, version};

#[cfg(test)]
mod tests;
