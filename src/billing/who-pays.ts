// Decides what a call is charged for, by how it ended. One table, from which docs/reference/who-pays.md is generated.
//
// Delivered content is charged, also when the call was cut off, unless the upstream itself failed. A failure without
// output is free. Each row says whether a caller can cause this ending on purpose, and what it would get for free.

import { assert } from '../base/assert.ts'
import type { Usage, UsageSource } from '../base/money/usage.ts'
import { inputBuckets, inputTokens, noUsage, outputTokens } from '../base/money/usage.ts'

/** How a call can end, each with its meaning. */
export const outcomes = {
  completed: 'The answer is complete.',
  client_left: 'The caller closed its connection, or did not read from it for too long.',
  refused: 'We or the upstream refused the request.',
  upstream_failed: 'No upstream gave a usable answer, or the answer broke off.',
  over_bound:
    'A bound of the gateway ended the answer: it was too large or too deeply nested, or silent for too long in the ' +
    'middle; if the provider may run tools, also before its beginning.',
  too_long: 'The call reached the maximum duration of a call and was cut off.',
  out_of_funds: 'The balance or a budget was used up while the answer arrived, so that the answer was stopped.',
  drained: 'The gateway was shut down and could not wait for the call.',
  revoked: 'The call was cut off because its key was revoked.',
  gateway_fault:
    'The gateway had an internal error, could not write to its ledger, or closed a WebSocket because its memory was short.',
  replayed: 'The answer of an earlier call with the same idempotency key was sent again.',
  task_succeeded: 'A task at an upstream has produced its result.',
  task_ended: 'A task ended without a result: it failed, was cancelled, or expired.',
  task_lost: 'The end of a task is unknown: its upstream no longer knows it, or it took too long.',
  gateway_crash: 'The gateway crashed during the call; the next start settles the call.',
} as const satisfies Record<string, string>

export type Outcome = keyof typeof outcomes

/** The facts about a finished call that decide its charge. */
export interface FinishedCall {
  readonly outcome: Outcome
  /** Whether bytes of the request were sent upstream. */
  readonly isForwarded: boolean
  /** Whether content of the model has arrived. */
  readonly hasContent: boolean
  /** Whether another attempt failed before this one. */
  readonly fellBack: boolean
  readonly reported: Usage | undefined
  /** Whether content arrived after the last usage report. */
  readonly isReportOutdated: boolean
  /** Whether content of a stream was sent to the caller, so that an internal error does not make it free. */
  readonly isDelivered: boolean
  /** Whether the request lets the provider run tools, which may reach servers of the caller. */
  readonly hasProviderTools: boolean
  /** Whether the caller did not read shortly before the end, so that the upstream could not write. */
  readonly wasReaderSlow?: boolean
  /** Whether the price has a fee for a unit that the request contains, such as seconds of audio: that is its input. */
  hasInputFee?(): boolean
  /** Our own count of input and output tokens. */
  estimate(): Usage
  /** The input tokens that are charged at least, where only a final report could tell the input and none came; else 0. */
  unreportedInput?(): number
  /** Reasoning tokens that the model may have used unseen, besides this many output tokens; limited by the hold. */
  estimateHidden(outputTokens: number): number
}

interface Condition {
  readonly text: string
  holds(call: FinishedCall): boolean
}

const conditions = {
  always: { text: 'in any case', holds: () => true },
  unsent: { text: 'before any byte of the request was sent upstream', holds: call => !call.isForwarded },
  unanswered: { text: 'before content arrived', holds: call => !call.hasContent },
  answered: { text: 'after content arrived', holds: call => call.hasContent },
  delivered: { text: 'after content was sent to the caller', holds: call => call.isDelivered },
  toolsUnanswered: {
    text: 'before content arrived, if the request lets the provider run tools',
    holds: call => call.isForwarded && !call.hasContent && call.hasProviderTools,
  },
  toolsAnswered: {
    text: 'after content arrived, if the request lets the provider run tools',
    holds: call => call.hasContent && call.hasProviderTools,
  },
  toolsWorked: {
    text: 'after a report or a wait that shows work, if the request lets the provider run tools',
    holds: call =>
      call.isForwarded && call.hasProviderTools && (call.reported !== undefined || call.estimateHidden(0) > 0),
  },
  slowAnswered: {
    text: 'after content arrived, if the caller had kept the upstream waiting',
    holds: call => call.hasContent && call.wasReaderSlow === true,
  },
  fellBack: { text: 'after another attempt had failed', holds: call => call.hasContent && call.fellBack },
  reported: { text: 'with usage reported', holds: call => call.hasContent && call.reported !== undefined },
  unreported: { text: 'without plausible usage', holds: call => call.hasContent && !call.reported },
  empty: { text: 'without content', holds: call => !call.hasContent },
  checkpointed: { text: 'after a checkpoint', holds: call => call.hasContent },
} as const satisfies Record<string, Condition>

