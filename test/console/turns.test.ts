// The page of a call lists the turns of its conversation, and nothing if it is the only one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chat } from '../support/gateway.ts'
import type { Visitor } from './support/browser.ts'
import { openSite, untilReady, untilTrue } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

const user = (content: string) => ({ role: 'user', content })

/** Returns the id of the call. */
async function say(key: string, ...messages: readonly object[]): Promise<string> {
  const answer = await chat(site.harness, key, { model: 'demo/echo', messages })
  await answer.text()
  return answer.headers.get('x-request-id')!
}

const chinese = '此对话的各轮调用'

test('the page of a call has a link to each other turn of its conversation, and to no other call', async () => {
  const [key, other] = [await site.harness.key(), await site.harness.key()]
  const begin = user('Where does the river go?')
  const first = await say(key, begin)
  const second = await say(key, begin, { role: 'assistant', content: 'To the sea.' }, user('And then?'))
  const third = await say(key, begin, user('Say it in one word.'))
  const alone = await say(key, user('Where does the rain go?'))
  await say(other, begin)
  await site.harness.idle()
  const looks = { widths: [1280, 390], themes: ['light', 'dark'] } as const

  const page = await visitor.visit(`/records/${second}`, {
    ...looks,
    async act(shown) {
      const turns = shown.getByRole('table', { name: 'Turns of this conversation' })
      const links = await turns.getByRole('link').all()
      const paths = await Promise.all(links.map(link => link.getAttribute('href')))
      expect(paths).toEqual([`/console/records/${first}`, `/console/records/${third}`])
      expect(await turns.getByRole('row').count()).toBe(4)
      expect(await turns.getByRole('row').nth(2).innerText()).toMatch(/demo\/echo\s[^]*completed\s+\d+\s+\d+\s/)
    },
  })
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.getByRole('table', { name: 'Turns of this conversation' }).getByRole('link').last().click()
  await page.waitForURL(`**/console/records/${third}`)

  await visitor.visit(`/records/${second}`, {
    ...looks,
    language: 'zh',
    act: async shown => await shown.getByRole('heading', { name: chinese }).waitFor(),
  })

  await visitor.visit(`/records/${alone}`, {
    axe: false,
    async act(shown) {
      // The turns are read after the call.
      const reads = "performance.getEntriesByType('resource').filter(({ name }) => name.includes('conversation='))"
      await untilTrue(shown, `${reads}.length === 2`)
      await untilReady(shown)
      expect(await shown.getByText('Turns of this conversation').count()).toBe(0)
      expect(await shown.getByText('Conversation', { exact: true }).count()).toBe(1)
    },
  })
})
