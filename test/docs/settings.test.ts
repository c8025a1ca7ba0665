// .env.example names every setting that is read, and none that is not.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkSettings } from '../../src/cli/checks/settings.ts'
import { secretSources } from '../../src/store/secrets/secret-files.ts'

const text = readFileSync(join(import.meta.dir, '..', '..', '.env.example'), 'utf8')
const isOurs = (name: string): boolean => /^(WEIR|METRICS)_|^(HOST|PORT|LOG_LEVEL)$/.test(name)

test('.env.example has the settings that a start reads', () => {
  const secrets = Object.values(secretSources).map(({ variable }) => variable)
  const read = [...checkSettings({ METRICS_PORT: '9464' }).known, ...secrets].filter(isOurs)
  const named = [...text.matchAll(/^# ([A-Z_]+)=/gm)].map(([, name]) => name!).filter(isOurs)
  expect(named.toSorted()).toEqual([...new Set(read)].toSorted())
})
