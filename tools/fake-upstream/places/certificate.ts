// Certificates for faults, made when they are needed: an authority that lives as long as the process, and leaves that
// are expired, of another name, or vouched for by nobody. Just enough of X.509 and its DER for that.

import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

export interface Certified {
  /** Both as PEM. */
  readonly certificate: string
  readonly key: string
}

export interface Subject {
  /** A host name or an IPv4 address. */
  readonly name: string
  readonly fromMs: number
  readonly toMs: number
}

export interface Authority extends Certified {
  readonly name: string
  readonly signer: KeyObject
}

const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts)
const identifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const truth = der(0x01, Buffer.from([0xff]))

const ecdsaWithSha256 = sequence(identifier('2a8648ce3d040302'))
const commonName = identifier('550403')
const alternativeName = identifier('551d11')
const basicConstraints = identifier('551d13')
const thirdVersion = der(0xa0, der(0x02, Buffer.from([2])))
/** None is ever told from another by it. */
const serialNumber = der(0x02, Buffer.from([1]))

const nameOf = (text: string): Buffer => sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(text)))))
const timeOf = (ms: number): Buffer =>
  der(0x18, Buffer.from(`${new Date(ms).toISOString().slice(0, 19).replace(/\D/g, '')}Z`))

const isAuthority = sequence(basicConstraints, truth, der(0x04, sequence(truth)))
const isHost = (name: string): Buffer => {
  const spoken = isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))
  return sequence(alternativeName, der(0x04, sequence(spoken)))
}

interface Statement extends Subject {
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly signer: KeyObject
  readonly extension: Buffer
}

function certificateOf({ name, issuer, publicKey, signer, fromMs, toMs, extension }: Statement): string {
  const stated = sequence(
    thirdVersion, serialNumber, ecdsaWithSha256, nameOf(issuer), sequence(timeOf(fromMs), timeOf(toMs)),
    nameOf(name), publicKey.export({ type: 'spki', format: 'der' }), der(0xa3, sequence(extension)),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', stated, signer))
  const text = sequence(stated, ecdsaWithSha256, signature)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`
}

const freshKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string
const yearMs = 365 * 86_400_000

let opened: Authority | undefined

/** The same for all: whoever trusts it sees of each leaf only what is wrong with it. */
export const authority = (): Authority => (opened ??= openAuthority(Date.now()))

function openAuthority(nowMs: number): Authority {
  const name = 'Weir fake upstream'
  const { publicKey, privateKey: signer } = freshKeys()
  const days = { fromMs: nowMs - yearMs, toMs: nowMs + yearMs }
  const certificate = certificateOf({ name, issuer: name, publicKey, signer, ...days, extension: isAuthority })
  return { name, certificate, key: pemOf(signer), signer }
}

/** Without an authority it vouches for itself. */
export function certify(subject: Subject, by?: Authority): Certified {
  const { publicKey, privateKey } = freshKeys()
  const issued = { issuer: by?.name ?? subject.name, signer: by?.signer ?? privateKey }
  const certificate = certificateOf({ ...subject, ...issued, publicKey, extension: isHost(subject.name) })
  return { certificate, key: pemOf(privateKey) }
}
