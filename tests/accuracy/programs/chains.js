// SPDX-License-Identifier: Apache-2.0
/*
 * chains.js SECONDS: chains of calls for tests/accuracy/node, on Node.js 18 and later.
 *
 * Each scenario runs for its part of the seconds of CPU time. At the ends of its chains of calls note() keeps
 * new Error().stack, in the first rounds: the chains of this run, with lines, which are printed at the end. A
 * function is written on one line, or ends at the first line that closes it at its own indent. BURN_GATE names
 * a FIFO that is read before.
 */
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const EventEmitter = require('events');
const fs = require('fs');

const chains = new Set();
let noting = true;
let sink = 0;

function told(error, frames) {
  return frames.filter((f) => !f.isAsync() && !f.isPromiseAll())
    .map((f) => `${f.getFunctionName() || '(anonymous)'}\t${f.getLineNumber() || 0}\t${f.getFileName() || ''}`)
    .slice(1).reverse().join('\n');
}

function note() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = told;
  chains.add(new Error().stack);
  Error.prepareStackTrace = undefined;
  Error.stackTraceLimit = limit;
}

function noted() {
  if (noting) note();
  return 0;
}

function burn(n) {
  if (noting) note();
  let x = 0;
  for (let i = 0; i < n; i++)
    x += i * i % 7;
  return x;
}

/* ---- calls ---- */

function down(n) {
  if (n)
    return down(n - 1) + 1;
  return burn(3000);
}

function recursion40() {
  sink += down(40);
}

function recursion400() {
  sink += down(400);
}

function i0(n) {
  return i1(n + 1) + 1;
}
function i1(n) {
  return i2(n) +
    i2(n + 2);
}
function i2(n) {
  const x = i3(n);
  return x + 1;
}
function i3(n) {
  if (n > 3)
    return i4(n - 3);
  return i4(n) ^ 1;
}
function i4(n) { return i5(n, 2) + 1; }
function i5(n, m) {
  return m +
    i6(n) *
    i6(m);
}
function i6(n) {
  let x = 0;
  for (let i = 0; i < 40; i++)
    x += i7(i + n);
  return x + i8(n);
}
function i7(n) {
  return i8(n) ^ n;
}
function i8(n) {
  if (noting) note();
  return n * n % 7;
}

function inlined() {
  for (let i = 0; i < 20; i++)
    sink += i0(i);
}

class Shape {
  constructor(n) {
    this.n = n;
    this.kept = this.area(n);
  }
  area(n) {
    return burn(n);
  }
  get half() {
    return burn(this.n) / 2;
  }
  set half(n) {
    this.n = 2 * n;
    this.kept += burn(n);
  }
  grow(by) {
    this.half += by;
    return this.area(by)
      + this.half;
  }
  static make(n) {
    return new this(n);
  }
}

class Square extends Shape {
  constructor(n) {
    super(n);
    this.side = burn(n >> 1);
  }
  area(n) {
    return super.area(n) + this.edge(n);
  }
  edge(n) {
    return burn(n);
  }
}

class Circle extends Shape {
  area(n) {
    return 3 * burn(n);
  }
}

function shapes() {
  for (const kind of [Shape, Square, Circle]) {
    const s = kind.make(100);
    sink += s.grow(50);
    sink += s.area(100);
  }
}

function closures() {
  const add = (n) => burn(n + 1);
  const twice = function (n) {
    return add(n) + add(n + 1);
  };
  const bound = twice.bind(null, 100);
  const made = { inner: {} };
  made.inner.deep = function (n) {
    return burn(n);
  };
  sink += add(100);
  sink += bound();
  sink += made.inner.deep(100);
  sink += twice.call(null, 100) + twice.apply(null, [100]);
  sink += Reflect.apply(add, null, [100]);
}

/* ---- called by builtins ---- */

function byValue(a, b) {
  return burn(20) + a - b;
}

function each(x) {
  return burn(60) + x;
}

function sum(a, b) {
  return a + burn(60) + b;
}

function reviver(key, value) {
  burn(60);
  return value;
}

function replaced(found) {
  burn(60);
  return found + 'x';
}

function builtins() {
  sink += [3, 1, 2, 5, 4].sort(byValue)[0];
  sink += [1, 2, 3].map(each).length;
  [1, 2].forEach(each);
  sink += [1, 2, 3].reduce(sum, 0);
  sink += [1, 2].filter((x) => each(x) > 1).length;
  sink += Array.from([1, 2], each).length;
  sink += JSON.parse('{"a": [1, 2], "b": 3}', reviver).b;
  sink += 'abcabc'.replace(/b/g, replaced).length;
  new Map([[1, 2]]).forEach(each);
}

function trap(target, key) {
  return burn(60) + key.length;
}

function proxies() {
  const p = new Proxy({}, { get: trap });
  sink += p.one
    + p.two;
}

/* A generator's arguments are evaluated when it is made. */
function* numbers(n, made = noted()) {
  for (let i = 0; i < n; i++) {
    burn(60);
    yield i;
  }
  sink += noted() + made;
}

