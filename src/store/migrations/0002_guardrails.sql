-- What held each agent: the set, the policy that it came to, and what was tried before the agent started.
-- And the settings that are changed while core runs.

ALTER TABLE spawns ADD COLUMN guardrails TEXT;
ALTER TABLE spawns ADD COLUMN policy_digest TEXT;
-- JSON, as the guardrails room writes it.
ALTER TABLE spawns ADD COLUMN receipt TEXT;

CREATE INDEX spawns_of_a_run ON spawns (run_id, started_at);

CREATE TABLE settings (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT;
