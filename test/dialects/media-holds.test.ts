// What is held for a call with media: their bound by the rules of the model, in every dialect and in every way to send
// them, and the whole context where something else than listed media may belong to the input.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MediaTokenRules } from '../../src/base/money/model-traits.ts'
import { sizeOf, sizeOn } from '../../src/pipeline/route/call-size.ts'
import { getMediaFacts } from '../../src/protocols/media/measure.ts'
import type { CallMedia } from '../../src/protocols/media/media-tokens.ts'
import type { Call } from '../../src/protocols/neutral/call.ts'
import { passthroughProtocols } from '../../src/protocols/passthrough-protocols.ts'
import type { RequestHead } from '../../src/protocols/protocol.ts'
import { findProtocol } from '../../src/protocols/protocols.ts'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { gate } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { dataUrl, mp4, pdf, png, pngChunk, pngHeader, pngOf, wav } from '../support/sample-media.ts'
import { headersFor, requestIn } from './money-calls.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

const askedAt = (path: string): RequestHead => ({ path, query: () => null, header: () => undefined })

function readBody(dialect: Dialect, text: string): Call {
  const { path } = requestIn(dialect, { model: 'p/m' })
  return findProtocol(dialect)!.readCall(Buffer.from(text), askedAt(path.split('?')[0]!))
}
const read = (dialect: Dialect, more: object): Call =>
  readBody(dialect, requestIn(dialect, { model: 'p/m', more }).body)

const rules: MediaTokenRules = {
  image: { kind: 'patches', side: 10, patchesMax: 5_000 },
  audioSecond: 10,
  videoFrame: 100,
  pdfPage: 300,
  pdfPagesMax: 20,
}
const model = { id: 'm', contextTokens: 70_000, traits: { mediaTokens: rules } }
const inputMax = (call: Call): number => sizeOf(call, model, { capsThought: true }).inputTokensMax
/** The tokens besides one for each byte of text. */
const mediaMax = (call: Call): number => inputMax(call) - (call.media?.textBytes ?? 0)

const user = (...content: readonly unknown[]): object => ({ messages: [{ role: 'user', content }] })
const item = (...content: readonly unknown[]): object => ({ input: [{ role: 'user', content }] })
const part = (...parts: readonly object[]): object => ({ contents: [{ role: 'user', parts }] })

const picture = png(100, 50)
const [image64, film64, sound64, paper64] = [picture, mp4({ film: 9 }), wav(3), pdf('3 0 R 3 0 R')].map(bytes =>
  bytes.toString('base64'),
) as [string, string, string, string]
const pictureUrl = dataUrl('image/png', picture)
const paperUrl = dataUrl('application/pdf', pdf('3 0 R 3 0 R'))
const filmUrl = dataUrl('video/mp4', mp4({ film: 9 }))
const forUrls = png(62, 63).toString('base64url')

const [IMAGE, UNSEEN, FILM, SOUND, PAPER] = [50, 5_000, 1_000 + 90, 30, 600]
const CONTEXT = 'the whole context'

type Row = readonly [Dialect, string, object, CallMedia['kind'], number | typeof CONTEXT]

const chatRows = (dialect: 'openai-chat' | 'ark'): readonly Row[] => [
  [dialect, 'an image', user({ type: 'image_url', image_url: { url: pictureUrl } }), 'image', IMAGE],
  [dialect, 'an image as a bare URL', user({ type: 'image_url', image_url: pictureUrl }), 'image', IMAGE],
  [dialect, 'an image elsewhere', user({ type: 'image_url', image_url: { url: 'https://x/y' } }), 'image', UNSEEN],
  [dialect, 'an image by its id', user({ type: 'image_url', image_url: { file_id: 'file-1' } }), 'image', UNSEEN],
  [dialect, 'sound', user({ type: 'input_audio', input_audio: { data: sound64, format: 'wav' } }), 'audio', SOUND],
  [dialect, 'a film', user({ type: 'video_url', video_url: { url: filmUrl } }), 'video', FILM],
  [dialect, 'a film elsewhere', user({ type: 'video_url', video_url: { url: 'https://x/y' } }), 'video', CONTEXT],
  [dialect, 'a PDF', user({ type: 'file', file: { file_data: paperUrl, filename: 'a.pdf' } }), 'file', PAPER],
  [dialect, 'a PDF by its id', user({ type: 'file', file: { file_id: 'file-1' } }), 'file', CONTEXT],
  [
    dialect,
    'an image in a result',
    {
      messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'image_url', image_url: { url: pictureUrl } }] }],
    },
    'image',
    IMAGE,
  ],
]

