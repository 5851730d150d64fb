// One call to the agent: a state machine over livekit-client that knows nothing of the screen.
// Everything it needs is handed in, so that tests can drive it. Times are milliseconds.

import { FRAGILE_AGENT, MICROPHONE, NO_AGENT, NO_LIBRARY, OLD_BROWSER, Problem, SLOW_START, connectProblem, endOf, request } from './problems.js';
import { LONGEST_MESSAGE, Words } from './words.js';

const START = 15_000; // click to connected
const ASK_AGAIN = [9_000, 18_000]; // an agent is offered to a room once; after that the page has to ask
const SLOW = 30_000;
const GIVE_UP = 60_000;
const AFTER_LOSS = 700; // an agent that leaves because the room is being deleted is no loss
const AFTER_RECONNECT = 5_000; // the agent comes back by itself, a little later than the page
const BEAT = 2_500;
const NO_HANDLER = 1400;
const NO_ECHO = 1501; // not even the transport confirmed, which livekit-client says after 7 s
const NO_SIGN_OF_LIFE = [1401, NO_ECHO, 1503, 1505]; // every other error is an answer
const MOST_LOSSES = 3;
const LOSSES_WITHIN = 120_000;

function fresh() {
  return {
    phase: 'idle', // starting, waiting, live, reconnecting, ended, failed
    agent: 'initializing', // while live: not ready yet, then its own word: listening, thinking, speaking
    slow: false, // waiting takes unusually long
    lost: false, // waiting for a replacement
    problem: null,
    mic: 'off', // asking, on, muted, or a key of MICROPHONE
    audioBlocked: false,
    memory: '', // the agent's word: on, paused, off
    switching: false, // a pause or resume is on its way
    recorded: false,
    startedAt: 0,
    endedAt: 0,
    recalled: 0,
  };
}

/**
 * `on(name, fn)` brings: `view` (something in `.view` changed), `row` (a transcript row, new or changed),
 * `memory` (a memory event of the agent), `audio` (the agent's audio track, or null), `notice` (a Problem).
 * `library()` resolves to the livekit-client namespace or null; `clock` is {now, setTimeout, clearTimeout};
 * `devices` holds preferred device ids by kind; `secure` says whether the browser may give a microphone here.
 */
export class Call {
  view = fresh();
  #listeners = {};
  #timers = new Map();
  #run = 0; // results that belong to an earlier run are dropped

  constructor({ library, fetch, clock, devices = {}, secure = true }) {
    Object.assign(this, { library, fetch, clock, devices, secure });
    this.#words = this.#newWords();
  }

