// Combines all operations on people, and has the operation that changes the site settings.

import type { OperationSteps } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'
import { factorOperations } from './factor-operations.ts'
import { invitationOperations } from './invitation-operations.ts'
import { SITE_SETTING } from './invitation-rows.ts'
import { memberOperations } from './member-operations.ts'
import type { PeopleOperations } from './people.ts'
import { personOperations } from './person-operations.ts'
import type { ServiceTokenOperations } from './service-token-operations.ts'
import { serviceTokenOperations } from './service-token-operations.ts'
import { sessionOperations } from './session-operations.ts'

const findSetting = query<{ value: string }>('SELECT value FROM setting WHERE name = ?1')
const upsertSetting = query(
  'INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
)

export const peopleOperations: Pick<OperationSteps, keyof PeopleOperations | keyof ServiceTokenOperations> = {
  ...personOperations,
  ...sessionOperations,
  ...factorOperations,
  ...invitationOperations,
  ...memberOperations,
  ...serviceTokenOperations,
  *setSite({ changes }) {
    const row = yield* findSetting.get(SITE_SETTING)
    const before = JSON.parse(row?.value ?? '{}') as Record<string, unknown>
    const entries = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null)
    yield* upsertSetting.run(SITE_SETTING, JSON.stringify(Object.fromEntries(entries)))
    return { done: 'set' }
  },
}
