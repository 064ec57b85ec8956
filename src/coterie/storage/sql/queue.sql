-- Inputs and turns.

-- name: add_input
INSERT INTO inputs (id, session_id, kind, chain_id, created_at, text, message_id, promoted, place, waiting, turn_id)
VALUES (:id, :session_id, :kind, :chain_id, :created_at, :text, :message_id, :promoted,
    (SELECT COALESCE(MAX(place), 0) + 1 FROM inputs WHERE session_id = :session_id AND promoted = :promoted),
    :waiting, :turn_id)

-- name: places
SELECT
    COUNT(CASE WHEN kind IN ('prompt', 'steer') THEN 1 END),
    COUNT(CASE WHEN kind IN ('task', 'message') THEN 1 END),
    COUNT(CASE WHEN kind = 'completion' THEN 1 END),
    EXISTS (SELECT 1 FROM turns WHERE session_id = :id AND state = 'running')
FROM inputs WHERE session_id = :id

-- name: heads
SELECT {s.sessions}, l.created_by_session_id, {i.inputs}, {m.messages}
FROM inputs i
JOIN sessions s ON s.id = :id AND s.deleted_at IS NULL
LEFT JOIN session_links l ON l.session_id = s.id
LEFT JOIN messages m ON m.id = i.message_id
WHERE i.number IN (
    (SELECT number FROM inputs WHERE session_id = :id AND promoted = 1 AND waiting IS NULL ORDER BY place LIMIT 1),
    (SELECT number FROM inputs WHERE session_id = :id AND promoted = 0 AND waiting IS NULL AND kind = 'prompt'
        ORDER BY place LIMIT 1),
    (SELECT number FROM inputs WHERE session_id = :id AND promoted = 0 AND waiting IS NULL AND message_id IS NOT NULL
        ORDER BY place LIMIT 1))

-- name: target
SELECT {s.sessions}, l.created_by_session_id, p.prompts, p.messages, p.completions,
    EXISTS (SELECT 1 FROM turns WHERE session_id = :id AND state = 'running')
FROM sessions s LEFT JOIN session_links l ON l.session_id = s.id CROSS JOIN (
    SELECT
        COUNT(CASE WHEN kind IN ('prompt', 'steer') THEN 1 END) AS prompts,
        COUNT(CASE WHEN kind IN ('task', 'message') THEN 1 END) AS messages,
        COUNT(CASE WHEN kind = 'completion' THEN 1 END) AS completions
    FROM inputs WHERE session_id = :id) p
WHERE s.id = :id AND s.deleted_at IS NULL

-- name: page_inputs
SELECT {inputs} FROM inputs WHERE session_id = :id
ORDER BY promoted DESC, CASE WHEN promoted = 1 OR message_id IS NULL THEN 0 ELSE 1 END, place LIMIT :limit

-- name: get_input
SELECT {inputs} FROM inputs WHERE id = :id

-- The places of the promoted part and of the rest are counted apart.

-- name: promote_input
UPDATE inputs SET promoted = 1, kind = CASE WHEN kind = 'steer' THEN 'prompt' ELSE kind END,
    turn_id = CASE WHEN kind = 'steer' THEN NULL ELSE turn_id END,
    place = (SELECT COALESCE(MAX(o.place), 0) + 1 FROM inputs o WHERE o.session_id = inputs.session_id AND o.promoted = 1)
WHERE id = :id

-- name: put_first
UPDATE inputs SET promoted = 1, kind = CASE WHEN kind = 'steer' THEN 'prompt' ELSE kind END,
    turn_id = CASE WHEN kind = 'steer' THEN NULL ELSE turn_id END,
    place = (SELECT COALESCE(MIN(o.place), 0) - 1 FROM inputs o WHERE o.session_id = inputs.session_id AND o.promoted = 1)
WHERE id = :id

-- name: swap_inputs
UPDATE inputs SET place = (SELECT SUM(o.place) FROM inputs o WHERE o.id IN (:one, :other)) - place
WHERE id IN (:one, :other)

-- name: mark_input
UPDATE inputs SET waiting = :waiting WHERE id = :id

-- name: sessions_of_chain
SELECT DISTINCT session_id FROM inputs
WHERE message_id IN (SELECT id FROM messages WHERE chain_id = :chain_id AND state = 'queued') ORDER BY session_id

-- name: mark_chain
UPDATE inputs SET waiting = 'budget' WHERE waiting IS NULL
    AND message_id IN (SELECT id FROM messages WHERE chain_id = :chain_id AND state = 'queued')
RETURNING session_id

-- name: free_chain
UPDATE inputs SET waiting = NULL WHERE waiting = 'budget'
    AND message_id IN (SELECT id FROM messages WHERE chain_id = :chain_id AND state = 'queued')
RETURNING session_id

-- name: marked_inputs
SELECT {inputs} FROM inputs WHERE waiting IS NOT NULL AND session_id > '' ORDER BY session_id, number

