"""The SQL of the ports. `$1` of whatever changes something is the lock of the schema.

Whoever changes something holds that lock until the commit: a transaction alone, single changes with each other. So
nothing changes under a transaction, and single changes do not wait for each other.
"""

# ruff: noqa: S608  (put together of constants)

from __future__ import annotations

from typing import Final

from octavo.core.ports.stores import LARGEST_COUNT

TURN: Final = "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared($1))"
SET: Final = f"""{TURN}
    INSERT INTO pairs (key, value, ends) SELECT $2, $3, clock_timestamp() + make_interval(secs => $4) FROM turn
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, ends = excluded.ends"""
SET_ABSENT: Final = f"{SET} WHERE pairs.ends <= clock_timestamp() RETURNING true"
REPLACE: Final = f"""{TURN}
    UPDATE pairs SET value = $3, ends = clock_timestamp() + make_interval(secs => $4) FROM turn
    WHERE key = $2 AND value = $5 AND (ends IS NULL OR ends > clock_timestamp()) RETURNING true"""
REMOVE: Final = f"""{TURN}
    DELETE FROM pairs USING turn
    WHERE key = $2 AND value = $3 AND (ends IS NULL OR ends > clock_timestamp()) RETURNING true"""
DELETE: Final = f"""{TURN}
    DELETE FROM pairs USING turn WHERE key = $2 RETURNING ends IS NULL OR ends > clock_timestamp()"""
GET: Final = "SELECT value FROM pairs WHERE key = $1 AND (ends IS NULL OR ends > clock_timestamp())"
SCAN: Final = """
    SELECT key, value FROM pairs WHERE key >= $1 AND key > $2 AND key < $3
    AND (ends IS NULL OR ends > clock_timestamp()) ORDER BY key LIMIT $4"""
COUNT: Final = rf"""{TURN}
    INSERT INTO pairs AS kept (key, value, ends)
    SELECT $2, convert_to($3::bigint::text, 'UTF8'), clock_timestamp() + make_interval(secs => $4) FROM turn
    ON CONFLICT (key) DO UPDATE SET
        value = CASE WHEN kept.ends <= clock_timestamp() THEN excluded.value
            ELSE convert_to((encode(kept.value, 'escape')::bigint + $3::bigint)::text, 'UTF8') END,
        ends = CASE WHEN kept.ends > clock_timestamp() THEN kept.ends ELSE excluded.ends END
    WHERE kept.ends <= clock_timestamp() OR
        CASE WHEN encode(kept.value, 'escape') ~ '^(0|-?[1-9][0-9]{{0,15}})$'
            THEN abs(encode(kept.value, 'escape')::bigint) <= {LARGEST_COUNT}
                AND abs(encode(kept.value, 'escape')::bigint + $3::bigint) <= {LARGEST_COUNT}
            ELSE false END
    RETURNING value, extract(epoch FROM ends - clock_timestamp())::float8"""
SWEEP: Final = """
    DELETE FROM pairs WHERE ends <= clock_timestamp() AND key IN
    (SELECT key FROM pairs WHERE ends <= clock_timestamp() LIMIT 1000 FOR UPDATE SKIP LOCKED)"""
FORGET: Final = "DELETE FROM leases WHERE ends < clock_timestamp() - interval '1 day'"
NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# The row of `line` stays locked until the commit: numbers become visible in their order.
GIVEN: Final = f"UPDATE line SET last = greatest(last, {NOW}) + $2 FROM turn RETURNING last"
APPEND: Final = f"""{TURN}, given AS ({GIVEN})
    INSERT INTO records SELECT given.last - $2 + one.step, one.body
    FROM given, unnest($3::bytea[], $4::bigint[]) AS one (body, step) RETURNING number"""
MARK: Final = f"{TURN} {GIVEN}"
READ: Final = "SELECT number, body FROM records WHERE number > $1 ORDER BY number LIMIT $2"
SPAN: Final = "SELECT after, last FROM line"
TRIM: Final = f"""{TURN}, dropped AS (
        DELETE FROM records USING turn WHERE number <= greatest(
            $2, coalesce((SELECT number FROM records ORDER BY number DESC OFFSET $3 LIMIT 1), 0)) RETURNING number),
    said AS (UPDATE line SET after = (SELECT max(number) FROM dropped) WHERE EXISTS (SELECT FROM dropped))
    SELECT count(*) FROM dropped"""
ACQUIRE: Final = f"""{TURN}
    INSERT INTO leases AS held (name, fence, ends)
    SELECT $2, {NOW}, clock_timestamp() + make_interval(secs => $3) FROM turn
    ON CONFLICT (name) DO UPDATE SET fence = greatest(held.fence + 1, excluded.fence), ends = excluded.ends
    WHERE held.ends <= clock_timestamp() RETURNING fence"""
RENEW: Final = f"""{TURN}
    UPDATE leases SET ends = clock_timestamp() + make_interval(secs => $4) FROM turn
    WHERE name = $2 AND fence = $3 AND ends > clock_timestamp() RETURNING true"""
HOLDS: Final = "SELECT true FROM leases WHERE name = $1 AND fence = $2 AND ends > clock_timestamp()"
# All of it, and all of another store. Ends in microseconds since 1970.
LARGEST_PAIR: Final = "SELECT coalesce(max(octet_length(value)), 0) FROM pairs"
LARGEST_RECORD: Final = "SELECT coalesce(max(octet_length(body)), 0) FROM records"
LARGEST_FENCE: Final = "SELECT coalesce(max(octet_length(name)), 0) FROM leases"
ALL_PAIRS: Final = "SELECT key, value, (extract(epoch FROM ends) * 1000000)::bigint FROM pairs ORDER BY key"
ALL_RECORDS: Final = "SELECT number, body FROM records ORDER BY number"
ALL_FENCES: Final = "SELECT name, fence FROM leases ORDER BY name"
IS_KEPT: Final = "SELECT EXISTS (SELECT FROM pairs) OR EXISTS (SELECT FROM records)"
PUT_PAIRS: Final = """
    INSERT INTO pairs SELECT key, value, 'epoch'::timestamptz + ends * interval '1 microsecond'
    FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS one (key, value, ends)"""
PUT_RECORDS: Final = "INSERT INTO records SELECT * FROM unnest($1::bigint[], $2::bytea[])"
PUT_FENCES: Final = """
    INSERT INTO leases AS held SELECT name, fence, clock_timestamp()
    FROM unnest($1::text[], $2::bigint[]) AS one (name, fence)
    ON CONFLICT (name) DO UPDATE SET fence = greatest(held.fence, excluded.fence)"""
PUT_SPAN: Final = "UPDATE line SET after = $1, last = $2"
