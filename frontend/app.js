// The screen: draws what the call and the memory panel say, and passes on what the person does.

import { MemoryPanel, element } from './memory-panel.js';
import { MICROPHONE, Problem } from './problems.js';
import { Call } from './session.js';
import { listDevices, loudness, openEars } from './sound.js';
import { Transcript, factList } from './transcript.js';
import { LONGEST_MESSAGE } from './words.js';

const $ = (id) => document.getElementById(id);
const stored = (() => { try { return localStorage; } catch { return {}; } })();

const call = new Call({
  // Before the window has loaded, the library may still be on its way.
  library: async () => {
    if (!globalThis.LivekitClient && document.readyState !== 'complete') {
      await new Promise((resolve) => addEventListener('load', resolve, { once: true }));
    }
    return globalThis.LivekitClient ?? null;
  },
  fetch: (...given) => fetch(...given),
  clock: { now: () => Date.now(), setTimeout: (...given) => setTimeout(...given), clearTimeout: (id) => clearTimeout(id) },
  devices: { audioinput: stored.audioinput, audiooutput: stored.audiooutput },
  secure: isSecureContext && Boolean(navigator.mediaDevices),
});

const panel = new MemoryPanel({
  fetch: (...given) => fetch(...given),
  forgetInCall: (what) => call.forget(what),
  onFacts: (facts) => {
    $('memory-count').textContent = facts.length || '';
    if (panel.store) $('where').textContent = `What you say is written down ${panel.store === 'embedded' ? 'on the machine that runs this page' : 'in Supermemory'}, under a random id that only this browser’s cookie holds. You can see, export and delete all of it here.`;
    if (call.view.phase === 'ended') drawSummary();
  },
  busy: () => call.open,
});

const transcript = new Transcript({
  log: $('log'),
  announce: (words) => { $('spoken').textContent = words; },
  undo: async (fact) => {
    call.takeBack(fact.id);
    fact.undone = await panel.forget(fact);
    if (!fact.undone) tell(new Problem('That could not be undone.', 'Open the memory list and try there.'));
    return fact.undone;
  },
});

// What the state is called.

const AGENT = { listening: 'Listening', thinking: 'Thinking', speaking: 'Speaking' };

function stateWords({ phase, agent, lost }) {
  switch (phase) {
    case 'starting': return 'Starting the call…';
    case 'waiting': return lost ? 'The agent dropped out. Bringing it back…' : 'Waiting for the agent…';
    case 'live': return AGENT[agent] ?? 'Getting ready…';
    case 'reconnecting': return 'Reconnecting…';
    case 'ended': return 'Call ended';
    case 'failed': return 'That did not work';
    default: return '';
  }
}

function detailWords({ phase, mic, memory, problem, agent }) {
  if (phase === 'idle') return 'It keeps what you tell it, and has it ready the next time you call.';
  if (phase === 'ended') return problem ? `${problem.message} ${problem.next}` : '';
  if (phase === 'reconnecting') return 'Hold on, the call is kept open.';
  if (mic === 'asking') return phase === 'live' ? 'Allow the microphone, or type.' : 'Allow the microphone when the browser asks.';
  if (phase !== 'live') return '';
  if (memory === 'paused') return 'Nothing you say is being remembered.';
  if (mic === 'muted') return 'You are muted.';
  return memory === 'off' ? 'This call has no memory.' : agent === 'listening' && mic === 'on' ? 'Just talk.' : '';
}

// Messages, each with its next step. A list is only touched when it changes, so that nothing is read out twice.

let notice;
const shown = {};

function tell(problem) {
  notice = problem;
  draw();
}

function drawMessages(id, messages) {
  const now = JSON.stringify(messages.map(({ act, ...rest }) => rest));
  if (shown[id] === now) return;
  shown[id] = now;
  $(id).replaceChildren(...messages.map(({ what, next, label, act }) => {
    const line = element('p', { className: 'notice' }, element('strong', { textContent: what }), ` ${next ?? ''} `);
    if (act) line.append(element('button', { type: 'button', className: 'quiet', textContent: label, onclick: act }));
    return line;
  }));
}

function drawAllMessages({ phase, problem, mic, audioBlocked, slow, recorded }) {
  const alerts = [];
  if (phase === 'failed' && problem) alerts.push({ what: problem.message, next: problem.next });
  if (slow) alerts.push({ what: 'Still waking up.', next: 'After a quiet time this can take half a minute.', label: 'Ask again', act: () => call.retry() });
  if (audioBlocked) alerts.push({ what: 'The browser holds the sound back.', label: 'Turn on sound', act: () => call.unblockAudio() });
  if (call.open && mic in MICROPHONE) {
    const [what, next] = MICROPHONE[mic];
    alerts.push({ what, next, label: 'Try again', act: mic === 'insecure' ? null : () => call.retryMicrophone() });
  }
  if (notice) alerts.push({ what: notice.message, next: notice.next, label: 'OK', act: () => tell(null) });
  drawMessages('alerts', alerts);

  const notes = [];
  if (call.open && recorded) notes.push({ what: 'LiveKit records this call.', next: '“Don’t remember” does not stop that recording.' });
  drawMessages('notes', notes);
}

let wasOpen = false;

