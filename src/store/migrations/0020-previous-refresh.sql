-- The answer to a renewal can be lost. So the token before stays valid until its successor is used for the first time.
ALTER TABLE session ADD COLUMN previous BLOB CHECK (length(previous) = 32);
