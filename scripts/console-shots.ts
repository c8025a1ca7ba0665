// Shows the console with data on every page.
//
//   bin/weir-bun scripts/console-shots.ts --paths /,/keys,/records [--as owner] [--out folder]
//                                         [--widths 1280,390] [--themes light,dark] [--languages en,zh] [--axe]
//     writes pictures of these pages, and prints what the browser tests would report
//   bin/weir-bun scripts/console-shots.ts --serve [--port 8090]
//     keeps the gateway running; the console is built again when a source has changed and the page is loaded again

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { StaticFiles } from '../src/http/server/static-files.ts'
import { staticFilesIn } from '../src/http/server/static-files.ts'
import type { Language, Theme, VisitOptions } from '../test/console/support/browser.ts'
import { Visitor } from '../test/console/support/browser.ts'
import type { Role } from '../test/console/support/seed.ts'
import { startSeededSite } from '../test/console/support/seed.ts'
import { goodPassword } from '../test/support/people.ts'
import { buildConsole } from './build-console.ts'

const folder = join(import.meta.dir, '..', 'dist', 'console')

const { values } = parseArgs({
  options: {
    paths: { type: 'string', default: '/' },
    as: { type: 'string', default: 'owner' },
    out: { type: 'string', default: '/tmp/weir-shots' },
    widths: { type: 'string', default: '1280,390' },
    themes: { type: 'string', default: 'light,dark' },
    languages: { type: 'string', default: 'en,zh' },
    axe: { type: 'boolean', default: false },
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '8090' },
  },
})

/** Builds the console again if a source has changed. If a build fails, the last one stays. */
let loaded: StaticFiles | undefined
async function loadFresh(): Promise<StaticFiles | undefined> {
  await buildConsole()
  const { build } = (await Bun.file(join(folder, 'build.json')).json()) as { build: string }
  if (loaded?.build !== build) loaded = await staticFilesIn(folder)()
  return loaded
}

async function serve(): Promise<void> {
  const { harness, people, ids } = await startSeededSite({
    env: { PORT: values.port },
    world: { loadConsole: loadFresh },
  })
  console.log(`${harness.url}/console/\n\nThe password of everybody is "${goodPassword}":`)
  for (const [role, { email }] of Object.entries(people)) console.log(`  ${role.padEnd(10)} ${email}`)
  console.log(ids)
}

async function shoot(): Promise<void> {
  if (!(await buildConsole())) process.exit(1)
  const site = await startSeededSite()
  const visitor = await Visitor.open(site, values.out)
  const each = <T extends string>(list: string): T[] => list.split(',') as T[]
  let hasProblems = false
  try {
    for (const language of each<Language>(values.languages)) {
      for (const path of each(values.paths)) {
        const options: VisitOptions = {
          as: values.as as Role | 'nobody',
          language,
          widths: each(values.widths).map(Number),
          themes: each<Theme>(values.themes),
          axe: values.axe,
        }
        const { problems, shots } = await visitor.look(withIds(path, site.ids), options)
        hasProblems ||= problems.length > 0
        console.log([path, ...shots, ...problems.map(problem => `! ${problem}`)].join('\n  '))
      }
    }
  } finally {
    await visitor.close()
    await site.harness.stop()
  }
  process.exit(hasProblems ? 1 : 0)
}

/** `/keys/$key` is the page of a key of the site; `$calls.lossy` is one of its calls. */
const withIds = (path: string, ids: object): string =>
  path.replaceAll(/\$([\w.]+)/g, (_, name: string) => {
    const value = name
      .split('.')
      .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], ids)
    if (typeof value !== 'string') throw new Error(`There is no id $${name}; there are ${JSON.stringify(ids)}`)
    return encodeURIComponent(value)
  })

await (values.serve ? serve() : shoot())
