// Combines all operations on people, and has the operation that changes the site settings.

import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import { factorOperations } from './factor-operations.ts'
import { invitationOperations } from './invitation-operations.ts'
import { memberOperations } from './member-operations.ts'
import type { PeopleOperations } from './people.ts'
import { peopleRows } from './people-rows.ts'
import { personOperations } from './person-operations.ts'
import type { ServiceTokenOperations } from './service-token-operations.ts'
import { serviceTokenOperations } from './service-token-operations.ts'
import { sessionOperations } from './session-operations.ts'

/** The name of the row with all site settings that differ from their defaults. */
export const SITE_SETTING = 'site'

export function peopleOperations(
  books: Books,
): Pick<OperationHandlers, keyof PeopleOperations | keyof ServiceTokenOperations> {
  const people = peopleRows(books)
  return {
    ...personOperations(books, people),
    ...sessionOperations(books, people),
    ...factorOperations(books),
    ...invitationOperations(books, people),
    ...memberOperations(books, people),
    ...serviceTokenOperations(books, people),
    ...siteOperations(books),
  }
}

function siteOperations({ db }: Books): Pick<OperationHandlers, 'setSite'> {
  const find = db.query<{ value: string }, [string]>('SELECT value FROM setting WHERE name = ?1')
  const upsert = db.query(
    'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    setSite({ changes }) {
      const before = JSON.parse(find.get(SITE_SETTING)?.value ?? '{}') as Record<string, unknown>
      const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null)
      upsert.run(SITE_SETTING, JSON.stringify(Object.fromEntries(entries)))
      return { done: 'set' }
    },
  }
}
