// What the gateway runs with, and whether it is well.

import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../api/client.ts'
import { queries } from '../api/queries.ts'
import { readAgain, useQuery, useRead } from '../api/reads.ts'
import { useSession } from '../api/session.ts'
import type { Gateway } from '../api/types.ts'
import { Code } from '../parts/copy.tsx'
import { ago, bytes, duration, wholeNumber } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { LedgerFindings } from '../parts/ledger-findings.tsx'
import { Page, Section } from '../parts/page.tsx'
import { Query } from '../parts/states.tsx'
import { useHints } from '../parts/use-hints.ts'
import type { Tone } from '../parts/values.tsx'
import { Facts, Figures, None, State, Time } from '../parts/values.tsx'
import { systemWords } from '../words/en/system.ts'
import { useWords } from '../words/words.ts'

interface Readiness {
  readonly isReady: boolean
  /** 0 to 3; undefined: the gateway does not say. */
  readonly overload: number | undefined
}

const READY = 'readiness'

/** What load balancers see. The answer of a gateway that is not ready is 503, which is an answer, too. */
async function readReadiness(): Promise<Readiness> {
  const answer = await fetch('/health/ready', { cache: 'no-store' })
  const { overload } = (await answer.json().catch(() => ({}))) as { readonly overload?: number }
  return { isReady: answer.ok, overload }
}

type LedgerCheck = AnswerOf<'GET /api/web/ledger/check'>
const ledgerTones: Readonly<Record<LedgerCheck['books'], Tone>> = {
  agree: 'ok',
  'do not agree': 'bad',
  'not looked at yet': 'muted',
}
const ledgerWords = { agree: 'consistent', 'do not agree': 'inconsistent', 'not looked at yet': 'notYet' } as const

export function SystemPage() {
  const t = useWords(systemWords)
  const { site } = useSession()
  const readiness = useQuery({ queryKey: [READY], queryFn: readReadiness, refetchInterval: 15_000 })
  const ledger = useRead('GET /api/web/ledger/check', undefined, { everyMs: 30_000 })
  const gateway = useRead('GET /api/web/gateway', undefined, { everyMs: 30_000 })
  const refresh = (): void => {
    void queries.invalidateQueries({ queryKey: [READY] })
    void readAgain('ledger', 'gateway')
  }
  const ready = readiness.data
  return (
    <Page
      title={t('title')}
      intro={t('intro')}
      actions={
        <button type="button" className="button" onClick={refresh}>
          <Icon name="refresh" />
          {t('refresh')}
        </button>
      }
    >
      <Figures
        of={[
          {
            name: t('state'),
            value:
              readiness.error !== null ? (
                <State tone="bad">{t('unreachable')}</State>
              ) : ready === undefined ? (
                <None />
              ) : (
                <State tone={ready.isReady ? 'ok' : 'bad'}>{ready.isReady ? t('ready') : t('notReady')}</State>
              ),
            note: t('readyNote'),
            isWord: true,
          },
          {
            name: t('overload'),
            value: ready?.overload === undefined ? <None /> : ready.overload === 0 ? t('overloadNone') : ready.overload,
            note: t('overloadNote'),
            isWord: ready?.overload === 0,
          },
          {
            name: t('ledgerState'),
            value:
              ledger.data === undefined ? (
                <None />
              ) : (
                <State tone={ledgerTones[ledger.data.books]}>{t(`ledger_${ledgerWords[ledger.data.books]}`)}</State>
              ),
            note: ledger.data?.audited == null ? undefined : t('audited', { ago: ago(ledger.data.audited) }),
            isWord: true,
          },
          {
            name: t('activeCalls'),
            value: gateway.data === undefined ? <None /> : wholeNumber(gateway.data.activeCalls),
            note: gateway.data?.unsettledCalls ? t('unsettled', { n: gateway.data.unsettledCalls }) : undefined,
          },
          { name: t('version'), value: site?.version ?? <None />, note: `${t('build')} ${site?.build ?? '–'}` },
        ]}
      />
      <Section title={t('problems')} note={t('problemsNote')}>
        <Query of={gateway}>{({ findings }) => <Problems of={findings} />}</Query>
      </Section>
      {gateway.data !== undefined && <GatewayFacts of={gateway.data} />}
      <Section title={t('findings')} note={t('findingsNone')}>
        <Query of={ledger}>{found => <Findings of={found} />}</Query>
      </Section>
      <Section title={t('more')}>
        <ul className="flex flex-wrap gap-x-6 gap-y-1">
          <li>
            <Link to="/ledger" className="link inline-flex min-h-6 items-center">
              {t('ledger')}
            </Link>
          </li>
          <li>
            <Link to="/audit" search={{ tab: 'chain' }} className="link inline-flex min-h-6 items-center">
              {t('auditChain')}
            </Link>
          </li>
          <li>
            <a href="/docs" className="link inline-flex min-h-6 items-center gap-1">
              {t('apiReference')}
              <Icon name="external" size={12} />
            </a>
          </li>
        </ul>
      </Section>
      <Section title={t('doctor')} note={t('doctorText')}>
        <div className="max-w-md">
          <Code text="bin/weir doctor" />
        </div>
      </Section>
    </Page>
  )
}

