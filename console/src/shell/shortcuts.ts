// Shortcuts of the keyboard. Letters alone can be turned off, and do nothing in fields or while characters are composed.

import { useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { preferences } from '../preferences.ts'
import { navigation } from './navigation.ts'

interface ShortcutTargets {
  openPalette(): void
  openHelp(): void
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** Moves the focus to the next or the previous row of the list. */
function moveRow(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('[data-row] a')].filter(
    (link, index, all) => index === 0 || link.closest('[data-row]') !== all[index - 1]?.closest('[data-row]'),
  )
  const row = document.activeElement?.closest('[data-row]')
  const at = links.findIndex(link => link.closest('[data-row]') === row)
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus()
}

export function useShortcuts({ openPalette, openHelp }: ShortcutTargets): void {
  const navigate = useNavigate()
  useEffect(() => {
    let goUntil = 0
    const onKey = (event: KeyboardEvent): void => {
      if (event.isComposing || event.defaultPrevented) return
      if (event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey)) {
        event.preventDefault()
        return openPalette()
      }
      // Some keyboards write `[` with AltGr, which may count as Ctrl and Alt.
      const isPlain = event.getModifierState('AltGraph') || !(event.ctrlKey || event.altKey)
      if (event.metaKey || !isPlain || isTyping(event.target)) return
      if (!preferences().shortcuts || document.querySelector('dialog[open]') !== null) return
      const page = navigation.flatMap(group => group.pages).find(({ letter }) => letter === event.key)
      if (event.timeStamp < goUntil && page !== undefined) {
        goUntil = 0
        event.preventDefault()
        return void navigate({ to: page.to })
      }
      goUntil = event.key === 'g' ? event.timeStamp + 1_500 : 0
      const press = (name: string): void => document.querySelector<HTMLElement>(`[data-${name}]`)?.click()
      const actions: Readonly<Record<string, () => void>> = {
        '/': () => (document.querySelector<HTMLElement>('[data-filter]') ?? { focus: openPalette }).focus(),
        '?': openHelp,
        j: () => moveRow(1),
        k: () => moveRow(-1),
        c: () => press('create'),
        '[': () => press('previous'),
        ']': () => press('next'),
      }
      const action = actions[event.key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [navigate, openPalette, openHelp])
}