const base64 = (media_type: string, data: string): object => ({ type: 'base64', media_type, data })
const inline = (mimeType: string, data: string): object => ({ inlineData: { mimeType, data } })

const rows: readonly Row[] = [
  ...chatRows('openai-chat'),
  ...chatRows('ark'),
  ['openai-responses', 'an image', item({ type: 'input_image', image_url: pictureUrl }), 'image', IMAGE],
  ['openai-responses', 'an image elsewhere', item({ type: 'input_image', image_url: 'https://x/y' }), 'image', UNSEEN],
  ['openai-responses', 'an image by its id', item({ type: 'input_image', file_id: 'f' }), 'image', UNSEEN],
  ['openai-responses', 'a PDF', item({ type: 'input_file', file_data: paperUrl, filename: 'a.pdf' }), 'file', PAPER],
  ['openai-responses', 'a PDF elsewhere', item({ type: 'input_file', file_url: 'https://x/y' }), 'file', CONTEXT],
  ['openai-responses', 'a film', item({ type: 'input_video', video_url: filmUrl }), 'video', FILM],
  [
    'openai-responses',
    'sound',
    item({ type: 'input_audio', input_audio: { data: sound64, format: 'wav' } }),
    'audio',
    SOUND,
  ],
  [
    'openai-responses',
    'an image in a result',
    {
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: pictureUrl }] }],
    },
    'image',
    IMAGE,
  ],
  ['anthropic-messages', 'an image', user({ type: 'image', source: base64('image/png', image64) }), 'image', IMAGE],
  [
    'anthropic-messages',
    'a PDF',
    user({ type: 'document', source: base64('application/pdf', paper64) }),
    'file',
    PAPER,
  ],
  [
    'anthropic-messages',
    'an image elsewhere',
    user({ type: 'image', source: { type: 'url', url: 'https://x/y' } }),
    'image',
    UNSEEN,
  ],
  [
    'anthropic-messages',
    'an image by its id',
    user({ type: 'image', source: { type: 'file', file_id: 'f' } }),
    'image',
    UNSEEN,
  ],
  [
    'anthropic-messages',
    'a PDF by its id',
    user({ type: 'document', source: { type: 'file', file_id: 'f' } }),
    'file',
    CONTEXT,
  ],
  [
    'anthropic-messages',
    'an image in a result',
    user({
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'image', source: base64('image/png', image64) }],
    }),
    'image',
    IMAGE,
  ],
  ['gemini', 'an image', part(inline('image/png', image64)), 'image', IMAGE],
  [
    'gemini',
    'an image by the other names',
    part({ inline_data: { mime_type: 'image/png', data: image64 } }),
    'image',
    IMAGE,
  ],
  ['gemini', 'an image in the base64 of URLs', part(inline('image/png', forUrls)), 'image', 49],
  ['gemini', 'a PDF', part(inline('application/pdf', paper64)), 'file', PAPER],
  ['gemini', 'sound', part(inline('audio/wav', sound64)), 'audio', SOUND],
  ['gemini', 'a film', part(inline('video/mp4', film64)), 'video', FILM],
  [
    'gemini',
    'a film, more often seen',
    part({ ...inline('video/mp4', film64), videoMetadata: { fps: 10 } }),
    'video',
    91 * 100 + 90,
  ],
  ['gemini', 'an image in detail', part({ ...inline('image/png', image64), mediaResolution: {} }), 'image', IMAGE],
  [
    'gemini',
    'an image in a result',
    part({ functionResponse: { name: 'f', response: {}, parts: [inline('image/png', image64)] } }),
    'image',
    IMAGE,
  ],
]

