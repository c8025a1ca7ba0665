import { words } from '../words.ts'

export const ledgerWords = words('ledger', {
  title: 'Ledger',
  intro: 'Every movement of money has two sides. Together all accounts must sum to exactly zero.',
  auditor: 'Auditor',
  auditorNote: 'The gateway adds up its books by itself, again and again.',
  agree: 'The books agree.',
  disagree: 'The books do not agree.',
  notYet: 'The auditor has not run yet.',
  audited: 'Last checked {time}',
  trialBalance: 'Trial balance',
  trialNote:
    'This browser adds the column up by itself, in whole nano-dollars. Choose one of the gateway\u2019s own accounts to see its statement.',
  account: 'Account',
  count: 'Accounts',
  balance: 'Balance',
  prepaid: 'Customers who pay in advance',
  postpaid: 'Customers who pay afterwards',
  sum: 'Sum',
  zero: { one: 'Sums to zero, after 1 transfer.', other: 'Sums to zero, after {n} transfers.' },
  notZero: 'The sum is {sum}, but it must be zero. Run "weir audit" on the gateway.',
  statementOf: 'Statement of {name}',
})
