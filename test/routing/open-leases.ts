// Sees everything that a gateway in this process has taken for its calls and not yet given back: places at the gate, in
// limits, on channels and in waiting lines, and shares of what may be tried again.

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
  /** Turns whose end nobody told. */
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

/** Of what is made from now on. */
export function watchLeases(): LeaseWatch {
  const restores: (() => void)[] = []
  const seen = <T extends object>(prototype: T, name: keyof T, also?: (result: never) => unknown): Set<T> => {
    const found = new Set<T>()
    const original = prototype[name] as Method
    const watched = function (this: T, ...given: never[]): unknown {
      found.add(this)
      const result = original.apply(this, given) as never
      return also === undefined ? result : also(result)
    }
    prototype[name] = watched as T[keyof T]
    restores.push(() => (prototype[name] = original as T[keyof T]))
    return found
  }
  const retries = new Set<RetryLease>()
  const groups = new Set<string>()
  const gates = seen(Gate.prototype, 'admit')
  const limits = seen(Limits.prototype, 'admit')
  const healths = seen(Health.prototype, 'begin')
  const lines = seen(WaitQueues.prototype, 'wait')
  seen(RetryBudget.prototype, 'begin', (lease: RetryLease) => {
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