test.each(rows)('%s: %s', (dialect, _name, more, kind, tokens) => {
  const call = read(dialect, more)
  expect(call.textOnly).toBe(false)
  expect(call.media?.items.map(one => one.kind)).toEqual([kind])
  if (tokens === CONTEXT) expect(inputMax(call)).toBe(70_000)
  else {
    expect(mediaMax(call)).toBe(tokens)
    expect(call.media!.textBytes).toBeLessThan(300)
  }
})

test('every dialect has a way for an image, and what a dialect carries is not forgotten', () => {
  const kinds = (dialect: Dialect) => [...new Set(rows.filter(row => row[0] === dialect).map(row => row[3]))].sort()
  for (const dialect of dialects) expect(kinds(dialect)).toContain('image')
  expect(kinds('anthropic-messages')).toEqual(['file', 'image'])
  for (const dialect of dialects.filter(name => name !== 'anthropic-messages')) {
    expect(kinds(dialect)).toEqual(['audio', 'file', 'image', 'video'])
  }
})

test('text and several media add up, and never exceed the context', () => {
  const shown = { type: 'image_url', image_url: { url: pictureUrl } }
  const call = read('openai-chat', user({ type: 'text', text: 'x'.repeat(1_000) }, shown, shown))
  expect(mediaMax(call)).toBe(2 * IMAGE)
  expect(call.media!.textBytes).toBe(call.bodyBytes - 2 * image64.length)
  const many = Array.from({ length: 20 }, () => ({ type: 'image_url', image_url: { url: 'https://x/y' } }))
  expect(inputMax(read('openai-chat', user(...many)))).toBe(70_000)
})

const both = pngOf(pngHeader(1, 1), pngChunk('tEXt', pdf('3 0 R')))
const chatImage = (inner: object, more: object = {}): object =>
  user({ type: 'image_url', image_url: { url: pictureUrl, ...inner }, ...more })

