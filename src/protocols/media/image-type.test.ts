// Tests how the type of an image is found.

import { expect, test } from 'bun:test'
import { findImageType } from './image-type.ts'

const [png, jpeg, gif, webp] = [
  '89504e470d0a1a0a0000000d',
  'ffd8ffe000104a4649460001',
  '47494638396101000100',
  '524946462400000057454250',
].map(digits => Buffer.from(digits, 'hex').toString('base64')) as [string, string, string, string]
const read = new Set(['image/png', 'image/jpeg', 'image/webp'])

test.each<readonly [string, string, string]>([
  [png, 'image/jpg', 'image/png'],
  [jpeg, 'image/png', 'image/jpeg'],
  [webp, 'application/octet-stream', 'image/webp'],
  [`${png}${'A'.repeat(4_000_000)}`, 'image/gif', 'image/png'],
  // The provider does not read this one, so that its name would be refused.
  [gif, 'image/png', 'image/png'],
  ['AAAA', 'image/jpg', 'image/jpeg'],
  ['AAAA', 'Image/X-PNG; a=b', 'image/png'],
  ['AAAA', 'image/heic', 'image/heic'],
  ['', 'image/png', 'image/png'],
])('%#: the type of an image is what its bytes say, or what it was declared', (base64, mime, expected) => {
  expect(findImageType({ base64, mime }, read)).toBe(expected)
})
