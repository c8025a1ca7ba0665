// Tests that a page is made once: all who ask get the same bytes.

import { expect, test } from 'bun:test'
import { buildCachedPage, replyWithPage } from './cached-page.ts'

test('every answer has the same bytes, which nothing converts again', async () => {
  const page = buildCachedPage('demo→echo', { contentType: 'text/plain' })
  const [first, second] = [replyWithPage(page, undefined), replyWithPage(page, '"another"')]
  expect(first.body).toBe(page.body)
  expect(second.body).toBe(page.body)
  expect(page.body).toBeInstanceOf(Blob)
  expect(await new Response(page.body).text()).toBe('demo→echo')
})
