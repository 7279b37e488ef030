-- The table of the index type `sqlite-vec`: one a namespace and space, in memory (store/vectors/sqlite_vec.py).
-- {dimension} is filled in as an integer; a declaration takes no parameters.

-- name: make
CREATE VIRTUAL TABLE near USING vec0 (vector float[{dimension}] distance_metric=cosine)

-- name: put
INSERT INTO near (rowid, vector) VALUES (:chunk, :vector)

-- name: nearest
SELECT rowid FROM near WHERE vector MATCH :vector AND k = :limit ORDER BY distance

-- name: nearest_among
SELECT rowid FROM near
WHERE vector MATCH :vector AND k = :limit AND rowid IN (SELECT value FROM json_each(:ids)) ORDER BY distance

-- name: version
SELECT vec_version()
