// A call to try without making it: as which key, in which dialect, with which body. Shows what would happen.

import { useId, useState } from 'react'
import { ApiError } from '../api/errors.ts'
import { useRead, useWrite } from '../api/reads.ts'
import { useAccount } from '../shell/account.ts'
import { explainWords } from '../words/en/explain.ts'
import { useWords } from '../words/words.ts'
import { ExplanationView, useVerdictText } from './explanation.tsx'
import { FieldError, invalidBy } from './field-error.tsx'
import { readJsonObject } from './json-text.ts'
import { definedOnly, useSearchState } from './search.ts'
import { Failure, Notice, useErrorText } from './states.tsx'

interface Dialect {
  path(model: string): string
  body(model: string): object
}

const hello = 'Hello'

/** An example of a call in each dialect. */
const dialects: Readonly<Record<string, Dialect>> = {
  'openai-chat': {
    path: () => '/v1/chat/completions',
    body: model => ({ model, messages: [{ role: 'user', content: hello }] }),
  },
  'openai-responses': { path: () => '/v1/responses', body: model => ({ model, input: hello }) },
  'anthropic-messages': {
    path: () => '/v1/messages',
    body: model => ({ model, max_tokens: 1000, messages: [{ role: 'user', content: hello }] }),
  },
  'gemini': {
    path: model => `/v1beta/models/${model}:generateContent`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: hello }] }] }),
  },
  'ark': {
    path: () => '/api/v3/chat/completions',
    body: model => ({ model, messages: [{ role: 'user', content: hello }] }),
  },
  'openai-embeddings': { path: () => '/v1/embeddings', body: model => ({ model, input: hello }) },
}

const exampleOf = (dialect: string, model: string): string => JSON.stringify(dialects[dialect]!.body(model), null, 2)

export function ExplainForm({ model }: { readonly model: string }) {
  const t = useWords(explainWords)
  const [{ key: chosenKey }, change] = useSearchState<{ readonly key?: string }>()
  const [dialect, setDialect] = useState('openai-chat')
  const [text, setText] = useState(() => exampleOf('openai-chat', model))
  const [fault, setFault] = useState<string>()
  const explain = useWrite('POST /api/web/keys/{key}/explain')
  const verdictOf = useVerdictText()
  const textOf = useErrorText()
  const isBodyRefused = explain.error instanceof ApiError && explain.error.details.param?.startsWith('body') === true
  const refusal = isBodyRefused && !explain.isPending ? textOf(explain.error) : undefined
  const [dialectId, bodyId] = [useId(), useId()]
  const chooseDialect = (next: string): void => {
    // What the viewer has written is kept.
    if (text === exampleOf(dialect, model)) setText(exampleOf(next, model))
    setDialect(next)
  }
  const run = (): void => {
    const read = readJsonObject(text)
    if (chosenKey === undefined) return setFault(t('keyMissing'))
    if ('fault' in read) {
      return setFault(read.fault === null ? t('bodyNoObject') : t('bodyInvalid', { ...read.fault }))
    }
    setFault(undefined)
    const body = read.value
    const named = body.model
    const path = dialects[dialect]!.path(typeof named === 'string' ? named : model)
    explain.mutate({ params: { key: chosenKey }, body: { path, body } })
  }
  return (
    <div className="flex flex-col gap-6">
      <form
        className="flex max-w-2xl flex-col gap-4"
        onSubmit={event => {
          event.preventDefault()
          run()
        }}
      >
        <p className="text-muted">{t('intro')}</p>
        <div className="grid gap-4 md:grid-cols-2">
          <KeyPicker value={chosenKey} onChange={key => change({ key })} />
          <div className="flex flex-col gap-1">
            <label htmlFor={dialectId} className="font-medium">
              {t('dialect')}
            </label>
            <select
              id={dialectId}
              className="control w-full"
              value={dialect}
              onChange={event => chooseDialect(event.target.value)}
            >
              {Object.keys(dialects).map(name => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
            <p className="break-all font-mono text-muted text-xs">POST {dialects[dialect]!.path(model)}</p>
          </div>
        </div>
        <div className="flex flex-col gap-1">
          <label htmlFor={bodyId} className="font-medium">
            {t('body')}
          </label>
          <textarea
            id={bodyId}
            rows={Math.min(20, Math.max(6, text.split('\n').length))}
            spellCheck={false}
            className="control w-full font-mono text-xs leading-5"
            {...invalidBy(bodyId, refusal)}
            value={text}
            onChange={event => setText(event.target.value)}
          />
          <FieldError id={bodyId} text={refusal} />
        </div>
        {fault !== undefined && <Notice tone="bad">{fault}</Notice>}
        <div>
          <button type="submit" className="button button-main" disabled={explain.isPending}>
            {explain.data === undefined ? t('run') : t('again')}
          </button>
        </div>
      </form>
      <p role="status" className="sr-only">
        {explain.data !== undefined && !explain.isPending && verdictOf(explain.data)}
      </p>
      <div>
        {explain.error !== null && refusal === undefined && !explain.isPending && (
          <Failure error={explain.error} retry={run} />
        )}
        {explain.data !== undefined && explain.error === null && <ExplanationView of={explain.data} />}
      </div>
    </div>
  )
}

interface KeyPickerProps {
  readonly value: string | undefined
  readonly onChange: (key: string | undefined) => void
}

/** A key by its name or id. The browser shows the matching keys below the field. */
function KeyPicker({ value, onChange }: KeyPickerProps) {
  const t = useWords(explainWords)
  const account = useAccount()
  const keys = useRead('GET /api/web/keys', {
    query: definedOnly({ account: account?.id, state: 'active', limit: 200 } as const),
  })
  const rows = keys.data?.data ?? []
  const labelOf = (id: string): string => {
    const key = rows.find(row => row.id === id)
    return key === undefined ? id : `${key.name} …${key.suffix}`
  }
  const [typed, setTyped] = useState<string>()
  const [id, listId] = [useId(), useId()]
  const choose = (text: string): void => {
    setTyped(text)
    const isId = /^key_[a-z0-9]{6,}$/.test(text.trim())
    const found = rows.find(row => labelOf(row.id) === text || row.id === text.trim())
    onChange(found?.id ?? (isId ? text.trim() : undefined))
  }
  const shown = typed ?? (value === undefined ? '' : labelOf(value))
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="font-medium">
        {t('key')}
      </label>
      <input
        id={id}
        list={listId}
        type="search"
        autoComplete="off"
        aria-describedby={`${id}-hint`}
        className="control w-full"
        value={shown}
        onChange={event => choose(event.target.value)}
      />
      <datalist id={listId}>
        {rows.map(row => (
          <option key={row.id} value={labelOf(row.id)}>
            {row.id}
          </option>
        ))}
      </datalist>
      <p id={`${id}-hint`} className="text-muted text-xs">
        {keys.data !== undefined && rows.length === 0 ? t('noKeys') : t('keyHint')}
      </p>
    </div>
  )
}
