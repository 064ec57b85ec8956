-- Who may write to whom across projects.

-- name: ask_pair
INSERT INTO permission_requests (id, source_session_id, target_session_id, created_at)
VALUES (:id, :source, :target, :now) ON CONFLICT DO NOTHING

-- name: pending_pairs
SELECT {permission_requests} FROM permission_requests ORDER BY number LIMIT :limit

-- name: get_pair_request
SELECT {permission_requests} FROM permission_requests WHERE id = :id

-- name: close_pair
DELETE FROM permission_requests WHERE source_session_id = :source AND target_session_id = :target
    AND NOT EXISTS (SELECT 1 FROM inputs i JOIN messages m ON m.id = i.message_id
        WHERE i.session_id = :target AND i.waiting = 'across_projects' AND m.source_session_id = :source)

-- name: waiting_for_pair
SELECT {i.inputs} FROM inputs i JOIN messages m ON m.id = i.message_id
WHERE i.session_id = :target AND i.waiting = 'across_projects' AND m.source_session_id = :source ORDER BY i.number

-- name: add_grant
INSERT INTO grants (id, source_session_id, target_session_id, created_at, expires_at)
VALUES (:id, :source, :target, :now, :expires_at)
ON CONFLICT (source_session_id, target_session_id)
DO UPDATE SET id = excluded.id, created_at = excluded.created_at, expires_at = excluded.expires_at

-- name: find_grant
SELECT id FROM grants WHERE source_session_id = :source AND target_session_id = :target AND expires_at > :now

-- name: live_grants
SELECT {grants} FROM grants WHERE expires_at > :now ORDER BY number DESC LIMIT :limit

-- name: revoke_grant
DELETE FROM grants WHERE id = :id

-- name: forget_requests
DELETE FROM permission_requests WHERE (source_session_id = :id OR target_session_id = :id)
    AND NOT EXISTS (SELECT 1 FROM inputs i JOIN messages m ON m.id = i.message_id
        WHERE i.session_id = permission_requests.target_session_id AND i.waiting = 'across_projects'
        AND m.source_session_id = permission_requests.source_session_id)

-- name: forget_grants
DELETE FROM grants WHERE source_session_id = :id OR target_session_id = :id
