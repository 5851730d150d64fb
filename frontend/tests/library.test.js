import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

import { names } from './fake-livekit.js';

const folder = new URL('../', import.meta.url);
const file = new URL('node_modules/livekit-client/dist/livekit-client.umd.js', folder);
const skip = existsSync(file) ? false : 'livekit-client is not installed: npm ci --prefix frontend';

test('The livekit-client of the tests has the names and numbers of the real one', { skip }, () => {
  const real = createRequire(import.meta.url)(file.pathname);
  for (const [name, values] of Object.entries(names)) {
    for (const [key, value] of Object.entries(values)) assert.equal(real[name][key], value, `${name}.${key}`);
  }
  for (const method of ['on', 'switchActiveDevice', 'registerTextStreamHandler']) {
    assert.equal(typeof real.Room.prototype[method], 'function', `Room.${method}`);
  }
  for (const method of ['createTracks', 'publishTrack', 'setMicrophoneEnabled', 'sendText', 'performRpc', 'getTrackPublication']) {
    assert.equal(typeof real.LocalParticipant.prototype[method], 'function', `LocalParticipant.${method}`);
  }
});

test('The installed livekit-client is the pinned one', { skip }, () => {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', folder)));
  const installed = JSON.parse(readFileSync(new URL('node_modules/livekit-client/package.json', folder)));
  assert.equal(installed.version, dependencies['livekit-client']);
});
