-- The transfers of an account in the order of the ledger, charges included: a statement is a walk along these indexes.
-- `transfer_to` leaves out charges because only the account `revenue` receives them, and its statement walks the table.

DROP INDEX transfer_from;
CREATE INDEX transfer_from ON transfer (debit);
