// Whether a key works, as a word with a sign.

import type { Key } from '../api/types.ts'
import type { Tone } from '../parts/values.tsx'
import { State } from '../parts/values.tsx'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'

const tones: Readonly<Record<Key['state'], Tone>> = { active: 'ok', disabled: 'muted', expired: 'warn', revoked: 'bad' }

export function KeyState({ state }: Pick<Key, 'state'>) {
  const t = useWords(keysWords)
  return <State tone={tones[state]}>{t(`state_${state}`)}</State>
}
