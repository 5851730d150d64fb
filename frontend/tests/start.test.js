import assert from 'node:assert/strict';
import { test } from 'node:test';

import { agent } from './fake-livekit.js';
import { answer, connected, settle, setup } from './setup.js';

function saidBy(view) {
  return `${view.problem.message} ${view.problem.next}`;
}

test('A call goes from the click to a listening agent, and names every step', async () => {
  const { call, world, seen } = await connected(agent());
  assert.deepEqual(seen.phases, ['starting', 'waiting', 'live']);
  assert.equal(call.view.agent, 'listening');
  assert.equal(call.view.mic, 'on');
  assert.deepEqual(world.room.connectedTo, ['ws://livekit.test:7880', 'eyJ.secret.token']);
});

test('The page chooses nothing about itself when it asks for a token', async () => {
  const { server } = await connected(agent());
  assert.deepEqual(server.asked[0], ['POST', '/api/token', {}]);
});

const refusals = [
  ['a token server that is not running', () => { throw new TypeError('fetch failed'); }, /does not answer.*token_server\.py/],
  ['too many calls', () => answer(429, { error: 'Too many calls from here.' }, { 'Retry-After': '30' }), /Too many calls from here\. Try again in 30 seconds\./],
  ['a page from another address', () => answer(403, { error: 'This page may not ask.' }), /This page may not ask\. Reload/],
  ['a broken proxy', () => answer(502, '<html>bad gateway</html>'), /status 502.*log/],
  ['an answer without a token', () => answer(201, {}), /no token.*log/],
];
for (const [what, reply, sentence] of refusals) {
  test(`Instead of a token, ${what}: the sentence says what to do`, async () => {
    const { call, server, world } = setup();
    server['/api/token'] = reply;
    call.start();
    await settle();
    assert.equal(call.view.phase, 'failed');
    assert.match(saidBy(call.view), sentence);
    assert.ok(world.room.left);
  });
}

const refusedConnects = [
  [0, /livekit\.test:7880 refused this page's token.*LIVEKIT_API_KEY/],
  [1, /livekit\.test:7880 cannot be reached.*running/],
  [2, /could not be set up.*firewall/],
  [5, /does not answer.*LIVEKIT_URL/],
  [6, /turned the call away.*another tab/],
];
for (const [reason, sentence] of refusedConnects) {
  test(`A connect refused with reason ${reason} is reported once, and never with the token in it`, async () => {
    const { call, world, seen } = setup();
    world.connect = async (room) => {
      room.disconnected(12); // fires before the promise rejects
      throw Object.assign(new Error('invalid token: eyJ.secret.token, error: token is expired (exp)'), { reason });
    };
    call.start();
    await settle();
    assert.deepEqual(seen.phases, ['starting', 'failed']);
    assert.match(saidBy(call.view), sentence);
    assert.doesNotMatch(JSON.stringify(call.view), /eyJ/);
  });
}

test('The library is told to keep silent, since its messages can hold the token', async () => {
  const { world } = await connected(agent());
  assert.equal(world.logLevel, 'silent');
});

test('A server that accepts and then says nothing fails the start after 15 seconds', async () => {
  const { call, world, clock } = setup();
  world.connect = () => new Promise(() => {});
  call.start();
  await clock.advance(14_900);
  assert.equal(call.view.phase, 'starting');
  await clock.advance(200);
  assert.match(saidBy(call.view), /within 15 seconds.*LiveKit server is running/);
  assert.ok(world.room.left);
});

test('A connect that succeeds after the start was given up changes nothing', async () => {
  const { call, world, clock } = setup();
  let open;
  world.connect = () => new Promise((resolve) => { open = resolve; });
  call.start();
  await clock.advance(16_000);
  open();
  await settle();
  assert.equal(call.view.phase, 'failed');
  assert.equal(clock.pending, 0);
});

test('Without the call library the failure says how to get it', async () => {
  const { call } = setup({ library: async () => null });
  call.start();
  await settle();
  assert.match(saidBy(call.view), /did not load.*reload/);
});

test('A browser without WebRTC is told so before anything is asked', async () => {
  const { call, world, server } = setup();
  world.oldBrowser = true;
  call.start();
  await settle();
  assert.match(saidBy(call.view), /cannot make calls.*Firefox/);
  assert.deepEqual(server.asked, []);
});

test('A second click while a call starts does not start a second one', async () => {
  const { call, world } = setup();
  call.start();
  call.start();
  await settle();
  assert.equal(world.rooms.length, 1);
});

test('Hanging up leaves the room, stops every timer and keeps the transcript', async () => {
  const { call, world, clock, rows } = await connected(agent());
  world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' }).write('Half a');
  await settle();
  await clock.advance(65_000);
  call.end();
  assert.equal(call.view.phase, 'ended');
  assert.equal(call.view.problem, null);
  assert.equal(call.view.endedAt - call.view.startedAt, 65_000);
  assert.ok(world.room.left);
  assert.equal(clock.pending, 0);
  assert.deepEqual(rows(), [{ who: 'agent', text: 'Half a', final: true, interrupted: false }]);
});

test('The next call begins with an empty transcript', async () => {
  const { call, world, rows } = await connected(agent());
  world.room.words('caller-1', 'c', 'hello', true);
  await settle();
  call.end();
  call.start();
  await settle();
  assert.deepEqual(rows(), []);
  assert.equal(call.view.phase, 'waiting');
});

const ends = [
  [5, 'ended', /agent ended the call/],
  [10, 'ended', /agent ended the call/],
  [2, 'ended', /another tab.*from here/],
  [3, 'failed', /server was shut down.*call again/],
  [4, 'failed', /closed by the server.*Call again/],
  [undefined, 'failed', /connection was lost.*network/],
];
for (const [reason, phase, sentence] of ends) {
  test(`A call cut with reason ${reason} is ${phase}, with a sentence`, async () => {
    const { call, world } = await connected(agent());
    world.room.disconnected(reason);
    assert.equal(call.view.phase, phase);
    assert.match(saidBy(call.view), sentence);
  });
}
