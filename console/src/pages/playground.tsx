// One prompt in five dialects, with the answers side by side and what each stage of the gateway did.

import { Link } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { call } from '../api/client.ts'
import { useRead } from '../api/reads.ts'
import type { PlaygroundKey } from '../api/types.ts'
import { Code, CopyButton } from '../parts/copy.tsx'
import type { Dialect, Prompt } from '../parts/dialect-requests.ts'
import { answerText, dialects, requestOf } from '../parts/dialect-requests.ts'
import { FieldFrame, Form, NumberField, SwitchField, TextField, useForm } from '../parts/form.tsx'
import { duration } from '../parts/format.ts'
import { Page } from '../parts/page.tsx'
import { codeIn, languages } from '../parts/sdk-code.ts'
import { useSearchState } from '../parts/search.ts'
import { Empty } from '../parts/states.tsx'
import { State } from '../parts/values.tsx'
import { useAccount } from '../shell/account.ts'
import { playgroundWords } from '../words/en/playground.ts'
import { useWords } from '../words/words.ts'

interface Reply {
  readonly dialect: Dialect
  readonly status: number
  readonly ms: number
  readonly requestId: string | null
  readonly pipeline: readonly (readonly [name: string, value: string])[]
  readonly body: unknown
  readonly isDry: boolean
}

export function PlaygroundPage() {
  const t = useWords(playgroundWords)
  const account = useAccount()
  return (
    <Page title={t('title')} intro={t('intro')}>
      {account === undefined ? (
        <Empty
          title={t('chooseTitle')}
          action={
            <Link to="/accounts" className="button">
              {t('accounts')}
            </Link>
          }
        >
          {t('chooseText')}
        </Empty>
      ) : (
        <Playground key={account.id} account={account.id} />
      )}
    </Page>
  )
}

const stages = ['auth', 'ratelimit', 'route', 'adapter', 'breakdown']
  .map(stage => `x-pipeline-${stage}`)
  .concat('x-weir-loss')

/** Browsers read headers as Latin-1, but the gateway writes them as UTF-8. */
const utf8 = (header: string): string =>
  new TextDecoder().decode(Uint8Array.from(header, letter => letter.charCodeAt(0)))

/** A key of the playground, renewed a minute before it ends. */
function usePlaygroundKey(account: string): () => Promise<string> {
  const held = useRef<PlaygroundKey>(undefined)
  return async () => {
    if (held.current === undefined || Date.parse(held.current.expires) < Date.now() + 60_000) {
      held.current = await call('POST /api/web/accounts/{account}/playground-key', { params: { account }, body: {} })
    }
    return held.current.key
  }
}

async function ask(
  dialect: Dialect,
  prompt: Prompt,
  key: string,
  options: { readonly strict: boolean; readonly dry: boolean },
): Promise<Reply> {
  const { path, keyHeader, headers, body } = requestOf(dialect, prompt)
  const startedMs = performance.now()
  const answer = await fetch(path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      [keyHeader[0]]: keyHeader[1](key),
      ...headers,
      ...(options.strict && { 'x-weir-translate': 'strict' }),
      ...(options.dry && { 'x-weir-explain': 'dry' }),
    },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  let parsed: unknown = text
  try {
    parsed = JSON.parse(text)
  } catch {
    // Not JSON: shown as it is.
  }
  const pipeline = stages.flatMap(name => {
    const value = answer.headers.get(name)
    return value === null ? [] : [[name, utf8(value)] as const]
  })
  return {
    dialect,
    status: answer.status,
    ms: performance.now() - startedMs,
    requestId: answer.headers.get('x-request-id'),
    pipeline,
    body: parsed,
    isDry: options.dry,
  }
}