type UsageAndSource = readonly [usage: Usage, source: UsageSource]

const nothing: UsageAndSource = [noUsage, 'none']

interface Charge {
  readonly text: string
  charged(call: FinishedCall): UsageAndSource
}

/** The last report may be older than the last content, or contain no output. Then the missing output is estimated. */
function reportedOrCounted({ reported, hasContent, isReportOutdated, estimate }: FinishedCall): UsageAndSource {
  if (reported === undefined) return [estimate(), 'estimated']
  const reportedOutput = outputTokens(reported)
  if (!hasContent || (!isReportOutdated && reportedOutput > 0)) return [reported, 'reported']
  const counted = estimate()
  const missing = outputTokens(counted) - reportedOutput
  const hasUnitsOnly = reportedOutput === 0 && inputTokens(reported) === 0 && inputTokens(counted) > 0
  if (missing <= 0 && !hasUnitsOnly) return [reported, 'reported']
  return [addMissing(reported, counted, Math.max(0, missing)), 'estimated']
}

/** Adds missing output tokens to a report, first to the kinds of which it has too few. */
function addMissing(reported: Usage, counted: Usage, missing: number): Usage {
  const usage: Record<string, number | undefined> = { ...reported }
  let rest = missing
  for (const kind of ['outputImage', 'outputAudio'] as const) {
    const more = Math.min(rest, (counted[kind] ?? 0) - (reported[kind] ?? 0))
    if (more <= 0) continue
    usage[kind] = (reported[kind] ?? 0) + more
    rest -= more
  }
  // A model that wrote has also read. A report without input counts only units, such as images.
  const input = inputTokens(reported) === 0 ? inputOf(counted) : {}
  return { ...usage, input: reported.input, ...input, output: reported.output + rest }
}

/** The tokens that were read, of each kind. */
function inputOf(usage: Usage): Pick<Usage, 'input'> & Partial<Usage> {
  const read = inputBuckets.filter(bucket => usage[bucket] !== undefined).map(bucket => [bucket, usage[bucket]])
  return { input: 0, ...(Object.fromEntries(read) as Partial<Usage>) }
}

/** Adds the reasoning tokens that the model may have used unseen since the last report. */
function addHidden([usage, source]: UsageAndSource, { estimateHidden }: FinishedCall): UsageAndSource {
  const unseen = estimateHidden(outputTokens(usage))
  return unseen > 0 ? [{ ...usage, reasoning: (usage.reasoning ?? 0) + unseen }, 'estimated'] : [usage, source]
}

/** Some upstreams report the input only at the end. An answer that ended earlier has used it, too. */
function addInput(charged: UsageAndSource, call: FinishedCall): UsageAndSource {
  const [usage, source] = addEstimatedInput(charged, call)
  const missing = (call.unreportedInput?.() ?? 0) - inputTokens(usage)
  if (missing <= 0) return [usage, source]
  const { longestInput: _before, ...rest } = usage
  return [{ ...rest, input: usage.input + missing }, 'estimated']
}

function addEstimatedInput([usage, source]: UsageAndSource, { estimate }: FinishedCall): UsageAndSource {
  if (inputTokens(usage) > 0) return [usage, source]
  const input = inputOf(estimate())
  return inputTokens({ ...input, output: 0 }) > 0 ? [{ ...usage, ...input }, 'estimated'] : [usage, source]
}

const reportedOrNothing = ({ reported }: FinishedCall): UsageAndSource =>
  reported === undefined ? nothing : [reported, 'reported']

