// Who pays for which ending: one table, of which docs/who-pays.md is generated.
//
// Content that was delivered is paid for, also where the call was cut, unless the upstream itself failed. A failure
// without output is free. Each row says whether a caller can cause its ending, and what it would get for nothing.

import { assert } from '../base/assert.ts'
import type { Usage, UsageSource } from '../base/money/usage.ts'
import { inputTokens, noUsage, outputTokens } from '../base/money/usage.ts'

/** How a call can end, each with what that means. */
export const outcomes = {
  completed: 'The answer came to its end.',
  client_left: 'The caller closed its connection, or did not read from it for too long.',
  refused: 'We or the upstream refused the request.',
  upstream_failed: 'No upstream gave a usable answer, or one broke off.',
  over_bound:
    'A bound of the gateway ended the answer: it was too large or too deeply nested, or silent for too long in the ' +
    'middle.',
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
  /** Content of a stream was written to the caller, so that a fault of ours does not take it back. */
  readonly delivered: boolean
  /** The request let the provider run tools, which may reach servers of the caller's own. */
  readonly tools: boolean
  /** Not long before the end, the caller did not read, so that the upstream could not write. */
  readonly slow?: boolean
  /** Our own count of input and output. */
  estimate(): Usage
  /** Tokens that the model may have thought and not shown, on top of these many of output; never beyond the hold. */
  hidden(outputTokens: number): number
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
  delivered: { says: 'after content was written to the caller', holds: seen => seen.delivered },
  toolsUnanswered: {
    says: 'before content came, of a request that lets the provider run tools',
    holds: seen => seen.forwarded && !seen.content && seen.tools,
  },
  toolsAnswered: {
    says: 'after content came, of a request that lets the provider run tools',
    holds: seen => seen.content && seen.tools,
  },
  slowAnswered: {
    says: 'after content came, and after the caller had kept the upstream waiting',
    holds: seen => seen.content && seen.slow === true,
  },
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
  if (!content || (!stale && known > 0)) return [reported, 'reported']
  const counted = estimate()
  const missing = outputTokens(counted) - known
  return missing > 0 ? [withMissing(reported, counted, missing), 'estimated'] : [reported, 'reported']
}

/** So many more tokens of output, each of the kind of which the report has too few. */
function withMissing(reported: Usage, counted: Usage, missing: number): Usage {
  const usage: Record<string, number | undefined> = { ...reported }
  let rest = missing
  for (const kind of ['outputImage', 'outputAudio'] as const) {
    const more = Math.min(rest, (counted[kind] ?? 0) - (reported[kind] ?? 0))
    if (more <= 0) continue
    usage[kind] = (reported[kind] ?? 0) + more
    rest -= more
  }
  // What has written has read: a report of neither was made of units alone, such as pictures.
  const input = inputTokens(reported) === 0 ? counted.input : reported.input
  return { ...usage, input, output: reported.output + rest }
}

/** What is known or counted, and what the model may have thought unseen since the last report. */
function withHidden([usage, source]: Charged, { hidden }: Delivered): Charged {
  const unseen = hidden(outputTokens(usage))
  return unseen > 0 ? [{ ...usage, reasoning: (usage.reasoning ?? 0) + unseen }, 'estimated'] : [usage, source]
}

