import { words } from '../words.ts'

export const ledgerWords = words('ledger', {
  title: 'Ledger',
  intro: 'Each transfer moves an amount from one account to another. The sum of all accounts must be exactly zero.',
  auditor: 'Ledger audit',
  auditorNote: 'The gateway checks its ledger by itself, at regular intervals.',
  consistent: 'The ledger is consistent.',
  inconsistent: 'The ledger is not consistent.',
  notYet: 'Not checked yet.',
  audited: 'Last checked {time}',
  trialBalance: 'Trial balance',
  trialNote:
    'This browser adds the column up by itself, in whole nano-dollars. Choose one of the gateway\u2019s own accounts to see its statement.',
  account: 'Account',
  count: 'Accounts',
  balance: 'Balance',
  prepaid: 'Prepaid accounts',
  postpaid: 'Postpaid accounts',
  sum: 'Sum',
  zero: { one: 'Sums to zero, after 1 transfer.', other: 'Sums to zero, after {n} transfers.' },
  notZero: 'The sum is {sum}, but it must be zero. Run "weir audit" on the gateway.',
  statementOf: 'Statement of {name}',
})
