// What docs/guides/agents.md tells people to set is what the proof sets: a run that passes with a setting of its own proves
// nothing of the documented one.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agents } from '../../scripts/proof/agents/rows.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/guides/agents.md'), 'utf8')
const nameOf = (section: string): string => section.split(' (')[0]!.toLowerCase().replaceAll(' ', '-')
const sections = new Map(page.split(/^## /m).map(section => [nameOf(section), section]))

const setting = { url: 'http://127.0.0.1:8080', key: 'wk-key', model: 'p/m', prompt: 'do it', home: '/home' }

/** What only keeps a run quiet and alone: no updates, no statistics, and no sandbox where there is none. */
const QUIET = [
  ...['DISABLE_AUTOUPDATER', 'OPENCODE_DISABLE_AUTOUPDATE', 'OPENCODE_DISABLE_MODELS_FETCH'],
  ...['check_for_update_on_startup', 'analytics', 'enabled', 'autoupdate', 'share', 'general', 'privacy', 'telemetry'],
  '--dangerously-bypass-approvals-and-sandbox',
]

function namesIn(text: string): readonly string[] {
  if (!text.startsWith('{')) return Array.from(text.matchAll(/^\[?([\w.]+)(?:\]| =)/gm), ([, name]) => name!)
  const names = (value: unknown): readonly string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, inner]) => (QUIET.includes(name) ? [] : [name, ...names(inner)]))
      : []
  return names(JSON.parse(text)).filter(name => name !== setting.model)
}

test.each(agents.map(agent => [agent.name, agent] as const))('%s is set up as its section says', (name, agent) => {
  const section = sections.get(name)!
  const files = agent.files?.(setting) ?? {}
  const settings = Object.entries(files).flatMap(([path, text]) => [path, ...namesIn(text)])
  const flags = agent.args(setting).filter(one => one.startsWith('-'))
  const wanted = [...Object.keys(agent.env?.(setting) ?? {}), ...settings, ...flags]
  const unsaid = wanted.filter(one => !QUIET.includes(one) && !section.includes(one))
  expect(unsaid).toEqual([])
})

test('the table has the versions that are tried', () => {
  for (const { version } of agents) expect(page).toContain(` ${version} |`)
})
