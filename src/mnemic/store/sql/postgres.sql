-- Named queries, PostgreSQL. `sql/sqlite.sql` holds the same names. Times are microseconds since 1970 in UTC.
-- Lists come as JSON text in both dialects. A statement with unnest(...) is for `execute_many`: each parameter is the
-- array of that column, sent in binary, which costs a quarter of a statement a row.
-- Look-ups of a list are LATERAL with OFFSET 0: a look-up in the index for each, whatever the planner believes of a
-- table that was filled a moment ago and has no statistics yet. `store/postgres/` gives every transaction its namespace.

-- name: meta
SELECT value FROM meta WHERE key = %(key)s

-- name: meta_put
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: meta_put_once
INSERT INTO meta (key, value) VALUES (%(key)s, %(value)s) ON CONFLICT (key) DO NOTHING

-- name: heads
SELECT namespace, seq, chunk, vector, epoch FROM heads ORDER BY namespace

-- name: head
SELECT seq, chunk, vector, epoch FROM heads WHERE namespace = %(namespace)s

-- name: head_locked
SELECT seq, chunk, vector, epoch FROM heads WHERE namespace = %(namespace)s FOR UPDATE

-- name: head_make
INSERT INTO heads (namespace, seq, chunk, vector, epoch) VALUES (%(namespace)s, 0, 0, 0, 0) ON CONFLICT DO NOTHING

-- name: head_put
UPDATE heads SET seq = %(seq)s, chunk = %(chunk)s, vector = %(vector)s, epoch = %(epoch)s WHERE namespace = %(namespace)s

-- name: anchor
SELECT seq, chain FROM anchors WHERE journal = %(journal)s

-- name: anchor_locked
SELECT seq, chain FROM anchors WHERE journal = %(journal)s FOR UPDATE

-- name: anchor_make
INSERT INTO anchors (journal, seq, chain) VALUES (%(journal)s, 0, ''::bytea) ON CONFLICT DO NOTHING

-- name: anchor_put
UPDATE anchors SET seq = %(seq)s, chain = %(chain)s WHERE journal = %(journal)s

-- name: digests
SELECT e.id, e.digest, e.seq
FROM (SELECT DISTINCT decode(value, 'hex') AS id FROM json_array_elements_text(%(ids)s::json)) AS wanted, LATERAL (
    SELECT id, digest, seq FROM events WHERE namespace = %(namespace)s AND id = wanted.id OFFSET 0) AS e

-- name: event_put
INSERT INTO events (namespace, seq, id, kind, text, session, channel, role, actor, project, at, recorded_at,
                    importance, trust, data, digest)
SELECT * FROM unnest(%(namespace)b::text[], %(seq)b::bigint[], %(id)b::bytea[], %(kind)b::text[], %(text)b::text[],
                     %(session)b::text[], %(channel)b::text[], %(role)b::text[], %(actor)b::text[],
                     %(project)b::text[], %(at)b::bigint[], %(recorded_at)b::bigint[], %(importance)b::float8[],
                     %(trust)b::text[], %(data)b::text[], %(digest)b::bytea[])

-- name: quarantine_put
INSERT INTO quarantine (namespace, id, digest, reason, at, body)
VALUES (%(namespace)s, %(id)s, %(digest)s, %(reason)s, %(at)s, %(body)s) ON CONFLICT DO NOTHING

-- name: quarantine_count
SELECT count(*) FROM quarantine WHERE namespace = %(namespace)s

-- name: events_by_seq
SELECT e.*
FROM (SELECT DISTINCT value::bigint AS seq FROM json_array_elements_text(%(seqs)s::json)) AS wanted, LATERAL (
    SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
    FROM events WHERE namespace = %(namespace)s AND seq = wanted.seq OFFSET 0) AS e

-- name: event_by_id
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = %(namespace)s AND id = %(id)s

-- name: events
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events
WHERE namespace = %(namespace)s AND seq > %(after)s::bigint AND (%(last)s::bigint IS NULL OR seq <= %(last)s::bigint)
  AND (%(session)s::text IS NULL OR session = %(session)s)
  AND (%(since)s::bigint IS NULL OR at >= %(since)s::bigint) AND (%(until)s::bigint IS NULL OR at < %(until)s::bigint)
  AND (%(kinds)s::text IS NULL OR kind IN (SELECT value FROM json_array_elements_text(%(kinds)s::json)))
  AND (%(roles)s::text IS NULL OR role IN (SELECT value FROM json_array_elements_text(%(roles)s::json)))
ORDER BY seq LIMIT %(limit)s

-- name: edits
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = %(namespace)s AND kind = 'edit' ORDER BY seq

