// Call + channel → upstream request. Headers are made new from what we know: nothing of the caller's head goes
// upstream, and no destination is ever the caller's choice.

import type { OutgoingRequest } from '../http/outgoing.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Channel } from '../upstreams/catalogue.ts'
import type { SpokenAt } from '../upstreams/provider.ts'
import { signers } from '../upstreams/signing.ts'
import type { Hold } from './exchange.ts'

export function adapt(hold: Hold, channel: Channel, protocol: Protocol): OutgoingRequest {
  const { provider, model } = hold.route
  const { streamUsage, outputCap } = provider.can
  const target = { model: model.id, askUsage: streamUsage, capField: outputCap }
  return {
    url: channel.baseUrl + pathOf(provider.speaks[protocol.name]!, model.id, hold.call.stream),
    headers: {
      'content-type': 'application/json',
      'accept': hold.call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
      ...signers[channel.sign](channel.key),
    },
    body: protocol.writeCall(hold.call, hold.cap === undefined ? target : { ...target, cap: hold.cap }),
  }
}

/** The model's id may hold slashes and colons, which a path takes as they are, and nothing else that it would not. */
function pathOf({ plain, stream }: SpokenAt, model: string, streamed: boolean): string {
  return (streamed ? stream : plain).replace('{model}', () => encodeURI(model).replace(/[?#]/g, encodeURIComponent))
}
