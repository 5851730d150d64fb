import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RpcError, agent } from './fake-livekit.js';
import { connected, settle } from './setup.js';

const peanuts = { id: 'm1', text: 'Is allergic to peanuts.', when: null, source: 'profile', inferred: false };

test('What was recalled hangs on the reply that it was recalled for', async () => {
  const { call, world } = await connected(agent());
  world.room.memoryEvent('agent-1', { type: 'recalled', facts: [peanuts], waited_ms: 12.4 });
  await settle();
  world.room.words('agent-1', 'a', 'No peanuts then.', true);
  world.room.words('agent-1', 'b', 'Anything else?', true);
  await settle();
  const [first, second] = [...call.rows.values()];
  assert.deepEqual(first.recalled, { facts: [peanuts], waited: 12 });
  assert.equal(second.recalled, undefined);
  assert.equal(call.view.recalled, 1);
});

test('What was saved and forgotten stands in the transcript', async () => {
  const { call, world, seen } = await connected(agent());
  world.room.memoryEvent('agent-1', { type: 'saved', facts: [peanuts] });
  await settle();
  world.room.memoryEvent('agent-1', { type: 'forgotten', facts: [peanuts] });
  await settle();
  assert.deepEqual([...call.rows.values()].map(({ who, kind }) => [who, kind]), [['note', 'saved'], ['note', 'forgotten']]);
  assert.deepEqual(seen.memory.map(({ type }) => type), ['saved', 'forgotten']);
});

test('A fact that the caller takes back is not announced as forgotten too', async () => {
  const { call, world } = await connected(agent());
  world.room.memoryEvent('agent-1', { type: 'saved', facts: [peanuts] });
  await settle();
  call.takeBack(peanuts.id);
  world.room.memoryEvent('agent-1', { type: 'forgotten', facts: [peanuts] });
  world.room.memoryEvent('agent-1', { type: 'forgotten', facts: [{ ...peanuts, id: 'm2' }] });
  await settle();
  assert.deepEqual([...call.rows.values()].map(({ kind, facts }) => [kind, facts[0].id]), [['saved', 'm1'], ['forgotten', 'm2']]);
});

for (const [what, event] of [['no JSON', '{'], ['null', 'null'], ['facts that are none', { type: 'saved', facts: 'x' }], ['a fact without text', { type: 'saved', facts: [{ id: 1 }] }], ['a type it does not know', { type: 'other', facts: [peanuts] }]]) {
  test(`A memory event with ${what} does no harm`, async () => {
    const { call, world } = await connected(agent());
    world.room.memoryEvent('agent-1', event);
    await settle();
    assert.equal(call.rows.size, 0);
    assert.equal(call.view.phase, 'live');
  });
}

test('Memory events count only when the agent sent them', async () => {
  const { call, world } = await connected(agent());
  world.room.memoryEvent('mallory', { type: 'saved', facts: [peanuts] });
  world.room.memoryEvent('mallory', { type: 'state', state: 'paused' });
  await settle();
  assert.equal(call.rows.size, 0);
  assert.equal(call.view.memory, 'on');
});

test("The agent's attributes tell about memory and recording, and of later changes too", async () => {
  const { call, world, agent: who } = await connected(agent('agent-1', { 'memory.recorded': 'true' }));
  assert.deepEqual([call.view.memory, call.view.recorded], ['on', true]);
  world.room.says(who, { 'memory.state': 'off' });
  assert.equal(call.view.memory, 'off');
});

test("Attributes of others change nothing", async () => {
  const { call, world } = await connected(agent());
  world.room.says({ identity: 'mallory', attributes: {} }, { 'memory.state': 'off', 'memory.recorded': 'true' });
  assert.deepEqual([call.view.memory, call.view.recorded], ['on', false]);
});

test('The switch changes on the answer of the agent, not on the click', async () => {
  const { call, world } = await connected(agent());
  let reply;
  world.rpc = () => new Promise((resolve) => { reply = resolve; });
  call.setPaused(true);
  await settle();
  assert.deepEqual([call.view.memory, call.view.switching], ['on', true]);
  reply('{"state": "paused"}');
  await settle();
  assert.deepEqual([call.view.memory, call.view.switching], ['paused', false]);
  assert.deepEqual(world.room.rpcs.at(-1), ['agent-1', 'memory.pause', '{"paused":true}']);
});

