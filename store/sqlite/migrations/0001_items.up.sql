CREATE TABLE meta (k TEXT PRIMARY KEY, v INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('running', 0);

-- A row is an item that is neither done nor dead. It is narrow, so that a million
-- of them are listed without reading their bodies, and has no index but seq.
CREATE TABLE inbox (
  seq INTEGER PRIMARY KEY, inst TEXT NOT NULL, conv TEXT NOT NULL, added INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL DEFAULT 0, reason TEXT) STRICT;
CREATE TABLE in_body (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY, inst TEXT NOT NULL, conv TEXT NOT NULL, added INTEGER NOT NULL,
  state INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL DEFAULT 0, reason TEXT) STRICT;
CREATE TABLE out_body (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- A row for each commit that gave numbers or ended items: the highest numbers and
-- how many items were there after it, the ids that it gave numbers, and the items
-- that it ended with the ranges of their numbers, 0 for none.
CREATE TABLE commits (
  n INTEGER PRIMARY KEY, at INTEGER NOT NULL,
  in_last INTEGER NOT NULL, out_last INTEGER NOT NULL,
  in_count INTEGER NOT NULL, out_count INTEGER NOT NULL,
  in_low INTEGER NOT NULL, in_high INTEGER NOT NULL,
  out_low INTEGER NOT NULL, out_high INTEGER NOT NULL,
  in_ids BLOB NOT NULL, out_ids BLOB NOT NULL, ends BLOB NOT NULL) STRICT;

-- n is the order of burial; box is 0 for the inbox and 1 for the outbox.
CREATE TABLE dead (
  n INTEGER PRIMARY KEY AUTOINCREMENT, box INTEGER NOT NULL, seq INTEGER NOT NULL,
  inst TEXT NOT NULL, conv TEXT NOT NULL, at INTEGER NOT NULL,
  attempts INTEGER NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX dead_seq ON dead (box, seq);
