// Tests forms as the runtime writes them, forms written by hand, and ambiguous forms.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { FormPart } from './multipart.ts'
import { boundaryOf, readForm } from './multipart.ts'

const crlf = (text: string): Buffer => Buffer.from(text.replaceAll('\n', '\r\n'))
const part = (head: string, content: string): string => `--b\n${head}\n\n${content}\n`
const named = 'Content-Disposition: form-data; name="a"'
const field = (name: string, content: string): string => part(`Content-Disposition: form-data; name="${name}"`, content)

function contents(body: Buffer, boundary = 'b'): readonly (readonly [string, string])[] {
  const parts = readForm(body, boundary)
  if (typeof parts === 'string') throw new Error(parts)
  return parts.map(({ name, start, end }) => [name, body.toString('utf8', start, end)] as const)
}

describe('a boundary', () => {
  test.each([
    ['multipart/form-data; boundary=abc', 'abc'],
    ['Multipart/Form-Data;boundary="a b:c"', 'a b:c'],
    ['multipart/form-data ; charset=utf-8; boundary=----x ', '----x'],
    [`multipart/form-data; boundary=${'x'.repeat(70)}`, 'x'.repeat(70)],
    [`multipart/form-data; boundary=${'x'.repeat(71)}`, undefined],
    ['multipart/form-data', undefined],
    ['multipart/form-data; boundary=', undefined],
    ['multipart/form-data; boundary=""', undefined],
    ['multipart/form-data; boundary="a "', undefined],
    ['multipart/form-data; boundary=a; boundary=b', undefined],
    ['multipart/form-data; boundary=a; Boundary=a', undefined],
    ['multipart/form-data; boundary=a b', undefined],
    ['multipart/form-data; boundary="a\\"b"', undefined],
    ["multipart/form-data; boundary=a; boundary*=utf-8''b", undefined],
    ['multipart/form-data; boundary=a; boundary*0=b', undefined],
    ['multipart/form-data; boundary=\u00e9', undefined],
    ['multipart/mixed; boundary=a', undefined],
    ['application/json; boundary=a', undefined],
    ['', undefined],
  ])('of %p is %p', (type, boundary) => {
    expect(boundaryOf(type)).toBe(boundary)
  })
})

