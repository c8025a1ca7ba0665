// Parses the reply of a proxy to CONNECT. Nothing of the reply is passed on. No byte may follow it, because the server
// at the end of the tunnel does not send first.

import { bounds } from '../../base/bounds.ts'
import { ResponseHead } from './response-head.ts'

const HEAD_END = '\r\n\r\n'

export class TunnelResponse {
  #text = ''

  /** `open`; `more` while the reply is incomplete; else an error text. */
  push(bytes: Buffer): string {
    this.#text += bytes.toString('latin1')
    const end = this.#text.indexOf(HEAD_END)
    const after = end < 0 ? this.#text.length : end + HEAD_END.length
    if (after > bounds.proxyResponseBytesMax) return 'the reply of the proxy is too long'
    if (end < 0) return 'HTTP/1.'.startsWith(this.#text.slice(0, 7)) ? 'more' : 'the proxy does not speak HTTP'
    const head = ResponseHead.read(this.#text.slice(0, after))
    if (head === undefined) return 'the proxy does not speak HTTP'
    if (head.status === 407) return 'the proxy refuses the user name and password (407)'
    if (head.status < 200 || head.status > 299) return `the proxy refuses the tunnel (${head.status})`
    return after === this.#text.length ? 'open' : 'the proxy sent data before the tunnel was used'
  }
}
