// What a viewer has chosen for this browser: language, time zone, theme, density, shortcuts. The gateway keeps a copy for
// the person, so that another browser begins with it. Where nothing was chosen, what the site has set holds.

import { useSyncExternalStore } from 'react'
import { readStored } from './parts/stored.ts'

export const languages = ['en', 'zh'] as const
export type Language = (typeof languages)[number]

export interface Preferences {
  readonly language: Language
  /** `local`: the zone of this browser; otherwise a name such as `UTC` or `Asia/Shanghai`. */
  readonly zone: string
  readonly theme: 'system' | 'light' | 'dark'
  readonly density: 'dense' | 'comfortable'
  /** Whether single letters are shortcuts. */
  readonly shortcuts: boolean
}

const STORED = 'weir-preferences'

function firstLanguage(): Language {
  return navigator.languages.some(name => name.toLowerCase().startsWith('zh')) &&
    !navigator.languages[0]?.toLowerCase().startsWith('en')
    ? 'zh'
    : 'en'
}

const standard = (): Preferences => ({
  language: firstLanguage(),
  zone: 'local',
  theme: 'system',
  density: 'dense',
  shortcuts: true,
})

/** Only what was chosen is stored: the site may set the rest, today or later. */
let chosen: Partial<Preferences> = storedChoices()

function storedChoices(): Partial<Preferences> {
  const stored = readStored(STORED)
  return typeof stored === 'object' && !Array.isArray(stored) ? (stored as Partial<Preferences>) : {}
}
let ofSite: Partial<Preferences> = {}
let current: Preferences = valid({ ...standard(), ...chosen })

/** A zone that this browser does not know, such as a new name of an old one, would break every time. */
function valid(wanted: Preferences): Preferences {
  try {
    if (wanted.zone !== 'local') Intl.DateTimeFormat('en', { timeZone: wanted.zone })
    return wanted
  } catch {
    return { ...wanted, zone: 'local' }
  }
}
const listeners = new Set<() => void>()

export const preferences = (): Preferences => current
export const currentLanguage = (): Language => current.language

export function onPreferences(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const usePreferences = (): Preferences => useSyncExternalStore(onPreferences, preferences)

type Choices = { readonly [K in keyof Preferences]?: Preferences[K] | null }

interface Defaults {
  /** What the gateway has stored for the person; undefined: nobody is signed in. */
  readonly person: Choices | undefined
  readonly site: Choices
}

const given = (choices: Choices = {}): Partial<Preferences> =>
  Object.fromEntries(Object.entries(choices).filter(([, value]) => value !== null))

/** The language that `takeDefaults` leads to. Its texts must be loaded before. */
export const languageWith = ({ person, site }: Defaults): Language =>
  ({ ...standard(), ...given(site), ...given(person), ...chosen }).language

/** Takes what the gateway has stored for the person and what the site has set, for all that was not chosen in this browser. */
export function takeDefaults({ person, site }: Defaults): void {
  ofSite = given(site)
  update({ ...given(person), ...chosen })
}

export const setPreferences = (changed: Partial<Preferences>): void => update({ ...chosen, ...changed })

const isSame = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b)

function update(choices: Partial<Preferences>): void {
  if (!isSame(choices, chosen)) localStorage.setItem(STORED, JSON.stringify(choices))
  chosen = choices
  const next = valid({ ...standard(), ...ofSite, ...chosen })
  if (isSame(next, current)) return
  current = next
  applyToDocument()
  for (const listener of listeners) listener()
}

const prefersDark = matchMedia('(prefers-color-scheme: dark)')

export function applyToDocument(): void {
  const { language, theme, density } = current
  const root = document.documentElement
  const isDark = theme === 'dark' || (theme === 'system' && prefersDark.matches)
  root.lang = language === 'zh' ? 'zh-CN' : 'en'
  root.dataset.theme = isDark ? 'dark' : 'light'
  root.dataset.density = density
}

prefersDark.addEventListener('change', applyToDocument)

/** The theme that the document has now. Only what draws its own colours, such as a canvas, needs it. */
export const useTheme = (): string | undefined =>
  useSyncExternalStore(
    listener => {
      const observer = new MutationObserver(listener)
      observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
      return () => observer.disconnect()
    },
    () => document.documentElement.dataset.theme,
  )
