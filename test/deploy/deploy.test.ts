// The files for several gateways on one database: the Helm chart and the compose file.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cliCommands } from '../../src/cli/commands/commands.ts'
import { readConfig } from '../../src/config.ts'
import { renderChart } from '../support/helm.ts'

const root = join(import.meta.dir, '../..')
const chart = join(root, 'deploy/helm/weir')

/** As docs/how-it-works/capacity.md has it. */
const CONNECTIONS_OF_A_GATEWAY = 24

/** A rendered object: the tests look up what they check. */
// biome-ignore lint/suspicious/noExplicitAny: the objects of Kubernetes have no types here
type Rendered = any

const render = (values = {}): Readonly<Record<string, Rendered>> => renderChart(chart, values)

describe('the Helm chart', () => {
  const { 'deployment.yaml': deployment, ...others } = render()
  const pod = deployment.spec.template.spec
  const [container] = pod.containers

  test('has the version of the program', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(container.image).toBe(`weir:${version}`)
  })

  test('gives a pod more time to stop than its calls may last', () => {
    const env = Object.fromEntries(container.env.map(({ name, value }: Rendered) => [name, value]))
    const { drainMs, drainDelayMs } = readConfig(env)
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(drainMs + drainDelayMs)
    const slower = render({ drainSeconds: 900 })['deployment.yaml'].spec.template.spec
    expect(slower.terminationGracePeriodSeconds).toBeGreaterThan(900)
  })

  test('sends calls only to pods that are ready, and does not end one because the database is away', () => {
    expect(container.readinessProbe.httpGet.path).toBe('/health/ready')
    expect([container.livenessProbe.httpGet.path, container.startupProbe.httpGet.path]).toEqual([
      '/health/live',
      '/health/live',
    ])
  })

  test('takes secrets only from a Secret', () => {
    expect(container.envFrom).toEqual([{ secretRef: { name: 'weir' } }])
    const text = JSON.stringify(render({ secretName: 'other' }))
    expect(text).not.toMatch(/WEIR_(DATABASE_URL|REDIS_URL|PEPPER|JWT_SECRET|ENCRYPTION_KEY)/)
    expect(text).not.toContain('"secretRef":{"name":"weir"}')
  })

  test('passes settings on as texts', () => {
    const settings = { WEIR_CALLS_MAX: 500, WEIR_MEMORY_MB: 2_000_000, WEIR_SECURE_COOKIES: 'on', WEIR_DEMO: false }
    const { env } = render({ env: settings })['deployment.yaml'].spec.template.spec.containers[0]
    expect(env).toContainEqual({ name: 'WEIR_CALLS_MAX', value: '500' })
    expect(env).toContainEqual({ name: 'WEIR_SECURE_COOKIES', value: 'on' })
    // Helm's own way to write them is 2e+06 and false.
    expect(env).toContainEqual({ name: 'WEIR_MEMORY_MB', value: '2000000' })
    expect(env).toContainEqual({ name: 'WEIR_DEMO', value: 'off' })
  })

  test('starts new pods before it stops old ones, and keeps all but one during maintenance', () => {
    expect(deployment.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
    expect(others['disruption-budget.yaml'].spec.maxUnavailable).toBe(1)
  })

  test('finds its pods by the labels that they have', () => {
    const { labels } = deployment.spec.template.metadata
    for (const selector of [
      deployment.spec.selector.matchLabels,
      others['service.yaml'].spec.selector,
      others['disruption-budget.yaml'].spec.selector.matchLabels,
      others['network-policy.yaml'].spec.podSelector.matchLabels,
    ]) {
      expect(selector).toEqual(labels)
    }
    // The pod of the migration must not get calls.
    expect(others['migrate-job.yaml'].spec.template.metadata.labels).not.toMatchObject(labels)
  })

  test('scales by the CPU, and within the number of slots', () => {
    const { minReplicas, maxReplicas, metrics } = others['autoscaler.yaml'].spec
    expect(minReplicas).toBeGreaterThan(1)
    expect(maxReplicas).toBeLessThan(128)
    // Kubernetes does not wait until a pod has ended before it starts the next one, so that an update may have twice as many.
    // PostgreSQL takes 100 connections by default, three of them only from superusers.
    expect(2 * maxReplicas * CONNECTIONS_OF_A_GATEWAY).toBeLessThanOrEqual(97)
    expect(metrics[0].resource.target.averageValue).toBe('600m')
    expect(deployment.spec.replicas).toBeUndefined()
    const fixed = render({ autoscaling: { enabled: false }, replicas: 3 })
    expect([fixed['autoscaler.yaml'], fixed['deployment.yaml'].spec.replicas]).toEqual([undefined, 3])
  })

  test('migrates the database before new pods start', () => {
    const { metadata, spec } = others['migrate-job.yaml']
    expect(metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade')
    const { args } = spec.template.spec.containers[0]
    expect(args).toEqual(['migrate'])
    expect(Object.keys(cliCommands)).toContain(args.join(' '))
  })

  test('gives pods few rights', () => {
    for (const each of [pod, others['migrate-job.yaml'].spec.template.spec]) {
      expect(each.automountServiceAccountToken).toBe(false)
      // A Service with the name of the chart would set variables that look like settings.
      expect(each.enableServiceLinks).toBe(false)
      expect(each.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 })
      expect(each.containers[0].securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  test('gives the job that migrates what a start has: settings, files, nodes, and the right to fetch the image', () => {
    const given = {
      env: { NODE_EXTRA_CA_CERTS: '/certificates/ca.pem' },
      volumes: [{ name: 'certificates', configMap: { name: 'own-authority' } }],
      volumeMounts: [{ name: 'certificates', mountPath: '/certificates', readOnly: true }],
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'only-weir', operator: 'Exists' }],
    }
    const rendered = render(given)
    for (const file of ['deployment.yaml', 'migrate-job.yaml']) {
      const spec = rendered[file].spec.template.spec
      const [{ env, resources, volumeMounts }] = spec.containers
      expect(env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/certificates/ca.pem' })
      expect(spec.volumes).toEqual([{ name: 'data', emptyDir: {} }, ...given.volumes])
      expect(volumeMounts).toEqual([{ name: 'data', mountPath: '/data' }, ...given.volumeMounts])
      const { imagePullSecrets, nodeSelector, tolerations } = given
      expect(spec).toMatchObject({ imagePullSecrets, nodeSelector, tolerations })
      // A namespace with a quota refuses pods without limits.
      expect(resources.limits.memory).toBe('768Mi')
    }
  })

  test('has network policies that open its ports and let all of its pods out, and can be left out', () => {
    const { ingress, egress } = others['network-policy.yaml'].spec
    expect(ingress[0].ports.map(({ port }: Rendered) => port)).toEqual(['http', 'metrics'])
    expect(egress[1].to).toEqual([
      { ipBlock: { cidr: '0.0.0.0/0' } },
      { ipBlock: { cidr: '::/0' } },
      { namespaceSelector: {} },
    ])
    // The job runs before the objects that are no hooks exist, and needs the database as well.
    const { metadata, spec } = others['migrate-network-policy.yaml']
    const job = others['migrate-job.yaml']
    expect(metadata.annotations['helm.sh/hook']).toBe(job.metadata.annotations['helm.sh/hook'])
    expect(Number(metadata.annotations['helm.sh/hook-weight'])).toBeLessThan(0)
    expect(spec).toEqual({
      podSelector: { matchLabels: job.spec.template.metadata.labels },
      policyTypes: ['Ingress', 'Egress'],
      egress,
    })
    // A rule with an empty list of targets would permit all of them.
    expect(render({ networkPolicy: { egressTo: [] } })['network-policy.yaml'].spec.egress).toHaveLength(1)
    const closed = render({ networkPolicy: { enabled: false } })
    expect([closed['network-policy.yaml'], closed['migrate-network-policy.yaml']]).toEqual([undefined, undefined])
  })
})

describe('the compose file of two gateways', () => {
  const text = readFileSync(join(root, 'deploy/shared/compose.yaml'), 'utf8')
  const file: Rendered = Bun.YAML.parse(text.replace(/\$\{POSTGRES_PASSWORD:[^}]*\}/g, 'secret'))
  const { services } = file

  test('has two equal gateways with valid settings', () => {
    expect(services['weir-1']).toEqual(services['weir-2'])
    expect(() => readConfig(services['weir-1'].environment)).not.toThrow()
    expect(services['weir-1'].environment).toMatchObject({
      WEIR_DATABASE_URL: expect.stringContaining('@postgres:5432/'),
      WEIR_REDIS_URL: 'redis://redis:6379',
    })
  })

  test('gives gateways time to end their calls', () => {
    const { drainMs, drainDelayMs } = readConfig({})
    expect(Number.parseInt(services['weir-1'].stop_grace_period, 10) * 1_000).toBeGreaterThan(drainMs + drainDelayMs)
  })

  test('lets Redis evict nothing', () => {
    expect(services.redis.command.join(' ')).toContain('--maxmemory-policy noeviction')
  })

  test('sends the calls of the load balancer to both', () => {
    const nginx = readFileSync(join(root, 'deploy/shared/nginx.conf'), 'utf8')
    for (const name of ['weir-1', 'weir-2']) expect(nginx).toContain(`server ${name}:8080`)
  })
})
