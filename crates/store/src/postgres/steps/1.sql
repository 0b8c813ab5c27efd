-- Versions are unique and grow for each row, but not in the order of commits.
CREATE SEQUENCE qd.version;

-- Keys are bytes: text cannot hold a NUL and is sorted by a collation. Values are text: jsonb changes what it is given.
CREATE TABLE qd.rows (
    tab smallint NOT NULL,
    key bytea NOT NULL,
    value text NOT NULL,
    version bigint NOT NULL,
    expires_ms bigint,
    PRIMARY KEY (tab, key)
) WITH (fillfactor = 80);
CREATE INDEX rows_by_expiry ON qd.rows (expires_ms) WHERE expires_ms IS NOT NULL;

-- What became of each commit, for one whose answer was lost and which is repeated. Kept for a day.
CREATE TABLE qd.commits (
    id uuid PRIMARY KEY,
    version bigint,
    refused int,
    retry_ms bigint,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commits_by_time ON qd.commits (at);

-- Counts in the window of a rate limit, by the server's clock: the one clock that all nodes share. Either `groups` is what
-- the window becomes, or `retry_ms` says how long there is no room. The same rules as `Take::count_in`.
CREATE FUNCTION qd.take(
    p_stored text, p_count bigint, p_limit bigint, p_window bigint,
    OUT groups text, OUT retry_ms bigint, OUT expires_ms bigint
) LANGUAGE plpgsql AS $$
DECLARE
    now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    stored jsonb := coalesce(p_stored, '[]')::jsonb;
    times bigint[];
    calls bigint[];
    taken numeric;
    stretch bigint := greatest(p_window / 256, 1);
BEGIN
    IF jsonb_typeof(stored) <> 'array' THEN stored := '[]'; END IF;
    SELECT coalesce(array_agg(a ORDER BY a), '{}'), coalesce(array_agg(c ORDER BY a), '{}'), coalesce(sum(c), 0)
    INTO times, calls, taken
    FROM (
        SELECT (e ->> 'at')::numeric::bigint AS a, (e ->> 'calls')::numeric::bigint AS c
        FROM jsonb_array_elements(stored) AS e
        WHERE jsonb_typeof(e -> 'at') = 'number' AND jsonb_typeof(e -> 'calls') = 'number'
    ) AS found
    -- One from beyond the next window was counted by a clock that has been set back since.
    WHERE a > now_ms - p_window AND a <= now_ms + p_window;
    IF taken + p_count > p_limit THEN
        retry_ms := greatest(p_window, 1);
        FOR n IN 1 .. cardinality(times) LOOP
            taken := taken - calls[n];
            IF taken + p_count <= p_limit THEN
                retry_ms := greatest(times[n] + p_window - now_ms, 1);
                EXIT;
            END IF;
        END LOOP;
        RETURN;
    END IF;
    times := times || now_ms;
    calls := calls || p_count;
    IF cardinality(times) > 256 THEN
        SELECT array_agg(a ORDER BY a), array_agg(c ORDER BY a) INTO times, calls
        FROM (SELECT max(u.a) AS a, sum(u.c)::bigint AS c FROM unnest(times, calls) AS u(a, c) GROUP BY u.a / stretch) AS fewer;
    END IF;
    SELECT jsonb_agg(jsonb_build_object('at', u.a, 'calls', u.c) ORDER BY u.a)::text INTO groups
    FROM unnest(times, calls) AS u(a, c);
    -- Up to the hour, because a change of an indexed column costs more than a row that stays a little longer.
    expires_ms := ((now_ms + p_window) / 3600000 + 1) * 3600000;
END $$;

-- Applies a commit, or says why not. Each row comes once, sorted by table and key, so that all nodes lock in one order.
--
-- p_look and p_look_ver are the checks in the caller's order: losers are found without waiting for locks and without a sync.
-- A refusal by the first attempt is an exception once rows are locked, because undoing needs no sync either; one by a
-- repetition is kept with the id, so that the attempt whose answer was lost cannot be applied after it.
CREATE FUNCTION qd.commit(
    p_id uuid, p_again bool, p_durable bool,
    p_tab smallint[], p_key bytea[], p_chk bool[], p_ver bigint[], p_wr bool[], p_val text[], p_exp bigint[],
    p_count bigint[], p_limit bigint[], p_window bigint[],
    p_look int[], p_look_ver bigint[],
    OUT version bigint, OUT refused int, OUT retry_ms bigint
) LANGUAGE plpgsql AS $$
DECLARE
    have bigint;
    stored text;
    taken record;
    there bool[];
    new_version bigint;
    now_ms bigint;
BEGIN
    -- Local to this transaction, so a pooler may stand between.
    PERFORM set_config('lock_timeout', '4s', true);
    IF NOT p_durable THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;

    -- A repetition waits for the first attempt. What it finds is written again, so that it waits for the standby too.
    PERFORM pg_advisory_xact_lock(hashtextextended(p_id::text, 0));
    UPDATE qd.commits c SET at = now() WHERE c.id = p_id
    RETURNING c.version, c.refused, c.retry_ms INTO version, refused, retry_ms;
    IF FOUND THEN RETURN; END IF;

    FOR n IN 1 .. cardinality(p_look) LOOP
        SELECT r.version INTO have FROM qd.rows r WHERE r.tab = p_tab[p_look[n]] AND r.key = p_key[p_look[n]];
        IF have IS DISTINCT FROM p_look_ver[n] THEN
            refused := p_look[n];
            IF p_again THEN INSERT INTO qd.commits (id, refused) VALUES (p_id, refused); END IF;
            RETURN;
        END IF;
    END LOOP;
    IF NOT (true = ANY (p_wr)) THEN
        version := 0;
        RETURN;
    END IF;

    FOR i IN 1 .. cardinality(p_tab) LOOP
        IF p_wr[i] THEN
            SELECT r.version INTO have FROM qd.rows r WHERE r.tab = p_tab[i] AND r.key = p_key[i] FOR NO KEY UPDATE;
        ELSE
            SELECT r.version INTO have FROM qd.rows r WHERE r.tab = p_tab[i] AND r.key = p_key[i] FOR SHARE;
        END IF;
        there[i] := FOUND;
        IF p_chk[i] AND have IS DISTINCT FROM p_ver[i] THEN
            refused := i;
            EXIT;
        END IF;
    END LOOP;
    IF refused IS NULL THEN
        FOR i IN 1 .. cardinality(p_tab) LOOP
            CONTINUE WHEN p_count[i] IS NULL;
            SELECT r.value INTO stored FROM qd.rows r WHERE r.tab = p_tab[i] AND r.key = p_key[i];
            SELECT * INTO taken FROM qd.take(stored, p_count[i], p_limit[i], p_window[i]);
            IF taken.groups IS NULL THEN
                refused := i;
                retry_ms := taken.retry_ms;
                EXIT;
            END IF;
            p_val[i] := taken.groups;
            p_exp[i] := taken.expires_ms;
        END LOOP;
    END IF;
    IF refused IS NOT NULL THEN
        IF p_again THEN
            INSERT INTO qd.commits (id, refused, retry_ms) VALUES (p_id, refused, retry_ms);
            RETURN;
        END IF;
        RAISE EXCEPTION 'refused' USING ERRCODE = 'QD002', DETAIL = concat_ws(' ', refused, retry_ms);
    END IF;

    -- After the locks, so that it grows for each row.
    new_version := nextval('qd.version');
    now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    FOR i IN 1 .. cardinality(p_tab) LOOP
        -- A row that stays for days may stay an hour longer: its expiry then rarely changes when it is written again.
        IF p_exp[i] > now_ms + 86400000 THEN p_exp[i] := (p_exp[i] / 3600000 + 1) * 3600000; END IF;
        IF there[i] THEN
            IF p_wr[i] AND p_val[i] IS NULL THEN
                DELETE FROM qd.rows r WHERE r.tab = p_tab[i] AND r.key = p_key[i];
            ELSIF p_wr[i] THEN
                UPDATE qd.rows r SET value = p_val[i], version = new_version, expires_ms = p_exp[i]
                WHERE r.tab = p_tab[i] AND r.key = p_key[i];
            END IF;
        ELSIF p_val[i] IS NOT NULL OR p_chk[i] THEN
            -- Absence cannot be locked, so a row that must not be there is inserted.
            INSERT INTO qd.rows VALUES (p_tab[i], p_key[i], coalesce(p_val[i], ''), new_version, p_exp[i]) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'overtaken' USING ERRCODE = 'QD001';
            END IF;
            IF p_val[i] IS NULL THEN
                DELETE FROM qd.rows r WHERE r.tab = p_tab[i] AND r.key = p_key[i];
            END IF;
        END IF;
    END LOOP;
    INSERT INTO qd.commits (id, version) VALUES (p_id, new_version);
    version := new_version;
END $$;