  on(name, fn) {
    (this.#listeners[name] ??= []).push(fn);
  }

  /** The MediaStreamTrack of the caller's voice, and of the agent's, while there is one. */
  get microphone() { return this.#room?.localParticipant.getTrackPublication('microphone')?.track?.mediaStreamTrack; }
  get voice() { return this.#audio?.mediaStreamTrack; }

  /** The transcript: a Map of rows in their order, see `Words`. */
  get rows() { return this.#words.rows; }

  /** True while there is a call, from the click until its end. */
  get open() { return !['idle', 'ended', 'failed'].includes(this.view.phase); }

  /** True while the agent hears what is typed and answers what is asked; before, both would be lost without a word. */
  get ready() { return this.view.phase === 'live' && this.view.agent !== 'initializing'; }

  #words;
  #room;
  #agent; // participant
  #active; // whether it can be reached: it is seen in the room a little earlier
  #audio; // the agent's track
  #agents; // identities that were the agent of this call
  #gone; // identities given up on, though the server still lists them
  #losses;
  #alive; // when the agent last answered
  #lastProblem;
  #connected; // resolves when the room is there, or when it will not be
  #letThrough;
  #muting;
  #paused; // the caller's confirmed wish; a replacement agent is told

  async start() {
    if (this.open) return;
    const run = ++this.#run;
    this.#words = this.#newWords();
    this.view = fresh();
    this.#agent = this.#lastProblem = undefined;
    this.#agents = new Set();
    this.#gone = new Set();
    this.#losses = [];
    this.#paused = this.#muting = false;
    this.#set({ phase: 'starting' });
    this.#later('start', START, () => this.#finish('failed', SLOW_START()));

    const lk = await this.library();
    if (run !== this.#run) return;
    if (!lk) return this.#finish('failed', NO_LIBRARY());
    if (!lk.isBrowserSupported()) return this.#finish('failed', OLD_BROWSER());
    lk.setLogLevel?.('silent'); // its messages can hold the token
    const room = this.#makeRoom(lk);
    room.startAudio().catch(() => {}); // within the click, while the browser still allows it
    this.#connected = new Promise((resolve) => { this.#letThrough = resolve; });
    this.#openMicrophone(run);

    let grant;
    try {
      grant = await request(this.fetch, 'POST', '/api/token', {});
      if (!grant?.participant_token) throw new Problem("This page's server gave no token.", "Look at the server's log, then try again.");
    } catch (problem) {
      if (run === this.#run) this.#finish('failed', problem);
      return;
    }
    if (run !== this.#run) return;
    try {
      await room.connect(grant.server_url, grant.participant_token);
    } catch (error) {
      if (run === this.#run) this.#finish('failed', connectProblem(error?.reason, lk.ConnectionErrorReason, grant.server_url));
      return;
    }
    if (run !== this.#run) return;
    this.#letThrough();
    this.#cancel('start');
    this.#set({ startedAt: this.clock.now(), audioBlocked: !room.canPlaybackAudio });
    if (!this.#look()) this.#wait();
  }

  end() {
    if (this.open) this.#finish('ended', null);
  }

  #finish(phase, problem) {
    this.#run += 1;
    for (const name of [...this.#timers.keys()]) this.#cancel(name);
    const room = this.#room;
    this.#room = this.#agent = undefined;
    this.#letThrough?.();
    this.#hear(null);
    room?.disconnect().catch(() => {});
    this.#words.close();
    this.#set({ phase, problem, endedAt: this.view.startedAt && this.clock.now(), slow: false, lost: false, audioBlocked: false, switching: false, mic: 'off' });
  }

  #makeRoom(lk) {
    const { RoomEvent: E } = lk;
    const room = new lk.Room({
      audioCaptureDefaults: this.devices.audioinput ? { deviceId: { ideal: this.devices.audioinput } } : {},
      audioOutput: this.devices.audiooutput ? { deviceId: this.devices.audiooutput } : undefined,
    });
    this.#room = room;
    const mine = (fn) => (...given) => { if (this.#room === room) fn(...given); };
    room
      .on(E.Disconnected, mine((reason) => {
        // A connect that fails says so itself, with a better reason.
        if (this.view.phase !== 'starting') this.#finish(...endOf(reason, lk.DisconnectReason));
      }))
      .on(E.SignalReconnecting, mine(() => this.#reconnecting()))
      .on(E.Reconnecting, mine(() => this.#reconnecting()))
      .on(E.Reconnected, mine(() => {
        if (this.view.phase !== 'reconnecting') return;
        this.#set({ phase: 'waiting' });
        if (!this.#look()) this.#later('rejoin', AFTER_RECONNECT, () => this.#wait(this.#agent?.identity, 0));
      }))
      .on(E.ParticipantConnected, mine((who) => {
        this.#gone.delete(who.identity); // one that joins again lives
        this.#look();
      }))
      .on(E.ParticipantActive, mine((who) => {
        if (who === this.#agent) this.#reached();
      }))
      .on(E.ParticipantDisconnected, mine((who) => {
        // While the page itself is reconnecting, everybody else seems to leave.
        if (who === this.#agent && this.view.phase === 'live') this.#lose(AFTER_LOSS);
      }))
      .on(E.ParticipantAttributesChanged, mine((changed, who) => { if (who === this.#agent) this.#read(); }))
      .on(E.TrackSubscribed, mine((track, publication, who) => { if (who.isAgent && track.kind === 'audio') this.#hear(track); }))
      .on(E.TrackUnsubscribed, mine((track) => { if (track === this.#audio) this.#hear(null); }))
      .on(E.AudioPlaybackStatusChanged, mine(() => this.#set({ audioBlocked: !room.canPlaybackAudio })))
      .on(E.TrackMuted, mine((publication, who) => {
        // Nobody asked for it: the device was pulled out or the permission taken back.
        if (who === room.localParticipant && this.view.mic === 'on' && !this.#muting) this.#set({ mic: 'lost' });
      }))
      .on(E.TrackUnmuted, mine((publication, who) => {
        if (who === room.localParticipant && this.view.mic === 'lost') this.#set({ mic: 'on' });
      }));
    room.registerTextStreamHandler('lk.transcription', mine((reader, from) => this.#transcribe(reader, from.identity)));
    room.registerTextStreamHandler('memory.events', mine((reader, from) => this.#memoryEvent(reader, from.identity)));
    return room;
  }

  // The agent: finding it, losing it, asking for another.

  #look() {
    const there = [...this.#room.remoteParticipants.values()].filter(
      (who) => who.isAgent && !who.attributes['lk.publish_on_behalf'] && !this.#gone.has(who.identity),
    );
    const found = there.find((who) => who.identity === this.#agent?.identity) ?? there[0];
    if (!found || this.view.phase === 'reconnecting') return found;
    if (found === this.#agent && this.view.phase === 'live') return found;
    for (const name of ['ask0', 'ask1', 'slow', 'giveUp', 'rejoin']) this.#cancel(name);
    if (!this.#agents.has(found.identity)) this.#set({ memory: '' }); // what a lost one said of itself holds no more
    this.#agent = found;
    this.#active = false;
    this.#agents.add(found.identity);
    this.#alive = this.clock.now();
    this.#set({ phase: 'live', agent: 'initializing', slow: false, lost: false, switching: false });
    for (const { track } of found.audioTrackPublications.values()) if (track) this.#hear(track);
    this.#read();
    if (found.isActive) this.#reached();
    this.#beat();
    return found;
  }

  #reached() {
    this.#active = true;
    this.#read();
    // The caller told another agent, which this one replaces. It may not wait until it is ready to listen.
    if (this.#paused && this.view.memory !== 'paused') this.setPaused(true);
  }

  #read() {
    const said = this.#agent.attributes;
    const agent = (this.#active && said['lk.agent.state']) || 'initializing';
    this.#words.agentSpeaks(agent === 'speaking');
    this.#set({
      agent,
      memory: said['memory.state'] || this.view.memory,
      recorded: said['memory.recorded'] === 'true',
    });
  }

  #beat() {
    const agent = this.#agent;
    this.#later('beat', BEAT, () => this.#beat());
    if (this.view.phase !== 'live') return;
    const sent = this.clock.now();
    const answered = () => { if (agent === this.#agent) this.#alive = this.clock.now(); };
    this.#rpc('memory.ping').then(answered, ({ code }) => {
      if (code && !NO_SIGN_OF_LIFE.includes(code)) answered();
      const slept = this.clock.now() - sent > 10_000; // this machine was asleep, not the agent
      if (code === NO_ECHO && agent === this.#agent && this.view.phase === 'live' && this.#alive <= sent && !slept) this.#lose(0);
    });
  }

  #lose(delay) {
    const now = this.clock.now();
    this.#losses = [...this.#losses.filter((at) => now - at < LOSSES_WITHIN), now];
    if (this.#losses.length > MOST_LOSSES) return this.#finish('failed', FRAGILE_AGENT());
    this.#wait(this.#agent.identity, delay);
  }

  #wait(lost, delay) {
    this.#cancel('beat');
    this.#agent = undefined;
    if (lost) this.#gone.add(lost);
    this.#set({ phase: 'waiting', lost: Boolean(lost) });
    if (lost && this.#look()) return;
    const [first, second] = lost ? [delay, ASK_AGAIN[0]] : ASK_AGAIN;
    this.#later('ask0', first, () => this.#ask(lost));
    this.#later('ask1', second, () => this.#ask(lost));
    this.#patience();
  }

  #patience() {
    this.#set({ slow: false });
    this.#later('slow', SLOW, () => this.#set({ slow: true }));
    this.#later('giveUp', GIVE_UP, () => this.#finish('failed', NO_AGENT(this.#lastProblem)));
  }

  /** The caller's own "try again" while waiting takes unusually long. */
  retry() {
    if (this.view.phase !== 'waiting') return;
    this.#ask([...this.#gone].at(-1));
    this.#patience();
  }

  async #ask(lost) {
    const run = this.#run;
    try {
      await request(this.fetch, 'POST', '/api/dispatch', { room: this.#room.name, ...(lost && { lost }) });
      this.#lastProblem = undefined;
    } catch (problem) {
      if (run !== this.#run || this.view.phase !== 'waiting') return;
      this.#lastProblem = problem.message;
      if (problem.status === 409) {
        // Another agent is there or on its way.
        this.#look();
      } else if (problem.status === 404) {
        this.#finish('failed', new Problem('This call is no longer open.', 'Call again.'));
      }
    }
  }

  #reconnecting() {
    if (this.view.phase === 'starting') return;
    for (const name of ['ask0', 'ask1', 'slow', 'giveUp', 'rejoin']) this.#cancel(name);
    this.#set({ phase: 'reconnecting' });
  }

  #rpc(method, payload) {
    return this.#room.localParticipant.performRpc({
      destinationIdentity: this.#agent.identity,
      method,
      payload: payload ? JSON.stringify(payload) : '',
      responseTimeout: 10_000, // above the 7 s after which an unconfirmed call is known to be lost
    });
  }

  // Microphone and sound.

  async #openMicrophone(run) {
    const { localParticipant: me } = this.#room;
    if (!this.secure) return this.#set({ mic: 'insecure' });
    this.#set({ mic: 'asking' });
    let track;
    try {
      [track] = await me.createTracks({ audio: true });
      if (run === this.#run) await this.#connected;
      if (run !== this.#run) return track.stop();
      await me.publishTrack(track);
      if (run === this.#run) this.#set({ mic: 'on' });
    } catch (error) {
      track?.stop();
      if (run === this.#run) this.#set({ mic: this.#micFailure(error) });
    }
  }

  #micFailure(error) {
    const kinds = {
      NotAllowedError: 'denied', PermissionDeniedError: 'denied', SecurityError: 'denied',
      NotFoundError: 'none', DevicesNotFoundError: 'none', OverconstrainedError: 'none',
      NotReadableError: 'busy', TrackStartError: 'busy',
    };
    return kinds[error?.name] ?? 'failed';
  }

  async retryMicrophone() {
    if (!this.#room || !(this.view.mic in MICROPHONE)) return;
    if (!this.microphone) return this.#openMicrophone(this.#run);
    await this.#enable(true);
  }

  async toggleMute() {
    if (this.view.mic === 'on' || this.view.mic === 'muted') await this.#enable(this.view.mic === 'muted');
  }

  async #enable(on) {
    const run = this.#run;
    this.#muting = true;
    try {
      await this.#room.localParticipant.setMicrophoneEnabled(on);
      if (run === this.#run) this.#set({ mic: on ? 'on' : 'muted' });
    } catch (error) {
      if (run === this.#run) this.#set({ mic: this.#micFailure(error) });
    } finally {
      this.#muting = false;
    }
  }

  async choose(kind, id) {
    this.devices[kind] = id;
    if (!this.#room) return;
    try {
      await this.#room.switchActiveDevice(kind, id);
      if (kind === 'audioinput') await this.retryMicrophone();
    } catch {
      this.#emit('notice', new Problem('That device could not be used.', 'Choose another one.'));
    }
  }

  unblockAudio() {
    return this.#room?.startAudio().catch(() => {});
  }

  #hear(track) {
    if (track === this.#audio) return;
    this.#audio = track;
    this.#emit('audio', track);
  }

  // Words.

  /** Sends typed text; false when nobody is there to read it. */
  send(text) {
    const message = text.trim().slice(0, LONGEST_MESSAGE);
    if (!message || !this.ready) return false;
    const words = this.#words;
    const id = words.typed(message);
    this.#room.localParticipant.sendText(message, { topic: 'lk.chat' }).catch(() => words.notSent(id));
    return true;
  }

  #transcribe(reader, from) {
    // Somebody else in the room speaks neither for the agent nor for the caller.
    if (from === this.#room.localParticipant.identity) this.#words.follow(reader, 'caller', from);
    else if (this.#agents.has(from)) this.#words.follow(reader, 'agent', from);
  }

  // Memory.

  async #memoryEvent(reader, from) {
    if (from !== this.#agent?.identity) return;
    const run = this.#run;
    let event;
    try {
      event = JSON.parse((await reader.readAll()).slice(0, 100_000));
    } catch {
      return;
    }
    if (run !== this.#run || !event) return;
    const facts = (Array.isArray(event.facts) ? event.facts : []).filter((fact) => typeof fact?.text === 'string').slice(0, 50);
    if (event.type === 'state' && typeof event.state === 'string') {
      this.#paused = event.state === 'paused';
      this.#set({ memory: event.state });
    } else if (event.type === 'recalled' && facts.length) {
      this.#words.recalled(facts, Math.round(Number(event.waited_ms)) || 0);
      this.#set({ recalled: this.view.recalled + 1 });
    } else if ((event.type === 'saved' || event.type === 'forgotten') && facts.length) {
      this.#words.note(event.type, facts);
    }
    this.#emit('memory', { type: event.type, facts });
  }

  /** Asks the agent to stop or to go on remembering. The view changes on its answer, never before. */
  async setPaused(paused) {
    if (!this.#agent || this.view.switching) return;
    const { identity } = this.#agent;
    this.#set({ switching: true });
    let memory;
    try {
      memory = JSON.parse(await this.#withHandler('memory.pause', { paused })).state;
      if (typeof memory !== 'string') throw new TypeError('no state');
    } catch { /* said below */ }
    if (identity !== this.#agent?.identity) return;
    if (memory) this.#paused = memory === 'paused';
    this.#set({ switching: false, ...(memory && { memory }) });
    if (!memory) this.#emit('notice', new Problem(`The agent did not confirm. ${paused ? 'It may still remember what you say.' : 'It may still not remember.'}`, 'Try again.'));
  }

  /** Before a fact that this call just saved is forgotten again, see `Words`. */
  takeBack(id) {
    this.#words.takeBack(id);
  }

  /**
   * Has the running call's agent forget `{ id }` or `{ everything: true }`, since it alone writes down this call;
   * null when there is none, or when it did not confirm.
   */
  async forget(what) {
    if (!this.open || !this.#agent) return null;
    const { identity } = this.#agent;
    try {
      return JSON.parse(await this.#withHandler('memory.forget', what));
    } catch {
      // One that was lost meanwhile uses nothing any more.
      if (this.view.phase === 'live' && identity === this.#agent?.identity) this.#emit('notice', new Problem('The agent did not confirm that it forgot.', 'End this call to be sure that it is not used again.'));
      return null;
    }
  }

  // A page can be faster than an agent that is still setting up.
  async #withHandler(method, payload) {
    const { identity } = this.#agent;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#rpc(method, payload);
      } catch (error) {
        if (error?.code !== NO_HANDLER || attempt === 4) throw error;
        await new Promise((resolve) => this.clock.setTimeout(resolve, 500));
        if (identity !== this.#agent?.identity) throw error;
      }
    }
  }

  // Plumbing.

  #newWords() {
    return new Words({ clock: this.clock, changed: (row) => this.#emit('row', row) });
  }

  #set(change) {
    Object.assign(this.view, change);
    this.#emit('view', this.view);
  }

  #emit(name, detail) {
    for (const fn of this.#listeners[name] ?? []) fn(detail);
  }

  #later(name, delay, fn) {
    this.#cancel(name);
    this.#timers.set(name, this.clock.setTimeout(() => { this.#timers.delete(name); fn(); }, delay));
  }

  #cancel(name) {
    this.clock.clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }
}
