// The metrics of calls. Counting a call costs a few look-ups and additions, because all series of a model are created
// once and kept together.

import { bounds } from '../../base/bounds.ts'
import type { CallStage, CallSummary } from '../../base/call-summary.ts'
import type { MetricCounter, MetricHistogram, Metrics, SeriesOf } from '../../base/metrics.ts'
import type { Nanos } from '../../base/money/money.ts'
import type { RecordRow } from '../../store/ledger/hold-types.ts'

const NANOS_PER_USD = 1e9

/** Buckets for answers, which take from tens of milliseconds to minutes. */
const ANSWER_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]
/** Buckets for the latency that the gateway adds, which should be very small. */
const ADDED_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

const OTHER = 'other'
const NONE = 'none'

/** True for models that the operator configured. Other names come from callers; they are counted together as `other`. */
export type IsKnownModel = (provider: string, model: string) => boolean

/** All series of one model. */
interface ModelSeries {
  /** Keyed by dialect, status and outcome. */
  readonly requests: Map<string, MetricCounter>
  readonly provider: string
  readonly model: string
  readonly duration: MetricHistogram
  readonly first: MetricHistogram
  readonly cost: MetricCounter
  readonly input: MetricCounter
  readonly cacheRead: MetricCounter
  readonly cacheWrite: MetricCounter
  readonly output: MetricCounter
  readonly reasoning: MetricCounter
}

type TokenKind = 'input' | 'cache_read' | 'cache_write' | 'output' | 'reasoning'

export class CallMetrics {
  readonly #knows: IsKnownModel
  readonly #series = new Map<string, Map<string, ModelSeries>>()
  #models = 0
  readonly #settled: SeriesOf<MetricCounter>
  readonly #requests: SeriesOf<MetricCounter>
  readonly #errors: SeriesOf<MetricCounter>
  readonly #attempts: SeriesOf<MetricCounter>
  readonly #retries: MetricCounter
  readonly #durations: SeriesOf<MetricHistogram>
  readonly #firsts: SeriesOf<MetricHistogram>
  readonly #added: MetricHistogram
  readonly #tokens: SeriesOf<MetricCounter>
  readonly #costs: SeriesOf<MetricCounter>
  readonly #disbelieved: SeriesOf<MetricCounter>

  constructor(metrics: Metrics, knows: IsKnownModel) {
    this.#knows = knows
    const model = ['provider', 'model']
    this.#requests = metrics.counters('weir_requests_total', 'LLM calls that were answered, refused or cut off.', [
      'dialect',
      ...model,
      'status',
      'outcome',
    ])
    this.#durations = metrics.histograms(
      'weir_request_duration_seconds',
      'Time from the arrival of a call to its end.',
      {
        labels: model,
        upTo: ANSWER_SECONDS,
      },
    )
    this.#firsts = metrics.histograms(
      'weir_time_to_first_token_seconds',
      'Time from the arrival of a call to the first content of its stream.',
      { labels: model, upTo: ANSWER_SECONDS },
    )
    this.#added = metrics.histogram(
      'weir_added_latency_seconds',
      'Time that the gateway added to answered calls: until the first content of a stream, else until the end.',
      ADDED_SECONDS,
    )
    this.#errors = metrics.counters(
      'weir_errors_total',
      'Calls that were refused or cut off, by stage and error code.',
      ['stage', 'code'],
    )
    this.#attempts = metrics.counters('weir_attempts_total', 'Attempts, by their result.', ['channel', 'verdict'])
    this.#retries = metrics.counter('weir_retries_total', 'Attempts after the first one of a call.')
    this.#settled = metrics.counters('weir_calls_total', 'Calls and tasks written to the ledger.', ['outcome'])
    this.#tokens = metrics.counters('weir_tokens_total', 'Tokens billed; each token is counted in one kind only.', [
      ...model,
      'kind',
    ])
    this.#costs = metrics.counters('weir_cost_usd_total', 'What callers were charged.', model)
    this.#disbelieved = metrics.counters(
      'weir_usage_rejected_total',
      'Calls whose upstream reported implausible usage.',
      [...model, 'reason'],
    )
  }

  /** Counts a finished call. */
  readonly ended = (call: CallSummary): void => {
    const { provider = NONE, model = NONE, attempts, error } = call
    const series = this.#seriesOf(provider, model)
    this.#request(series, call).value++
    series.duration.observe(call.durationMs / 1_000)
    if (call.firstContentMs !== undefined) series.first.observe(call.firstContentMs / 1_000)
    if (call.overheadMs !== undefined) this.#added.observe(call.overheadMs / 1_000)
    if (error !== undefined) this.#errors(error.stage, error.code).value++
    for (const { channelId, verdict } of attempts) this.#attempts(channelId, verdict).value++
    if (attempts.length > 1) this.#retries.value += attempts.length - 1
    if (call.rejectedUsage !== undefined) this.#disbelieved(series.provider, series.model, call.rejectedUsage).value++
  }

  /** Counts a request that was refused before it became a call. */
  refused(stage: CallStage, code: string): void {
    this.#errors(stage, code).value++
  }

  /** Counts a call or a task that has been written to the ledger. */
  readonly settled = (row: RecordRow, cost: Nanos): void => {
    this.#settled(row.outcome).value++
    if (row.inputTokens === 0 && row.outputTokens === 0 && cost === 0n) return
    const series = this.#seriesOf(row.provider ?? NONE, row.model ?? NONE)
    series.cost.value += Number(cost) / NANOS_PER_USD
    series.input.value += row.inputTokens - row.cacheReadTokens - row.cacheWriteTokens
    series.cacheRead.value += row.cacheReadTokens
    series.cacheWrite.value += row.cacheWriteTokens
    series.output.value += row.outputTokens - row.reasoningTokens
    series.reasoning.value += row.reasoningTokens
  }

  #request(series: ModelSeries, { dialect, status, outcome }: CallSummary): MetricCounter {
    const key = `${dialect} ${status} ${outcome}`
    let cell = series.requests.get(key)
    if (cell === undefined) {
      cell = this.#requests(dialect, series.provider, series.model, String(status), outcome)
      series.requests.set(key, cell)
    }
    return cell
  }

  #seriesOf(provider: string, model: string): ModelSeries {
    const known = this.#series.get(provider)?.get(model)
    if (known !== undefined) return known
    if (provider === NONE) return this.#createSeries(NONE, NONE)
    const isCounted = this.#models < bounds.metricModelsMax && this.#knows(provider, model)
    if (isCounted) return this.#createSeries(provider, model)
    return this.#series.get(provider)?.get(OTHER) ?? this.#createSeries(provider, OTHER)
  }

  #createSeries(provider: string, model: string): ModelSeries {
    const tokens = (kind: TokenKind): MetricCounter => this.#tokens(provider, model, kind)
    const series: ModelSeries = {
      provider,
      model,
      requests: new Map(),
      duration: this.#durations(provider, model),
      first: this.#firsts(provider, model),
      cost: this.#costs(provider, model),
      input: tokens('input'),
      cacheRead: tokens('cache_read'),
      cacheWrite: tokens('cache_write'),
      output: tokens('output'),
      reasoning: tokens('reasoning'),
    }
    const models = this.#series.get(provider) ?? new Map<string, ModelSeries>()
    this.#series.set(provider, models.set(model, series))
    this.#models++
    return series
  }
}
