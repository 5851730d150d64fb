// One call over a livekit-client moved by hand, a server that answers as told, and a clock that only moves when told.

import { Call } from '../session.js';
import { fakeLivekit } from './fake-livekit.js';

/** Lets everything run that is ready to run. */
export async function settle() {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}

export class Clock {
  time = 1_000_000;
  #waiting = new Map();
  #serial = 0;

  now = () => this.time;
  setTimeout = (fn, delay) => { this.#waiting.set(++this.#serial, [this.time + delay, fn]); return this.#serial; };
  clearTimeout = (id) => { this.#waiting.delete(id); };

  /** Moves on by `milliseconds`, running what falls due at its own time. */
  async advance(milliseconds) {
    const until = this.time + milliseconds;
    for (;;) {
      await settle();
      const due = [...this.#waiting].filter(([, [at]]) => at <= until).sort((a, b) => a[1][0] - b[1][0])[0];
      if (!due) break;
      this.#waiting.delete(due[0]);
      this.time = due[1][0];
      due[1][1]();
    }
    this.time = until;
    await settle();
  }

  get pending() { return this.#waiting.size; }
}

export function answer(status, body, headers = {}) {
  return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
}

export function setup(options = {}) {
  const { library, world } = fakeLivekit();
  const clock = new Clock();
  const server = {
    asked: [],
    '/api/token': () => answer(201, { server_url: 'ws://livekit.test:7880', participant_token: 'eyJ.secret.token' }),
    '/api/dispatch': () => answer(202, {}),
  };
  const fetch = async (path, { method, body }) => {
    server.asked.push([method, path, body && JSON.parse(body)]);
    return server[path]();
  };
  const call = new Call({ library: async () => library, fetch, clock, ...options });
  const seen = { phases: [], notices: [], memory: [], audio: [] };
  call.on('view', ({ phase }) => { if (seen.phases.at(-1) !== phase) seen.phases.push(phase); });
  call.on('notice', (problem) => seen.notices.push(problem.message));
  call.on('memory', (event) => seen.memory.push(event));
  call.on('audio', (track) => seen.audio.push(track));
  const dispatches = () => server.asked.filter(([, path]) => path === '/api/dispatch').map(([, , body]) => body);
  const rows = () => [...call.rows.values()].map(({ who, text, final, interrupted = false }) => ({ who, text, final, interrupted }));
  return { call, world, clock, server, seen, dispatches, rows, library };
}

/** A call in which the agent is there and listening. */
export async function connected(agent, options) {
  const all = setup(options);
  all.call.start();
  await settle();
  all.agent = all.world.room.join(agent);
  await settle();
  return all;
}
