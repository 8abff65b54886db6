-- The first shape: projects, their runs, what happened in them, and each start of an agent.
-- Times are milliseconds since 1970 (UTC); money is millionths of a US dollar.

CREATE TABLE projects (
    id           TEXT PRIMARY KEY,
    common_dir   TEXT NOT NULL UNIQUE,
    checkout     TEXT NOT NULL,
    first_commit TEXT NOT NULL,
    origin       TEXT,
    added_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
    id            TEXT PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES projects (id),
    title         TEXT NOT NULL,
    prompt        TEXT NOT NULL,
    model         TEXT,
    guardrails    TEXT NOT NULL,
    author_name   TEXT NOT NULL,
    author_email  TEXT NOT NULL,
    branch        TEXT NOT NULL,
    base_commit   TEXT NOT NULL,
    status        TEXT NOT NULL CHECK (status IN
                  ('preparing', 'running', 'finishing', 'done', 'failed', 'stopped', 'interrupted', 'parked')),
    reason        TEXT,
    created_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    head_commit   TEXT,
    files_changed INTEGER,
    insertions    INTEGER,
    deletions     INTEGER,
    cost_micros   INTEGER,
    turns         INTEGER,
    answer        TEXT,
    backup        TEXT,
    verdict       TEXT,
    worktree      TEXT NOT NULL CHECK (worktree IN ('present', 'removed'))
) STRICT;

CREATE INDEX runs_by_age ON runs (created_at DESC);
CREATE INDEX runs_alive ON runs (status) WHERE status IN ('preparing', 'running', 'finishing');

CREATE TABLE events (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL
) STRICT;

CREATE INDEX events_of_a_run ON events (run_id, seq);

CREATE TABLE spawns (
    id         TEXT PRIMARY KEY,
    run_id     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    program    TEXT NOT NULL,
    pass_id    TEXT,
    session    TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    exit       TEXT
) STRICT;
