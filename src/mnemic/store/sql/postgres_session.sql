-- What surrounds a transaction in PostgreSQL. No state outlives the transaction, so a transaction pooler may stand
-- between: settings are local to it, locks are released with it. Parameters of begin_* are bound in the client, because
-- several statements go in one round trip.

-- name: begin_read
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT set_config('mnemic.namespace', %(namespace)s, true),
       set_config('statement_timeout', %(statement_ms)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle_ms)s, true),
       set_config('jit', 'off', true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.ef_search', %(ef_search)s, true)

-- name: begin_write
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('mnemic.namespace', %(namespace)s, true),
       set_config('statement_timeout', %(statement_ms)s, true),
       set_config('lock_timeout', %(lock_ms)s, true),
       set_config('idle_in_transaction_session_timeout', %(idle_ms)s, true),
       set_config('jit', 'off', true)

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: scope
SELECT set_config('mnemic.namespace', %(namespace)s, true)

-- name: halfvec
SELECT to_regtype('halfvec')::oid, to_regtype('halfvec[]')::oid

-- name: state
SELECT to_regclass('meta') IS NOT NULL, to_regclass('events') IS NOT NULL,
       to_regclass('chunks') IS NOT NULL AND to_regclass('vectors') IS NOT NULL
           AND to_regclass('chunk_topics') IS NOT NULL AND to_regclass('topics') IS NOT NULL,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector')

-- name: version
SELECT value FROM meta WHERE key = 'schema'

-- name: version_put
INSERT INTO meta (key, value) VALUES ('schema', %(version)s) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: migration_lock
SELECT pg_advisory_xact_lock(hashtextextended('mnemic schema ' || current_schema(), 0))

-- name: extension
CREATE EXTENSION IF NOT EXISTS vector

-- name: analyse
ANALYZE events, chunks, chunk_topics, vectors

-- name: size
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('meta'))

-- name: unprotected
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'namespace'
WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('events'))
  AND c.relname <> 'heads' AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY c.relname

-- name: invalid_indexes
SELECT i.indexrelid::regclass::text FROM pg_index AS i
WHERE NOT i.indisvalid AND i.indrelid IN (to_regclass('events'), to_regclass('chunks'), to_regclass('vectors'))
  AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
ORDER BY 1

-- name: bypasses
SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)
