// Tests each step and each ready-made script on a raw socket.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  answer,
  errorMidStream,
  fail,
  garbage,
  pausedStream,
  plain,
  resetAfterRequest,
  resetMidStream,
  silence,
  streamed,
  streamWithoutDone,
  toolCall,
  truncatedStream,
} from './answers.ts'
import { chatPost, rawClient, readReply } from './raw-client.ts'
import type { Script } from './script.ts'
import {
  bytes,
  chunk,
  close,
  end,
  gate,
  head,
  resumeReading,
  script,
  scripted,
  split,
  startAt,
  stopReading,
} from './script.ts'
import { chunkSizes, lineEndings, shaped, slowBytes } from './script-changes.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await startFakeUpstream()
})
afterEach(() => upstream.stop())

const requestBody = { model: 'echo', messages: [{ role: 'user', content: 'hi' }] }
const chunkedHead = head(200, { 'transfer-encoding': 'chunked' })
const isComplete = (received: string) => received.endsWith('0\r\n\r\n')
const bodyOf = (received: string) => received.slice(received.indexOf('\r\n\r\n') + 4)

async function sendPlanned(planned: Script) {
  upstream.plan(planned)
  const client = await rawClient(upstream.url)
  client.send(chatPost(requestBody))
  return client
}

/** The body without its chunk framing, as text. */
function unchunked(received: string): string {
  let rest = bodyOf(received)
  let text = ''
  for (;;) {
    const [line = ''] = rest.split('\r\n', 1)
    const size = Number.parseInt(line, 16)
    if (!(size > 0)) return Buffer.from(text, 'latin1').toString()
    text += rest.slice(line.length + 2, line.length + 2 + size)
    rest = rest.slice(line.length + 4 + size)
  }
}

