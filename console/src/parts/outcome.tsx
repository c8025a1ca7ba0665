// How a call ended: a sign, a colour and a word.

import { outcomeWords } from '../words/en/outcomes.ts'
import { useWords } from '../words/words.ts'
import type { Tone } from './values.tsx'
import { State } from './values.tsx'

const tones: Readonly<Record<string, Tone>> = {
  completed: 'ok',
  task_succeeded: 'ok',
  replayed: 'accent',
  client_left: 'muted',
  refused: 'warn',
  out_of_funds: 'warn',
  over_bound: 'warn',
  too_long: 'warn',
  revoked: 'warn',
  task_ended: 'muted',
  drained: 'muted',
}

export const outcomeNames = Object.keys(outcomeWords.en)

export function useOutcomeName(): (outcome: string) => string {
  const t = useWords(outcomeWords)
  return outcome => t.find(outcome) ?? outcome
}

export function Outcome({ outcome }: { readonly outcome: string }) {
  const nameOf = useOutcomeName()
  return <State tone={tones[outcome] ?? 'bad'}>{nameOf(outcome)}</State>
}
