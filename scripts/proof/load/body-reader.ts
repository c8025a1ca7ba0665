// A server that reads every request body, stores nothing and answers 402. It shows what the bytes alone cost other
// programs on the same machine.

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.argv[2]),
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  idleTimeout: 60,
  async fetch(request) {
    if (request.body !== null) for await (const _ of request.body);
    return new Response('{}', { status: 402 })
  },
})
process.stdout.write(`${server.port}\n`)
