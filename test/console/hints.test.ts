// What the gateway says about a request is shown in Chinese. The sentences are loaded with the first answer that has one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { rules } from '../../console/src/words/en/rules.ts'
import type { Visitor } from './support/browser.ts'
import { intercept, openSite } from './support/browser.ts'
import type { SeededSite } from './support/seed.ts'

let site: SeededSite
let visitor: Visitor
let close: () => Promise<void>

beforeAll(async () => {
  ;({ site, visitor, close } = await openSite({ callsMax: 1 }))
})
afterAll(() => close())

const look = { language: 'zh', axe: false, widths: [1280], themes: ['light'] } as const

/** Whether the page has loaded the sentences of the gateway. */
const hasLoaded = (page: Page): Promise<boolean> =>
  page.evaluate(() => performance.getEntriesByType('resource').some(({ name }) => /\/assets\/hints-/.test(name)))

test('no English sentence is shown until the Chinese ones are there', async () => {
  await visitor.visit('/keys', {
    ...look,
    async act(page) {
      const held = Promise.withResolvers<void>()
      await intercept(page, /\/assets\/hints-/, async route => {
        await held.promise
        await route.continue()
      })
      await page.evaluate("weirTest.move('/system')")
      const finding = page.locator('main li').filter({ hasText: '备份' }).first()
      await finding.waitFor()
      expect(await finding.innerText()).not.toContain('This data has never been backed up.')
      await page.evaluate(`weirTest.move('/records/${site.ids.calls.streamed}')`)
      const rule = page.locator(
        Object.keys(rules)
          .map(name => `main span[title="${name}"]`)
          .join(),
      )
      await rule.waitFor()
      expect((await rule.innerText()).trim()).toBe('')
      held.resolve()
      await rule.filter({ hasText: /\p{Script=Han}/u }).waitFor()
      await page.unrouteAll({ behavior: 'wait' })
    },
  })
})

test('an error of a form: its sentences are loaded with it', async () => {
  await visitor.visit('/webhooks', {
    ...look,
    failing: [/^400 \/api\/web\/webhooks/],
    async act(page) {
      await page.getByRole('button', { name: '新建 Webhook' }).first().click()
      const dialog = page.locator('dialog[open]')
      await dialog.locator('input[type=url]').fill('https://10.0.0.1/x')
      expect(await hasLoaded(page)).toBe(false)
      await dialog.getByRole('button', { name: '新建 Webhook' }).click()
      await dialog.getByText('URL 有误：此主机不是公网主机。').waitFor()
      expect(await hasLoaded(page)).toBe(true)
    },
  })
})

test('findings of the gateway, with what to do', async () => {
  await visitor.visit('/system', {
    ...look,
    async act(page) {
      await page.getByText('这些数据从未备份过。').waitFor()
      await page.getByText('请每天运行：weir backup <文件夹>').waitFor()
      expect(await page.getByText('This data has never been backed up.').count()).toBe(0)
    },
  })
})

test('why a channel cannot be used', async () => {
  const { data } = (await site.harness.manage('POST', '/api/web/channels', {
    provider: 'openai',
    credentials: ['sk-of-hints'],
    name: 'of hints',
    baseUrl: 'https://one.example/v1',
  })) as { readonly data: readonly { readonly id: string }[] }
  const id = data[0]!.id
  // Another host has no credential yet.
  await site.harness.manage('PATCH', `/api/web/channels/${encodeURIComponent(id)}`, {
    baseUrl: 'https://two.example/v1',
  })
  await visitor.visit(`/channels/${encodeURIComponent(id)}`, {
    ...look,
    async act(page) {
      await page.getByText('此渠道没有凭据。请设置。').waitFor()
      expect(await page.getByText('The channel has no credential.').count()).toBe(0)
    },
  })
})

test('why a webhook could not be delivered', async () => {
  using receiver = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('no', { status: 500 }) })
  const wanted = { url: `${receiver.url}`, events: ['channel.down'] }
  const { id } = (await site.harness.manage('POST', '/api/web/webhooks', wanted)) as { readonly id: string }
  await visitor.visit(`/webhooks/${id}`, {
    ...look,
    async act(page) {
      await page.getByRole('button', { name: '发送测试' }).click()
      await page.getByText('响应状态为 500').first().waitFor()
      expect(await page.getByText('the response has status').count()).toBe(0)
    },
  })
})

test('why a call would be refused', async () => {
  await visitor.visit(`/routes?tab=explain&model=nobody/x&key=${site.ids.key}`, {
    ...look,
    async act(page) {
      await page.getByRole('button', { name: '解释', exact: true }).click()
      await page.getByText('没有此供应商。GET /v1/models 列出所有模型。').waitFor()
      expect(await page.getByText('There is no such provider.').count()).toBe(0)
    },
  })
})