/** In each of these something may be in the input that is not among the media, or is not what it says. */
const doubtful: readonly (readonly [string, Dialect, object])[] = [
  ['a search', 'openai-chat', { ...chatImage({}), web_search_options: {} }],
  [
    'a tool of the provider',
    'anthropic-messages',
    {
      ...user({ type: 'image', source: base64('image/png', image64) }),
      tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }],
    },
  ],
  [
    'a stored conversation',
    'openai-responses',
    { ...item({ type: 'input_image', image_url: pictureUrl }), previous_response_id: 'r' },
  ],
  ['a cache', 'gemini', { ...part(inline('image/png', image64)), cachedContent: 'cachedContents/1' }],
  ['a file of Google', 'gemini', part({ fileData: { fileUri: 'https://x/y', mimeType: 'image/png' } })],
  [
    'spoken words',
    'openai-chat',
    {
      messages: [
        { role: 'assistant', audio: { id: 'a' } },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: pictureUrl } }] },
      ],
    },
  ],
  ['an unknown part', 'openai-chat', user({ type: 'image_url', image_url: { url: pictureUrl } }, { type: 'x_new' })],
  ['an unknown option', 'openai-chat', chatImage({ Url: 'https://x/y' })],
  ['an unknown field of the part', 'openai-chat', chatImage({}, { Image_url: { url: 'https://x/y' } })],
  ['a second medium in the part', 'openai-chat', chatImage({}, { video_url: { url: 'https://x/y' } })],
  ['two sources', 'openai-chat', chatImage({ file_id: 'file-1' })],
  ['no source', 'openai-chat', user({ type: 'image_url', image_url: {} })],
  ['a film that is called an image', 'openai-chat', user({ type: 'image_url', image_url: { url: filmUrl } })],
  [
    'a PDF that is also an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: dataUrl('image/png', both) } }),
  ],
  [
    'a film on YouTube as an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: 'https://www.youtube.com/watch?v=x' } }),
  ],
  [
    'a file of Google as an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: 'https://generativelanguage.googleapis.com/v1beta/files/x' } }),
  ],
  [
    'a PDF that is called a text',
    'openai-chat',
    user({ type: 'file', file: { file_data: paper64, filename: 'a.txt' } }),
  ],
  ['a film that is called an image', 'gemini', part(inline('video/mp4', image64), inline('text/plain', film64))],
  [
    'another spelling of a type',
    'gemini',
    part({ inlineData: { mimeType: 'image/png', mime_type: 'video/mp4', data: image64 } }),
  ],
  ['frames that are no number', 'gemini', part({ ...inline('video/mp4', film64), videoMetadata: { fps: '24' } })],
  ['an id that looks like base64', 'openai-chat', user({ type: 'image_url', image_url: { url: 'files/abcdef' } })],
  ['no base64', 'anthropic-messages', user({ type: 'image', source: base64('image/png', 'files/abc') })],
  ['the base64 of URLs elsewhere', 'anthropic-messages', user({ type: 'image', source: base64('image/png', forUrls) })],
  [
    'a block of a later day',
    'anthropic-messages',
    user({ type: 'image', source: base64('image/png', image64), zoom: 9 }),
  ],
  ['a document of blocks', 'anthropic-messages', user({ type: 'document', source: { type: 'content', content: [] } })],
  [
    'an item by its name',
    'openai-responses',
    {
      input: [
        { type: 'item_reference', id: 'm' },
        { role: 'user', content: [{ type: 'input_image', image_url: pictureUrl }] },
      ],
    },
  ],
]
test.each(doubtful)('held for as the whole context: %s (%s)', (_name, dialect, more) => {
  expect(inputMax(read(dialect, more))).toBe(70_000)
})

test('of two fields with one name an upstream may read the other', () => {
  const sent = (text: string): Call => readBody('gemini', text)
  const data = `"data":"${image64}"`
  const once = `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png",${data}}}]}]}`
  expect(mediaMax(sent(once))).toBe(IMAGE)
  const twice = once.replace(data, `"data":"${png(9_000, 9_000).toString('base64')}",${data}`)
  expect(inputMax(sent(twice))).toBe(70_000)
})

test('what cannot be read counts as the largest image, and its text as text', () => {
  const url = `${pictureUrl.slice(0, -8)}!!!!${pictureUrl.slice(-8)}`
  const call = read('openai-chat', user({ type: 'image_url', image_url: { url } }))
  expect(inputMax(call)).toBe(call.bodyBytes + UNSEEN)
})

test('a chat with a stored context is read by it, whatever else it has', () => {
  const json = { model: 'p/m', context_id: 'c', ...user({ type: 'image_url', image_url: { url: pictureUrl } }) }
  const call = passthroughProtocols['ark-context-chat'].readCall(Buffer.from(JSON.stringify(json)), askedAt('/'))
  expect([call.media, inputMax(call)]).toEqual([undefined, 70_000])
})

test('a model that is not listed has the rules of its provider', () => {
  const call = read('openai-chat', chatImage({}))
  const provider = { can: { capsThought: true }, traits: { mediaTokens: rules } }
  const sized = (one: object): number =>
    sizeOn({ model: one, provider, channels: [] } as unknown as Parameters<typeof sizeOn>[0], call).inputTokensMax
  expect(sized({ id: 'm', contextTokens: 70_000 })).toBe(call.media!.textBytes + IMAGE)
  expect(sized({ id: 'm', contextTokens: 70_000, traits: {} })).toBe(70_000)
})

