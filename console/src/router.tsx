// All pages and their addresses below /console. Each page is a file of its own, loaded when it is first opened.

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router'
import { currentSession } from './api/session.ts'
import { parseSearch, searchOf, stringifySearch } from './parts/search.ts'
import { Gate } from './shell/gate.tsx'
import { PageFailed, PageMissing } from './shell/page-failed.tsx'

const root = createRootRoute({
  component: Gate,
  notFoundComponent: PageMissing,
  errorComponent: PageFailed as never,
  validateSearch: searchOf(),
  search: { middlewares: [retainSearchParams<{ account?: string }>(['account'])] },
})

/** Pages for everybody, without the navigation. */
const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: searchOf('next'),
  component: lazyRouteComponent(() => import('./pages/sign-in.tsx'), 'SignInPage'),
})
const setUp = createRoute({
  getParentRoute: () => root,
  path: '/set-up',
  component: lazyRouteComponent(() => import('./pages/set-up.tsx'), 'SetUpPage'),
})
const register = createRoute({
  getParentRoute: () => root,
  path: '/register',
  component: lazyRouteComponent(() => import('./pages/register.tsx'), 'RegisterPage'),
})
const join = createRoute({
  getParentRoute: () => root,
  path: '/join',
  component: lazyRouteComponent(() => import('./pages/join.tsx'), 'JoinPage'),
})
const password = createRoute({
  getParentRoute: () => root,
  path: '/password',
  component: lazyRouteComponent(() => import('./pages/password.tsx'), 'PasswordPage'),
})
const pricing = createRoute({
  getParentRoute: () => root,
  path: '/pricing',
  validateSearch: searchOf('text', 'provider', 'tier'),
  component: lazyRouteComponent(() => import('./pages/pricing.tsx'), 'PricingPage'),
})

