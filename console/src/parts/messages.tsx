// Short messages at the bottom: "Key revoked". They are read aloud politely, and go by themselves. What went wrong, and what the
// gateway warns of, stays until it is closed.

import { useEffect, useSyncExternalStore } from 'react'
import { dialogWords } from '../words/en/dialog.ts'
import { useWords } from '../words/words.ts'
import { Icon } from './icons.tsx'

interface Message {
  readonly id: number
  readonly text: string
  readonly isBad: boolean
}

let messages: readonly Message[] = []
let nextId = 1
const listeners = new Set<() => void>()

function change(next: readonly Message[]): void {
  messages = next
  for (const listener of listeners) listener()
}

/** As many are shown at once of those that go by themselves. */
const PASSING_MAX = 3

export function say(text: string, { isBad = false } = {}): void {
  // What stays is not there twice.
  const others = messages.filter(one => !isBad || !one.isBad || one.text !== text)
  const all = [...others, { id: nextId++, text, isBad }]
  const passing = all.filter(one => !one.isBad).slice(-PASSING_MAX)
  change(all.filter(one => one.isBad || passing.includes(one)))
}

const close = (id: number): void => change(messages.filter(one => one.id !== id))

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Messages() {
  const t = useWords(dialogWords)
  const shown = useSyncExternalStore(subscribe, () => messages)
  const first = shown.find(one => !one.isBad)
  useEffect(() => {
    if (first === undefined) return
    const timer = setTimeout(() => close(first.id), 6_000)
    return () => clearTimeout(timer)
  }, [first])
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed bottom-20 left-1/2 z-50 flex w-max max-w-[calc(100%-24px)] -translate-x-1/2 flex-col items-center gap-2 md:bottom-6"
    >
      {shown.map(({ id, text, isBad }) => (
        <p key={id} className="opens floating flex items-center gap-2 px-3 py-2">
          <span className={isBad ? 'text-bad' : 'text-ok'}>
            <Icon name={isBad ? 'warning' : 'check'} />
          </span>
          <span className="min-w-0 break-words">{text}</span>
          {isBad && (
            <button
              type="button"
              className="pointer-events-auto grid size-7 shrink-0 place-items-center rounded-sm text-muted hover:bg-sunken"
              aria-label={t('close')}
              onClick={() => {
                close(id)
                // The focus would be lost with the button.
                document.getElementById('content')?.focus({ preventScroll: true })
              }}
            >
              <Icon name="close" />
            </button>
          )}
        </p>
      ))}
    </div>
  )
}
