// The settings in docs/guides/agents.md are those that scripts/proof/agents uses: a proof with other settings would say
// nothing about the documented ones.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agents } from '../../scripts/proof/agents/rows.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/guides/agents.md'), 'utf8')
const nameOf = (section: string): string => section.split(' (')[0]!.toLowerCase().replaceAll(' ', '-')
const sections = new Map(page.split(/^## /m).map(section => [nameOf(section), section]))

const setting = { url: 'http://127.0.0.1:8080', key: 'wk-key', model: 'p/m', prompt: 'do it', home: '/home' }

/** Settings that only isolate a run: no updates, no statistics, no sandbox. */
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

test.each(agents.map(agent => [agent.name, agent] as const))(
  '%s is set up by the proof as its section says',
  (name, agent) => {
    const section = sections.get(name)!
    const files = agent.files?.(setting) ?? {}
    const settings = Object.entries(files).flatMap(([path, text]) => [path, ...namesIn(text)])
    const flags = agent.args(setting).filter(one => one.startsWith('-'))
    const wanted = [...Object.keys(agent.env?.(setting) ?? {}), ...settings, ...flags]
    const undocumented = wanted.filter(one => !QUIET.includes(one) && !section.includes(one))
    expect(undocumented).toEqual([])
  },
)

test('the table on the page has the versions that the proof runs', () => {
  for (const { version } of agents) expect(page).toContain(` ${version} |`)
})
