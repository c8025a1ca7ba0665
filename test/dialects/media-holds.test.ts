// The hold of a call with media: the bound of the media by the rules of the model, for every way to send media in every
// dialect, and the whole context if the input may contain more than the listed media.

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

const headOf = (path: string): RequestHead => ({ path, query: () => null, header: () => undefined })

function readBody(dialect: Dialect, text: string): Call {
  const { path } = requestIn(dialect, { model: 'p/m' })
  return findProtocol(dialect)!.readCall(Buffer.from(text), headOf(path.split('?')[0]!))
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

const imageBytes = png(100, 50)
const [image64, video64, audio64, pdf64] = [imageBytes, mp4({ movie: 9 }), wav(3), pdf('3 0 R 3 0 R')].map(bytes =>
  bytes.toString('base64'),
) as [string, string, string, string]
const imageUrl = dataUrl('image/png', imageBytes)
const pdfUrl = dataUrl('application/pdf', pdf('3 0 R 3 0 R'))
const videoUrl = dataUrl('video/mp4', mp4({ movie: 9 }))
const urlSafe64 = png(62, 63).toString('base64url')

const [IMAGE, UNSEEN, VIDEO, AUDIO, PDF] = [50, 5_000, 1_000 + 90, 30, 600]
const CONTEXT = 'the whole context'

type Row = readonly [Dialect, string, object, CallMedia['kind'], number | typeof CONTEXT]

const chatRows = (dialect: 'openai-chat' | 'ark'): readonly Row[] => [
  [dialect, 'an image', user({ type: 'image_url', image_url: { url: imageUrl } }), 'image', IMAGE],
  [dialect, 'an image as a bare URL', user({ type: 'image_url', image_url: imageUrl }), 'image', IMAGE],
  [dialect, 'an image by URL', user({ type: 'image_url', image_url: { url: 'https://x/y' } }), 'image', UNSEEN],
  [dialect, 'an image by its id', user({ type: 'image_url', image_url: { file_id: 'file-1' } }), 'image', UNSEEN],
  [dialect, 'audio', user({ type: 'input_audio', input_audio: { data: audio64, format: 'wav' } }), 'audio', AUDIO],
  [dialect, 'a video', user({ type: 'video_url', video_url: { url: videoUrl } }), 'video', VIDEO],
  [dialect, 'a video by URL', user({ type: 'video_url', video_url: { url: 'https://x/y' } }), 'video', CONTEXT],
  [dialect, 'a PDF', user({ type: 'file', file: { file_data: pdfUrl, filename: 'a.pdf' } }), 'file', PDF],
  [dialect, 'a PDF by its id', user({ type: 'file', file: { file_id: 'file-1' } }), 'file', CONTEXT],
  [
    dialect,
    'an image in a result',
    {
      messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'image_url', image_url: { url: imageUrl } }] }],
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
  ['openai-responses', 'an image', item({ type: 'input_image', image_url: imageUrl }), 'image', IMAGE],
  ['openai-responses', 'an image by URL', item({ type: 'input_image', image_url: 'https://x/y' }), 'image', UNSEEN],
  ['openai-responses', 'an image by its id', item({ type: 'input_image', file_id: 'f' }), 'image', UNSEEN],
  ['openai-responses', 'a PDF', item({ type: 'input_file', file_data: pdfUrl, filename: 'a.pdf' }), 'file', PDF],
  ['openai-responses', 'a PDF by URL', item({ type: 'input_file', file_url: 'https://x/y' }), 'file', CONTEXT],
  ['openai-responses', 'a video', item({ type: 'input_video', video_url: videoUrl }), 'video', VIDEO],
  [
    'openai-responses',
    'audio',
    item({ type: 'input_audio', input_audio: { data: audio64, format: 'wav' } }),
    'audio',
    AUDIO,
  ],
  [
    'openai-responses',
    'an image in a result',
    {
      input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: imageUrl }] }],
    },
    'image',
    IMAGE,
  ],
  ['anthropic-messages', 'an image', user({ type: 'image', source: base64('image/png', image64) }), 'image', IMAGE],
  ['anthropic-messages', 'a PDF', user({ type: 'document', source: base64('application/pdf', pdf64) }), 'file', PDF],
  [
    'anthropic-messages',
    'an image by URL',
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
    'an image in snake case',
    part({ inline_data: { mime_type: 'image/png', data: image64 } }),
    'image',
    IMAGE,
  ],
  ['gemini', 'an image in URL-safe base64', part(inline('image/png', urlSafe64)), 'image', 49],
  ['gemini', 'a PDF', part(inline('application/pdf', pdf64)), 'file', PDF],
  ['gemini', 'audio', part(inline('audio/wav', audio64)), 'audio', AUDIO],
  ['gemini', 'a video', part(inline('video/mp4', video64)), 'video', VIDEO],
  [
    'gemini',
    'a video with more frames',
    part({ ...inline('video/mp4', video64), videoMetadata: { fps: 10 } }),
    'video',
    91 * 100 + 90,
  ],
  [
    'gemini',
    'an image with a resolution',
    part({ ...inline('image/png', image64), mediaResolution: {} }),
    'image',
    IMAGE,
  ],
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

