-- What more a key, an account and a tier can be told.
SELECT 1;
