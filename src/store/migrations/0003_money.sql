-- Who pays for a run, how much it may spend and on which models, and what the key service's books say of each start.
-- Money is millionths of a US dollar.

ALTER TABLE runs ADD COLUMN payer TEXT NOT NULL DEFAULT 'local';
ALTER TABLE runs ADD COLUMN budget INTEGER;
ALTER TABLE runs ADD COLUMN budget_unit TEXT CHECK (budget_unit IN ('usd_micros', 'tokens'));
-- The models that it may use, a JSON list of names with `*`; every model when it is empty.
ALTER TABLE runs ADD COLUMN models TEXT NOT NULL DEFAULT '[]';
-- Tokens of every kind, over all starts. `cost_micros` is their cost by the books from now on.
ALTER TABLE runs ADD COLUMN tokens INTEGER;

ALTER TABLE spawns ADD COLUMN step TEXT NOT NULL DEFAULT 'work';
-- When the books were asked what was used with its pass.
ALTER TABLE spawns ADD COLUMN closed_at INTEGER;
-- The books know nothing of what was before them.
UPDATE spawns SET closed_at = coalesce(ended_at, started_at);
CREATE INDEX spawns_not_closed ON spawns (run_id) WHERE closed_at IS NULL;

CREATE TABLE usage (
    spawn_id    TEXT NOT NULL REFERENCES spawns (id) ON DELETE CASCADE,
    slot        TEXT NOT NULL,
    model       TEXT NOT NULL,
    calls       INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    unpriced    INTEGER NOT NULL,
    estimated   INTEGER NOT NULL,
    PRIMARY KEY (spawn_id, slot, model)
) STRICT;