function Problems({ of }: { readonly of: Gateway['findings'] }) {
  const t = useWords(systemWords)
  const inLanguage = useHints(of.length > 0)
  if (of.length === 0) return <p>{t('problemsNone')}</p>
  return (
    <ul className="border-line border-t">
      {of.map(({ check, severity, about, text, textHint, remedy, remedyHint }) => (
        <li key={`${check} ${about} ${text}`} className="flex flex-wrap gap-x-4 border-line border-b py-1.5">
          <span className="w-24">
            <State tone={severity === 'problem' ? 'bad' : 'muted'}>{t(severity)}</State>
          </span>
          <div className="min-w-0 flex-1 basis-64 break-words">
            <p className="font-medium">
              {t.find(`check_${check}`) ?? check}
              {about !== check && <span className="ml-2 font-mono font-normal text-xs">{about}</span>}
            </p>
            <p>{inLanguage(words => words.write(textHint), text)}</p>
            {remedy !== null && <p className="text-muted">{inLanguage(words => words.write(remedyHint), remedy)}</p>}
          </div>
        </li>
      ))}
    </ul>
  )
}

function GatewayFacts({ of }: { readonly of: Gateway }) {
  const t = useWords(systemWords)
  const { database, processes } = of
  return (
    <>
      <div className="grid gap-6 md:grid-cols-2">
        <Section title={t('process')}>
          <Facts
            of={[
              { name: t('started'), value: <Time at={of.started} isAge /> },
              { name: t('loopLate'), value: duration(of.loopLateMs) },
              { name: t('ledgerLate'), value: duration(of.ledgerLateMs) },
              { name: t('bodiesDropped'), value: wholeNumber(of.bodiesDropped) },
            ]}
          />
        </Section>
        <Section title={t('database')}>
          <Facts
            of={[
              { name: t('kind'), value: t(`kind_${database.kind}`) },
              database.kind === 'sqlite' && {
                name: t('lastBackup'),
                value: database.lastBackup === null ? t('never') : <Time at={database.lastBackup} isAge />,
              },
              database.logBytes !== null && { name: t('logSize'), value: bytes(database.logBytes) },
              database.clockAheadMs !== null && {
                name: t('clockAhead'),
                value: `${wholeNumber(database.clockAheadMs)} ms`,
              },
            ]}
          />
        </Section>
      </div>
      {processes.some(({ slot }) => slot !== null) && (
        <Section title={t('processes')} note={t('processesNote')}>
          <Processes of={processes} />
        </Section>
      )}
    </>
  )
}

function Processes({ of }: { readonly of: Gateway['processes'] }) {
  const t = useWords(systemWords)
  return (
    <div className="overflow-x-auto">
      <table className="w-full max-w-3xl" aria-label={t('processes')}>
        <thead>
          <tr className="h-8 border-line border-b text-left text-muted text-xs">
            {(['number', 'address', 'version', 'lease'] as const).map(name => (
              <th key={name} scope="col" className="pr-4 font-medium">
                {t(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.map(({ slot, address, version, leaseAgeMs, hasRunOut, isThis }) => (
            <tr key={slot} className="h-8 border-line border-b">
              <td className="pr-4 tabular-nums">{slot}</td>
              <td className="pr-4">
                {address}
                {isThis && <span className="ml-2 text-muted">{t('thisOne')}</span>}
              </td>
              <td className="pr-4">{version}</td>
              <td>
                {hasRunOut ? (
                  <State tone="bad">{t('leaseOut')}</State>
                ) : leaseAgeMs === null ? (
                  <None />
                ) : (
                  t('leaseAgo', { time: duration(Math.max(0, leaseAgeMs)) })
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Findings({ of: { findings } }: { readonly of: LedgerCheck }) {
  const t = useWords(systemWords)
  if (findings.length === 0) return <p>{t('findingsAll')}</p>
  return <LedgerFindings of={findings} />
}
