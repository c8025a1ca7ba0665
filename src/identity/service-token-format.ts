// Service tokens: `wst-` and 36 characters. A token has 178 random bits, so a digest without a pepper is safe.

import { createHash } from 'node:crypto'
import type { Brand } from '../base/brand.ts'
import { isCredential, mintCredential } from './credential-format.ts'

/** A text with the format and checksum of a service token. The token may still be unknown. */
export type ServiceTokenText = Brand<string, 'ServiceTokenText'>

export const serviceTokenPrefix = 'wst-'

export const mintServiceToken = (): ServiceTokenText => mintCredential(serviceTokenPrefix) as ServiceTokenText

export const parseServiceToken = (text: string): ServiceTokenText | undefined =>
  isCredential(text, serviceTokenPrefix) ? (text as ServiceTokenText) : undefined

/** The stored form of a token. */
export const digestServiceToken = (token: ServiceTokenText): Buffer => createHash('sha256').update(token).digest()