test('the rows cover every kind of media of every dialect', () => {
  const kinds = (dialect: Dialect) => [...new Set(rows.filter(row => row[0] === dialect).map(row => row[3]))].sort()
  for (const dialect of dialects) expect(kinds(dialect)).toContain('image')
  expect(kinds('anthropic-messages')).toEqual(['file', 'image'])
  for (const dialect of dialects.filter(name => name !== 'anthropic-messages')) {
    expect(kinds(dialect)).toEqual(['audio', 'file', 'image', 'video'])
  }
})

test('text and several media add up, and never exceed the context', () => {
  const shown = { type: 'image_url', image_url: { url: imageUrl } }
  const call = read('openai-chat', user({ type: 'text', text: 'x'.repeat(1_000) }, shown, shown))
  expect(mediaMax(call)).toBe(2 * IMAGE)
  expect(call.media!.textBytes).toBe(call.bodyBytes - 2 * image64.length)
  const many = Array.from({ length: 20 }, () => ({ type: 'image_url', image_url: { url: 'https://x/y' } }))
  expect(inputMax(read('openai-chat', user(...many)))).toBe(70_000)
})

const both = pngOf(pngHeader(1, 1), pngChunk('tEXt', pdf('3 0 R')))
const chatImage = (inner: object, more: object = {}): object =>
  user({ type: 'image_url', image_url: { url: imageUrl, ...inner }, ...more })

/** Calls whose input may contain more than the listed media, or media of another kind than declared. */
const unclearCalls: readonly (readonly [string, Dialect, object])[] = [
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
    { ...item({ type: 'input_image', image_url: imageUrl }), previous_response_id: 'r' },
  ],
  ['a cache', 'gemini', { ...part(inline('image/png', image64)), cachedContent: 'cachedContents/1' }],
  ['a file of Google', 'gemini', part({ fileData: { fileUri: 'https://x/y', mimeType: 'image/png' } })],
  [
    'earlier audio by its id',
    'openai-chat',
    {
      messages: [
        { role: 'assistant', audio: { id: 'a' } },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: imageUrl } }] },
      ],
    },
  ],
  ['an unknown part', 'openai-chat', user({ type: 'image_url', image_url: { url: imageUrl } }, { type: 'x_new' })],
  ['an unknown option', 'openai-chat', chatImage({ Url: 'https://x/y' })],
  ['an unknown field of the part', 'openai-chat', chatImage({}, { Image_url: { url: 'https://x/y' } })],
  ['a second medium in the part', 'openai-chat', chatImage({}, { video_url: { url: 'https://x/y' } })],
  ['two sources', 'openai-chat', chatImage({ file_id: 'file-1' })],
  ['no source', 'openai-chat', user({ type: 'image_url', image_url: {} })],
  ['a video declared as an image', 'openai-chat', user({ type: 'image_url', image_url: { url: videoUrl } })],
  [
    'a PDF that is also an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: dataUrl('image/png', both) } }),
  ],
  [
    'a YouTube video as an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: 'https://www.youtube.com/watch?v=x' } }),
  ],
  [
    'a file of Google as an image',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: 'https://generativelanguage.googleapis.com/v1beta/files/x' } }),
  ],
  ['a PDF declared as text', 'openai-chat', user({ type: 'file', file: { file_data: pdf64, filename: 'a.txt' } })],
  ['a video declared as an image', 'gemini', part(inline('video/mp4', image64), inline('text/plain', video64))],
  [
    'another spelling of a type',
    'gemini',
    part({ inlineData: { mimeType: 'image/png', mime_type: 'video/mp4', data: image64 } }),
  ],
  ['frames that are no number', 'gemini', part({ ...inline('video/mp4', video64), videoMetadata: { fps: '24' } })],
  ['an id that looks like base64', 'openai-chat', user({ type: 'image_url', image_url: { url: 'files/abcdef' } })],
  ['no base64', 'anthropic-messages', user({ type: 'image', source: base64('image/png', 'files/abc') })],
  [
    'URL-safe base64 in another dialect than Gemini',
    'anthropic-messages',
    user({ type: 'image', source: base64('image/png', urlSafe64) }),
  ],
  [
    'an unknown field of the block',
    'anthropic-messages',
    user({ type: 'image', source: base64('image/png', image64), zoom: 9 }),
  ],
  ['a document of blocks', 'anthropic-messages', user({ type: 'document', source: { type: 'content', content: [] } })],
  [
    'an item by its id',
    'openai-responses',
    {
      input: [
        { type: 'item_reference', id: 'm' },
        { role: 'user', content: [{ type: 'input_image', image_url: imageUrl }] },
      ],
    },
  ],
]
test.each(unclearCalls)('a call with %s is held for the whole context (%s)', (_name, dialect, more) => {
  expect(inputMax(read(dialect, more))).toBe(70_000)
})

