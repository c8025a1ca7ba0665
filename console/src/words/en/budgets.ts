import { words } from '../words.ts'

export const budgetsWords = words('budgets', {
  noneOfAccount: 'No budget. The keys of this account may spend all that the balance allows.',
  noneOfKey: 'No budget. The key may spend all that the account has.',
  span: 'For',
  span_day: 'Each day (UTC)',
  span_month: 'Each month (UTC)',
  span_total: 'In total',
  spanFixed: 'To change the time, add another budget.',
  cap: 'At most',
  capHint: 'US dollars. Calls that may cost more than what is left are refused.',
  add: 'Add budget',
  change: 'Change budget',
  remove: 'Remove budget',
  removeTitle: 'Remove the budget "{span}"?',
  removeText: 'Calls are then bounded only by the balance and by other budgets.',
  save: 'Save budget',
  saved: 'Budget saved',
  leftOf: '{left} of {cap} left',
  spentHeld: '{spent} spent, {held} held for calls under way',
  resets: 'begins again at {time}',
})
