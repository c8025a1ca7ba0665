// Tests Thread with real threads: answers, errors, deaths, stops and timeouts.

import { afterEach, describe, expect, test } from 'bun:test'
import { until } from '../../../test/support/gateway.ts'
import type { SampleMethods } from '../../../test/support/sample-thread.ts'
import type { ThreadOptions } from './thread.ts'
import { Thread } from './thread.ts'

const url = new URL('../../../test/support/sample-thread.ts', import.meta.url).href

type SampleThread = Thread<SampleMethods, string, string>
const opened: SampleThread[] = []

function open(options: Partial<ThreadOptions<SampleMethods, string, string>> = {}): SampleThread {
  const thread: SampleThread = new Thread({ url, setup: () => 'sample', ...options })
  opened.push(thread)
  return thread
}

afterEach(() => {
  for (const thread of opened.splice(0)) thread.stop()
})

/** The text of the error with which the promise is rejected. */
const errorOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    output => `resolved: ${JSON.stringify(output)}`,
    (fault: Error) => fault.message,
  )

describe('a request', () => {
  test('starts the thread, gets its own output, and does not wait for earlier ones that take longer', async () => {
    const thread = open()
    expect([thread.isRunning, thread.hasAnswered]).toEqual([false, false])
    const slow = thread.run('wait', undefined)
    expect([thread.isRunning, thread.hasAnswered]).toEqual([true, false])
    expect(await Promise.all(['a', 'b', 'c'].map(text => thread.run('echo', text)))).toEqual(['a', 'b', 'c'])
    expect(thread.hasAnswered).toBe(true)
    await thread.run('release', 'at last')
    expect(await slow).toBe('at last')
  })

  test('is rejected with the text of the error that its handler throws, and the thread continues', async () => {
    const thread = open()
    await thread.run('describe', undefined)
    const waiting = thread.run('wait', undefined)
    expect(await errorOf(thread.run('fail', 'no such row'))).toBe('no such row')
    expect(await errorOf(thread.run('failLater', 'no such file'))).toBe('no such file')
    await thread.run('release', 'not affected')
    expect(await waiting).toBe('not affected')
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 2 })
  })

  test('is rejected with the error that onFailure makes of the text and the name', async () => {
    const thread = open({ onFailure: (detail, name) => new RangeError(`${name}: ${detail}`) })
    const failed = await thread.run('fail', 'no such row').catch((fault: unknown) => fault)
    expect(failed).toEqual(new RangeError('fail: no such row'))
  })

  test('is rejected where its output cannot be sent', async () => {
    const thread = open()
    await thread.run('describe', undefined)
    expect(await errorOf(thread.run('uncloneable', undefined))).toMatch(/can not be cloned/)
    expect(await errorOf(thread.run('uncloneableLater', undefined))).toMatch(/can not be cloned/)
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 2 })
  })

  test('throws where its input cannot be sent', async () => {
    const thread = open()
    expect(() => thread.run('echo', (() => {}) as never)).toThrow(/can not be cloned/)
    expect(await thread.run('echo', 'still here')).toBe('still here')
  })

  test('can transfer buffers of its input and of its output', async () => {
    const bytes = new Uint8Array([0, 1, 255])
    const inverted = open().run('invert', bytes, { transfer: [bytes.buffer] })
    expect(bytes.length).toBe(0)
    expect(await inverted).toEqual(new Uint8Array([255, 254, 0]))
  })

  test('is rejected after its timeout; the thread continues, and its late answer is dropped', async () => {
    const thread = open()
    const timeout = { ms: 1, error: () => new Error('too late') }
    expect(await errorOf(thread.run('wait', undefined, { timeout }))).toBe('too late')
    const other = thread.run('echo', 'in time', { timeout: { ...timeout, ms: 100_000 } })
    await thread.run('release', 'late')
    expect(await other).toBe('in time')
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 1 })
  })

  test('can stop the thread when it times out', async () => {
    const thread = open()
    const error = (): Error => {
      const late = new Error('too late')
      thread.stop(late)
      return late
    }
    const [late, next] = [thread.run('wait', undefined, { timeout: { ms: 1, error } }), thread.run('wait', undefined)]
    expect(await Promise.all([errorOf(late), errorOf(next)])).toEqual(['too late', 'too late'])
    expect(thread.isRunning).toBe(false)
  })
})

test('events of the thread are received in their order with the answers', async () => {
  const received: string[] = []
  const thread = open({ onEvent: event => received.push(event) })
  await thread.run('announce', 'one')
  expect(received).toEqual(['one'])
  await thread.run('announce', 'two')
  expect(received).toEqual(['one', 'two'])
})

