import { words } from '../words.ts'

/** How calls end, in a word or two. The keys are the outcomes of src/billing/who-pays.ts. */
export const outcomeWords = words('outcomes', {
  completed: 'completed',
  client_left: 'caller disconnected',
  refused: 'refused',
  upstream_failed: 'upstream failed',
  over_bound: 'too large or silent too long',
  too_long: 'took too long',
  out_of_funds: 'out of funds',
  drained: 'gateway stopped',
  revoked: 'key revoked',
  gateway_fault: 'gateway fault',
  replayed: 'replayed',
  task_succeeded: 'task succeeded',
  task_ended: 'task ended',
  task_lost: 'task lost',
  gateway_crash: 'gateway crashed',
})
