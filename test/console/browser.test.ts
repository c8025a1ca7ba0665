// The browser tests find what they are for: each fault is planted in a real page.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import type { Visitor } from './support/browser.ts'
import { openSite } from './support/browser.ts'

let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

/** Runs in the page. The browser itself runs it, so that the policy of the page allows it. */
const run = (script: string) => (page: Page) => page.evaluate(script).then(() => {})

test('a page that is as it should be has no problem, in both languages, widths and themes', async () => {
  for (const language of ['en', 'zh'] as const) {
    const options = { as: 'nobody', language, widths: [1280, 390], themes: ['light', 'dark'] } as const
    expect((await visitor.look('/sign-in', options)).problems).toEqual([])
  }
})

const planted: readonly (readonly [fault: string, script: string, found: RegExp])[] = [
  ['an error in the console', "console.error('oh')", /the console says \(error\): oh/],
  ['a warning', "console.warn('ah')", /the console says \(warning\): ah/],
  [
    'an uncaught error',
    "setTimeout(() => { throw new Error('oops') }); new Promise(r => setTimeout(r, 50))",
    /uncaught: .*oops/,
  ],
  ['a failed request', "fetch('/api/web/nothing').then(() => {})", /a failed request: 401 \/api\/web\/nothing/],
  [
    'a style element',
    "document.head.append(Object.assign(document.createElement('style'), { textContent: 'a{}' }))",
    /the policy refused style-src/,
  ],
  [
    'another host',
    "fetch('http://example.invalid/').catch(() => {})",
    /another host: http:\/\/example\.invalid|the policy refused connect-src/,
  ],
  [
    'a wide element',
    "document.querySelector('main').append(Object.assign(document.createElement('p'), { style: 'width: 3000px', textContent: 'wide' }))",
    /it scrolls sideways/,
  ],
  ['a missing heading', "document.querySelectorAll('h1').forEach(heading => heading.remove())", /it has no h1/],
  [
    'a field without a label',
    "document.querySelector('main').append(document.createElement('input'))",
    /accessibility, label/,
  ],
  [
    'a pale text',
    "document.querySelector('main').append(Object.assign(document.createElement('p'), { style: 'color: #ccc; background: #fff', textContent: 'pale' }))",
    /accessibility, color-contrast/,
  ],
  ['the key of a text', "document.querySelector('main').append('signInFailed')", /the key of a text: signInFailed/],
  ['an empty place', "document.querySelector('main').append('Hello {name}')", /an empty place: Hello \{name\}/],
  ['Chinese in English', "document.querySelector('main').append('登录')", /Chinese text: 登录/],
]

test.each(planted)('%s is found', async (_fault, script, found) => {
  const { problems } = await visitor.look('/sign-in', { as: 'nobody', act: run(script) })
  expect(problems.filter(problem => found.test(problem))).not.toEqual([])
})

test('a failed request that the test expects is no problem', async () => {
  const act = run("fetch('/api/web/nothing').then(() => {})")
  const { problems } = await visitor.look('/sign-in', { as: 'nobody', act, failing: [/^401 \/api\/web\/nothing$/] })
  expect(problems).toEqual([])
})
