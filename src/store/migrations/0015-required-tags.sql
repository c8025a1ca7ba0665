-- Only those who run the site say which tags a key requires. A key that a member makes requires those of the key of its
-- account that was made last of all that require some.
CREATE INDEX api_key_tagged ON api_key (account_id) WHERE requires IS NOT NULL;
