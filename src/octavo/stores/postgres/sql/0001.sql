-- Numbers of records and fencing numbers are microseconds since 1970.
CREATE TABLE pairs (key text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, ends timestamptz);
CREATE INDEX pairs_by_end ON pairs (ends) WHERE ends IS NOT NULL;
CREATE TABLE records (number bigint PRIMARY KEY, body bytea NOT NULL);
-- The greatest number that was given, and that up to which records may be gone.
CREATE TABLE line (one boolean PRIMARY KEY DEFAULT true CHECK (one), last bigint NOT NULL, after bigint NOT NULL);
INSERT INTO line (last, after) SELECT now, now FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now) AS begun;
CREATE TABLE leases (name text COLLATE "C" PRIMARY KEY, fence bigint NOT NULL, ends timestamptz NOT NULL);
