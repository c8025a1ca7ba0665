// The sentences of the gateway in Chinese. Most pages show none, so that they are loaded with the first answer that has a
// hint. English sentences are those of answers.

import { currentLanguage } from '../preferences.ts'

type HintWords = typeof import('./zh/hints.ts') | undefined

let chinese: HintWords

/** Undefined: the viewer reads English, or the sentences cannot be loaded. */
export async function loadHints(): Promise<HintWords> {
  return currentLanguage() === 'zh' ? (chinese ??= await import('./zh/hints.ts').catch(() => undefined)) : undefined
}

/** What has been loaded. */
export const hintWords = (): HintWords => chinese
