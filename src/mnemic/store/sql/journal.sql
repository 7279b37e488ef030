-- The journal: an append-only file of sealed rows. The only order that counts is seq, given under BEGIN IMMEDIATE.
-- Sizes in bytes: id 16, ns 16 (keyed hash of the namespace), nonce 12 (empty: a plain row), chain 32, wrapped 60.

-- name: connect
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA journal_size_limit = 67108864;

-- name: wal
PRAGMA journal_mode = WAL;

-- name: schema
CREATE TABLE meta (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    format     INTEGER NOT NULL,
    store_id   BLOB NOT NULL CHECK (length(store_id) = 16),
    journal_id BLOB NOT NULL CHECK (length(journal_id) = 16)
) STRICT;

-- A key whose state is 'erased' stays as a tombstone: destroyed is not the same as never made.
CREATE TABLE keys (
    kid        INTEGER PRIMARY KEY CHECK (kid BETWEEN 1 AND 4294967295),
    purpose    TEXT NOT NULL CHECK (purpose IN ('journal')),
    wrapped    BLOB NOT NULL CHECK (length(wrapped) = 60),
    kek_id     BLOB NOT NULL CHECK (length(kek_id) = 16),
    kek_source TEXT NOT NULL,
    state      TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'retired', 'erased')),
    created_at INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;

-- seq ends where one key may have sealed as many rows as random nonces allow (2^32).
CREATE TABLE journal (
    seq   INTEGER PRIMARY KEY CHECK (seq BETWEEN 1 AND 4294967295),
    id    BLOB NOT NULL CHECK (length(id) = 16),
    ns    BLOB NOT NULL CHECK (length(ns) = 16),
    kid   INTEGER NOT NULL REFERENCES keys (kid),
    nonce BLOB NOT NULL CHECK (length(nonce) IN (0, 12)),
    ct    BLOB NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32),
    UNIQUE (ns, id)
) STRICT;

CREATE TRIGGER journal_follows BEFORE INSERT ON journal
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM journal)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_keeps BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_stays BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER meta_keeps BEFORE UPDATE ON meta
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER meta_stays BEFORE DELETE ON meta
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER keys_keep BEFORE UPDATE OF kid, purpose, created_at ON keys
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER keys_stay BEFORE DELETE ON keys
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: has_schema
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta';

-- name: add_meta
INSERT INTO meta (one, format, store_id, journal_id) VALUES (1, ?, ?, ?);

-- name: add_key
INSERT INTO keys (kid, purpose, wrapped, kek_id, kek_source) VALUES (?, 'journal', ?, ?, ?);

-- name: meta
SELECT format, store_id, journal_id FROM meta;

-- name: key
SELECT kid, wrapped, kek_id, kek_source FROM keys WHERE purpose = 'journal' AND state = 'active' ORDER BY kid DESC LIMIT 1;

-- name: last
SELECT seq, chain FROM journal ORDER BY seq DESC LIMIT 1;

-- name: head
SELECT coalesce(max(seq), 0) FROM journal;

-- name: add
INSERT INTO journal (seq, id, ns, kid, nonce, ct, chain) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (ns, id) DO NOTHING;

-- name: first_with_id
SELECT seq, id, ns, kid, nonce, ct, chain FROM journal WHERE ns = ? AND id = ?;

-- name: rows_from
SELECT seq, id, ns, kid, nonce, ct, chain FROM journal WHERE seq >= ? ORDER BY seq LIMIT ?;

-- name: chain_at
SELECT chain FROM journal WHERE seq = ?;

-- name: gap_after
SELECT before, seq FROM (SELECT seq, lag(seq, 1, ?1) OVER (ORDER BY seq) AS before FROM journal WHERE seq > ?1)
WHERE seq <> before + 1 LIMIT 1;

-- name: count
SELECT count(*) FROM journal;

-- name: quick_check
PRAGMA quick_check(10);
