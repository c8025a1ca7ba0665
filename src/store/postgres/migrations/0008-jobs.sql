-- Work that only one process does at a time: jobs for all processes, the deliveries of one webhook, the polls of one task,
-- a response that is made in the background. A process has the work from the moment at which it has inserted the row until
-- it gives it back or is fenced. So a lease needs no time of its own: that of the process counts.
CREATE TABLE job_lease (
  name TEXT COLLATE "C" PRIMARY KEY,
  slot BIGINT NOT NULL,
  epoch BIGINT NOT NULL
) WITH (fillfactor = 50);
