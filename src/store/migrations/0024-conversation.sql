-- Which conversation a call is a turn of: a short id that says nothing about its text. There is no index: a search has the key
-- and a time, and reads the records of that key.
ALTER TABLE record ADD COLUMN conversation TEXT;