/** Units of the request are counted for what is charged by an estimate. */
const reportedOrInputFee = (call: FinishedCall): UsageAndSource =>
  call.reported === undefined && call.hasInputFee?.() ? [noUsage, 'estimated'] : reportedOrNothing(call)

export const charges = {
  nothing: { text: 'nothing', charged: () => nothing },
  reported: {
    text: 'the reported usage; nothing if none was reported',
    charged: reportedOrNothing,
  },
  reported_output: {
    text: 'the reported usage if it contains output, else nothing; never an estimate',
    charged: ({ reported }) =>
      reported === undefined || outputTokens(reported) === 0 ? nothing : [reported, 'reported'],
  },
  estimated: {
    text: 'an estimate',
    charged: ({ estimate }) => [estimate(), 'estimated'],
  },
  reported_or_counted: {
    text: 'the reported usage, else an estimate; missing output is estimated if the report came too early or has none',
    charged: reportedOrCounted,
  },
  reported_or_bound: {
    text:
      'the reported usage, else an estimate, also of an input that is not reported yet (or what was held for ' +
      'it); in addition, possible unseen reasoning since the last report',
    charged: call => addHidden(addInput(reportedOrCounted(call), call), call),
  },
  reported_or_waited: {
    text: 'the reported usage, else the estimated input; in addition, possible unseen reasoning',
    charged: call => addHidden(addInput(reportedOrInputFee(call), call), call),
  },
  // The recovery after a crash applies this charge. It knows nothing else about the call.
  checkpoint: {
    text: 'an estimate of the input and of what was delivered up to the last checkpoint, also if usage was reported',
    charged: () => {
      throw new Error('only the recovery after a crash charges by checkpoint')
    },
  },
} as const satisfies Record<string, Charge>

export interface ChargeRule {
  /** Written into the record of each call. An id never changes its meaning. */
  readonly id: string
  readonly outcome: Outcome
  readonly when: keyof typeof conditions
  readonly charge: keyof typeof charges
  readonly why: string
  /** Whether a caller can cause this ending on purpose, and what it then gets for free. */
  readonly onPurpose: string
}

