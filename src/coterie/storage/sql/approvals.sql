-- What a person is asked about tool calls, and what they have granted.

-- name: ask_call
INSERT INTO call_requests (id, session_id, turn_id, call_id, tool, risk, subject, shown, mode, clamped_by, created_at, note, choices)
VALUES (:id, :session_id, :turn_id, :call_id, :tool, :risk, :subject, :shown, :mode, :clamped_by, :now, '', :choices)
ON CONFLICT DO NOTHING

-- name: request_of_call
SELECT {call_requests} FROM call_requests WHERE turn_id = :turn_id AND call_id = :call_id

-- name: get_call_request
SELECT {call_requests} FROM call_requests WHERE id = :id

-- name: answer_call
UPDATE call_requests SET answer = :answer, note = :note, answered_at = :now WHERE id = :id AND answer IS NULL

-- A question ends with its turn: nothing has to close it. The running turns are few, and have an index of their own.

-- name: pending_calls
SELECT {r.call_requests} FROM turns t CROSS JOIN call_requests r
WHERE r.turn_id = t.id AND t.state = 'running' AND t.session_id > '' AND t.fenced = 0 AND r.answer IS NULL ORDER BY r.number LIMIT :limit

-- name: add_call_grant
INSERT INTO call_grants (id, session_id, tool, subject_hash, subject, created_at)
VALUES (:id, :session_id, :tool, :subject_hash, :subject, :now) ON CONFLICT DO NOTHING

-- name: find_call_grant
SELECT id FROM call_grants WHERE session_id = :session_id AND tool = :tool AND subject_hash = :subject_hash

-- name: call_grants
SELECT {call_grants} FROM call_grants ORDER BY number DESC LIMIT :limit

-- name: revoke_call_grant
DELETE FROM call_grants WHERE id = :id

-- name: forget_call_grants
DELETE FROM call_grants WHERE session_id = :id

-- name: forget_call_texts
UPDATE call_requests SET subject = '', shown = '', note = '', choices = CASE WHEN choices IS NULL THEN NULL ELSE '[]' END WHERE session_id = :id
