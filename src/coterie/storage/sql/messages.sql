-- The ledger proper.

-- name: add_message
INSERT INTO messages (id, chain_id, source_session_id, source_title, target_session_id, target_title, kind, content,
    state, notify, hops, ceiling, created_at, updated_at, turn_id, joined, source_turn_id, via, reply_to, result, truncated,
    error, retry_of, expires_at)
VALUES (:id, :chain_id, :source_session_id, :source_title, :target_session_id, :target_title, :kind, :content,
    :state, :notify, :hops, :ceiling, :created_at, :updated_at, :turn_id, :joined, :source_turn_id, :via, :reply_to,
    :result, :truncated, :error, :retry_of, :expires_at)

-- name: get_message
SELECT {messages} FROM messages WHERE id = :id

-- name: move_message for message
UPDATE messages SET state = {target}, turn_id = COALESCE(:turn_id, turn_id), joined = COALESCE(:joined, joined),
    error = COALESCE(:error, error), updated_at = :now
WHERE id = :id AND state IN ({sources}) RETURNING {messages}

-- name: settle_messages for message
UPDATE messages SET state = {target}, result = CASE WHEN kind = 'completion' THEN NULL ELSE :result END,
    truncated = CASE WHEN kind = 'completion' THEN 0 ELSE :truncated END, error = :error, updated_at = :now
WHERE turn_id = :turn_id AND state IN ({sources})
RETURNING {messages}

-- A turn sends on its own chain only, and a chain has a bound.

-- name: sent_open
SELECT {messages} FROM messages
WHERE chain_id = :chain_id AND source_turn_id = :turn_id AND kind <> 'completion' AND state IN ('queued', 'running')
ORDER BY number

-- name: accepted_count
SELECT COUNT(*) FROM messages WHERE turn_id = :turn_id AND joined = 'accepted'

-- name: due_messages
SELECT {messages} FROM messages WHERE state = 'queued' AND expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at LIMIT :limit

-- name: completion_of
SELECT {messages} FROM messages WHERE reply_to = :message_id

-- name: newest_inbound
SELECT {messages} FROM messages WHERE target_session_id = :session_id ORDER BY number DESC LIMIT 1

-- name: message_of_turn
SELECT {messages} FROM messages
WHERE turn_id = :turn_id AND joined IN ('claimed', 'accepted')
    AND (CAST(:party AS TEXT) IS NULL OR :party IN (source_session_id, target_session_id))
ORDER BY CASE WHEN joined = 'claimed' THEN 0 ELSE 1 END, number DESC LIMIT 1

-- name: newest_settled
SELECT {messages} FROM (SELECT {messages}, number FROM messages
    WHERE target_session_id = :session_id ORDER BY number DESC LIMIT :window) inbound
WHERE kind <> 'completion' AND state NOT IN ('queued', 'running') ORDER BY updated_at DESC, number DESC LIMIT 1

-- name: sent_last
SELECT {messages} FROM (SELECT {messages}, number FROM messages
    WHERE source_session_id = :source ORDER BY number DESC LIMIT :window) sent
WHERE target_session_id = :target AND kind <> 'completion' ORDER BY number DESC LIMIT 1

-- What is open is found by the queue and by the running turn, so that no index has to follow each message's state.

-- name: open_to
SELECT {m.messages}, m.number FROM inputs i JOIN messages m ON m.id = i.message_id
WHERE i.session_id = :target AND m.kind <> 'completion' AND m.state = 'queued'
UNION ALL
SELECT {m.messages}, m.number FROM turns t JOIN messages m ON m.turn_id = t.id
WHERE t.session_id = :target AND t.state = 'running' AND m.kind <> 'completion' AND m.state = 'running'
ORDER BY 25

-- name: recent_inbound
SELECT {messages}, number FROM messages WHERE target_session_id = :session_id ORDER BY number DESC LIMIT :limit

-- name: recent_outbound
SELECT {messages}, number FROM messages WHERE source_session_id = :session_id ORDER BY number DESC LIMIT :limit

-- name: page_chain
SELECT {messages}, number FROM messages WHERE chain_id = :chain_id AND number > :after
    AND (CAST(:party AS TEXT) IS NULL OR :party IN (source_session_id, target_session_id))
ORDER BY number LIMIT :limit

-- name: first_open
SELECT {m.messages}, 0, m.number FROM turns t JOIN messages m ON m.turn_id = t.id
WHERE t.session_id = :session_id AND t.state = 'running' AND m.kind <> 'completion' AND m.state = 'running'
UNION ALL
SELECT {m.messages}, 1, m.number FROM inputs i JOIN messages m ON m.id = i.message_id
WHERE i.session_id = :session_id AND m.kind <> 'completion' AND m.state = 'queued'
ORDER BY 25, 26 LIMIT 1

-- name: add_chain
INSERT INTO chains (id, messages, sessions, created_at, cost, tokens, grants)
VALUES (:id, :messages, :sessions, :created_at, 0, 0, 0)

-- name: get_chain
SELECT {chains} FROM chains WHERE id = :id

-- name: get_chains
SELECT {chains} FROM chains WHERE id IN (:ids...)

-- name: charge_chain
UPDATE chains SET messages = messages + :messages, sessions = sessions + :sessions WHERE id = :id

-- name: spend_chain
UPDATE chains SET cost = cost + :cost, tokens = tokens + :tokens WHERE id = :id RETURNING {chains}

-- name: grant_chain
UPDATE chains SET grants = grants + :times WHERE id = :id

-- name: accept_result
INSERT INTO acceptances (message_id, session_id, note, created_at) VALUES (:message_id, :session_id, :note, :now)
ON CONFLICT (message_id) DO UPDATE SET note = excluded.note, created_at = excluded.created_at

-- name: get_acceptance
SELECT message_id, session_id, note, created_at FROM acceptances WHERE message_id = :message_id
