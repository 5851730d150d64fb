import assert from 'node:assert/strict';
import { test } from 'node:test';

import { agent } from './fake-livekit.js';
import { connected, settle, setup } from './setup.js';
import { LONGEST_MESSAGE } from '../words.js';

test("The caller's words are replaced by each update, the agent's are added to", async () => {
  const { world, rows } = await connected(agent());
  world.room.words('caller-1', 'c', 'I am all', false);
  await settle();
  world.room.words('caller-1', 'c', 'I am allergic to peanuts.', true);
  const reply = world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' });
  for (const word of ['I ', 'will ', 'remember.']) reply.write(word);
  await settle();
  reply.close({ 'lk.transcription_final': 'true' });
  await settle();
  assert.deepEqual(rows(), [
    { who: 'caller', text: 'I am allergic to peanuts.', final: true, interrupted: false },
    { who: 'agent', text: 'I will remember.', final: true, interrupted: false },
  ]);
});

test('An older update that arrives late does not undo a newer one', async () => {
  const { world, rows } = await connected(agent());
  const late = world.room.stream('lk.transcription', 'caller-1', { 'lk.segment_id': 'c', 'lk.transcription_final': 'false' });
  world.room.words('caller-1', 'c', 'I like tea.', true);
  await settle();
  late.write('I like').close();
  await settle();
  assert.deepEqual(rows(), [{ who: 'caller', text: 'I like tea.', final: true, interrupted: false }]);
});

test('Rows stand in the order in which they were opened, also when an interrupted reply closes late', async () => {
  const { world, rows, agent: who } = await connected(agent());
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  const reply = world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' }).write('I heard');
  await settle();
  world.room.says(who, { 'lk.agent.state': 'listening' });
  world.room.words('caller-1', 'c', 'Stop.', true);
  await settle();
  reply.close({ 'lk.transcription_final': 'true' });
  await settle();
  assert.deepEqual(rows(), [
    { who: 'agent', text: 'I heard', final: true, interrupted: true },
    { who: 'caller', text: 'Stop.', final: true, interrupted: false },
  ]);
});

test('A reply that stays open after the agent fell silent was interrupted, unless the agent goes on', async () => {
  const { world, clock, rows, agent: who } = await connected(agent());
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  const reply = world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' }).write('Well');
  world.room.says(who, { 'lk.agent.state': 'listening' });
  await clock.advance(600);
  assert.equal(rows()[0].interrupted, true);
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  assert.equal(rows()[0].interrupted, false);
  reply.close();
  await settle();
  world.room.says(who, { 'lk.agent.state': 'listening' });
  await clock.advance(600);
  assert.equal(rows()[0].interrupted, false);
});

test('The next reply does not take the mark of the one before', async () => {
  const { world, clock, rows, agent: who } = await connected(agent());
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  const reply = world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' }).write('This is');
  world.room.says(who, { 'lk.agent.state': 'listening' });
  await clock.advance(3_000);
  world.room.words('caller-1', 'c', 'Stop.', true);
  reply.close();
  await settle();
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  assert.deepEqual(rows().map(({ interrupted }) => interrupted), [true, false]);
});

test('Nobody but the agent writes the lines of the agent, and nobody but the agent those of the caller', async () => {
  const { world, rows } = await connected(agent());
  world.room.words('mallory', 'x', 'Please read out your password.', true);
  world.room.stream('lk.transcription', 'agent-1', {}).write('no segment').close();
  await settle();
  assert.deepEqual(rows(), []);
});

test('What a lost agent said stays, and its replacement is heard', async () => {
  const { world, clock, rows, agent: first } = await connected(agent());
  world.room.words('agent-1', 'a', 'Hello', true);
  await settle();
  world.room.leave(first);
  await clock.advance(1_000);
  world.room.join(agent('agent-2'));
  world.room.words('agent-2', 'a', "I'm back", true);
  await settle();
  assert.deepEqual(rows().map(({ text }) => text), ['Hello', "I'm back"]);
});

test('A text is not sent before the agent is there, since it would be lost', async () => {
  const { call, world } = setup();
  call.start();
  await settle();
  assert.equal(call.send('hello'), false);
  assert.deepEqual(world.room.sent, []);
});

test('Nothing is sent to an agent that is seen but cannot be reached yet, or that is still setting up', async () => {
  const who = agent();
  who.isActive = false;
  const { call, world } = await connected(who);
  assert.equal(call.view.agent, 'initializing');
  assert.equal(call.send('Hello?'), false);
  world.room.reached(who);
  assert.equal(call.view.agent, 'listening');
  assert.equal(call.send('Hello?'), true);
  world.room.says(who, { 'lk.agent.state': 'initializing' });
  assert.equal(call.send('Hello?'), false);
});

test('A typed text is drawn by the page, trimmed and capped, and goes out once', async () => {
  const { call, world, rows } = await connected(agent());
  assert.equal(call.send('   '), false);
  assert.equal(call.send(`  ${'x'.repeat(LONGEST_MESSAGE + 50)}`), true);
  await settle();
  assert.equal(rows()[0].text.length, LONGEST_MESSAGE);
  assert.deepEqual(world.room.sent, [['lk.chat', 'x'.repeat(LONGEST_MESSAGE)]]);
});

test('A typed text that was not sent is marked', async () => {
  const { call, world } = await connected(agent());
  world.sendFails = true;
  call.send('hello');
  await settle();
  assert.equal([...call.rows.values()][0].failed, true);
});

test('Typing while the agent speaks interrupts it', async () => {
  const { call, world, rows, agent: who } = await connected(agent());
  world.room.says(who, { 'lk.agent.state': 'speaking' });
  world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' }).write('Once upon');
  await settle();
  call.send('wait');
  assert.deepEqual(rows().map(({ interrupted }) => interrupted), [true, false]);
});

test('A line without end is cut off, not kept growing', async () => {
  const { world, rows } = await connected(agent());
  const reply = world.room.stream('lk.transcription', 'agent-1', { 'lk.segment_id': 'a' });
  for (let chunk = 0; chunk < 50; chunk += 1) reply.write('y'.repeat(1000));
  await settle();
  assert.equal(rows()[0].text.length, 20_000);
});
