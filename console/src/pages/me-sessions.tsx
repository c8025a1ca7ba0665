// The sessions of the viewer.

import { useState } from 'react'
import { useList, useWrite } from '../api/reads.ts'
import type { Session } from '../api/types.ts'
import { Menu, useQuestion } from '../parts/dialog.tsx'
import { say } from '../parts/messages.tsx'
import { Section } from '../parts/page.tsx'
import { definedOnly } from '../parts/search.ts'
import type { Column } from '../parts/table.tsx'
import { DataTable } from '../parts/table.tsx'
import { State, Time } from '../parts/values.tsx'
import { meWords } from '../words/en/me.ts'
import { useWords } from '../words/words.ts'
import { agentName } from './agent-name.ts'

export function Sessions() {
  const t = useWords(meWords)
  const [isAll, setAll] = useState(false)
  const list = useList('GET /api/web/sessions', { query: definedOnly({ ended: isAll ? undefined : 'false' }) })
  const end = useWrite('DELETE /api/web/sessions/{session}', 'sessions')
  const endOthers = useWrite('DELETE /api/web/sessions', 'sessions')
  const [ask, question] = useQuestion()
  const columns: readonly Column<Session>[] = [
    {
      id: 'agent',
      title: t('browser'),
      phone: 'main',
      cell: row => (
        <span title={row.agent}>
          {agentName(row.agent)}
          {row.current && <span className="ml-2 text-accent">{t('current')}</span>}
        </span>
      ),
    },
    {
      id: 'state',
      title: t('state'),
      phone: 'side',
      cell: row =>
        row.ended === null ? (
          <State tone="ok">{t('state_open')}</State>
        ) : (
          <State tone="muted">
            {row.endedWhy === null ? t('state_ended') : (t.find(`why_${row.endedWhy}`) ?? t('state_ended'))}
          </State>
        ),
    },
    { id: 'address', title: t('address'), phone: 'note', cell: row => row.address },
    { id: 'seen', title: t('seen'), phone: 'note', cell: row => <Time at={row.seen} isAge /> },
    { id: 'made', title: t('made'), cell: row => <Time at={row.made} /> },
    { id: 'expires', title: t('expires'), cell: row => <Time at={row.ended ?? row.expires} /> },
  ]
  return (
    <Section
      title={t('sessions')}
      note={t('sessionsNote')}
      actions={
        <span className="flex flex-wrap gap-2">
          <button type="button" className="button" onClick={() => setAll(!isAll)}>
            {isAll ? t('hideEnded') : t('showEnded')}
          </button>
          <button
            type="button"
            className="button button-bad"
            onClick={() =>
              ask({
                title: t('endOthersTitle'),
                children: t('endOthersText'),
                action: t('endOthers'),
                run: async () => {
                  const { ended } = await endOthers.mutateAsync({})
                  say(t('othersEnded', { n: ended }))
                },
              })
            }
          >
            {t('endOthers')}
          </button>
        </span>
      }
    >
      <DataTable
        name="sessions"
        label={t('sessions')}
        list={list}
        columns={columns}
        rowKey={row => row.id}
        empty={null}
        actions={row => (
          <Menu
            label={agentName(row.agent)}
            items={[
              row.ended === null &&
                !row.current && {
                  label: t('end'),
                  icon: 'close',
                  isBad: true,
                  run: () =>
                    ask({
                      title: t('endTitle', { agent: agentName(row.agent) }),
                      children: t('endText'),
                      action: t('end'),
                      run: async () => {
                        await end.mutateAsync({ params: { session: row.id } })
                        say(t('ended'))
                      },
                    }),
                },
            ]}
          />
        )}
      />
      {question}
    </Section>
  )
}
