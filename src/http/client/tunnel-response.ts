// What a proxy says when it is asked for a tunnel. Nothing of it is passed on to anybody, and not a byte may come
// behind it: whoever is at the other end of the tunnel does not speak first.

import { bounds } from '../../base/bounds.ts'
import { ResponseHead } from './response-head.ts'

const HEAD_END = '\r\n\r\n'

export class TunnelAnswer {
  #said = ''

  /** `open`, `more` while the answer is not whole, or what is wrong. */
  push(bytes: Buffer): string {
    this.#said += bytes.toString('latin1')
    const end = this.#said.indexOf(HEAD_END)
    const after = end < 0 ? this.#said.length : end + HEAD_END.length
    if (after > bounds.proxyAnswerBytesMax) return 'the proxy says too much'
    if (end < 0) return 'HTTP/1.'.startsWith(this.#said.slice(0, 7)) ? 'more' : 'the proxy does not speak HTTP'
    const head = ResponseHead.read(this.#said.slice(0, after))
    if (head === undefined) return 'the proxy does not speak HTTP'
    if (head.status === 407) return 'the proxy wants another name and password (407)'
    if (head.status < 200 || head.status > 299) return `the proxy opens no tunnel (${head.status})`
    return after === this.#said.length ? 'open' : 'the proxy says more than that its tunnel is open'
  }
}