test('a long text is not decoded on the thread that serves calls', () => {
  const url = dataUrl('image/png', Buffer.concat([picture, Buffer.alloc(100_000)]))
  // A holder that the parsing thread has not seen: nobody has measured it.
  expect(getMediaFacts({ url }, url)).toBeUndefined()
  const call = read('openai-chat', user({ type: 'image_url', image_url: { url } }))
  expect(call.media!.items).toEqual([{ kind: 'image' }])
  expect(getMediaFacts({ url: pictureUrl }, pictureUrl)?.image).toEqual({ width: 100, height: 50 })
})

describe('a gateway', () => {
  interface ShippedModel {
    readonly id: string
    readonly contextTokens?: number
    readonly traits?: { readonly reads?: readonly string[] }
    readonly price?: { readonly input?: string }
  }
  const folder = join(import.meta.dir, '../../providers')
  const shipped = readdirSync(folder).flatMap(name => {
    const { models } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { models: readonly ShippedModel[] }
    return models.filter(({ traits }) => traits?.reads?.includes('image'))
  })
  const worth = ({ price, contextTokens = 0 }: ShippedModel): number => Number(price?.input ?? 0) * contextTokens
  const dearest = shipped.reduce((most, one) => (worth(one) > worth(most) ? one : most))

  let harness: Harness
  beforeAll(async () => {
    const { name: _name, speaks: _speaks, ...rest } = dearest as ShippedModel & Record<string, unknown>
    harness = await startDialects({ models: [{ ...rest, id: 'dear', outputTokensMax: 100 }] })
  })
  afterAll(() => harness.stop())

  /** What is held while the call runs, in dollars. */
  async function held(dialect: Dialect, more: object): Promise<number> {
    const key = await harness.key({ qpm: 1_000, credit: '1' })
    const [arrived, go] = [Promise.withResolvers<undefined>(), Promise.withResolvers<void>()]
    harness.upstream.plan({
      starts: 'request',
      *steps() {
        arrived.resolve(undefined)
        yield gate(go.promise)
        yield* jsonAnswer(400, '{"error":{"message":"no"}}')
      },
    })
    const { path, body } = requestIn(dialect, { model: modelOf(dialect, 'dear'), cap: 16, more })
    const answer = fetch(`${harness.url}${path}`, { method: 'POST', headers: headersFor(key), body }).then(reply =>
      reply.text(),
    )
    const refusal = await Promise.race([arrived.promise, answer])
    expect(refusal).toBeUndefined()
    const amount = Number((await harness.balance(key)).held)
    go.resolve()
    await answer
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    return amount
  }
  const shown: Readonly<Record<Dialect, (url: string) => object>> = {
    'openai-chat': url => user({ type: 'image_url', image_url: { url } }),
    'ark': url => user({ type: 'image_url', image_url: { url } }),
    'openai-responses': url => item({ type: 'input_image', image_url: url }),
    'anthropic-messages': url => user({ type: 'image', source: base64('image/png', url.split(',')[1] ?? '') }),
    'gemini': url => part(inline('image/png', url.split(',')[1] ?? '')),
  }

  test.each(dialects)('%s: a dollar is enough for an image on the dearest shipped model', async dialect => {
    expect(worth(dearest)).toBeGreaterThan(10_000_000)
    expect(await held(dialect, shown[dialect](pictureUrl))).toBeLessThan(0.05)
  })

  test.each(dialects)('%s: and for a large one, which is measured in another thread', async dialect => {
    const large = Buffer.concat([png(100, 50), Buffer.alloc(3_000_000)])
    expect(await held(dialect, shown[dialect](dataUrl('image/png', large)))).toBeLessThan(0.05)
  })

  test('an image elsewhere is held for as the largest', async () => {
    const [seen, unseen] = [
      await held('openai-chat', shown['openai-chat'](pictureUrl)),
      await held('openai-chat', shown['openai-chat']('https://x/y.png')),
    ]
    expect(unseen).toBeGreaterThan(seen + 0.1)
    expect(unseen).toBeLessThan(0.7)
  })
})
