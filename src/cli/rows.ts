// Every command of weir, as one table.

import { readConfig } from '../config.ts'
import { fakeUpstream, usage as fakeUpstreamUsage } from './fake-upstream.ts'
import type { Row } from './row.ts'
import { alone, say } from './row.ts'
import { bookRows } from './rows-books.ts'
import { keyRows } from './rows-keys.ts'
import { moneyRows } from './rows-money.ts'
import { peopleRows } from './rows-people.ts'
import { remoteRows } from './rows-remote.ts'
import { ruleRows } from './rows-rules.ts'
import { secretRows } from './rows-secrets.ts'
import { systemRows } from './rows-system.ts'

export const rows: Readonly<Record<string, Row>> = {
  'serve': {
    usage: 'serve',
    about: 'start the gateway',
    run: alone('serve', async () => {
      const { serve } = await import('./serve.ts')
      await serve(readConfig(process.env), say)
    }),
  },
  ...keyRows,
  ...moneyRows,
  ...bookRows,
  ...ruleRows,
  ...secretRows,
  ...systemRows,
  ...peopleRows,
  ...remoteRows,
  'fake-upstream': {
    usage: fakeUpstreamUsage,
    about: 'be a provider that commits faults, to rehearse bad days with; --list says which. Ends on a signal',
    run: args => fakeUpstream(args, say),
  },
}

/** In which order they are told of, by their first word. */
export const groups: readonly (readonly [title: string, words: readonly string[]])[] = [
  ['Running it', ['serve', 'setup', 'check', 'doctor', 'version']],
  ['People', ['users', 'token']],
  ['Keys and accounts', ['keys', 'accounts']],
  ['Money', ['balance', 'top-up', 'topup', 'gift', 'adjust', 'refund', 'codes', 'budgets', 'statement', 'prices']],
  ['Calls', ['records', 'record', 'bodies']],
  ['Rules and channels', ['limits', 'routes', 'channels']],
  ['Being told', ['webhooks']],
  ['Safe keeping', ['audit', 'backup', 'restore', 'rotate']],
  ['A gateway elsewhere', ['login', 'api', 'logout']],
  ['Rehearsing', ['fake-upstream']],
]