-- name: events_holding
SELECT seq FROM events
WHERE namespace = %(namespace)s AND strpos(lower(text), %(needle)s) > 0 ORDER BY seq DESC LIMIT %(limit)s

-- name: events_without_chunks
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events AS e
WHERE namespace = %(namespace)s AND kind NOT IN ('marker', 'edit') AND trim(text) != ''
  AND NOT EXISTS (SELECT 1 FROM chunks AS c WHERE c.namespace = e.namespace AND c.seq = e.seq)
ORDER BY seq LIMIT %(limit)s

-- name: events_provisional
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data
FROM events WHERE namespace = %(namespace)s AND seq IN (
    SELECT seq FROM chunks WHERE namespace = %(namespace)s AND decided = -1 ORDER BY id LIMIT %(limit)s)
ORDER BY seq

-- name: sessions
SELECT session, min(seq), max(seq), count(*), min(at), max(at) FROM events
WHERE namespace = %(namespace)s AND session IS NOT NULL GROUP BY session ORDER BY max(seq) DESC LIMIT %(limit)s

-- name: counts
SELECT (SELECT count(*) FROM events WHERE namespace = %(namespace)s),
       (SELECT count(*) FROM chunks WHERE namespace = %(namespace)s),
       (SELECT count(*) FROM chunks WHERE namespace = %(namespace)s AND kept = 1)

-- name: chunk_put
INSERT INTO chunks (namespace, id, seq, start, stop, words, flags, kept, decided, verdict, signature, digest, terms,
                    same_as, archived)
SELECT *, NULL, '' FROM unnest(%(namespace)b::text[], %(id)b::bigint[], %(seq)b::bigint[], %(start)b::int[],
                               %(stop)b::int[], %(words)b::int[], %(flags)b::int[], %(kept)b::int[],
                               %(decided)b::int[], %(verdict)b::text[], %(signature)b::bigint[],
                               %(digest)b::bigint[], %(terms)b::bytea[])

-- name: chunks_delete
DELETE FROM chunks
WHERE namespace = %(namespace)s AND seq IN (SELECT value::bigint FROM json_array_elements_text(%(seqs)s::json))

-- name: chunks_after
SELECT c.id, c.seq, c.words, c.flags, c.terms, e.session, e.role, e.actor, e.kind, e.channel, e.project, e.at
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = %(namespace)s AND c.id > %(after)s AND c.archived = '' ORDER BY c.id LIMIT %(limit)s

-- name: chunks_by_id
SELECT c.*
FROM (SELECT DISTINCT value::bigint AS id FROM json_array_elements_text(%(ids)s::json)) AS wanted, LATERAL (
    SELECT id, seq, start, stop, same_as FROM chunks WHERE namespace = %(namespace)s AND id = wanted.id OFFSET 0) AS c

-- name: chunk
SELECT id, seq, start, stop, words, flags, kept, decided, verdict, same_as, archived
FROM chunks WHERE namespace = %(namespace)s AND id = %(id)s

-- name: chunks_of_event
SELECT id, seq, start, stop, same_as FROM chunks WHERE namespace = %(namespace)s AND seq = %(seq)s ORDER BY id

-- name: chunks_without_vector
SELECT c.id, c.start, c.stop, c.decided, c.signature, c.digest, e.seq, e.text, e.actor, e.role, e.kind, e.trust
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = %(namespace)s AND c.id > %(after)s AND c.kept = 1 AND c.decided = 1 AND c.archived = '' AND NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.namespace = c.namespace AND v.space = %(space)s AND v.chunk = c.id)
ORDER BY c.id LIMIT %(limit)s

-- name: chunks_without_vector_count
SELECT count(*) FROM chunks AS c
WHERE c.namespace = %(namespace)s AND c.kept = 1 AND c.archived = '' AND (c.decided = 0 OR NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.namespace = c.namespace AND v.space = %(space)s AND v.chunk = c.id))

-- name: chunks_undecided
SELECT c.id, c.start, c.stop, c.decided, c.signature, c.digest, e.seq, e.text, e.actor, e.role, e.kind, e.trust
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = %(namespace)s AND c.id > %(after)s AND c.decided <= 0 AND c.decided = 0 AND c.archived = '' ORDER BY c.id LIMIT %(limit)s

-- name: chunk_decide
UPDATE chunks SET kept = %(kept)s, decided = 1, verdict = %(verdict)s, same_as = %(same_as)s
WHERE namespace = %(namespace)s AND id = %(id)s