test('a call with duplicate fields is refused, or held for the whole context if they are in the data of the caller', () => {
  const sent = (text: string): Call => readBody('gemini', text)
  const data = `"data":"${image64}"`
  const once = `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png",${data}}}]}]}`
  expect(mediaMax(sent(once))).toBe(IMAGE)
  const twice = once.replace(data, `"data":"${png(9_000, 9_000).toString('base64')}",${data}`)
  expect(() => sent(twice)).toThrow('in an object')
  const labelled = once.replace('{', '{"labels":{"a":"1","a":"2"},')
  expect(inputMax(sent(labelled))).toBe(70_000)
})

test('an image that cannot be read counts as the largest image, and its bytes count as text', () => {
  const url = `${imageUrl.slice(0, -8)}!!!!${imageUrl.slice(-8)}`
  const call = read('openai-chat', user({ type: 'image_url', image_url: { url } }))
  expect(inputMax(call)).toBe(call.bodyBytes + UNSEEN)
})

test('a chat with a stored context is held for the whole context, with media as well', () => {
  const json = { model: 'p/m', context_id: 'c', ...user({ type: 'image_url', image_url: { url: imageUrl } }) }
  const call = passthroughProtocols['ark-context-chat'].readCall(Buffer.from(JSON.stringify(json)), headOf('/'))
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
  const url = dataUrl('image/png', Buffer.concat([imageBytes, Buffer.alloc(100_000)]))
  // A holder that the parsing thread has not seen: nobody has measured it.
  expect(getMediaFacts({ url }, url)).toBeUndefined()
  const call = read('openai-chat', user({ type: 'image_url', image_url: { url } }))
  expect(call.media!.items).toEqual([{ kind: 'image' }])
  expect(getMediaFacts({ url: imageUrl }, imageUrl)?.image).toEqual({ width: 100, height: 50 })
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

  test.each(dialects)('%s: a small image on the dearest shipped model is held for a few cents', async dialect => {
    expect(worth(dearest)).toBeGreaterThan(10_000_000)
    expect(await held(dialect, shown[dialect](imageUrl))).toBeLessThan(0.05)
  })

  test.each(dialects)(
    '%s: a large file with a small image is measured in another thread and held for a few cents',
    async dialect => {
      const large = Buffer.concat([png(100, 50), Buffer.alloc(3_000_000)])
      expect(await held(dialect, shown[dialect](dataUrl('image/png', large)))).toBeLessThan(0.05)
    },
  )

  test('an image by URL is held for as the largest image', async () => {
    const [seen, unseen] = [
      await held('openai-chat', shown['openai-chat'](imageUrl)),
      await held('openai-chat', shown['openai-chat']('https://x/y.png')),
    ]
    expect(unseen).toBeGreaterThan(seen + 0.1)
    expect(unseen).toBeLessThan(0.7)
  })
})
