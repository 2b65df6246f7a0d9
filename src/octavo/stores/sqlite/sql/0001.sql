-- Times are seconds since 1970, numbers of records microseconds.
CREATE TABLE pairs (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL, ends REAL);
CREATE INDEX pairs_by_end ON pairs (ends) WHERE ends IS NOT NULL;
CREATE TABLE records (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- The greatest number that was given, and that up to which records may be gone.
CREATE TABLE line (last INTEGER NOT NULL, after INTEGER NOT NULL);
CREATE TABLE leases (name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE hints (number INTEGER PRIMARY KEY AUTOINCREMENT, origin TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL);
