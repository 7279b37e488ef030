-- Queries of the index type `pgvector` (store/vectors/pgvector.py). {dimension}, {space} and {index} are filled in as
-- literals there, because PostgreSQL uses an index only where it can prove that expression and condition are its own.
-- Cosine distance to the centred question orders unit vectors as their inner product does, and others as if they were
-- of length 1; other metrics re-score these candidates.

-- name: hnsw_state
SELECT i.indisvalid, EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)
FROM pg_index AS i WHERE i.indexrelid = to_regclass(%(index)s)

-- name: hnsw_make
CREATE INDEX CONCURRENTLY IF NOT EXISTS {index} ON vectors
USING hnsw ((vector::halfvec({dimension})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
WHERE space = {space}

-- name: hnsw_drop
DROP INDEX CONCURRENTLY IF EXISTS {index}

-- name: statistics
ANALYZE vectors

-- name: nearest_by_index
SELECT chunk FROM vectors
WHERE namespace = %(namespace)s AND space = {space} AND (%(ids)b::bigint[] IS NULL OR chunk = ANY (%(ids)b::bigint[]))
ORDER BY vector::halfvec({dimension}) <=> %(vector)s LIMIT %(limit)s

-- name: nearest_by_scan
SELECT chunk FROM vectors
WHERE namespace = %(namespace)s AND space = {space} AND (%(ids)b::bigint[] IS NULL OR chunk = ANY (%(ids)b::bigint[]))
  AND vector_dims(vector) = {dimension}
ORDER BY vector <=> %(vector)s LIMIT %(limit)s

-- name: mean_after
SELECT count(*) FILTER (WHERE vector_dims(vector) = %(dimension)s),
       (avg(l2_normalize(vector::vector)) FILTER (WHERE vector_dims(vector) = %(dimension)s))::text,
       json_agg(chunk) FILTER (WHERE vector_dims(vector) <> %(dimension)s)::text
FROM vectors WHERE namespace = %(namespace)s AND space = %(space)s AND number > %(number)s
