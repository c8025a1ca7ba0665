// A setting at its default value asks for nothing, so that no dialect loses anything without it.

import type { GenerationSettings } from './conversation.ts'

const DEFAULTS: Partial<GenerationSettings> = {
  temperature: 1,
  topP: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  choices: 1,
  verbosity: 'medium',
}

/** Whether the caller asks for something by a setting: it is there, is not empty, and is not its default. */
export function isRequested(settings: GenerationSettings, name: keyof GenerationSettings): boolean {
  const value = settings[name]
  if (value === undefined || value === DEFAULTS[name]) return false
  // A cache breakpoint may have no fields and still asks for something.
  return typeof value !== 'object' || name === 'cache' || Object.keys(value).length > 0
}

/** Settings with the codes of their losses. */
export type SettingCodes = readonly (readonly [name: keyof GenerationSettings, code: string])[]

/** Reports the settings that a request cannot have. */
export function addSettingLosses(
  settings: GenerationSettings,
  lacking: SettingCodes,
  losses: { add(code: string): void },
): void {
  for (const [name, code] of lacking) if (isRequested(settings, name)) losses.add(code)
}
