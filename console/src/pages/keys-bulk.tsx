// Actions for several keys at once.

import type { BodyOf } from '../api/client.ts'
import { useWrite } from '../api/reads.ts'
import type { BulkResult, Key } from '../api/types.ts'
import { useQuestion } from '../parts/dialog.tsx'
import { say } from '../parts/messages.tsx'
import { keysWords } from '../words/en/keys.ts'
import { useWords } from '../words/words.ts'

type Action = BodyOf<'POST /api/web/keys/bulk'>['action']

/** The gateway takes as many keys in one request. */
const AT_ONCE = 100

interface BulkBarProps {
  readonly keys: readonly Key[]
  readonly selected: ReadonlySet<string>
  readonly onDone: () => void
}

export function KeysBulkBar({ keys, selected, onDone }: BulkBarProps) {
  const t = useWords(keysWords)
  const bulk = useWrite('POST /api/web/keys/bulk', 'keys')
  const [ask, question] = useQuestion()
  const chosen = keys.filter(({ id }) => selected.has(id))
  if (chosen.length === 0) return null
  const open = chosen.filter(({ managedBy, state }) => managedBy === null && state !== 'revoked')
  const ids = open.map(({ id }) => id)
  const run = async (action: Action): Promise<void> => {
    const results: BulkResult[] = []
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const { data } = await bulk.mutateAsync({ body: { action, keys: ids.slice(from, from + AT_ONCE) } })
      results.push(...data)
    }
    const done = results.filter(({ result }) => result === 'done').length
    say(t(`${action}Done`, { n: done }))
    if (done < results.length) say(t('notChanged', { n: results.length - done }), { isBad: true })
    onDone()
  }
  const button = (action: Action) => (
    <button
      type="button"
      className={`button ${action === 'revoke' ? 'button-bad' : ''}`}
      onClick={() =>
        ask({
          title: t(`${action}Many`, { n: ids.length }),
          children: t(`${action}ManyText`),
          action: t(action),
          isBad: action !== 'enable',
          run: () => run(action),
        })
      }
    >
      {t(action)}
    </button>
  )
  return (
    <div className="mb-2 flex flex-wrap items-center gap-2 rounded bg-accent-soft px-3 py-1.5">
      <span role="status" className="font-medium">
        {t('chosen', { n: chosen.length })}
      </span>
      {ids.length < chosen.length && (
        <span className="text-muted">{t('skipped', { n: chosen.length - ids.length })}</span>
      )}
      {ids.length > 0 && (
        <>
          {button('enable')}
          {button('disable')}
          {button('revoke')}
        </>
      )}
      <button type="button" className="button button-quiet" onClick={onDone}>
        {t('clearChoice')}
      </button>
      {question}
    </div>
  )
}
