-- What other processes ask of the process that makes a response in the background: that it stores the events so far, or ends
-- the response.
ALTER TABLE job_lease ADD COLUMN asked TEXT COLLATE "C" CHECK (asked IN ('events', 'cancel', 'delete'));
