// Writes lineage/usage/prices/data.json from the npm package @pydantic/genai-prices:
//
//   npm install --prefix DIR @pydantic/genai-prices@VERSION
//   node scripts/prices.mjs DIR/node_modules/@pydantic/genai-prices DATE lineage/usage/prices/data.json
//
// DATE is the day on which the version was published (npm view @pydantic/genai-prices time).

import fs from 'node:fs'
import path from 'node:path'
import vm from 'node:vm'

const [from, date, to] = process.argv.slice(2)
if (!to || !/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new Error('usage: node prices.mjs PACKAGE DATE FILE')
const about = JSON.parse(fs.readFileSync(path.join(from, 'package.json'), 'utf8'))
const source = fs.readFileSync(path.join(from, 'dist/index.js'), 'utf8')
const begin = source.indexOf('[')
const end = source.indexOf('\n], ')
if (!source.startsWith('const ') || begin < 0 || end < 0) throw new Error('the package does not begin with its list of providers')
const providers = vm.runInNewContext('(' + source.slice(begin, end + 2) + ')', {}, { timeout: 10_000 })

// What a request costs that need not be answered at once, by class of service, in relation to the standard price. The
// package has no such prices: https://docs.claude.com/en/docs/build-with-claude/batch-processing,
// https://platform.openai.com/docs/guides/batch and /flex-processing, https://ai.google.dev/gemini-api/docs/batch-api.
const tiers = {
  anthropic: { batch: 0.5 },
  openai: { batch: 0.5, flex: 0.5 },
  google: { batch: 0.5 },
}

const units = ['input_mtok', 'cache_read_mtok', 'cache_write_mtok', 'cache_write_1h_mtok', 'output_mtok', 'output_reasoning_mtok', 'requests_kcount']
const prices = all => Object.fromEntries(units.filter(u => all[u] !== undefined).map(u => [u, all[u]]))
const line = (indent, object) => indent + JSON.stringify(object)

const lines = []
for (const p of providers) {
  const models = []
  for (const m of p.models) {
    const of = Array.isArray(m.prices)
      ? m.prices.map(c => ({ ...(c.constraint && { constraint: c.constraint }), prices: prices(c.prices) }))
      : prices(m.prices)
    if (JSON.stringify(of).includes('_')) models.push(line('    ', { id: m.id, match: m.match, prices: of }))
  }
  if (models.length === 0) continue
  const { id, model_match, provider_match, fallback_model_providers } = p
  const head = JSON.stringify({ id, model_match, provider_match, fallback_model_providers, service_tiers: tiers[id] })
  lines.push('  ' + head.slice(0, -1) + ',"models":[\n' + models.join(',\n') + ']}')
}
// The program needs these before it needs any price.
const starts = new Set()
for (const text of lines) for (const [, start] of text.matchAll(/"start":(\d+)/g)) starts.add(Number(start))
const header = { source: about.name, version: about.version, date, licence: about.license ?? 'MIT', starts: [...starts].sort((a, b) => a - b) }
fs.writeFileSync(to, JSON.stringify(header).slice(0, -1) + ',"providers":[\n' + lines.join(',\n') + ']}\n')
console.error(`${lines.length} providers, ${fs.statSync(to).size} bytes`)
