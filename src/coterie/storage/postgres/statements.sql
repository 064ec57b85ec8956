-- What PostgreSQL says in its own way. The locks are statements of their own, which read nothing else.

-- name: lock_sessions
SELECT id FROM sessions WHERE id IN (:ids...) ORDER BY id FOR NO KEY UPDATE

-- name: try_sessions
SELECT id FROM sessions WHERE id IN (:ids...) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- name: of_turn
SELECT session_id FROM turns WHERE id = :id
UNION SELECT target_session_id FROM messages WHERE id IN (:shown...)
UNION SELECT source_session_id FROM messages WHERE :parties AND turn_id = :id

-- name: lock_of_turn
SELECT id FROM sessions WHERE id IN (
    SELECT session_id FROM turns WHERE id = :id
    UNION SELECT target_session_id FROM messages WHERE id IN (:shown...)
    UNION SELECT source_session_id FROM messages WHERE :parties AND turn_id = :id)
ORDER BY id FOR NO KEY UPDATE

-- name: take_ready
SELECT id FROM sessions WHERE ready IS NOT NULL AND id <> :other ORDER BY ready LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED

-- name: lock_chains
SELECT id FROM chains WHERE id IN (:ids...) ORDER BY id FOR NO KEY UPDATE

-- name: try_chains
SELECT id FROM chains WHERE id IN (:ids...) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- name: lock_plugin
SELECT pg_advisory_xact_lock(hashtextextended('coterie plugin ' || :plugin, 0))

-- An epoch cannot be raised while one of its turns is being written.

-- name: lock_host
SELECT id FROM hosts WHERE id = :id AND epoch = :epoch FOR SHARE


-- A change is told once no transaction that began before its own can still write one (`position` in `database.py`).
-- Who began first may come to a session last, so a change is never numbered before the one that the session had.

-- name: add_changes
INSERT INTO changes (number, session_id, revision, kind, ref, at)
SELECT (GREATEST(pg_current_xact_id()::text::bigint,
        (SELECT c.number >> 20 FROM changes c WHERE c.session_id = v.session_id ORDER BY c.revision DESC LIMIT 1)) << 20)
    | (nextval('changes_order') & 1048575), v.session_id, v.revision, v.kind, v.ref, v.at
FROM (VALUES (:rows...)) v (session_id, revision, kind, ref, at)

-- name: changes_after
SELECT number, session_id, revision, kind, ref, at FROM changes
WHERE number > :after AND number < (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20)
ORDER BY number LIMIT :limit

-- name: last_change
SELECT COALESCE(MAX(number), 0) FROM changes
WHERE number < (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20)
