// Short messages at the bottom: "Key revoked". They are read aloud politely, and go by themselves.

import { useEffect, useSyncExternalStore } from 'react'
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

export function say(text: string, { isBad = false } = {}): void {
  change([...messages.slice(-2), { id: nextId++, text, isBad }])
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Messages() {
  const shown = useSyncExternalStore(subscribe, () => messages)
  const first = shown[0]
  useEffect(() => {
    if (first === undefined) return
    const timer = setTimeout(() => change(messages.filter(({ id }) => id !== first.id)), 6_000)
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
          <span className="break-words">{text}</span>
        </p>
      ))}
    </div>
  )
}
