// Which channel is tried next. Pure: channels and attempts come as plain data.

export interface Tried {
  readonly channelId: string
  /** `<provider>/<model>`, where the same channel may be tried with another. */
  readonly model?: string | undefined
  readonly verdict: Verdict
}

/** What an attempt came to. Only `next` verdicts may be followed by another attempt. */
export type Verdict =
  | 'answered'
  | 'caller_at_fault' // the upstream refused the caller's own request: another channel would too
  | 'credential_bad'
  | 'rate_limited'
  | 'quota_spent' // nothing is left to be had for this credential until somebody pays, or for long
  | 'not_here' // this channel does not have the model; another may
  | 'broken'
  | 'too_slow'

const FINAL: ReadonlySet<Verdict> = new Set(['answered', 'caller_at_fault'])

/** The next channel in order, or undefined when trying on is useless or not allowed. */
export function nextChannel<Channel extends { readonly id: string }>(
  channels: readonly Channel[],
  tried: readonly Tried[],
  attemptsMax: number,
): Channel | undefined {
  if (tried.length >= attemptsMax) return undefined
  if (tried.some(attempt => FINAL.has(attempt.verdict))) return undefined
  return channels.find(channel => !tried.some(attempt => attempt.channelId === channel.id))
}

const TRANSIENT = new Set([408, 425, 500, 502, 503, 504, 529])

/** What a refusing status says of the channel. A status that blames the request is the caller's. */
export function judgeStatus(status: number): Verdict {
  if (status === 401 || status === 402 || status === 403 || status === 407) return 'credential_bad'
  if (status === 429) return 'rate_limited'
  if (TRANSIENT.has(status) || status >= 500 || status < 400) return 'broken'
  return 'caller_at_fault'
}
