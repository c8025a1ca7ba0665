// Explains a call that a person asks about: finds its endpoint, and presents it to the pipeline as if it had arrived.

import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import { parseTextId } from '../base/ids.ts'
import type { ExplainFor } from '../features/explain/dry-run.ts'
import type { CallInQuestion, LiveGateway } from '../management/live-gateway.ts'
import { callerInQuestion } from '../pipeline/10-authenticate.ts'
import type { Ingress } from '../pipeline/pipeline.ts'
import { matchesEndpoint } from './dispatch.ts'
import type { Endpoint } from './endpoint.ts'
import { callEndpoints } from './endpoints.ts'
import { buildVersionPrefix } from './version-prefix.ts'

export interface ExplainCallParts {
  readonly explainFor: ExplainFor
  dateMs(): number
}

export function buildExplainCall({ explainFor, dateMs }: ExplainCallParts): LiveGateway['explain'] {
  return async function explainCall(call) {
    const path = withVersion(call.path)
    const { kind, call: protocol } = findEndpoint(path)
    const endpoint = kind === 'own' ? undefined : kind
    const about = callerInQuestion(call.key, { endpoint, address: call.address }, dateMs())
    const ingress = ingressOf(call, path, endpoint)
    return await explainFor({ ingress, protocol: protocol!, showsRouting: call.showsRouting }, about)
  }
}

const withVersion = buildVersionPrefix(callEndpoints)

function findEndpoint(path: string): Endpoint {
  const endpoint =
    callEndpoints.find(one => one.path === path) ??
    callEndpoints.find(one => one.path.endsWith('/*') && matchesEndpoint(path, one))
  if (endpoint?.call !== undefined && endpoint.call.requestType !== 'multipart') return endpoint
  const hint = hintOf('explain_path')
  throw new Refusal('field_invalid', path, { param: 'path', hint })
}

/** The call as the pipeline sees calls. It has no connection. */
function ingressOf(call: CallInQuestion, path: string, endpoint: Ingress['endpoint']): Ingress {
  const headers: Readonly<Record<string, string>> = { 'content-type': 'application/json', ...call.headers }
  return {
    path,
    endpoint,
    callId: parseTextId('req', call.requestId)!,
    requestId: call.requestId,
    header: name => (Object.hasOwn(headers, name) ? headers[name] : undefined),
    query: () => null,
    address: () => call.address ?? '',
    onDisconnect() {},
    releaseConnection() {},
    closeConnection() {},
    readBody: async () => Buffer.from(JSON.stringify(call.body)),
  }
}