function draw() {
  const { view } = call;
  const { phase, mic, memory, switching } = view;
  document.body.dataset.phase = phase;
  Object.assign($('stage').dataset, { state: phase === 'live' ? view.agent : phase, mic, memory });
  const words = stateWords(view);
  if ($('state').textContent !== words) $('state').textContent = words;
  $('detail').textContent = detailWords(view);
  drawAllMessages(view);

  for (const control of document.querySelectorAll('.in-call')) control.hidden = !call.open;
  $('main').classList.toggle('end', call.open);
  $('main-label').textContent = call.open ? 'End' : phase === 'idle' ? 'Start a call' : phase === 'failed' ? 'Try again' : 'Call again';
  $('before').hidden = phase !== 'idle';
  $('log').hidden = !call.rows.size;
  $('summary').hidden = phase !== 'ended' || !view.startedAt;

  $('mute').disabled = mic !== 'on' && mic !== 'muted';
  $('mute').classList.toggle('on', mic === 'muted');
  $('mute-label').textContent = mic === 'muted' ? 'Unmute' : 'Mute';
  const canSwitch = call.ready && (memory === 'on' || memory === 'paused');
  $('forgetful').disabled = !canSwitch || switching;
  $('forgetful').setAttribute('aria-checked', memory === 'paused');
  $('words').disabled = $('send').disabled = !call.ready;

  if (wasOpen !== call.open) {
    wasOpen = call.open;
    panel.redraw();
    if (wasOpen) watchLevels();
    else if (phase === 'ended') afterCall();
    transcript.toEnd();
  }
}

// After a call: what it was good for.

function length(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function drawSummary() {
  const { startedAt, endedAt, recalled } = call.view;
  const notes = [...call.rows.values()].filter((row) => row.who === 'note');
  const of = (kind) => notes.filter((row) => row.kind === kind).flatMap((row) => row.facts).filter((fact) => !fact.undone);
  const forgotten = of('forgotten');
  const gone = new Set([...forgotten.map((fact) => fact.text), ...panel.forgotten]);
  const saved = new Map([...of('saved'), ...panel.news].filter((fact) => !gone.has(fact.text)).map((fact) => [fact.text, fact]));
  const part = (label, facts) => (facts.length ? [element('dt', { textContent: label }), element('dd', {}, factList(facts))] : []);
  $('summary').replaceChildren(element('dl', {},
    element('dt', { textContent: 'Talked for' }), element('dd', { textContent: length(endedAt - startedAt) }),
    element('dt', { textContent: 'Recalled' }), element('dd', { textContent: ['nothing this time', 'once'][recalled] ?? `${recalled} times` }),
    ...part('Remembered', [...saved.values()]),
    ...part('Forgotten', forgotten),
  ));
}

function afterCall() {
  drawSummary();
  // What was said is stored once the call is over, a little later.
  for (const delay of [3_000, 10_000]) setTimeout(() => { if (!call.open) panel.load(); }, delay);
}

// Sound: the shape and the meters follow what is really heard.

function watchLevels() {
  openEars();
  const { style } = document.documentElement;
  const frame = () => {
    style.setProperty('--mic', call.view.mic === 'on' ? loudness('mic', call.microphone).toFixed(3) : 0);
    style.setProperty('--voice', call.open ? loudness('voice', call.voice).toFixed(3) : 0);
    if (call.open) requestAnimationFrame(frame);
  };
  frame();
}

let playing;
call.on('audio', (track) => {
  playing?.detach().forEach((player) => player.remove());
  playing = track;
  if (track) document.body.append(track.attach());
});

const devices = [$('audioinput'), $('audiooutput')];
const listAll = () => devices.forEach((select) => listDevices(select, call.devices[select.id]));

for (const select of devices) {
  select.onchange = () => {
    try { stored[select.id] = select.value; } catch { /* kept for this visit only */ }
    call.choose(select.id, select.value);
  };
}
$('speaker').hidden = !('setSinkId' in HTMLMediaElement.prototype);
navigator.mediaDevices?.addEventListener('devicechange', () => { if ($('sound').open) listAll(); });
$('open-sound').onclick = () => { listAll(); $('sound').showModal(); };

// The memory: beside the call where there is room, a sheet where there is not.

const wide = matchMedia('(min-width: 900px)');

function placeMemory() {
  if ($('sheet').open) $('sheet').close();
  (wide.matches ? $('side') : $('sheet')).append($('memory'));
}
wide.onchange = placeMemory;
$('open-memory').onclick = () => { $('sheet').showModal(); panel.load(); };
$('close-memory').onclick = () => $('sheet').close();
$('sheet').onclick = (event) => { if (event.target === $('sheet')) $('sheet').close(); };

// What the person does.

let pressedAt = 0;
$('main').onclick = () => {
  // The second half of a double click undoes nothing: neither the start of a call nor its end.
  if (Date.now() - pressedAt < 500) return;
  pressedAt = Date.now();
  if (call.open) return void call.end();
  notice = null;
  transcript.clear();
  panel.settle();
  call.start();
};
$('mute').onclick = () => call.toggleMute();
$('forgetful').onclick = () => call.setPaused(call.view.memory !== 'paused');
$('words').maxLength = LONGEST_MESSAGE;
$('type').onsubmit = (event) => {
  event.preventDefault();
  if (call.send($('words').value)) $('words').value = '';
};
addEventListener('keydown', (event) => {
  if (event.altKey && event.code === 'KeyM' && !event.repeat && call.open) {
    event.preventDefault();
    call.toggleMute();
  }
});

let reload;
call.on('view', draw);
call.on('row', (row) => transcript.draw(row));
call.on('notice', tell);
call.on('memory', ({ type }) => {
  if (type !== 'saved' && type !== 'forgotten') return;
  clearTimeout(reload);
  reload = setTimeout(() => panel.load(), 300);
});

placeMemory();
draw();
panel.load();