test('A switch that the agent does not confirm stays, and the page says so', async () => {
  const { call, world, seen } = await connected(agent());
  world.rpc = async () => { throw new RpcError(1500); };
  await call.setPaused(true);
  assert.equal(call.view.memory, 'on');
  assert.match(seen.notices[0], /did not confirm.*may still remember/);
});

test('An agent that is still setting up is asked again', async () => {
  const { call, world, clock } = await connected(agent());
  let refusals = 2;
  const healthy = world.rpc;
  world.rpc = async (...given) => { if (given[0] === 'memory.pause' && refusals-- > 0) throw new RpcError(1400); return healthy(...given); };
  call.setPaused(true);
  await clock.advance(1_500);
  assert.equal(call.view.memory, 'paused');
});

test('A replacement is told that the caller does not want to be remembered', async () => {
  const { call, world, clock, agent: first } = await connected(agent());
  await call.setPaused(true);
  world.room.leave(first);
  await clock.advance(1_000);
  world.room.join(agent('agent-2'));
  await settle();
  assert.deepEqual(world.room.rpcs.filter(([, method]) => method === 'memory.pause').at(-1), ['agent-2', 'memory.pause', '{"paused":true}']);
  assert.equal(call.view.memory, 'paused');
});

test('A replacement that has not said yet whether it remembers is told all the same', async () => {
  const { call, world, clock, agent: first } = await connected(agent());
  await call.setPaused(true);
  world.room.leave(first);
  await clock.advance(1_000);
  const second = world.room.join(agent('agent-2', { 'memory.state': '' }));
  assert.notEqual(call.view.memory, 'paused');
  await settle();
  assert.equal(call.view.memory, 'paused');
  world.room.says(second, { 'memory.state': 'paused' });
  assert.deepEqual(world.room.rpcs.filter(([to, method]) => to === 'agent-2' && method === 'memory.pause').length, 1);
});

test('A replacement is told as soon as it can be reached, and not before', async () => {
  const { call, world, clock, agent: first } = await connected(agent());
  await call.setPaused(true);
  world.room.leave(first);
  await clock.advance(1_000);
  const second = agent('agent-2', { 'lk.agent.state': 'initializing' });
  second.isActive = false;
  world.room.join(second);
  await settle();
  const told = () => world.room.rpcs.filter(([to, method]) => to === 'agent-2' && method === 'memory.pause').length;
  assert.equal(told(), 0);
  world.room.reached(second);
  await settle();
  assert.equal(told(), 1);
});

test('A caller who told the agent to remember again is not silenced in its replacement', async () => {
  const { call, world, clock, agent: first } = await connected(agent());
  await call.setPaused(true);
  world.room.memoryEvent('agent-1', { type: 'state', state: 'on' });
  await settle();
  world.room.leave(first);
  await clock.advance(1_000);
  world.room.join(agent('agent-2'));
  await settle();
  assert.equal(call.view.memory, 'on');
  assert.equal(world.room.rpcs.filter(([to, method]) => to === 'agent-2' && method === 'memory.pause').length, 0);
});

test('An answer of a lost agent does not move the switch of its replacement', async () => {
  const { call, world, clock, seen, agent: first } = await connected(agent());
  const healthy = world.rpc;
  let late;
  world.rpc = () => new Promise((resolve) => { late = resolve; });
  call.setPaused(true);
  await settle();
  world.rpc = healthy;
  world.room.leave(first);
  await clock.advance(1_000);
  world.room.join(agent('agent-2'));
  late('{"state": "paused"}');
  await settle();
  assert.deepEqual([call.view.memory, call.view.switching], ['on', false]);
  assert.deepEqual(seen.notices, []);
});

test('What is forgotten on the page in a call is forgotten by its agent', async () => {
  const { call, world, seen } = await connected(agent());
  world.rpc = async () => '{"forgotten":["m1"]}';
  assert.deepEqual(await call.forget({ id: 'm1' }), { forgotten: ['m1'] });
  assert.deepEqual(world.room.rpcs.at(-1), ['agent-1', 'memory.forget', '{"id":"m1"}']);
  for (const rpc of [async () => { throw new RpcError(1500); }, async () => 'no JSON']) {
    world.rpc = rpc;
    assert.equal(await call.forget({ everything: true }), null);
    assert.match(seen.notices.pop(), /did not confirm/);
  }
});

test('Without a call there is nobody to tell', async () => {
  const { call, world } = await connected(agent());
  call.end();
  const before = world.room.rpcs.length;
  assert.equal(await call.forget({ id: 'm1' }), null);
  await call.setPaused(true);
  assert.equal(world.room.rpcs.length, before);
});
