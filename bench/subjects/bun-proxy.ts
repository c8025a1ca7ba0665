// The smallest possible gateway on Bun: it reads the body, parses it, forwards it and returns the answer. Weir is compared
// with it.

const { UPSTREAM, PORT } = process.env

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  idleTimeout: 60,
  async fetch(request) {
    const body = await request.text()
    const call = JSON.parse(body) as { model?: string }
    if (call.model === undefined) return new Response('no model', { status: 400 })
    const answer = await fetch(`${UPSTREAM}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'authorization': 'Bearer upstream' },
      body,
    })
    const type = answer.headers.get('content-type') ?? 'application/json'
    return new Response(answer.body, { status: answer.status, headers: { 'content-type': type } })
  },
})
