// What screen readers find on pages that people see most. The texts in __snapshots__ are read in reviews; a role, a name or an
// order that changes without being meant is found here. `--update-snapshots` writes them anew.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { VisitOptions, Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'
import { readStructure, structureOf } from './support/structure.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 5 }))
})
afterAll(() => close())

interface Look {
  readonly name: string
  readonly path: (ids: SeededSite['ids']) => string
  readonly as?: VisitOptions['as']
  /** The part of the page; the whole, with the navigation, if undefined. */
  readonly part?: string
}

const looks: readonly Look[] = [
  { name: 'sign in', path: () => '/sign-in', as: 'nobody' },
  { name: 'keys', path: () => '/keys' },
  { name: 'records', path: () => '/records?range=7d', part: 'main' },
  { name: 'a call', path: ({ calls }) => `/records/${calls.lossy}`, part: 'main' },
  { name: 'settings', path: () => '/settings', part: 'main' },
]

const cases = looks.flatMap(look => (['en', 'zh'] as const).map(language => [look.name, language, look] as const))

test.each(cases)('the structure of %s is as it was read, %s', async (_name, language, { path, as = 'owner', part }) => {
  let first = ''
  const page = await visitor.visit(path(site.ids), {
    as,
    language,
    themes: ['light', 'dark'],
    axe: false,
    async act(page) {
      first = await readStructure(page, part)
    },
  })
  expect(first).toMatchSnapshot()
  // The visit ends in the other theme.
  expect(await readStructure(page, part)).toBe(first)
})

test('a structure has names of what is built, and no data', () => {
  const snapshot = [
    '- main:',
    '  - heading "Call req_06f3kxw0800" [level=1]',
    '  - paragraph: 3.7 ms of 1.2 s were spent.',
    '  - list:',
    '    - listitem:',
    '      - link "shop":',
    '        - /url: /console/keys/key_06d8crkar00',
    '      - text: 52 $0.000828',
    '    - listitem: notebook',
    '  - table "Keys":',
    '    - rowgroup:',
    '      - row "Name":',
    '        - columnheader "Name":',
    '          - button "Name" [disabled]',
    '    - rowgroup:',
    '      - row "shop active":',
    `        - 'cell "shop: a"':`,
    '          - checkbox "Select shop" [checked]',
    '      - row "brook":',
    '        - cell "brook"',
  ].join('\n')
  expect(structureOf(snapshot).split('\n')).toEqual([
    '- main',
    '  - heading "Call <id>" [level=1]',
    '  - paragraph: 0 of 0 were spent.',
    '  - list',
    '    - listitem',
    '      - link',
    '  - table "Keys"',
    '    - rowgroup',
    '      - row',
    '        - columnheader "Name"',
    '          - button "Name" [disabled]',
    '    - rowgroup',
    '      - row',
    '        - cell',
    '          - checkbox [checked]',
  ])
})
