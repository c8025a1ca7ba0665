// npm run test:console: the tests of the console.
//
//   npm run test:console
//     the console tests of `npm test`
//   npm run test:console -- --all [--page text] [--role name]
//     every page in every role, on a screen and on a phone, light and dark, in both languages: some 2,200 states, each with
//     the checks of accessibility. It prints a line for each page, and exits with 1 if anything is wrong.
//     --page: only pages whose path contains the text. --role: one role, or `nobody` for pages before signing in.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Language, VisitOptions } from '../test/console/support/browser.ts'
import { openSite } from '../test/console/support/browser.ts'
import { openPages, pageAddresses, REQUESTS_MAX } from '../test/console/support/pages.ts'
import { lookAs } from '../test/console/support/roles.ts'
import { roles } from '../test/console/support/seed.ts'

const people = [...roles, 'nobody'] as const
type Viewer = (typeof people)[number]

const states = { widths: [1280, 390], themes: ['light', 'dark'], axe: true } as const
const languages: readonly Language[] = ['en', 'zh']
const STATES_OF_PAGE = states.widths.length * states.themes.length * languages.length

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    page: { type: 'string', default: '' },
    role: { type: 'string' },
  },
})

function fail(text: string): never {
  console.error(text)
  process.exit(2)
}

type OpenSite = Awaited<ReturnType<typeof openSite>>

/** The problems of a page for a viewer, in all states. */
async function findingsOf(opened: OpenSite, as: Viewer, path: string): Promise<readonly string[]> {
  const look = async (language: Language): Promise<readonly string[]> => {
    // Loading the document sends all requests of a page; navigation inside the console shows leftovers of the last page.
    const options: VisitOptions = { ...states, language, moves: language === 'zh' && as !== 'nobody' }
    if (as === 'nobody') return (await opened.visitor.look(openPages[path]!, { ...options, as })).problems
    const { wrong, requests } = await lookAs(opened, as, path, options)
    return requests.length > REQUESTS_MAX ? [...wrong, `${requests.length} requests: ${requests}`] : wrong
  }
  const found = await Promise.all(languages.map(look))
  return found.flat().map(finding => `${as}: ${finding}`)
}

const pagesOf = (as: Viewer): readonly string[] => Object.keys(as === 'nobody' ? openPages : pageAddresses)

async function testAll(): Promise<boolean> {
  const viewers = people.filter(name => values.role === undefined || name === values.role)
  if (viewers.length === 0) fail(`There is no role "${values.role}". The roles are ${people.join(', ')}.`)
  const paths = [...new Set(viewers.flatMap(pagesOf))].filter(path => path.includes(values.page))
  if (paths.length === 0) fail(`No page has "${values.page}" in its path.`)
  const opened = await openSite()
  const total = { states: 0, findings: 0 }
  const startedMs = performance.now()
  try {
    for (const path of paths) {
      const beganMs = performance.now()
      const seenBy = viewers.filter(as => pagesOf(as).includes(path))
      const findings: string[] = []
      for (const as of seenBy) findings.push(...(await findingsOf(opened, as, path)))
      const count = seenBy.length * STATES_OF_PAGE
      total.states += count
      total.findings += findings.length
      const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1)
      console.log([`${path}: ${count} states, ${findings.length} findings, ${seconds} s`, ...findings].join('\n  '))
    }
  } finally {
    await opened.close()
  }
  const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1)
  console.log(`\n${paths.length} pages, ${total.states} states, ${total.findings} findings, ${minutes} minutes`)
  return total.findings === 0
}

async function testUsual(): Promise<boolean> {
  if (values.page !== '' || values.role !== undefined) fail('--page and --role need --all.')
  const tests = Bun.spawn([process.execPath, join(import.meta.dir, 'test.ts'), './test/console'], {
    cwd: join(import.meta.dir, '..'),
    stdout: 'inherit',
    stderr: 'inherit',
  })
  return (await tests.exited) === 0
}

process.exit((await (values.all ? testAll() : testUsual())) ? 0 : 1)
