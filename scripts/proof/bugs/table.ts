// Mistakes that a change of the code could make, and the tests that must notice each of them. The text to find must occur
// in its file exactly once, so that a bug that can no longer be planted is reported as an error and not as caught.

export interface PlantedBug {
  readonly file: string
  readonly find: string
  readonly replace: string
  /** The tests that must fail. */
  readonly tests: readonly string[]
}

const pricing = ['./src/billing', './test/dialects/money-media.test.ts']
const ledger = ['./test/store', './test/ledger']

export const plantedBugs: readonly PlantedBug[] = [
  // Identity
  {
    file: 'src/identity/key-rights.ts',
    find: 'if (key.revoked || key.disabled) return',
    replace: 'if (key.disabled) return',
    tests: ['./src/identity', './test/front/revoked.test.ts'],
  },
  {
    file: 'src/identity/key-rights.ts',
    find: 'dateMs >= key.expiresMs',
    replace: 'dateMs > key.expiresMs + 1_000',
    tests: ['./src/identity', './test/front/key-bounds.test.ts'],
  },
  {
    file: 'src/identity/key-rights.ts',
    find: 'if (isAllowed && !isDenied) return',
    replace: 'if (isAllowed) return',
    tests: ['./src/identity', './test/rules'],
  },
  {
    file: 'src/identity/key-rights.ts',
    find: 'requires.every(tag',
    replace: 'requires.some(tag',
    tests: ['./src/identity', './test/rules'],
  },
  {
    file: 'src/identity/credential-format.ts',
    find: 'return checksum(text.slice(0, -CHECK_CHARS)) === text.slice(-CHECK_CHARS)',
    replace: 'return true',
    tests: ['./src/identity'],
  },
  // Money
  {
    file: 'src/store/ledger/ledger-operations.ts',
    find: '    budgets.hold(scope, granted)\n',
    replace: '',
    tests: ['./test/store/ledger.test.ts', './test/store/model.test.ts'],
  },
  {
    file: 'src/store/ledger/ledger-operations.ts',
    find: 'addToHold.run(callId, granted)\n',
    replace: 'void addToHold\n',
    tests: ['./test/store/ledger.test.ts', './test/store/model.test.ts'],
  },
  {
    file: 'src/store/ledger/funds-share.ts',
    find: 'const share = room / FUNDS_SHARE',
    replace: 'const share = room',
    tests: ['./test/store/ledger.test.ts', './test/forwarding/slices.test.ts'],
  },
  {
    file: 'src/pipeline/reply/relay.ts',
    find: '    await covering\n',
    replace: '    covering.catch(() => {})\n',
    tests: ['./test/forwarding/slices.test.ts'],
  },
  {
    file: 'src/pipeline/settle/reservation.ts',
    find: 'if (used <= reservation.tokens) {\n      delete',
    replace: 'if (used <= reservation.tokens * 2) {\n      delete',
    tests: ['./src/pipeline/settle', './test/forwarding/slices.test.ts'],
  },
  {
    file: 'src/base/money/money.ts',
    find: '(sum * perMille + BILLION - 1n) / BILLION',
    replace: '(sum * perMille) / BILLION',
    tests: ['./src/base', './src/billing'],
  },
  {
    file: 'src/base/money/money.ts',
    find: "padEnd(9, '0')",
    replace: "padStart(9, '0')",
    tests: ['./src/base'],
  },
  {
    file: 'src/billing/price.ts',
    find: 'return other.amount < asked.amount ? other : asked',
    replace: 'return other',
    tests: pricing,
  },
  {
    file: 'src/billing/price.ts',
    find: 'const output = { count: size.outputTokensMax * size.choices, rate: highest.output }',
    replace: 'const output = { count: size.outputTokensMax, rate: highest.output }',
    tests: pricing,
  },
  {
    file: 'src/billing/price.ts',
    find: 'input <= one.inputAbove',
    replace: 'input < one.inputAbove',
    tests: pricing,
  },
  {
    file: 'src/billing/price.ts',
    find: '{ count: size.inputTokensMax, rate: size.textOnly ? highest.text : highest.input }',
    replace: '{ count: size.inputTokensMax, rate: highest.text }',
    tests: pricing,
  },
  {
    file: 'src/protocols/media/media-tokens.ts',
    find: 'if (tokens === undefined) return undefined',
    replace: 'if (tokens === undefined) continue',
    tests: ['./src/protocols/media'],
  },
  {
    file: 'src/protocols/media/image-size.ts',
    find: 'if (isHeader !== (parts === 0)) return undefined',
    replace: 'if (parts === 0 && !isHeader) return undefined',
    tests: ['./src/protocols/media'],
  },
  {
    file: 'src/protocols/media/media-list.ts',
    find: 'this.#items === undefined || !this.#isWhole || ',
    replace: 'this.#items === undefined || ',
    tests: ['./test/dialects/media-holds.test.ts'],
  },
  {
    file: 'src/protocols/request/json-body.ts',
    find: 'if (found.hasDuplicates) ambiguous.add(found.json)',
    replace: '',
    tests: ['./test/dialects/media-holds.test.ts'],
  },
  {
    file: 'src/billing/who-pays.ts',
    find: 'if (!hasContent || (!isReportOutdated && reportedOutput > 0)) return',
    replace: 'if (!hasContent || reportedOutput > 0) return',
    tests: ['./src/billing', './test/forwarding/who-pays.test.ts'],
  },
  {
    file: 'src/billing/who-pays.ts',
    find: 'if (inputTokens(usage) > 0) return [usage, source]',
    replace: 'if (inputTokens(usage) >= 0) return [usage, source]',
    tests: ['./src/billing', './test/forwarding/who-pays.test.ts'],
  },
  {
    file: 'src/store/ledger/ledger-operations.ts',
    find: "AND (kind = 'postpaid' OR balance + credit_limit - held >= max(?2, ?3))",
    replace: "AND (kind = 'postpaid' OR balance + credit_limit >= max(?2, ?3))",
    tests: ledger,
  },
  {
    file: 'src/store/ledger/ledger-operations.ts',
    find: 'if (cost <= held) return cost\n',
    replace: 'return cost\n',
    tests: ledger,
  },
  {
    file: 'src/store/ledger/budgets.ts',
    find: 'const available = cap - spent - held',
    replace: 'const available = cap - spent',
    tests: ledger,
  },
  {
    file: 'src/store/ledger/budgets.ts',
    find: 'if (period <= row.period) return row',
    replace: 'if (period < row.period) return row',
    tests: ledger,
  },
  // Records
  {
    file: 'src/store/records/record-search.ts',
    find: '[...selects, tail]',
    replace: 'selects',
    tests: ['./src/store/ledger/late-indexes.test.ts'],
  },
  {
    file: 'src/store/records/record-operations.ts',
    find: ' AND seq <= ${RECORDS_INDEXED_TO}',
    replace: '',
    tests: ['./src/store/ledger/late-indexes.test.ts'],
  },
  {
    file: 'src/store/ledger/late-indexes.ts',
    find: 'advance.run(kind, end)',
    replace: 'advance.run(kind, end + 1n)',
    tests: ['./src/store/ledger/late-indexes.test.ts'],
  },
  {
    file: 'src/store/ledger/late-indexes.ts',
    find: 'const IN_TRANSFER_TAIL = `seq > ${progressOf(TRANSFERS)}`',
    replace: 'const IN_TRANSFER_TAIL = `seq > 1 + ${progressOf(TRANSFERS)}`',
    tests: ['./test/ledger/statement.test.ts'],
  },
  // Limits
  {
    file: 'src/base/collections/gcra.ts',
    find: 'const over = used + count * unitsEach - burstUnits',
    replace: 'const over = used - burstUnits',
    tests: ['./src/base', './src/limits'],
  },
  {
    file: 'src/base/collections/gcra.ts',
    find: 'if (tick <= this.#tick) return\n',
    replace: '',
    tests: ['./src/base', './src/limits'],
  },
  {
    file: 'src/limits/limited-call.ts',
    find: 'keyId: limitsKeyId,',
    replace: 'keyId: accountId,',
    tests: ['./test/limits'],
  },
  {
    file: 'src/pipeline/20-limit-rate.ts',
    find: '    const { lease } = await limitRate(caller, requestDemand)\n    lease.release()\n',
    replace: '',
    tests: ['./test/front/body-bounds.test.ts', './test/limits'],
  },
  // Routing
  {
    file: 'src/routing/health/breaker.ts',
    find: 'const FAILURES_IN_A_ROW = 5',
    replace: 'const FAILURES_IN_A_ROW = 6',
    tests: ['./src/routing'],
  },
  {
    file: 'src/routing/choice/channel-choice.ts',
    find: "verdict === 'credential_bad' || verdict === 'quota_spent') return true",
    replace: 'false) return true',
    tests: ['./src/routing'],
  },
  {
    file: 'src/routing/choice/channel-choice.ts',
    find: 'if (isTried(tried, affinityChannel, target.name)) continue\n',
    replace: '',
    tests: ['./src/routing'],
  },
  {
    file: 'src/pipeline/30-route.ts',
    find: 'if (current === undefined) throw unknownPrice(target)\n',
    replace: 'if (current === undefined) return undefined\n',
    tests: ['./src/pipeline', './test/providers'],
  },
  {
    file: 'src/pipeline/40-adapt.ts',
    find: 'losses.throwIfStrict(exchange.options.strict)\n',
    replace: '',
    tests: ['./test/dialects/references.test.ts', './test/dialects/foreign-state.test.ts'],
  },
  {
    file: 'src/pipeline/lifetime/idempotency.ts',
    find: 'if (row.fingerprint !== key.fingerprint) throwIfTaken',
    replace: 'if (false) throwIfTaken',
    tests: ['./test/forwarding'],
  },
  // Network
  {
    file: 'src/http/address/guard.ts',
    find: "if (kind === 'private' && !mayBePrivate && !this.#privateHosts.hasAddress(address)) {",
    replace: 'if (false) {',
    tests: ['./src/http', './test/network'],
  },
  {
    file: 'src/http/address/public-address.ts',
    find: "if (embeddedIpv4(groups).some(inner => kindOf4(inner) === 'never')) return 'never'\n",
    replace: '',
    tests: ['./src/http', './test/network'],
  },
  {
    file: 'src/http/client/chunked-body.ts',
    find: "case 'LF after data':\n        return byte === LF ? 'size' : 'fault'",
    replace: "case 'LF after data':\n        return 'size'",
    tests: ['./src/http'],
  },
  {
    file: 'src/base/secrets/scrubber.ts',
    find: 'Math.ceil(letters.length / 2)',
    replace: 'letters.length',
    tests: ['./src/base'],
  },
  // Dialects
  {
    file: 'src/protocols/neutral/finish-reasons.ts',
    find: "return 'other'\n}\n\n/** Whether the table has the reason. */",
    replace: "return 'stop'\n}\n\n/** Whether the table has the reason. */",
    tests: ['./test/dialects/finish-reasons.test.ts'],
  },
  {
    file: 'src/protocols/neutral/finish-reasons.ts',
    find: "if (finish === 'stop' && has.calls) return { finish: 'calls' }\n",
    replace: '',
    tests: ['./src/protocols', './test/dialects/finish-reasons.test.ts'],
  },
  {
    file: 'src/protocols/neutral/losses.ts',
    find: 'if (!strict || this.codes.length === 0) return',
    replace: 'if (!strict) return',
    tests: ['./test/dialects/unknown-fields.test.ts', './test/dialects/foreign-state.test.ts', './src/protocols'],
  },
  // Management
  {
    file: 'src/management/actor.ts',
    find: 'if (isAtLeast(actor.role, staffRoleFor(isRead))) return null',
    replace: "if (isAtLeast(actor.role, 'support')) return null",
    tests: ['./test/management/matrix.test.ts'],
  },
  {
    file: 'src/management/actor.ts',
    find: 'if (actor.token !== undefined) refuseServiceToken(who)\n',
    replace: '',
    tests: ['./test/management/matrix.test.ts', './test/management/service-tokens.test.ts'],
  },
  {
    file: 'src/management/web/bearer-check.ts',
    find: "if (revoked) return hintOf('token_was_revoked')\n",
    replace: '',
    tests: ['./test/management/service-tokens.test.ts'],
  },
  {
    file: 'src/store/people/service-token-operations.ts',
    find: "return endsBefore ? 'outlives' : undefined",
    replace: 'return undefined',
    tests: ['./test/management/service-tokens.test.ts'],
  },
  {
    file: 'src/store/people/people-rows.ts',
    find: " || (rights.isToken && role === 'owner')",
    replace: '',
    tests: ['./test/management/service-tokens.test.ts'],
  },
  {
    file: 'src/management/web/dispatch.ts',
    find: "if (endpoint.who !== 'nobody' && request.actor === undefined) throw new Refusal('token_invalid', request.path)\n",
    replace: '',
    tests: ['./test/management/records.test.ts'],
  },
  {
    file: 'src/management/web/dispatch.ts',
    find: "if (methodOf(request) !== 'GET') refuseOtherSites(name => request.header(name))\n",
    replace: '',
    tests: ['./test/management'],
  },
  {
    file: 'src/store/queries/paging.ts',
    find: 'yield* findOwn.get(id, scope.actorId, scope.rank)',
    replace: 'yield* findAny.get(id)',
    tests: ['./test/management/matrix.test.ts', './test/abuse'],
  },
  {
    file: 'src/store/queries/paging.ts',
    find: '...(ask.scope === null ? [] : [boundScopeSql(sql, plan.account!, ask.scope)]),\n',
    replace: '',
    tests: ['./test/management'],
  },
  {
    file: 'src/store/audit-log/audited-operations.ts',
    find: "return plan.done.includes(result.done) ? { done: 'stale' } : result",
    replace: "return { done: 'stale' }",
    tests: ['./test/management'],
  },
  {
    file: 'src/store/audit-log/audited-operations.ts',
    find: "createHash('sha256').update(before).update(auditText(row))",
    replace: "createHash('sha256').update(auditText(row))",
    tests: ['./test/management', './src/store'],
  },
  // WebSockets
  {
    file: 'src/server/responses-socket/response-socket.ts',
    find: 'for (const ingress of this.#running.values()) ingress.disconnect()\n',
    replace: '',
    tests: ['./test/sockets/money.test.ts'],
  },
  {
    file: 'src/server/responses-socket/response-socket.ts',
    find: "if (drain.isClosed) return Promise.reject(new Refusal('draining', 'a message'))\n",
    replace: '',
    tests: ['./test/sockets/lifetime.test.ts'],
  },
  {
    file: 'src/server/responses-socket/message-ingress.ts',
    find: "if (name === 'idempotency-key') return this.#parts.idempotencyKey\n",
    replace: '',
    tests: ['./test/sockets/money.test.ts'],
  },
]
