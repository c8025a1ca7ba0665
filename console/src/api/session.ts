// The session of the viewer. The access token lives in one variable of this module: never in storage, a URL or React's
// state. A cookie that scripts cannot read renews it, in one tab at a time.

import { useSyncExternalStore } from 'react'
import { ApiError, errorOf, isApiError, offline } from './errors.ts'
import type { Me, Operations } from './types.ts'

type Boot = Operations['POST /api/auth/session']['answer']
export type Site = Boot['site']

export interface Session {
  /** `over`: the session has ended while a page was open; the page stays, below the dialog for signing in. */
  readonly state: 'starting' | 'set-up' | 'signed-out' | 'signed-in' | 'over'
  readonly site: Site | undefined
  readonly me: Me | undefined
  /** The gateway runs another version of the console than this tab. */
  readonly isOldTab: boolean
  /** The gateway cannot be reached. */
  readonly isOffline: boolean
}

let session: Session = { state: 'starting', site: undefined, me: undefined, isOldTab: false, isOffline: false }
let accessToken: string | undefined
let expiresAtMs = 0
const listeners = new Set<() => void>()

export const currentSession = (): Session => session
export const useSession = (): Session => useSyncExternalStore(onSession, currentSession)

export function onSession(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function change(changed: Partial<Session>): void {
  const isSame = Object.entries(changed).every(([key, value]) => session[key as keyof Session] === value)
  if (isSame) return
  session = { ...session, ...changed }
  for (const listener of listeners) listener()
}

/** Who is signed in. Only for components that are shown to people who are signed in. */
export function useMe(): Me {
  const { me } = useSession()
  if (me === undefined) throw new Error('Nobody is signed in.')
  return me
}

const tabs = new BroadcastChannel('weir')
tabs.addEventListener('message', event => {
  if (event.data === 'signed-out') forget()
  if (event.data === 'signed-in' && session.state !== 'signed-in') void boot()
})

/** Sends a request with no token. A fault of the network becomes an ApiError. */
export async function post(path: string, body?: unknown): Promise<Response> {
  try {
    return await fetch(path, {
      method: 'POST',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
  } catch (error) {
    throw offline(String(error))
  }
}

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Busy and unreachable gateways do not end a session: the request is repeated. */
async function bootAnswer(): Promise<Boot> {
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await post('/api/auth/session')
      if (answer.ok) return (await answer.json()) as Boot
      throw await errorOf(answer)
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 0 && error.status !== 429 && error.status < 500))
        throw error
      change({ isOffline: error.status === 0 })
      await pause(Math.min(8_000, (error.details.retryAfterSeconds ?? 2 ** attempt / 2) * 1_000))
    }
  }
}

function take({ signedIn, me, site, setupNeeded }: Boot): void {
  accessToken = signedIn?.accessToken
  expiresAtMs = performance.now() + (signedIn?.expiresInSeconds ?? 0) * 1_000
  const isOldTab = session.site !== undefined && session.site.build !== site.build
  const hadPage = session.state === 'signed-in' || session.state === 'over'
  const state = setupNeeded ? 'set-up' : signedIn !== undefined ? 'signed-in' : hadPage ? 'over' : 'signed-out'
  // Whoever signs in where the session of somebody else has ended must not see what that person has read.
  if (me !== undefined && session.me !== undefined && me.id !== session.me.id) forgetReads()
  const isBack = session.state === 'over' && state === 'signed-in'
  change({ state, site, isOldTab: session.isOldTab || isOldTab, isOffline: false, ...(me !== undefined && { me }) })
  // What could not be read without a session is read now.
  if (isBack) readAgain()
}

/** One tab at a time. Browsers have locks only on https and on localhost; elsewhere each tab renews by itself. */
const alone = (work: () => Promise<void>): Promise<void> =>
  'locks' in navigator ? navigator.locks.request('weir-refresh', work).then(() => undefined) : work()

let renewing: Promise<void> | undefined

/** Asks the gateway who is signed in, and for a new access token. One request at a time, also among tabs. */
export function boot(): Promise<void> {
  renewing ??= alone(async () => take(await bootAnswer())).finally(() => {
    renewing = undefined
  })
  return renewing
}

/** A valid access token. It is renewed when it is needed, not by a timer: laptops sleep. */
export async function validToken(): Promise<string> {
  if (accessToken === undefined || performance.now() > expiresAtMs - 15_000) await boot()
  if (accessToken === undefined) throw sessionOver()
  return accessToken
}

/** The gateway has refused the token. Returns whether a new one could be got. */
export async function renewAfter(refused: string): Promise<boolean> {
  if (accessToken === refused) {
    accessToken = undefined
    await boot()
  }
  return accessToken !== undefined
}

const sessionOver = (): ApiError =>
  new ApiError({
    status: 401,
    code: 'session_over',
    message: 'The session has ended.',
    param: null,
    hint: null,
    requestId: null,
    retryAfterSeconds: null,
  })

/** Takes the answer of a sign-in, a registration, an invitation or the set-up. */
export async function signedIn(): Promise<void> {
  await boot()
  tabs.postMessage('signed-in')
}

export async function signIn(body: Operations['POST /api/auth/sign-in']['request']['body']): Promise<void> {
  const answer = await post('/api/auth/sign-in', body)
  if (!answer.ok) throw await errorOf(answer)
  await signedIn()
}

const forgetters = new Set<() => void>()
/** Registers what must be emptied when the viewer signs out, such as caches. */
export const onForget = (forgetter: () => void): void => void forgetters.add(forgetter)

function forgetReads(): void {
  for (const forgetter of forgetters) forgetter()
}

function forget(): void {
  accessToken = undefined
  forgetReads()
  change({ state: 'signed-out', me: undefined })
}

export async function signOut({ everywhere = false } = {}): Promise<void> {
  const answer = await post(everywhere ? '/api/auth/sign-out-everywhere' : '/api/auth/sign-out')
  if (!answer.ok) throw await errorOf(answer)
  tabs.postMessage('signed-out')
  forget()
}

/** Every answer of the gateway says which console it has and that it can be reached. */
export function noteAnswer(answer: Response): void {
  const build = answer.headers.get('x-weir-build')
  const isOther = build !== null && session.site?.build != null && build !== session.site.build
  change({ isOffline: false, ...(isOther && { isOldTab: true }) })
}

const returners = new Set<() => void>()
/** Registers what is done when the gateway can be reached again, or a session that had ended has begun again. */
export const onReturn = (returner: () => void): void => void returners.add(returner)

const RETURN_POLL_MS = 3_000
let isWatching = false

/** Asks again and again until the gateway answers, because the page itself may have nothing to ask for. */
async function watchForReturn(): Promise<void> {
  if (isWatching) return
  isWatching = true
  while (session.isOffline) {
    await pause(RETURN_POLL_MS)
    if (await fetch('/health/live').then(isAnswer, () => false)) change({ isOffline: false })
  }
  isWatching = false
  readAgain()
}

function readAgain(): void {
  for (const returner of returners) returner()
}

const isAnswer = (): boolean => true

export function noteFault(error: unknown): void {
  if (!isApiError(error, 'offline')) return
  change({ isOffline: true })
  void watchForReturn()
}
