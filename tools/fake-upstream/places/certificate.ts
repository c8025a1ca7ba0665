// Makes certificates for faults when they are needed: one authority per process, and certificates that are expired, of
// another name, or self-signed. Implements just enough of X.509 and DER for that.

import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

export interface SignedCertificate {
  /** Both as PEM. */
  readonly certificate: string
  readonly key: string
}

export interface CertificateSubject {
  /** A host name or an IPv4 address. */
  readonly name: string
  readonly fromMs: number
  readonly toMs: number
}

export interface CertificateAuthority extends SignedCertificate {
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
const TRUE = der(0x01, Buffer.from([0xff]))

const ecdsaWithSha256 = sequence(identifier('2a8648ce3d040302'))
const commonName = identifier('550403')
const alternativeName = identifier('551d11')
const basicConstraints = identifier('551d13')
const thirdVersion = der(0xa0, der(0x02, Buffer.from([2])))
/** All certificates have the same number, because nothing here distinguishes them by it. */
const serialNumber = der(0x02, Buffer.from([1]))

const writeName = (text: string): Buffer => sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(text)))))
const writeTime = (ms: number): Buffer =>
  der(0x18, Buffer.from(`${new Date(ms).toISOString().slice(0, 19).replace(/\D/g, '')}Z`))

const authorityExtension = sequence(basicConstraints, TRUE, der(0x04, sequence(TRUE)))
const hostExtension = (name: string): Buffer => {
  const address = isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))
  return sequence(alternativeName, der(0x04, sequence(address)))
}

interface CertificateContent extends CertificateSubject {
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly signer: KeyObject
  readonly extension: Buffer
}

function writeCertificate({ name, issuer, publicKey, signer, fromMs, toMs, extension }: CertificateContent): string {
  const body = sequence(
    thirdVersion,
    serialNumber,
    ecdsaWithSha256,
    writeName(issuer),
    sequence(writeTime(fromMs), writeTime(toMs)),
    writeName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension)),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, signer))
  const text = sequence(body, ecdsaWithSha256, signature)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`
}

const createKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const toPem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string
const YEAR_MS = 365 * 86_400_000

let sharedAuthority: CertificateAuthority | undefined

/** One authority signs all certificates, so that a client that trusts it sees only the intended fault. */
export const authority = (): CertificateAuthority => (sharedAuthority ??= createAuthority(Date.now()))

function createAuthority(nowMs: number): CertificateAuthority {
  const name = 'Weir fake upstream'
  const { publicKey, privateKey: signer } = createKeys()
  const days = { fromMs: nowMs - YEAR_MS, toMs: nowMs + YEAR_MS }
  const certificate = writeCertificate({
    name,
    issuer: name,
    publicKey,
    signer,
    ...days,
    extension: authorityExtension,
  })
  return { name, certificate, key: toPem(signer), signer }
}

/** Without an authority the certificate is self-signed. */
export function certify(subject: CertificateSubject, by?: CertificateAuthority): SignedCertificate {
  const { publicKey, privateKey } = createKeys()
  const issued = { issuer: by?.name ?? subject.name, signer: by?.signer ?? privateKey }
  const certificate = writeCertificate({ ...subject, ...issued, publicKey, extension: hostExtension(subject.name) })
  return { certificate, key: toPem(privateKey) }
}