-- name: chunks_saying
SELECT c.signature, c.id, c.start, c.stop, e.text
FROM (SELECT DISTINCT value::bigint AS signature FROM json_array_elements_text(%(signatures)s::json)) AS wanted, LATERAL (
    SELECT id, seq, start, stop, signature FROM chunks WHERE namespace = %(namespace)s
        AND signature = wanted.signature AND kept = 1 AND archived = '' AND same_as IS NULL OFFSET 0
) AS c, LATERAL (
    SELECT text FROM events WHERE namespace = %(namespace)s AND seq = c.seq OFFSET 0) AS e
ORDER BY c.id

-- name: chunks_undecide
UPDATE chunks SET kept = 1, decided = 0, same_as = NULL WHERE namespace = %(namespace)s AND archived = ''

-- name: chunks_archive
UPDATE chunks SET archived = %(reason)s
WHERE namespace = %(namespace)s AND id IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json))

-- name: chunks_archived
SELECT c.id, c.seq, c.start, c.stop, c.archived, e.text
FROM chunks AS c JOIN events AS e ON e.namespace = c.namespace AND e.seq = c.seq
WHERE c.namespace = %(namespace)s AND c.archived != '' ORDER BY c.id LIMIT %(limit)s

-- name: topic_add
INSERT INTO chunk_topics (namespace, topic, chunk, confidence)
SELECT * FROM unnest(%(namespace)b::text[], %(topic)b::text[], %(chunk)b::bigint[], %(confidence)b::float8[])
ON CONFLICT DO NOTHING

-- name: topics_drop
DELETE FROM chunk_topics
WHERE namespace = %(namespace)s AND chunk IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json))

-- name: topics_of_chunks
SELECT t.*
FROM (SELECT DISTINCT value::bigint AS id FROM json_array_elements_text(%(ids)s::json)) AS wanted, LATERAL (
    SELECT chunk, topic, confidence FROM chunk_topics
    WHERE namespace = %(namespace)s AND chunk = wanted.id OFFSET 0) AS t
ORDER BY t.chunk, t.confidence DESC, t.topic

-- name: chunks_of_topics
SELECT DISTINCT chunk FROM chunk_topics
WHERE namespace = %(namespace)s AND topic IN (SELECT value FROM json_array_elements_text(%(topics)s::json)) ORDER BY chunk

-- name: topic_counts
SELECT topic, count(*) FROM chunk_topics WHERE namespace = %(namespace)s GROUP BY topic ORDER BY topic

-- name: topic_labels
SELECT key, label FROM topics WHERE namespace = %(namespace)s ORDER BY key

-- name: topic_labels_of
SELECT key, label FROM topics
WHERE namespace = %(namespace)s AND key IN (SELECT value FROM json_array_elements_text(%(keys)s::json))

-- name: topic_label_new
INSERT INTO topics (namespace, key, label) VALUES (%(namespace)s, %(key)s, %(label)s) ON CONFLICT DO NOTHING

-- name: vector_put
INSERT INTO vectors (namespace, space, chunk, number, vector)
SELECT * FROM unnest(%(namespace)b::text[], %(space)b::int[], %(chunk)b::bigint[], %(number)b::bigint[],
                     %(vector)b::halfvec[])
ON CONFLICT DO NOTHING

-- name: vectors_after
SELECT chunk, number, vector FROM vectors
WHERE namespace = %(namespace)s AND space = %(space)s AND (number, chunk) > (%(number)s::bigint, %(chunk)s::bigint)
ORDER BY number, chunk LIMIT %(limit)s

-- name: vectors_by_chunk
SELECT v.*
FROM (SELECT DISTINCT value::bigint AS id FROM json_array_elements_text(%(ids)s::json)) AS wanted, LATERAL (
    SELECT chunk, vector FROM vectors
    WHERE namespace = %(namespace)s AND space = %(space)s AND chunk = wanted.id OFFSET 0) AS v

-- name: vectors_by_digest
SELECT c.digest, max(c.id)
FROM (SELECT DISTINCT value::bigint AS signature FROM json_array_elements_text(%(signatures)s::json)) AS wanted, LATERAL (
    SELECT id, digest FROM chunks WHERE namespace = %(namespace)s AND signature = wanted.signature
        AND digest = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%(digests)s::json))) OFFSET 0
) AS c, LATERAL (
    SELECT 1 FROM vectors WHERE namespace = %(namespace)s AND space = %(space)s AND chunk = c.id OFFSET 0) AS v
GROUP BY c.digest

-- name: vectors_drop
DELETE FROM vectors
WHERE namespace = %(namespace)s AND space = %(space)s AND chunk IN (SELECT value::bigint FROM json_array_elements_text(%(ids)s::json))

-- name: vectors_count
SELECT count(*) FROM vectors WHERE namespace = %(namespace)s AND space = %(space)s

