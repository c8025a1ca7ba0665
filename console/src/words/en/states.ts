import { words } from '../words.ts'

export const statesWords = words('states', {
  loading: 'Loading',
  failed: 'This could not be loaded',
  offline: 'The gateway cannot be reached',
  forbidden: 'You may not see this',
  forbiddenNote: 'It needs another role. Ask an owner or admin of this site, or a manager of the account.',
  notThere: 'Not found',
  notThereNote: 'It may have been deleted, or it belongs to an account that you are not a member of.',
  support: 'Get help',
  requestId: 'Request',
  tryAgain: 'Try again',
  tryAgainIn: 'Try again in {n} s',
  notFound: 'Page not found',
  notFoundText: 'The address may be wrong, or the page was moved.',
  toOverview: 'Go to the overview',
  pageFailed: 'This page failed',
  reload: 'Reload',
})
