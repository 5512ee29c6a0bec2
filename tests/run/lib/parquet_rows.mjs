// SPDX-License-Identifier: Apache-2.0
// Rows of Parquet files by hyparquet, a line of JSON each: node parquet_rows.mjs FILE.. in the folder where its modules are.
// Integers are texts (they may have more than 53 bits), times microseconds, maps objects, lists of structs lists of objects.
import { createRequire } from 'module'
import { pathToFileURL } from 'url'

// modules of the working folder, and not of this file's
const require = createRequire(process.cwd() + '/')
const load = async (name) => import(pathToFileURL(require.resolve(name)))
const { parquetReadObjects } = await load('hyparquet')
const { asyncBufferFromFile } = await load('hyparquet/src/node.js')
const { compressors } = await load('hyparquet-compressors')
const parsers = { timestampFromMicroseconds: (us) => us }
const plain = (key, value) => (typeof value === 'bigint' || typeof value === 'number' ? String(value) : value)

for (const path of process.argv.slice(2)) {
  const file = await asyncBufferFromFile(path)
  for (const row of await parquetReadObjects({ file, compressors, parsers })) process.stdout.write(JSON.stringify(row, plain) + '\n')
}
