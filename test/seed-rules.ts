// The user's document, rule by rule, in its own words. test/seed.test.ts shows each of them on a running gateway.

export const rules = {
  'Introduction': 'The base address of the service is {base_url}.',

  'What the service does 1':
    'The service is a gateway for LLM requests. It accepts LLM calls on several endpoint families and forwards ' +
    'them to ' +
    'upstream providers.',
  'What the service does 2':
    'Each forwarded call passes through these stages, in this order: authentication, rate-limit check, routing, ' +
    'upstream adaptation.',
  'What the service does 3':
    'After forwarding, the gateway computes a cost, deducts it and records the call. These steps appear as ' +
    'timings in ' +
    'a debug header.',
  'What the service does 4': 'The model is named in the request as `<provider>/<model>`.',
  'What the service does 5.1':
    'LLM endpoints under `/v1/...`, `/v1beta/...` and `/api/v3/...`, authenticated with an API key.',
  'What the service does 5.2':
    'Public endpoints under `/api/public/*` (models, providers, pricing, site settings), which need no authentication.',
  'What the service does 5.3': 'Management endpoints under `/api/web/*`, authenticated with a JWT.',

  'Endpoint families 1': 'POST `/v1/chat/completions`, API key: Chat-style LLM call, forwarded through the pipeline.',
  'Endpoint families 2': '`/v1/messages`, API key: LLM call, forwarded through the pipeline.',
  'Endpoint families 3': '`/v1/responses`, API key: LLM call, forwarded through the pipeline.',
  'Endpoint families 4': '`/v1beta/models/{model}...`, API key: LLM endpoint family, `{model}` is a path segment.',
  'Endpoint families 5': '`/api/v3/...`, API key: LLM endpoint family.',
  'Endpoint families 6': 'GET `/v1/models`, none: Lists the available models. Metadata only; no debug headers.',
  'Endpoint families 7': 'GET `/api/public/*`, none: Public data: models, providers, pricing, site settings.',
  'Endpoint families 8': '`/api/web/*`, JWT (not the API key): Management interface.',
  'Endpoint families, gaps':
    'Methods of the endpoints marked "method not stated", request and response payloads, individual paths: not shown.',

  'Request shape 1': 'Authorization: one of the two key headers, `Bearer <API_KEY>`.',
  'Request shape 2': 'x-api-key: one of the two key headers, `<API_KEY>`.',
  'Request shape 3': 'Content-Type: required, `application/json`.',
  'Request shape 4': 'model: string, required, form `<provider>/<model>`.',
  'Request shape 5':
    'messages: array of objects, required. Each element has `role` (string) and `content` (string). The role ' +
    '`user` is ' +
    'the one shown.',

  'Debug response headers, where': 'The gateway adds `X-Pipeline-*` headers to responses of the forwarding flow.',
  'Debug response headers 1':
    'The headers are injected only in the forwarding flow of chat, messages and responses calls.',
  'Debug response headers 2': 'Metadata endpoints such as `GET /v1/models` do not return them.',
  'Debug response headers 3':
    'When authentication fails, including with an invalid API key, the response still carries `X-Pipeline-Auth` ' +
    'with a ' +
    'value beginning `fail`.',
  'Debug response headers, X-Pipeline-Auth':
    'Authentication result and duration: `pass (<n>ms, tier=<tier>)` or `fail (<n>ms)`.',
  'Debug response headers, X-Pipeline-RateLimit':
    'Rate-limit check result: `pass (<n>ms)` or `fail (<n>ms, reason=<reason>)`; one reason value is `qpm_exceeded`.',
  'Debug response headers, X-Pipeline-Route':
    'Routing result: `pass (<n>ms, <provider_name>→<upstream_model>)` or `fail (<n>ms)`.',
  'Debug response headers, X-Pipeline-Adapter': 'Upstream adaptation result: `done (<n>ms)` or `fail (<n>ms)`.',
  'Debug response headers, X-Pipeline-Breakdown':
    'Duration of each forwarding step: space-separated `key=<integer>` pairs with keys `fwd`, `cost`, `deduct`, ' +
    '`record`, `bodies`.',
  'Debug response headers, <n>': '`<n>` is an integer number of milliseconds.',
  'Debug response headers, numbers': 'In the breakdown, `fwd`, `cost` and `deduct` are numeric.',

  'API key 1':
    'An API key is a string beginning with the prefix `wk-`, followed by further characters (shown as `wk-` plus a ' +
    '36-character placeholder).',
  'API key 2':
    'Used for all LLM endpoints (`/v1/chat/completions`, `/v1/messages`, `/v1/responses`, `/v1beta/models/{model}`, ' +
    '`/api/v3/...`).',
  'API key 3': 'The key is sent in one of two ways; both are equally valid on every authenticated LLM endpoint.',
  'API key 3, way 1': '1 (recommended): `Authorization`, `Bearer <API_KEY>`.',
  'API key 3, way 2': '2: `x-api-key`, `<API_KEY>`.',

  'Authentication rules 1':
    'When the key is missing or invalid on an authenticated LLM endpoint, then the response status is 401 and ' +
    'the body ' +
    'is the authentication error described under Errors.',
  'Authentication rules 2': '`GET /v1/models` requires no authentication.',
  'Authentication rules 3': '`GET /api/public/*` requires no authentication.',
  'Authentication rules 4':
    'LLM endpoints (`/v1/...`) accept only the API key. Management endpoints (`/api/web/*`) accept only a JWT. ' +
    'The two ' +
    'credentials are not interchangeable.',
  'Authentication rules 5':
    'A successful authentication is reported in `X-Pipeline-Auth` as `pass` together with a tier value.',
  'Authentication rules 6': 'How a JWT is obtained, its claims and its lifetime: not shown.',

  'Authentication error 1': 'Condition: the API key is invalid or missing. Status: 401.',
  'Authentication error 2':
    'JSON body: error, object, container; error.message, string, human-readable text; error.type, string, ' +
    '`authentication_error`.',
  'Authentication error 3': 'The response also carries `X-Pipeline-Auth` beginning with `fail`.',
  'Other failures 1': 'Header-level signal: `X-Pipeline-RateLimit` with `fail (<n>ms, reason=qpm_exceeded)`.',
  'Other failures 2': 'Header-level signal: `X-Pipeline-Route` with `fail (<n>ms)`.',
  'Other failures 3': 'Header-level signal: `X-Pipeline-Adapter` with `fail (<n>ms)`.',

  'Limits 1':
    'A rate-limit stage exists in the pipeline. One failure reason is `qpm_exceeded` (a queries-per-minute limit ' +
    'exceeded).',
  'Versioning 1':
    'Path prefixes present: `/v1/`, `/v1beta/` and `/api/v3/` for LLM endpoints; `/api/public/` and `/api/web/` for ' +
    'the other interfaces.',
} as const

export type RuleName = keyof typeof rules
