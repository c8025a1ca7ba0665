import { words } from '../words.ts'

export const statementWords = words('statement', {
  title: 'Statement',
  made: 'Time',
  kind: 'Kind',
  kind_charge: 'Call',
  kind_shortfall: 'Not covered',
  kind_top_up: 'Top-up',
  kind_gift: 'Gift',
  kind_adjustment: 'Correction',
  kind_refund: 'Refund',
  kind_redemption: 'Code redeemed',
  kind_opening: 'Opening balance',
  ref: 'Belongs to',
  reference: 'Reference',
  with: 'Other account',
  author: 'By',
  amount: 'Amount',
  balance: 'Balance after',
  emptyTitle: 'No transfers yet',
  emptyText: 'Each call, top-up, gift and refund becomes a line here, with the balance after it.',
  agrees: {
    one: '1 line, sum {sum}: its balance agrees.',
    other: '{n} lines, sum {sum}: every balance agrees, added up in this browser.',
  },
  agreesPart: {
    one: '1 line, sum {sum}.',
    other: '{n} lines, sum {sum}: the balances of these lines agree, added up in this browser.',
  },
  sumOnly: { one: '1 line, sum {sum}.', other: '{n} lines, sum {sum}.' },
  daysAgree: {
    one: 'The lines of 1 closed day have the hash that was written at its end, computed in this browser.',
    other: 'The lines of {n} closed days have the hashes that were written at their ends, computed in this browser.',
  },
  daysDiffer:
    'The lines of {days} are not those that were hashed at the end of the day. Report this to the operator of the gateway.',
  daysInsecure: 'The hashes of closed days can be computed only over HTTPS.',
  disagrees:
    'The balance at {ref} is not the balance before it plus the amount. Report this to the operator of the gateway.',
})