-- name: marked_inputs_of
SELECT {inputs} FROM inputs WHERE waiting IS NOT NULL AND session_id = :session_id ORDER BY number

-- name: meant_for_turn
SELECT {inputs} FROM inputs
WHERE session_id = (SELECT t.session_id FROM turns t WHERE t.id = :turn_id) AND turn_id = :turn_id ORDER BY place, number

-- name: withdraw_offers
UPDATE inputs SET turn_id = NULL
WHERE session_id = (SELECT t.session_id FROM turns t WHERE t.id = :turn_id) AND turn_id = :turn_id AND kind <> 'steer'

-- name: withdraw_offer
UPDATE inputs SET turn_id = NULL WHERE id = :id AND turn_id = :turn_id

-- name: remove_input
DELETE FROM inputs WHERE id = :id

-- name: remove_input_of_message
DELETE FROM inputs WHERE message_id = :message_id

-- name: add_turn
INSERT INTO turns (id, session_id, input_id, kind, message_id, state, host_id, epoch, permission, chain_id, hops, fenced,
    created_at, truncated, news, more_chains)
VALUES (:id, :session_id, :input_id, :kind, :message_id, 'running', :host_id, :epoch, :permission, :chain_id, :hops, 0,
    :created_at, 0, 0, '')
ON CONFLICT DO NOTHING

-- name: join_turn
UPDATE turns SET hops = :hops, more_chains = :more_chains WHERE id = :id

-- name: set_news
UPDATE turns SET news = :news WHERE id = :id AND news <> :news

-- name: get_turn
SELECT {turns} FROM turns WHERE id = :id

-- name: running_turn
SELECT {turns} FROM turns WHERE session_id = :session_id AND state = 'running'

-- name: newest_turn
SELECT {turns} FROM turns WHERE session_id = :session_id ORDER BY number DESC LIMIT 1

-- Of turns that have ended: what a running one has used is in no row yet.

-- name: used_by_session
SELECT COUNT(*), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), CAST(SUM(cost) AS BIGINT),
    COUNT(*) - COUNT(input_tokens + output_tokens), COUNT(*) - COUNT(cost)
FROM turns WHERE session_id = :session_id AND state <> 'running'

-- name: turn_of_input
SELECT {turns} FROM turns WHERE input_id = :input_id AND kind = 'prompt'

-- name: fence_turn
UPDATE turns SET fenced = 1 WHERE id = :id AND state = 'running'

-- name: settle_turn for turn
UPDATE turns SET state = {target}, ended_at = :ended_at, result = :result, truncated = :truncated,
    error_code = :error_code, error = :error, input_tokens = :input_tokens, output_tokens = :output_tokens,
    cost = :cost, news = 0
WHERE id = :id AND host_id = :host_id AND epoch = :epoch AND state IN ({sources})

-- The session is named so that the small index of running turns is read, not the table.

-- name: left_running
SELECT {turns} FROM turns WHERE state = 'running' AND session_id > '' AND host_id = :host_id AND epoch < :epoch
ORDER BY session_id

-- name: running_here
SELECT {turns} FROM turns WHERE state = 'running' AND session_id > '' AND host_id = :host_id AND epoch = :epoch
ORDER BY session_id

-- name: append_item
INSERT INTO items (session_id, number, turn_id, kind, ref, diff, body, created_at)
VALUES (:session_id,
    (SELECT COALESCE(MAX(number), 0) + 1 FROM items WHERE session_id = :session_id),
    :turn_id, :kind, :ref, :diff, :body, :now)
RETURNING number

-- name: page_items
SELECT number, turn_id, kind, diff, body, created_at FROM items
WHERE session_id = :session_id AND number > :after ORDER BY number LIMIT :limit

-- name: newest_checkpoint
SELECT number, turn_id, kind, diff, body, created_at FROM items
WHERE session_id = :session_id AND kind = 'checkpoint' ORDER BY number DESC LIMIT 1

-- What no model is shown counts for no context.

-- name: item_sizes
SELECT number, LENGTH(body) FROM items
WHERE session_id = :session_id AND number > :after AND number < :before ORDER BY number DESC LIMIT :limit

-- name: names_output
SELECT 1 FROM items WHERE session_id = :session_id AND ref = :ref LIMIT 1

-- name: named_outputs
SELECT DISTINCT ref FROM items WHERE ref IN (:ids...)

-- name: replies_of_turn
SELECT kind, body FROM items WHERE session_id = :session_id AND turn_id = :turn_id AND kind IN ('reply', 'checkpoint')
ORDER BY number

-- name: copy_items
INSERT INTO items (session_id, number, turn_id, kind, ref, diff, body, created_at)
SELECT :target, number, turn_id, kind, ref, diff, body, created_at FROM items
WHERE session_id = :source AND number <= :up_to ORDER BY number

-- name: purge_items
DELETE FROM items WHERE session_id = :session_id
    AND number IN (SELECT number FROM items WHERE session_id = :session_id ORDER BY number LIMIT :limit)