-- name: vectors_prune
DELETE FROM vectors WHERE namespace = %(namespace)s AND space = %(space)s

-- name: exclusive
-- Wait until no other transaction works on `name`, and keep it until the end. SQLite has one writer anyway.
SELECT pg_advisory_xact_lock(hashtextextended('mnemic ' || %(name)s, 0))

-- name: spaces
SELECT id, label, provider, model, dimension, scheme, state FROM spaces ORDER BY id

-- name: space_put
INSERT INTO spaces (label, provider, model, dimension, scheme, state)
VALUES (%(label)s, %(provider)s, %(model)s, %(dimension)s, %(scheme)s, %(state)s) ON CONFLICT (label) DO UPDATE SET state = excluded.state

-- name: space_state
UPDATE spaces SET state = %(state)s WHERE id = %(id)s

-- name: space_drop
DELETE FROM spaces WHERE id = %(id)s

-- name: lease
SELECT holder, token, expires_at FROM leases WHERE name = %(name)s

-- name: lease_put
INSERT INTO leases (name, holder, token, expires_at) VALUES (%(name)s, %(holder)s, %(token)s, %(expires_at)s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token, expires_at = excluded.expires_at

-- name: usage_add
INSERT INTO usage (namespace, subject, day, count) VALUES (%(namespace)s, %(subject)s, %(day)s, %(count)s)
ON CONFLICT (namespace, subject, day) DO UPDATE SET count = usage.count + excluded.count

-- name: usage
SELECT subject, sum(count)::bigint, max(day) FROM usage WHERE namespace = %(namespace)s GROUP BY subject ORDER BY subject

-- name: sources
SELECT id, name, type, uri, digest, version, session, first, last, summary, created_at
FROM sources WHERE namespace = %(namespace)s ORDER BY created_at, id

-- name: source_put
INSERT INTO sources (namespace, id, name, type, uri, digest, version, session, first, last, summary, created_at)
VALUES (%(namespace)s, %(id)s, %(name)s, %(type)s, %(uri)s, %(digest)s, %(version)s, %(session)s, %(first)s, %(last)s, %(summary)s, %(created_at)s)
ON CONFLICT (namespace, id) DO UPDATE SET name = excluded.name, digest = excluded.digest, version = excluded.version,
    first = excluded.first, last = excluded.last, summary = excluded.summary

-- name: copy_events
SELECT seq, id, kind, text, session, channel, role, actor, project, at, recorded_at, importance, trust, data, digest
FROM events WHERE namespace = %(namespace)s AND seq > %(after)s AND seq <= %(last)s ORDER BY seq

-- name: copy_chunks
SELECT id, seq, start, stop, words, flags, kept, decided, verdict, same_as, signature, digest, archived, terms
FROM chunks WHERE namespace = %(namespace)s AND id > %(after)s AND id <= %(last)s ORDER BY id

-- name: copy_chunk_put
INSERT INTO chunks (namespace, id, seq, start, stop, words, flags, kept, decided, verdict, same_as, signature, digest,
                    archived, terms)
SELECT * FROM unnest(%(namespace)b::text[], %(id)b::bigint[], %(seq)b::bigint[], %(start)b::int[], %(stop)b::int[],
                     %(words)b::int[], %(flags)b::int[], %(kept)b::int[], %(decided)b::int[], %(verdict)b::text[],
                     %(same_as)b::bigint[], %(signature)b::bigint[], %(digest)b::bigint[], %(archived)b::text[],
                     %(terms)b::bytea[])
ON CONFLICT (namespace, id) DO UPDATE SET kept = excluded.kept, decided = excluded.decided, verdict = excluded.verdict,
    same_as = excluded.same_as, archived = excluded.archived

-- name: copy_chunk_topics
SELECT topic, chunk, confidence FROM chunk_topics
WHERE namespace = %(namespace)s AND chunk > %(after)s AND chunk <= %(last)s ORDER BY chunk, topic

-- name: copy_vectors
SELECT chunk, number, vector FROM vectors
WHERE namespace = %(namespace)s AND space = %(space)s AND chunk > %(after)s AND chunk <= %(last)s ORDER BY chunk

-- name: copy_quarantine
SELECT id, digest, reason, at, body FROM quarantine WHERE namespace = %(namespace)s ORDER BY id, digest

-- name: copy_usage
SELECT subject, day, count FROM usage WHERE namespace = %(namespace)s ORDER BY subject, day

-- name: copy_usage_put
INSERT INTO usage (namespace, subject, day, count) VALUES (%(namespace)s, %(subject)s, %(day)s, %(count)s)
ON CONFLICT (namespace, subject, day) DO UPDATE SET count = excluded.count
