// The states that every page has: loading, empty, error, forbidden, not there, busy. `<Query>` chooses among them.

import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useEffect, useState } from 'react'
import { ApiError } from '../api/errors.ts'
import { SupportLink } from '../shell/site.tsx'
import { errorWords } from '../words/en/errors.ts'
import { statesWords } from '../words/en/states.ts'
import { hintWords } from '../words/hint-words.ts'
import { isolated } from '../words/isolated.ts'
import { useWords } from '../words/words.ts'
import { Code, CopyButton } from './copy.tsx'
import { Icon } from './icons.tsx'

/** Grey lines in place of content, after 150 ms: a quick answer must not flash. */
export function Loading({ lines = 6 }: { readonly lines?: number }) {
  const t = useWords(statesWords)
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div role="status" aria-label={t('loading')} className="flex flex-col gap-3 py-3">
      {isShown &&
        Array.from({ length: lines }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
          <span key={index} className="h-3 rounded-sm bg-line" style={{ width: `${92 - ((index * 17) % 40)}%` }} />
        ))}
    </div>
  )
}

interface EmptyProps {
  readonly title: string
  readonly children?: ReactNode
  /** A button or a link. */
  readonly action?: ReactNode
  /** A command to copy. */
  readonly command?: string
}

/** Nothing is there yet: one sentence, one button, one command. */
export function Empty({ title, children, action, command }: EmptyProps) {
  return (
    <div className="flex max-w-2xl flex-col items-start gap-3 py-8">
      <p className="text-base font-medium">{title}</p>
      {children !== undefined && <p className="text-muted">{children}</p>}
      {action}
      {command !== undefined && (
        <div className="w-full">
          <Code text={command} />
        </div>
      )}
    </div>
  )
}

/** A text of the gateway may name what somebody wrote, in quotes. It may contain quotes itself, so the last one counts. */
const isolateQuoted = (message: string): string =>
  message.replace(/"(.*)"/s, (_, text: string) => `"${isolated(text)}"`)

/** The text of an error by its code, in the language of the viewer; otherwise the text of the gateway. */
export function useErrorText(): (error: unknown) => string {
  const t = useWords(errorWords)
  return error => {
    if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error)
    const { code, details } = error
    const message = isolateQuoted(error.message)
    const own = t.find(code)
    // The gateway's text names the field and what it must be, which the text by code cannot.
    if (document.documentElement.lang === 'en') return own === undefined || details.param !== null ? message : own
    // A hint of a later version has no text here: the gateway's own says what it is about.
    return hintWords()?.write(details.hint) ?? (details.hint ? message : (own ?? message))
  }
}

export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const t = useWords(statesWords)
  const textOf = useErrorText()
  const details = error instanceof ApiError ? error.details : undefined
  const title =
    details?.status === 403
      ? t('forbidden')
      : details?.status === 404
        ? t('notThere')
        : details?.status === 0
          ? t('offline')
          : t('failed')
  const note =
    details?.status === 403 ? t('forbiddenNote') : details?.status === 404 ? t('notThereNote') : textOf(error)
  return (
    <div className="flex max-w-xl flex-col items-start gap-2 py-8">
      <div role="alert" className="flex flex-col gap-2">
        <p className="flex items-center gap-2 text-base font-medium">
          <Icon name="warning" />
          {title}
        </p>
        <p className="text-muted">{note}</p>
      </div>
      {details?.requestId != null && (
        <p className="flex items-center gap-1 text-xs text-muted">
          {t('requestId')} <span className="font-mono">{details.requestId}</span>
          <CopyButton text={details.requestId} />
        </p>
      )}
      {retry !== undefined && details?.status !== 403 && details?.status !== 404 && (
        <RetryButton retry={retry} afterSeconds={details?.retryAfterSeconds ?? null} />
      )}
      <SupportLink />
    </div>
  )
}

/** Counts down while the gateway asks to wait. */
function RetryButton({ retry, afterSeconds }: { readonly retry: () => void; readonly afterSeconds: number | null }) {
  const t = useWords(statesWords)
  const [left, setLeft] = useState(afterSeconds ?? 0)
  useEffect(() => {
    if (left <= 0) return
    const timer = setTimeout(() => setLeft(left - 1), 1_000)
    return () => clearTimeout(timer)
  }, [left])
  return (
    <button type="button" className="button" onClick={retry} disabled={left > 0}>
      <Icon name="refresh" />
      {left > 0 ? t('tryAgainIn', { n: left }) : t('tryAgain')}
    </button>
  )
}

/** What the gateway warns of, although it has done what was asked. It must be read, so it stays until the page is left. */
export const Warnings = ({ of = [] }: { readonly of: readonly string[] | undefined }): ReactNode =>
  of.map(warning => <Notice key={warning}>{isolateQuoted(warning)}</Notice>)

interface QueryProps<T> {
  readonly of: Pick<UseQueryResult<T, unknown>, 'data' | 'error' | 'isPending' | 'refetch'>
  readonly children: (data: T) => ReactNode
  readonly loading?: ReactNode
}

/** Shows the answer of a read, or the state that the read is in. Old data stays while a newer read fails. */
export function Query<T>({ of, children, loading }: QueryProps<T>) {
  if (of.data !== undefined) return <>{children(of.data)}</>
  if (of.error !== null) return <Failure error={of.error} retry={() => void of.refetch()} />
  return <>{loading ?? <Loading />}</>
}

/** A sentence that must be read: a warning of the API, a state of the account. */
export function Notice({
  tone = 'warn',
  isSilent = false,
  children,
}: {
  readonly tone?: 'warn' | 'bad' | 'ok' | 'accent'
  /** Something else says it to screen readers. */
  readonly isSilent?: boolean
  readonly children: ReactNode
}) {
  const tones = {
    warn: 'border-warn bg-warn-soft',
    bad: 'border-bad bg-bad-soft',
    ok: 'border-ok bg-ok-soft',
    accent: 'border-accent bg-accent-soft',
  }
  const colors = { warn: 'text-warn', bad: 'text-bad', ok: 'text-ok', accent: 'text-accent' }
  return (
    <div
      role={isSilent ? undefined : tone === 'bad' ? 'alert' : 'status'}
      className={`flex gap-2 rounded border-l-2 px-3 py-2 ${tones[tone]}`}
    >
      <span className={`pt-0.5 ${colors[tone]}`}>
        <Icon name={tone === 'ok' ? 'check' : tone === 'accent' ? 'info' : 'warning'} />
      </span>
      <div className="min-w-0 flex-1 break-words">{children}</div>
    </div>
  )
}
