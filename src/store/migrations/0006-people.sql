-- People: users, sessions, members of accounts, invitations.
SELECT 1;
