import { words } from '../words.ts'

export const filtersWords = words('filters', {
  filters: 'Filters',
  filtersUsed: 'Filters ({n})',
  clear: 'Clear filters',
  all: 'All',
  range: 'Time ({zone})',
  range_all: 'All time',
  range_1h: 'Last hour',
  range_24h: 'Last 24 hours',
  range_7d: 'Last 7 days',
  range_30d: 'Last 30 days',
  range_90d: 'Last 90 days',
  ownRange: 'From … to …',
  from: 'From',
  before: 'Before',
})
