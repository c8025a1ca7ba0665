// What an operator should do about each fault, for docs/reference/failures.md. Where nothing is to be done, that.

import type { FaultId } from '../../tools/fake-upstream/fault-rows/kinds.ts'

const ADDRESS = 'Check the address of the channel (`weir channels list`, the `…_BASE_URL` of its provider)'
const REPORT = 'Report it to the provider with the times of the attempts (`weir record <call id>`)'
const SECOND = 'a second channel lets callers not notice it'

export const advice: Readonly<Record<FaultId, string>> = {
  F1: `${ADDRESS}, and whether the server runs. Nothing of the request has left.`,
  F2:
    `${ADDRESS}, the firewall and the route to it. It takes \`connectSeconds\` (of the \`times\` in the provider ` +
    'file; 5 s unless told) to notice, and that for each attempt.',
  F3: `${ADDRESS}: it names a host that does not exist.`,
  F4: 'Look after the name servers of the machine. Addresses that were found before are used for a while.',
  F5:
    'Find out who answers at that address before you do anything else. Certificates are always checked, and no ' +
    'setting changes that; the log says what is wrong. Nothing of the request, nor a key, has left.',
  F6: 'As F2: something on the way takes connections and does not serve them. It takes `tlsSeconds` to notice.',
  F7: 'Usually a proxy or a balancer that is full or starts anew. If it lasts, ask the provider.',
  F8: `As F7. The provider may have done the work and may bill it to you; it is not billed to the caller. ${REPORT}.`,
  F9: 'As F6. A provider that is out of workers behaves so.',
  F10: 'Mostly an idle timeout of something between you and the provider that is shorter than its answers take.',
  F11: 'If answers of this model do take that long, raise its `firstContentSeconds`; else as F9.',
  F12:
    'Within the deadline there is nothing to do. Beyond it: raise `firstContentSeconds` of that model, ' +
    'or put a faster one beside it in a group.',
  F13:
    'A whole answer has one deadline, `totalSeconds`, however steadily it drips. Callers of slow models should ' +
    'stream.',
  F14: 'If the model pauses so long while it thinks, raise its `betweenChunksSeconds`.',
  F15: 'Nothing: small pieces cost the gateway time, not memory. An answer that breaks off is F30.',
  F16: `${REPORT}: its HTTP is broken. Such a connection is never used again.`,
  F17: 'As F16.',
  F18:
    'Nothing: 32 MiB are read of a whole answer, and no more. A stream is passed on as its caller reads it, ' +
    'until the call has taken its ten minutes; what is delivered was held for.',
  F19: 'Nothing, if it is one answer. If it lasts, something on the way adds headers without end.',
  F20: `${REPORT}: we ask for answers that are not compressed. Nothing is ever unpacked, so that a bomb is only bytes.`,
  F21: `${ADDRESS}. Redirects are never followed: the key would go to whoever they name.`,
  F22: 'Informational heads are passed over. For 101 and 204: check the address, it is no API that answers there.',
  F23: `${REPORT}. Something on the way may cut answers at a size.`,
  F24: `${ADDRESS}: a web server, a login page or the error page of a balancer answers there.`,
  F25:
    `${ADDRESS} first; if it is right, ${SECOND}. An answer that is well formed and has no text is the ` +
    "model's own, and is passed on.",
  F26: `Read the log: it has the provider's words. As F34; ${SECOND}.`,
  F27: 'Nothing: bytes are passed on as they came; in another dialect what is no character becomes one that says so.',
  F28: 'Nothing. An event with empty data says nothing and is left out: an SDK would fail to parse it.',
  F29: 'Nothing: 32 MiB are held of one event, since events hold pictures, and then the connection is closed.',
  F30: `${REPORT}. An answer that has said why it ended is whole, and is ended for it; any other has been cut off.`,
  F31: "As F34. The caller is told the provider's words in its own dialect.",
  F32: `Nothing, if callers do not complain: what can be read is passed on. ${REPORT} if events of other answers come.`,
  F33:
    'Usage that cannot be is not believed: it is counted, and the record says `estimated`. If it lasts, compare ' +
    'with the bill of the provider. Usage above what was asked for is charged as far as the funds reach; the rest is ' +
    'booked to `shortfall` and logged.',
  F34:
    `429: ask for a higher limit, set the limits of the channel (\`weir channels set\`), or give it company. ` +
    `5xx: look at the provider's status page; ${SECOND}.`,
  F35:
    '401 and 403: the key is wrong, expired or locked: put in a new one (`weir channels list` says where). ' +
    "Quota: pay, or wait for the next month. 400 and 404: they are the caller's, unless all callers of a model get " +
    'them; then compare the name of the model and what it takes with its provider file.',
  F36:
    'Nothing reaches the caller: the key is taken out of whatever the provider says. Change the key all the same, ' +
    'if somebody else could have read that answer.',
}
