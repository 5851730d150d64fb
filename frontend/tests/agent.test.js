import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RpcError, agent } from './fake-livekit.js';
import { answer, connected, settle, setup } from './setup.js';

async function waiting() {
  const all = setup();
  all.call.start();
  await settle();
  return all;
}

/** An agent process that was killed: the server still lists it, and nothing confirms. */
function dead(world, clock) {
  world.rpc = () => new Promise((resolve, reject) => clock.setTimeout(() => reject(new RpcError(1501)), 7_000));
}

test('Without an agent the page asks again after 9 and 18 seconds, and no more', async () => {
  const { clock, dispatches } = await waiting();
  await clock.advance(8_000);
  assert.equal(dispatches().length, 0);
  await clock.advance(2_000);
  assert.deepEqual(dispatches(), [{ room: 'room-1' }]);
  await clock.advance(9_000);
  assert.equal(dispatches().length, 2);
  await clock.advance(30_000);
  assert.equal(dispatches().length, 2);
});

test('After 30 seconds it says that the agent is waking up; asking again starts the patience anew', async () => {
  const { call, clock, dispatches } = await waiting();
  await clock.advance(30_000);
  assert.equal(call.view.slow, true);
  call.retry();
  await settle();
  assert.equal(call.view.slow, false);
  assert.equal(dispatches().length, 3);
  await clock.advance(59_000);
  assert.equal(call.view.phase, 'waiting');
});

test('After a minute the call fails, and names what to check and what the server said', async () => {
  const { call, clock, server, world } = await waiting();
  server['/api/dispatch'] = () => answer(503, { error: 'LiveKit does not answer.' });
  await clock.advance(60_000);
  assert.equal(call.view.phase, 'failed');
  assert.match(call.view.problem.message, /agent did not join/);
  assert.match(call.view.problem.next, /running.*same LiveKit project.*LIVEKIT_AGENT_NAME.*LiveKit does not answer/);
  assert.ok(world.room.left);
});

test('An agent that comes stops the asking', async () => {
  const { call, clock, world, dispatches } = await waiting();
  await clock.advance(10_000);
  world.room.join(agent());
  assert.equal(call.view.phase, 'live');
  await clock.advance(60_000);
  assert.equal(dispatches().length, 1);
});

test('An agent that was in the room first is found', async () => {
  const { call, world } = setup();
  world.connect = async (room) => { room.remoteParticipants.set('agent-1', agent()); };
  call.start();
  await settle();
  assert.equal(call.view.phase, 'live');
});

test('People, recorders and avatars are not the agent', async () => {
  const { call, world } = await waiting();
  world.room.join({ identity: 'egress', isAgent: false, attributes: {} });
  world.room.join(agent('avatar', { 'lk.publish_on_behalf': 'agent-1' }));
  assert.equal(call.view.phase, 'waiting');
});

test('A room that is gone ends the waiting', async () => {
  const { call, clock, server } = await waiting();
  server['/api/dispatch'] = () => answer(404, { error: 'No such room.' });
  await clock.advance(9_500);
  assert.equal(call.view.phase, 'failed');
  assert.match(call.view.problem.message, /no longer open/);
});

test('An agent that leaves is replaced, and the server is told which one was lost', async () => {
  const { call, world, clock, dispatches, agent: first } = await connected(agent());
  world.room.leave(first);
  assert.deepEqual([call.view.phase, call.view.lost], ['waiting', true]);
  await clock.advance(1_000);
  assert.deepEqual(dispatches(), [{ room: 'room-1', lost: 'agent-1' }]);
  world.room.join(agent('agent-2'));
  assert.deepEqual([call.view.phase, call.view.lost], ['live', false]);
});

test('An agent that leaves because it ends the call is not replaced', async () => {
  const { call, world, clock, dispatches, agent: first } = await connected(agent());
  world.room.leave(first);
  await clock.advance(300);
  world.room.disconnected(5);
  await clock.advance(5_000);
  assert.equal(call.view.phase, 'ended');
  assert.deepEqual(dispatches(), []);
});

test('A killed agent, which the server lists for 20 seconds more, is missed and replaced within 11', async () => {
  const { call, world, clock, dispatches } = await connected(agent());
  await clock.advance(2_400); // the worst moment: the next question is about to be asked
  dead(world, clock);
  await clock.advance(10_500);
  assert.equal(call.view.phase, 'waiting');
  assert.deepEqual(dispatches(), [{ room: 'room-1', lost: 'agent-1' }]);
  world.room.join(agent('agent-2'));
  assert.equal(call.view.phase, 'live');
  world.room.leave(world.room.remoteParticipants.get('agent-1')); // noticed by the server at last
  assert.equal(call.view.phase, 'live');
});

for (const code of [1400, 1403, 1500, 1502]) {
  test(`An agent that answers a heartbeat with error ${code} is busy or of another make, not dead`, async () => {
    const { call, world, clock } = await connected(agent());
    world.rpc = async () => { throw new RpcError(code); };
    await clock.advance(60_000);
    assert.equal(call.view.phase, 'live');
  });
}

