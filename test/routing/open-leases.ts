// Reads everything that a gateway in this process has taken for its calls and not yet released: leases of the gate, of
// limits and of channels, entries in wait queues, and shares of the retry budget.

import { Gate } from '../../src/limits/gate.ts'
import { Limits } from '../../src/limits/limits.ts'
import { WaitQueues } from '../../src/limits/wait-queue.ts'
import { Health } from '../../src/routing/health/health.ts'
import type { RetryLease } from '../../src/routing/retry-budget.ts'
import { RetryBudget } from '../../src/routing/retry-budget.ts'

export interface OpenLeases {
  readonly gate: number
  readonly limits: number
  readonly turns: number
  /** Attempts whose end nobody reported. */
  readonly lost: number
  readonly lines: number
  readonly retries: number
}

export const noLeases: OpenLeases = { gate: 0, limits: 0, turns: 0, lost: 0, lines: 0, retries: 0 }

export interface LeaseWatch {
  read(): OpenLeases
  end(): void
}

type Method = (...given: never[]) => unknown

/** Watches the objects that are created from now on. */
export function watchLeases(): LeaseWatch {
  const restores: (() => void)[] = []
  const watchMethod = <T extends object>(prototype: T, name: keyof T, also?: (result: never) => unknown): Set<T> => {
    const instances = new Set<T>()
    const original = prototype[name] as Method
    const wrapper = function (this: T, ...given: never[]): unknown {
      instances.add(this)
      const result = original.apply(this, given) as never
      return also === undefined ? result : also(result)
    }
    prototype[name] = wrapper as T[keyof T]
    restores.push(() => (prototype[name] = original as T[keyof T]))
    return instances
  }
  const retries = new Set<RetryLease>()
  const groups = new Set<string>()
  const gates = watchMethod(Gate.prototype, 'admit')
  const limits = watchMethod(Limits.prototype, 'admit')
  const healths = watchMethod(Health.prototype, 'begin')
  const lines = watchMethod(WaitQueues.prototype, 'wait')
  watchMethod(RetryBudget.prototype, 'begin', (lease: RetryLease) => {
    const end = lease.end.bind(lease)
    lease.end = () => {
      retries.delete(lease)
      end()
    }
    retries.add(lease)
    return lease
  })
  const isWaitedIn = WaitQueues.prototype.hasWaiters
  WaitQueues.prototype.hasWaiters = function (group) {
    groups.add(group)
    return isWaitedIn.call(this, group)
  }
  restores.push(() => (WaitQueues.prototype.hasWaiters = isWaitedIn))
  const sum = <T>(all: Set<T>, count: (one: T) => number): number => [...all].reduce((all, one) => all + count(one), 0)
  return {
    read: () => ({
      gate: sum(gates, ({ activeCalls }) => activeCalls),
      limits: sum(limits, ({ size }) => size.leases),
      turns: sum(healths, ({ activeCalls }) => activeCalls),
      lost: sum(healths, health => health.snapshot(0).lost),
      lines: sum(lines, line => sum(groups, group => line.size(group))),
      retries: retries.size,
    }),
    end: () => restores.forEach(restore => restore()),
  }
}
