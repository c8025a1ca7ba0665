// How a channel is: its state in one word, and until when it lasts.

import type { Channel } from '../api/types.ts'
import { reasonsWords } from '../words/en/reasons.ts'
import { useWords } from '../words/words.ts'
import { duration } from './format.ts'
import type { Tone } from './values.tsx'
import { State } from './values.tsx'

const tones: Readonly<Record<string, Tone>> = {
  available: 'ok',
  answered: 'ok',
  unused: 'muted',
  disabled: 'muted',
  left: 'muted',
  unusable: 'bad',
  gone: 'warn',
  broken: 'bad',
  credential_bad: 'bad',
  quota_spent: 'bad',
  forbidden: 'bad',
}

/** The reasons by which channels can be filtered. */
export const healthStates = [
  'available',
  'unused',
  'broken',
  'credential_bad',
  'quota_spent',
  'rate_limited',
  'upstream_limit',
  'busy',
  'concurrency_capped',
  'requests_capped',
  'tokens_capped',
] as const

/** A reason, a state or a verdict by its code: a sign, a colour, a word, and a sentence on hover. */
export function Reason({ code, forMs = 0 }: { readonly code: string; readonly forMs?: number }) {
  const t = useWords(reasonsWords)
  return (
    <span title={t.find(`${code}_note`)}>
      <State tone={tones[code] ?? 'warn'}>
        {t.find(code) ?? code}
        {forMs > 0 && <span className="ml-1.5 text-muted tabular-nums">{duration(forMs)}</span>}
      </State>
    </span>
  )
}

/** The code of what matters most of a channel: that it is switched off, otherwise its health. */
export const standingOf = ({ state, health }: Pick<Channel, 'state' | 'health'>): string =>
  state === 'enabled' ? (health?.state ?? 'unused') : state

export function ChannelHealth({ channel }: { readonly channel: Pick<Channel, 'state' | 'health'> }) {
  const code = standingOf(channel)
  const isBlocked = channel.state === 'enabled' && code !== 'available' && code !== 'unused'
  return <Reason code={code} forMs={isBlocked ? (channel.health?.availableInMs ?? 0) : 0} />
}
