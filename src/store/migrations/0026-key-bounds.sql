-- A call with a key that a member has created reads the fewest calls a minute, and the tags, of all keys of its account that
-- an operator has limited. There may be many: the first is one row of an index now, and the second is read from the index
-- alone.
DROP INDEX api_key_limited;
DROP INDEX api_key_tagged;
CREATE INDEX api_key_limited ON api_key (account_id, qpm, id DESC) WHERE qpm IS NOT NULL;
CREATE INDEX api_key_tagged ON api_key (account_id, requires) WHERE requires IS NOT NULL;