function contentOf(received: string): string {
  const events = [...unchunked(received).matchAll(/^data: (\{.*)$/gm)].map(match => JSON.parse(match[1]!))
  return events.map(event => event.choices?.[0]?.delta.content ?? '').join('')
}

describe('the steps of a script:', () => {
  test('bytes are written raw and chunks as chunks', async () => {
    const client = await sendPlanned(script(chunkedHead, chunk('hello world'), bytes('5\r\nagain\r\n'), end))
    const expected = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\nhello world\r\n5\r\nagain\r\n0\r\n\r\n'
    expect(await client.until(isComplete)).toBe(expected)
    client.close()
  })

  test('end keeps the socket for the next request', async () => {
    const client = await sendPlanned(script(head(200, { 'content-length': '2' }), bytes('ok'), end))
    await client.until(text => text.endsWith('ok'))
    client.send(chatPost(requestBody))
    await client.until(text => text.includes('"content":"hi"'))
    expect(upstream.requests.map(request => request.connection)).toEqual([1, 1])
    client.close()
    await upstream.requests[0]!.closed
    expect([upstream.openSockets, typeof upstream.requests[0]!.closedAtMs]).toEqual([0, 'number'])
  })

  test('gate pauses the answer until it opens', async () => {
    const opened = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const client = await sendPlanned(
      scripted(function* steps() {
        yield chunkedHead
        yield chunk('before')
        reached.resolve()
        yield gate(opened.promise)
        yield chunk('behind')
        yield end
      }),
    )
    await reached.promise
    expect(await client.until(text => text.includes('before'))).not.toContain('behind')
    opened.resolve()
    expect(unchunked(await client.until(isComplete))).toBe('beforebehind')
    client.close()
  })

  test('a script ends when the client disconnects', async () => {
    const ended = Promise.withResolvers<void>()
    const client = await sendPlanned(
      scripted(function* steps() {
        try {
          yield chunkedHead
          yield gate(new Promise(() => {}))
          yield end
        } finally {
          ended.resolve()
        }
      }),
    )
    await client.until(text => text.includes('\r\n\r\n'))
    client.close()
    await upstream.requests[0]!.closed
    await ended.promise
    expect(upstream.openSockets).toBe(0)
  })

  test('close sends a FIN, after which the upstream still reads', async () => {
    const client = await sendPlanned(script(head(200), bytes('half'), close))
    expect(await client.ending).toBe('FIN')
    expect(bodyOf(client.received)).toBe('half')
    expect(upstream.openSockets).toBe(1)
    client.close()
    await upstream.requests[0]!.closed
  })

  test('reset sends a RST at any time', async () => {
    const afterRequest = await sendPlanned(resetAfterRequest())
    expect([await afterRequest.ending, afterRequest.received]).toEqual(['ECONNRESET', ''])
    const midStream = await sendPlanned(resetMidStream(['He']))
    expect(await midStream.ending).toBe('ECONNRESET')
    upstream.plan(startAt('accept', resetAfterRequest()))
    const atAccept = await rawClient(upstream.url)
    expect(await atAccept.ending).toBe('ECONNRESET')
    expect(upstream.requests.length).toBe(2)
  })

  test('a script that starts at accept keeps its turn on a socket that is already open', async () => {
    const client = await sendPlanned(fail(503))
    await client.until(text => text.endsWith('}}'))
    upstream.plan(startAt('accept', resetAfterRequest()), answer('later'))
    client.send(chatPost(requestBody))
    expect(await client.ending).toBe('ECONNRESET')
  })

  test('stopReading stops the body of a request, and resumeReading continues it', async () => {
    const opened = Promise.withResolvers<void>()
    upstream.plan(startAt('head', script(stopReading, gate(opened.promise), resumeReading)))
    const next = upstream.nextRequest()
    const [client, control] = [await rawClient(upstream.url), await rawClient(upstream.url)]
    const body = Buffer.alloc(32 * 1024 * 1024)
    const bigHead = `POST / HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n`
    client.send(bigHead)
    const request = await next
    let flushed = false
    const flushing = new Promise<boolean>(resolve => client.socket.write(body, () => resolve((flushed = true))))
    // The same body arrives earlier on another socket that is read, although it is sent later.
    control.send(bigHead)
    control.socket.write(body)
    await control.until(received => received.includes(' 404 '))
    expect(flushed).toBe(false)
    expect(request.body.length).toBe(0)
    opened.resolve()
    expect(await flushing).toBe(true)
    client.close()
    control.close()
    await request.closed
  })

  test('chunks wait until the client reads', async () => {
    const pieces = 256
    let written = 0
    const client = await rawClient(upstream.url)
    client.socket.pause()
    upstream.plan(
      scripted(function* flood() {
        yield chunkedHead
        for (; written < pieces; written++) yield chunk(Buffer.alloc(64 * 1024, 'x'))
        yield end
      }),
    )
    const next = upstream.nextRequest()
    client.send(chatPost(requestBody))
    const request = await next
    let before = -1
    while (before !== request.bytesWritten || before === 0) {
      before = request.bytesWritten
      await (await fetch(`${upstream.url}/models`)).text()
    }
    expect(written).toBeLessThan(pieces / 2)
    expect(before).toBeLessThan(8 * 1024 * 1024)
    client.socket.resume()
    await client.until(isComplete)
    expect([written, request.bytesWritten]).toEqual([pieces, client.received.length])
    client.close()
  })

  test('a script that throws answers with the error, or resets if the head is already sent', async () => {
    const throwError = () => {
      throw new Error('boom')
    }
    const early = await sendPlanned(scripted(throwError))
    expect(await early.ending).toBe('FIN')
    expect(early.received).toContain('500')
    expect(early.received).toContain('boom')
    const late = await sendPlanned(
      scripted(function* steps() {
        yield chunkedHead
        throwError()
      }),
    )
    expect(await late.ending).toBe('ECONNRESET')
  })
})

describe('planned scripts', () => {
  test('answer in order, and then the default answers again', async () => {
    upstream.plan(fail(503, { retryAfter: '2' }), fail(400, { error: { message: 'no', code: 'bad' } }), answer('yes'))
    const replies: unknown[] = []
    for (let round = 0; round < 4; round++) {
      const response = await fetch(`${upstream.url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(requestBody),
      })
      const { error, choices } = await readReply(response)
      const content = error ? error.code : choices[0]!.message.content
      replies.push([response.status, response.headers.get('retry-after'), content])
    }
    expect(replies).toEqual([
      [503, '2', null],
      [400, null, 'bad'],
      [200, null, 'yes'],
      [200, null, 'hi'],
    ])
  })

  test('of a model answer until they are removed', async () => {
    const status = async () =>
      (await fetch(`${upstream.url}/chat/completions`, { method: 'POST', body: JSON.stringify(requestBody) })).status
    upstream.planModel('other', fail(500))
    upstream.planModel('echo', fail(529))
    expect([await status(), await status()]).toEqual([529, 529])
    upstream.planModel('echo', undefined)
    expect(await status()).toBe(200)
  })

  test('are stopped with the upstream: open sockets are closed and waiting promises are rejected', async () => {
    const received = upstream.nextRequest()
    const client = await sendPlanned(silence())
    await received
    const waiting = upstream.nextRequest().catch((fault: Error) => fault.message)
    await upstream.stop()
    expect([await client.ending, client.received]).toEqual(['FIN', ''])
    expect(upstream.openSockets).toBe(0)
    expect(await waiting).toBe('the fake upstream was stopped')
    await upstream.requests[0]!.closed
    upstream = await startFakeUpstream()
  })
})

describe('ready-made scripts:', () => {
  test('streams have the planned content and usage', async () => {
    const client = await sendPlanned(streamed(['He', 'llo'], { usage: { input: 3, output: 2 } }))
    const received = await client.until(isComplete)
    expect(contentOf(received)).toBe('Hello')
    expect(unchunked(received)).toContain('"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,')
    expect(unchunked(received).endsWith('data: [DONE]\n\n')).toBe(true)
    client.close()
  })

  test('answers are streamed on request, and plain answers never', async () => {
    for (const [planned, type] of [
      [answer('hi'), 'text/event-stream'],
      [plain('hi'), 'application/json'],
    ] as const) {
      upstream.plan(planned, toolCall({ name: 'f', arguments: '{"a":1}' }))
      const body = JSON.stringify({ ...requestBody, stream: true })
      const reply = await fetch(`${upstream.url}/chat/completions`, { method: 'POST', body })
      expect(reply.headers.get('content-type')).toStartWith(type)
      await reply.text()
      const call = await (await fetch(`${upstream.url}/chat/completions`, { method: 'POST', body })).text()
      expect(call).toContain(JSON.stringify({ arguments: '{"a":1}' }))
    }
  })

  test('a paused stream continues piece by piece', async () => {
    const openings = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const client = await sendPlanned(
      pausedStream(
        ['a', 'b', 'c'],
        openings.map(opened => opened.promise),
      ),
    )
    expect(contentOf(await client.until(text => text.includes('"a"')))).toBe('a')
    openings[0]!.resolve()
    expect(contentOf(await client.until(text => text.includes('"b"')))).toBe('ab')
    openings[1]!.resolve()
    expect(contentOf(await client.until(isComplete))).toBe('abc')
    client.close()
  })

  test('broken streams break at their position', async () => {
    const cut = await sendPlanned(truncatedStream(['He', 'llo']))
    expect(await cut.ending).toBe('FIN')
    expect([contentOf(cut.received), isComplete(cut.received), cut.received.includes('"stop"')]).toEqual([
      'Hello',
      false,
      false,
    ])
    const noDone = await sendPlanned(streamWithoutDone(['Hello']))
    expect(unchunked(await noDone.until(isComplete))).toMatch(/"finish_reason":"stop"\}\]\}\n\n$/)
    const failing = await sendPlanned(errorMidStream(['He'], { message: 'no more', type: 'server_error' }))
    expect(unchunked(await failing.until(isComplete))).toMatch(/\n\ndata: \{"error":\{"message":"no more".*\}\}\n\n$/)
    for (const client of [cut, noDone, failing]) client.close()
  })

  test('garbage is not HTTP', async () => {
    const client = await sendPlanned(garbage())
    expect(await client.ending).toBe('FIN')
    expect(client.received).not.toContain('HTTP/')
  })

  test('shapes change the chunks and not the content', async () => {
    const text = ['Grüße, ', '世界 🙂']
    for (const size of [1, 2, 3, 7, 100_000]) {
      const client = await sendPlanned(chunkSizes(size)(streamed(text)))
      const received = await client.until(isComplete)
      expect(contentOf(received)).toBe(text.join(''))
      if (size < 16) expect(bodyOf(received)).toMatch(new RegExp(`^(${size.toString(16)}\\r\\n)`))
      if (size === 100_000) expect(bodyOf(received).match(/chat\.completion\.chunk/g)!.length).toBe(4)
      client.close()
    }
    const client = await sendPlanned(shaped(truncatedStream(['世界 🙂']), lineEndings('\r\n'), slowBytes(0)))
    await client.ending
    const plainText = unchunked(client.received)
    expect(plainText.replaceAll('\r\n', '')).not.toContain('\n')
    expect(plainText).toContain('世界 🙂')
    expect([...split('abcde', 2)].length).toBe(3)
    client.close()
  })
})
