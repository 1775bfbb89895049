DROP TABLE dead;
DROP TABLE commits;
DROP TABLE out_body;
DROP TABLE outbox;
DROP TABLE in_body;
DROP TABLE inbox;
DROP TABLE meta;
