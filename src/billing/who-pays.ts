// Who pays for which ending: one table, of which docs/who-pays.md is generated. A failure of ours or of the provider
// is never billed on an estimate, and one that gave no output is never billed at all.

import { assert } from '../base/assert.ts'
import type { Usage, UsageSource } from '../base/usage.ts'
import { noUsage, outputTokens } from '../base/usage.ts'

/** How a call can end, each with what that means. */
export const outcomes = {
  completed: 'The answer came to its end.',
  client_left: 'The caller closed its connection, or did not read from it for too long.',
  refused: 'We or the upstream refused the request.',
  upstream_failed: 'No upstream gave a usable answer, or one broke off.',
  too_long: 'The call was cut by the bound on how long any may take.',
  drained: 'The call was cut by a shutdown that could not wait for it.',
  revoked: 'The call was cut because its key was revoked.',
  gateway_fault: 'The gateway made a mistake, or could not write to its ledger.',
  replayed: 'The answer of an earlier call with the same idempotency key was given again.',
  task_succeeded: 'A task that an upstream worked on has given its result.',
  task_ended: 'A task ended without a result: it failed, was cancelled, or expired.',
  task_lost: 'Nobody can tell any more how a task ended: its upstream has forgotten it, or it took too long.',
  gateway_crash: 'The gateway died during the call; the next start settles it.',
} as const satisfies Record<string, string>

export type Outcome = keyof typeof outcomes

/** What is known of a call when it is over. */
export interface Delivered {
  readonly outcome: Outcome
  /** Bytes of the request went upstream. */
  readonly forwarded: boolean
  /** The model wrote something that reached us. */
  readonly content: boolean
  /** An attempt failed before this one. */
  readonly fellBack: boolean
  readonly reported: Usage | undefined
  /** Words came after the last report. */
  readonly stale: boolean
  /** Our own count of input and output. */
  estimate(): Usage
}

interface Condition {
  readonly says: string
  holds(seen: Delivered): boolean
}

const conditions = {
  always: { says: 'in any case', holds: () => true },
  unsent: { says: 'before any byte of the request went upstream', holds: seen => !seen.forwarded },
  unanswered: { says: 'before content came', holds: seen => !seen.content },
  answered: { says: 'after content came', holds: seen => seen.content },
  fellBack: { says: 'after another attempt had failed', holds: seen => seen.content && seen.fellBack },
  reported: { says: 'with usage reported', holds: seen => seen.content && seen.reported !== undefined },
  unreported: { says: 'without usage that can be believed', holds: seen => seen.content && !seen.reported },
  empty: { says: 'with nothing in it', holds: seen => !seen.content },
  checkpointed: { says: 'after a checkpoint', holds: seen => seen.content },
} as const satisfies Record<string, Condition>

type Charged = readonly [usage: Usage, source: UsageSource]

const nothing: Charged = [noUsage, 'none']

interface Charge {
  readonly says: string
  charged(seen: Delivered): Charged
}

/** The last report may be older than the last word, or know of none. What it says is kept, and the rest is counted. */
function reportedOrCounted({ reported, content, stale, estimate }: Delivered): Charged {
  if (reported === undefined) return [estimate(), 'estimated']
  const known = outputTokens(reported)
  const missing = content && (stale || known === 0) ? estimate().output - known : 0
  return missing > 0 ? [{ ...reported, output: reported.output + missing }, 'estimated'] : [reported, 'reported']
}

export const charges = {
  nothing: { says: 'nothing', charged: () => nothing },
  reported: {
    says: 'the reported usage; nothing if none was reported',
    charged: ({ reported }) => (reported === undefined ? nothing : [reported, 'reported']),
  },
  reported_output: {
    says: 'the reported usage if it has output, else nothing; never an estimate',
    charged: ({ reported }) =>
      reported === undefined || outputTokens(reported) === 0 ? nothing : [reported, 'reported'],
  },
  estimated: {
    says: 'an estimate',
    charged: ({ estimate }) => [estimate(), 'estimated'],
  },
  reported_or_counted: {
    says: 'the reported usage, else an estimate; also of the output alone, if the report came before it or has none',
    charged: reportedOrCounted,
  },
  reported_or_input: {
    says: 'the reported usage, else the estimated input',
    charged: ({ reported, estimate }) =>
      reported === undefined ? [{ input: estimate().input, output: 0 }, 'estimated'] : [reported, 'reported'],
  },
  // By the recovery, which knows nothing else of the call.
  checkpoint: {
    says: 'what had been delivered at the last checkpoint, estimated if that was not reported',
    charged: () => {
      throw new Error('what a crash left is charged by its recovery')
    },
  },
} as const satisfies Record<string, Charge>