/** Among the rows of one outcome, the first whose condition holds decides. */
const rows = [
  [
    'completed_fallback',
    'completed',
    'fellBack',
    'reported_or_counted',
    'Only the attempt that answered is charged. What failed attempts cost is paid by the operator.',
    'No: a caller cannot make attempts fail. There are at most three attempts, and retries are limited.',
  ],
  ['completed', 'completed', 'reported', 'reported_or_counted', 'The provider knows its usage best.', 'Paid in full.'],
  [
    'completed_unreported',
    'completed',
    'unreported',
    'estimated',
    'A delivered answer is charged. Its tokens are estimated from its text, and the record says `estimated`.',
    'No: the gateway always asks for usage. Reasoning is not charged at a provider that never reports usage.',
  ],
  [
    'completed_empty',
    'completed',
    'empty',
    'reported',
    'The model read the request and wrote nothing. Without a report there is no basis for a charge.',
    'Yes, with a token limit that leaves no room for an answer. The caller gets nothing and pays the reported usage.',
  ],
  [
    'left_unsent',
    'client_left',
    'unsent',
    'nothing',
    'No upstream has worked for the call.',
    'Yes, but the caller gets nothing.',
  ],
  [
    'left_waiting',
    'client_left',
    'unanswered',
    'reported_or_waited',
    'The provider reads the request, reasons, and bills both to the operator.',
    'Yes, and the caller pays for input and reasoning. Output that the model wrote unseen reaches nobody.',
  ],
  [
    'left_reading',
    'client_left',
    'answered',
    'reported_or_bound',
    'Leaving early must not make the answer or its reasoning free.',
    'Yes, and the caller pays for what it received, for the reasoning, and for all that tools can have read.',
  ],
  [
    'refused_answered',
    'refused',
    'delivered',
    'reported_or_bound',
    'The upstream blamed the request in the middle of its answer. The delivered part is charged.',
    'Yes, by its request (text that a filter blocks, a malformed tool call); the caller pays for what it received.',
  ],
  [
    'refused_tools',
    'refused',
    'toolsWorked',
    'reported_or_waited',
    'The caller may have wanted only what the model wrote to the tools.',
    'Yes, with a tool server whose result makes the upstream refuse; the caller pays for the input and for the time. A ' +
      'refusal within a second is free: the upstream has only checked the request.',
  ],
  ['refused', 'refused', 'always', 'nothing', 'A refusal is not an answer.', 'Yes, but the caller gets nothing.'],
  [
    'upstream_broke_off_tools',
    'upstream_failed',
    'toolsAnswered',
    'reported_or_bound',
    'A tool server of the caller can make an upstream fail, so this is charged as if the caller had left. Only the ' +
      'upstream itself can fail a call whose only tool is a search, so its input is estimated.',
    'Yes, with a tool server of its own; the caller pays for what it received, and for all that tools can have read.',
  ],
  [
    'upstream_failed_tools',
    'upstream_failed',
    'toolsWorked',
    'reported_or_waited',
    'The caller may have wanted only what the model wrote to the tools.',
    'Yes, with a tool server that makes the upstream fail; the caller pays for the input and for the time. No other ' +
      'channel is tried, which would run the tools again.',
  ],
  [
    'upstream_failed',
    'upstream_failed',
    'unanswered',
    'nothing',
    'A failed call without output is free, also if the provider bills it.',
    'Hardly, and the caller gets nothing.',
  ],
  [
    'upstream_broke_off_slow',
    'upstream_failed',
    'slowAnswered',
    'reported_or_bound',
    'An upstream that cannot write for a long time gives up, so this is charged as if the caller had left.',
    'Yes, by not reading for more than a second in the last minute; the caller pays for what the gateway received.',
  ],
  [
    'upstream_broke_off',
    'upstream_failed',
    'answered',
    'reported_output',
    'An incomplete answer is charged only if the provider itself reports its usage.',
    'No: without tools, a caller that keeps reading cannot influence the upstream after its request. Errors that ' +
      'blame the request are `refused_answered`, and bounds of the gateway are `over_bound_answered`.',
  ],
  [
    'over_bound_tools',
    'over_bound',
    'toolsUnanswered',
    'reported_or_waited',
    'The caller may have wanted only what the model wrote to the tools.',
    'Yes, with a tool server that sends too much or nothing; the caller pays for the input and for the time.',
  ],
  [
    'over_bound',
    'over_bound',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'Yes, by asking for an answer that is too large, but the caller gets nothing.',
  ],
  [
    'over_bound_answered',
    'over_bound',
    'answered',
    'reported_or_bound',
    'The answer was delivered up to the bound, and the upstream has not failed.',
    'Yes (a huge tool result, repeated instructions); the caller pays for what it received.',
  ],
  [
    'too_long_tools',
    'too_long',
    'toolsUnanswered',
    'reported_or_waited',
    'The caller may have wanted only what the model wrote to the tools.',
    'Yes, with a tool server that does not answer; the caller pays for the input and for the time.',
  ],
  [
    'too_long',
    'too_long',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'Yes, with a model that reasons for longer than a call may last. The caller gets nothing.',
  ],
  [
    'too_long_answered',
    'too_long',
    'answered',
    'reported_or_bound',
    'The answer was delivered up to the time limit. A longer answer must not be cheaper than a shorter one.',
    'Yes, and the caller pays for what it received and for the reasoning.',
  ],
  [
    'out_of_funds_waiting',
    'out_of_funds',
    'unanswered',
    'reported_or_waited',
    'The provider reads the request, reasons, and bills both to the operator.',
    'Yes, with little money and a model that reasons for long; the caller gets nothing and pays all that was reserved.',
  ],
  [
    'out_of_funds',
    'out_of_funds',
    'delivered',
    'reported_or_bound',
    'The answer was delivered up to the last piece that was reserved. The next piece is withheld, and charged as far as ' +
      'money was reserved for it, because the provider bills it.',
    'Yes, and the caller pays all that was reserved.',
  ],
  [
    'out_of_funds_withheld',
    'out_of_funds',
    'answered',
    'reported_or_bound',
    'The funds do not cover the first piece of the answer, or a whole answer that did not arrive as a stream. It is ' +
      'withheld. It is charged as far as money was reserved, because the provider bills it.',
    'Yes, with little money; the caller gets nothing and pays all that was reserved. The operator pays the rest. For an ' +
      'hour, calls of this account to this model then reserve their highest possible cost.',
  ],
  [
    'drained',
    'drained',
    'unanswered',
    'nothing',
    'A failed call without output is free.',
    'No: only the operator stops the gateway. The caller gets nothing.',
  ],
  [
    'drained_delivered',
    'drained',
    'answered',
    'reported_or_bound',
    'What was delivered is charged; the upstream had not failed. The input is estimated if it is not reported.',
    'No, but a caller may know when the gateway is stopped; it pays for what it received.',
  ],
  [
    'revoked',
    'revoked',
    'unsent',
    'nothing',
    'No upstream has worked for the call.',
    'Yes, but the caller gets nothing.',
  ],
  [
    'revoked_waiting',
    'revoked',
    'unanswered',
    'reported_or_waited',
    'A caller that revokes its own key pays as if it had left.',
    'Yes, if the caller manages its own keys; it pays for input and reasoning.',
  ],
  [
    'revoked_answered',
    'revoked',
    'answered',
    'reported_or_bound',
    'What was delivered before the key was revoked is charged, as if the caller had left.',
    'Yes, if the caller manages its own keys; it pays for what it received and for the reasoning.',
  ],
  [
    'gateway_fault_delivered',
    'gateway_fault',
    'delivered',
    'reported_or_counted',
    'What was delivered before the internal error is charged; the operator pays for unseen reasoning.',
    'Perhaps, by finding a bug of the gateway; the caller pays for what it received.',
  ],
  [
    'gateway_fault',
    'gateway_fault',
    'always',
    'nothing',
    'The operator pays for errors of the gateway.',
    'Perhaps, by finding a bug of the gateway or by filling its memory, but the caller gets nothing.',
  ],
  [
    'replayed',
    'replayed',
    'always',
    'nothing',
    'The call that produced the answer has been charged.',
    'Yes: idempotency keys exist for this. The answer was charged before.',
  ],
  [
    'task_reported',
    'task_succeeded',
    'reported',
    'reported',
    'The provider knows best what it produced.',
    'Paid in full.',
  ],
  [
    'task_unreported',
    'task_succeeded',
    'unreported',
    'estimated',
    'A delivered result is charged by its size and length, and never more than was held.',
    'No. The charge follows from the request.',
  ],
  [
    'task_ended',
    'task_ended',
    'always',
    'nothing',
    'A task without a result is free.',
    'Yes, by cancelling the task; the caller gets no result, and providers bill only tasks that succeed.',
  ],
  [
    'task_lost',
    'task_lost',
    'always',
    'nothing',
    'The caller never got a result. An upstream that only does not answer is asked again for seven days.',
    'No, and the caller gets no result.',
  ],
  [
    'crash_delivered',
    'gateway_crash',
    'checkpointed',
    'checkpoint',
    'Never more than was delivered: a long stream writes a checkpoint every few seconds.',
    'It should not be possible. The operator pays for what came after the last checkpoint and for the reasoning.',
  ],
  [
    'crash_undelivered',
    'gateway_crash',
    'always',
    'nothing',
    'There is no proof of a delivery, or the caller may request the answer again with its idempotency key.',
    'It should not be possible. The operator pays for a stream that ends before its first checkpoint.',
  ],
] as const satisfies readonly (readonly [string, Outcome, ChargeRule['when'], ChargeRule['charge'], string, string])[]

export const chargeRules: readonly ChargeRule[] = rows.map(([id, outcome, when, charge, why, onPurpose]) => ({
  id,
  outcome,
  when,
  charge,
  why,
  onPurpose,
}))

/** The texts of a condition and of a charge, for the documentation. */
export const whenText = ({ when }: ChargeRule): string => conditions[when].text
export const chargeText = ({ charge }: ChargeRule): string => charges[charge].text

export interface ChargedUsage {
  readonly usage: Usage
  readonly source: UsageSource
  /** The id of the rule that applied. */
  readonly rule: string
}

/** The usage to charge for a finished call. */
export function decideCharge(call: FinishedCall): ChargedUsage {
  for (const { id, outcome, when, charge } of chargeRules) {
    if (outcome !== call.outcome || !conditions[when].holds(call)) continue
    const [usage, source] = charges[charge].charged(call)
    return { usage, source, rule: id }
  }
  assert(false, 'every outcome must have a rule')
}