describe('a thread that dies', () => {
  const deaths = {
    'by an error outside of a handler': {
      kill: (thread: SampleThread) => thread.run('die', 'a bug'),
      detail: /a bug/,
    },
    'by its exit': {
      kill: (thread: SampleThread) => thread.run('exit', 3),
      detail: /^the thread has ended with code 3$/,
    },
  }
  test.each(Object.entries(deaths))('%s rejects all requests and is started again', async (_name, { kill, detail }) => {
    const details: string[] = []
    let starts = 0
    const thread = open({
      setup: () => `start ${++starts}`,
      onDeath(text) {
        details.push(text)
        expect(thread.isRunning).toBe(false)
        return new Error('it is dead')
      },
    })
    for (let death = 1; death <= 2; death++) {
      expect(await thread.run('describe', undefined)).toEqual({ setup: `start ${death}`, calls: 1 })
      const waiting = [thread.run('wait', undefined), thread.run('wait', undefined)]
      kill(thread).catch(() => {}) // the request may be answered before the thread ends
      expect(await Promise.all(waiting.map(errorOf))).toEqual(['it is dead', 'it is dead'])
      expect([thread.isRunning, thread.hasAnswered]).toEqual([false, false])
      expect(details).toHaveLength(death)
      expect(details.at(-1)).toMatch(detail)
    }
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'start 3', calls: 1 })
    expect(details).toHaveLength(2)
  })

  test('while it starts rejects with the text of the error', async () => {
    const broken = open({ setup: () => 'broken' })
    expect(await errorOf(broken.run('echo', 'a'))).toMatch(/this set-up is broken/)
    expect(await errorOf(broken.run('echo', 'a'))).toMatch(/this set-up is broken/)
    expect(await errorOf(open({ url: `${url}.missing` }).run('echo', 'a'))).toMatch(/missing/)
  })
})

describe('a thread that is stopped', () => {
  test('rejects all requests, and the next request starts another', async () => {
    const deaths: string[] = []
    const thread = open({ onDeath: detail => new Error(`${deaths.push(detail)}`) })
    await thread.run('describe', undefined)
    const waiting = [thread.run('wait', undefined), thread.run('echo', 'a')]
    thread.stop(new Error('closed'))
    expect([thread.isRunning, thread.hasAnswered]).toEqual([false, false])
    expect(await Promise.all(waiting.map(errorOf))).toEqual(['closed', 'closed'])
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 1 })
    expect(deaths).toEqual([])
  })

  test('can be stopped again, and before it was started', () => {
    const thread = open()
    thread.stop()
    thread.start()
    thread.stop()
    thread.stop()
    expect(thread.isRunning).toBe(false)
  })

  test('sends no more events, not even those that were on their way', async () => {
    const received: string[] = []
    const thread = open({
      onEvent(event) {
        received.push(event)
        if (event === 'first') thread.stop(new Error('closed'))
      },
    })
    const mark = new Int32Array(new SharedArrayBuffer(4))
    const marking = thread.run('announceAndMark', mark)
    Atomics.wait(mark, 0, 0)
    expect(await errorOf(marking)).toBe('closed')
    await thread.run('announce', 'of the next thread')
    expect(received).toEqual(['first', 'of the next thread'])
  })
})

test('rejectWaiting rejects the requests and leaves the thread running', async () => {
  const thread = open()
  const waiting = thread.run('wait', undefined)
  thread.rejectWaiting(new Error('given up'))
  expect(await errorOf(waiting)).toBe('given up')
  await thread.run('release', 'for nobody')
  expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 1 })
})

describe('an idle thread', () => {
  test('is stopped, and the next request starts another', async () => {
    const thread = open({ idleMs: 1 })
    await thread.run('describe', undefined)
    await until(() => !thread.isRunning, 'the thread is stopped')
    expect(await thread.run('describe', undefined)).toEqual({ setup: 'sample', calls: 1 })
  })

  test('is stopped also after a request that has timed out, and after an earlier stop', async () => {
    const thread = open({ idleMs: 1 })
    const late = thread.run('wait', undefined, { timeout: { ms: 1, error: () => new Error('too late') } })
    expect(await errorOf(late)).toBe('too late')
    await until(() => !thread.isRunning, 'the thread is stopped')
    const waiting = thread.run('wait', undefined)
    thread.stop(new Error('closed'))
    expect(await errorOf(waiting)).toBe('closed')
    await thread.run('echo', 'a')
    await until(() => !thread.isRunning, 'the thread is stopped')
  })

  test('is not stopped while a request waits', async () => {
    const thread = open({ idleMs: 5 })
    await thread.run('echo', 'and then idle')
    const waiting = thread.run('wait', undefined)
    await thread.run('echo', 'not the last')
    await Bun.sleep(20) // longer than the thread may be idle
    await thread.run('release', 'at last')
    expect(await waiting).toBe('at last')
  })
})

test('a process can end after it has stopped its threads, and while it has an unreferenced thread', async () => {
  const file = new URL('./thread.ts', import.meta.url).href
  const script = `
    const { Thread } = await import('${file}')
    const timeout = { ms: 1_000_000, error: Error }
    const [running, stopped] = [true, false].map(isUnreferenced => new Thread({ url: '${url}', isUnreferenced }))
    console.log(await running.run('echo', 'one', { timeout }), await stopped.run('echo', 'two'))
    const waiting = stopped.run('wait', undefined, { timeout })
    stopped.stop()
    await waiting.catch(() => {})`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  expect([await child.stdout.text(), await child.exited]).toEqual(['one two\n', 0])
})
