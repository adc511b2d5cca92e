-- Who may use the API. The key itself is nowhere: `digest` is the SHA-256 of its secret.
CREATE TABLE api_keys (
    no          INTEGER PRIMARY KEY, -- order of creation
    id          TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    revoked_at  INTEGER
);
