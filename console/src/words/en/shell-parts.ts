import { words } from '../words.ts'

/** The parts of the frame that open over a page: they are loaded after it. */
export const shellPartsWords = words('shellParts', {
  theme_system: 'As the system',
  theme_light: 'Light',
  theme_dark: 'Dark',
  density: 'Rows',
  density_dense: 'Compact',
  density_comfortable: 'Comfortable',
  zone: 'Time zone',
  zone_local: 'This browser',
  shortcuts: 'Shortcuts with single letters',
  palette: 'Go to a page, or find something',
  paletteEmpty: 'Nothing found.',
  channel_enabled: 'enabled',
  channel_disabled: 'disabled',
  channel_unusable: 'unusable',
  channel_gone: 'key missing',
  palettePages: 'Pages',
  keyGo: 'Go to {page}',
  keyPalette: 'Search and commands',
  keyFilter: 'Filter the list',
  keyMove: 'Next or previous row',
  keyOpen: 'Open the row',
  keyCalls: 'Previous or next call, while one is open',
  keyCreate: 'Create',
  keyHelp: 'This help',
})