describe('a form', () => {
  test('is parsed in place', () => {
    const file = part('content-disposition: form-data; name="file"; filename="a.wav"\nContent-Type: audio/wav', 'RIFF')
    const body = crlf(`${field('model', 'openai/whisper-1')}${file}--b--\n`)
    const [model, audio] = readForm(body, 'b') as readonly [FormPart, FormPart]
    expect(body.toString('utf8', model.start, model.end)).toBe('openai/whisper-1')
    expect(model).toMatchObject({ name: 'model', filename: undefined, contentType: undefined })
    expect(audio).toMatchObject({ name: 'file', filename: 'a.wav', contentType: 'audio/wav' })
    expect(body.toString('utf8', audio.start, audio.end)).toBe('RIFF')
  })

  test.each([
    ['no parts', '--b--', []],
    ['an empty part', `${field('a', '')}--b--`, [['a', '']]],
    ['a part that looks like a boundary', `${field('a', 'x--b\n--c\n\n--')}--b--`, [['a', 'x--b\r\n--c\r\n\r\n--']]],
    [
      'a name twice',
      `${field('a', '1')}${field('a', '2')}--b--`,
      [
        ['a', '1'],
        ['a', '2'],
      ],
    ],
    ['quotes in a name', `${field('a\\"b', '1')}--b--`, [['a"b', '1']]],
    ['a name in UTF-8', `${field('模', '1')}--b--`, [['模', '1']]],
  ] as const)('may have %s', (_name, text, parts) => {
    expect(contents(crlf(text))).toEqual(parts as never)
  })

  test.each([
    ['is empty', ''],
    ['has text before it', `x\n${field('a', '1')}--b--`],
    ['has text after it', `${field('a', '1')}--b--\n${field('a', '2')}--b--`],
    ['has no end', field('a', '1')],
    ['ends in a head', '--b\nContent-Disposition: form-data; name="a"'],
    ['has a longer boundary', '--bc\nContent-Disposition: form-data; name="a"\n\n1\n--b--'],
    ['has a part without a name', `${part('Content-Disposition: form-data', '1')}--b--`],
    ['has an empty name', `${field('', '1')}--b--`],
    ['has a name twice in one part', `${part('Content-Disposition: form-data; name="a"; name="b"', '1')}--b--`],
    ['has a header twice', `${part(`${named}\n${named}`, '1')}--b--`],
    ['has another disposition', `${part('Content-Disposition: attachment; name="a"', '1')}--b--`],
    ['has a folded header', `${part('Content-Disposition: form-data;\n name="a"', '1')}--b--`],
    ['has a folded header with a colon', `${part(`${named}\n ; name*=utf-8''model; z=":"`, '1')}--b--`],
    ['has a second, encoded name', `${part(`${named}; name*=utf-8''model`, '1')}--b--`],
    ['has a second name in pieces', `${part(`${named}; name*0=mo; name*1=del`, '1')}--b--`],
    ['has an encoded part', `${part(`${named}\nContent-Transfer-Encoding: base64`, 'MQ')}--b--`],
    ['has a part with a long head', `${part(`${named}\nX: ${'x'.repeat(5_000)}`, '1')}--b--`],
    ['has too many parts', `${field('a', '1').repeat(257)}--b--`],
  ])('that %s is refused', (_name, text) => {
    expect(readForm(crlf(text), 'b')).toBeString()
  })

  // As .NET writes them, and as old clients of Python do.
  test.each(["filename=x.wav; filename*=utf-8''x.wav", "filename*=utf-8''%C3%A9.wav"])('may have %s', names => {
    const [file] = readForm(crlf(`${part(`${named}; ${names}`, '1')}--b--`), 'b') as readonly FormPart[]
    expect(file!.filename).toBeString()
  })

  test('with bare line feeds is refused', () => {
    expect(readForm(Buffer.from(`${field('a', '1')}--b--`), 'b')).toBeString()
  })

  test('is read as the runtime writes it', async () => {
    const form = new FormData()
    form.append('model', 'openai/whisper-1')
    form.append('file', new File([new Uint8Array([0, 13, 10, 45, 45, 255])], 'a "b".wav', { type: 'audio/wav' }))
    const response = new Response(form)
    const boundary = boundaryOf(response.headers.get('content-type')!)!
    const body = Buffer.from(await response.arrayBuffer())
    const parts = readForm(body, boundary) as readonly FormPart[]
    expect(parts.map(({ name }) => name)).toEqual(['model', 'file'])
    expect([...body.subarray(parts[1]!.start, parts[1]!.end)]).toEqual([0, 13, 10, 45, 45, 255])
  })
})

describe('for every body,', () => {
  const text = fc.string({ unit: fc.constantFrom('-', 'b', '\r', '\n', 'x', '"', ';'), maxLength: 40 })
  const safe = text.filter(content => !`\r\n${content}\r\n`.includes('\r\n--b'))

  test('a written form is read back', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'model', 'file'), safe), { maxLength: 5 }), parts => {
        const written = parts.map(([name, content]) => {
          return `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`
        })
        expect(contents(Buffer.from(`${written.join('')}--b--`))).toEqual(parts)
      }),
      { numRuns: 2_000 },
    )
  })

  test('noise is refused, or its parts are in order and inside the body', () => {
    const piece = fc.constantFrom('--b\r\n', '--b--', crlf(field('a', 'x')).toString())
    fc.assert(
      fc.property(fc.array(fc.oneof(text, piece)), pieces => {
        const body = Buffer.from(pieces.join(''))
        const parts = readForm(body, 'b')
        if (typeof parts === 'string') return
        let position = 0
        for (const { start, end } of parts) {
          expect(start >= position && end >= start && end <= body.length).toBe(true)
          position = end
        }
      }),
      { numRuns: 5_000 },
    )
  })

  test.each(['\r\n--', '\r\n--b', '--b\r\n', '"', ';a=', '\\', 'x:'])(
    'a million bytes of %p are read quickly',
    async piece => {
      const head = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
      const filled = piece.repeat(Math.ceil(1_000_000 / piece.length))
      await expectCheap(1_000, () => {
        readForm(Buffer.from(filled), 'b')
        readForm(Buffer.from(head + filled), 'b')
        readForm(Buffer.from(`--b\r\nContent-Disposition: ${filled}`), 'b')
        boundaryOf(`multipart/form-data; ${filled.slice(0, 30_000)}`)
      })
    },
  )
})
