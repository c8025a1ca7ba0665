// Compares our signatures with those of the vendor's own signer.

import { describe, expect, test } from 'bun:test'
import { Sha256 } from '@aws-crypto/sha256-js'
import { SignatureV4 } from '@smithy/signature-v4'
import fc from 'fast-check'
import { openSigV4, parseAwsCredentials, regionOf } from './sig-v4.ts'

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }

// There are few characters and short words, so that one name often begins with another.
const characters = fc.constantFrom(...'ab', '=', '-', ..."zA9._~:%+/ *()!'@,é")
const word = fc.string({ unit: characters, minLength: 1, maxLength: 4 })
const segment = fc.string({ unit: fc.constantFrom(...'abzAZ019_-~:@é%'), minLength: 1, maxLength: 9 })
const requests = fc.record({
  method: fc.constantFrom('POST', 'GET', undefined),
  path: fc.array(segment, { maxLength: 5 }),
  query: fc.dictionary(word, word, { maxKeys: 4 }),
  body: fc.uint8Array({ maxLength: 200 }),
  type: fc.option(fc.constantFrom('application/json', 'a  b', ' x/y ')),
  token: fc.option(fc.constantFrom('tok/en+1==', 'T')),
  region: fc.constantFrom('us-east-1', 'eu-central-2'),
  service: fc.constantFrom('bedrock', 'sagemaker'),
  host: fc.constantFrom('runtime.us-east-1.amazonaws.com', '127.0.0.1:8080'),
  dateMs: fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2040-01-01') }),
})

test('any request is signed as the vendor signs it', async () => {
  await fc.assert(
    fc.asyncProperty(requests, async ({ method, path, query, body, type, token, region, service, host, dateMs }) => {
      const allCredentials = { ...credentials, ...(token !== null && { sessionToken: token }) }
      const encodedPath = `/${path.map(encodeURIComponent).join('/')}`
      const search = Object.entries(query).map(pair => pair.map(encodeURIComponent).join('='))
      const url = `https://${host}${encodedPath}${search.length > 0 ? `?${search.join('&')}` : ''}`
      const headers = type === null ? {} : { 'content-type': type }
      const ours = openSigV4({ credentials: allCredentials, region, service, dateMs: () => dateMs })({
        ...(method && { method }),
        url,
        headers,
        body,
      })
      const theirs = await new SignatureV4({ credentials: allCredentials, region, service, sha256: Sha256 }).sign(
        {
          method: method ?? 'POST',
          protocol: 'https:',
          hostname: host,
          path: encodedPath,
          query,
          body,
          headers: { ...headers, host },
        },
        { signingDate: new Date(dateMs) },
      )
      expect({ ...headers, host, ...ours }).toEqual(theirs.headers as never)
    }),
    { numRuns: 500 },
  )
})

test('the signing key of one day is not used on the next', () => {
  let dateMs = Date.parse('2026-11-15T23:59:59Z')
  const parts = { credentials, region: 'us-east-1', service: 'bedrock' }
  const sign = openSigV4({ ...parts, dateMs: () => dateMs })
  const request = { url: 'https://a.example/b', headers: {}, body: new Uint8Array() }
  sign(request)
  dateMs += 2_000
  expect(sign(request)).toEqual(openSigV4({ ...parts, dateMs: () => dateMs })(request))
})

describe('AWS credentials', () => {
  test('have two or three parts', () => {
    expect(parseAwsCredentials('AK:s/e+c=')).toEqual({ accessKeyId: 'AK', secretAccessKey: 's/e+c=' })
    expect(parseAwsCredentials('AK:s:t==')).toEqual({ accessKeyId: 'AK', secretAccessKey: 's', sessionToken: 't==' })
  })

  test.each(['', 'AK', 'AK:', ':s', 'AK:s:', 'AK:s:t:u', 'A K:s', 'AK:s s'])('are refused: %p', text => {
    expect(parseAwsCredentials(text)).toBeUndefined()
  })
})

test.each([
  ['https://bedrock-runtime.us-east-1.amazonaws.com', 'us-east-1'],
  ['https://bedrock-runtime.us-gov-west-1.amazonaws.com/x', 'us-gov-west-1'],
  ['https://bedrock-runtime.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
  ['https://bedrock-runtime.us-east-1.amazonaws.com.evil.example', undefined],
  ['http://127.0.0.1:8080', undefined],
])('the region of %s is %p', (url, region) => {
  expect(regionOf(url)).toBe(region as never)
})
