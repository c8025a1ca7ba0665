// Call + channel → upstream request. Headers are made new from what we know: nothing of the caller's head goes
// upstream, and no destination is ever the caller's choice.

import type { OutgoingRequest } from '../http/outgoing.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Channel } from '../upstreams/catalogue.ts'
import { signers } from '../upstreams/signing.ts'
import type { Hold } from './exchange.ts'

export function adapt(hold: Hold, channel: Channel, protocol: Protocol): OutgoingRequest {
  const { provider, model } = hold.route
  const { streamUsage, outputCap } = provider.can
  const target = { model: model.id, askUsage: streamUsage, capField: outputCap }
  return {
    url: channel.baseUrl + provider.speaks[protocol.name],
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
