// The check of the audit log's hash chain in the browser, and heads that are saved and checked later.

import { useId, useRef, useState } from 'react'
import type { Request } from '../api/client.ts'
import { call } from '../api/client.ts'
import { time } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { Section } from '../parts/page.tsx'
import { SaidAtTimes } from '../parts/said.tsx'
import { saveFile } from '../parts/save-file.ts'
import { Notice, useErrorText } from '../parts/states.tsx'
import { Id } from '../parts/values.tsx'
import { auditWords } from '../words/en/audit.ts'
import { useWords } from '../words/words.ts'
import type { ChainHead, ChainState } from './audit-chain.ts'
import { chainStart, checkRows, endOfChain, readHead } from './audit-chain.ts'

const PAGE = 200

type AuditQuery = NonNullable<Request<'GET /api/web/audit-log'>['query']>
const readRows = (query: AuditQuery, signal: AbortSignal) => call('GET /api/web/audit-log', { query, signal })

type SavedHead = ChainHead & { readonly saved: string }

interface Progress {
  readonly state: ChainState
  readonly total: number
  readonly phase: 'running' | 'stopped' | 'done'
  readonly known?: SavedHead
  /** What the gateway finds itself. */
  readonly gateway?: { readonly rows: number; readonly brokenAt: number | null }
}

export function AuditProof() {
  const t = useWords(auditWords)
  const textOf = useErrorText()
  const [progress, setProgress] = useState<Progress>()
  const [error, setError] = useState<string>()
  const stop = useRef<AbortController>(undefined)
  const fileId = useId()
  const isRunning = progress?.phase === 'running'

  async function run(known?: SavedHead): Promise<void> {
    const stopping = new AbortController()
    stop.current = stopping
    setError(undefined)
    let state = chainStart
    const shown = { ...(known !== undefined && { known }) }
    try {
      const newest = await readRows({ sort: '-seq', limit: 1 }, stopping.signal)
      const total = newest.data[0]?.seq ?? 0
      setProgress({ state, total, phase: 'running', ...shown })
      let after: string | null | undefined
      do {
        const query: AuditQuery = { raw: 'true', sort: 'seq', limit: PAGE, ...(after != null && { after }) }
        const page: Awaited<ReturnType<typeof readRows>> = await readRows(query, stopping.signal)
        state = await checkRows(state, page.data, known)
        after = page.next
        setProgress({ state, total: Math.max(total, state.rows), phase: 'running', ...shown })
      } while (after !== null && state.broken === undefined)
      state = endOfChain(state, known)
      const head = known === undefined ? {} : { head: `${known.seq}:${known.hash}` }
      const gateway = await call('GET /api/web/audit-log/check', { query: head, signal: stopping.signal })
      setProgress({ state, total: Math.max(total, state.rows), phase: 'done', gateway, ...shown })
    } catch (caught) {
      setProgress(old => (old === undefined ? undefined : { ...old, phase: 'stopped' }))
      if (!stopping.signal.aborted) setError(textOf(caught))
    }
  }

  async function runWith(file: File): Promise<void> {
    const known = file.size > 10_000 ? undefined : readHead(await file.text())
    if (known === undefined) return setError(t('headBad'))
    await run(known)
  }

  if (crypto.subtle === undefined) return <Notice>{t('insecure')}</Notice>
  return (
    <Section title={t('chainTitle')} note={t('chainText')}>
      <div className="flex max-w-2xl flex-col gap-4">
        <div className="flex flex-wrap items-center gap-2">
          {isRunning ? (
            <button type="button" className="button" onClick={() => stop.current?.abort()}>
              <Icon name="pause" />
              {t('stop')}
            </button>
          ) : (
            <>
              <button type="button" className="button button-main" onClick={() => void run()}>
                <Icon name="audit" />
                {t('check')}
              </button>
              <label
                htmlFor={fileId}
                className="button cursor-pointer focus-within:outline-2 focus-within:outline-accent"
              >
                {t('checkHead')}
                <input
                  id={fileId}
                  type="file"
                  accept="application/json,.json"
                  className="sr-only"
                  onChange={event => {
                    const file = event.target.files?.[0]
                    event.target.value = ''
                    if (file !== undefined) void runWith(file)
                  }}
                />
              </label>
            </>
          )}
        </div>
        {error !== undefined && <Notice tone="bad">{error}</Notice>}
        {progress !== undefined && <Result of={progress} />}
      </div>
    </Section>
  )
}

function Result({ of: progress }: { readonly of: Progress }) {
  const t = useWords(auditWords)
  const { state, total, phase } = progress
  if (phase === 'running') {
    return (
      <div className="flex flex-col gap-1">
        <progress
          className="h-1.5 w-full accent-accent"
          aria-label={t('chainTitle')}
          value={state.rows}
          max={Math.max(1, total)}
        />
        <p className="text-muted tabular-nums">{t('checking', { n: state.rows, total })}</p>
        <SaidAtTimes text={t('checking', { n: state.rows, total })} />
      </div>
    )
  }
  if (phase === 'stopped') return <p className="text-muted">{t('stopped', { n: state.rows })}</p>
  if (total === 0 && state.broken === undefined) return <p className="text-muted">{t('empty')}</p>
  return state.broken === undefined ? <Agrees of={progress} /> : <Broken of={progress} />
}

/** Whether the gateway's own check finds the same. */
function Gateway({ of: { state, gateway } }: { readonly of: Progress }) {
  const t = useWords(auditWords)
  if (gateway === undefined) return null
  // Rows that were written meanwhile are no difference.
  if ((gateway.brokenAt === null) === (state.broken === undefined)) return <p>{t('gatewayAgrees')}</p>
  const text =
    gateway.brokenAt === null ? t('gatewayFine', { n: gateway.rows }) : t('gatewayBroken', { seq: gateway.brokenAt })
  return <p>{t('gatewayDiffers', { text })}</p>
}

function Agrees({ of: progress }: { readonly of: Progress }) {
  const t = useWords(auditWords)
  const { state, known } = progress
  const save = (): void => {
    const saved = new Date().toISOString()
    const content = { site: location.origin, seq: state.rows, hash: state.hash, saved }
    saveFile(`audit-head-${state.rows}.json`, `${JSON.stringify(content, null, 2)}\n`, 'application/json')
  }
  return (
    <>
      <Notice tone="ok">
        <p>{t('agrees', { n: state.rows })}</p>
        {known !== undefined && (
          <p>{t('agreesHead', { seq: known.seq, time: known.saved === '' ? '–' : time(known.saved) })}</p>
        )}
        <Gateway of={progress} />
      </Notice>
      <div className="flex flex-col items-start gap-2">
        <h3>{t('head')}</h3>
        <p className="text-muted">{t('headText')}</p>
        <Id id={`${state.rows}:${state.hash}`} />
        <button type="button" className="button" onClick={save}>
          <Icon name="download" />
          {t('save')}
        </button>
      </div>
    </>
  )
}

function Broken({ of: progress }: { readonly of: Progress }) {
  const t = useWords(auditWords)
  const { broken } = progress.state
  if (broken === undefined) return null
  return (
    <Notice tone="bad">
      <p className="font-medium">{t('broken', { seq: broken.seq })}</p>
      <p>{t(`broken_${broken.kind}`, { seq: broken.seq })}</p>
      <p>{t('brokenText')}</p>
      <Gateway of={progress} />
    </Notice>
  )
}
