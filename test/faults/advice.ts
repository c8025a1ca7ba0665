// What an operator should do about each fault, for docs/reference/failures.md.

import type { FaultId } from '../../tools/fake-upstream/fault-rows/kinds.ts'

const ADDRESS = 'Check the address of the channel (`weir channels list`, the `…_BASE_URL` of its provider)'
const REPORT = 'Report it to the provider, with the times of the attempts (`weir record <call id>`)'
const SECOND = 'with a second channel, callers do not notice it'

export const advice: Readonly<Record<FaultId, string>> = {
  F1: `${ADDRESS}, and whether the server runs. Nothing was sent.`,
  F2:
    `${ADDRESS}, the firewall and the route to the host. Each attempt takes \`connectSeconds\` (\`times\` of the ` +
    'provider file; 5 s by default).',
  F3: `${ADDRESS}: its host does not exist.`,
  F4: 'Check the name servers of the machine. Addresses that were found before are used for ten more minutes.',
  F5:
    'Find out who answers at that address before you do anything else. Certificates are always checked, and no ' +
    'setting changes that; the log says what is wrong. Neither the request nor a key was sent.',
  F6: 'As F2: something on the way accepts connections and does not serve them. Each attempt takes `tlsSeconds`.',
  F7: 'Usually a proxy or load balancer that is full or restarts. If it lasts, ask the provider.',
  F8: `As F7. The provider may bill you for the work; the caller is not charged. ${REPORT}.`,
  F9: 'As F6. A provider without free workers behaves like this.',
  F10: 'Usually an idle timeout between you and the provider that is shorter than its answers take.',
  F11: 'If answers of this model do take that long, raise its `firstContentSeconds`; else as F9.',
  F12:
    'Nothing, within the deadline. Beyond it, raise `firstContentSeconds` of the model, or put a faster model beside it ' +
    'in a group.',
  F13: 'A plain answer has one deadline, `totalSeconds`. Callers of slow models should stream.',
  F14: 'If the model pauses that long while it reasons, raise its `betweenChunksSeconds`.',
  F15: 'Nothing: small pieces cost the gateway time, not memory. An answer that breaks off is F30.',
  F16: `${REPORT}: its HTTP is broken. Such a connection is not used again.`,
  F17: 'As F16.',
  F18:
    'Nothing: at most 32 MiB of a plain answer are read. A stream passes as its caller reads it, until the call reaches ' +
    'its maximum duration; the hold covers what is delivered.',
  F19: 'Nothing, if it happens once. If it lasts, something on the way adds headers without end.',
  F20: `${REPORT}: Weir asks for uncompressed answers. It never decompresses one, so a bomb is only bytes.`,
  F21: `${ADDRESS}. Redirects are never followed: the key would go to another host.`,
  F22: 'Informational responses are skipped. For 101 and 204, check the address: no LLM API answers there.',
  F23: `${REPORT}. Something on the way may cut answers at a certain size.`,
  F24: `${ADDRESS}: a web server, a login page or the error page of a load balancer answers there.`,
  F25:
    `${ADDRESS} first; if it is right, ${SECOND}. A well-formed answer without text is the model's own answer, and ` +
    'is delivered.',
  F26: `Read the log: it has the provider's message. As F34; ${SECOND}.`,
  F27: 'Nothing: bytes pass as they came; a translation replaces invalid characters by U+FFFD.',
  F28: 'Nothing. An event with empty data is left out, because SDKs fail to parse it.',
  F29: 'Nothing: one event may have 32 MiB, because events contain images; then the connection is closed.',
  F30: `${REPORT}. An answer that has named its finish reason is complete; any other was cut off.`,
  F31: "As F34. The caller gets the provider's message in its own dialect.",
  F32: `Nothing, if callers do not complain: what can be read is delivered. ${REPORT} if events of other answers arrive.`,
  F33:
    'Implausible usage is replaced by an estimate, and the record says `estimated`. If it lasts, compare with the ' +
    "provider's bill. Usage above the hold is charged as far as the funds reach; the rest is booked to `shortfall` and " +
    'logged.',
  F34:
    `429: ask for a higher limit, set caps on the channel (\`weir channels set\`), or add channels. ` +
    `5xx: look at the provider's status page; ${SECOND}.`,
  F35:
    '401 and 403: the key is wrong, expired or locked; replace it (`weir channels credential`, or its variable). ' +
    'Quota: pay, or wait for the next period. 400 and 404 are mistakes of the caller, unless all callers of a model get them; then compare the ' +
    "model's name and traits with its provider file.",
  F36:
    "The key does not reach the caller: Weir removes it from the provider's text. Replace the key anyway, if somebody " +
    'else may have read that answer.',
}
