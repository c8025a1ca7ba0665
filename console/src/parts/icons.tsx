// The signs of the console: lines of 1.5 px on a grid of 16 px.

const paths = {
  overview: 'M2 13.5h12M3.5 11V7.5M7 11V4M10.5 11V6M13.5 11V2.5',
  key: 'M10.5 9.5a4 4 0 1 0-3.4-1.9L2 12.7V14h2.5v-1.5H6V11h1.5l.9-.9',
  playground: 'M3 3h10v7.5H8L4.5 13v-2.5H3zM6 6.75h4',
  models: 'M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.5 5 8 8.2 13.5 5M8 8.2v6',
  live: 'M1.5 8h3l2-5 3 10 2-5h3',
  records: 'M2.5 3.5h11M2.5 8h11M2.5 12.5h11',
  usage: 'M2 12.5 6 8l3 2.5L14 4M14 7.5V4h-3.5',
  funds: 'M2 5h12v8H2zM2 5l8-2.5V5M11 9h3',
  ledger: 'M3 2.5h9.5v11H3zM5.5 5.5h4.5M5.5 8h4.5M5.5 10.5h3',
  prices: 'M8.5 2H14v5.5L7.5 14 2 8.5zM11 5h.01',
  codes: 'M2 5.5h12v2a1 1 0 0 0 0 2v2H2v-2a1 1 0 0 0 0-2zM6.5 5.5v6',
  channels: 'M2 8h3.5M10.5 8H14M5.5 5.5h5v5h-5zM8 2v3.5M8 10.5V14',
  providers: 'M4.5 12.5a3 3 0 0 1-.3-6 4 4 0 0 1 7.6-.5 3.3 3.3 0 0 1-.3 6.5z',
  routes: 'M3.5 13V9a3 3 0 0 1 3-3h6M10 3.5 12.5 6 10 8.5M3.5 3v3',
  limits: 'M2.5 12a5.5 5.5 0 1 1 11 0M8 12l3-4.5',
  tiers: 'M8 2.5 14 5.5 8 8.5 2 5.5zM2 8.5l6 3 6-3M2 11l6 3 6-3',
  accounts: 'M2.5 13.5v-10h6v10M8.5 6.5h5v7M2 13.5h12M5 6h1M5 8.5h1M5 11h1M11 9h.01M11 11.5h.01',
  people:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 3a2.3 2.3 0 0 1 0 4.4M12 9.8c1.5.5 2.5 1.8 2.5 3.7',
  audit: 'M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM5.8 8l1.7 1.7 3-3.2',
  webhooks: 'M6 7.5 8 4M8 4a1.8 1.8 0 1 1 1.7 0M9.7 4l2.2 4M12 8.2a2.2 2.2 0 1 1-1.8 3.3H6M4 8.2a2.2 2.2 0 1 0 2 3.3',
  settings:
    'M2.5 4.5h6M12 4.5h1.5M2.5 11.5H4M7.5 11.5h6M10.2 6.2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM5.8 13.2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z',
  system: 'M2 3h12v8H2zM5.5 14h5M8 11v3',
  account: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM3 13.8c0-2.5 2.2-4 5-4s5 1.5 5 4',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14',
  plus: 'M8 3v10M3 8h10',
  close: 'm4 4 8 8M12 4l-8 8',
  check: 'm3 8.5 3.2 3.2L13 4.8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  down: 'm4 6 4 4 4-4',
  up: 'm4 10 4-4 4 4',
  left: 'm10 4-4 4 4 4',
  right: 'm6 4 4 4-4 4',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  filter: 'M2.5 3.5h11L9.5 8.5v4L6.5 14V8.5z',
  refresh: 'M13.5 8A5.5 5.5 0 1 1 11.5 3.8M13.5 2v3.5H10',
  download: 'M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13.5h11',
  external: 'M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2v9.6L12.5 8z',
  enlarge: 'M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5l-4.5 4.5M2.5 13.5 7 9',
  shrink: 'M13 7H9V3M3 9h4v4M9 7l4.5-4.5M7 9l-4.5 4.5',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.8v1.4M8 12.8v1.4M1.8 8h1.4M12.8 8h1.4M3.6 3.6l1 1M11.4 11.4l1 1M3.6 12.4l1-1M11.4 4.6l1-1',
  warning: 'M8 2.2 14.3 13.3H1.7zM8 6.5v3M8 11.5h.01',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5V11M8 5.2h.01',
  out: 'M6 2.5H2.5v11H6M10.5 4.8 13.7 8l-3.2 3.2M13.5 8H6',
  table: 'M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.7h11M6.5 6.3V13',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={paths[name]} />
    </svg>
  )
}