test('One unanswered heartbeat is no loss when a later one was answered', async () => {
  const { call, world, clock } = await connected(agent());
  const healthy = world.rpc;
  dead(world, clock);
  await clock.advance(2_600);
  world.rpc = healthy;
  await clock.advance(20_000);
  assert.equal(call.view.phase, 'live');
});

test('An agent that was out of reach for a moment and then refuses is no loss either', async () => {
  const { call, world, clock } = await connected(agent());
  dead(world, clock);
  await clock.advance(2_600);
  world.rpc = async () => { throw new RpcError(1500); };
  await clock.advance(20_000);
  assert.equal(call.view.phase, 'live');
});

test('A laptop that slept does not take the agent for dead', async () => {
  const { call, world, clock } = await connected(agent());
  let refuse;
  world.rpc = () => new Promise((resolve, reject) => { refuse = reject; });
  await clock.advance(2_500);
  clock.time += 3_600_000;
  refuse(new RpcError(1501));
  await settle();
  assert.equal(call.view.phase, 'live');
});

test('When another agent is already on its way, the page waits for it', async () => {
  const { call, world, clock, server } = await connected(agent());
  server['/api/dispatch'] = () => answer(409, { error: 'An agent is on its way.' });
  dead(world, clock);
  await clock.advance(11_000);
  assert.equal(call.view.phase, 'waiting');
  world.room.join(agent('agent-2'));
  assert.equal(call.view.phase, 'live');
});

test('An agent that joins again under its own name is welcome', async () => {
  const { call, world, clock, dispatches, agent: first } = await connected(agent());
  world.room.leave(first);
  world.room.join(agent('agent-1'));
  await clock.advance(3_000);
  assert.equal(call.view.phase, 'live');
  assert.deepEqual(dispatches(), []);
});

test('Of two agents the first is kept, and the second takes over when it leaves', async () => {
  const { call, world, clock, dispatches, agent: first } = await connected(agent());
  world.room.join(agent('agent-2', { 'lk.agent.state': 'thinking' }));
  assert.equal(call.view.agent, 'listening');
  world.room.leave(first);
  await clock.advance(2_000);
  assert.deepEqual([call.view.phase, call.view.agent], ['live', 'thinking']);
  assert.deepEqual(dispatches(), []);
});

test('An agent that dies again and again is not started forever', async () => {
  const { call, world, clock, dispatches } = await connected(agent());
  for (let round = 1; call.view.phase === 'live'; round += 1) {
    world.room.leave([...world.room.remoteParticipants.values()][0]);
    await clock.advance(1_000);
    if (call.view.phase === 'waiting') world.room.join(agent(`agent-${round + 1}`));
  }
  assert.equal(dispatches().length, 3);
  assert.match(call.view.problem.message, /keeps dropping out/);
});

test('While the page reconnects, the agent seems to leave; that is not a loss', async () => {
  const { call, world, clock, seen, dispatches, agent: first } = await connected(agent());
  world.room.emit('signalReconnecting');
  world.room.leave(first);
  world.room.emit('reconnecting');
  assert.equal(call.view.phase, 'reconnecting');
  world.room.emit('reconnected');
  await clock.advance(1_000);
  world.room.join(agent('agent-1'));
  await clock.advance(20_000);
  assert.deepEqual(seen.phases.slice(2), ['live', 'reconnecting', 'waiting', 'live']);
  assert.deepEqual(dispatches(), []);
});

test('An agent that does not come back after a reconnect is replaced', async () => {
  const { world, clock, dispatches, agent: first } = await connected(agent());
  world.room.emit('reconnecting');
  world.room.leave(first);
  world.room.emit('reconnected');
  await clock.advance(6_000);
  assert.deepEqual(dispatches(), [{ room: 'room-1', lost: 'agent-1' }]);
});

test('A short hiccup of the signal keeps the agent', async () => {
  const { call, world } = await connected(agent());
  world.room.emit('signalReconnecting');
  world.room.emit('reconnected');
  assert.equal(call.view.phase, 'live');
});

test("The agent's sound is handed on, and taken back when it goes", async () => {
  const { world, seen, agent: who } = await connected(agent());
  const track = { kind: 'audio' };
  world.room.emit('trackSubscribed', track, {}, who);
  world.room.emit('trackSubscribed', { kind: 'audio' }, {}, { isAgent: false });
  world.room.emit('trackUnsubscribed', track);
  assert.deepEqual(seen.audio, [track, null]);
});

test('Blocked playback is shown until a click allows it', async () => {
  const { call, world } = await connected(agent());
  world.room.canPlaybackAudio = false;
  world.room.emit('audioPlaybackChanged');
  assert.equal(call.view.audioBlocked, true);
  await call.unblockAudio();
  assert.equal(call.view.audioBlocked, false);
});
