import assert from 'node:assert/strict';
import { test } from 'node:test';

import { agent } from './fake-livekit.js';
import { connected, settle, setup } from './setup.js';
import { MICROPHONE } from '../problems.js';

function refusal(name) {
  return async () => { throw Object.assign(new Error(name), { name }); };
}

const refusals = [
  ['NotAllowedError', 'denied'],
  ['NotFoundError', 'none'],
  ['OverconstrainedError', 'none'],
  ['NotReadableError', 'busy'],
  ['TypeError', 'failed'],
];
for (const [name, mic] of refusals) {
  test(`${name} of the microphone is "${mic}", and the call goes on with text`, async () => {
    const { call, world } = setup();
    world.microphone = refusal(name);
    call.start();
    await settle();
    world.room.join(agent());
    assert.deepEqual([call.view.phase, call.view.mic], ['live', mic]);
    assert.equal(call.send('hello'), true);
    assert.match(MICROPHONE[mic].join(' '), /\. .*type/);
  });
}

test('A permission question that nobody answers does not hold up the call', async () => {
  const { call, world } = setup();
  world.microphone = () => new Promise(() => {});
  call.start();
  await settle();
  world.room.join(agent());
  assert.deepEqual([call.view.phase, call.view.mic], ['live', 'asking']);
});

test('A permission given after hanging up does not leave the microphone open', async () => {
  const { call, world } = setup();
  let allow;
  world.microphone = () => new Promise((resolve) => { allow = resolve; });
  call.start();
  await settle();
  call.end();
  allow();
  await settle();
  assert.equal(world.tracks[0].stopped, true);
  assert.equal(call.view.mic, 'off');
});

test('A microphone opened for a call that then cannot connect is closed', async () => {
  const { call, world } = setup();
  let refuse;
  world.connect = () => new Promise((resolve, reject) => { refuse = reject; });
  call.start();
  await settle();
  refuse({ reason: 1 });
  await settle();
  assert.equal(world.room.published, undefined);
  assert.equal(world.tracks[0].stopped, true);
});

test('On a page without a secure context no permission is asked for', async () => {
  const { call, world } = setup({ secure: false });
  call.start();
  await settle();
  assert.equal(call.view.mic, 'insecure');
  assert.equal(world.tracks.length, 0);
});

test('After a refusal the caller can try again', async () => {
  const { call, world } = setup();
  world.microphone = refusal('NotAllowedError');
  call.start();
  await settle();
  world.microphone = async () => {};
  await call.retryMicrophone();
  assert.equal(call.view.mic, 'on');
  assert.ok(world.room.published);
});

test('Mute and unmute are not taken for a loss', async () => {
  const { call } = await connected(agent());
  const states = [];
  call.on('view', ({ mic }) => { if (states.at(-1) !== mic) states.push(mic); });
  await call.toggleMute();
  await call.toggleMute();
  assert.deepEqual(states, ['muted', 'on']);
});

test('A mute that nobody asked for is a lost microphone; trying again names what is wrong', async () => {
  const { call, world } = await connected(agent());
  world.room.emit('trackMuted', world.room.published, world.room.localParticipant);
  assert.equal(call.view.mic, 'lost');
  world.room.published.track.mediaStreamTrack = {};
  world.microphone = refusal('NotFoundError');
  await call.retryMicrophone();
  assert.equal(call.view.mic, 'none');
  world.microphone = async () => {};
  await call.retryMicrophone();
  assert.equal(call.view.mic, 'on');
});

test("The agent's own mute is not the caller's", async () => {
  const { call, world, agent: who } = await connected(agent());
  world.room.emit('trackMuted', {}, who);
  assert.equal(call.view.mic, 'on');
});

test('The chosen devices are used in the call and in the next one', async () => {
  const { call, world } = await connected(agent());
  await call.choose('audioinput', 'usb');
  await call.choose('audiooutput', 'headset');
  assert.deepEqual(world.room.switched, [['audioinput', 'usb'], ['audiooutput', 'headset']]);
  call.end();
  call.start();
  await settle();
  assert.deepEqual(world.room.options.audioCaptureDefaults, { deviceId: { ideal: 'usb' } });
  assert.deepEqual(world.room.options.audioOutput, { deviceId: 'headset' });
});

test('A device that cannot be used is said', async () => {
  const { call, world, seen } = await connected(agent());
  world.deviceFails = true;
  await call.choose('audiooutput', 'gone');
  assert.deepEqual(seen.notices, ['That device could not be used.']);
});