function* more(n, made = noted()) {
  sink += made;
  yield* numbers(n);
  yield burn(60);
}

function generators() {
  for (const x of numbers(3))
    sink += x;
  const m = more(2);
  sink += m.next().value;
  sink += m.next().value;
  sink += m.next().value;
}

function thrower(n) {
  sink += burn(60);
  if (n)
    return thrower(n - 1);
  throw new Error('n');
}

function exceptions() {
  try {
    thrower(5);
  } catch (e) {
    sink += burn(100);
  } finally {
    sink += burn(60);
  }
}

function mixed(a, b) {
  burn(100);
  return a + b;
}

/* Code is optimized for numbers, deoptimized by texts, and optimized anew. */
function deoptimized() {
  for (let i = 0; i < 40; i++)
    sink += mixed(i, 1);
  sink += mixed('a', sink & 7 ? 'b' : 1).length;
  sink += new Function('f', 'return f(60) + 1')(burn);
}

const emitter = new EventEmitter();
emitter.on('one', function listener(n) {
  sink += burn(n);
});
emitter.once('never', () => 0);

function emitted() {
  emitter.emit('one', 100);
  emitter.emit('one', 120);
}

function texts() {
  let s = '';
  for (let i = 0; i < 200; i++)
    s += String.fromCharCode(97 + i % 26);
  sink += s.match(/(?:[a-m]+[n-z]+)*xy?z/g).length;
  sink += JSON.stringify({ s, n: [1, 2, 3] }).length;
  burn(200);
}

function garbage() {
  const kept = [];
  for (let i = 0; i < 400; i++)
    kept[i & 63] = { at: new Array(100).fill(i), text: 'x' + i };
  sink += kept.length + burn(300);
}

/* ---- called by the event loop ---- */

async function innerTask(n) {
  burn(300);
  await null;
  sink += burn(300);
  return n;
}

async function outerTask(n) {
  sink += await innerTask(n);
  burn(300);
  await Promise.all([innerTask(1), innerTask(2)]);
  for await (const x of slowly())
    sink += x + burn(100);
}

async function* slowly(made = noted()) {
  sink += made;
  for (let i = 0; i < 2; i++) {
    burn(100);
    yield i;
  }
  noted();
}

function then(n) {
  return burn(300) + n;
}

async function asynchronous() {
  noted();
  await outerTask(3);
  noted();
  await Promise.resolve(1).then(then).then(then);
}

function asTimer(done) {
  burn(1000);
  setImmediate(asImmediate, done);
}

function asImmediate(done) {
  burn(1000);
  process.nextTick(asTick, done);
}

function asTick(done) {
  burn(1000);
  queueMicrotask(function asMicrotask() {
    burn(1000);
    done();
  });
}

function timers() {
  noted();
  return new Promise((done) => {
    setTimeout(asTimer, 0, done);
    setTimeout(asTimer, 0, () => 0);
  });
}

/* ---- the program ---- */

const BOTH = [recursion40, inlined, shapes, closures, builtins, generators, exceptions];
const SYNCHRONOUS = [...BOTH, recursion400, proxies, deoptimized, emitted, texts, garbage];
const ASYNCHRONOUS = [asynchronous, timers];

function used() {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1e6;
}

function run(scenario, end) {
  for (let i = 0; ; i++) {
    noting = i < 3;
    scenario();
    if (!noting && used() >= end)
      break;
  }
}

async function runLater(scenario, end) {
  for (let i = 0; ; i++) {
    noting = i < 3;
    await scenario();
    noted();
    if (!noting && used() >= end)
      break;
  }
}

function beside(end) {
  const other = new Worker(__filename, { workerData: end });
  return new Promise((done) => other.on('message', (said) => {
    for (const chain of said)
      chains.add(chain);
    done();
  }));
}

async function main() {
  const begun = used();
  const part = Number(process.argv[2]) / (SYNCHRONOUS.length + ASYNCHRONOUS.length + 3);
  let end = begun;
  for (const scenario of SYNCHRONOUS)
    run(scenario, end += part);
  for (const scenario of ASYNCHRONOUS)
    await runLater(scenario, end += part);
  const ended = beside(end += 3 * part);
  for (const scenario of BOTH)
    run(scenario, end - 3 * part + part / 3 * (BOTH.indexOf(scenario) + 1));
  await ended;
  process.stdout.write([...chains].join('\n\n') + '\n');
}

function inWorker() {
  const part = (workerData - used()) / BOTH.length;
  for (let i = 0; i < BOTH.length; i++)
    run(BOTH[i], workerData - part * (BOTH.length - 1 - i));
  parentPort.postMessage([...chains]);
}

if (!isMainThread) {
  inWorker();
} else {
  if (process.env.BURN_GATE)
    fs.readSync(fs.openSync(process.env.BURN_GATE), Buffer.alloc(1), 0, 1);
  main();
}
