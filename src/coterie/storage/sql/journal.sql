-- Changes, idempotency keys, audit.

-- name: changes_after
SELECT number, session_id, revision, kind, ref, at FROM changes WHERE number > :after ORDER BY number LIMIT :limit

-- name: session_changes_after
SELECT number, session_id, revision, kind, ref, at FROM changes
WHERE session_id = :session_id AND revision > :after ORDER BY revision LIMIT :limit

-- name: last_change
SELECT COALESCE(MAX(number), 0) FROM changes

-- name: last_session_change
SELECT COALESCE(MAX(revision), 0) FROM sessions WHERE id = :session_id

-- name: last_written_at
SELECT at FROM changes ORDER BY number DESC LIMIT 1

-- name: claim_key
INSERT INTO idempotency (scope, key, fingerprint, ref, kept_until)
VALUES (:scope, :key, :fingerprint, :ref, :kept_until)
ON CONFLICT DO NOTHING

-- name: old_keys
SELECT 1 FROM idempotency WHERE kept_until <= :now LIMIT :limit

-- name: forget_keys
DELETE FROM idempotency WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency WHERE kept_until <= :now LIMIT :limit)

-- name: get_key
SELECT fingerprint, ref FROM idempotency WHERE scope = :scope AND key = :key

-- name: set_key_ref
UPDATE idempotency SET ref = :ref WHERE scope = :scope AND key = :key

-- name: add_audit
INSERT INTO audit (at, actor, act, session_id, ref) VALUES (:at, :actor, :act, :session_id, :ref)
