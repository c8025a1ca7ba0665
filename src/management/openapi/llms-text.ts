// Writes /llms.txt: the most important facts about the interface on one screen, for language models.

import type { OpenApi } from './document.ts'

export function writeLlmsText({ info, paths }: OpenApi): string {
  const managed = Object.keys(paths)
    .filter(path => path.startsWith('/api/web/'))
    .map(path => path.split('/')[3]!)
  const areas = [...new Set(managed)].sort().join(', ')
  const signIn = Object.keys(paths).find(path => /^\/api\/auth\/.*(sign-in|session)/.test(path)) ?? '/api/auth'
  return `# Weir

> A self-hosted gateway for calls to large language models: one API key and any dialect for every model, each call
> limited, priced, billed and recorded. Version ${info.version}.

## Call a model

The model is named \`<provider>/<model>\`, for example \`demo/echo\`, or without a provider: \`echo\`. \`GET /v1/models\` lists all models, without a key.

    curl $WEIR/v1/chat/completions -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
      -d '{"model":"demo/echo","messages":[{"role":"user","content":"Hello"}]}'

- \`POST /v1/chat/completions\`, \`POST /v1/responses\`: OpenAI's dialects
- \`POST /v1/messages\`: Anthropic's dialect
- \`POST /v1beta/models/{model}:generateContent\`, \`:streamGenerateContent\`: Google's dialect
- \`POST /api/v3/chat/completions\`, \`POST /api/v3/responses\`: Volcengine Ark's dialects
- also embeddings, images, audio, rerank, moderations, token counts, stored responses, tasks, files

## Authenticate

- Calls: an API key, \`wk-\` and 36 characters, as \`Authorization: Bearer <key>\` or \`x-api-key: <key>\`.
- Management (\`/api/web/*\`: ${areas}):
  a token (JWT) from \`${signIn}\`, or a service token (\`wst-…\`), as \`Authorization: Bearer <token>\`; no API key.
- Public (\`/api/public/models\`, \`/api/public/providers\`, \`/api/public/pricing\`, \`/api/public/settings\`): no
  credential is needed.

## Read on

- [/openapi.json](/openapi.json): all endpoints, OpenAPI 3.1
- [/docs](/docs): the same for people
`
}
