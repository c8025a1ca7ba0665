// The calls of the gateway as they end. A tab that is hidden for 30 seconds lets its stream go, because browsers open only
// six connections to a host; it goes on where it was.

import { useEffect, useState } from 'react'
import { pathOf, send } from './client.ts'
import type { ApiError } from './errors.ts'
import { isRefused } from './errors.ts'
import { eventsOf } from './event-stream.ts'
import type { CallRecord } from './types.ts'

export type LiveCall = CallRecord & { readonly seq: number }

export interface ChannelHealth {
  readonly state: string
  /** When the channel is tried again, in milliseconds since 1970. */
  readonly availableAtMs: number
}

export interface LiveView {
  readonly state: 'connecting' | 'live' | 'away' | 'refused'
  /** Why the stream is refused, such as a filter that is not written whole yet. */
  readonly error: ApiError | undefined
  /** Newest first. */
  readonly calls: readonly LiveCall[]
  /** Calls under way by channel, of the gateway process that serves this stream; staff only. */
  readonly underWay: Readonly<Record<string, number>> | undefined
  readonly health: ReadonlyMap<string, ChannelHealth>
  /** Calls were left out, because this reader was too far behind. */
  readonly hasMissed: boolean
}

const CALLS_KEPT = 2_000
const HIDDEN_MS = 30_000

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

const whenVisible = (): Promise<void> =>
  new Promise(resolve => {
    if (document.visibilityState === 'visible') return resolve()
    document.addEventListener('visibilitychange', () => resolve(), { once: true })
  })

/** Ends a stream when its tab was hidden for a while. */
function abortWhenHidden(controller: AbortController): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const onChange = (): void => {
    clearTimeout(timer)
    if (document.visibilityState === 'hidden') timer = setTimeout(() => controller.abort(), HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', onChange)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', onChange)
  }
}

const empty: LiveView = {
  state: 'connecting',
  error: undefined,
  calls: [],
  underWay: undefined,
  health: new Map(),
  hasMissed: false,
}

interface HealthEvent {
  readonly channel: string
  readonly state: string
  readonly availableInMs: number
}

/** What an event changes. */
function withEvent(view: LiveView, name: string, data: unknown): LiveView {
  if (name === 'call') return { ...view, calls: [data as LiveCall, ...view.calls].slice(0, CALLS_KEPT) }
  if (name === 'missed') return { ...view, hasMissed: true }
  if (name === 'state') return { ...view, underWay: (data as { underWay: Record<string, number> }).underWay }
  if (name !== 'health') return view
  const { channel, state, availableInMs } = data as HealthEvent
  const health = new Map(view.health).set(channel, { state, availableAtMs: Date.now() + availableInMs })
  return { ...view, health }
}

/** Follows the calls that match the filter, while `isOn`. Calls of another filter stay until the new stream is open. */
export function useLive(filter: Readonly<Record<string, string | undefined>>, isOn: boolean): LiveView {
  const [view, setView] = useState<LiveView>(empty)
  const key = JSON.stringify(filter)
  useEffect(() => {
    if (!isOn) return
    setView(old => ({ ...old, state: 'connecting', error: undefined }))
    const ended = new AbortController()
    let after: string | undefined
    let isOpened = false
    async function follow(): Promise<void> {
      for (let failures = 0; !ended.signal.aborted; ) {
        await whenVisible()
        const stream = new AbortController()
        const stop = abortWhenHidden(stream)
        ended.signal.addEventListener('abort', () => stream.abort())
        try {
          const query = { ...(JSON.parse(key) as object), after }
          const answer = await send(pathOf('GET /api/web/live', { query }), { signal: stream.signal })
          failures = 0
          const begun = isOpened ? {} : { calls: [], hasMissed: false }
          isOpened = true
          setView(old => ({ ...old, ...begun, state: 'live' }))
          for await (const { name, data, id } of eventsOf(answer.body!)) {
            after = id ?? after
            setView(old => withEvent(old, name, data))
          }
        } catch (error) {
          if (ended.signal.aborted) return
          if (isRefused(error)) return setView(old => ({ ...old, state: 'refused', error }))
          failures++
        } finally {
          stop()
        }
        if (ended.signal.aborted) return
        setView(old => ({ ...old, state: 'away' }))
        await pause(Math.min(10_000, 500 * 2 ** failures))
      }
    }
    void follow()
    return () => ended.abort()
  }, [key, isOn])
  return view
}