function Playground({ account }: { readonly account: string }) {
  const t = useWords(playgroundWords)
  const [search, change] = useSearchState()
  const keyOf = usePlaygroundKey(account)
  const [replies, setReplies] = useState<readonly Reply[]>([])
  const [sent, setSent] = useState<Prompt>()
  const [askedFor, setAskedFor] = useState(0)
  const models = useRead('GET /api/public/models')
  const form = useForm({
    initial: {
      model: search.model ?? 'demo/echo',
      system: '',
      text: 'Hello',
      maxTokens: 300 as number | null,
      chosen: (search.dialect?.split(',') ?? ['chat', 'messages']) as readonly string[],
      strict: false,
      dry: false,
    },
    async save({ values: { chosen, strict, dry, maxTokens, ...prompt } }) {
      const asked = { ...prompt, maxTokens: maxTokens ?? 300 }
      change({ model: prompt.model, dialect: chosen.join(',') })
      const key = await keyOf()
      setSent(asked)
      setReplies([])
      const wanted = dialects.filter(dialect => chosen.includes(dialect))
      setAskedFor(wanted.length)
      await Promise.all(
        wanted.map(async dialect => {
          const reply = await ask(dialect, asked, key, { strict, dry })
          setReplies(old => [...old, reply].sort((a, b) => dialects.indexOf(a.dialect) - dialects.indexOf(b.dialect)))
        }),
      )
    },
  })
  const { chosen } = form.values
  return (
    <div className="grid gap-8 lg:grid-cols-[360px_minmax(0,1fr)]">
      <div>
        <Form of={form} action={form.isSaving ? t('sending') : t('send')} isNew>
          <FieldFrame label={t('model')} hint={t('modelHint')} error={undefined}>
            {ids => (
              <input
                {...ids}
                className="control w-full"
                list="playground-models"
                autoComplete="off"
                spellCheck={false}
                value={form.values.model}
                onChange={event => form.set('model', event.target.value)}
              />
            )}
          </FieldFrame>
          <datalist id="playground-models">
            {(models.data?.data ?? []).map(({ id }) => (
              <option key={id} value={id} />
            ))}
          </datalist>
          <TextField form={form} name="system" label={t('system')} lines={2} />
          <TextField form={form} name="text" label={t('prompt')} lines={6} />
          <NumberField form={form} name="maxTokens" label={t('maxTokens')} />
          <fieldset className="flex flex-col gap-1">
            <legend className="mb-1 font-medium">{t('dialects')}</legend>
            {dialects.map(dialect => (
              <label key={dialect} className="flex min-h-6 items-center gap-2">
                <input
                  type="checkbox"
                  className="size-4 accent-accent"
                  checked={chosen.includes(dialect)}
                  onChange={() =>
                    form.set(
                      'chosen',
                      chosen.includes(dialect) ? chosen.filter(one => one !== dialect) : [...chosen, dialect],
                    )
                  }
                />
                {t(`dialect_${dialect}`)}
              </label>
            ))}
          </fieldset>
          <SwitchField form={form} name="strict" label={t('strict')} />
          <SwitchField form={form} name="dry" label={t('dry')} />
        </Form>
      </div>
      <div className="min-w-0">
        <p role="status" className="sr-only">
          {replies.length > 0 && t('arrived', { n: replies.length, total: askedFor })}
        </p>
        {sent === undefined ? (
          <p className="text-muted">{t('empty')}</p>
        ) : (
          <div className="grid gap-6 xl:grid-cols-2">
            {replies.map(reply => (
              <ReplyView key={reply.dialect} reply={reply} prompt={sent} />
            ))}
          </div>
        )}
      </div>
    </div>
  )
}

function ReplyView({ reply, prompt }: { readonly reply: Reply; readonly prompt: Prompt }) {
  const t = useWords(playgroundWords)
  const isFine = reply.status < 400
  const origin = location.origin
  return (
    <section
      aria-label={t(`dialect_${reply.dialect}`)}
      className="flex min-w-0 flex-col gap-2 border-line border-t pt-3"
    >
      <div className="flex flex-wrap items-baseline justify-between gap-2">
        <h2>{t(`dialect_${reply.dialect}`)}</h2>
        <span className="flex gap-3 text-xs">
          <State tone={isFine ? 'ok' : 'bad'}>{isFine ? reply.status : t('failed', { status: reply.status })}</State>
          <span className="text-muted">{t('took', { time: duration(reply.ms) })}</span>
        </span>
      </div>
      {isFine && !reply.isDry && (
        <p className="whitespace-pre-wrap break-words">{answerText(reply.dialect, reply.body)}</p>
      )}
      <div className="flex flex-wrap gap-1">
        {reply.pipeline.map(([name, value]) => (
          <span key={name} className="rounded-sm border border-line bg-sunken px-1.5 text-xs leading-[18px]">
            <span className="text-muted">{name.replace('x-pipeline-', '')}</span> {value}
          </span>
        ))}
      </div>
      <details open={!isFine || reply.isDry}>
        <summary className="min-h-6 cursor-pointer text-muted">
          {t(reply.isDry ? 'explanation' : 'wholeAnswer')}
        </summary>
        <Code text={JSON.stringify(reply.body, null, 2)} label={t('wholeAnswer')} />
      </details>
      <div className="flex flex-wrap items-center gap-2">
        <span className="text-muted text-xs">{t('copyAs')}</span>
        {languages.map(language => (
          <CopyButton
            key={language}
            label={t(language)}
            text={codeIn(language, { dialect: reply.dialect, prompt, origin })}
          />
        ))}
        {reply.requestId !== null && !reply.isDry && (
          <Link to="/records/$call" params={{ call: reply.requestId }} className="link ml-auto">
            {t('openCall')}
          </Link>
        )}
      </div>
    </section>
  )
}