/** Pages for people who are signed in. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: lazyRouteComponent(() => import('./shell/shell.tsx'), 'Shell'),
  notFoundComponent: PageMissing,
  errorComponent: PageFailed as never,
  beforeLoad: ({ location }) => {
    const { state } = currentSession()
    if (state === 'set-up') throw redirect({ to: '/set-up' })
    if (state === 'signed-out') {
      const next = location.pathname === '/' && location.searchStr === '' ? undefined : location.href
      throw redirect({ to: '/sign-in', search: next === undefined ? {} : { next } })
    }
  },
})

const range = ['range', 'from', 'before'] as const

const overview = createRoute({
  getParentRoute: () => shell,
  path: '/',
  validateSearch: searchOf(...range),
  component: lazyRouteComponent(() => import('./pages/overview.tsx'), 'OverviewPage'),
})
const keys = createRoute({
  getParentRoute: () => shell,
  path: '/keys',
  validateSearch: searchOf('name', 'state', 'tier', 'suffix', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/keys.tsx'), 'KeysPage'),
})
const key = createRoute({
  getParentRoute: () => shell,
  path: '/keys/$key',
  validateSearch: searchOf('tab', ...range),
  component: lazyRouteComponent(() => import('./pages/key.tsx'), 'KeyPage'),
})
const playground = createRoute({
  getParentRoute: () => shell,
  path: '/playground',
  validateSearch: searchOf('model', 'dialect'),
  component: lazyRouteComponent(() => import('./pages/playground.tsx'), 'PlaygroundPage'),
})
const models = createRoute({
  getParentRoute: () => shell,
  // With the slash, an empty name below it is not taken for this page.
  path: '/models/',
  validateSearch: searchOf('text', 'provider', 'available', 'sort'),
  component: lazyRouteComponent(() => import('./pages/models.tsx'), 'ModelsPage'),
})
const model = createRoute({
  getParentRoute: () => shell,
  path: '/models/$',
  validateSearch: searchOf('tab', 'key'),
  component: lazyRouteComponent(() => import('./pages/model.tsx'), 'ModelPage'),
})
const live = createRoute({
  getParentRoute: () => shell,
  path: '/live',
  validateSearch: searchOf('model', 'key', 'outcome', 'channel', 'call'),
  component: lazyRouteComponent(() => import('./pages/live.tsx'), 'LivePage'),
})
const recordFilters = [
  'id',
  'key',
  'model',
  'provider',
  'channel',
  'outcome',
  'error',
  'status',
  'costMin',
  'costMax',
  'endUser',
  'streamed',
  'dialect',
  'tag',
  'requestedModel',
  'lossy',
  'attemptsMin',
  'firstContentMsMin',
  'durationMsMin',
] as const
const records = createRoute({
  getParentRoute: () => shell,
  path: '/records',
  validateSearch: searchOf(...recordFilters, ...range, 'sort', 'call', 'live'),
  component: lazyRouteComponent(() => import('./pages/records.tsx'), 'RecordsPage'),
})
const deletions = createRoute({
  getParentRoute: () => shell,
  path: '/records/deletions',
  validateSearch: searchOf('new'),
  component: lazyRouteComponent(() => import('./pages/deletions.tsx'), 'DeletionsPage'),
})
const record = createRoute({
  getParentRoute: () => shell,
  path: '/records/$call',
  component: lazyRouteComponent(() => import('./pages/record.tsx'), 'RecordPage'),
})
const usage = createRoute({
  getParentRoute: () => shell,
  path: '/usage',
  validateSearch: searchOf(...range, 'tab', 'split', 'by', 'key', 'model', 'channel'),
  component: lazyRouteComponent(() => import('./pages/usage.tsx'), 'UsagePage'),
})
const losses = createRoute({
  getParentRoute: () => shell,
  path: '/losses',
  validateSearch: searchOf(...range, 'caller', 'provider'),
  component: lazyRouteComponent(() => import('./pages/losses.tsx'), 'LossesPage'),
})
const funds = createRoute({
  getParentRoute: () => shell,
  path: '/funds',
  validateSearch: searchOf('tab', 'kind', ...range),
  component: lazyRouteComponent(() => import('./pages/funds.tsx'), 'FundsPage'),
})
const account = createRoute({
  getParentRoute: () => shell,
  path: '/account',
  validateSearch: searchOf('tab'),
  component: lazyRouteComponent(() => import('./pages/account.tsx'), 'OwnAccountPage'),
})
const me = createRoute({
  getParentRoute: () => shell,
  path: '/me',
  validateSearch: searchOf('tab'),
  component: lazyRouteComponent(() => import('./pages/me.tsx'), 'MePage'),
})
const accounts = createRoute({
  getParentRoute: () => shell,
  path: '/accounts',
  validateSearch: searchOf('name', 'type', 'kind', 'frozen', 'tier', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/accounts.tsx'), 'AccountsPage'),
})
const anAccount = createRoute({
  getParentRoute: () => shell,
  path: '/accounts/$id',
  validateSearch: searchOf('tab', 'kind', ...range),
  component: lazyRouteComponent(() => import('./pages/account.tsx'), 'AccountPage'),
})
const people = createRoute({
  getParentRoute: () => shell,
  path: '/people',
  validateSearch: searchOf('text', 'name', 'email', 'role', 'state', 'sort', 'tab'),
  component: lazyRouteComponent(() => import('./pages/people.tsx'), 'PeoplePage'),
})
const person = createRoute({
  getParentRoute: () => shell,
  path: '/people/$id',
  component: lazyRouteComponent(() => import('./pages/person.tsx'), 'PersonPage'),
})
const channels = createRoute({
  getParentRoute: () => shell,
  path: '/channels',
  validateSearch: searchOf('provider', 'from', 'state', 'tag', 'health', 'text', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/channels.tsx'), 'ChannelsPage'),
})
const channel = createRoute({
  getParentRoute: () => shell,
  path: '/channels/$id',
  validateSearch: searchOf('tab'),
  component: lazyRouteComponent(() => import('./pages/channel.tsx'), 'ChannelPage'),
})
const providers = createRoute({
  getParentRoute: () => shell,
  path: '/providers',
  validateSearch: searchOf('text', 'from', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/providers.tsx'), 'ProvidersPage'),
})
const provider = createRoute({
  getParentRoute: () => shell,
  path: '/providers/$id',
  validateSearch: searchOf('tab', 'text', 'available', 'sort'),
  component: lazyRouteComponent(() => import('./pages/provider.tsx'), 'ProviderPage'),
})
const routes = createRoute({
  getParentRoute: () => shell,
  path: '/routes',
  validateSearch: searchOf('text', 'policy', 'sort', 'tab', 'model', 'key', 'new'),
  component: lazyRouteComponent(() => import('./pages/routes.tsx'), 'RoutesPage'),
})
const route = createRoute({
  getParentRoute: () => shell,
  path: '/routes/$name',
  validateSearch: searchOf('key', 'tab'),
  component: lazyRouteComponent(() => import('./pages/route.tsx'), 'RoutePage'),
})
const limits = createRoute({
  getParentRoute: () => shell,
  path: '/limits',
  validateSearch: searchOf('resource', 'key', 'tier', 'model', 'sort', 'new', 'limit'),
  component: lazyRouteComponent(() => import('./pages/limits.tsx'), 'LimitsPage'),
})
const tiers = createRoute({
  getParentRoute: () => shell,
  path: '/tiers',
  validateSearch: searchOf('tier', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/tiers.tsx'), 'TiersPage'),
})
const prices = createRoute({
  getParentRoute: () => shell,
  path: '/prices/',
  validateSearch: searchOf('text', 'origin', 'provider', 'sort'),
  component: lazyRouteComponent(() => import('./pages/prices.tsx'), 'PricesPage'),
})
const workbench = createRoute({
  getParentRoute: () => shell,
  path: '/prices/backtest',
  validateSearch: searchOf('model', ...range),
  component: lazyRouteComponent(() => import('./pages/price-workbench.tsx'), 'PriceWorkbenchPage'),
})
const price = createRoute({
  getParentRoute: () => shell,
  path: '/prices/$',
  validateSearch: searchOf('tab'),
  component: lazyRouteComponent(() => import('./pages/price.tsx'), 'PricePage'),
})
const codes = createRoute({
  getParentRoute: () => shell,
  path: '/codes',
  validateSearch: searchOf('tab', 'batch', 'state', 'new'),
  component: lazyRouteComponent(() => import('./pages/codes.tsx'), 'CodesPage'),
})
const ledger = createRoute({
  getParentRoute: () => shell,
  path: '/ledger',
  validateSearch: searchOf('tab', 'of', ...range),
  component: lazyRouteComponent(() => import('./pages/ledger.tsx'), 'LedgerPage'),
})
const audit = createRoute({
  getParentRoute: () => shell,
  path: '/audit',
  validateSearch: searchOf('actor', 'action', 'target', 'sort', 'tab', 'row', ...range),
  component: lazyRouteComponent(() => import('./pages/audit.tsx'), 'AuditPage'),
})
const webhooks = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks',
  validateSearch: searchOf('new'),
  component: lazyRouteComponent(() => import('./pages/webhooks.tsx'), 'WebhooksPage'),
})
const webhook = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks/$id',
  validateSearch: searchOf('tab', 'state', 'delivery'),
  component: lazyRouteComponent(() => import('./pages/webhook.tsx'), 'WebhookPage'),
})
const tokens = createRoute({
  getParentRoute: () => shell,
  path: '/tokens',
  validateSearch: searchOf('name', 'state', 'sort', 'new'),
  component: lazyRouteComponent(() => import('./pages/tokens.tsx'), 'TokensPage'),
})
const settings = createRoute({
  getParentRoute: () => shell,
  path: '/settings',
  component: lazyRouteComponent(() => import('./pages/settings.tsx'), 'SettingsPage'),
})
const system = createRoute({
  getParentRoute: () => shell,
  path: '/system',
  component: lazyRouteComponent(() => import('./pages/system.tsx'), 'SystemPage'),
})

const tree = root.addChildren([
  signIn,
  setUp,
  register,
  join,
  password,
  pricing,
  shell.addChildren([
    overview,
    keys,
    key,
    playground,
    models,
    model,
    live,
    records,
    deletions,
    record,
    usage,
    losses,
    funds,
    account,
    me,
    accounts,
    anAccount,
    people,
    person,
    channels,
    channel,
    providers,
    provider,
    routes,
    route,
    limits,
    tiers,
    prices,
    workbench,
    price,
    codes,
    ledger,
    audit,
    webhooks,
    webhook,
    tokens,
    settings,
    system,
  ]),
])

export const router = createRouter({
  routeTree: tree,
  basepath: '/console',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