function reportedOrInput({ reported, estimate }: Delivered): Charged {
  return reported === undefined ? [{ input: estimate().input, output: 0 }, 'estimated'] : [reported, 'reported']
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
  reported_or_bound: {
    says: 'the reported usage, else an estimate; on top, what the model may have thought unseen since the last report',
    charged: seen => withHidden(reportedOrCounted(seen), seen),
  },
  reported_or_waited: {
    says: 'the reported usage, else the estimated input; on top, what the model may have thought unseen since then',
    charged: seen => withHidden(reportedOrInput(seen), seen),
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
  /** Whether a caller can cause this ending on purpose, and what it then gets for nothing. */
  readonly onPurpose: string
}

/** Of those of one outcome, the first whose condition holds decides. */
const rows = [
  [
    'completed_fallback',
    'completed',
    'fellBack',
    'reported_or_counted',
    'Only the attempt that answered is charged, whatever the failed ones cost us.',
    'It cannot make attempts fail. What failed ones cost us is ours; there are at most three, and a bound on retries.',
  ],
  [
    'completed',
    'completed',
    'reported',
    'reported_or_counted',
    'The provider knows best what it read and wrote.',
    'Paid in full.',
  ],
  [
    'completed_unreported',
    'completed',
    'unreported',
    'estimated',
    'An answer that was delivered is paid for. Its tokens are counted by its text, and the record says `estimated`.',
    'No: usage is asked for whatever the caller asks. A provider that never reports hides what its models think.',
  ],
  [
    'completed_empty',
    'completed',
    'empty',
    'reported',
    'The model read the request and had nothing to say; without a report there is nothing to go by.',
    'Yes, with a cap that leaves no room for an answer. It gets nothing, and pays what was reported.',
  ],
  ['left_unsent', 'client_left', 'unsent', 'nothing', 'Nobody has done any work for it.', 'Yes, and it gets nothing.'],
  [
    'left_waiting',
    'client_left',
    'unanswered',
    'reported_or_waited',
    'The provider reads the request as soon as it has it, thinks, and bills that to us.',
    'Yes, and it pays for what was read and thought. What a model that does not think wrote unseen reaches nobody.',
  ],
  [
    'left_reading',
    'client_left',
    'answered',
    'reported_or_bound',
    'Leaving early must not make an answer free, nor what was thought for it.',
    'Yes, and it pays for what it received and for what was thought.',
  ],
  [
    'refused_answered',
    'refused',
    'delivered',
    'reported_or_bound',
    'The upstream blamed the request in the middle of its answer. What had been delivered is paid for.',
    'Yes, by what it asks for (words that a filter stops, a call of a tool that cannot be read); it pays for it.',
  ],
  ['refused', 'refused', 'always', 'nothing', 'A refusal is no answer.', 'Yes, and it gets nothing.'],
  [
    'upstream_failed',
    'upstream_failed',
    'unanswered',
    'nothing',
    'A failed call without output is free, whatever the provider bills us.',
    'Hardly, and it gets nothing.',
  ],
  [
    'upstream_broke_off_tools',
    'upstream_failed',
    'toolsAnswered',
    'reported_or_bound',
    'A server of tools that the caller runs can make an upstream fail, so this is charged as if the caller had left.',
    'Yes, with a server of tools of its own; it pays for what it received.',
  ],
  [
    'upstream_broke_off_slow',
    'upstream_failed',
    'slowAnswered',
    'reported_or_bound',
    'An upstream that cannot write for too long gives up, so this is charged as if the caller had left.',
    'Yes, by not reading for more than a second in the last minute; it pays for what was received for it.',
  ],
  [
    'upstream_broke_off',
    'upstream_failed',
    'answered',
    'reported_output',
    'Half an answer is paid for only if the provider itself says what it came to.',
    'No: without tools, nothing of a caller that reads reaches the upstream after its request. Errors that blame ' +
      'the request are `refused_answered`, and bounds of ours `over_bound_answered`.',
  ],
  [
    'over_bound_tools',
    'over_bound',
    'toolsUnanswered',
    'reported_or_waited',
    'What the model wrote to its tools may have been what the caller was after.',
    'Yes, with a server of tools that says too much or nothing; it pays for what was read and for the time it took.',
  ],
  [
    'over_bound',
    'over_bound',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'Yes, by asking for an answer that is too large, and it gets nothing.',
  ],
  [
    'over_bound_answered',
    'over_bound',
    'answered',
    'reported_or_bound',
    'Everything up to the bound was delivered, and the upstream has not failed.',
    'Yes (a huge result of a tool, instructions that are repeated); it pays for what it received.',
  ],
  [
    'too_long_tools',
    'too_long',
    'toolsUnanswered',
    'reported_or_waited',
    'What the model wrote to its tools may have been what the caller was after.',
    'Yes, with a server of tools that does not answer; it pays for what was read and for the time it took.',
  ],
  [
    'too_long',
    'too_long',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'Yes, by asking a model that thinks for longer than a call may last. It gets nothing.',
  ],
  [
    'too_long_answered',
    'too_long',
    'answered',
    'reported_or_bound',
    'Everything up to the bound was delivered, so a longer answer is not cheaper than a shorter one.',
    'Yes, and it pays for what it received and for what was thought.',
  ],
  [
    'drained',
    'drained',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'No: only the operator stops the gateway. It gets nothing.',
  ],
  [
    'drained_delivered',
    'drained',
    'answered',
    'reported_or_bound',
    'What was delivered is paid for; the upstream had not failed.',
    'No, but it may know when the gateway is stopped; it pays for what it received.',
  ],
  ['revoked', 'revoked', 'unsent', 'nothing', 'Nobody has done any work for it.', 'Yes, and it gets nothing.'],
  [
    'revoked_waiting',
    'revoked',
    'unanswered',
    'reported_or_waited',
    'Whoever takes its own key away leaves, and pays as if it had left.',
    'Yes, who manages its own keys; it pays for what was read and thought.',
  ],
  [
    'revoked_answered',
    'revoked',
    'answered',
    'reported_or_bound',
    'What was delivered before the key was taken away is paid for, as if its caller had left.',
    'Yes, who manages its own keys; it pays for what it received and for what was thought.',
  ],
  [
    'gateway_fault_delivered',
    'gateway_fault',
    'delivered',
    'reported_or_counted',
    'What was delivered before our mistake is paid for; what could not be seen of it is ours to pay.',
    'Perhaps, by finding a mistake of ours; it pays for what it received.',
  ],
  [
    'gateway_fault',
    'gateway_fault',
    'always',
    'nothing',
    'Our mistakes are ours to pay.',
    'Perhaps, by finding a mistake of ours, and it gets nothing.',
  ],
  [
    'replayed',
    'replayed',
    'always',
    'nothing',
    'The call that made the answer has been charged.',
    'Yes: that is what an idempotency key is for. The answer is the one that was charged before.',
  ],
  ['task_reported', 'task_succeeded', 'reported', 'reported', 'The provider knows best what it made.', 'Paid in full.'],
  [
    'task_unreported',
    'task_succeeded',
    'unreported',
    'estimated',
    'A result that was given is paid for: by its size and length, and never for more than was held.',
    'No. Paid by what was asked for.',
  ],
  [
    'task_ended',
    'task_ended',
    'always',
    'nothing',
    'Without a result there is nothing to pay for.',
    'Yes, by cancelling it; it gets no result, and providers bill those that succeed.',
  ],
  [
    'task_lost',
    'task_lost',
    'always',
    'nothing',
    'Its caller was never given a result. An upstream that merely does not answer is asked again, for seven days.',
    'No, and it gets no result.',
  ],
  [
    'crash_delivered',
    'gateway_crash',
    'checkpointed',
    'checkpoint',
    'Never more than was delivered: a long stream leaves a checkpoint of that every few seconds.',
    'It should not be able to. What came after the last checkpoint, and what was thought, is ours to pay.',
  ],
  [
    'crash_undelivered',
    'gateway_crash',
    'always',
    'nothing',
    'Nothing shows that anything was delivered, or the caller may ask for the answer again with its idempotency key.',
    'It should not be able to. A stream shorter than the first checkpoint is ours to pay.',
  ],
] as const satisfies readonly (readonly [string, Outcome, Rule['when'], Rule['charge'], string, string])[]

export const rules: readonly Rule[] = rows.map(([id, outcome, when, charge, why, onPurpose]) => ({
  ...{ id, outcome, when, charge, why, onPurpose },
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