export interface Rule {
  /** Stands in the record of each call, and never changes its meaning. */
  readonly id: string
  readonly outcome: Outcome
  readonly when: keyof typeof conditions
  readonly charge: keyof typeof charges
  readonly why: string
}

/** Of those of one outcome, the first whose condition holds decides. */
const rows = [
  ['completed_fallback', 'completed', 'fellBack', 'reported_or_counted',
    'Only the attempt that answered is charged, whatever the failed ones cost us.'],
  ['completed', 'completed', 'reported', 'reported_or_counted', 'The provider knows best what it read and wrote.'],
  ['completed_unreported', 'completed', 'unreported', 'estimated',
    'An answer that was delivered is paid for. Four bytes count as a token, and the record says that it is estimated.'],
  ['completed_empty', 'completed', 'empty', 'reported',
    'The model read the request and had nothing to say; without a report there is nothing to go by.'],
  ['left_unsent', 'client_left', 'unsent', 'nothing', 'Nobody has done any work for it.'],
  ['left_waiting', 'client_left', 'unanswered', 'reported_or_input',
    'The provider reads the request as soon as it has it, and bills that to us.'],
  ['left_reading', 'client_left', 'answered', 'reported_or_counted',
    'Leaving early must not make an answer free. What was received is counted where no usage came.'],
  ['refused', 'refused', 'always', 'nothing', 'A refusal is no answer.'],
  ['upstream_failed', 'upstream_failed', 'unanswered', 'nothing',
    'A failed call without output is free, whatever the provider bills us.'],
  ['upstream_broke_off', 'upstream_failed', 'answered', 'reported_output',
    'Half an answer is paid for only if the provider itself says what it came to.'],
  ['too_long', 'too_long', 'unanswered', 'nothing', 'A failed call without output is free.'],
  ['too_long_answered', 'too_long', 'answered', 'reported_or_counted',
    'Everything up to the bound was delivered, so a longer answer is not cheaper than a shorter one.'],
  ['drained', 'drained', 'unanswered', 'nothing', 'A failed call without output is free.'],
  ['drained_answered', 'drained', 'answered', 'reported_output',
    'We cut it, so we do not estimate what it may have been worth.'],
  ['revoked', 'revoked', 'unanswered', 'nothing', 'A failed call without output is free.'],
  ['revoked_answered', 'revoked', 'answered', 'reported_or_counted',
    'What was delivered before the key was taken away is paid for, as if its caller had left.'],
  ['gateway_fault', 'gateway_fault', 'always', 'nothing', 'Our mistakes are ours to pay.'],
  ['replayed', 'replayed', 'always', 'nothing', 'The call that made the answer has been charged.'],
  ['task_reported', 'task_succeeded', 'reported', 'reported', 'The provider knows best what it made.'],
  ['task_unreported', 'task_succeeded', 'unreported', 'estimated',
    'A result that was given is paid for: by its size and length, and never for more than was held.'],
  ['task_ended', 'task_ended', 'always', 'nothing', 'Without a result there is nothing to pay for.'],
  ['task_lost', 'task_lost', 'always', 'nothing',
    'Its caller was never given a result. An upstream that merely does not answer is asked again, for seven days.'],
  ['crash_delivered', 'gateway_crash', 'checkpointed', 'checkpoint',
    'Never more than was delivered: a long stream leaves a checkpoint of that every few seconds.'],
  ['crash_undelivered', 'gateway_crash', 'always', 'nothing',
    'Nothing shows that anything was delivered, or the caller may ask for the answer again with its idempotency key.'],
] as const satisfies readonly (readonly [string, Outcome, Rule['when'], Rule['charge'], string])[]

export const rules: readonly Rule[] = rows.map(([id, outcome, when, charge, why]) => ({
  ...{ id, outcome, when, charge, why },
}))

/** What a condition and a charge mean, in words. */
export const whenText = ({ when }: Rule): string => conditions[when].says
export const chargeText = ({ charge }: Rule): string => charges[charge].says

export interface ChargedUsage {
  readonly usage: Usage
  readonly source: UsageSource
  /** The id of the rule that decided. */
  readonly rule: string
}

export function chargedUsage(seen: Delivered): ChargedUsage {
  for (const { id, outcome, when, charge } of rules) {
    if (outcome !== seen.outcome || !conditions[when].holds(seen)) continue
    const [usage, source] = charges[charge].charged(seen)
    return { usage, source, rule: id }
  }
  assert(false, 'every ending has a rule')
}
